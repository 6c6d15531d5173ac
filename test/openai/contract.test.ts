/** The contract of a `StreamFn`, against the server that the documentation shows. */
import { describe, it } from "@effect/vitest"
import { StreamFnContract } from "../../src/testing/index.ts"
import { serve } from "../examples/serve.ts"
import { layer } from "./ask.ts"

describe("OpenAi.layer", () => {
  const cases = StreamFnContract.completionsCases({ connect: layer, serve })
  for (const { name, test } of cases) it.effect(name, () => test)
})
