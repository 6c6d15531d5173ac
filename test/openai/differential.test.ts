/**
 * The same bytes give the same final message here and in pi-ai 1.0.3 (`openai-completions`): content, stop reason, usage,
 * response id and model. Where they differ on purpose, the case says how and why.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Messages } from "../../src/index.ts"
import * as Server from "../utils/completionsServer.ts"
import {
  answer,
  calls,
  cut,
  delta,
  done,
  finish,
  piece,
  type Reply,
  sse,
  text,
  usage
} from "../utils/completionsServer.ts"
import { cost, type Fields, finalMessage } from "../utils/yardstick.ts"
import { lastMessage, layer, model } from "./ask.ts"

/** What is compared. */
const outline = (message: Fields): Fields => {
  const { content, responseId, responseModel, rawStopReason, stopReason, usage } = message
  return JSON.parse(JSON.stringify({ content, responseId, responseModel, rawStopReason, stopReason, usage }))
}

const ours = (url: string): Effect.Effect<Fields, unknown> =>
  Effect.map(
    lastMessage({ model: { ...model, cost, reasoning: true } }).pipe(Effect.provide(layer(url))),
    (message: Messages.AssistantMessage) => outline({ ...message })
  )

const theirs = (url: string): Effect.Effect<Fields> => Effect.map(finalMessage(url), outline)

interface Case {
  readonly name: string
  readonly reply: Reply
  /** What is changed in their message to give ours, and why. */
  readonly differs?: readonly [reason: string, (theirs: Fields) => Fields]
}

const counted = { prompt_tokens: 100, completion_tokens: 20, completion_tokens_details: { reasoning_tokens: 5 } }

/** Most servers do not tell; pi writes 0 then. */
const notTold = [
  "reasoning tokens that the server does not tell are left out, not 0",
  (theirs: Fields): Fields =>
    withUsage(theirs, (usage) => {
      const { reasoning: _, ...rest } = usage
      return rest
    })
] as const

const withUsage = (message: Fields, change: (usage: Fields) => Fields): Fields => ({
  ...message,
  usage: change({ ...(message["usage"] as Fields) }) // oxlint-disable-line typescript/no-unsafe-type-assertion -- of a message
})

const withContent = (message: Fields, content: ReadonlyArray<unknown>): Fields => ({ ...message, content })

const x = { type: "text", text: "x" }

const call = (id: string, name: string, args: object) => ({ type: "toolCall", id, name, arguments: args })

const cases: ReadonlyArray<Case> = [
  {
    name: "text",
    reply: answer(delta({ role: "assistant", content: "" }), text("Hel"), text("lo 🙈"), finish("stop"), usage(counted))
  },
  { name: "no usage", reply: answer(text("x"), finish("stop")) },
  { name: "nothing at all", reply: answer(finish("stop"), usage(counted)) },
  { name: "the output limit", reply: answer(text("x"), finish("length"), usage(counted)) },
  { name: "the finish reason `end`", reply: answer(text("x"), finish("end")) },
  { name: "another model", reply: answer({ ...text("x"), model: "other" }, finish("stop")) },
  {
    name: "cached tokens",
    reply: answer(
      text("x"),
      finish("stop"),
      usage({ ...counted, prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 10 } })
    )
  },
  {
    name: "cached tokens as DeepSeek tells them",
    reply: answer(text("x"), finish("stop"), usage({ ...counted, prompt_cache_hit_tokens: 40 }))
  },
  {
    name: "cached tokens as Kimi tells them",
    reply: answer(text("x"), finish("stop"), usage({ ...counted, cached_tokens: 40 }))
  },
  { name: "usage with the last choice", reply: answer(text("x"), { ...finish("stop"), usage: counted }) },
  {
    name: "usage inside the choice",
    reply: answer(text("x"), {
      id: "chatcmpl-1",
      choices: [{ index: 0, delta: {}, finish_reason: "stop", usage: counted }]
    })
  },
  {
    name: "usage without reasoning tokens",
    reply: answer(text("x"), finish("stop"), usage({ prompt_tokens: 3, completion_tokens: 4 })),
    differs: notTold
  },
  {
    name: "thinking as reasoning_content",
    reply: answer(delta({ reasoning_content: "a" }), delta({ reasoning_content: "b" }), text("x"), finish("stop"))
  },
  {
    name: "thinking as reasoning, and again behind the text",
    reply: answer(delta({ reasoning: "a" }), text("x"), delta({ reasoning: "b" }), text("y"), finish("stop"))
  },
  {
    name: "thinking in two fields",
    reply: answer(delta({ reasoning: "a", reasoning_content: "a" }), text("x"), finish("stop"))
  },
  {
    name: "OpenRouter's details",
    reply: answer(
      delta({ reasoning: "a", reasoning_details: [{ type: "reasoning.text", text: "a", format: "f", index: 0 }] }),
      delta({ reasoning: "b", reasoning_details: [{ type: "reasoning.text", text: "b", index: 0 }] }),
      delta({ reasoning_details: [{ type: "reasoning.encrypted", data: "e" }] }),
      text("x"),
      finish("stop")
    )
  },
  {
    name: "OpenRouter's details alone",
    reply: answer(delta({ reasoning_details: [{ type: "reasoning.text", text: "a" }] }), text("x"), finish("stop")),
    differs: [
      "the text in the details is shown where no field repeats it",
      (theirs) =>
        withContent(theirs, [{
          type: "thinking",
          thinking: "a",
          thinkingSignature: "[{\"type\":\"reasoning.text\",\"text\":\"a\"}]"
        }, x])
    ]
  },
  {
    name: "thinking and text in one delta",
    reply: answer(delta({ content: "x", reasoning: "a" }), finish("stop")),
    differs: [
      "thinking comes before the text it led to",
      (theirs) => withContent(theirs, [{ type: "thinking", thinking: "a", thinkingSignature: "reasoning" }, x])
    ]
  },
  {
    name: "two calls, interleaved",
    reply: answer(
      text("x"),
      calls(piece(0, "", { id: "a", name: "one" })),
      calls(piece(1, "{\"y", { id: "b", name: "two" }), piece(0, "{\"x\"")),
      calls(piece(0, ":1}"), piece(1, "\":2}")),
      finish("tool_calls"),
      usage(counted)
    )
  },
  {
    name: "a whole call, and `stop`",
    reply: answer(calls(piece(0, "{\"x\":1}", { id: "a", name: "one" })), finish("stop"))
  },
  {
    name: "whole calls without an index",
    reply: answer(
      calls(piece(undefined, "{}", { id: "a", name: "one" }), piece(undefined, "{}", { id: "b", name: "two" })),
      finish("tool_calls")
    )
  },
  {
    name: "a call without arguments",
    reply: answer(calls(piece(0, "", { id: "a", name: "one" })), finish("function_call"))
  },
  {
    name: "whole calls that all have the index 0",
    reply: answer(
      calls(piece(0, "{\"x\":1}", { id: "a", name: "one" })),
      calls(piece(0, "{\"y\":2}", { id: "b", name: "two" })),
      finish("tool_calls")
    ),
    differs: ["they are two", (theirs) => withContent(theirs, [call("a", "one", { x: 1 }), call("b", "two", { y: 2 })])]
  },
  {
    name: "two calls with one id",
    reply: answer(
      calls(piece(0, "{\"x\":1}", { id: "a", name: "one" })),
      calls(piece(1, "{\"y\":2}", { id: "a", name: "two" })),
      finish("tool_calls")
    ),
    differs: [
      "they are two, and the second gets an id of its own (T8)",
      (theirs) => withContent(theirs, [call("a", "one", { x: 1 }), call("a_2", "two", { y: 2 })])
    ]
  },
  {
    name: "a call without an index in pieces",
    reply: answer(
      calls(piece(undefined, "{\"x\"", { id: "a", name: "one" })),
      calls(piece(undefined, ":1}")),
      finish("tool_calls")
    ),
    differs: [
      "a piece that names nothing goes on with the last call",
      (theirs) => withContent(theirs, [call("a", "one", { x: 1 })])
    ]
  },
  {
    name: "a call without an id",
    reply: answer(calls(piece(0, "{}", { name: "one" })), finish("tool_calls")),
    differs: ["it gets one (T8)", (theirs) => withContent(theirs, [call("call", "one", {})])]
  },
  {
    name: "a refusal",
    reply: answer(delta({ refusal: "x" }), finish("stop")),
    differs: ["it is shown", (theirs) => withContent(theirs, [x])]
  },
  { name: "the content filter", reply: answer(text("x"), finish("content_filter"), usage(counted)) },
  { name: "an unknown finish reason", reply: answer(text("x"), finish("moon"), usage(counted)) },
  { name: "no finish reason", reply: { body: [sse(text("x")), done] } },
  { name: "a cut connection", reply: { body: [sse(text("x")), cut] } },
  { name: "an error in the stream", reply: { body: [sse(text("x"), { error: { message: "no" } })] } },
  { name: "a 400", reply: Server.json(400, { error: { message: "no" } }) },
  { name: "a 401", reply: Server.json(401, { error: { message: "no" } }) },
  {
    name: "CRLF and comments",
    reply: { body: [": hi\r\n\r\n", sse(text("x"), finish("stop")).replaceAll("\n", "\r\n"), "data: [DONE]\r\n\r\n"] }
  },
  {
    name: "nulls",
    reply: answer(
      delta({ content: null, tool_calls: null }),
      { choices: null, id: "chatcmpl-1" },
      text("x"),
      finish("stop")
    )
  }
]

describe("pi-ai's adapter", () => {
  for (const { differs, name, reply } of cases) {
    it.effect(differs === undefined ? name : `${name}: ${differs[0]}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const server = yield* Server.serve(reply)
        const [here, there] = [yield* ours(server.url), yield* theirs(server.url)]
        assert.deepStrictEqual(here, differs === undefined ? there : differs[1](there))
        if (differs !== undefined) assert.notDeepEqual(here, there, "it does not differ any more")
      })))
  }
})
