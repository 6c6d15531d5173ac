import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Messages } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { ofType } from "./utils/events.ts"
import { ended, timed } from "./utils/journey.ts"
import { finish, stage, watched } from "./utils/play.ts"
import { abortAfter, answers, executions, scene, shape } from "./utils/scene.ts"
import { deaf, noting, quick, slow, tool } from "./utils/timedTools.ts"

const { calls, hang, text } = ScriptedModel

describe("Abort", () => {
  describe("agent.abort", () => {
    it.effect("A1: is a no-op when idle, before the first run and behind one", () =>
      scene({ responses: [text("fine")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          yield* agent.abort
          assert.deepStrictEqual(recorder.events, [])
          const { outcome } = yield* finish(agent.prompt("go"))
          yield* agent.abort
          yield* agent.abort
          assert.strictEqual(outcome._tag, "Completed")
          assert.strictEqual(recorder.shown.at(-1), "agent_end Completed")
          assert.strictEqual(yield* shape(world), "U A")
        })))

    it.effect("A1: waits until the run is settled, however often it is called", () =>
      scene(
        { responses: [hang()], options: { gracePeriod: "2 seconds" }, tools: [] },
        (world) =>
          Effect.gen(function*() {
            const { agent, recorder } = world
            yield* agent.subscribe((event) => event.type === "agent_end" ? Effect.sleep(500) : undefined)
            const run = yield* Effect.forkChild(agent.prompt("go"))
            yield* TestClock.adjust(100)
            const first = yield* Effect.forkChild(timed(agent.abort), { startImmediately: true })
            yield* TestClock.adjust(200)
            const second = yield* Effect.forkChild(timed(agent.abort), { startImmediately: true })
            const idle = yield* Effect.forkChild(timed(agent.awaitIdle), { startImmediately: true })
            assert.isTrue((yield* agent.state).isStreaming)
            yield* TestClock.adjust(299)
            assert.deepStrictEqual([ended(first), ended(second), ended(idle), ended(run)], [false, false, false, false])
            yield* TestClock.adjust(1)
            for (const fiber of [first, second, idle]) assert.strictEqual((yield* Fiber.join(fiber))[1], 600)
            assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
            assert.isFalse((yield* agent.state).isStreaming)
            assert.strictEqual(recorder.shown.filter((event) => event.startsWith("agent_end")).length, 1)
            assert.strictEqual(yield* shape(world), "U A{aborted}")
          })
      ))

    it.effect("A1: the next prompt works at once", () =>
      scene({ responses: [hang({ partial: "so far" }), text("fine")] }, (world) =>
        Effect.gen(function*() {
          const { agent } = world
          yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust(100)
          yield* agent.abort
          const { outcome } = yield* agent.prompt("again")
          assert.strictEqual(outcome._tag, "Completed")
          assert.strictEqual(yield* shape(world, ["go", "again"]), "U A{aborted} U A")
        })))

    it.effect("A1: aborts the run that is under way, never the next one", () =>
      scene({ responses: [hang(), text("fine", { after: 1000 })] }, (world) =>
        Effect.gen(function*() {
          const { agent } = world
          yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust(100)
          yield* agent.abort
          yield* agent.abort
          const next = yield* Effect.forkChild(agent.prompt("again"))
          yield* TestClock.adjust(2000)
          assert.strictEqual((yield* Fiber.join(next)).outcome._tag, "Completed")
        })))

    it.effect("A1: a tool that aborts its own run goes on to where it waits", () => {
      const log: Array<string> = []
      const held: { agent?: Agent.AgentService } = {}
      const note = (word: string) => Effect.sync(() => void log.push(word))
      const stopping = Effect.suspend(() => held.agent!.abort).pipe(
        Effect.andThen(note("returned")),
        Effect.andThen(Effect.sleep(1)),
        Effect.andThen(note("waited"))
      )
      return scene({
        responses: [calls([["x", "a", {}]])],
        tools: [tool("a", () => Effect.as(stopping, "never seen"))]
      }, (world) =>
        Effect.gen(function*() {
          held.agent = world.agent
          const { outcome } = yield* finish(world.agent.prompt("go"))
          assert.deepStrictEqual([outcome._tag, log], ["Aborted", ["returned"]])
          assert.strictEqual(yield* shape(world), "U A[x] R(x!)")
        }))
    })

    it.effect("A1: from a fiber that a tool started it returns at once, too; awaitIdle fails there", () => {
      const log: Array<string> = []
      const held: { agent?: Agent.AgentService } = {}
      const inChild = Effect.gen(function*() {
        log.push((yield* Effect.flip(held.agent!.awaitIdle))._tag)
        yield* held.agent!.abort
        log.push("returned")
      }).pipe(Effect.uninterruptible)
      return scene({
        responses: [calls([["x", "a", {}]])],
        tools: [tool("a", () => Effect.forkChild(inChild).pipe(Effect.flatMap(Fiber.join), Effect.as("never seen")))]
      }, (world) =>
        Effect.gen(function*() {
          held.agent = world.agent
          const { outcome } = yield* finish(world.agent.prompt("go"))
          assert.deepStrictEqual(log, ["AgentBusy", "returned"])
          assert.strictEqual(outcome._tag, "Aborted")
          assert.strictEqual(yield* shape(world), "U A[x] R(x!)")
        }))
    })
  })

  describe("behind agent_end", () => {
    it.effect("A1: an abort by a listener of agent_end changes nothing", () =>
      scene({ responses: [text("fine")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          let returned = 0
          yield* agent.subscribe((event) =>
            event.type === "agent_end"
              ? Effect.andThen(agent.abort, Effect.sync(() => void returned++))
              : undefined
          )
          const { outcome } = yield* finish(agent.prompt("go"))
          assert.deepStrictEqual([outcome._tag, returned], ["Completed", 1])
          assert.strictEqual(recorder.shown.at(-1), "agent_end Completed")
          assert.strictEqual(yield* shape(world), "U A")
        })))

    it.effect("A1: an abort while a listener of agent_end is busy changes nothing; the listener finishes", () =>
      scene({ responses: [text("fine")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          const log: Array<string> = []
          yield* agent.subscribe((event) =>
            event.type === "agent_end"
              ? Effect.andThen(Effect.sleep("1 minute"), Effect.sync(() => void log.push("finished")))
              : undefined
          )
          const run = yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust("1 second")
          assert.strictEqual(recorder.shown.at(-1), "agent_end Completed")
          const abort = yield* Effect.forkChild(agent.abort, { startImmediately: true })
          yield* TestClock.adjust("2 minutes")
          yield* Fiber.join(abort)
          assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Completed")
          assert.deepStrictEqual(log, ["finished"])
          assert.strictEqual(yield* shape(world), "U A")
        })))

    it.effect("A1: interrupting prompt there changes no outcome, either; the interruption goes on", () =>
      scene({ responses: [text("fine"), text("more")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          const unsubscribe = yield* agent.subscribe((event) =>
            event.type === "agent_end" ? Effect.sleep("1 minute") : undefined
          )
          const run = yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust("1 second")
          yield* Effect.forkChild(Fiber.interrupt(run), { startImmediately: true })
          yield* TestClock.adjust("2 minutes")
          assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(run)))
          assert.deepStrictEqual(recorder.shown.filter((event) => event.startsWith("agent_end")), [
            "agent_end Completed"
          ])
          yield* unsubscribe
          yield* finish(agent.prompt("again"))
          assert.strictEqual(yield* shape(world, ["go", "again"]), "U A U A")
        })))
  })

  describe("the fiber that waits on prompt", () => {
    const interrupting: Record<string, (agent: Agent.AgentService) => Effect.Effect<unknown, unknown>> = {
      "a timeout": (agent) => Effect.timeout(agent.prompt("go"), 500),
      "a race": (agent) => Effect.race(agent.prompt("go"), Effect.sleep(500)),
      "Effect.interrupt of the whole fiber": (agent) =>
        Effect.gen(function*() {
          const run = yield* Effect.forkChild(agent.prompt("go"))
          yield* Effect.sleep(500)
          yield* Fiber.interrupt(run)
        })
    }
    for (const [name, stop] of Object.entries(interrupting)) {
      it.effect(`A1: ${name} aborts the run and waits for its end`, () =>
        scene(
          { responses: [calls([["x", "a", {}]]), text("never")], tools: [slow("a", 10_000)] },
          (world) =>
            Effect.gen(function*() {
              const { agent, recorder } = world
              const fiber = yield* Effect.forkChild(timed(Effect.exit(stop(agent))))
              yield* TestClock.adjust(500)
              assert.isTrue(ended(fiber))
              assert.strictEqual((yield* Fiber.join(fiber))[1], 500)
              assert.strictEqual(recorder.timeOf("agent_end Aborted"), 500)
              assert.isFalse((yield* agent.state).isStreaming)
              assert.strictEqual(yield* shape(world), "U A[x] R(x!)")
              assert.strictEqual((yield* ScriptedModel.requests).length, 1)
            })
        ))
    }

    it.effect("A1, A4: it waits for the deaf as long as abort does", () =>
      scene(
        { responses: [calls([["x", "a", {}]]), text("fine")], tools: [deaf("a", 60_000)] },
        (world) =>
          Effect.gen(function*() {
            const { agent, recorder } = world
            const run = yield* Effect.forkChild(agent.prompt("go"))
            yield* TestClock.adjust(500)
            const interrupt = yield* Effect.forkChild(timed(Fiber.interrupt(run)), { startImmediately: true })
            yield* TestClock.adjust(2000)
            assert.strictEqual((yield* Fiber.join(interrupt))[1], 1500)
            assert.strictEqual(recorder.timeOf("agent_end Aborted"), 1500)
            assert.strictEqual(yield* shape(world), "U A[x] R(x!)")
          })
      ))

    it.effect("A1: closing the scope of the agent aborts the run; its results are recorded and told first (B18)", () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const world = yield* watched({ tools: [slow("a", 10_000)] }).pipe(Scope.provide(scope))
        const run = yield* Effect.forkChild(world.agent.prompt("go"))
        yield* TestClock.adjust(500)
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual(world.recorder.timeOf("agent_end Aborted"), 500)
        assert.strictEqual(yield* shape(world), "U A[x] R(x!)")
        assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
      }).pipe(Effect.provide(stage({ responses: [calls([["x", "a", {}]]), text("never")] }))))

    it.effect("A1: interrupted before it does anything, it does nothing (B07)", () =>
      scene({ responses: [] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          const run = yield* Effect.forkChild(agent.prompt("go"))
          yield* Fiber.interrupt(run)
          assert.strictEqual((yield* ScriptedModel.requests).length, 0)
          assert.isFalse((yield* agent.state).isStreaming)
          const told = recorder.events.length > 0
          assert.strictEqual(yield* shape(world, told ? ["go"] : []), told ? "U A{aborted}" : "")
        })))

    it.effect("A1: Agent.stream that is ended early aborts the run", () =>
      scene({ responses: [text("so far and further", { chunks: 9, every: 100 })] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          const events = yield* finish(
            Agent.stream(agent, "go").pipe(Stream.takeUntil(({ type }) => type === "message_update"), Stream.runCollect)
          )
          assert.strictEqual(events.at(-1)?.type, "message_update")
          assert.strictEqual(recorder.timeOf("agent_end Aborted"), 0)
          assert.strictEqual(yield* shape(world), "U A{aborted}")
        })))
  })

  describe("while the model answers", () => {
    it.effect("A2: what had arrived is kept, in transcript, result and events alike (B08)", () =>
      scene({ responses: [hang({ partial: "Hello world", chunks: 2, every: 10 })] }, (world) =>
        Effect.gen(function*() {
          const { at, outcome, result } = yield* abortAfter(world, 25)
          assert.deepStrictEqual([outcome, at], ["Aborted", 25])
          const [, message] = result.messages
          assert(message?.role === "assistant")
          assert.deepInclude(message, {
            content: [{ type: "text", text: "Hello world" }],
            stopReason: "aborted",
            errorMessage: "Request was aborted"
          })
          assert.deepStrictEqual((yield* world.agent.messages).at(-1), message)
          assert.strictEqual(ofType(world.recorder.events, "agent_end")[0]?.messages.at(-1), message)
          assert.strictEqual((yield* world.agent.state).errorMessage, "Request was aborted")
          const [request] = yield* ScriptedModel.requests
          assert.deepStrictEqual([request!.outcome, request!.endedAt], ["interrupted", 25])
        })))

    it.effect("A2, M1: what the provider told so far is kept, and the level that was asked for recorded (B08)", () => {
      const usage: Messages.Usage = { ...Messages.emptyUsage, input: 7, totalTokens: 7 }
      return scene({
        responses: [
          ScriptedModel.events([{ type: "start", responseId: "r", usage }, { type: "text_start", contentIndex: 0 }], {
            open: true
          })
        ],
        options: { thinkingLevel: "high", model: { id: "m", provider: "p", api: "i" } }
      }, (world) =>
        Effect.gen(function*() {
          const { result } = yield* abortAfter(world, 10)
          assert.deepInclude(result.messages.at(-1), {
            responseId: "r",
            usage,
            thinkingLevel: "high",
            model: "m",
            provider: "p",
            api: "i",
            stopReason: "aborted"
          })
          assert.strictEqual(result.usage.totalTokens, 7)
          yield* shape(world)
        }))
    })

    it.effect("A2: an empty message is no part of the next request (B09)", () =>
      scene({ responses: [text("never", { after: 100 }), text("ok")] }, (world) =>
        Effect.gen(function*() {
          yield* abortAfter(world, 10)
          yield* finish(world.agent.prompt("again"))
          assert.strictEqual(yield* shape(world, ["go", "again"]), "U A{aborted} U A")
          const requests = yield* ScriptedModel.requests
          assert.deepStrictEqual(requests.map(({ messages }) => Transcript.print(messages)), ["U", "U U"])
        })))

    it.effect("A2: a call whose arguments were on their way is a record, and never runs (B10)", () => {
      const ran: Array<string> = []
      return scene({
        responses: [
          ScriptedModel.events([
            { type: "start" },
            { type: "text_start", contentIndex: 0 },
            { type: "text_delta", contentIndex: 0, delta: "hm" },
            { type: "toolcall_start", contentIndex: 1, id: "x", name: "a" },
            { type: "toolcall_delta", contentIndex: 1, delta: "{\"path\":\"x\",\"conte" }
          ], { open: true }),
          text("fine")
        ],
        tools: [noting("a", ran)]
      }, (world) =>
        Effect.gen(function*() {
          yield* abortAfter(world, 10)
          yield* finish(world.agent.prompt("again"))
          assert.strictEqual(yield* shape(world, ["go", "again"]), "U A[x]{aborted} U A")
          const requests = yield* ScriptedModel.requests
          assert.deepStrictEqual(requests.map(({ messages }) => Transcript.print(messages)), ["U", "U A{aborted} U"])
          assert.deepStrictEqual(Messages.toolCalls((yield* world.agent.messages).at(-3)!)[0]?.arguments, {})
          assert.deepStrictEqual(ran, [])
        }))
    })

    it.effect("A2, M2: a call that did not end shows no arguments, though they may be whole (B10)", () =>
      scene({
        responses: [
          ScriptedModel.events([
            { type: "start" },
            { type: "toolcall_start", contentIndex: 0, id: "x", name: "a" },
            { type: "toolcall_delta", contentIndex: 0, delta: "{\"n\":1}" }
          ], { open: true })
        ]
      }, (world) =>
        Effect.gen(function*() {
          const { result } = yield* abortAfter(world, 10)
          assert.deepStrictEqual(Messages.toolCalls(result.messages.at(-1)!), [
            { type: "toolCall", id: "x", name: "a", arguments: {}, argumentsText: "{\"n\":1}" }
          ])
          yield* shape(world)
        })))

    it.effect("A1: aborts again and again leave nothing behind that hurts (B16)", () =>
      scene(
        { responses: Array.from({ length: 50 }, () => hang({ partial: "so far" })) },
        (world) =>
          Effect.gen(function*() {
            for (let n = 0; n < 50; n++) {
              yield* Effect.forkChild(world.agent.prompt(`go ${n}`))
              yield* TestClock.adjust(10)
              yield* world.agent.abort
            }
            const accepted = Array.from({ length: 50 }, (_, n) => `go ${n}`)
            assert.strictEqual(yield* shape(world, accepted), accepted.map(() => "U A{aborted}").join(" "))
          })
      ))
  })

  describe("while tools run", () => {
    it.effect("A2: sequential: what had not started gets its start and end, and never runs (B01)", () => {
      const ran: Array<string> = []
      return scene({
        responses: [calls([["a", "slow", {}], ["b", "note", {}], ["c", "note", {}]]), text("never")],
        tools: [slow("slow", 50), noting("note", ran)],
        options: { toolExecution: "sequential" }
      }, (world) =>
        Effect.gen(function*() {
          const { at, outcome, result } = yield* abortAfter(world, 20)
          assert.deepStrictEqual([outcome, at], ["Aborted", 20])
          assert.strictEqual(yield* shape(world), "U A[a,b,c] R(a!) R(b!) R(c!)")
          assert.deepStrictEqual(answers(result.messages), Array(3).fill("Operation aborted"))
          assert.deepStrictEqual(executions(world.recorder), [
            "start a",
            "end a!",
            "start b",
            "end b!",
            "start c",
            "end c!"
          ])
          assert.deepStrictEqual(ran, [])
          assert.isUndefined((yield* world.agent.state).errorMessage)
          assert.strictEqual((yield* ScriptedModel.requests).length, 1)
        }))
    })

    it.effect("A2: the run is over: no message is appended and no request made (B02)", () =>
      scene(
        { responses: [calls([["a", "slow", {}]]), text("done")], tools: [slow("slow", 100)] },
        (world) =>
          Effect.gen(function*() {
            const { outcome } = yield* abortAfter(world, 10)
            assert.strictEqual(outcome, "Aborted")
            yield* TestClock.adjust("1 hour")
            assert.strictEqual(yield* shape(world), "U A[a] R(a!)")
            assert.deepStrictEqual(world.recorder.outline.slice(-2), ["turn_end A[a] R(a!)", "agent_end Aborted"])
            assert.strictEqual((yield* ScriptedModel.requests).length, 1)
          })
      ))

    it.effect("A3: by a hook before the tools: no other hook is asked, no tool starts (B03)", () => {
      const ran: Array<string> = []
      const asked: Array<string> = []
      const held: { agent?: Agent.AgentService } = {}
      return scene({
        responses: [calls([["a", "note", {}], ["b", "note", {}]]), text("never")],
        tools: [noting("note", ran)],
        hooks: [Hooks.beforeToolCall(({ toolCall }) => {
          asked.push(toolCall.id)
          return Effect.as(held.agent!.abort, Hooks.allow)
        })]
      }, (world) =>
        Effect.gen(function*() {
          held.agent = world.agent
          const { outcome } = yield* finish(world.agent.prompt("go"))
          assert.strictEqual(outcome._tag, "Aborted")
          assert.strictEqual(yield* shape(world), "U A[a,b] R(a!) R(b!)")
          assert.deepStrictEqual([asked, ran], [["a"], []])
        }))
    })

    it.effect("A2: what such a hook decides then does not count", () => {
      const held: { agent?: Agent.AgentService } = {}
      return scene({
        responses: [calls([["a", "quick", {}], ["b", "quick", {}]]), text("never")],
        tools: [quick("quick")],
        hooks: [
          Hooks.beforeToolCall(() =>
            Effect.as(Effect.uninterruptible(held.agent!.abort), Hooks.block("a reason", { terminate: true }))
          )
        ]
      }, (world) =>
        Effect.gen(function*() {
          held.agent = world.agent
          const { messages } = yield* finish(world.agent.prompt("go"))
          assert.deepStrictEqual(answers(messages), ["Operation aborted", "Operation aborted"])
          assert.strictEqual(yield* shape(world), "U A[a,b] R(a!) R(b!)")
        }))
    })

    it.effect("A2: parallel: finished calls keep their results, the others end in call order", () => {
      const log: Array<string> = []
      const polite = tool(
        "polite",
        ({ toolCall }) => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push(toolCall.id)))
      )
      return scene({
        responses: [calls([["a", "polite", {}], ["b", "quick", {}], ["c", "polite", {}], ["d", "polite", {}]])],
        tools: [polite, quick("quick", "kept")]
      }, (world) =>
        Effect.gen(function*() {
          const { result } = yield* abortAfter(world, 20)
          assert.strictEqual(yield* shape(world), "U A[a,b,c,d] R(a!) R(b) R(c!) R(d!)")
          assert.strictEqual(answers(result.messages)[1], "kept")
          assert.deepStrictEqual(executions(world.recorder).slice(-4), ["end b", "end a!", "end c!", "end d!"])
          assert.deepStrictEqual(log.toSorted(), ["a", "c", "d"])
        }))
    })

    it.effect("A3: with a concurrency limit the calls that wait never start (B69)", () => {
      const ran: Array<string> = []
      const held = tool(
        "held",
        ({ toolCall }) =>
          Effect.andThen(
            Effect.sync(() => ran.push(toolCall.id)),
            Effect.as(Effect.sleep(toolCall.id === "1" ? 10 : 1000), "done")
          )
      )
      const ids = ["1", "2", "3", "4", "5"]
      return scene({
        responses: [calls(ids.map((id) => [id, "held", {}] as const)), text("never")],
        tools: [held],
        options: { toolConcurrency: 2 }
      }, (world) =>
        Effect.gen(function*() {
          yield* abortAfter(world, 100)
          assert.strictEqual(yield* shape(world), "U A[1,2,3,4,5] R(1) R(2!) R(3!) R(4!) R(5!)")
          yield* TestClock.adjust("1 hour")
          assert.deepStrictEqual(ran, ["1", "2", "3"])
        }))
    })

    it.effect("A2: a value that a tool ends with afterwards does not count", () =>
      scene({
        responses: [calls([["a", "late", {}], ["b", "stop", {}]])],
        tools: [deaf("late", 500, "late"), deaf("stop", 500, { content: [], terminate: true })]
      }, (world) =>
        Effect.gen(function*() {
          const { at, result } = yield* abortAfter(world, 100, 1000)
          assert.strictEqual(at, 500)
          assert.deepStrictEqual(answers(result.messages), ["Operation aborted", "Operation aborted"])
          assert.strictEqual(yield* shape(world), "U A[a,b] R(a!) R(b!)")
        })))

    it.effect("A2: a tool whose finalizer fails is answered like the others", () =>
      scene({
        responses: [calls([["a", "broken", {}], ["b", "slow", {}]])],
        tools: [
          tool("broken", () => Effect.onInterrupt(Effect.never, () => Effect.die(new Error("finalizer")))),
          slow("slow", 1000)
        ]
      }, (world) =>
        Effect.gen(function*() {
          const { outcome, result } = yield* abortAfter(world, 100)
          assert.strictEqual(outcome, "Aborted")
          assert.deepStrictEqual(answers(result.messages), ["Operation aborted", "Operation aborted"])
          assert.strictEqual(yield* shape(world), "U A[a,b] R(a!) R(b!)")
        })))

    it.effect("A2: a tool another tool called is interrupted, too", () => {
      const log: Array<string> = []
      const inner = tool(
        "inner",
        () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push("inner")))
      )
      const outer = tool("outer", ({ runToolCall }) => Effect.as(runToolCall({ id: "n", name: "inner" }), "done"))
      return scene(
        { responses: [calls([["a", "outer", {}]])], tools: [outer, inner] },
        (world) =>
          Effect.gen(function*() {
            yield* abortAfter(world, 100)
            assert.deepStrictEqual(log, ["inner"])
            assert.strictEqual(yield* shape(world), "U A[a] R(a!)")
          })
      )
    })

    it.effect("Q3: what is queued stays queued, and the next run delivers it (B23)", () =>
      scene(
        { responses: [calls([["a", "slow", {}]]), text("1"), text("2")], tools: [slow("slow", 100)] },
        (world) =>
          Effect.gen(function*() {
            const { agent, recorder } = world
            yield* agent.subscribe((event) => event.type === "turn_end" ? Effect.sleep(50) : undefined)
            const run = yield* Effect.forkChild(agent.prompt("go"))
            yield* TestClock.adjust(10)
            yield* agent.steer("S")
            yield* agent.followUp("F")
            yield* TestClock.adjust(100)
            assert.strictEqual(recorder.shown.at(-1), "turn_end A[a] R(a)")
            const abort = yield* Effect.forkChild(agent.abort, { startImmediately: true })
            yield* TestClock.adjust(100)
            yield* Fiber.join(abort)
            assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
            assert.deepStrictEqual((yield* agent.peek).map(Messages.text), ["S"])
            assert.strictEqual(yield* shape(world, ["go", "S", "F"]), "U A[a] R(a)")
            yield* finish(agent.continue)
            assert.strictEqual(yield* shape(world, ["go", "S", "F"]), "U A[a] R(a) U A U A")
          })
      ))
  })

  it.effect("A1: run.orFail of an aborted run fails with RunAborted", () =>
    scene({ responses: [hang()] }, (world) =>
      Effect.gen(function*() {
        const { result } = yield* abortAfter(world, 100)
        const exit = yield* Effect.exit(result.orFail)
        assert(Exit.isFailure(exit))
        assert.strictEqual(exit.cause.reasons.find(Cause.isFailReason)?.error._tag, "RunAborted")
        assert.strictEqual(yield* Clock.currentTimeMillis, 100)
      })))
})
