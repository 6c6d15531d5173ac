import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Budget, Errors, type Events, Hooks, Loop, Messages, Queues } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { ofType, Recorder } from "./utils/events.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { finish, stage, watched } from "./utils/play.ts"
import { tool } from "./utils/sampleTools.ts"
import { deaf, slow } from "./utils/timedTools.ts"

const { calls, text } = ScriptedModel

const fine = text("fine")

const types: ReadonlyArray<Events.AgentEventType> = [
  "agent_start",
  "turn_start",
  "message_start",
  "message_update",
  "message_end",
  "tool_execution_start",
  "tool_execution_update",
  "tool_execution_end",
  "turn_end",
  "agent_end"
]

/** Tools with progress, so that a run has events of every type. */
const working = tool("work", ({ update }) => Effect.andThen(update("half"), Effect.as(Effect.sleep(5), "done")))

const responses = [calls([["a", "work", {}], ["b", "work", {}]], { chunks: 2 }), fine]

/** A scope and a scripted model. */
const on = (...responses: ReadonlyArray<ScriptedModel.Response>) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(Effect.scoped(effect), stage({ responses }))

const ways: ReadonlyArray<[how: string, fail: () => Effect.Effect<unknown, unknown>]> = [
  ["throws", () => {
    throw new Error("writer broke")
  }],
  ["fails", () => Effect.fail("writer broke")],
  ["fails later", () => Effect.andThen(Effect.sleep(5), Effect.fail("writer broke"))],
  ["dies", () => Effect.die(new Error("writer broke"))],
  ["rejects", () => Effect.promise(() => Promise.reject(new Error("writer broke")))]
]

const listenerError = (outcome: Errors.RunOutcome): Errors.ListenerError => {
  assert(outcome._tag === "Failed" && outcome.error._tag === "ListenerError", outcome._tag)
  return outcome.error
}

/**
 * Runs with a required listener between two that record; both have to see the same, every event once, and the listener no
 * less than they.
 */
const required = (fail: (event: Events.AgentEvent) => Effect.Effect<unknown, unknown> | void, gracePeriod = 1000) =>
  logged(
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [working], gracePeriod })
      const before = yield* agent.messages
      const first = new Recorder()
      const last = new Recorder()
      const own: Array<Events.AgentEventType> = []
      yield* agent.subscribe(first.record)
      const remove = yield* agent.subscribe((event) => {
        own.push(event.type)
        return fail(event)
      }, { required: true })
      yield* agent.subscribe(last.record)
      const run = yield* finish(agent.prompt("go"))
      const transcript = yield* agent.messages
      const requests = yield* ScriptedModel.requests
      for (const { events } of [first, last]) {
        assertInvariants({ events, before, transcript, requests, accepted: ["go"] })
      }
      assert.deepStrictEqual(first.shown, last.shown)
      assert.deepStrictEqual(own, first.events.map(({ type }) => type))
      assert.deepStrictEqual(ofType(first.events, "agent_end")[0]!.outcome, run.outcome)
      const { shown } = first
      yield* remove
      assert.strictEqual((yield* finish(agent.prompt("again"))).outcome._tag, "Completed")
      return { run, requests, shown, own }
    }).pipe(on(...responses, fine, fine))
  )

describe("Required listeners", () => {
  for (const type of types.filter((type) => type !== "agent_end")) {
    for (const [how, fail] of ways) {
      it.effect(`H3: one that ${how} on ${type} ends the run as Failed, which names the event; every call is answered`, () =>
        Effect.gen(function*() {
          let failed = false
          const [{ requests, run, shown }, logs] = yield* required((event) => {
            if (failed || event.type !== type) return
            failed = true
            return fail()
          })
          const error = listenerError(run.outcome)
          assert.deepStrictEqual([error.event, error.message], [type, "writer broke"])
          // The failure stands in the transcript (H5), the run asks nothing more.
          const last = run.messages.at(-1)
          assert(last?.role === "assistant")
          assert.deepStrictEqual([last.stopReason, last.errorMessage], ["error", "writer broke"])
          assert.isAtMost(requests.length, 1)
          assert.strictEqual(shown.at(-1), "agent_end Failed")
          assert.lengthOf(
            logs.filter((entry) => entry.includes("writer broke")),
            0,
            "it is the outcome's, not the log's"
          )
        }))
    }
  }

  for (const [how, fail] of ways) {
    it.effect(`H3: one that ${how} on agent_end is only logged: the run was over`, () =>
      Effect.gen(function*() {
        const [{ run }, logs] = yield* required((event) => event.type === "agent_end" ? fail() : undefined)
        assert.strictEqual(run.outcome._tag, "Completed")
        assert.lengthOf(logs.filter((entry) => entry.includes("writer broke")), 1)
      }))

    it.effect(`H3: one that always ${how} ends the run once; what it does while the run is closing is logged`, () =>
      Effect.gen(function*() {
        const [{ own, run }, logs] = yield* required(() => fail())
        assert.strictEqual(listenerError(run.outcome).event, "agent_start")
        assert.strictEqual(Transcript.print(run.messages), "U A{error}")
        assert.lengthOf(logs.filter((entry) => entry.includes("writer broke")), own.length - 1)
      }))
  }

  it.effect("H3: one that interrupts itself has failed, too", () =>
    Effect.gen(function*() {
      const [{ run }] = yield* required((event) => event.type === "turn_start" ? Effect.interrupt : undefined)
      assert.strictEqual(listenerError(run.outcome).event, "turn_start")
    }))

  it.effect("H3: the first of two that fail counts, the other is logged, and an abort afterwards changes nothing", () =>
    Effect.gen(function*() {
      const failing = (message: string) => (event: Events.AgentEvent) =>
        event.type === "tool_execution_start" ? Effect.fail(message) : Effect.void
      const [run, logs] = yield* logged(
        Effect.gen(function*() {
          const agent = yield* Agent.make({ tools: [slow("slow", 100)] })
          yield* agent.subscribe(failing("first"), { required: true })
          yield* agent.subscribe(failing("second"), { required: true })
          yield* agent.subscribe((event) => event.type === "turn_end" ? agent.abort : Effect.void)
          return yield* finish(agent.prompt("go"))
        }).pipe(on(calls([["a", "slow", {}]])))
      )
      assert.strictEqual(listenerError(run.outcome).message, "first")
      assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a!) A{error}")
      assert.lengthOf(logs.filter((entry) => entry.includes("second")), 1)
    }))

  it.effect("H3: while an abort ends the run, its failure is only logged", () =>
    Effect.gen(function*() {
      const [, logs] = yield* logged(
        Effect.gen(function*() {
          const { agent, before, recorder } = yield* watched({ tools: [slow("slow", 100)] })
          yield* agent.subscribe(
            (event) => event.type === "tool_execution_end" ? Effect.fail("writer broke") : Effect.void,
            {
              required: true
            }
          )
          const fiber = yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust(50)
          yield* agent.abort
          assert.deepStrictEqual((yield* Fiber.join(fiber)).outcome, Errors.RunOutcome.Aborted())
          assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
        }).pipe(on(calls([["a", "slow", {}]])))
      )
      assert.lengthOf(logs.filter((entry) => entry.includes("writer broke")), 1)
    }))

  it.effect("H3 A2: tools at work are interrupted, those to come do not start, and no hook but finishTurn is asked", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const ended: Array<string> = []
      const noting = (name: string) =>
        tool(name, ({ update }) =>
          Effect.onInterrupt(
            Effect.andThen(name === "b" ? update("half") : Effect.void, Effect.never),
            () => Effect.sync(() => ended.push(name))
          ))
      yield* Effect.gen(function*() {
        const { agent, before, recorder } = yield* watched({
          tools: [noting("a"), noting("b"), noting("c")],
          toolConcurrency: 2
        })
        yield* agent.subscribe(
          (event) => event.type === "tool_execution_update" ? Effect.fail("writer broke") : Effect.void,
          {
            required: true
          }
        )
        const run = yield* finish(agent.prompt("go"))
        assert.strictEqual(listenerError(run.outcome).event, "tool_execution_update")
        assert.strictEqual(Transcript.print(run.messages), "U A[a,b,c] R(a!) R(b!) R(c!) A{error}")
        assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages })
      }).pipe(
        Effect.provide(stage({
          responses: [calls([["a", "a", {}], ["b", "b", {}], ["c", "c", {}]])],
          hooks: [
            Hooks.afterToolCall(() => void asked.push("afterToolCall")),
            Hooks.finishTurn(({ message }) => void asked.push(`finishTurn ${message.stopReason}`))
          ]
        })),
        Effect.scoped
      )
      assert.deepStrictEqual(ended, ["a", "b"])
      assert.deepStrictEqual(asked, ["finishTurn toolUse", "finishTurn error"])
    }))

  it.effect("H3 A4: a deaf tool is left behind after the grace, as by an abort", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({
        tools: [deaf("deaf", 60_000), tool("b", ({ update }) => Effect.as(update("x"), "b"))]
      })
      yield* agent.subscribe(
        (event) => event.type === "tool_execution_update" ? Effect.fail("writer broke") : Effect.void,
        {
          required: true
        }
      )
      const run = yield* finish(agent.prompt("go"))
      assert.strictEqual(listenerError(run.outcome).event, "tool_execution_update")
      assert.include(Messages.text(run.messages[2]!), "outcome is unknown")
      assert.strictEqual(recorder.times.at(-1)! - recorder.times[0]!, 1000)
    }).pipe(logged, on(calls([["a", "deaf", {}], ["b", "b", {}]]))))

  it.effect("H3 Q3: what waits in the queues stays there, and receipts say that the run failed", () =>
    Effect.gen(function*() {
      const { agent } = yield* watched({})
      const receipts: Array<Queues.Receipt> = []
      yield* agent.subscribe((event) =>
        Effect.gen(function*() {
          if (event.type !== "message_update") return
          receipts.push(yield* agent.steer("S"), yield* agent.followUp("F"))
          return yield* Effect.fail("writer broke")
        }), { required: true })
      const run = yield* finish(agent.prompt("go"))
      assert.strictEqual(listenerError(run.outcome).event, "message_update")
      const returned = Queues.Delivery.Returned({ because: "failed" })
      for (const { delivered } of receipts) assert.deepStrictEqual(yield* delivered, returned)
      const { followUps, steering } = yield* agent.queued
      assert.deepStrictEqual([steering, followUps].map((queue) => queue.map(Messages.text)), [["S"], ["F"]])
    }).pipe(on(fine)))

  it.effect("H3: a loop without a host requires nothing of its emit", () =>
    Effect.gen(function*() {
      const [run, logs] = yield* logged(
        finish(
          Loop.run([Messages.user("go")], { messages: [], tools: [] }, { emit: () => Effect.fail("writer broke") })
        ).pipe(on(fine))
      )
      assert.strictEqual(run.outcome._tag, "Completed")
      assert.isAbove(logs.filter((entry) => entry.includes("writer broke")).length, 5)
    }))
})

describe("Listeners that hang", () => {
  /** A listener that hangs once, on the first event of a type, until the test lets it go. */
  const hanging = Effect.fnUntraced(function*(type: Events.AgentEventType) {
    const gate = yield* Deferred.make<void>()
    const seen: Array<Events.AgentEvent> = []
    let hung = false
    return {
      seen,
      free: Effect.andThen(Deferred.succeed(gate, undefined), TestClock.adjust(0)),
      listener: (event: Events.AgentEvent) =>
        Effect.suspend(() => {
          seen.push(event)
          if (hung || event.type !== type) return Effect.void
          hung = true
          return Deferred.await(gate)
        })
    }
  })

  const stops: ReadonlyArray<
    [how: string, stop: (agent: Agent.AgentService, run: Fiber.Fiber<unknown, unknown>) => Effect.Effect<unknown>]
  > = [
    ["agent.abort", (agent) => agent.abort],
    ["interrupting the prompt", (_, run) => Fiber.interrupt(run)]
  ]
  for (const type of types) {
    for (const [how, stop] of stops) {
      for (const gracePeriod of [0, 1000]) {
        it.effect(`H3 A4: one that hangs on ${type} is left behind ${gracePeriod} ms after ${how}; everybody hears the end, it as well when it is free`, () =>
          Effect.gen(function*() {
            const { agent, before, recorder: first } = yield* watched({ tools: [working], gracePeriod })
            const { free, listener, seen } = yield* hanging(type)
            const last = new Recorder()
            yield* agent.subscribe(listener)
            yield* agent.subscribe(last.record)
            const fiber = yield* Effect.forkChild(agent.prompt("go"))
            yield* TestClock.adjust("1 hour")
            assert.isUndefined(fiber.pollUnsafe())
            const stopping = yield* Effect.forkChild(stop(agent, fiber))
            yield* TestClock.adjust(Math.max(0, gracePeriod - 1))
            if (gracePeriod > 0) assert.isUndefined(stopping.pollUnsafe())
            yield* TestClock.adjust(1)
            assert.isDefined(stopping.pollUnsafe())
            const transcript = yield* agent.messages
            for (const { events } of [first, last]) assertInvariants({ events, before, transcript, accepted: ["go"] })
            assert.deepStrictEqual(first.shown, last.shown)
            assert.strictEqual(seen.at(-1)?.type, type)
            yield* free
            assert.deepStrictEqual(seen, first.events)
            assert.isFalse((yield* agent.state).isStreaming)
          }).pipe(on(...responses)))
      }
    }

    it.effect(`H3 A1: closing the agent's scope while one hangs on ${type} waits for the grace, and for no more`, () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const agent = yield* Scope.provide(Agent.make({ tools: [working] }), scope)
        const { free, listener, seen } = yield* hanging(type)
        const last = new Recorder()
        yield* agent.subscribe(listener)
        yield* agent.subscribe(last.record)
        const fiber = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust("1 hour")
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* TestClock.adjust(999)
        assert.isUndefined(closing.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.isDefined(closing.pollUnsafe())
        assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, type === "agent_end" ? "Completed" : "Aborted")
        yield* free
        assert.deepStrictEqual(seen, last.events)
      }).pipe(on(...responses)))
  }

  it.effect("H3: left behind, it does not slow the next run, and hears of both in order", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({ tools: [working], gracePeriod: 0 })
      const { free, listener, seen } = yield* hanging("tool_execution_start")
      yield* agent.subscribe(listener)
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(100)
      yield* agent.abort
      assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Aborted")
      assert.strictEqual((yield* finish(agent.prompt("again"))).outcome._tag, "Completed")
      assert.strictEqual(seen.at(-1)?.type, "tool_execution_start")
      yield* free
      assert.deepStrictEqual(seen, recorder.events)
      assert.strictEqual((yield* finish(agent.prompt("and again"))).outcome._tag, "Completed")
      assert.deepStrictEqual(seen, recorder.events)
    }).pipe(on(...responses, fine)))

  it.effect("H3, A4: left behind at the end of a run and free in the middle of the next one, it ends neither", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({ tools: [slow("slow", 1000)], gracePeriod: 0 })
      const { free, listener, seen } = yield* hanging("agent_end")
      yield* agent.subscribe(listener)
      const first = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(100)
      yield* agent.abort
      assert.strictEqual((yield* Fiber.join(first)).outcome._tag, "Completed")
      const second = yield* Effect.forkChild(agent.prompt("again"))
      yield* TestClock.adjust(100)
      yield* free
      assert.isTrue((yield* agent.state).isStreaming)
      yield* TestClock.adjust(1000)
      const { messages } = yield* Fiber.join(second)
      assert.strictEqual(Transcript.print(messages), "U A[a] R(a) A")
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A U A[a] R(a) A")
      assert.deepStrictEqual(seen, recorder.events)
    }).pipe(on(fine, calls([["a", "slow", {}]]), fine)))

  it.effect("H3: left behind and removed, it hears nothing more", () =>
    Effect.gen(function*() {
      const { agent } = yield* watched({ tools: [working], gracePeriod: 0 })
      const { free, listener, seen } = yield* hanging("turn_start")
      const remove = yield* agent.subscribe(listener)
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(100)
      yield* agent.abort
      yield* Fiber.join(fiber)
      yield* remove
      yield* free
      assert.deepStrictEqual(seen.map(({ type }) => type), ["agent_start", "turn_start"])
    }).pipe(on()))

  it.effect("H3: one behind it that was removed before it was left behind hears nothing more", () =>
    Effect.gen(function*() {
      const { agent } = yield* watched({ tools: [working], gracePeriod: 0 })
      const { free, listener } = yield* hanging("turn_start")
      yield* agent.subscribe(listener)
      const behind = new Recorder()
      const remove = yield* agent.subscribe(behind.record)
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(100)
      yield* remove
      yield* agent.abort
      yield* Fiber.join(fiber)
      yield* free
      assert.deepStrictEqual(behind.events.map(({ type }) => type), ["agent_start"])
    }).pipe(on()))

  it.effect("H3 A4: one that fails when it is free again is logged, required or not", () =>
    Effect.gen(function*() {
      for (const required of [false, true]) {
        const [, logs] = yield* logged(
          Effect.gen(function*() {
            const { agent } = yield* watched({ gracePeriod: 0 })
            const { free, listener } = yield* hanging("turn_start")
            yield* agent.subscribe((event) => Effect.andThen(listener(event), Effect.fail("writer broke")), {
              required
            })
            const fiber = yield* Effect.forkChild(agent.prompt("go"))
            yield* TestClock.adjust(100)
            yield* agent.abort
            const { outcome } = yield* Fiber.join(fiber)
            assert.strictEqual(outcome._tag, required ? "Failed" : "Aborted")
            yield* free
          }).pipe(on())
        )
        assert.isAbove(logs.filter((entry) => entry.includes("writer broke")).length, 0)
      }
    }))

  it.effect("H3: an abort does not cut it in half: within the grace it finishes the event it has", () =>
    Effect.gen(function*() {
      const { agent } = yield* watched({ tools: [working] })
      const log: Array<string> = []
      yield* agent.subscribe(
        (event) =>
          Effect.onExit(
            Effect.andThen(
              Effect.sleep(500),
              Effect.sync(() => log.push(event.type))
            ),
            (exit) =>
              Effect.sync(() => {
                if (Exit.isFailure(exit)) log.push("cut")
              })
          ),
        { required: true }
      )
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(2250)
      yield* Effect.forkChild(agent.abort)
      yield* TestClock.adjust("1 hour")
      const { outcome } = yield* Fiber.join(fiber)
      assert.strictEqual(outcome._tag, "Aborted")
      assert.deepStrictEqual(log.slice(0, 5), [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start"
      ])
      assert.strictEqual(log.at(-1), "agent_end")
      assert.notInclude(log, "cut")
    }).pipe(on(ScriptedModel.hang({ partial: "x" }))))
})

describe("Subscribing and unsubscribing", () => {
  /** What each of some listeners heard, in the order in which they were told. */
  const ear = (heard: Array<string>, name: string) => (event: Events.AgentEvent): Effect.Effect<void> =>
    Effect.sync(() => void heard.push(`${name} ${event.type}`))

  const small = ["agent_start", "turn_start", "message_start", "message_end"]

  it.effect("H3: an event goes to the listeners in the order of subscription, each awaited", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make()
      const heard: Array<string> = []
      for (const name of ["1", "2", "3"]) {
        yield* agent.subscribe((event) => Effect.andThen(Effect.sleep(10), ear(heard, name)(event)))
      }
      yield* finish(agent.prompt("go"))
      assert.deepStrictEqual(
        heard.slice(0, 12),
        small.flatMap((type) => ["1", "2", "3"].map((name) => `${name} ${type}`))
      )
    }).pipe(on(fine)))

  it.effect("H3: one event at a time: listeners never overlap, and hear one order, while tools work in parallel", () =>
    Effect.gen(function*() {
      const names = Array.from({ length: 10 }, (_, index) => `t${index}`)
      const tools = names.map((name, index) =>
        tool(name, ({ update }) =>
          Effect.gen(function*() {
            for (let step = 0; step < 5; step++) {
              yield* update(`${step}`)
              yield* Effect.sleep(1 + (index * 7 + step * 3) % 5)
            }
            return "done"
          }))
      )
      yield* Effect.gen(function*() {
        const { agent, before, recorder } = yield* watched({ tools })
        let busy = 0
        const heard: Array<Events.AgentEvent> = []
        yield* agent.subscribe((event) =>
          Effect.gen(function*() {
            assert.strictEqual(++busy, 1)
            heard.push(event)
            yield* Effect.sleep(heard.length % 4)
            busy--
          }), { required: true })
        const run = yield* finish(agent.prompt("go"))
        assert.strictEqual(run.outcome._tag, "Completed")
        assert.deepStrictEqual(heard, recorder.events)
        assert.lengthOf(ofType(heard, "tool_execution_update"), 50)
        assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages })
      }).pipe(on(calls(names.map((name) => [name, name, {}])), fine))
    }))

  it.effect("T2 T3: calls whose last update is delivered at one instant end in call order", () =>
    Effect.gen(function*() {
      const quick = tool("quick", ({ update }) => Effect.as(update("half"), "done"))
      yield* Effect.gen(function*() {
        const { agent, recorder } = yield* watched({ tools: [quick] })
        let slept = false
        yield* agent.subscribe((event) => {
          if (slept || event.type !== "tool_execution_update") return Effect.void
          slept = true
          return Effect.sleep(5)
        })
        yield* finish(agent.prompt("go"))
        const ends = recorder.shown.filter((line) => line.startsWith("tool_execution_end"))
        assert.deepStrictEqual(ends, ["a", "b", "c"].map((id) => `tool_execution_end ${id}`))
      }).pipe(on(calls([["a", "quick", {}], ["b", "quick", {}], ["c", "quick", {}]]), fine))
    }))

  it.effect("H3: one that removes itself is told nothing more", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make()
      const heard: Array<string> = []
      const self: { remove?: Effect.Effect<void> } = {}
      self.remove = yield* agent.subscribe((event) =>
        Effect.andThen(ear(heard, "self")(event), event.type === "turn_start" ? self.remove! : Effect.void)
      )
      yield* agent.subscribe(ear(heard, "other"))
      yield* agent.prompt("go")
      assert.deepStrictEqual(heard.filter((line) => line.startsWith("self")), ["self agent_start", "self turn_start"])
      assert.deepStrictEqual(heard.slice(0, 6), [
        "self agent_start",
        "other agent_start",
        "self turn_start",
        "other turn_start",
        "other message_start",
        "other message_end"
      ])
    }).pipe(on(fine)))

  it.effect("H3: one that is removed by another does not even hear the event that is being delivered", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make()
      const heard: Array<string> = []
      const later: { remove?: Effect.Effect<void> } = {}
      yield* agent.subscribe((event) => event.type === "turn_start" ? later.remove! : Effect.void)
      later.remove = yield* agent.subscribe(ear(heard, "later"))
      yield* agent.prompt("go")
      assert.deepStrictEqual(heard, ["later agent_start"])
    }).pipe(on(fine)))

  it.effect("H3: one that is added during an event hears the next one first, also when events wait", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [working] })
      const heard: Array<string> = []
      let added = false
      yield* agent.subscribe((event) => {
        if (added || event.type !== "tool_execution_update") return Effect.void
        added = true
        // The other tool's update is emitted meanwhile, before anybody new is there.
        return Effect.andThen(Effect.sleep(1), agent.subscribe(ear(heard, "new")))
      })
      yield* finish(agent.prompt("go"))
      assert.deepStrictEqual(heard.slice(0, 2), ["new tool_execution_end", "new tool_execution_end"])
      assert.strictEqual(heard.at(-1), "new agent_end")
    }).pipe(on(...responses)))

  it.effect("H3: removing twice is removing once; one function subscribed twice is two listeners", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make()
      const heard: Array<string> = []
      const listener = ear(heard, "x")
      const remove = yield* agent.subscribe(listener)
      yield* agent.subscribe(listener)
      yield* agent.prompt("one")
      const both = heard.splice(0).length
      yield* remove
      yield* remove
      yield* agent.prompt("two")
      assert.strictEqual(heard.length * 2, both)
    }).pipe(on(fine, fine)))

  it.effect("H3: tools, hooks and other code may add and remove in the middle of a run", () =>
    Effect.gen(function*() {
      const heard: Array<string> = []
      const host: { agent?: Agent.AgentService } = {}
      const adding = tool("add", () => Effect.as(host.agent!.subscribe(ear(heard, "tool")), "added"))
      yield* Effect.gen(function*() {
        const agent = host.agent = yield* Agent.make({ tools: [adding, slow("slow", 100)] })
        const fiber = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(50)
        const remove = yield* agent.subscribe(ear(heard, "outside"))
        yield* TestClock.adjust(100)
        yield* Fiber.join(fiber)
        yield* remove
        yield* agent.prompt("again")
      }).pipe(on(calls([["a", "add", {}], ["b", "slow", {}]]), fine, fine))
      assert.deepStrictEqual(heard.slice(0, 3), [
        "tool tool_execution_end",
        "tool tool_execution_end",
        "outside tool_execution_end"
      ])
      assert.isBelow(heard.lastIndexOf("outside agent_end"), heard.indexOf("tool agent_start"))
    }))

  it.effect("H3: services a listener asks for are those of the place where it is subscribed", () =>
    Effect.gen(function*() {
      class Sink extends Context.Service<Sink, Array<string>>()("test/Sink") {}
      const sink: Array<string> = []
      const agent = yield* Agent.make()
      yield* agent.subscribe((event) => Sink.use((lines) => Effect.sync(() => lines.push(event.type)))).pipe(
        Effect.provideService(Sink, sink)
      )
      yield* agent.prompt("go")
      assert.deepStrictEqual(sink.slice(0, 4), small)
    }).pipe(on(fine)))

  it.effect("H3, A1, L7: one that a tool subscribes is inside of the runs it hears of, and not of the one it came from", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const look = Effect.gen(function*() {
        const waited = yield* Effect.exit(Effect.timeout(agent.awaitIdle, "1 minute"))
        const error = Exit.isFailure(waited) ? Cause.squash(waited.cause) : undefined
        seen.push([error instanceof Errors.AgentBusy, (yield* Budget.spent)?.turns])
      })
      const listener: Agent.Listener = ({ type }) => type === "turn_end" ? look : undefined
      const watch = tool("watch", () => Effect.as(agent.subscribe(listener), "watching"))
      const agent: Agent.AgentService = yield* Agent.make({ tools: [watch], limits: { turns: 5 } })
      for (const prompt of ["go", "again"]) yield* finish(agent.prompt(prompt))
      assert.deepStrictEqual(seen, [[true, 1], [true, 2], [true, 1]])
    }).pipe(on(calls([["a", "watch", {}]]), fine, fine)))
})
