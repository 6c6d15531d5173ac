/**
 * Answers of the chat completions API that are complete, however they are written: bytes, lines and chunks as servers send
 * them, and the message they are.
 */
import { answer, calls, delta, done, finish, hold, pause, piece, sse, text, usage } from "./chunks.ts"
import type { Exchange, ExchangeCase, Expected, OutlineBlock, Piece } from "./types.ts"

const counted = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 40 }
}

const tokens = { input: 60, output: 20, cacheRead: 40 }

const words = "Hé 🙈 llo"

const hello: Expected = {
  type: "message",
  content: [{ type: "text", text: words }],
  stopReason: "stop",
  usage: tokens
}

/** One answer, in many forms. */
const events =
  sse(delta({ role: "assistant", content: "" }), text("Hé 🙈"), text(" llo"), finish("stop"), usage(counted)) +
  done

const said = (body: ReadonlyArray<Piece>): Exchange => ({ body })

const bytes = new TextEncoder().encode(events)

/** Long enough for the piece before it to be read on its own: two writes may arrive as one. */
const apart = pause(5)

/** In two pieces, of which the first ends behind the first byte of this character. */
const splitInside = (character: string): ReadonlyArray<Piece> => {
  const at = new TextEncoder().encode(events.slice(0, events.indexOf(character))).length
  return [bytes.slice(0, at + 1), apart, bytes.slice(at + 1)]
}

/** In two pieces, of which the first ends behind this character in the middle. */
const splitBehind = (character: string, text: string): ReadonlyArray<Piece> => {
  const at = text.indexOf(character, text.length / 2) + 1
  return [text.slice(0, at), apart, text.slice(at)]
}

const framing: ReadonlyArray<readonly [name: string, exchange: Exchange]> = [
  ["one event a chunk", said(events.split("\n\n").filter((each) => each !== "").map((each) => `${each}\n\n`))],
  ["all events in one chunk", said([events])],
  ["one byte at a time", said(Array.from(bytes, (byte) => Uint8Array.of(byte)))],
  ["lines that end with CRLF", said([events.replaceAll("\n", "\r\n")])],
  ["CRLF that is split in its middle", said(splitBehind("\r", events.replaceAll("\n", "\r\n")))],
  ["lines that end with CR", said([events.replaceAll("\n", "\r")])],
  ["a character that is split between two chunks", said(splitInside("🙈"))],
  ["another character that is split", said(splitInside("é"))],
  ["an event that is split in its middle", said([events.slice(0, 60), apart, events.slice(60)])],
  ["slow bytes", said(events.split("\n\n").flatMap((each) => [each, pause(1), "\n\n", pause(1)]))],
  ["comments and keep-alives", said([`: OK\n\n${events.replaceAll("\n\n", "\n\n: keep-alive\n\n:\n\n")}`])],
  ["keep-alives inside an event", said([events.replaceAll("data: {", ": keep-alive\ndata: {")])],
  ["fields beside the data", said([events.replaceAll("data: {", "event: message\nid: 1\nretry: 10\ndata: {")])],
  ["no space behind `data:`", said([events.replaceAll("data: ", "data:")])],
  ["data on two lines", said([events.replaceAll(",\"choices\"", ",\ndata: \"choices\"")])],
  ["no `[DONE]`", said([events.replace(done, "")])],
  ["a connection that stays open behind `[DONE]`", said([events, hold])]
]

const message = (
  content: ReadonlyArray<OutlineBlock>,
  stopReason: "stop" | "length" | "toolUse" = "stop"
): Expected => ({
  type: "message",
  content,
  stopReason
})

const x: OutlineBlock = { type: "text", text: "x" }

const call = (id: string, name: string, args: object): OutlineBlock => ({ type: "toolCall", id, name, arguments: args })

const chunks: ReadonlyArray<readonly [name: string, exchange: Exchange, expected: Expected]> = [
  [
    "null content",
    answer(
      delta({ role: "assistant", content: null, tool_calls: null }),
      text("x"),
      delta({ content: null }),
      finish("stop")
    ),
    message([x])
  ],
  [
    "no choices",
    answer({ id: "chatcmpl-1", choices: [] }, text("x"), { id: "chatcmpl-1", choices: null }, finish("stop")),
    message([x])
  ],
  [
    "usage in a last chunk of its own",
    answer(text("x"), finish("stop"), usage(counted)),
    { type: "message", content: [x], stopReason: "stop", usage: tokens }
  ],
  [
    "usage in the chunk that finishes",
    answer(text("x"), { ...finish("stop"), usage: counted }),
    { type: "message", content: [x], stopReason: "stop", usage: tokens }
  ],
  [
    "usage that counts up in every chunk",
    answer({ ...text("x"), usage: { ...counted, completion_tokens: 1 } }, finish("stop"), usage(counted)),
    { type: "message", content: [x], stopReason: "stop", usage: tokens }
  ],
  [
    "usage that is null until the end",
    answer({ ...text("x"), usage: null }, { ...finish("stop"), usage: null }, usage(counted)),
    { type: "message", content: [x], stopReason: "stop", usage: tokens }
  ],
  [
    "thinking in `reasoning_content`",
    answer(
      delta({ reasoning_content: "Hm" }),
      delta({ reasoning_content: "m.", content: null }),
      text("x"),
      finish("stop")
    ),
    message([{ type: "thinking", thinking: "Hmm." }, x])
  ],
  [
    "a surrogate pair escaped in two pieces",
    answer(text("\ud83d"), text("\ude48"), finish("stop")),
    message([{ type: "text", text: "🙈" }])
  ],
  [
    "a call in pieces",
    answer(
      calls(piece(0, "", { id: "a", name: "one" })),
      calls(piece(0, "{\"x\"")),
      calls(piece(0, ":1}")),
      finish("tool_calls")
    ),
    message([call("a", "one", { x: 1 })], "toolUse")
  ],
  [
    "calls whose pieces interleave",
    answer(
      text("x"),
      calls(piece(0, "", { id: "a", name: "one" })),
      calls(piece(1, "{\"y", { id: "b", name: "two" }), piece(0, "{\"x\"")),
      calls(piece(0, ":1}"), piece(1, "\":2}")),
      finish("tool_calls")
    ),
    message([x, call("a", "one", { x: 1 }), call("b", "two", { y: 2 })], "toolUse")
  ],
  [
    "whole calls in one chunk",
    answer(
      calls(piece(0, "{\"x\":1}", { id: "a", name: "one" }), piece(1, "{}", { id: "b", name: "two" })),
      finish("tool_calls")
    ),
    message([call("a", "one", { x: 1 }), call("b", "two", {})], "toolUse")
  ],
  [
    "arguments that are null until they come",
    answer(
      calls(piece(0, null, { id: "a", name: "one" })),
      calls(piece(0, "{\"x\":1}")),
      finish("tool_calls")
    ),
    message([call("a", "one", { x: 1 })], "toolUse")
  ],
  [
    "a surrogate pair in arguments, escaped in two pieces",
    answer(
      calls(piece(0, "{\"x\":\"\ud83d", { id: "a", name: "one" })),
      calls(piece(0, "\ude48\"}")),
      finish("tool_calls")
    ),
    message([call("a", "one", { x: "🙈" })], "toolUse")
  ],
  ["the finish reason `length`", answer(text("x"), finish("length")), message([x], "length")]
]

/** What is complete. */
export const completeExchanges: ReadonlyArray<ExchangeCase> = [
  ...framing.map(([name, exchange]): ExchangeCase => ({ name: `M2: ${name}`, exchange, expected: hello })),
  ...chunks.map(([name, exchange, expected]): ExchangeCase => ({ name: `M2: ${name}`, exchange, expected }))
]
