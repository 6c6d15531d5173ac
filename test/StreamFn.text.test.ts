import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Errors, Hooks, Messages, type StreamFn, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { messagesIn, ofType, type Recorder } from "./utils/events.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { finish, loop, stage, watched } from "./utils/play.ts"
import { noting, quick, tool } from "./utils/timedTools.ts"

const { calls, events, text } = ScriptedModel

/** The first and the second half of an emoji. */
const high = "\ud83d"
const low = "\ude00"

/** Whether everything in the messages that were handed out can be written as UTF-8. */
const wellFormed = (messages: ReadonlyArray<Messages.AgentMessage>): boolean => {
  let holds = true
  JSON.stringify(messages, (key, value: unknown) => {
    if (!key.isWellFormed() || (typeof value === "string" && !value.isWellFormed())) holds = false
    return value
  })
  return holds
}

/** Of every message that ended: while a response is streamed, its last character may not have arrived completely. */
const allWellFormed = (recorder: Recorder): boolean =>
  recorder.events.every((event) => event.type === "message_update" || wellFormed(messagesIn(event)))

describe("StreamFn texts and ids", () => {
  describe("ids of calls", () => {
    const ids = (list: ReadonlyArray<string>) => calls(list.map((id) => [id, "a", {}] as const))

    const cases: Record<string, readonly [given: ReadonlyArray<string>, expected: ReadonlyArray<string>]> = {
      "the same id twice (B60)": [["x", "x"], ["x", "x_2"]],
      "the same id three times": [["x", "x", "x"], ["x", "x_2", "x_3"]],
      "an id that looks like a fresh one, before": [["x_2", "x", "x"], ["x_2", "x", "x_3"]],
      "two ids of their own": [["x", "y"], ["x", "y"]]
    }
    for (const [name, [given, expected]] of Object.entries(cases)) {
      it.effect(`T8: ${name}`, () =>
        Effect.gen(function*() {
          const ran: Array<string> = []
          const asked: Array<string> = []
          const { recorder, requests, result } = yield* loop({
            responses: [ids(given), text("fine")],
            tools: [noting("a", ran)],
            hooks: [Hooks.beforeToolCall(({ toolCall }) => void asked.push(toolCall.id))]
          })
          assert.strictEqual(
            Transcript.print(result.messages),
            `U A[${expected.join(",")}] ${expected.map((id) => `R(${id})`).join(" ")} A`
          )
          assert.deepStrictEqual([ran, asked], [expected, expected])
          assert.deepStrictEqual(ofType(recorder.events, "tool_execution_start").map((e) => e.toolCallId), expected)
          assert.deepStrictEqual(ofType(recorder.events, "tool_execution_end").map((e) => e.toolCallId), expected)
          assert.deepStrictEqual(requests[1]!.messages.flatMap(Messages.toolCalls).map(({ id }) => id), expected)
        }))
    }

    it.effect("T8: a fresh id is given when the block opens", () =>
      Effect.gen(function*() {
        const { recorder } = yield* loop({ responses: [ids(["x", "x"]), text("fine")], tools: [quick("a")] })
        const shown = ofType(recorder.events, "message_update").map(({ message }) =>
          Messages.toolCalls(message).map(({ id }) => id).join()
        )
        assert.deepStrictEqual([...new Set(shown)], ["x", "x,x_2", ""])
      }))

    it.effect("T8: empty ids get fresh ones, each another", () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const { result } = yield* loop({ responses: [ids(["", "", "x", ""]), text("fine")], tools: [noting("a", ran)] })
        const given = result.messages.flatMap(Messages.toolCalls).map(({ id }) => id)
        assert.strictEqual(new Set(given).size, 4)
        assert.isTrue(given.every((id) => id.length > 0))
        assert.strictEqual(given[2], "x")
        assert.deepStrictEqual(ran, given)
      }))

    it.effect("T8: an id that an earlier call was given is not given again", () =>
      Effect.gen(function*() {
        const { result } = yield* loop({
          responses: [ids(["x", "x", "x_2", "x_2"]), text("fine")],
          tools: [quick("a")]
        })
        const given = result.messages.flatMap(Messages.toolCalls).map(({ id }) => id)
        assert.deepStrictEqual(given.slice(0, 2), ["x", "x_2"])
        assert.strictEqual(new Set(given).size, 4)
      }))

    it.effect("T8: the content of done is treated alike", () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const call = (id: string): Messages.ToolCall => ({ type: "toolCall", id, name: "a", arguments: {} })
        const { result } = yield* loop({
          responses: [
            events([{ type: "start" }, {
              type: "done",
              stopReason: "toolUse",
              content: [call("x"), call("x"), call("")]
            }]),
            text("fine")
          ],
          tools: [noting("a", ran)]
        })
        const given = result.messages.flatMap(Messages.toolCalls).map(({ id }) => id)
        assert.deepStrictEqual(given.slice(0, 2), ["x", "x_2"])
        assert.strictEqual(new Set(given).size, 3)
        assert.deepStrictEqual(ran, given)
      }))

    it.effect("T8: ids used again in later turns stay, and pair by position (B61)", () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const { requests, result } = yield* loop({
          responses: [ids(["x"]), ids(["x", "y"]), ids(["x"]), text("fine")],
          tools: [noting("a", ran)]
        })
        assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) A[x,y] R(x) R(y) A[x] R(x) A")
        assert.strictEqual(Transcript.print(requests[3]!.messages), "U A[x] R(x) A[x,y] R(x) R(y) A[x] R(x)")
        assert.deepStrictEqual(ran, ["x", "x", "y", "x"])
      }))
  })

  describe("lone surrogates", () => {
    it.effect("T9, I6: in what the model says they become U+FFFD (B74)", () =>
      Effect.gen(function*() {
        const { recorder, result } = yield* loop({
          responses: [events([
            { type: "start" },
            { type: "thinking_start", contentIndex: 0 },
            { type: "thinking_delta", contentIndex: 0, delta: `hm${low}` },
            { type: "thinking_end", contentIndex: 0 },
            { type: "text_start", contentIndex: 1 },
            { type: "text_delta", contentIndex: 1, delta: `a${high}` },
            { type: "text_delta", contentIndex: 1, delta: "b" },
            { type: "text_delta", contentIndex: 1, delta: `c${high}` },
            { type: "text_end", contentIndex: 1 },
            { type: "done" }
          ])]
        })
        assert.deepStrictEqual(
          result.messages.flatMap((message) => message.role === "assistant" ? message.content : []),
          [{ type: "thinking", thinking: "hm\ufffd" }, { type: "text", text: "a\ufffdbc\ufffd" }]
        )
        assert.isTrue(allWellFormed(recorder))
      }))

    it.effect("T9: a pair that arrives in two deltas is one character", () =>
      Effect.gen(function*() {
        const { recorder, result } = yield* loop({
          responses: [events([
            { type: "start" },
            { type: "text_start", contentIndex: 0 },
            { type: "text_delta", contentIndex: 0, delta: `a${high}` },
            { type: "text_delta", contentIndex: 0, delta: `${low}b` },
            { type: "text_end", contentIndex: 0 },
            { type: "thinking_start", contentIndex: 1 },
            { type: "thinking_delta", contentIndex: 1, delta: high },
            { type: "thinking_delta", contentIndex: 1, delta: low },
            { type: "thinking_end", contentIndex: 1 },
            { type: "done" }
          ])]
        })
        assert.deepStrictEqual(
          result.messages.flatMap((message) => message.role === "assistant" ? message.content : []),
          [{ type: "text", text: "a😀b" }, { type: "thinking", thinking: "😀" }]
        )
        assert.isTrue(allWellFormed(recorder))
      }))

    it.effect("T9: half a character is well-formed when the stream breaks off behind it (A2)", () =>
      Effect.gen(function*() {
        const { recorder, result } = yield* loop({
          responses: [events([
            { type: "start" },
            { type: "text_start", contentIndex: 0 },
            { type: "text_delta", contentIndex: 0, delta: `a${high}` }
          ], { error: new Errors.ModelError({ reason: "Network", message: `reset${low}` }) })]
        })
        const last = result.messages.at(-1)
        assert(last?.role === "assistant")
        assert.match(Messages.text(last), /^a\ufffd?$/)
        assert.strictEqual(last.errorMessage, "reset\ufffd")
        assert.isTrue(allWellFormed(recorder))
      }))

    const streamed: Record<string, ReadonlyArray<StreamFn.StreamEvent>> = {
      "escaped in the text": [{ type: "toolcall_delta", contentIndex: 0, delta: "{\"te\\ud83dxt\":[\"a\\ud99c\"]}" }],
      "raw in the text": [
        { type: "toolcall_delta", contentIndex: 0, delta: `{"te${high}` },
        { type: "toolcall_delta", contentIndex: 0, delta: `xt":["a${low}"]}` }
      ]
    }
    const check = (response: ReadonlyArray<StreamFn.StreamEvent>) =>
      Effect.gen(function*() {
        const got: Array<unknown> = []
        const { recorder, requests, result } = yield* loop({
          responses: [
            events([
              { type: "start" },
              { type: "toolcall_start", contentIndex: 0, id: "x", name: "a" },
              ...response,
              { type: "done", stopReason: "toolUse" }
            ]),
            text("fine")
          ],
          tools: [Tools.dynamic("a", {
            description: "Takes anything.",
            parameters: { type: "object" },
            execute: (args) =>
              Effect.sync(() => {
                got.push(args)
                return "done"
              })
          })]
        })
        assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) A")
        assert.deepStrictEqual(got, [{ "te\ufffdxt": ["a\ufffd"] }])
        assert.deepStrictEqual(result.messages.flatMap(Messages.toolCalls)[0]?.arguments, { "te\ufffdxt": ["a\ufffd"] })
        assert.isTrue(allWellFormed(recorder))
        assert.isTrue(wellFormed(requests[1]!.messages))
        const starts = ofType(recorder.events, "tool_execution_start")
        assert.isTrue(JSON.stringify(starts).isWellFormed() && !JSON.stringify(starts).includes("\\ud"))
      })
    for (const [name, deltas] of Object.entries(streamed)) {
      it.effect(`T9, I6: in arguments, ${name} (B74)`, () =>
        check([...deltas, { type: "toolcall_end", contentIndex: 0 }]))
    }
    it.effect("T9, I6: in arguments that come parsed (B74)", () =>
      check([{ type: "toolcall_end", contentIndex: 0, arguments: { [`te${high}xt`]: [`a${low}`] } }]))

    const fields: Record<string, ReadonlyArray<StreamFn.StreamEvent>> = {
      "the id of a call": [{ type: "toolcall_start", contentIndex: 0, id: `x${high}`, name: "a" }],
      "the name of a call": [{ type: "toolcall_start", contentIndex: 0, id: "x", name: `a${high}` }],
      "the response id": [{ type: "start", responseId: `r${high}` }],
      "the name of the model that answered": [{ type: "start", responseModel: `m${high}` }],
      "the provider's stop reason": [{ type: "done", rawStopReason: `raw${high}` }],
      "the namespace of a call": [
        { type: "toolcall_start", contentIndex: 0, id: "x", name: "a", namespace: `n${high}` }
      ],
      "the provider's thinking level": [{ type: "done", providerThinkingLevel: `l${high}` }],
      "the signature of thinking": [
        { type: "thinking_start", contentIndex: 0 },
        { type: "thinking_end", contentIndex: 0, thinkingSignature: `s${high}` }
      ],
      "the content of done": [{
        type: "done",
        content: [
          { type: "thinking", thinking: `t${high}`, thinkingSignature: `s${high}` },
          { type: "text", text: `t${high}`, textSignature: `s${high}` }
        ]
      }],
      "the calls in the content of done": [{
        type: "done",
        stopReason: "stop",
        content: [{
          type: "toolCall",
          id: `x${high}`,
          name: `a${high}`,
          arguments: { [`k${high}`]: `v${high}` },
          thoughtSignature: `s${high}`,
          namespace: `n${high}`
        }]
      }],
      "the signature of a text": [
        { type: "text_start", contentIndex: 0 },
        { type: "text_end", contentIndex: 0, textSignature: `s${high}` }
      ],
      "the signature of a call": [
        { type: "toolcall_start", contentIndex: 0, id: "x", name: "a" },
        { type: "toolcall_end", contentIndex: 0, thoughtSignature: `t${high}` }
      ]
    }
    for (const [name, list] of Object.entries(fields)) {
      it.effect(`T9, I6: in ${name}`, () =>
        Effect.gen(function*() {
          const { result } = yield* loop({
            responses: [
              events([...list, { type: "done", stopReason: "toolUse" }]),
              text("fine")
            ]
          })
          assert.isTrue(wellFormed(result.messages))
        }))
    }

    const outputs: Record<string, Effect.Effect<Tools.ToolOutput, unknown>> = {
      "a text": Effect.succeed(`x${high}`),
      "content": Effect.succeed([{ type: "text", text: `x${high}` }]),
      "details": Effect.succeed(Tools.result({ text: "x", details: { [`k${low}`]: [`v${high}`] } })),
      "a failure": Effect.fail(`x${high}`),
      "a defect": Effect.die(new Error(`x${high}`))
    }
    for (const [name, output] of Object.entries(outputs)) {
      it.effect(`T9, I6: in ${name} of a tool (B74)`, () =>
        Effect.gen(function*() {
          const { recorder, requests, result } = yield* loop({
            responses: [calls([["x", "a", {}]]), text("fine")],
            tools: [tool("a", () => output)]
          })
          const answer = result.messages.find((message) => message.role === "toolResult")
          assert(answer?.role === "toolResult")
          if (name === "details") assert.deepStrictEqual(answer.details, { "k\ufffd": ["v\ufffd"] })
          else assert.include(Messages.text(answer), "x\ufffd")
          assert.isTrue(allWellFormed(recorder))
          assert.isTrue(wellFormed(requests[1]!.messages))
        }))
    }

    it.effect("T9, I6: in prompts, steers, follow-ups and the system prompt (B74)", () =>
      Effect.gen(function*() {
        const { agent, before, recorder } = yield* watched({ systemPrompt: `Be brief${high}` })
        yield* agent.steer(`S${high}`)
        yield* agent.followUp(Messages.user([{ type: "text", text: `F${low}` }]))
        yield* finish(agent.prompt(`go${high}`))
        const transcript = yield* agent.messages
        assert.deepStrictEqual(
          transcript.filter(({ role }) => role === "user" || role === "system").map(Messages.text),
          ["Be brief\ufffd", "go\ufffd", "S\ufffd", "F\ufffd"]
        )
        const requests = yield* ScriptedModel.requests
        assert.isTrue(requests.every(({ messages }) => wellFormed(messages)))
        assert.isTrue(allWellFormed(recorder))
        assertInvariants({ before, events: recorder.events, transcript, requests })
      }).pipe(Effect.scoped, Effect.provide(stage({ responses: [text("1"), text("2")] }))))

    it.effect("T9, I6: in messages a hook appends (B74)", () =>
      Effect.gen(function*() {
        const { requests, result } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools: [quick("a")],
          hooks: [Hooks.prepareNextTurn(() => ({ messages: [Messages.user(`hook${high}`)] }))]
        })
        assert.isTrue(wellFormed(requests[1]!.messages))
        assert.isTrue(wellFormed(result.messages))
      }))

    const replacing: Record<string, Hooks.Hook> = {
      "prepareRequest": Hooks.prepareRequest(() => ({ context: { messages: [Messages.user(`hook${high}`)] } })),
      "transformContext": Hooks.transformContext(() => [Messages.user(`hook${high}`)])
    }
    for (const [name, hook] of Object.entries(replacing)) {
      it.effect(`T9: in the context that ${name} makes (B74)`, () =>
        Effect.gen(function*() {
          const { requests } = yield* loop({ responses: [text("fine")], hooks: [hook] })
          assert.deepStrictEqual(requests[0]!.messages.map(Messages.text), ["hook\ufffd"])
        }))
    }

    it.effect("T9: in the context a loop is given (B74)", () =>
      Effect.gen(function*() {
        const { requests } = yield* loop({
          responses: [text("fine")],
          messages: [Messages.user(`before${high}`), Messages.assistant(`hm${low}`)]
        })
        assert.deepStrictEqual(requests[0]!.messages.map(Messages.text), ["before\ufffd", "hm\ufffd", "go"])
      }))

    it.effect("T9, I6: in the transcript an agent is given (B74)", () =>
      Effect.gen(function*() {
        const { agent } = yield* watched({ messages: [Messages.user(`before${high}`), Messages.assistant(`hm${low}`)] })
        yield* agent.appendMessages([Messages.user(`more${high}`)])
        yield* finish(agent.prompt("go"))
        const [request] = yield* ScriptedModel.requests
        const expected = ["before\ufffd", "hm\ufffd", "more\ufffd", "go"]
        assert.deepStrictEqual(request!.messages.filter(({ role }) => role !== "system").map(Messages.text), expected)
        assert.isTrue(wellFormed(yield* agent.messages))
        yield* agent.setMessages([Messages.user(`new${high}`)])
        assert.isTrue(wellFormed(yield* agent.messages))
      }).pipe(Effect.scoped, Effect.provide(stage({ responses: [text("fine")] }))))

    it.effect("T9: whole characters stay as they are, everywhere", () =>
      Effect.gen(function*() {
        const given = "größer 😀 \u{10ffff} \u0000 \ud7ff \ue000"
        const { result } = yield* loop({
          responses: [
            calls([["x", "echo", { text: given }]], { text: given, chunks: 50 }),
            text(given, { chunks: 50 })
          ],
          tools: [Tools.make("echo", {
            description: "Returns its argument.",
            parameters: Schema.Struct({ text: Schema.String }),
            execute: ({ text }) => Effect.succeed(text)
          })],
          prompts: [Messages.user(given)]
        })
        const [prompt, call, answer, last] = result.messages.filter(({ role }) => role !== "system")
        assert.deepStrictEqual([prompt!, call!, answer!, last!].map(Messages.text), [given, given, given, given])
        assert.deepStrictEqual(Messages.toolCalls(call!)[0]?.arguments, { text: given })
      }))
  })
})
