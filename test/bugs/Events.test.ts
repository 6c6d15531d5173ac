/** Section F of the public faults: listeners that fail, ask back or are slow, hooks that fail or hang, ends that are missing. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, type Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, ConvertToLlm, Errors, type Events, Hooks, Messages } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { logged } from "../utils/agents.ts"
import { ofType, Recorder } from "../utils/events.ts"
import { assertInvariants } from "../utils/invariants.ts"
import { finish, watched } from "../utils/play.ts"
import { echo, tool } from "../utils/sampleTools.ts"
import { play, withStage } from "./scene.ts"

const { calls, events, text } = ScriptedModel

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

/** A tool with progress, so that a run has events of every type. */
const working = tool("work", ({ update }) => Effect.as(update("half"), "done"))

const responses = [calls([["a", "work", {}], ["b", "work", {}]], { chunks: 2 }), fine]

const ways: ReadonlyArray<[string, () => Effect.Effect<unknown, unknown>]> = [
  ["throws", () => {
    throw new Error("listener broke")
  }],
  ["fails", () => Effect.fail("listener broke")],
  ["fails later", () => Effect.andThen(Effect.sleep(5), Effect.fail("listener broke"))],
  ["dies", () => Effect.die(new Error("listener broke"))],
  ["rejects", () => Effect.promise(() => Promise.reject(new Error("listener broke")))],
  ["interrupts itself", () => Effect.interrupt]
]

/** One call after the other: a slow listener changes no order then. */
const options = { toolExecution: "sequential" } as const

/** The run that every listener here looks at. */
const reference = Effect.map(play({ responses, tools: [working], options }), ({ recorder }) => recorder.shown)

/** The same run with a listener in front of the one that records. */
const listenedTo = (listener: Agent.Listener<unknown>) =>
  logged(
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [working], ...options })
      const before = yield* agent.messages
      const first = new Recorder()
      const last = new Recorder()
      yield* agent.subscribe(first.record)
      yield* agent.subscribe(listener)
      yield* agent.subscribe(last.record)
      const run = yield* finish(agent.prompt("go"))
      const transcript = yield* agent.messages
      for (const { events } of [first, last]) assertInvariants({ events, before, transcript, accepted: ["go"] })
      assert.deepStrictEqual(first.shown, last.shown)
      yield* ScriptedModel.assertComplete
      return { run, shown: last.shown }
    }).pipe(withStage({ responses }))
  )

describe("Listeners", () => {
  for (const [how, fail] of ways) {
    it.effect(`B97: a listener that ${how} once, on any event, costs nothing; the log says so`, () =>
      Effect.gen(function*() {
        const expected = yield* reference
        for (const type of types) {
          let failed = false
          const [{ run, shown }, logs] = yield* listenedTo((event) => {
            if (failed || event.type !== type) return
            failed = true
            return fail()
          })
          assert.isTrue(failed, type)
          assert.deepStrictEqual([run.outcome._tag, shown], ["Completed", expected], type)
          const told = logs.filter((entry) => entry.includes("listener broke"))
          assert.lengthOf(told, how === "interrupts itself" ? 0 : 1, type)
        }
      }))

    it.effect(`B98: a listener that always ${how} costs nothing, prompt after prompt`, () =>
      Effect.gen(function*() {
        const expected = yield* reference
        let asked = 0
        const [{ run, shown }, logs] = yield* listenedTo(() => {
          asked++
          return fail()
        })
        assert.deepStrictEqual([run.outcome._tag, shown, asked], ["Completed", expected, expected.length])
        const told = logs.filter((entry) => entry.includes("listener broke"))
        assert.lengthOf(told, how === "interrupts itself" ? 0 : asked)
      }))

    it.effect(`B98: a listener that always ${how} keeps neither an abort nor a failure from ending a run`, () =>
      Effect.gen(function*() {
        const { agent, before, recorder } = yield* watched({ tools: [working] })
        yield* agent.subscribe(() => fail())
        const fiber = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(100)
        yield* finish(agent.abort)
        assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Aborted")
        assert.strictEqual((yield* finish(agent.prompt("again"))).outcome._tag, "Failed")
        assert.lengthOf(ofType(recorder.events, "agent_end"), 2)
        assertInvariants({
          events: recorder.events,
          before,
          transcript: yield* agent.messages,
          accepted: ["go", "again"]
        })
      }).pipe(logged, withStage({ responses: [ScriptedModel.hang({ partial: "x" }), ScriptedModel.error("no")] })))
  }

  // --- B100 ---

  const requests: ReadonlyArray<
    [name: string, ask: (agent: Agent.AgentService) => Effect.Effect<unknown, { readonly _tag: string }>]
  > = [
    ["prompt", (agent) => agent.prompt("again")],
    ["prompt, to steer", (agent) => agent.prompt("again", { whileRunning: "steer" })],
    ["prompt, to follow up", (agent) => agent.prompt("again", { whileRunning: "followUp" })],
    ["continue", (agent) => agent.continue],
    ["awaitIdle", (agent) => agent.awaitIdle],
    ["a stream of a prompt", (agent) => Stream.runDrain(Agent.stream(agent, "again"))],
    [
      "a prompt in a fiber of its own",
      (agent) => Effect.flatMap(Effect.forkDetach(agent.prompt("again")), (fiber) => Fiber.join(fiber))
    ]
  ]
  for (const [name, ask] of requests) {
    it.effect(`B100 (H1, A1): ${name} from a listener of any event is AgentBusy at once; nothing waits for itself`, () =>
      Effect.gen(function*() {
        const expected = yield* reference
        for (const type of types) {
          const answers: Array<string> = []
          yield* Effect.gen(function*() {
            const { agent, recorder } = yield* watched({ tools: [working], ...options })
            yield* agent.subscribe((event) =>
              event.type === type
                ? Effect.match(ask(agent), {
                  onFailure: (error) => void answers.push(error._tag),
                  onSuccess: () => void answers.push("done")
                })
                : Effect.void
            )
            const began = yield* Clock.currentTimeMillis
            const run = yield* agent.prompt("go")
            assert.strictEqual(yield* Clock.currentTimeMillis, began)
            assert.strictEqual(run.outcome._tag, "Completed")
            assert.deepStrictEqual(recorder.shown, expected)
            assert.deepStrictEqual(new Set(answers), new Set(["AgentBusy"]), type)
            assert.isFalse((yield* agent.state).isStreaming)
          }).pipe(withStage({ responses }))
        }
      }))
  }

  it.effect("B100 (Q5): what a listener of agent_end queues runs before the agent is idle, once", () =>
    Effect.gen(function*() {
      const { agent, before, recorder } = yield* watched({})
      let asked = false
      yield* agent.subscribe((event) => {
        if (event.type !== "agent_end" || asked) return
        asked = true
        return agent.followUp("again")
      })
      const run = yield* finish(agent.prompt("go"))
      assert.strictEqual(Transcript.print(run.messages), "U A U A")
      assertInvariants({
        events: recorder.events,
        before,
        transcript: yield* agent.messages,
        accepted: ["go", "again"]
      })
      yield* ScriptedModel.assertComplete
    }).pipe(withStage({ responses: [fine, fine] })))

  // --- B102 ---

  const deltas = 10_000
  const long = text("x".repeat(deltas), { chunks: deltas })

  for (const strategy of ["sliding", "dropping"] as const) {
    it.effect(`B102: an observer that takes a second an event does not slow 10 000 deltas; it gets no more than fits, and how much it missed (${strategy})`, () =>
      Effect.gen(function*() {
        const capacity = 100
        const { agent, recorder } = yield* watched({})
        const seen: Array<Events.ObservedEvent> = []
        const observing = yield* Effect.forkChild(
          agent.observe({ capacity, strategy }).pipe(
            Stream.runForEach((event) => Effect.andThen(Effect.sync(() => seen.push(event)), Effect.sleep("1 second")))
          )
        )
        yield* Effect.yieldNow
        const began = yield* Clock.currentTimeMillis
        assert.strictEqual((yield* agent.prompt("go")).outcome._tag, "Completed")
        assert.strictEqual(yield* Clock.currentTimeMillis, began, "the run did not wait")
        yield* TestClock.adjust("3 hours")
        const missed = seen.reduce((sum, event) => event.type === "gap" ? sum + event.missed : sum, 0)
        const kept = seen.filter((event) => event.type !== "gap")
        assert.isAtMost(seen.length, 2 * capacity + 2)
        assert.isAtLeast(kept.length, capacity - 2)
        assert.strictEqual(kept.length + missed, recorder.events.length)
        assert.strictEqual(seen.at(-1)?.type, "agent_end")
        yield* Fiber.interrupt(observing)
      }).pipe(withStage({ responses: [long] })))
  }

  it.effect("B102 (H3): a listener is waited for: the run takes as long as it does", () =>
    Effect.gen(function*() {
      const { agent, recorder } = yield* watched({})
      yield* agent.subscribe(() => Effect.sleep("1 second"))
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("24 hours")
      assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Completed")
      assert.strictEqual(recorder.times.at(-1)! - recorder.times[0]!, (recorder.events.length - 1) * 1000)
    }).pipe(withStage({ responses: [text("x".repeat(100), { chunks: 100 })] })))

  // --- B103 ---

  it.effect("B103: state and transcript include what an event tells, for every event of every kind of run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [working], gracePeriod: 0 })
      let checked = 0
      yield* agent.subscribe((event) =>
        Effect.gen(function*() {
          const { errorMessage, isStreaming, messages, pendingToolCalls, streamingMessage } = yield* agent.state
          checked++
          assert.isTrue(isStreaming)
          switch (event.type) {
            case "message_start":
            case "message_update":
              return assert.deepStrictEqual(streamingMessage, event.message)
            case "message_end":
              return assert.deepStrictEqual([messages.at(-1), streamingMessage], [event.message, undefined])
            case "tool_execution_start":
            case "tool_execution_update":
              return assert.isTrue(pendingToolCalls.has(event.toolCallId))
            case "tool_execution_end":
              return assert.isFalse(pendingToolCalls.has(event.toolCallId))
            case "turn_end": {
              const turn = [event.message, ...event.toolResults]
              assert.deepStrictEqual(messages.slice(-turn.length), turn)
              return assert.strictEqual(errorMessage, event.message.errorMessage)
            }
            case "agent_end":
              return assert.deepStrictEqual(messages.slice(-event.messages.length), event.messages)
          }
        }), { required: true })
      const run = yield* finish(agent.prompt("go"))
      assert.strictEqual(run.outcome._tag, "Completed", run.outcome._tag === "Failed" ? run.outcome.error.message : "")
      const failed = yield* finish(agent.prompt("fail"))
      assert(failed.outcome._tag === "Failed" && failed.outcome.error._tag === "ModelError")
      const fiber = yield* Effect.forkChild(agent.prompt("stop"))
      yield* TestClock.adjust(100)
      yield* agent.abort
      assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Aborted")
      assert.isFalse((yield* agent.state).isStreaming)
      assert.isAbove(checked, 40)
    }).pipe(
      withStage({
        responses: [...responses, ScriptedModel.error("no", { partial: "x" }), ScriptedModel.hang({ partial: "x" })]
      })
    ))

  it.effect("B103: prompt and awaitIdle return after the last listener of the last agent_end", () =>
    Effect.gen(function*() {
      const { agent } = yield* watched({})
      const log: Array<string> = []
      let queued = false
      yield* agent.subscribe((event) =>
        event.type === "agent_end"
          ? Effect.gen(function*() {
            if (!queued) yield* agent.followUp("again")
            queued = true
            yield* Effect.sleep("1 minute")
            log.push("listened")
          })
          : Effect.void
      )
      const fiber = yield* Effect.forkChild(Effect.map(agent.prompt("go"), () => log.push("prompt")))
      yield* Effect.yieldNow
      const waiting = yield* Effect.forkChild(Effect.map(agent.awaitIdle, () => log.push("idle")))
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(log.slice(0, 2), ["listened", "listened"])
      assert.deepStrictEqual(log.slice(2).toSorted(), ["idle", "prompt"])
    }).pipe(withStage({ responses: [fine, fine] })))

  // --- B105 ---

  const broken = new Errors.ModelError({ reason: "Network", message: "reset" })
  const erring: ReadonlyArray<[name: string, response: ScriptedModel.Response]> = [
    ["fails before it begins", ScriptedModel.error("no")],
    ["fails in a text", ScriptedModel.error("no", { partial: "x" })],
    ["reports an error", events([{ type: "start" }, { type: "error", errorMessage: "no" }])],
    ["reports an error without start", events([{ type: "error" }])],
    ["ends with aborted", events([{ type: "start" }, { type: "done", stopReason: "aborted" }])],
    ["ends without an end", events([{ type: "start" }])],
    [
      "fails in a call",
      events([{ type: "start" }, { type: "toolcall_start", contentIndex: 0, id: "a", name: "work" }], { error: broken })
    ]
  ]
  for (const [name, response] of erring) {
    for (const [turn, before] of [["first", []], ["second", [responses[0]!]]] as const) {
      it.effect(`B105: a response of the ${turn} turn that ${name}: every start has its end, agent_end is last`, () =>
        Effect.gen(function*() {
          const { recorder, run } = yield* play({ responses: [...before, response], tools: [working] })
          assert.strictEqual(run.outcome._tag, "Failed")
          const types = recorder.events.map(({ type }) => type)
          for (const kind of ["agent", "turn", "message", "tool_execution"] as const) {
            const [starts, ends] = ["start", "end"].map((edge) =>
              types.filter((type) => type === `${kind}_${edge}`).length
            )
            assert.strictEqual(starts, ends, kind)
          }
          assert.deepStrictEqual(recorder.shown.slice(-3), [
            recorder.shown.at(-3)!.replace(/^\S+/, "message_end"),
            recorder.shown.at(-2)!.replace(/^\S+/, "turn_end"),
            "agent_end Failed"
          ])
        }))
    }
  }
})

// --- B104 ---

type Kind = Errors.HookName

const kinds: ReadonlyArray<Kind> = [
  "transformContext",
  "convertToLlm",
  "apiKey",
  "prepareRequest",
  "prepareNextTurn",
  "finishTurn",
  "beforeToolCall",
  "afterToolCall"
]

const ofCalls = (kind: Kind): boolean => kind === "beforeToolCall" || kind === "afterToolCall"

const hooked = (kind: Kind, answer: () => Effect.Effect<never, unknown>): Layer.Layer<never> => {
  switch (kind) {
    case "convertToLlm":
      return ConvertToLlm.layer(answer)
    case "transformContext":
      return Hooks.layer(Hooks.transformContext(answer))
    case "apiKey":
      return Hooks.layer(Hooks.apiKey(answer))
    case "prepareRequest":
      return Hooks.layer(Hooks.prepareRequest(answer))
    case "prepareNextTurn":
      return Hooks.layer(Hooks.prepareNextTurn(answer))
    case "finishTurn":
      return Hooks.layer(Hooks.finishTurn(answer))
    case "beforeToolCall":
      return Hooks.layer(Hooks.beforeToolCall(({ toolCall }) => toolCall.id === "a" ? answer() : undefined))
    case "afterToolCall":
      return Hooks.layer(Hooks.afterToolCall(({ toolCall }) => toolCall.id === "a" ? answer() : undefined))
  }
}

const brokenHooks: ReadonlyArray<[how: string, answer: () => Effect.Effect<never, unknown>, seconds: number]> = [
  ["throws", () => {
    throw new Error("hook broke")
  }, 0],
  ["fails", () => Effect.fail("hook broke"), 0],
  ["dies", () => Effect.die(new Error("hook broke")), 0],
  ["rejects", () => Effect.promise(() => Promise.reject(new Error("hook broke"))), 0],
  ["hangs for an hour", () => Effect.andThen(Effect.sleep("1 hour"), Effect.fail("hook broke")), 60],
  ["hangs for ever", () => Effect.never, 60],
  [
    "hangs and ignores interruption",
    () => Effect.uninterruptible(Effect.andThen(Effect.sleep("1 hour"), Effect.fail("hook broke"))),
    60
  ]
]

describe("Hooks that break (B104)", () => {
  for (const kind of kinds) {
    for (const [how, answer, seconds] of brokenHooks) {
      it.effect(
        `B104: ${kind} that ${how}: ${
          ofCalls(kind) ? "an error result of that call" : "a typed failure that names it"
        } in time, all calls answered, agent_end`,
        () =>
          Effect.gen(function*() {
            const { agent, before, recorder } = yield* watched({ tools: [echo], hookTimeout: "1 minute" })
            const { messages, outcome } = yield* finish(agent.prompt("go"))
            assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
            const word = seconds === 0 ? "hook broke" : "timed out after 60000 ms"
            if (ofCalls(kind)) {
              assert.strictEqual(outcome._tag, "Completed")
              assert.strictEqual(Transcript.print(messages), "U A[a,b] R(a!) R(b) A")
              assert.include(Messages.text(messages[2]!), word)
              assert.strictEqual(recorder.timeOf("tool_execution_end a!"), recorder.times[0]! + seconds * 1000)
            } else {
              assert(outcome._tag === "Failed" && outcome.error._tag === "HookError")
              assert.strictEqual(outcome.error.hook, kind)
              assert.include(outcome.error.message, word)
              assert.strictEqual(recorder.timeOf("message_end A{error}"), recorder.times[0]! + seconds * 1000)
              const calledFirst = kind === "prepareNextTurn" || kind === "finishTurn"
              assert.strictEqual(Transcript.print(messages), calledFirst ? "U A[a,b] R(a) R(b) A{error}" : "U A{error}")
            }
            assert.strictEqual(recorder.shown.at(-1), `agent_end ${outcome._tag}`)
            yield* TestClock.adjust("3 hours")
            assert.strictEqual(recorder.shown.at(-1), `agent_end ${outcome._tag}`)
          }).pipe(
            Effect.provide(hooked(kind, answer)),
            logged,
            withStage({ responses: [calls([["a", "echo", { x: "1" }], ["b", "echo", { x: "2" }]]), fine] })
          )
      )
    }

    it.effect(`B104 (A4): ${kind} that hangs where hooks have no limit ends with an abort, within the grace`, () =>
      Effect.gen(function*() {
        const { agent, before, recorder } = yield* watched({ tools: [echo] })
        const fiber = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust("10 hours")
        yield* finish(agent.abort)
        assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Aborted")
        assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
        assert.isAtMost(recorder.times.at(-1)! - recorder.times[0]!, 10 * 3_600_000 + 1000)
      }).pipe(
        Effect.provide(
          hooked(kind, () => Effect.andThen(Effect.uninterruptible(Effect.sleep("1000 hours")), Effect.never))
        ),
        logged,
        withStage({ responses: [calls([["a", "echo", { x: "1" }], ["b", "echo", { x: "2" }]]), fine] })
      ))
  }
})
