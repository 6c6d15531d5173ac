import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Errors, Hooks, Loop, Messages, StreamFn, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { ofType, Recorder } from "./utils/events.ts"
import { lie } from "./utils/hostile.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { finish, loop } from "./utils/play.ts"
import { noting, terminator } from "./utils/timedTools.ts"

const { calls, events, text } = ScriptedModel

type Events = ReadonlyArray<StreamFn.StreamEvent>

/** A whole call of the tool `a`, then a text that is open: what had arrived when the stream goes wrong. */
const opening: Events = [
  { type: "start" },
  { type: "toolcall_start", contentIndex: 0, id: "x", name: "a" },
  { type: "toolcall_end", contentIndex: 0, arguments: {} },
  { type: "text_start", contentIndex: 1 },
  { type: "text_delta", contentIndex: 1, delta: "so far" }
]

const arrived: Messages.AssistantMessage["content"] = [
  { type: "toolCall", id: "x", name: "a", arguments: {} },
  { type: "text", text: "so far" }
]

/** Plays a response with the tool `a`; tells whether `a` ran and how often `finishTurn` was asked. */
const respond = (list: Events, options?: Parameters<typeof events>[1]) =>
  Effect.gen(function*() {
    const ran: Array<string> = []
    let finished = 0
    const played = yield* loop({
      responses: [events(list, options), text("fine")],
      tools: [noting("a", ran)],
      // On a turn that went wrong the answer is ignored (L5).
      hooks: [Hooks.finishTurn(({ message }) => {
        finished++
        return message.stopReason === "error" || message.stopReason === "aborted" ? "continue" : undefined
      })]
    })
    const [turn] = ofType(played.recorder.events, "turn_end")
    assert(turn !== undefined)
    return { ...played, ran, finished, message: turn.message, outcome: played.result.outcome }
  })

/** What must hold when a response went wrong. */
const assertFailed = (
  played: Effect.Success<ReturnType<typeof respond>>,
  content: ReadonlyArray<unknown>
): Errors.ModelError => {
  const { finished, message, outcome, ran, recorder, requests } = played
  assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
  assert.strictEqual(message.stopReason, "error")
  assert.deepStrictEqual(message.content, content)
  assert.strictEqual(message.errorMessage, outcome.error.message)
  assert.isAbove(outcome.error.message.length, 0)
  assert.deepStrictEqual([ran, finished, requests.length], [[], 1, 1])
  assert.strictEqual(recorder.shown.at(-1), "agent_end Failed")
  assert.deepStrictEqual(recorder.changed, [])
  return outcome.error
}

class Failure extends Data.TaggedError("Failure")<{ readonly status: number }> {}

/** The typed error of a run that failed. */
const assertFailedBy = (
  { outcome }: { readonly outcome: Errors.RunOutcome },
  reason: Errors.ModelErrorReason
): Errors.ModelError => {
  assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
  assert.strictEqual(outcome.error.reason, reason)
  return outcome.error
}

describe("StreamFn protocol", () => {
  describe("violations", () => {
    const violations: Record<string, Events> = {
      "a second start": [{ type: "start" }],
      "a text delta for a block that never opened": [{ type: "text_delta", contentIndex: 2, delta: "!" }],
      "a thinking delta for a block that never opened": [{ type: "thinking_delta", contentIndex: 2, delta: "!" }],
      "a tool call delta for a block that never opened": [{ type: "toolcall_delta", contentIndex: 2, delta: "!" }],
      "a text end for a block that never opened": [{ type: "text_end", contentIndex: 2 }],
      "a thinking end for a block that never opened": [{ type: "thinking_end", contentIndex: 2 }],
      "a tool call end for a block that never opened": [{ type: "toolcall_end", contentIndex: 2 }],
      "a thinking delta for a text": [{ type: "thinking_delta", contentIndex: 1, delta: "!" }],
      "a tool call delta for a text": [{ type: "toolcall_delta", contentIndex: 1, delta: "!" }],
      "a tool call end for a text": [{ type: "toolcall_end", contentIndex: 1, arguments: {} }],
      "a text end for a tool call": [{ type: "text_end", contentIndex: 0 }],
      "a delta behind the end of its block": [{ type: "toolcall_delta", contentIndex: 0, delta: "!" }],
      "a block ended twice": [{ type: "toolcall_end", contentIndex: 0, arguments: {} }],
      "a block opened twice": [{ type: "text_start", contentIndex: 1 }],
      "a block opened again behind its end": [{ type: "toolcall_start", contentIndex: 0, id: "y", name: "a" }],
      "a block that leaves an index out": [{ type: "text_start", contentIndex: 3 }],
      "a negative index": [{ type: "text_start", contentIndex: -1 }],
      "an index that is no integer": [{ type: "text_start", contentIndex: 1.5 }]
    }
    for (const [name, wrong] of Object.entries(violations)) {
      it.effect(`M4: ${name} ends the turn in an error (B89)`, () =>
        Effect.gen(function*() {
          const late: Events = [
            { type: "text_delta", contentIndex: 1, delta: ", no" },
            { type: "text_end", contentIndex: 1 },
            { type: "done", stopReason: "toolUse" }
          ]
          const played = yield* respond([...opening, ...wrong, ...late])
          const error = assertFailed(played, arrived)
          assert.deepStrictEqual([error.reason, error.isRetryable], ["ProtocolViolation", false])
          assert.notStrictEqual(played.requests[0]!.outcome, "open")
        }))
    }

    it.effect("M4: a violation before start is one, too, and one message is told of it", () =>
      Effect.gen(function*() {
        const played = yield* respond([{ type: "text_end", contentIndex: 0 }, { type: "start" }, { type: "done" }])
        assert.strictEqual(assertFailed(played, []).reason, "ProtocolViolation")
        assert.deepStrictEqual(ofType(played.recorder.events, "message_update"), [])
      }))

    const ends: Record<string, readonly [Events, ReadonlyArray<unknown>]> = {
      "without a single event": [[], []],
      "behind start": [[{ type: "start" }], []],
      "in the middle of a text (B83)": [opening, arrived],
      "behind a whole call (B83)": [opening.slice(0, 3), arrived.slice(0, 1)],
      "without a start": [opening.slice(1), arrived]
    }
    for (const [name, [list, content]] of Object.entries(ends)) {
      it.effect(`M4: a stream that ends ${name} is incomplete`, () =>
        Effect.gen(function*() {
          const error = assertFailed(yield* respond(list), content)
          assert.deepStrictEqual([error.reason, error.isRetryable], ["IncompleteStream", true])
        }))
    }

    it.effect("M4: a stream that ends in the middle of a call's arguments keeps them as a record (B10, B83)", () =>
      Effect.gen(function*() {
        const played = yield* respond([
          { type: "start" },
          { type: "toolcall_start", contentIndex: 0, id: "x", name: "a" },
          { type: "toolcall_delta", contentIndex: 0, delta: "{\"path\":\"x\",\"conte" }
        ])
        assertFailed(played, played.message.content)
        const [call] = Messages.toolCalls(played.message)
        assert.deepInclude(call, { id: "x", name: "a", arguments: {} })
      }))

    it.effect("M4, H5: a stream that dies keeps what had arrived, and runs no tool (B88)", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const ran: Array<string> = []
        const model = StreamFn.layer(() => Stream.concat(Stream.fromIterable(opening), Stream.die(new Error("broken"))))
        const { outcome } = yield* finish(
          Loop.run([Messages.user("go")], { messages: [], tools: [noting("a", ran)] }, { emit: recorder.record })
        ).pipe(Effect.provide(model))
        assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
        assert.include(outcome.error.message, "broken")
        const [turn] = ofType(recorder.events, "turn_end")
        assert.deepStrictEqual([turn?.message.content, turn?.message.stopReason, ran], [arrived, "error", []])
        assertInvariants({ events: recorder.events })
      }))

    it.effect("M2, I6: usage that is no number leaves a transcript that is JSON", () =>
      Effect.gen(function*() {
        const usage = { ...Messages.emptyUsage, input: 1, cost: { ...Messages.emptyUsage.cost, total: Number.NaN } }
        const { outcome } = yield* respond([{ type: "start" }, { type: "done", usage }])
        // `loop` has checked I6.
        assert.include(["Completed", "Failed"], outcome._tag)
      }))

    const contents: Record<string, readonly [content: unknown, told: RegExp]> = {
      "is no list": [{}, /content is no list/],
      "has nothing in the place of a block": [[{ type: "text", text: "a" }, null], /content\[1\] is no block/],
      "has a text in the place of a block": [["a"], /content\[0\] is no block/],
      "has a call without an id": [[{ type: "toolCall", name: "a", arguments: {} }], /content\[0\] is no block/],
      "has a call whose name is no text": [
        [{ type: "toolCall", id: "x", name: 5, arguments: {} }],
        /content\[0\] is no block/
      ],
      "has a text that is none": [[{ type: "text", text: 5n }], /content\[0\] is no block/],
      "has a flag that is none": [[{ type: "thinking", thinking: "", redacted: "yes" }], /content\[0\] is no block/]
    }
    for (const [name, [content, told]] of Object.entries(contents)) {
      it.effect(`M4: \`done\` whose content ${name} ends the turn in an error that says so`, () =>
        Effect.gen(function*() {
          const error = assertFailed(
            yield* respond([...opening, { type: "done", content: lie<StreamFn.StreamEnd["content"]>(content)! }]),
            arrived
          )
          assert.strictEqual(error.reason, "ProtocolViolation")
          assert.match(error.message, told)
        }))
    }

    it.effect("M2, I6: what a usage leaves out counts as none", () =>
      Effect.gen(function*() {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a sloppy provider gives
        const usage = { input: 5, totalTokens: 5, cost: { total: 0.5 } } as Messages.Usage
        const { message } = yield* respond([{ type: "start" }, { type: "done", usage }])
        const { cost } = Messages.emptyUsage
        assert.deepStrictEqual(message.usage, {
          ...Messages.emptyUsage,
          input: 5,
          totalTokens: 5,
          cost: { ...cost, total: 0.5 }
        })
      }))

    const call = { type: "toolcall_start", contentIndex: 2, id: "y", name: "a" } as const
    const thinking = { type: "thinking_end", contentIndex: 2 } as const
    /** Events with a field of another type than is said, and what was opened before. */
    const illTyped: Record<string, readonly [before: Events, wrong: object, told: RegExp]> = {
      "no id": [[], { ...call, id: undefined }, /toolcall_start.* id, name or namespace is no text/],
      "an id that is no text": [[], { ...call, id: 5 }, /toolcall_start.* id, name or namespace is no text/],
      "no name": [[], { ...call, name: undefined }, /toolcall_start.* id, name or namespace is no text/],
      "a namespace that is no text": [
        [],
        { ...call, namespace: 5 },
        /toolcall_start.* id, name or namespace is no text/
      ],
      "a delta that is no text": [[], { type: "text_delta", contentIndex: 1, delta: 5 }, /text_delta.* without a text/],
      "a textSignature that is no text": [
        [],
        { type: "text_end", contentIndex: 1, textSignature: 5 },
        /text_end.* signature is no text/
      ],
      "a thinkingSignature that is no text": [
        [{ type: "thinking_start", contentIndex: 2 }],
        { ...thinking, thinkingSignature: {} },
        /thinking_end.* signature is no text/
      ],
      "a flag that is no boolean": [
        [{ type: "thinking_start", contentIndex: 2 }],
        { ...thinking, redacted: "yes" },
        /thinking_end.* `redacted` is no boolean/
      ],
      "a thoughtSignature that is no text": [
        [call],
        { type: "toolcall_end", contentIndex: 2, thoughtSignature: null },
        /toolcall_end.* signature is no text/
      ],
      "an error message that is no text": [[], { type: "done", errorMessage: 5 }, /done.* error message is no text/],
      "a stop reason there is not": [[], { type: "done", stopReason: 5 }, /done.* stop reason 5/],
      "usage that is none": [[], { type: "error", usage: 5 }, /error.* usage is none/]
    }
    for (const [name, [before, wrong, told]] of Object.entries(illTyped)) {
      it.effect(`M4, I6: an event with ${name} ends the turn in an error that says so`, () =>
        Effect.gen(function*() {
          const list = [...opening, ...before, lie<StreamFn.StreamEvent>(wrong), { type: "done" } as const]
          const played = yield* respond(list)
          const error = assertFailed(played, played.message.content)
          assert.deepStrictEqual(played.message.content.slice(0, 2), arrived)
          assert.strictEqual(error.reason, "ProtocolViolation")
          assert.match(error.message, told)
        }))
    }

    it.effect("M2, I6: what tells about the response as a whole and is no text counts as not told", () =>
      Effect.gen(function*() {
        const info = { responseId: 5, responseModel: null, rawStopReason: {}, providerThinkingLevel: true }
        const { message, outcome } = yield* respond([
          lie<StreamFn.StreamEvent>({ type: "start", ...info }),
          lie<StreamFn.StreamEvent>({ type: "done", ...info, stopReason: null, errorMessage: null, error: null })
        ])
        assert.strictEqual(outcome._tag, "Completed")
        assert.notIncludeMembers(Object.keys(message), [...Object.keys(info), "errorMessage"])
      }))

    it.effect("M4: a violation ends the stream at once, and its finalizers run", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const log: Array<string> = []
        const model = StreamFn.layer(() =>
          Stream.make<Array<StreamFn.StreamEvent>>({ type: "start" }, { type: "start" }).pipe(
            Stream.concat(Stream.never),
            Stream.ensuring(Effect.sync(() => log.push("closed")))
          )
        )
        const fiber = yield* Effect.forkChild(
          Loop.run([Messages.user("go")], { messages: [], tools: [] }, { emit: recorder.record }).pipe(
            Effect.provide(model)
          )
        )
        yield* TestClock.adjust(0)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(log, ["closed"])
        assert.strictEqual(recorder.timeOf("agent_end Failed"), 0)
        assertInvariants({ events: recorder.events })
      }))
  })

  describe("stop reasons", () => {
    const whole: Events = [...opening, { type: "text_end", contentIndex: 1 }]

    for (const type of ["done", "error"] as const) {
      for (const stopReason of ["error", "aborted"] as const) {
        it.effect(`M5: ${type} with the stop reason ${stopReason} runs no tool and fails the run (B84)`, () =>
          Effect.gen(function*() {
            const played = yield* respond([...whole, { type, stopReason, errorMessage: "reset" }])
            const { finished, message, outcome, ran, recorder, requests } = played
            assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
            assert.include(outcome.error.message, "reset")
            assert.deepStrictEqual([message.stopReason, message.errorMessage], [stopReason, "reset"])
            assert.deepStrictEqual(message.content, arrived)
            assert.deepStrictEqual([ran, finished, requests.length], [[], 1, 1])
            assert.deepStrictEqual(recorder.outline.slice(-3), [
              `A[x]{${stopReason}}`,
              `turn_end A[x]{${stopReason}}`,
              "agent_end Failed"
            ])
          }))
      }

      it.effect(`M5: ${type} with the stop reason toolUse runs the tools`, () =>
        Effect.gen(function*() {
          const { outcome, ran, result } = yield* respond([...whole, { type, stopReason: "toolUse" }])
          assert.deepStrictEqual(ran, ["x"])
          assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) A")
          assert.strictEqual(outcome._tag, "Completed")
        }))

      for (const stopReason of ["stop", "deferred"] as const) {
        it.effect(`M5: ${type} with the stop reason ${stopReason} and no call ends the run`, () =>
          Effect.gen(function*() {
            const { outcome, requests } = yield* respond([{ type: "start" }, { type, stopReason }])
            assert.deepInclude(outcome, { _tag: "Completed", by: "Stop", stopReason })
            assert.strictEqual(requests.length, 1)
          }))
      }
    }

    it.effect("M2: without a stop reason done is stop and error is error, with or without a text", () =>
      Effect.gen(function*() {
        const done = yield* respond([{ type: "start" }, { type: "done" }])
        assert.deepStrictEqual([done.message.stopReason, done.outcome._tag], ["stop", "Completed"])
        const failed = yield* respond([...opening, { type: "error" }])
        assert.isAbove(assertFailedBy(failed, "Reported").message.length, 0)
        assert.deepStrictEqual([failed.message.stopReason, failed.message.content], ["error", arrived])
      }))

    it.effect("M5: an error event may carry its typed error", () =>
      Effect.gen(function*() {
        const error = new Errors.ModelError({ reason: "RateLimited", message: "slow down", retryAfter: 7000 })
        const played = yield* respond([...opening, { type: "error", errorMessage: "429", error }])
        assert.strictEqual(assertFailedBy(played, "RateLimited"), error)
        assert.strictEqual(played.message.errorMessage, "429")
      }))

    const untypedErrors: Record<string, readonly [error: unknown, told: RegExp]> = {
      "a text": ["boom", /^boom$/],
      "an Error": [new Error("boom"), /^boom$/],
      "a tagged error of its own": [new Failure({ status: 529 }), /^Failure/],
      "an object": [{ code: 7 }, /^\{"code":7\}$/],
      "a ModelError whose message is no text": [
        new Errors.ModelError({ reason: "Reported", message: lie<string>(5) }),
        /^ModelError/
      ]
    }
    for (const [name, [error, told]] of Object.entries(untypedErrors)) {
      it.effect(`M5: an error event whose error is ${name} is Reported, and says it`, () =>
        Effect.gen(function*() {
          const wrong = lie<Errors.ModelError>(error)
          const played = yield* respond([...opening, { type: "error", error: wrong }])
          const reported = assertFailedBy(played, "Reported")
          assert.match(played.message.errorMessage ?? "", told)
          if (reported !== error) {
            assert.deepStrictEqual([reported.message, reported.cause], [played.message.errorMessage, error])
          }
          const both = yield* respond([...opening, { type: "error", errorMessage: "529", error: wrong }])
          assertFailedBy(both, "Reported")
          assert.strictEqual(both.message.errorMessage, "529")
        }))
    }

    it.effect("M5: a stream that fails with a ModelError whose message is no text", () =>
      Effect.gen(function*() {
        const error = new Errors.ModelError({ reason: "Network", message: lie<string>(undefined) })
        const { outcome } = yield* finish(Loop.run([Messages.user("go")], { messages: [], tools: [] })).pipe(
          Effect.provide(StreamFn.layer(() => Stream.fail(Object.assign(error, { message: 5 }))))
        )
        assertFailedBy({ outcome }, "Network")
      }))

    it.effect("M5: an error event that says no more than its text is Reported", () =>
      Effect.gen(function*() {
        const played = yield* respond([...opening, { type: "error", errorMessage: "overloaded" }])
        assert.strictEqual(assertFailedBy(played, "Reported").message, "overloaded")
      }))
  })

  describe("an output limit", () => {
    it.effect("M6: no call of a response that ended as length runs; each is told why, and the loop goes on (B50)", () =>
      Effect.gen(function*() {
        const asked: Array<string> = []
        const ran: Array<string> = []
        const { recorder, requests, result } = yield* loop({
          responses: [
            calls([["x", "a", {}], ["y", "nope", {}], ["z", "b", "{\"te"]], { stopReason: "length" }),
            text("fine")
          ],
          tools: [noting("a", ran), terminator("b")],
          hooks: [
            Hooks.beforeToolCall(({ toolCall }) => void asked.push(toolCall.id)),
            Hooks.afterToolCall(({ toolCall }) => void asked.push(toolCall.id))
          ]
        })
        assert.strictEqual(Transcript.print(result.messages), "U A[x,y,z] R(x!) R(y!) R(z!) A")
        assert.deepStrictEqual([ran, asked], [[], []])
        for (const message of result.messages) {
          if (message.role === "toolResult") assert.match(Messages.text(message), /output.*limit/i)
        }
        assert.deepStrictEqual(
          recorder.outline.filter((event) => event.startsWith("tool_execution")),
          ["x", "y", "z"].flatMap((id) => [`tool_execution_start ${id}`, `tool_execution_end ${id}!`])
        )
        assert.strictEqual(requests.length, 2)
        assert.strictEqual(result.outcome._tag, "Completed")
      }))

    it.effect("M6: without calls the run ends", () =>
      Effect.gen(function*() {
        const { requests, result } = yield* loop({ responses: [text("so f", { stopReason: "length" })] })
        assert.deepInclude(result.outcome, { _tag: "Completed", by: "Stop", stopReason: "length" })
        assert.strictEqual(requests.length, 1)
      }))
  })

  describe("arguments", () => {
    /** A tool that takes anything and notes what it got. */
    const open = (got: Array<unknown>, asked: Array<string>) => ({
      tools: [
        Tools.dynamic("a", {
          description: "Takes anything.",
          parameters: { type: "object" },
          execute: (args) =>
            Effect.sync(() => {
              got.push(args)
              return "done"
            })
        })
      ],
      hooks: [Hooks.beforeToolCall(({ toolCall }) => void asked.push(toolCall.id))]
    })

    const malformed: Record<string, string> = {
      "stops in the middle (B47)": "{\"path\":\"/data\",\"recursive\":tru",
      "stops behind a key": "{\"path\":",
      "stops before its last brace": "{\"path\":\"/data\"",
      "goes on behind its end": "{\"path\":\"/data\"}}",
      "holds a second object": "{} {}",
      "is no JSON": "path=/data",
      "has a trailing comma": "{\"path\":1,}",
      "is an array": "[1]",
      "is a number": "5",
      "is a plain text": "\"x\""
    }
    for (const [name, json] of Object.entries(malformed)) {
      it.effect(`M7: a call whose argument text ${name} does not run`, () =>
        Effect.gen(function*() {
          const got: Array<unknown> = []
          const asked: Array<string> = []
          const { recorder, result } = yield* loop({
            responses: [calls([["x", "a", json], ["y", "a", {}]], { chunks: 3 }), text("fine")],
            ...open(got, asked)
          })
          assert.strictEqual(Transcript.print(result.messages), "U A[x,y] R(x!) R(y) A")
          assert.deepStrictEqual([got, asked], [[{}], ["y"]])
          const answer = ofType(recorder.events, "tool_execution_end").find(({ isError }) => isError)
          assert.strictEqual(answer?.toolCallId, "x")
          const shown = Messages.text(result.messages.find((message) => message.role === "toolResult")!)
          assert.include(shown, json.slice(0, 5))
        }))
    }

    it.effect("M7: the excerpt is short, whatever the model wrote", () =>
      Effect.gen(function*() {
        const { result } = yield* loop({
          responses: [calls([["x", "a", `{"n":"${"😀".repeat(50_000)}`]]), text("fine")],
          ...open([], [])
        })
        const shown = Messages.text(result.messages.find((message) => message.role === "toolResult")!)
        assert.isAtMost(shown.length, 2048)
        assert.isTrue(shown.isWellFormed())
        assert.include(shown, "{\"n\":\"😀")
      }))

    it.effect("M7: what the model wrote stays in the transcript as a record, and decodes (I6)", () =>
      Effect.gen(function*() {
        const { result } = yield* loop({
          responses: [calls([["x", "a", "{\"path\":"]]), text("fine")],
          ...open([], [])
        })
        const call = result.messages.flatMap(Messages.toolCalls)[0]
        assert.deepStrictEqual([call?.arguments, call?.argumentsText], [{}, "{\"path\":"])
        const again = Schema.decodeUnknownSync(Messages.Transcript)(JSON.parse(JSON.stringify(result.messages)))
        assert.deepStrictEqual(again, result.messages)
      }))

    for (const [name, json] of Object.entries({ "nothing": "", "blanks": " \n ", "null": "null" })) {
      it.effect(`M7: ${name} counts as no arguments (B46)`, () =>
        Effect.gen(function*() {
          const got: Array<unknown> = []
          yield* loop({ responses: [calls([["x", "a", json]]), text("fine")], ...open(got, []) })
          assert.deepStrictEqual(got, [{}])
        }))
    }

    it.effect("M7: the JSON text of an object is one (B46)", () =>
      Effect.gen(function*() {
        const got: Array<unknown> = []
        const { result } = yield* loop({
          responses: [calls([["x", "a", JSON.stringify("{\"n\":1}")]]), text("fine")],
          ...open(got, [])
        })
        assert.deepStrictEqual(got, [{ n: 1 }])
        assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) A")
      }))

    const parsed: Record<string, readonly [given: unknown, got: unknown]> = {
      "an object": [{ n: 1 }, { n: 1 }],
      "the JSON text of an object (B46)": ["{\"n\":1}", { n: 1 }],
      "null (B46)": [null, {}],
      "an empty text (B46)": ["", {}],
      "an array": [[1], undefined],
      "a number": [5, undefined],
      "a text that is no JSON": ["n=1", undefined],
      "the JSON text of an array": ["[1]", undefined]
    }
    for (const [name, [given, expected]] of Object.entries(parsed)) {
      it.effect(`M7: parsed arguments that are ${name} ${expected === undefined ? "do not run" : "run"}`, () =>
        Effect.gen(function*() {
          const got: Array<unknown> = []
          const { result } = yield* loop({
            responses: [
              events([
                { type: "start" },
                { type: "toolcall_start", contentIndex: 0, id: "x", name: "a" },
                { type: "toolcall_end", contentIndex: 0, arguments: given },
                { type: "done", stopReason: "toolUse" }
              ]),
              text("fine")
            ],
            ...open(got, [])
          })
          assert.deepStrictEqual(got, expected === undefined ? [] : [expected])
          assert.strictEqual(
            Transcript.print(result.messages),
            expected === undefined ? "U A[x] R(x!) A" : "U A[x] R(x) A"
          )
        }))
    }

    const odd: Record<string, unknown> = {
      "not a number": { n: Number.NaN },
      "a bigint": { n: 10n },
      "a function": { n: () => 1 },
      "undefined": { n: undefined },
      "a date": { n: new Date(0) },
      "a map": { n: new Map([[1, 2]]) }
    }
    for (const [name, given] of Object.entries(odd)) {
      it.effect(`M7, I6: parsed arguments with ${name} in them leave a transcript that is JSON`, () =>
        Effect.gen(function*() {
          const { result } = yield* loop({
            responses: [
              events([
                { type: "start" },
                { type: "toolcall_start", contentIndex: 0, id: "x", name: "a" },
                { type: "toolcall_end", contentIndex: 0, arguments: given },
                { type: "done", stopReason: "toolUse" }
              ]),
              text("fine")
            ],
            ...open([], [])
          })
          // `loop` has checked I1 and I6.
          assert.match(Transcript.print(result.messages), /^U A\[x\] R\(x!?\) A$/)
        }))
    }

    it.effect("M8: 2 MB of arguments in 20 000 deltas arrive whole (B55)", () =>
      Effect.gen(function*() {
        const deltas = 20_000
        const chunk = "0123456789".repeat(10)
        const got: Array<unknown> = []
        const list: Array<StreamFn.StreamEvent> = [
          { type: "start" },
          { type: "toolcall_start", contentIndex: 0, id: "x", name: "a" },
          { type: "toolcall_delta", contentIndex: 0, delta: "{\"text\":\"" }
        ]
        for (let n = 0; n < deltas; n++) list.push({ type: "toolcall_delta", contentIndex: 0, delta: chunk })
        list.push(
          { type: "toolcall_delta", contentIndex: 0, delta: "\"}" },
          { type: "toolcall_end", contentIndex: 0 },
          { type: "done", stopReason: "toolUse" }
        )
        let updates = 0
        let read = 0
        const { tools } = open(got, [])
        const fiber = yield* Effect.forkChild(
          Loop.run([Messages.user("go")], { messages: [], tools }, {
            emit: (event) => {
              if (event.type !== "message_update") return
              updates++
              const [call] = Messages.toolCalls(event.message)
              if (event.assistantMessageEvent.type !== "toolcall_end" && Object.keys(call!.arguments).length > 0) read++
            }
          }).pipe(Effect.provide(ScriptedModel.layer([events(list), text("fine")])))
        )
        yield* TestClock.adjust("1 second")
        const { outcome } = yield* Fiber.join(fiber)
        assert.strictEqual(outcome._tag, "Completed")
        assert.deepStrictEqual([updates > deltas, read], [true, 0])
        assert.isTrue(got.length === 1 && JSON.stringify(got[0]) === JSON.stringify({ text: chunk.repeat(deltas) }))
      }))

    it.effect("M8: a snapshot shows the text of the arguments so far, for those who want to read it", () =>
      Effect.gen(function*() {
        const { recorder } = yield* loop({
          responses: [calls([["x", "a", "{\"path\":\"/data\",\"deep\":[1,2]}"]], { chunks: 4 }), text("fine")],
          ...open([], [])
        })
        const texts = ofType(recorder.events, "message_update").flatMap(({ message }) =>
          Messages.toolCalls(message).map(({ argumentsText }) => argumentsText)
        )
        assert.deepStrictEqual(texts.slice(0, 5), [
          texts[0],
          "{\"path\"",
          "{\"path\":\"/data",
          "{\"path\":\"/data\",\"deep",
          "{\"path\":\"/data\",\"deep\":[1,2]}"
        ])
      }))
  })
})
