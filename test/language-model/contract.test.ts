/** The contract of a `StreamFn`, with a language model of effect/ai for the chat completions API behind it. */
import { describe, it } from "@effect/vitest"
import { Layer } from "effect"
import { EffectAi } from "../../src/language-model/index.ts"
import { StreamFnContract } from "../../src/testing/index.ts"
import * as CompletionsModel from "../utils/completionsModel.ts"
import { serveAll } from "../utils/completionsServer.ts"

describe("EffectAi.layer", () => {
  const cases = StreamFnContract.completionsCases({
    connect: (url) => EffectAi.layer().pipe(Layer.provide(CompletionsModel.layer(url))),
    serve: serveAll,
    // Which model answers is decided by the language model.
    model: () => ({ id: "test-model", input: ["text", "image"] })
  })
  for (const { name, test } of cases) it.effect(name, () => test)
})
