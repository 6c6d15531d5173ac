import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, ConvertToLlm, type Events, Hooks, Messages, StreamFn, Tools } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { Recorder } from "./utils/events.ts"
import { lie, tagOf } from "./utils/hostile.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { leakFree } from "./utils/leaks.ts"
import { echo } from "./utils/sampleTools.ts"

const { calls, text } = ScriptedModel

type Method = readonly [
  name: string,
  call: (agent: Agent.AgentService) => Effect.Effect<unknown, unknown>,
  answer: string
]

/** Everything an agent can be asked, and what it answers inside its own run. */
const methods: ReadonlyArray<Method> = [
  ["prompt", (agent) => agent.prompt("inner"), "AgentBusy"],
  ["prompt with nothing in it", (agent) => agent.prompt(""), "AgentBusy"],
  ["prompt, to steer", (agent) => agent.prompt("inner", { whileRunning: "steer" }), "AgentBusy"],
  ["prompt, to follow up", (agent) => agent.prompt("inner", { whileRunning: "followUp" }), "AgentBusy"],
  ["continue", (agent) => agent.continue, "AgentBusy"],
  ["awaitIdle", (agent) => agent.awaitIdle, "AgentBusy"],
  ["reset", (agent) => agent.reset, "AgentBusy"],
  ["setMessages", (agent) => agent.setMessages([Messages.user("other")]), "AgentBusy"],
  ["appendMessages", (agent) => agent.appendMessages([Messages.user("other")]), "AgentBusy"],
  ["Agent.stream", (agent) => Stream.runDrain(Agent.stream(agent, "inner")), "AgentBusy"],
  ["steer", (agent) => agent.steer("S"), "done"],
  ["steer what is no message", (agent) => agent.steer(lie({})), "InvalidPrompt"],
  ["followUp", (agent) => agent.followUp("F"), "done"],
  ["note", (agent) => agent.note("N"), "done"],
  ["withdraw", (agent) => agent.withdraw("1"), "done"],
  ["steer and withdraw", (agent) => Effect.flatMap(agent.steer("W"), ({ id }) => agent.withdraw(id)), "done"],
  ["peek", (agent) => agent.peek, "done"],
  ["queued", (agent) => agent.queued, "done"],
  ["clearSteering", (agent) => agent.clearSteering, "done"],
  ["clearFollowUps", (agent) => agent.clearFollowUps, "done"],
  ["clearQueues", (agent) => agent.clearQueues, "done"],
  ["setSteeringMode", (agent) => agent.setSteeringMode("all"), "done"],
  ["setFollowUpMode", (agent) => agent.setFollowUpMode("all"), "done"],
  ["setTools", (agent) => agent.setTools([echo]), "done"],
  ["setTools with twins", (agent) => agent.setTools([echo, echo]), "AgentConfigError"],
  ["setModel", (agent) => agent.setModel({ id: "other" }), "done"],
  ["setThinkingLevel", (agent) => agent.setThinkingLevel("high"), "done"],
  ["setToolExecution", (agent) => agent.setToolExecution("sequential"), "done"],
  ["setSessionId", (agent) => agent.setSessionId("s"), "done"],
  ["messages", (agent) => agent.messages, "done"],
  ["state", (agent) => agent.state, "done"],
  ["subscribe", (agent) => agent.subscribe(() => Effect.void), "done"],
  ["subscribe and remove", (agent) => Effect.flatten(agent.subscribe(() => Effect.void)), "done"],
  [
    "events, for a moment",
    (agent) =>
      Effect.flatMap(Effect.forkDetach(Stream.runDrain(agent.events), { startImmediately: true }), Fiber.interrupt),
    "done"
  ],
  ["abort", (agent) => agent.abort, "done"],
  ["abort, twice", (agent) => Effect.andThen(agent.abort, agent.abort), "done"],
  [
    "abort in a fiber of its own",
    (agent) => Effect.flatMap(Effect.forkDetach(agent.abort, { startImmediately: true }), Fiber.join),
    "done"
  ]
]

const events: ReadonlyArray<Events.AgentEventType> = [
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

const places = [
  "a tool",
  "a tool that is being interrupted",
  "a preparation",
  "transformContext",
  "convertToLlm",
  "apiKey",
  "prepareRequest",
  "prepareNextTurn",
  "beforeToolCall",
  "afterToolCall",
  "finishTurn",
  "the model",
  "a required listener of every event",
  ...events.map((type) => `a listener of ${type}` as const)
] as const

type Place = (typeof places)[number]

/** A run that asks its own agent something, once, at one place. */
const askFrom = (place: Place, [name, call, expected]: Method) =>
  Effect.gen(function*() {
    const host: { agent?: Agent.AgentService } = {}
    const answers: Array<string> = []
    /** The first visit asks; the others pass. */
    const visit = (at: Place): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (at !== place || answers.length > 0) return Effect.void
        answers.push("asked")
        // Cannot be cut: what follows an abort shows that it has returned.
        return Effect.uninterruptible(Effect.map(Effect.exit(call(host.agent!)), (exit) => {
          const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
          answers[0] = error === undefined ? "done" : tagOf(error)
        }))
      })
    const work = Tools.make("work", {
      description: "",
      parameters: Schema.Struct({}),
      prepareArguments: (args) => Effect.as(visit("a preparation"), args),
      execute: (_, { update }) =>
        Effect.gen(function*() {
          yield* update("half")
          yield* visit("a tool")
          yield* Effect.sleep(10)
          return "done"
        }).pipe(Effect.onInterrupt(() => visit("a tool that is being interrupted")))
    })
    const hooks = Hooks.layer(
      Hooks.transformContext((messages) => Effect.as(visit("transformContext"), messages)),
      Hooks.apiKey(() => Effect.as(visit("apiKey"), "key")),
      Hooks.prepareRequest(() => visit("prepareRequest")),
      Hooks.prepareNextTurn(() => visit("prepareNextTurn")),
      Hooks.beforeToolCall(() => visit("beforeToolCall")),
      Hooks.afterToolCall(() => visit("afterToolCall")),
      Hooks.finishTurn(() => visit("finishTurn"))
    )
    const conversion = ConvertToLlm.layer((messages) =>
      Effect.as(visit("convertToLlm"), messages.filter(Messages.isMessage))
    )
    const model = yield* ScriptedModel.make([calls([["a", "work", {}], ["b", "work", {}]], { chunks: 2 })], {
      otherwise: text("fine", { chunks: 2 })
    })
    const stream = StreamFn.layer((request) => Stream.unwrap(Effect.as(visit("the model"), model.stream(request))))

    yield* Effect.gen(function*() {
      const agent = host.agent = yield* Agent.make({ tools: [work] })
      const before = yield* agent.messages
      const recorder = new Recorder()
      yield* agent.subscribe(recorder.record)
      yield* agent.subscribe(() => visit("a required listener of every event"), { required: true })
      yield* agent.subscribe((event) => visit(`a listener of ${event.type}`))
      const began = recorder.times.length
      const run = yield* Effect.forkDetach(agent.prompt("go"))
      yield* TestClock.adjust(5)
      if (place === "a tool that is being interrupted") yield* agent.abort
      yield* TestClock.adjust("1 hour")
      const exit = run.pollUnsafe()
      assert.isDefined(exit, `${name} from ${place}: the run has not settled`)
      assert.deepStrictEqual(answers, [expected], `${name} from ${place}`)
      assert(exit !== undefined && Exit.isSuccess(exit))
      const { outcome } = exit.value
      const aborted = name.startsWith("abort") && place !== "a listener of agent_end" ||
        place === "a tool that is being interrupted"
      assert.strictEqual(outcome._tag, aborted ? "Aborted" : "Completed", `${name} from ${place}`)
      assert.isFalse((yield* agent.state).isStreaming)
      // Nothing took a second of grace: nobody waited for itself.
      assert.isBelow(recorder.times.at(-1)! - recorder.times[began]!, 1000)
      const { followUps, steering } = yield* agent.queued
      const queued = [...steering, ...followUps]
      const transcript = yield* agent.messages
      const told = transcript.filter((message) =>
        Messages.text(message) !== "N" ||
        recorder.events.some((event) => event.type === "message_end" && event.message === message)
      )
      assertInvariants({
        events: recorder.events,
        before,
        transcript: told,
        accepted: ["go"],
        requests: yield* model.requests
      })
      // What was accepted is in one place (I4).
      for (const [accepted, word] of [["steer", "S"], ["followUp", "F"], ["note", "N"]]) {
        if (name !== accepted) continue
        const found = [...transcript, ...queued].filter((message) => Messages.text(message) === word)
        assert.lengthOf(found, 1, `${name} from ${place}`)
      }
      assert.notInclude(JSON.stringify(transcript), "inner")
      assert.strictEqual((yield* Effect.forkDetach(agent.awaitIdle).pipe(Effect.flatMap(Fiber.await)))._tag, "Success")
    }).pipe(leakFree, Effect.provide(Layer.mergeAll(hooks, conversion, stream)), logged)
  })

describe("An agent that is asked from inside its own run", () => {
  for (const place of places) {
    it.effect(`H1 A1: from ${place} every method answers at once, typed, and nothing waits for itself`, () =>
      Effect.forEach(methods, (method) => askFrom(place, method), { discard: true }))
  }
})
