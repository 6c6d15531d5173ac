/** Requests that wait, and what becomes of those who wait. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { Agent } from "../../src/index.ts"
import { Resilience } from "../../src/resilience/index.ts"
import { ask, type Attempt, failure, model, Played, text, whole } from "./scene.ts"

const setUp = (attempts: ReadonlyArray<Attempt>, options: Resilience.RateLimitOptions) => {
  const played = new Played()
  return { played, layer: model(attempts, played).pipe(Resilience.rateLimit(options)) }
}

const many = (count: number) =>
  Effect.forEach(Array.from({ length: count }), () => Effect.flatMap(Agent.make(), (agent) => agent.prompt("go")), {
    concurrency: "unbounded"
  }).pipe(Effect.scoped)

describe("Requests", () => {
  it.effect("come one by one when the window is used up", () => {
    const { layer, played } = setUp(Array.from({ length: 5 }, () => whole("x")), { requests: 2, window: "10 seconds" })
    return Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(many(5))
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(played.times, [0, 0, 5000, 10_000, 15_000])
    }).pipe(Effect.provide(layer))
  })

  it.effect("are no more at once than allowed", () => {
    const { layer, played } = setUp(Array.from({ length: 5 }, () => [1000, ...whole("x")]), { concurrency: 2 })
    return Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(many(5))
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(played.times, [0, 0, 1000, 1000, 2000])
      assert.strictEqual(played.mostOpen, 2)
    }).pipe(Effect.provide(layer))
  })

  it.effect("are not held up without limits", () => {
    const { layer, played } = setUp(Array.from({ length: 3 }, () => whole("x")), {})
    return Effect.gen(function*() {
      yield* many(3)
      assert.deepStrictEqual(played.times, [0, 0, 0])
    }).pipe(Effect.provide(layer))
  })

  it.effect("count with every attempt when the limit is inside", () => {
    const played = new Played()
    const layer = model([[failure()], whole("x")], played).pipe(
      Resilience.rateLimit({ requests: 1, window: "1 minute" }),
      Resilience.retry({ schedule: Schedule.spaced("1 second") })
    )
    return Effect.gen(function*() {
      yield* ask()
      assert.deepStrictEqual(played.times, [0, 60_000])
    }).pipe(Effect.provide(layer))
  })
})

describe("An abort", () => {
  it.effect("A1: ends the waiting at once, and frees the place for others", () => {
    const { layer, played } = setUp([[...text("half"), 10_000], whole("x")], { concurrency: 1 })
    return Effect.gen(function*() {
      const [one, two, three] = [yield* Agent.make(), yield* Agent.make(), yield* Agent.make()]
      const first = yield* Effect.forkChild(one.prompt("go"), { startImmediately: true })
      const second = yield* Effect.forkChild(two.prompt("go"), { startImmediately: true })
      const third = yield* Effect.forkChild(three.prompt("go"), { startImmediately: true })
      yield* TestClock.adjust(1000)
      yield* two.abort
      assert.strictEqual((yield* Fiber.join(second)).outcome._tag, "Aborted")
      assert.strictEqual(yield* Clock.currentTimeMillis, 1000)
      yield* one.abort
      assert.strictEqual((yield* Fiber.join(first)).outcome._tag, "Aborted")
      assert.strictEqual((yield* Fiber.join(third)).outcome._tag, "Completed")
      assert.deepStrictEqual(played.times, [0, 1000])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })
})

describe("Bad options", () => {
  for (
    const [options, message] of [
      [{ requests: 0 }, "rateLimit: requests must be a whole number of at least 1, not 0."],
      [{ concurrency: 1.5 }, "rateLimit: concurrency must be a whole number of at least 1, not 1.5."],
      [{ window: -1 }, "rateLimit: window must be a finite duration of at least 1 ms, such as \"1 second\"."]
    ] as const
  ) {
    it.effect(JSON.stringify(options), () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Effect.provide(Effect.void, setUp([], options).layer))
        assert.deepStrictEqual([error._tag, error.message], ["AgentConfigError", message])
      }))
  }
})
