import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import { Agent, Errors, Messages, type StreamFn } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { ofType } from "./utils/events.ts"
import { finish, loop, type Played, stage, watched } from "./utils/play.ts"
import { quick } from "./utils/timedTools.ts"

const { calls, events, text } = ScriptedModel

/** The assistant message of a run of one response. */
const responseOf = ({ recorder }: Played): Messages.AssistantMessage => {
  const [end] = ofType(recorder.events, "turn_end")
  assert(end !== undefined)
  return end.message
}

/** Plays one response, made of events. */
const respond = (list: ReadonlyArray<ScriptedModel.TimedEvent>, options?: Parameters<typeof events>[1]) =>
  Effect.map(loop({ responses: [events(list, options)] }), (played) => {
    assert.deepStrictEqual(played.recorder.changed, [])
    return { ...played, message: responseOf(played) }
  })

describe("StreamFn messages", () => {
  describe("accumulation", () => {
    it.effect("M2: text, thinking and calls, with everything a provider may say about them", () =>
      Effect.gen(function*() {
        const usage: Messages.Usage = { ...Messages.emptyUsage, input: 3, output: 4, totalTokens: 7 }
        const { message, recorder, result } = yield* respond([
          { type: "start", responseId: "r", responseModel: "m-2026" },
          { type: "thinking_start", contentIndex: 0 },
          { type: "thinking_delta", contentIndex: 0, delta: "hm" },
          { type: "thinking_delta", contentIndex: 0, delta: ", hm" },
          { type: "thinking_end", contentIndex: 0, thinkingSignature: "sig 0" },
          { type: "thinking_start", contentIndex: 1 },
          { type: "thinking_end", contentIndex: 1, thinkingSignature: "sealed", redacted: true },
          { type: "text_start", contentIndex: 2 },
          { type: "text_delta", contentIndex: 2, delta: "Let " },
          { type: "text_delta", contentIndex: 2, delta: "me" },
          { type: "text_end", contentIndex: 2, textSignature: "sig 2" },
          { type: "toolcall_start", contentIndex: 3, id: "x", name: "nope", namespace: "space" },
          { type: "toolcall_delta", contentIndex: 3, delta: "{\"n\":" },
          { type: "toolcall_delta", contentIndex: 3, delta: "1}" },
          { type: "toolcall_end", contentIndex: 3, thoughtSignature: "sig 3" },
          { type: "done", stopReason: "stop", usage, rawStopReason: "end_turn", providerThinkingLevel: "extended" }
        ])
        assert.deepStrictEqual(message.content, [
          { type: "thinking", thinking: "hm, hm", thinkingSignature: "sig 0" },
          { type: "thinking", thinking: "", thinkingSignature: "sealed", redacted: true },
          { type: "text", text: "Let me", textSignature: "sig 2" },
          {
            type: "toolCall",
            id: "x",
            name: "nope",
            namespace: "space",
            arguments: { n: 1 },
            thoughtSignature: "sig 3"
          }
        ])
        assert.deepInclude(message, {
          responseId: "r",
          responseModel: "m-2026",
          rawStopReason: "end_turn",
          providerThinkingLevel: "extended",
          stopReason: "stop",
          usage
        })
        assert.deepStrictEqual(result.usage.totalTokens, 7)
        assert.deepStrictEqual(
          ofType(recorder.events, "message_update").map(({ assistantMessageEvent: event }) =>
            "content" in event ? event.content : "toolCall" in event ? event.toolCall.arguments : event.type
          ),
          [
            "thinking_start",
            "thinking_delta",
            "thinking_delta",
            "hm, hm",
            "thinking_start",
            "",
            "text_start",
            "text_delta",
            "text_delta",
            "Let me",
            "toolcall_start",
            "toolcall_delta",
            "toolcall_delta",
            { n: 1 }
          ]
        )
      }))

    it.effect("M2: what a provider leaves empty hides nothing else it tells", () =>
      Effect.gen(function*() {
        const { message } = yield* respond([
          { type: "start", responseId: "", responseModel: "m-2026" },
          { type: "done", responseId: "", rawStopReason: "end_turn", providerThinkingLevel: "extended" }
        ])
        assert.deepInclude(message, {
          responseModel: "m-2026",
          rawStopReason: "end_turn",
          providerThinkingLevel: "extended"
        })
      }))

    it.effect("M2: what done tells is added to what start told, field by field", () =>
      Effect.gen(function*() {
        const usage: Messages.Usage = { ...Messages.emptyUsage, input: 3, totalTokens: 3 }
        const { message } = yield* respond([
          { type: "start", responseId: "r", usage },
          { type: "done", responseModel: "m-2026" }
        ])
        assert.deepInclude(message, { responseId: "r", responseModel: "m-2026", usage })
      }))

    it.effect("M2: blocks may be open at the same time (B56)", () =>
      Effect.gen(function*() {
        const { message } = yield* respond([
          { type: "start" },
          { type: "toolcall_start", contentIndex: 0, id: "x", name: "nope" },
          { type: "toolcall_start", contentIndex: 1, id: "y", name: "nope" },
          { type: "text_start", contentIndex: 2 },
          { type: "toolcall_delta", contentIndex: 1, delta: "{\"b\"" },
          { type: "toolcall_delta", contentIndex: 0, delta: "{\"a\":" },
          { type: "text_delta", contentIndex: 2, delta: "t" },
          { type: "toolcall_delta", contentIndex: 1, delta: ":2}" },
          { type: "toolcall_end", contentIndex: 1 },
          { type: "toolcall_delta", contentIndex: 0, delta: "1}" },
          { type: "text_end", contentIndex: 2 },
          { type: "toolcall_end", contentIndex: 0 },
          { type: "done", stopReason: "stop" }
        ])
        assert.deepStrictEqual(message.content, [
          { type: "toolCall", id: "x", name: "nope", arguments: { a: 1 } },
          { type: "toolCall", id: "y", name: "nope", arguments: { b: 2 } },
          { type: "text", text: "t" }
        ])
      }))

    it.effect("M2: blocks before start are accumulated without an event (B89)", () =>
      Effect.gen(function*() {
        const { message, recorder } = yield* respond([
          { type: "text_start", contentIndex: 0 },
          { type: "text_delta", contentIndex: 0, delta: "early" },
          { type: "start" },
          { type: "text_delta", contentIndex: 0, delta: " and late" },
          { type: "text_end", contentIndex: 0 },
          { type: "done" }
        ])
        assert.strictEqual(Messages.text(message), "early and late")
        assert.deepStrictEqual(recorder.shown.slice(4, -2), [
          "message_start A{pending}",
          "message_update text_delta 0",
          "message_update text_end 0",
          "message_end A"
        ])
        const [start] = ofType(recorder.events, "message_start").slice(-1)
        assert.strictEqual(Messages.text(start!.message), "early")
      }))

    it.effect("M2: arguments are {} in every snapshot until toolcall_end, which parses the text", () =>
      Effect.gen(function*() {
        const { recorder } = yield* respond([
          { type: "start" },
          { type: "toolcall_start", contentIndex: 0, id: "x", name: "nope" },
          { type: "toolcall_delta", contentIndex: 0, delta: "{\"n\":1" },
          { type: "toolcall_delta", contentIndex: 0, delta: "}" },
          { type: "toolcall_end", contentIndex: 0 },
          { type: "done", stopReason: "stop" }
        ])
        assert.deepStrictEqual(
          ofType(recorder.events, "message_update").map(({ message }) => Messages.toolCalls(message)[0]!.arguments),
          [{}, {}, {}, { n: 1 }]
        )
      }))

    it.effect("M2: toolcall_end may carry parsed arguments, which count instead of the text", () =>
      Effect.gen(function*() {
        const { message } = yield* respond([
          { type: "start" },
          { type: "toolcall_start", contentIndex: 0, id: "x", name: "nope" },
          { type: "toolcall_delta", contentIndex: 0, delta: "{\"n\":" },
          { type: "toolcall_end", contentIndex: 0, arguments: { n: 2 } },
          { type: "toolcall_start", contentIndex: 1, id: "y", name: "nope" },
          { type: "toolcall_end", contentIndex: 1 },
          { type: "done", stopReason: "stop" }
        ])
        assert.deepStrictEqual(message.content, [
          { type: "toolCall", id: "x", name: "nope", arguments: { n: 2 } },
          { type: "toolCall", id: "y", name: "nope", arguments: {} }
        ])
      }))

    it.effect("M2: the content of done replaces what was accumulated", () =>
      Effect.gen(function*() {
        const content = [{ type: "thinking", thinking: "hm" }, { type: "text", text: "other words" }] as const
        const { message, recorder } = yield* respond([
          { type: "start" },
          { type: "text_start", contentIndex: 0 },
          { type: "text_delta", contentIndex: 0, delta: "so far" },
          { type: "done", content }
        ])
        assert.deepStrictEqual(message.content, content)
        assert.strictEqual(Messages.text(ofType(recorder.events, "message_update")[1]!.message), "so far")
      }))

    it.effect("M2: the content of error does so, too, and an empty one keeps nothing", () =>
      Effect.gen(function*() {
        const list = (content: StreamFn.StreamEnd["content"]): ReadonlyArray<StreamFn.StreamEvent> => [
          { type: "start" },
          { type: "text_start", contentIndex: 0 },
          { type: "text_delta", contentIndex: 0, delta: "so far" },
          { type: "error", errorMessage: "reset", ...(content === undefined ? {} : { content }) }
        ]
        assert.deepStrictEqual((yield* respond(list([]))).message.content, [])
        assert.deepStrictEqual((yield* respond(list(undefined))).message.content, [{ type: "text", text: "so far" }])
      }))

    it.effect("M2: nothing behind done is read (B89)", () =>
      Effect.gen(function*() {
        const { message, recorder, requests } = yield* respond([
          { type: "start" },
          { type: "text_start", contentIndex: 0 },
          { type: "text_delta", contentIndex: 0, delta: "fine" },
          { type: "text_end", contentIndex: 0 },
          { type: "done" },
          { type: "text_delta", contentIndex: 0, delta: ", no" },
          { type: "start" },
          { type: "error", errorMessage: "late" },
          { at: "10 seconds", type: "done", stopReason: "length" }
        ], { open: true })
        assert.deepStrictEqual([Messages.text(message), message.stopReason], ["fine", "stop"])
        assert.deepStrictEqual(recorder.times.at(-1), 0)
        assert.notStrictEqual(requests[0]!.outcome, "open")
      }))

    it.effect("M2: a failure behind done is none", () =>
      Effect.gen(function*() {
        const error = new Errors.ModelError({ reason: "Network", message: "reset" })
        const { result } = yield* respond([{ type: "start" }, { type: "done" }], { error })
        assert.strictEqual(result.outcome._tag, "Completed")
      }))

    it.effect("M2: a stream that fails keeps what had arrived (B22, B91)", () =>
      Effect.gen(function*() {
        const error = new Errors.ModelError({ reason: "Overloaded", message: "529", retryAfter: 7000 })
        const { message, result } = yield* respond([
          { type: "start", usage: { ...Messages.emptyUsage, input: 5, totalTokens: 5 } },
          { type: "thinking_start", contentIndex: 0 },
          { type: "thinking_delta", contentIndex: 0, delta: "hm" }
        ], { error })
        assert.deepStrictEqual(message.content, [{ type: "thinking", thinking: "hm" }])
        assert.deepStrictEqual(
          [message.stopReason, message.errorMessage, message.usage.totalTokens],
          ["error", "529", 5]
        )
        assert(result.outcome._tag === "Failed")
        assert.strictEqual(result.outcome.error, error)
      }))
  })

  describe("snapshots", () => {
    it.effect("M3, H3: one assistant message per response, at every step the one of the event", () =>
      Effect.gen(function*() {
        const { agent, recorder } = yield* watched({ tools: [quick("a")] })
        const seen: Array<string> = []
        yield* agent.subscribe((event) =>
          Effect.map(agent.state, ({ messages, streamingMessage }) => {
            if (!("message" in event) || event.type === "turn_end" || event.message.role !== "assistant") return
            const all = streamingMessage === undefined ? messages : [...messages, streamingMessage]
            const same = isDeepStrictEqual(all.at(-1), event.message) &&
              (streamingMessage === undefined) === (event.type === "message_end")
            seen.push(`${Transcript.print(all)}${same ? "" : ", another message than the event's"}`)
          })
        )
        yield* finish(agent.prompt("go"))
        assert.deepStrictEqual(recorder.changed, [])
        const streamed = (before: string, pending: string, count: number) =>
          Array(count).fill(`${before}${pending}{pending}`)
        assert.deepStrictEqual(seen, [
          "U A{pending}",
          ...streamed("U ", "A[x]", 3),
          "U A[x]",
          ...streamed("U A[x] R(x) ", "A", 5),
          "U A[x] R(x) A"
        ])
      }).pipe(
        Effect.scoped,
        Effect.provide(stage({
          responses: [calls([["x", "a", {}]], { every: 10 }), text("fine", { chunks: 2, every: 10 })]
        }))
      ))

    it.effect("M3: a snapshot of a message of many blocks is the same whenever it is read", () =>
      Effect.gen(function*() {
        const list = Array.from({ length: 80 }, (_, contentIndex): ReadonlyArray<StreamFn.StreamEvent> => [
          { type: "text_start", contentIndex },
          { type: "text_delta", contentIndex, delta: `${contentIndex}` },
          { type: "text_delta", contentIndex, delta: " and more" },
          { type: "text_end", contentIndex }
        ]).flat()
        const response = events([{ type: "start" }, ...list, { type: "done", stopReason: "stop" }])
        /** What is read of every snapshot, at once or at the end. */
        const play = (read: "at once" | "at the end") =>
          Effect.gen(function*() {
            const reads: Array<() => string> = []
            const agent = yield* Agent.make()
            yield* agent.subscribe((event) => {
              if (event.type !== "message_update") return
              const { message } = event
              const early = read === "at once" ? JSON.stringify(message.content) : undefined
              reads.push(() => early ?? JSON.stringify(message.content))
            })
            yield* finish(agent.prompt("go"))
            return reads.map((text) => text())
          }).pipe(Effect.scoped, Effect.provide(stage({ responses: [response] })))
        const texts = yield* play("at the end")
        assert.lengthOf(texts, 320)
        assert.deepStrictEqual(texts, yield* play("at once"))
      }))

    it.effect("M3: a snapshot of a message of many blocks is read, copied and compared like any other", () =>
      Effect.gen(function*() {
        const list = Array.from({ length: 80 }, (_, contentIndex): ReadonlyArray<StreamFn.StreamEvent> => [
          { type: "text_start", contentIndex },
          { type: "text_delta", contentIndex, delta: `${contentIndex}` }
        ]).flat()
        const { recorder } = yield* respond([{ type: "start" }, ...list, { type: "done" }])
        const updates = ofType(recorder.events, "message_update")
        assert.lengthOf(updates, 160)
        for (const { assistantMessageEvent, message } of updates.slice(100)) {
          assert(assistantMessageEvent.type !== "retract")
          const { contentIndex } = assistantMessageEvent
          const expected: unknown = JSON.parse(JSON.stringify(message))
          assert.lengthOf(message.content, contentIndex + 1)
          const views: Record<string, Messages.AssistantMessage> = {
            itself: message,
            "a spread": { ...message },
            "a clone": structuredClone(message),
            "a proxy": new Proxy(message, {}),
            // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has the same properties
            "what copies the descriptors": Object.defineProperties(
              {},
              Object.getOwnPropertyDescriptors(message)
            ) as Messages.AssistantMessage
          }
          for (const [name, view] of Object.entries(views)) {
            assert.isTrue(isDeepStrictEqual({ ...view }, expected), name)
            assert.deepStrictEqual(Object.keys(view), Object.keys(message), name)
          }
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has it as its prototype
          const heir = Object.create(message) as Messages.AssistantMessage
          assert.deepStrictEqual(heir.content, message.content)
          assert.isTrue(isDeepStrictEqual(message, expected))
        }
      }))

    it.effect("M3: message_start and message_end come also when no start came", () =>
      Effect.gen(function*() {
        for (const list of [[{ type: "done" }], [{ type: "error" }], []] as const) {
          const { message, recorder } = yield* respond(list)
          assert.deepStrictEqual(recorder.outline.slice(0, 3), ["agent_start", "turn_start", "U"])
          assert.strictEqual(ofType(recorder.events, "message_start").length, 2)
          assert.strictEqual(ofType(recorder.events, "message_update").length, 0)
          assert.deepStrictEqual(message.content, [])
        }
      }))

    it.effect("M3: what blocks said before done, without a start, is in the one message", () =>
      Effect.gen(function*() {
        const { message, recorder } = yield* respond([
          { type: "text_start", contentIndex: 0 },
          { type: "text_delta", contentIndex: 0, delta: "fine" },
          { type: "text_end", contentIndex: 0 },
          { type: "done" }
        ])
        assert.strictEqual(Messages.text(message), "fine")
        assert.strictEqual(ofType(recorder.events, "message_update").length, 0)
      }))

    it.effect("M3: snapshots of a thousand deltas stay as they were, and show each step", () =>
      Effect.gen(function*() {
        const words = Array.from({ length: 500 }, (_, index) => `${index} `)
        const { recorder } = yield* respond([
          { type: "start" },
          { type: "text_start", contentIndex: 0 },
          { type: "toolcall_start", contentIndex: 1, id: "x", name: "nope" },
          ...words.flatMap((delta): ReadonlyArray<StreamFn.StreamEvent> => [
            { type: "text_delta", contentIndex: 0, delta },
            { type: "toolcall_delta", contentIndex: 1, delta: " " }
          ]),
          { type: "done", stopReason: "stop" }
        ])
        const lengths = ofType(recorder.events, "message_update").flatMap(({ assistantMessageEvent, message }) =>
          assistantMessageEvent.type === "text_delta" ? [Messages.text(message).length] : []
        )
        let length = 0
        assert.deepStrictEqual(lengths, words.map((word) => (length += word.length)))
      }))

    it.effect("M3: a provider that goes on changing the arguments it handed over changes nothing", () =>
      Effect.gen(function*() {
        const args = { n: [1] }
        const { message, recorder } = yield* respond([
          { type: "start" },
          { type: "toolcall_start", contentIndex: 0, id: "x", name: "nope" },
          { type: "toolcall_end", contentIndex: 0, arguments: args },
          { type: "done", stopReason: "stop" }
        ])
        args.n.push(2)
        assert.deepStrictEqual(Messages.toolCalls(message)[0]?.arguments, { n: [1] })
        assert.deepStrictEqual(recorder.changed, [])
      }))

    it.effect("M3: a provider that goes on changing the content it handed over changes nothing", () =>
      Effect.gen(function*() {
        const block = { type: "text" as const, text: "fine" }
        const content = [block]
        const { message, recorder } = yield* respond([{ type: "start" }, { type: "done", content }])
        block.text = "changed"
        content.length = 0
        assert.deepStrictEqual(message.content, [{ type: "text", text: "fine" }])
        assert.deepStrictEqual(recorder.changed, [])
      }))
  })
})
