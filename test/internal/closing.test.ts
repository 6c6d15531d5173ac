import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { RunOutcome } from "../../src/Errors.ts"
import { close } from "../../src/internal/closing.ts"
import type { Run } from "../../src/internal/run.ts"
import type { RunResult } from "../../src/RunResult.ts"
import { logged } from "../utils/agents.ts"
import { bite, lie } from "../utils/hostile.ts"

/** A run whose state cannot be read. */
const broken = (settle: Effect.Effect<void>) => {
  const done = Deferred.makeUnsafe<RunResult>()
  const run = { owner: 0, added: [], settled: false, inbox: {}, settle: () => settle, done }
  return { done, run: lie<Run>(Object.defineProperty(run, "held", { get: bite })) }
}

describe("close", () => {
  for (const [name, settle] of [["", Effect.void], [", also when the host throws", Effect.sync(bite)]] as const) {
    it.effect(`I1: an ending that throws settles the run as failed and is logged${name}`, () =>
      Effect.gen(function*() {
        const { done, run } = broken(settle)
        const [, log] = yield* logged(Effect.exit(close(run, RunOutcome.Aborted(), 0)))
        assert.isTrue(Deferred.isDoneUnsafe(done))
        const { outcome } = yield* Deferred.await(done)
        assert.strictEqual(outcome._tag === "Failed" ? outcome.error.message : outcome._tag, "do not touch")
        if (settle === Effect.void) assert.match(log.join(), /could not be ended in order.*do not touch/s)
      }))
  }

  it.effect("A4: whoever was replaced ends nothing", () =>
    Effect.gen(function*() {
      const { done, run } = broken(Effect.void)
      const [exit] = yield* logged(Effect.exit(close(run, RunOutcome.Aborted(), 1)))
      assert.strictEqual(exit._tag, "Failure")
      assert.isFalse(Deferred.isDoneUnsafe(done))
    }))
})
