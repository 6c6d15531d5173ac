/** What leaks.ts finds, and that it finds nothing where nothing is. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { Agent } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { leakFree, leavesNothing, makeAgent, nothingLives, subscribe, testEnd } from "./leaks.ts"

const found = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.exit(leakFree(body)), (exit) => Exit.isSuccess(exit) ? "" : Cause.pretty(exit.cause))

const model = ScriptedModel.layer([], { otherwise: ScriptedModel.text("fine", { chunks: 3, every: 10 }) })

describe("leakFree", () => {
  it.effect("I5: finds nothing where nothing is left", () =>
    Effect.gen(function*() {
      const value = yield* leakFree(Effect.gen(function*() {
        const fiber = yield* Effect.forkDetach(Effect.sleep(10))
        yield* TestClock.adjust(10)
        yield* Fiber.join(fiber)
        return 1
      }))
      assert.strictEqual(value, 1)
    }))

  for (
    const [what, leak, words] of [
      ["a fiber", Effect.forkDetach(Effect.never), /1 fibers/],
      [
        "a fiber that a fiber forked",
        Effect.forkDetach(Effect.andThen(Effect.forkDetach(Effect.never), Effect.void)),
        /1 fibers/
      ],
      ["a child the test did not join", Effect.forkChild(Effect.never), /1 fibers/],
      ["a sleep", Effect.andThen(TestClock.adjust(7), Effect.forkDetach(Effect.sleep(10))), /a sleep that began at 7/]
    ] as const
  ) {
    it.effect(`I5: finds ${what}`, () =>
      Effect.map(found(Effect.asVoid(leak as Effect.Effect<unknown>)), (text) => assert.match(text, words)))
  }
  it.effect("I5: finds an unhandled rejection", () =>
    Effect.acquireUseRelease(
      // Vitest's own listener would fail the whole file.
      Effect.sync(() =>
        process.listeners("unhandledRejection").filter((own) => process.off("unhandledRejection", own))
      ),
      () =>
        Effect.map(
          found(Effect.sync(() => void Promise.reject(new Error("lost")))),
          (text) => assert.match(text, /unhandled rejection: Error: lost/)
        ),
      (own) => Effect.sync(() => own.forEach((listener) => process.on("unhandledRejection", listener)))
    ))

  it.effect("I5: finds a fiber left when the scope closes", () =>
    Effect.map(
      found(Effect.addFinalizer(() => Effect.asVoid(Effect.forkDetach(Effect.never)))),
      (text) => assert.match(text, /1 fibers/)
    ))
  it.effect("I5: finds a listener and an observer", () =>
    Effect.gen(function*() {
      const listening = (f: (agent: Agent.AgentService) => Effect.Effect<unknown>) =>
        found(Effect.scoped(Effect.flatMap(makeAgent({}), f)).pipe(Effect.provide(model)))
      assert.strictEqual(yield* listening(() => Effect.void), "")
      assert.match(yield* listening((agent) => agent.subscribe(() => {})), /1 listeners/)
      assert.strictEqual(yield* listening((agent) => Effect.scoped(subscribe(agent, () => {}))), "")
      assert.strictEqual(
        yield* listening((agent) =>
          Effect.gen(function*() {
            const fiber = yield* Effect.forkChild(Stream.runDrain(agent.events))
            yield* Effect.yieldNow
            yield* Fiber.interrupt(fiber)
          })
        ),
        ""
      )
    }))
  it.effect("I5: can look in the middle", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* found(nothingLives), "")
      const timer = Effect.andThen(Effect.forkDetach(Effect.sleep(10)), nothingLives)
      assert.match(yield* found(Effect.andThen(timer, TestClock.adjust(10))), /fibers, a sleep that began at 0/)
    }))

  it.effect("I5: lets go what is declared as left behind", () =>
    Effect.gen(function*() {
      const left = Effect.forkDetach(Effect.uninterruptible(testEnd))
      assert.strictEqual(yield* found(left), "")
      assert.match(yield* found(Effect.forkDetach(Effect.andThen(testEnd, Effect.never))), /1 fibers/)
    }))
})

describe("leavesNothing, which watches every test", () => {
  const watched = <A, E, R>(body: Effect.Effect<A, E, R>) =>
    Effect.map(Effect.exit(leavesNothing(body)), (exit) => Exit.isSuccess(exit) ? "" : Cause.pretty(exit.cause))
  const cases: Record<string, readonly [body: Effect.Effect<unknown>, found: RegExp]> = {
    "a fiber that never ends": [Effect.forkDetach(Effect.never), /I5: the test left behind 1 fibers/],
    "nothing where a child of the test ends with it": [Effect.forkChild(Effect.never), /^$/],
    "nothing where what ignores interruption ends in time": [
      Effect.flatMap(
        Effect.forkDetach(Effect.uninterruptible(Effect.sleep("1 day"))),
        (fiber) => Effect.sync(() => fiber.interruptUnsafe())
      ),
      /^$/
    ],
    "the failure of the test itself": [Effect.die("broken"), /broken/]
  }
  for (const [what, [body, expected]] of Object.entries(cases)) {
    it.effect(`I5: finds ${what}`, () => Effect.map(watched(body), (text) => assert.match(text, expected)))
  }
})
