import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Layer, Stream } from "effect"
import { ConvertToLlm, type Errors, Hooks, Loop, Messages, Queues, StreamFn } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { Recorder } from "./utils/events.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { finish, loop, stage, watched } from "./utils/play.ts"
import { quick } from "./utils/timedTools.ts"

const { calls, text } = ScriptedModel

class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

const throwing = (): never => {
  throw new Error("broken")
}

/** The three ways in which something fails, and the text that is reported of each. */
const ways = {
  "fails": () => Effect.fail(new Broken({ message: "broken" })),
  "dies": () => Effect.die(new Error("broken")),
  "throws": throwing
}

/** Fails on the given call, counted from 0. */
const onCall = (call: number, fail: () => Effect.Effect<never, unknown>) => {
  let count = 0
  return (): Effect.Effect<undefined, unknown> => count++ === call ? fail() : Effect.undefined
}

type Failing =
  | "transformContext"
  | "convertToLlm"
  | "apiKey"
  | "prepareRequest"
  | "prepareNextTurn"
  | "finishTurn"

/** A layer of one hook (or the conversion) that fails on the given call. */
const failing = (name: Failing, call: number, fail: () => Effect.Effect<never, unknown>): Layer.Layer<never> => {
  const broken = onCall(call, fail)
  switch (name) {
    case "convertToLlm":
      return ConvertToLlm.layer((messages) => Effect.as(broken(), messages.filter(Messages.isMessage)))
    case "transformContext":
      return Hooks.layer(Hooks.transformContext((messages) => Effect.as(broken(), messages)))
    case "apiKey":
      return Hooks.layer(Hooks.apiKey(broken))
    case "prepareRequest":
      return Hooks.layer(Hooks.prepareRequest(broken))
    case "prepareNextTurn":
      return Hooks.layer(Hooks.prepareNextTurn(broken))
    case "finishTurn":
      return Hooks.layer(Hooks.finishTurn(broken))
  }
}

/** The error of a run that failed. */
const errorOf = (outcome: Errors.RunOutcome): Errors.RunError => {
  assert(outcome._tag === "Failed")
  return outcome.error
}

const lastAssistant = (messages: ReadonlyArray<Messages.AgentMessage>): Messages.AssistantMessage => {
  const message = messages.findLast((message) => message.role === "assistant")
  assert(message?.role === "assistant")
  return message
}

describe("Loop failures", () => {
  // Where each hook fails: on which of its calls, after which responses, and what the run looks like behind the prompt.
  const oneTool = [calls([["x", "a", {}]]), text("never")]
  const inTurn = ["turn_start", "U", "A{error}", "turn_end A{error}"]
  const inSecondTurn = ["turn_start", "U", "A{error}", "turn_end A{error}"]
  const inTurnOfItsOwn = ["turn_start", "A{error}", "turn_end A{error}"]
  const cases: ReadonlyArray<readonly [Failing, call: number, where: string, expected: ReadonlyArray<string>]> = [
    ["prepareRequest", 0, "first request", inTurn],
    ["transformContext", 0, "first request", inTurn],
    ["convertToLlm", 0, "first request", inTurn],
    ["apiKey", 0, "first request", inTurn],
    ["prepareRequest", 1, "second request", inSecondTurn],
    ["transformContext", 1, "second request", inSecondTurn],
    ["convertToLlm", 1, "second request", inSecondTurn],
    ["apiKey", 1, "second request", inSecondTurn],
    ["prepareNextTurn", 0, "second turn", inTurnOfItsOwn],
    ["finishTurn", 0, "first turn", inTurnOfItsOwn]
  ]

  for (const [name, call, where, expected] of cases) {
    for (const [how, fail] of Object.entries(ways)) {
      it.effect(`H5: ${name} ${how} at the ${where} (B88, B104)`, () =>
        Effect.gen(function*() {
          const recorder = new Recorder()
          const steering = yield* Queues.make()
          const result = yield* finish(
            Loop.run([Messages.user("go")], { messages: [], tools: [quick("a")] }, {
              steering,
              thinkingLevel: "high",
              emit: (event) => {
                // Steered while the turn works: read by the run that fails, or not, but never lost.
                if (event.type === "tool_execution_end") steering.offer(Messages.user("S"))
                return recorder.record(event)
              }
            })
          )
          const error = errorOf(result.outcome)
          assert(error._tag === "HookError")
          assert.strictEqual(error.hook, name)
          assert.include(error.message, "broken")

          const message = lastAssistant(result.messages)
          assert.deepStrictEqual([message.content, message.stopReason, message.thinkingLevel], [[], "error", "high"])
          assert.include(message.errorMessage, "broken")
          const before = ["turn_start", "U", "A[x]", "R(x)", "turn_end A[x] R(x)"]
          assert.deepStrictEqual(
            recorder.outline.filter((event) => event !== "S" && !event.startsWith("tool_execution")),
            ["agent_start", ...(expected === inTurn ? [] : before), ...expected, "agent_end Failed"]
          )
          const requests = yield* ScriptedModel.requests
          assert.strictEqual(requests.length, expected === inTurn ? 0 : 1)
          assertInvariants({
            events: recorder.events,
            requests,
            accepted: expected === inTurn ? ["go"] : ["go", "S"],
            queued: steering.messages
          })
        }).pipe(
          Effect.provide(Layer.merge(failing(name, call, fail), ScriptedModel.layer(oneTool)))
        ))
    }
  }

  for (const how of ["dies", "throws"]) {
    it.effect(`H5: the set-up of the stream ${how} (B88)`, () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const model = StreamFn.layer(() => how === "throws" ? throwing() : Stream.die(new Error("broken")))
        const result = yield* finish(
          Loop.run([Messages.user("go")], { messages: [], tools: [] }, {
            emit: recorder.record,
            thinkingLevel: "low"
          })
        ).pipe(Effect.provide(model))
        const message = lastAssistant(result.messages)
        assert.deepStrictEqual([message.content, message.stopReason, message.thinkingLevel], [[], "error", "low"])
        assert.include(message.errorMessage, "broken")
        assert.strictEqual(errorOf(result.outcome)._tag, "ModelError")
        assert.deepStrictEqual(recorder.outline, [
          "agent_start",
          "turn_start",
          "U",
          "A{error}",
          "turn_end A{error}",
          "agent_end Failed"
        ])
        assertInvariants({ events: recorder.events })
      }))
  }

  it.effect("H5: the first hook that fails is named, and no later one is asked", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const { requests, result } = yield* loop({
        responses: [],
        hooks: [
          Hooks.transformContext(() => Effect.fail("one")),
          Hooks.transformContext((messages) => {
            asked.push("transformContext")
            return messages
          }),
          Hooks.apiKey(() => {
            asked.push("apiKey")
          })
        ]
      })
      const error = errorOf(result.outcome)
      assert(error._tag === "HookError")
      assert.deepStrictEqual([error.hook, error.message], ["transformContext", "one"])
      assert.deepStrictEqual([asked, requests], [[], []])
    }))

  const thrownValues: ReadonlyArray<readonly [name: string, thrown: unknown]> = [
    ["a text", "text"],
    ["an object", { code: 42 }],
    ["undefined", undefined],
    ["null", null],
    ["an error without a message", new Error("")],
    ["several errors", new AggregateError([new Error("in it")], "")]
  ]
  for (const [shown, thrown] of thrownValues) {
    it.effect(`H5: a hook that fails with ${shown} is reported readably (B63)`, () =>
      Effect.gen(function*() {
        const { result } = yield* loop({ responses: [], hooks: [Hooks.prepareRequest(() => Effect.fail(thrown))] })
        const { errorMessage } = lastAssistant(result.messages)
        assert.isString(errorMessage)
        assert.isAbove(errorMessage!.length, 0)
        assert.notInclude(errorMessage, "[object Object]")
        if (thrown === undefined) assert.notStrictEqual(errorMessage, "undefined")
        if (typeof thrown === "string") assert.include(errorMessage, thrown)
      }))
  }

  for (const kind of ["beforeToolCall", "afterToolCall"] as const) {
    for (const [how, fail] of Object.entries(ways)) {
      it.effect(`H5, T1, T5: ${kind} that ${how} costs that call, not the run (B77, B104)`, () =>
        Effect.gen(function*() {
          const broken = ({ toolCall }: { readonly toolCall: Messages.ToolCall }) =>
            toolCall.id === "x" ? fail() : Effect.undefined
          const { requests, result } = yield* loop({
            responses: [calls([["x", "a", {}], ["y", "a", {}]]), text("fine")],
            tools: [quick("a")],
            hooks: [kind === "beforeToolCall" ? Hooks.beforeToolCall(broken) : Hooks.afterToolCall(broken)]
          })
          assert.strictEqual(Transcript.print(result.messages), "U A[x,y] R(x!) R(y) A")
          const answer = result.messages.find((message) => message.role === "toolResult")
          assert.include(Messages.text(answer!), "broken")
          assert.strictEqual(result.outcome._tag, "Completed")
          assert.strictEqual(requests.length, 2)
        }))
    }
  }

  it.effect("H5: a tool set a hook brings with two tools of one name fails the run, naming the hook (B82)", () =>
    Effect.gen(function*() {
      const { result } = yield* loop({
        responses: [],
        hooks: [Hooks.prepareRequest(() => ({ context: { tools: [quick("u"), quick("u")] } }))]
      })
      const error = errorOf(result.outcome)
      assert(error._tag === "HookError")
      assert.strictEqual(error.hook, "prepareRequest")
    }))

  it.effect("L5: finishTurn is called for the turn that another hook made fail", () =>
    Effect.gen(function*() {
      const turns: Array<string> = []
      yield* loop({
        responses: [],
        hooks: [
          Hooks.apiKey(() => Effect.fail("no key")),
          Hooks.finishTurn(({ message }) => {
            turns.push(Transcript.print([message]))
          })
        ]
      })
      assert.deepStrictEqual(turns, ["A{error}"])
    }))

  it.effect("H5: with a host it is the same, and the next prompt works (B22)", () =>
    Effect.gen(function*() {
      const { agent, before, recorder } = yield* watched({ tools: [quick("a")] })
      const first = yield* finish(agent.prompt("one"))
      assert.strictEqual(first.outcome._tag, "Failed")
      assert.include((yield* agent.state).errorMessage, "broken")
      const second = yield* finish(agent.prompt("two"))
      assert.strictEqual(second.outcome._tag, "Completed")
      const state = yield* agent.state
      assert.isUndefined(state.errorMessage)
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(requests.map(({ messages }) => Transcript.print(messages)), ["U U"])
      assert.strictEqual(Transcript.print(state.messages), "U A{error} U A")
      assertInvariants({
        before,
        events: recorder.events,
        transcript: state.messages,
        requests,
        accepted: ["one", "two"]
      })
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.merge(stage({ responses: [text("fine")] }), failing("apiKey", 0, ways.dies)))
    ))
})
