/**
 * Answers of the chat completions API that are errors: statuses, reports inside a stream, and streams that break.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { ModelErrorReason } from "../../Errors.ts"
import { answer, calls, cut, done, finish, json, piece, sse, text } from "./chunks.ts"
import type { Exchange, ExchangeCase, Expected, OutlineBlock } from "./types.ts"

type Reasons = NonEmptyReadonlyArray<ModelErrorReason>

const x: OutlineBlock = { type: "text", text: "x" }

const error = (reasons: Reasons, content?: ReadonlyArray<OutlineBlock>): Expected & { readonly type: "error" } => ({
  type: "error",
  reasons,
  ...(content !== undefined && { content })
})

const says = (message: string, code?: string | number): object => ({
  error: { message, ...(code !== undefined && { code }) }
})

const statuses: ReadonlyArray<readonly [status: number, reasons: Reasons]> = [
  [400, ["InvalidRequest"]],
  [401, ["Authentication"]],
  [403, ["Authentication"]],
  [404, ["InvalidRequest"]],
  [408, ["Timeout", "Overloaded"]],
  [422, ["InvalidRequest"]],
  [429, ["RateLimited"]],
  [500, ["Overloaded"]],
  [502, ["Overloaded"]],
  [503, ["Overloaded"]]
]

const html = { "content-type": "text/html; charset=utf-8" }

const page = "<!doctype html><title>Not here</title>"

const never = "Fri, 31 Dec 2100 23:59:59 GMT"

const aDecade = 315_360_000_000

const waits: ReadonlyArray<readonly [name: string, value: string, range: readonly [number, number]]> = [
  ["in seconds", "2", [2000, 2000]],
  ["as a date", never, [aDecade, 100 * aDecade]],
  ["as a date that is over", "Thu, 01 Jan 1970 00:00:01 GMT", [0, 0]]
]

const statusCases: ReadonlyArray<ExchangeCase> = [
  ...statuses.map(([status, reasons]): ExchangeCase => ({
    name: `M2: status ${status} is ${reasons[0]}`,
    exchange: json(status, says("No.")),
    expected: error(reasons, [])
  })),
  {
    name: "M2: status 400 with a context overflow is ContextOverflow",
    exchange: json(400, says("This model's maximum context length is 10 tokens.", "context_length_exceeded")),
    expected: error(["ContextOverflow"])
  },
  {
    name: "M2: status 503 with a page of HTML is Overloaded",
    exchange: { status: 503, headers: html, body: [page] },
    expected: error(["Overloaded"])
  },
  {
    name: "M2: status 500 without a body is Overloaded",
    exchange: { status: 500, headers: {}, body: [] },
    expected: error(["Overloaded"])
  },
  ...waits.flatMap(([name, value, range]) =>
    [429, 503].map((status): ExchangeCase => ({
      name: `M2: status ${status} tells how long to wait ${name}`,
      exchange: json(status, says("Later."), { "retry-after": value }),
      expected: { ...error([status === 429 ? "RateLimited" : "Overloaded"]), retryAfter: range }
    }))
  ),
  {
    name: "M2: status 429 without Retry-After does not tell how long to wait",
    exchange: json(429, says("Later.")),
    expected: { ...error(["RateLimited"]), retryAfter: "none" }
  }
]

const said = (...body: Exchange["body"]): Exchange => ({ body })

const streams: ReadonlyArray<ExchangeCase> = [
  {
    name: "M4: an error inside the stream is that error and keeps what had arrived",
    exchange: answer(text("x"), says("Too many people ask.", 429)),
    expected: error(["RateLimited", "Reported"], [x])
  },
  {
    name: "M4: an error inside the stream that does not say which",
    exchange: said(sse(text("x"), says("No."))),
    expected: error(["Reported"], [x])
  },
  {
    name: "M4: an error as the first event",
    exchange: said(sse(says("No."))),
    expected: error(["Reported"], [])
  },
  {
    name: "M4: a connection that is cut before the first byte",
    exchange: { silent: true, body: [cut] },
    expected: error(["Network"], [])
  },
  {
    name: "M4: a connection that is cut behind the headers",
    exchange: said(cut),
    expected: error(["Network", "IncompleteStream"], [])
  },
  {
    name: "M4: a connection that is cut in the middle of an event",
    exchange: said(sse(text("x")), sse(text("lost")).slice(0, 30), cut),
    expected: error(["Network", "IncompleteStream"], [x])
  },
  {
    name: "M4: a connection that is cut in the middle of a call",
    exchange: said(sse(calls(piece(0, "{\"x\":", { id: "a", name: "one" }))), cut),
    expected: error(["Network", "IncompleteStream"])
  },
  {
    name: "M4: a connection that is cut behind the finish reason is an error or complete, and keeps what had arrived",
    exchange: said(sse(text("x"), finish("stop")), cut),
    expected: error(["Network", "IncompleteStream"], [x]),
    or: { type: "message", content: [x], stopReason: "stop" }
  },
  {
    name: "M4: an answer that ends without a finish reason, with `[DONE]`",
    exchange: said(sse(text("x")), done),
    expected: error(["IncompleteStream"], [x])
  },
  {
    name: "M4: an answer that ends without a finish reason and without `[DONE]`",
    exchange: said(sse(text("x"))),
    expected: error(["IncompleteStream"], [x])
  },
  {
    name: "M5: the finish reason `content_filter` is an error and keeps what had arrived",
    exchange: answer(text("x"), finish("content_filter")),
    expected: error(["Reported"], [x])
  },
  {
    name: "M4: an event that is no JSON",
    exchange: said(sse(text("x")), "data: {\"choices\":[{\n\n", sse(finish("stop")), done),
    expected: error(["ProtocolViolation"], [x])
  },
  {
    name: "M4: a page of HTML with the status 200",
    exchange: { headers: html, body: [page] },
    expected: error(["ProtocolViolation"], [])
  },
  {
    name: "M4: an empty answer with the status 200",
    exchange: said(),
    expected: error(["IncompleteStream", "ProtocolViolation"], [])
  },
  {
    name: "M4: only `[DONE]`",
    exchange: said(done),
    expected: error(["IncompleteStream", "ProtocolViolation"], [])
  },
  {
    name: "M4: JSON instead of a stream",
    exchange: json(200, {
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }]
    }),
    expected: error(["ProtocolViolation"]),
    or: { type: "message", content: [x], stopReason: "stop" }
  },
  {
    name: "M4: an error as JSON with the status 200",
    exchange: json(200, says("Too many people ask.", 429)),
    expected: error(["RateLimited", "Reported", "ProtocolViolation"], [])
  }
]

/** What is an error. */
export const brokenExchanges: ReadonlyArray<ExchangeCase> = [...statusCases, ...streams]
