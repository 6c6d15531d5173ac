/** The contract of a `StreamFn`, over HTTP. */
import { describe, it } from "@effect/vitest"
import { StreamFnContract } from "../../src/testing/index.ts"
import { serveAll } from "../utils/completionsServer.ts"
import { layer } from "./ask.ts"

describe("OpenAi.layer", () => {
  const cases = StreamFnContract.completionsCases({ connect: layer, serve: serveAll })
  for (const { name, test } of cases) it.effect(name, () => test)
})
