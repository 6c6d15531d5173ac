import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, type Events, Hooks } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { ofType } from "./utils/events.ts"
import { finish, stage, watched } from "./utils/play.ts"
import { tool } from "./utils/sampleTools.ts"

const { calls, text } = ScriptedModel

const fine = text("fine")

/** A scope and a scripted model. */
const on = (...responses: ReadonlyArray<ScriptedModel.Response>) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(Effect.scoped(effect), stage({ responses }))

/** Collects what a stream gives, as it comes, with a wait after each event. */
const collect = (
  stream: Stream.Stream<Events.ObservedEvent>,
  wait: (seen: ReadonlyArray<Events.ObservedEvent>) => Effect.Effect<unknown> = () => Effect.void
) =>
  Effect.gen(function*() {
    const seen: Array<Events.ObservedEvent> = []
    const fiber = yield* Effect.forkChild(
      Stream.runForEach(stream, (event) => {
        seen.push(event)
        return wait(seen)
      }),
      { startImmediately: true }
    )
    return { seen, fiber }
  })

/** Every event is there in its place, or counted in a gap at its place. */
const assertAccounted = (
  seen: ReadonlyArray<Events.ObservedEvent>,
  events: ReadonlyArray<Events.AgentEvent>
): void => {
  let place = 0
  let last: string | undefined
  for (const event of seen) {
    if (event.type === "gap") {
      assert.isAbove(event.missed, 0)
      assert.notStrictEqual(last, "gap", "one gap where one will do")
      place += event.missed
    } else assert.strictEqual(event, events[place++])
    last = event.type
  }
  assert.strictEqual(place, events.length)
}

const strategies = ["sliding", "dropping"] as const

describe("Observers", () => {
  it.effect("H3: an observer who keeps up gets every event of every run, the very same, and no gap", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({
        tools: [tool("work", ({ update }) => Effect.as(update("half"), "done"))]
      })
      const { fiber, seen } = yield* collect(agent.events)
      yield* finish(agent.prompt("go"))
      yield* finish(agent.prompt("again"))
      assertAccounted(seen, recorder.events)
      assert.lengthOf(seen, recorder.events.length)
      yield* Fiber.interrupt(fiber)
    }).pipe(on(calls([["a", "work", {}]]), fine, fine)))

  it.effect("H3: sliding keeps the newest and counts the others in front", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({})
      const gate = yield* Deferred.make<void>()
      const { fiber, seen } = yield* collect(agent.observe({ capacity: 10 }), () => Deferred.await(gate))
      yield* agent.prompt("go")
      assert.deepStrictEqual(seen.map(({ type }) => type), ["agent_start"])
      yield* Deferred.succeed(gate, undefined)
      yield* TestClock.adjust(0)
      const { events } = recorder
      assert.deepStrictEqual(seen.slice(1), [{ type: "gap", missed: events.length - 11 }, ...events.slice(-10)])
      yield* Fiber.interrupt(fiber)
    }).pipe(on(text("x".repeat(200), { chunks: 200 }))))

  it.effect("H3: dropping keeps the oldest and the end, and counts the others in between", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({})
      const gate = yield* Deferred.make<void>()
      const { fiber, seen } = yield* collect(
        agent.observe({ capacity: 10, strategy: "dropping" }),
        () => Deferred.await(gate)
      )
      yield* agent.prompt("go")
      yield* Deferred.succeed(gate, undefined)
      yield* TestClock.adjust(0)
      const { events } = recorder
      assert.deepStrictEqual(seen, [
        ...events.slice(0, 11),
        { type: "gap", missed: events.length - 12 },
        events.at(-1)!
      ])
      yield* Fiber.interrupt(fiber)
    }).pipe(on(text("x".repeat(200), { chunks: 200 }))))

  /** Numbers that look like chance and are the same every time. */
  const dice = (seed: number) => () => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed / 2147483648
  }

  for (const strategy of strategies) {
    it.effect(`H3 B102: whatever the pace, every event is seen in its place or counted there, and ends arrive (${strategy})`, () =>
      Effect.gen(function*() {
        for (let seed = 1; seed <= 40; seed++) {
          const random = dice(seed)
          const capacity = 1 + Math.floor(random() * 12)
          const pace = random() * 4
          yield* Effect.gen(function*() {
            const { agent, recorder } = yield* watched({})
            const { fiber, seen } = yield* collect(
              agent.observe({ capacity, strategy }),
              () => random() < 0.3 ? Effect.void : Effect.sleep(Math.floor(random() * pace * 10))
            )
            for (const prompt of ["one", "two", "three"]) {
              const run = yield* Effect.forkChild(agent.prompt(prompt))
              yield* TestClock.adjust("1 minute")
              yield* Fiber.join(run)
              assert.strictEqual(seen.at(-1)?.type, "agent_end")
            }
            assertAccounted(seen, recorder.events)
            assert.deepStrictEqual(ofType(seen.filter((event) => event.type !== "gap"), "agent_end").length, 3)
            yield* Fiber.interrupt(fiber)
          }).pipe(
            on(
              ...["a", "b", "c"].map((part) => text(part.repeat(60), { chunks: 60, every: Math.floor(random() * 10) }))
            )
          )
        }
      }))

    it.effect(`H3: the end of the last run arrives, also at one who reads nothing until much later (${strategy})`, () =>
      Effect.gen(function*() {
        const { agent, recorder } = yield* watched({})
        const gate = yield* Deferred.make<void>()
        const { fiber, seen } = yield* collect(agent.observe({ capacity: 5, strategy }), () => Deferred.await(gate))
        for (const prompt of ["one", "two", "three"]) yield* agent.prompt(prompt)
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust(0)
        assertAccounted(seen, recorder.events)
        assert.strictEqual(seen.at(-1), recorder.events.at(-1))
        // What it read first, what the buffer holds, and the end with what was left out before and after it.
        assert.isAtMost(seen.length, 1 + 5 + 3)
        yield* Fiber.interrupt(fiber)
      }).pipe(on(fine, fine, fine)))

    it.effect(`H3 B102: memory is bounded for one who never reads, however many runs there are (${strategy})`, () =>
      Effect.gen(function*() {
        const { agent, recorder } = yield* watched({})
        const gate = yield* Deferred.make<void>()
        const { fiber, seen } = yield* collect(agent.observe({ capacity: 5, strategy }), () => Deferred.await(gate))
        for (let run = 0; run < 50; run++) yield* agent.prompt(`${run}`)
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust(0)
        assertAccounted(seen, recorder.events)
        assert.strictEqual(seen.at(-1), recorder.events.at(-1))
        assert.isAtMost(seen.length, 1 + 5 + 3)
        yield* Fiber.interrupt(fiber)
      }).pipe(on(...Array.from({ length: 50 }, () => fine))))

    it.effect(`H3: the end of a run arrives while the next one works, with what was left out before and after it (${strategy})`, () =>
      Effect.gen(function*() {
        const { agent, recorder } = yield* watched({ gracePeriod: 0 })
        const gate = yield* Deferred.make<void>()
        const { fiber, seen } = yield* collect(agent.observe({ capacity: 3, strategy }), () => Deferred.await(gate))
        yield* agent.prompt("one")
        const end = recorder.events.at(-1)!
        const run = yield* Effect.forkChild(agent.prompt("two"))
        yield* TestClock.adjust("1 minute")
        yield* Deferred.succeed(gate, undefined)
        yield* TestClock.adjust(0)
        assertAccounted(seen, recorder.events)
        assert.include(seen, end)
        assert.deepStrictEqual(
          seen.map(({ type }) => type),
          strategy === "sliding"
            ? ["agent_start", "gap", "agent_end", "gap", ...recorder.events.slice(-3).map(({ type }) => type)]
            : ["agent_start", "turn_start", "message_start", "message_end", "gap", "agent_end", "gap"]
        )
        yield* agent.abort
        yield* Fiber.join(run)
        yield* Fiber.interrupt(fiber)
      }).pipe(on(fine, ScriptedModel.hang({ partial: "x" }))))

    it.effect(`H3: the smallest buffers still count right (${strategy})`, () =>
      Effect.gen(function*() {
        for (const capacity of [1, 2, 0, -5, 1.7, Infinity]) {
          yield* Effect.gen(function*() {
            const { agent, recorder } = yield* watched({})
            const { fiber, seen } = yield* collect(
              agent.observe({ capacity, strategy }),
              () => Effect.sleep("1 second")
            )
            yield* agent.prompt("go")
            yield* TestClock.adjust("1 hour")
            assertAccounted(seen, recorder.events)
            assert.strictEqual(seen.at(-1)?.type, "agent_end", String(capacity))
            if (capacity === Infinity) assert.lengthOf(seen, recorder.events.length)
            yield* Fiber.interrupt(fiber)
          }).pipe(on(text("x".repeat(20), { chunks: 20 })))
        }
      }))
  }

  it.effect("H3: a capacity that is no number is one all the same", () =>
    Effect.gen(function*() {
      for (const strategy of strategies) {
        const { agent, recorder } = yield* watched({})
        const { fiber, seen } = yield* collect(
          agent.observe({ capacity: NaN, strategy }),
          () => Effect.sleep("1 second")
        )
        yield* agent.prompt("go")
        yield* TestClock.adjust("1 hour")
        assertAccounted(seen, recorder.events)
        yield* Fiber.interrupt(fiber)
      }
    }).pipe(on(fine, fine)))

  it.effect("H3 B102: the run does not wait, whatever its observers do", () =>
    Effect.gen(function*() {
      const { agent } = yield* watched({})
      const never = yield* collect(agent.observe({ capacity: 3 }), () => Effect.never)
      const slow = yield* collect(agent.observe({ capacity: 3, strategy: "dropping" }), () => Effect.sleep("1 hour"))
      const failing = yield* collect(agent.events, () => Effect.die(new Error("observer broke")))
      const leaving = yield* collect(Stream.take(agent.events, 3))
      const gone = yield* collect(agent.events, (seen) => seen.length === 3 ? Effect.interrupt : Effect.void)
      const began = yield* Clock.currentTimeMillis
      const run = yield* agent.prompt("go")
      assert.strictEqual(run.outcome._tag, "Completed")
      assert.strictEqual(yield* Clock.currentTimeMillis, began)
      assert.lengthOf(never.seen, 1)
      assert.lengthOf(slow.seen, 1)
      assert.lengthOf(failing.seen, 1)
      yield* Fiber.join(leaving.fiber)
      assert.deepStrictEqual(leaving.seen.map(({ type }) => type), ["agent_start", "turn_start", "message_start"])
      assert.lengthOf(gone.seen, 3)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(failing.fiber)))
      yield* Fiber.interrupt(never.fiber)
      yield* Fiber.interrupt(slow.fiber)
      assert.strictEqual((yield* agent.prompt("again")).outcome._tag, "Completed")
    }).pipe(on(text("x".repeat(500), { chunks: 500 }), fine)))

  it.effect("H3: several observers have a buffer each, also of one stream", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({})
      const stream = agent.observe({ capacity: 5 })
      const eager = yield* collect(stream)
      const slow = yield* collect(stream, () => Effect.sleep(7))
      const dropping = yield* collect(agent.observe({ capacity: 3, strategy: "dropping" }), () => Effect.sleep(11))
      yield* finish(agent.prompt("go"))
      const late = yield* collect(agent.events)
      yield* finish(agent.prompt("again"))
      for (const { seen } of [eager, slow, dropping]) assertAccounted(seen, recorder.events)
      assert.lengthOf(eager.seen, recorder.events.length)
      assert.isBelow(slow.seen.length, recorder.events.length)
      const second = recorder.events.findLastIndex(({ type }) => type === "agent_start")
      assert.deepStrictEqual(late.seen, recorder.events.slice(second))
      for (const { fiber } of [eager, slow, dropping, late]) yield* Fiber.interrupt(fiber)
    }).pipe(on(text("x".repeat(50), { chunks: 50, every: 2 }), fine)))

  it.effect("H3: one who comes in the middle of a run gets what comes from then on", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({})
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(25)
      const before = recorder.events.length
      const { fiber, seen } = yield* collect(agent.events)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(run)
      assert.deepStrictEqual(seen, recorder.events.slice(before))
      yield* Fiber.interrupt(fiber)
    }).pipe(on(text("x".repeat(10), { chunks: 10, every: 10 }))))

  it.effect("H3: one who leaves hears nothing more, and one who only holds the stream never did", () =>
    Effect.gen(function*() {
      const { agent } = yield* watched({})
      const held = agent.events
      const { fiber, seen } = yield* collect(held)
      yield* agent.prompt("go")
      yield* Fiber.interrupt(fiber)
      const heard = seen.length
      yield* agent.prompt("again")
      assert.strictEqual(seen.length, heard)
      const later = yield* collect(held)
      assert.lengthOf(later.seen, 0)
      yield* Fiber.interrupt(later.fiber)
    }).pipe(on(fine, fine)))

  it.effect("H3: a hanging listener before it and an abort keep no end from it", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ gracePeriod: 0 })
      yield* agent.subscribe((event) => event.type === "turn_start" ? Effect.sleep("10 days") : Effect.void)
      const { fiber, seen } = yield* collect(agent.events)
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(100)
      yield* agent.abort
      yield* Fiber.join(run)
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(ofType(seen.filter((event) => event.type !== "gap"), "agent_end").length, 1)
      assert.strictEqual(seen.at(-1)?.type, "agent_end")
      yield* Fiber.interrupt(fiber)
    }).pipe(on()))

  describe("the end of the agent's scope", () => {
    const scoped = Effect.gen(function*() {
      const scope = yield* Scope.make()
      return {
        agent: yield* Scope.provide(Agent.make({ gracePeriod: 0 }), scope),
        close: Scope.close(scope, Exit.void)
      }
    })

    it.effect("H3: ends the stream of one who waits, idle or in a run, after its last event", () =>
      Effect.gen(function*() {
        const { agent, close } = yield* scoped
        const idle = yield* collect(agent.events)
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(100)
        yield* close
        yield* Fiber.join(idle.fiber)
        assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
        assert.strictEqual(idle.seen.at(-1)?.type, "agent_end")
      }).pipe(on(ScriptedModel.hang({ partial: "x" }))))

    for (const strategy of strategies) {
      it.effect(`H3: lets one who is behind read what is there first (${strategy})`, () =>
        Effect.gen(function*() {
          const { agent, close } = yield* scoped
          const recorded: Array<Events.AgentEvent> = []
          yield* agent.subscribe((event) => Effect.sync(() => void recorded.push(event)))
          const { fiber, seen } = yield* collect(
            agent.observe({ capacity: 4, strategy }),
            () => Effect.sleep("1 minute")
          )
          yield* agent.prompt("go")
          yield* close
          assert.isUndefined(fiber.pollUnsafe())
          yield* TestClock.adjust("1 hour")
          yield* Fiber.join(fiber)
          assertAccounted(seen, recorded)
          assert.strictEqual(seen.at(-1)?.type, "agent_end")
        }).pipe(on(fine)))
    }

    for (const place of ["a tool", "a hook", "a listener", "a child run in a tool"] as const) {
      it.effect(`H3 A1: closed from ${place} of its own run, it comes after the run's last event`, () =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const close = Effect.as(Scope.close(scope, Exit.void), "closed")
          const closeIn = (here: typeof place) => here === place ? Effect.asVoid(close) : Effect.void
          const child = Effect.scoped(Effect.flatMap(
            Agent.make({ tools: [tool("leave", () => close)] }),
            (agent) => agent.prompt("go")
          )).pipe(Effect.provide(ScriptedModel.layer([calls([["b", "leave", {}]]), fine])))
          const { agent, recorder } = yield* watched({
            tools: [
              tool("leave", () =>
                Effect.as(
                  Effect.andThen(closeIn("a tool"), place === "a child run in a tool" ? child : Effect.void),
                  "left"
                ))
            ]
          }).pipe(
            Effect.provide(Hooks.layer(Hooks.afterToolCall(() => closeIn("a hook")))),
            Effect.provideService(Scope.Scope, scope)
          )
          yield* agent.subscribe((event) => event.type === "tool_execution_end" ? closeIn("a listener") : undefined)
          const { fiber, seen } = yield* collect(agent.events)
          const run = yield* finish(agent.prompt("go"))
          assert.strictEqual(run.outcome._tag, "Aborted")
          yield* Fiber.join(fiber)
          assert.deepStrictEqual(seen, recorder.events)
          assert.strictEqual(seen.at(-1)?.type, "agent_end")
        }).pipe(on(calls([["a", "leave", {}]]), fine)))
    }

    it.effect("H3: a stream that is run afterwards ends at once", () =>
      Effect.gen(function*() {
        const { agent, close } = yield* scoped
        yield* close
        const { fiber, seen } = yield* collect(agent.events)
        yield* TestClock.adjust("1 hour")
        assert.isDefined(fiber.pollUnsafe())
        assert.lengthOf(seen, 0)
      }).pipe(on()))
  })
})
