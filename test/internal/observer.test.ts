import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Scheduler, Stream } from "effect"
import { Errors, type Events } from "../../src/index.ts"
import { observe } from "../../src/internal/observer.ts"

describe("Observers", () => {
  for (const strategy of ["sliding", "dropping"] as const) {
    it.effect(`H3: an event costs the same, however many runs an observer is behind (${strategy})`, () =>
      Effect.gen(function*() {
        let looks = 0
        /** An event that counts how often it is looked at. */
        const counted = (event: Events.AgentEvent): Events.AgentEvent =>
          new Proxy(event, {
            get: (target, key) => {
              looks++
              return Reflect.get(target, key)
            }
          })
        let add: (event: Events.AgentEvent) => void = () => undefined
        const stream = observe({ capacity: 4, strategy }, (given) => {
          add = given
          return () => undefined
        })
        const gate = yield* Deferred.make<void>()
        const seen: Array<Events.ObservedEvent> = []
        const fiber = yield* Effect.forkChild(
          Stream.runForEach(stream, (event) => {
            seen.push(event)
            return Deferred.await(gate)
          }),
          { startImmediately: true }
        )
        const runs = 2000
        for (let run = 0; run < runs; run++) {
          add(counted({ type: "agent_start" }))
          add(counted({ type: "turn_start" }))
          add(counted({ type: "agent_end", messages: [], outcome: Errors.RunOutcome.Aborted() }))
        }
        assert.isAtMost(looks, 4 * 3 * runs)
        yield* Deferred.succeed(gate, undefined)
        yield* Effect.yieldNow
        assert.isAtMost(seen.length, 1 + 4 + 3)
        assert.strictEqual(seen.at(-1)?.type, "agent_end")
        yield* Fiber.interrupt(fiber)
      }))
  }

  for (const ops of [3, 4, 5, 7]) {
    it.effect(`H3, I5: what comes while a reader begins to wait wakes it, with a pause after ${ops} operations`, () =>
      Effect.gen(function*() {
        for (let steps = 0; steps < 40; steps++) {
          for (const what of ["an event", "the end"] as const) {
            let add: (event: Events.AgentEvent) => void = () => undefined
            let close: () => void = () => undefined
            const stream = observe({ capacity: 4, strategy: "sliding" }, (...given) => {
              ;[add, close] = given
              return () => undefined
            })
            const reader = yield* Stream.runHead(stream).pipe(
              Effect.provideService(Scheduler.MaxOpsBeforeYield, ops),
              Effect.forkChild({ startImmediately: true })
            )
            while (close.length === 0 && add.length === 0) yield* Effect.yieldNow
            for (let step = 0; step < steps; step++) yield* Effect.yieldNow
            if (what === "the end") close()
            else add({ type: "agent_start" })
            for (let step = 0; step < 200 && reader.pollUnsafe() === undefined; step++) yield* Effect.yieldNow
            assert.isDefined(reader.pollUnsafe(), `${what} after ${steps} steps`)
          }
        }
      }))
  }
})
