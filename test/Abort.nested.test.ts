import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Loop, Messages, StreamFn } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { Recorder, show } from "./utils/events.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { ended, timed } from "./utils/journey.ts"
import { finish, stage, watched } from "./utils/play.ts"
import { abortAfter, scene, shape, type World } from "./utils/scene.ts"
import { quick, slow, tool } from "./utils/timedTools.ts"

const { calls, hang, text } = ScriptedModel

/** An agent with a script of its own. */
const withScript = (options: Agent.Options, responses: ReadonlyArray<ScriptedModel.Response>) =>
  Effect.gen(function*() {
    const { stream } = yield* ScriptedModel.make(responses)
    const recorder = new Recorder()
    const agent = yield* Agent.make(options).pipe(Effect.provideService(StreamFn.StreamFn, { stream }))
    yield* agent.subscribe(recorder.record)
    return { agent, recorder }
  })

describe("Abort across agents and fibers", () => {
  describe("an agent inside a tool of another", () => {
    it.effect("A1: aborting the parent aborts the child and seals its transcript (B109)", () =>
      Effect.gen(function*() {
        const child = yield* withScript({ tools: [slow("slow", 10_000)] }, [calls([["y", "slow", {}]])])
        const ask = tool("ask", () => Effect.as(child.agent.prompt("child"), "done"))
        const parent = yield* withScript({ tools: [ask] }, [calls([["x", "ask", {}]])])
        const run = yield* Effect.forkChild(parent.agent.prompt("parent"))
        yield* TestClock.adjust(100)
        yield* parent.agent.abort
        assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
        assert.strictEqual(Transcript.print(yield* parent.agent.messages), "U A[x] R(x!)")
        assert.strictEqual(Transcript.print(yield* child.agent.messages), "U A[y] R(y!)")
        assert.strictEqual(child.recorder.timeOf("agent_end Aborted"), 100)
        for (const { recorder } of [child, parent]) assertInvariants({ events: recorder.events })
      }).pipe(Effect.scoped))

    it.effect("A1, A4: a child that code left behind by the parent begins ends at once, within its grace period", () =>
      Effect.gen(function*() {
        const child = yield* withScript({}, [text("never")])
        yield* child.agent.subscribe((event) => event.type === "agent_end" ? Effect.sleep("10 days") : undefined)
        const outcomes: Array<string> = []
        const late = Effect.uninterruptible(Effect.andThen(
          Effect.sleep(500),
          Effect.map(child.agent.prompt("child"), ({ outcome }) => {
            outcomes.push(outcome._tag)
            return "late"
          })
        ))
        const parent = yield* withScript({ tools: [tool("late", () => late)], gracePeriod: 0 }, [
          calls([["x", "late", {}]])
        ])
        const run = yield* Effect.forkChild(parent.agent.prompt("parent"))
        yield* TestClock.adjust(100)
        yield* parent.agent.abort
        assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
        yield* TestClock.adjust(1399)
        assert.deepStrictEqual(outcomes, [])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(outcomes, ["Aborted"])
        assert.isFalse((yield* child.agent.state).isStreaming)
        assertInvariants({ events: child.recorder.events })
      }).pipe(Effect.scoped))

    it.effect("A1, A3: a child that the parent's tool shields from the abort goes on to the end of its call (B109)", () =>
      Effect.gen(function*() {
        const deaf = tool("deaf", () => Effect.uninterruptible(Effect.as(Effect.sleep(300), "done")))
        const child = yield* withScript({ tools: [deaf] }, [calls([["y", "deaf", {}]]), text("never")])
        const outcomes: Array<string> = []
        const ask = tool("ask", () =>
          Effect.uninterruptible(
            Effect.map(Effect.orDie(child.agent.prompt("child")), ({ outcome }) => {
              outcomes.push(outcome._tag)
              return "done"
            })
          ))
        const parent = yield* withScript({ tools: [ask] }, [calls([["x", "ask", {}]])])
        const run = yield* Effect.forkChild(timed(parent.agent.prompt("parent")))
        yield* TestClock.adjust(100)
        const abort = yield* Effect.forkChild(parent.agent.abort)
        yield* TestClock.adjust(200)
        const [{ outcome }, at] = yield* Fiber.join(run)
        yield* Fiber.join(abort)
        assert.deepStrictEqual([outcome._tag, at, outcomes], ["Aborted", 300, ["Aborted"]])
        assert.strictEqual(Transcript.print(yield* child.agent.messages), "U A[y] R(y!)")
        for (const { recorder } of [child, parent]) assertInvariants({ events: recorder.events })
      }).pipe(Effect.scoped))

    it.effect("A1: an abort of the parent behind its agent_end does not reach a child in a listener", () =>
      Effect.gen(function*() {
        const child = yield* withScript({ tools: [slow("slow", 300)] }, [calls([["y", "slow", {}]]), text("fine")])
        const outcomes: Array<string> = []
        const parent = yield* withScript({}, [text("done")])
        yield* parent.agent.subscribe((event) =>
          event.type === "agent_end"
            ? Effect.map(child.agent.prompt("child"), ({ outcome }) => void outcomes.push(outcome._tag))
            : undefined
        )
        const run = yield* Effect.forkChild(timed(parent.agent.prompt("parent")))
        yield* TestClock.adjust(100)
        const abort = yield* Effect.forkChild(parent.agent.abort)
        yield* TestClock.adjust(200)
        const [{ outcome }, at] = yield* Fiber.join(run)
        yield* Fiber.join(abort)
        assert.deepStrictEqual([outcome._tag, at, outcomes], ["Completed", 300, ["Completed"]])
        assert.strictEqual(Transcript.print(yield* child.agent.messages), "U A[y] R(y) A")
      }).pipe(Effect.scoped))

    it.effect("A1: aborting the child from the parent's tool waits; the parent goes on", () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const child = yield* withScript({}, [hang({ partial: "so far" })])
        yield* child.agent.subscribe((event) => event.type === "agent_end" ? Effect.sleep(500) : undefined)
        const ask = tool("ask", () =>
          Effect.gen(function*() {
            const run = yield* Effect.forkChild(child.agent.prompt("child"))
            yield* Effect.sleep(100)
            yield* child.agent.abort
            log.push(`isStreaming: ${(yield* child.agent.state).isStreaming}`)
            yield* child.agent.awaitIdle
            return (yield* Fiber.join(run)).outcome._tag
          }))
        const parent = yield* withScript({ tools: [ask] }, [calls([["x", "ask", {}]]), text("fine")])
        const { messages, outcome } = yield* finish(parent.agent.prompt("parent"))
        assert.strictEqual(outcome._tag, "Completed")
        assert.deepStrictEqual(log, ["isStreaming: false"])
        assert.deepStrictEqual(messages.filter(({ role }) => role === "toolResult").map(Messages.text), ["Aborted"])
      }).pipe(Effect.scoped))

    it.effect("A1: the child's tool that aborts the parent is inside of both runs: it returns at once", () =>
      Effect.gen(function*() {
        const held: { parent?: Agent.AgentService } = {}
        const log: Array<string> = []
        const stop = tool("stop", () =>
          Effect.uninterruptible(
            Effect.gen(function*() {
              log.push((yield* Effect.flip(held.parent!.awaitIdle))._tag)
              yield* held.parent!.abort
              log.push("returned")
            }).pipe(Effect.orDie)
          ).pipe(Effect.andThen(Effect.never)))
        const child = yield* withScript({ tools: [stop] }, [calls([["y", "stop", {}]])])
        const ask = tool("ask", () => Effect.as(child.agent.prompt("child"), "done"))
        const parent = yield* withScript({ tools: [ask] }, [calls([["x", "ask", {}]])])
        held.parent = parent.agent
        const run = yield* Effect.forkChild(timed(parent.agent.prompt("parent")))
        yield* TestClock.adjust("1 minute")
        const [{ outcome }, at] = yield* Fiber.join(run)
        assert.deepStrictEqual([log, outcome._tag, at], [["AgentBusy", "returned"], "Aborted", 0])
        assert.strictEqual(Transcript.print(yield* child.agent.messages), "U A[y] R(y!)")
      }).pipe(Effect.scoped))
  })

  it.effect("A1: an agent that a tool makes is no part of that run: it works behind its abort, and knows its own", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.Scope
      const log: Array<string> = []
      const held: { child?: Agent.AgentService } = {}
      const look = tool("look", () =>
        Effect.as(
          Effect.flatMap(Effect.exit(Effect.timeout(held.child!.awaitIdle, 100)), (exit) =>
            Effect.sync(() => log.push(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "idle"))),
          "looked"
        ))
      const { stream } = yield* ScriptedModel.make([calls([["y", "look", {}]]), text("fine")])
      const make = tool("make", () =>
        Agent.make({ tools: [look] }).pipe(
          Effect.provideService(StreamFn.StreamFn, { stream }),
          Scope.provide(scope),
          Effect.orDie,
          Effect.andThen((child) => {
            held.child = child
            return Effect.never
          })
        ))
      const parent = yield* withScript({ tools: [make] }, [calls([["x", "make", {}]])])
      yield* Effect.forkChild(parent.agent.prompt("parent"))
      yield* TestClock.adjust(100)
      yield* parent.agent.abort
      const { messages, outcome } = yield* finish(held.child!.prompt("child"))
      assert.deepStrictEqual([outcome._tag, Transcript.print(messages)], ["Completed", "U A[y] R(y) A"])
      assert.lengthOf(log, 1)
      assert.include(log[0]!, "AgentBusy")
    }).pipe(Effect.scoped))

  it.effect("A1: a fiber an earlier run has left behind is not inside the next one: awaitIdle waits there", () => {
    const held: { agent?: Agent.AgentService } = {}
    const log: Array<string> = []
    const later = Effect.gen(function*() {
      yield* Effect.sleep(500)
      const exit = yield* Effect.exit(timed(held.agent!.awaitIdle))
      log.push(Exit.isSuccess(exit) ? `idle at ${exit.value[1]}` : "failed")
    })
    return scene({
      responses: [calls([["x", "daemon", {}]]), text("1"), text("2", { after: 1000 })],
      tools: [tool("daemon", () => Effect.as(Effect.forkDetach(later), "started"))]
    }, (world) =>
      Effect.gen(function*() {
        held.agent = world.agent
        yield* world.agent.prompt("one")
        const run = yield* Effect.forkChild(world.agent.prompt("two"))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(run)
        assert.deepStrictEqual(log, ["idle at 1000"])
        assert.strictEqual(yield* shape(world, ["one", "two"]), "U A[x] R(x) A U A")
      }))
  })

  it.effect("A1: a prompt that cannot be interrupted is aborted by agent.abort all the same", () =>
    scene(
      { responses: [calls([["x", "slow", {}]])], tools: [slow("slow", 10_000)] },
      (world) =>
        Effect.gen(function*() {
          const { agent } = world
          const run = yield* Effect.forkChild(Effect.uninterruptible(timed(agent.prompt("go"))))
          yield* TestClock.adjust(100)
          yield* agent.abort
          const [{ outcome }, at] = yield* Fiber.join(run)
          assert.deepStrictEqual([outcome._tag, at], ["Aborted", 100])
          assert.strictEqual(yield* shape(world), "U A[x] R(x!)")
        })
    ))

  it.effect("A1: a tool that closes the agent's scope ends the run, at the latest when the grace is over", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const close = tool("close", () => Effect.as(Scope.close(scope, Exit.void), "closed"))
      const world = yield* watched({ tools: [close] }).pipe(Scope.provide(scope))
      const run = yield* Effect.forkChild(world.agent.prompt("go"))
      yield* TestClock.adjust(1000)
      assert.isTrue(ended(run))
      assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
      assert.strictEqual(yield* shape(world), "U A[x] R(x!)")
    }).pipe(Effect.provide(stage({ responses: [calls([["x", "close", {}]]), text("never")] }))))

  describe("those who interrupt themselves", () => {
    it.effect("T4: a tool is answered with an error; the run goes on", () =>
      scene({
        responses: [calls([["x", "self", {}], ["y", "quick", {}]]), text("fine")],
        tools: [tool("self", () => Effect.interrupt), quick("quick")]
      }, (world) =>
        Effect.gen(function*() {
          const { outcome } = yield* finish(world.agent.prompt("go"))
          assert.strictEqual(outcome._tag, "Completed")
          assert.strictEqual(yield* shape(world), "U A[x,y] R(x!) R(y) A")
        })))

    it.effect("M5: a stream fails the run, it does not abort it", () =>
      scene({ responses: [() => Effect.interrupt] }, (world) =>
        Effect.gen(function*() {
          const { outcome } = yield* finish(world.agent.prompt("go"))
          // Its message may be `aborted`: nobody asked for that.
          assert.strictEqual(outcome._tag, "Failed")
          assert.match(yield* shape(world), /^U A\{(error|aborted)\}$/)
        })))

    const hooks: Record<string, Hooks.Hook> = {
      "transformContext": Hooks.transformContext(() => Effect.interrupt),
      "apiKey": Hooks.apiKey(() => Effect.interrupt),
      "prepareRequest": Hooks.prepareRequest(() => Effect.interrupt)
    }
    for (const [name, hook] of Object.entries(hooks)) {
      it.effect(`H5: ${name} fails the run, it does not abort it`, () =>
        scene({ responses: [], hooks: [hook] }, (world) =>
          Effect.gen(function*() {
            const { outcome } = yield* finish(world.agent.prompt("go"))
            assert.strictEqual(outcome._tag, "Failed")
            assert.strictEqual(yield* shape(world), "U A{error}")
          })))
    }

    it.effect("H3: a listener costs nothing", () =>
      scene({ responses: [text("fine")] }, (world) =>
        Effect.gen(function*() {
          yield* world.agent.subscribe(() => Effect.interrupt)
          const { outcome } = yield* finish(world.agent.prompt("go"))
          assert.strictEqual(outcome._tag, "Completed")
          assert.strictEqual(yield* shape(world), "U A")
        })))
  })

  describe("what the run had taken", () => {
    it.effect("Q3: of a batch that is partly told the rest goes back, before what came later", () =>
      scene({
        responses: [text("1"), text("2")],
        options: { steeringMode: "all", gracePeriod: 0 }
      }, (world) =>
        Effect.gen(function*() {
          const { agent } = world
          for (const steer of ["S1", "S2", "S3"]) yield* agent.steer(steer)
          let busy = true
          yield* agent.subscribe((event) =>
            busy && event.type === "message_start" && Messages.text(event.message) === "S2"
              ? Effect.sleep("1 day")
              : undefined
          )
          const run = yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust(100)
          yield* agent.steer("S4")
          yield* agent.abort
          yield* Fiber.join(run)
          assert.strictEqual(yield* shape(world, ["go", "S1", "S2", "S3", "S4"]), "U U U A{aborted}")
          assert.deepStrictEqual((yield* agent.peek).map(Messages.text), ["S3", "S4"])
          busy = false
          yield* finish(agent.prompt("again"))
          const users = (yield* agent.messages).filter(({ role }) => role === "user").map(Messages.text)
          assert.deepStrictEqual(users, ["go", "S1", "S2", "again", "S3", "S4"])
        })))

    for (const at of ["agent_start", "turn_start", "message_start", "message_end"] as const) {
      it.effect(`Q3, Q4: a batch that continue took is in the transcript or back in its queue, after ${at}`, () =>
        scene({
          responses: [text("1"), text("2")],
          options: {
            steeringMode: "all",
            gracePeriod: 0,
            messages: [Messages.user("before"), Messages.assistant("hm")]
          }
        }, (world) =>
          Effect.gen(function*() {
            const { agent } = world
            for (const steer of ["S1", "S2"]) yield* agent.steer(steer)
            let busy = true
            yield* agent.subscribe((event) => busy && event.type === at ? Effect.sleep("1 day") : undefined)
            const run = yield* Effect.forkChild(agent.continue)
            yield* TestClock.adjust(100)
            yield* agent.abort
            assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
            yield* shape(world, ["S1", "S2"])
            busy = false
            yield* finish(agent.prompt("again"))
            yield* shape(world, ["S1", "S2", "again"])
            assert.isEmpty(yield* agent.peek)
          })))

      it.effect(`Q4, I1: open calls that continue answers are all answered when it is aborted after ${at}`, () => {
        const call = (id: string): Messages.ToolCall => ({ type: "toolCall", id, name: "a", arguments: {} })
        const messages = [Messages.user("before"), Messages.assistant([call("x"), call("y")])]
        return scene(
          { responses: [text("fine")], options: { gracePeriod: 0, messages } },
          ({ agent, recorder }) =>
            Effect.gen(function*() {
              yield* agent.subscribe((event) => event.type === at ? Effect.sleep("1 day") : undefined)
              const run = yield* Effect.forkChild(agent.continue)
              yield* TestClock.adjust(100)
              yield* agent.abort
              assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
              assert.strictEqual(Transcript.print(yield* agent.messages), "U A[x,y] R(x!) R(y!) A{aborted}")
              assert.strictEqual(recorder.shown.at(-1), "agent_end Aborted")
            })
        )
      })
    }

    it.effect("L1: prompts are recorded, all of them, when the abort comes during agent_start", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const fiber = yield* Effect.forkChild(
          Loop.run(["1", "2", "3"].map((text) => Messages.user(text)), { messages: [], tools: [quick("a")] }, {
            emit: (event) =>
              Effect.andThen(recorder.record(event), event.type === "agent_start" ? Effect.sleep(500) : Effect.void)
          })
        )
        yield* TestClock.adjust(100)
        const interrupt = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
        yield* TestClock.adjust(400)
        yield* Fiber.join(interrupt)
        assert.deepStrictEqual(recorder.outline, [
          "agent_start",
          "turn_start",
          "S",
          "U",
          "U",
          "U",
          "A{aborted}",
          "turn_end A{aborted}",
          "agent_end Aborted"
        ])
        assertInvariants({ events: recorder.events })
      }).pipe(Effect.provide(stage({ responses: [] }))))
  })

  describe("a further run that a listener of agent_end caused", () => {
    /** Queues one follow-up at the first agent_end. */
    const followUpOnce = ({ agent }: World, also: Effect.Effect<void> = Effect.void) =>
      Effect.suspend(() => {
        let queued = false
        return agent.subscribe((event) => {
          if (queued || event.type !== "agent_end") return
          queued = true
          return Effect.andThen(agent.followUp("F"), also)
        })
      })

    it.effect("Q5, A1: is aborted like any other; the result has the last outcome and all messages", () =>
      scene({ responses: [text("1"), hang({ partial: "so far" }), text("2")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          yield* followUpOnce(world)
          const { at, result } = yield* abortAfter(world, 100)
          assert.deepStrictEqual([result.outcome._tag, at], ["Aborted", 100])
          assert.strictEqual(Transcript.print(result.messages), "U A U A{aborted}")
          assert.deepStrictEqual(recorder.shown.filter((event) => event.startsWith("agent_")), [
            "agent_start",
            "agent_end Completed",
            "agent_start",
            "agent_end Aborted"
          ])
          assert.isFalse((yield* agent.state).isStreaming)
          assert.strictEqual(yield* shape(world, ["go", "F"]), "U A U A{aborted}")
          yield* finish(agent.prompt("again"))
          assert.strictEqual(yield* shape(world, ["go", "F", "again"]), "U A U A{aborted} U A")
        })))

    it.effect("Q5, A1: ends before the interruption of prompt goes on", () =>
      scene({ responses: [text("1"), hang({ partial: "so far" })] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          yield* followUpOnce(world)
          const run = yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust(100)
          yield* Fiber.interrupt(run)
          assert.strictEqual(recorder.timeOf("agent_end Aborted"), 100)
          assert.isFalse((yield* agent.state).isStreaming)
          assert.strictEqual(yield* shape(world, ["go", "F"]), "U A U A{aborted}")
        })))

    it.effect("Q5, I4: an abort at the first agent_end loses nothing and leaves whole runs", () =>
      scene({ responses: [text("1"), text("2")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          yield* followUpOnce(world, agent.abort)
          yield* finish(agent.prompt("go"))
          assert.include(recorder.shown, "agent_end Completed")
          assert.isFalse((yield* agent.state).isStreaming)
          yield* shape(world, ["go", "F"])
        })))

    it.effect("Q5, I4: an interruption of prompt between the runs loses nothing and leaves whole runs", () =>
      scene({ responses: [text("1"), text("2")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          yield* followUpOnce(world, Effect.sleep(500))
          const run = yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust(100)
          const interrupt = yield* Effect.forkChild(Fiber.interrupt(run), { startImmediately: true })
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(interrupt)
          assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(run)))
          assert.include(recorder.shown, "agent_end Completed")
          assert.isFalse((yield* agent.state).isStreaming)
          yield* shape(world, ["go", "F"])
        })))
  })

  it.effect("A3: no event of the stream is delivered any more, though they have all arrived", () =>
    scene({ responses: [text("many words, all at once", { chunks: 20 })] }, (world) =>
      Effect.gen(function*() {
        const { agent, recorder } = world
        let updates = 0
        yield* agent.subscribe((event) => event.type === "message_update" && ++updates === 3 ? agent.abort : undefined)
        const { outcome } = yield* finish(agent.prompt("go"))
        assert.deepStrictEqual([outcome._tag, updates], ["Aborted", 3])
        assert.strictEqual(recorder.shown.filter((event) => event.startsWith("message_update")).length, 3)
        assert.strictEqual(yield* shape(world), "U A{aborted}")
      })))

  it.effect("A3: nor when the abort comes from outside, in the middle of their delivery", () =>
    Effect.gen(function*() {
      const { stream } = yield* ScriptedModel.make([text("many words, all at once", { chunks: 20 })])
      const agent = yield* Agent.make({}).pipe(Effect.provideService(StreamFn.StreamFn, { stream }))
      const seen: Array<string> = []
      // As a user interface does; nobody else listens, and nothing has to be waited for.
      yield* agent.subscribe((event) => {
        seen.push(show(event))
        if (seen.length === 8) Effect.runFork(agent.abort)
      })
      const { messages, outcome } = yield* finish(agent.prompt("go"))
      assert.strictEqual(outcome._tag, "Aborted")
      assert.deepStrictEqual(seen.slice(7), [
        "message_update text_delta 0",
        "message_end A{aborted}",
        "turn_end A{aborted}",
        "agent_end Aborted"
      ])
      assert.strictEqual(Transcript.print(messages), "U A{aborted}")
    }).pipe(Effect.scoped))

  it.effect("A1: an abort at the very instant a run would end leaves a whole run, of one kind or the other", () =>
    scene({ responses: [text("fine", { after: 100 })] }, (world) =>
      Effect.gen(function*() {
        const { result } = yield* abortAfter(world, 100)
        assert.include(["Completed", "Aborted"], result.outcome._tag)
        assert.strictEqual(world.recorder.shown.at(-1), `agent_end ${result.outcome._tag}`)
        yield* shape(world)
      })))
})
