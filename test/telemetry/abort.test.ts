/** A run is aborted at each of its places (`utils/journey.ts`): all its spans end, also when something is left behind. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Journey from "../utils/journey.ts"
import { assertClosed, attributesOf, ending, find, keep } from "./spans.ts"

const hour = Effect.sleep("1 hour")

/** The labels of a run that nobody aborts. */
const labels = Effect.gen(function*() {
  const { prompt, visits } = yield* Journey.make({})
  const run = yield* Effect.forkChild(prompt("go"))
  yield* TestClock.adjust("1 hour")
  yield* Fiber.join(run)
  // After `agent_end` nothing is left to abort.
  return visits.filter((label) => label !== "on agent_end 1")
}).pipe(Effect.scoped)

const aborted = (label: string, deaf: boolean) => {
  const kept = keep()
  return Effect.gen(function*() {
    const wait = deaf ? Effect.uninterruptible(hour) : hour
    const { agent, prompt, visits } = yield* Journey.make({ at: label, action: () => wait, deaf, gracePeriod: 1000 })
    const run = yield* Effect.forkChild(prompt("go"))
    yield* TestClock.adjust("1 minute")
    assert.include(visits, label)
    const abort = yield* Effect.forkChild(agent.abort, { startImmediately: true })
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(abort)
    yield* Fiber.join(run)
    assertClosed(kept)
    const span = find(kept, "invoke_agent")
    assert.strictEqual(ending(span), "interrupted", label)
    assert.strictEqual(attributesOf(span)["effect_pi.run.outcome"], "aborted")
    assert.deepStrictEqual(
      span.events.map(([name]) => name).filter((name) => name === "effect_pi.abort"),
      ["effect_pi.abort"]
    )
    // What was left behind ends some time, and opens nothing any more.
    const count = kept.spans.length
    yield* TestClock.adjust("5 hours")
    assert.strictEqual(kept.spans.length, count, label)
  }).pipe(Effect.scoped, Effect.provide(kept.layer))
}

describe("Abort", () => {
  it.effect("at every place ends all spans", () =>
    Effect.gen(function*() {
      const all = yield* labels
      assert.isAbove(all.length, 60)
      for (const label of all) if (!label.startsWith("on ")) yield* aborted(label, false)
    }), 60_000)

  it.effect(
    "at every place that cannot be interrupted ends all spans after the grace period",
    () =>
      Effect.gen(function*() {
        for (const label of yield* labels) yield* aborted(label, true)
      }),
    60_000
  )
})
