/** The contract of a `StreamFn`, with the adapter of pi-ai to the chat completions API behind it. */
import { streamSimple } from "@earendil-works/pi-ai/api/openai-completions"
import { describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { PiAi } from "../../src/pi-ai/index.ts"
import { StreamFnContract } from "../../src/testing/index.ts"
import { serveAll } from "../utils/completionsServer.ts"

describe("PiAi.layer", () => {
  const cases = StreamFnContract.completionsCases({
    connect: () => PiAi.layer(streamSimple, { apiKey: Redacted.make("k") }),
    serve: serveAll
  }, {
    differences: {
      "M1: ids that differ in other characters alone":
        "pi-ai replaces the characters, and ids of other providers have a meaning for it that only it knows"
    }
  })
  for (const { name, test } of cases) it.effect(name, () => test)
})
