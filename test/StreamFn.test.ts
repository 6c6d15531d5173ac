import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { ConvertToLlm, Hooks, Messages } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { ofType } from "./utils/events.ts"
import { continueLoop, finish, loop, stage, watched } from "./utils/play.ts"
import { quick } from "./utils/timedTools.ts"

const { calls, text } = ScriptedModel

const call = (id: string, name = "a"): Messages.ToolCall => ({ type: "toolCall", id, name, arguments: {} })

const roles = (messages: ReadonlyArray<Messages.AgentMessage>): string => Transcript.print(messages, { system: true })

/** The only request of a run that continues a transcript. */
const requestOf = (
  messages: ReadonlyArray<Messages.AgentMessage>,
  hooks: ReadonlyArray<Hooks.Hook> = []
): Effect.Effect<ScriptedModel.RecordedRequest, unknown> =>
  Effect.map(continueLoop({ responses: [text("fine")], messages, hooks }), ({ requests }) => requests[0]!)

describe("StreamFn", () => {
  describe("request", () => {
    it.effect("M1: transformContext, conversion, normalise, apiKey and StreamFn, in this order, for every request", () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const noteShape = (name: string, messages: ReadonlyArray<Messages.AgentMessage>) =>
          log.push(`${name} ${Transcript.print(messages)}`)
        const hooks = [
          Hooks.transformContext((messages) => {
            noteShape("transform 1", messages)
            return [Messages.user("1"), ...messages]
          }),
          Hooks.transformContext((messages) => {
            noteShape("transform 2", messages)
            return Effect.succeed([Messages.user("2"), ...messages])
          }),
          Hooks.apiKey(() => {
            log.push("apiKey")
          })
        ]
        const conversion = ConvertToLlm.layer((messages) => {
          noteShape("convert", messages)
          // Cuts the calls from their results: what remains is normalised afterwards.
          return Effect.succeed(messages.filter(Messages.isMessage).filter(({ role }) => role !== "assistant"))
        })
        const model = ScriptedModel.layer([
          ({ messages }) => {
            noteShape("stream", messages)
            return calls([["x", "a", {}]])
          },
          ({ messages }) => {
            noteShape("stream", messages)
            return text("fine")
          }
        ])
        const { agent } = yield* watched({ tools: [quick("a")] }).pipe(
          Effect.provide(Layer.mergeAll(model, conversion, Hooks.layer(...hooks)))
        )
        yield* finish(agent.prompt("go"))
        assert.deepStrictEqual(log, [
          "transform 1 U",
          "transform 2 U U",
          "convert U U U",
          "apiKey",
          "stream U U U",
          "transform 1 U A[x] R(x)",
          "transform 2 U U A[x] R(x)",
          "convert U U U A[x] R(x)",
          "apiKey",
          "stream U U U"
        ])
        assert.strictEqual(Transcript.print(yield* agent.messages), "U A[x] R(x) A")
      }).pipe(Effect.scoped))

    it.effect("M1: every field reaches the StreamFn", () =>
      Effect.gen(function*() {
        const asked: Array<string> = []
        const model = { id: "m", provider: "p", api: "i", custom: 1 }
        const { requests } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools: [quick("a")],
          hooks: [
            Hooks.apiKey(() => undefined),
            Hooks.apiKey(({ id }) => {
              asked.push(id)
              return asked.length === 1 ? "key 1" : Effect.succeed(Redacted.make("key 2"))
            }),
            Hooks.apiKey(() => "not asked for")
          ],
          options: {
            model,
            thinkingLevel: "high",
            sessionId: "s",
            headers: { "x-a": "b" },
            thinkingBudgets: { high: 1000 },
            metadata: { user: "u" }
          }
        })
        assert.deepStrictEqual(
          requests.map(({ apiKey, headers, metadata, model, sessionId, thinkingBudgets, thinkingLevel, tools }) => [
            apiKey === undefined ? undefined : Redacted.value(apiKey),
            headers,
            metadata,
            model,
            sessionId,
            thinkingBudgets,
            thinkingLevel,
            tools.map(({ name }) => name)
          ]),
          ["key 1", "key 2"].map((key) => [
            key,
            { "x-a": "b" },
            { user: "u" },
            model,
            "s",
            { high: 1000 },
            "high",
            ["a"]
          ])
        )
        assert.deepStrictEqual(asked, ["m", "m"])
      }))

    it.effect("M1: what nobody set is undefined, `off` or a model named unknown", () =>
      Effect.gen(function*() {
        const { apiKey, headers, metadata, model, sessionId, thinkingBudgets, thinkingLevel, tools } = yield* requestOf(
          [
            Messages.user("go")
          ]
        )
        assert.deepStrictEqual(
          [apiKey, headers, metadata, model.id, sessionId, thinkingBudgets, thinkingLevel, tools],
          [undefined, undefined, undefined, "unknown", undefined, undefined, "off", []]
        )
      }))

    it.effect("M1: only the final message records the thinking level that was asked for", () =>
      Effect.gen(function*() {
        const { recorder } = yield* loop({ responses: [text("fine")], options: { thinkingLevel: "high" } })
        const snapshots = ofType(recorder.events, "message_update").map(({ message }) => message.thinkingLevel)
        assert.deepStrictEqual(snapshots, [undefined, undefined, undefined])
        assert.deepStrictEqual(ofType(recorder.events, "turn_end").map(({ message }) => message.thinkingLevel), [
          "high"
        ])
      }))

    it.effect("M1: the default conversion drops roles no model knows", () =>
      Effect.gen(function*() {
        const { recorder, requests } = yield* loop({
          responses: [text("fine")],
          // A role this version does not know, as a stored transcript may have.
          messages: JSON.parse(`[{"role":"note","text":"hm","timestamp":1}]`),
          prompts: [Messages.user("go"), Messages.system("Be brief.")]
        })
        assert.strictEqual(roles(requests[0]!.messages), "U S")
        assert.deepStrictEqual(recorder.outline.slice(2, 5), ["U", "S", "A"])
      }))
  })

  describe("normalise", () => {
    const user = Messages.user("go")
    const one = call("x")
    const two = call("y")
    const words = { type: "text", text: "so far" } as const
    const thinking = (thinking: string) => ({ type: "thinking", thinking } as const)
    const empty = { type: "text", text: "" } as const
    const done = (of: Messages.ToolCall) => Messages.toolResult(of, "done")

    const cases: Record<string, readonly [ReadonlyArray<Messages.AgentMessage>, string]> = {
      "the calls of a message that ended in error (B84)": [
        [user, Messages.assistant([words, one], { stopReason: "error" }), user],
        "U A{error} U"
      ],
      "the calls of an aborted message (B10)": [
        [user, Messages.assistant([words, one, two], { stopReason: "aborted" }), user],
        "U A{aborted} U"
      ],
      "the calls of a message that ended in error, with results": [
        [user, Messages.assistant([words, one], { stopReason: "error" }), done(one), user],
        "U A{error} U"
      ],
      "an aborted message with nothing but calls": [
        [user, Messages.assistant([one], { stopReason: "aborted" }), user],
        "U U"
      ],
      "an assistant message without blocks (B09)": [[user, Messages.assistant([]), user], "U U"],
      "an aborted message without blocks (B09)": [
        [user, Messages.assistant([], { stopReason: "aborted", errorMessage: "Request was aborted" }), user],
        "U U"
      ],
      "an assistant message with nothing but empty text": [[user, Messages.assistant([empty, empty]), user], "U U"],
      "an assistant message with nothing but empty thinking": [
        [user, Messages.assistant([thinking(""), empty]), user],
        "U U"
      ],
      "a result whose call is not there": [[user, done(one), user], "U U"],
      "a result whose call comes later": [[user, done(one), Messages.assistant([one]), done(one)], "U A[x] R(x)"],
      "a call whose result is not there": [[user, Messages.assistant([words, one]), user], "U A U"],
      "a message with nothing but a call whose result is not there": [[user, Messages.assistant([one]), user], "U U"],
      "the call without a result, beside one that has it": [
        [user, Messages.assistant([one, two]), done(two), user],
        "U A[y] R(y) U"
      ],
      "the second of two results of one call": [
        [user, Messages.assistant([one]), done(one), done(one), user],
        "U A[x] R(x) U"
      ]
    }
    for (const [name, [messages, expected]] of Object.entries(cases)) {
      it.effect(`M1: leaves out ${name}`, () =>
        Effect.gen(function*() {
          const request = yield* requestOf(messages)
          assert.strictEqual(roles(request.messages), expected)
        }))
    }

    it.effect("M1: keeps everything else as it is: thinking, empty results, ids used again in later turns (B61)", () =>
      Effect.gen(function*() {
        const messages = [
          user,
          Messages.assistant([thinking("hm"), empty, one]),
          Messages.toolResult(one, []),
          Messages.assistant([thinking("hm, hm")]),
          Messages.assistant([one, two]),
          done(one),
          done(two),
          Messages.assistant("cut off", { stopReason: "error", errorMessage: "reset" }),
          user
        ]
        assert.deepStrictEqual((yield* requestOf(messages)).messages, messages)
      }))

    const cut: Record<string, readonly [cut: ReadonlyArray<Messages.AgentMessage>, reported: number]> = {
      "a result": [[user, done(one)], 1],
      "a call": [[user, Messages.assistant([words, one]), user], 1],
      "a call, two results and a second result": [
        [done(one), user, Messages.assistant([one, two]), done(two), done(two), user, done(one)],
        4
      ],
      "nothing": [[user, Messages.assistant([one]), done(one)], 0],
      "nothing but the calls of a message that failed": [
        [user, Messages.assistant([words, one], { stopReason: "error" }), user],
        0
      ]
    }
    for (const [name, [messages, reported]] of Object.entries(cut)) {
      it.effect(`M1 (split-pair): the log tells how much was left out: ${name}`, () =>
        Effect.gen(function*() {
          const [, log] = yield* logged(requestOf([user], [Hooks.transformContext(() => messages)]))
          const lines = log.filter((entry) => entry.includes("left out of the request"))
          assert.deepStrictEqual(lines.map((entry) => Number.parseInt(entry, 10)), reported === 0 ? [] : [reported])
        }))
    }

    it.effect("M1: what a hook cut apart is left out of the request, never of the transcript", () =>
      Effect.gen(function*() {
        const { agent } = yield* watched({ tools: [quick("a")] })
        yield* finish(agent.prompt("go"))
        yield* finish(agent.prompt("again"))
        const requests = yield* ScriptedModel.requests
        assert.deepStrictEqual(requests.map(({ messages }) => Transcript.print(messages)), ["U", "", "A U"])
        assert.strictEqual(Transcript.print(yield* agent.messages), "U A[x] R(x) A U A")
      }).pipe(
        Effect.scoped,
        Effect.provide(stage({
          responses: [calls([["x", "a", {}]]), text("1"), text("2")],
          hooks: [
            // A window of one message, then one of three: the result in them has lost its call.
            Hooks.transformContext((messages) => messages.length < 5 ? messages.slice(-1) : messages.slice(-3))
          ]
        }))
      ))
  })
})
