/** What goes wrong, as a typed error that names the URL and the way out and never holds the key. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Redacted, References } from "effect"
import { TestClock } from "effect/testing"
import { inspect } from "node:util"
import { Agent, Errors, StreamFn } from "../../src/index.ts"
import type { OpenAi } from "../../src/openai/index.ts"
import * as Server from "../utils/completionsServer.ts"
import { cut, done, hold, json, type Reply, sse, text } from "../utils/completionsServer.ts"
import { ask, key, layer, model } from "./ask.ts"

/** The error of one request, whose connection is closed afterwards. */
const errorOf = (reply: Reply, options?: OpenAi.Options): Effect.Effect<Errors.ModelError & { readonly url: string }> =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* Server.serve(reply)
    const { error } = yield* Effect.provide(ask(), layer(server.url, options))
    yield* server.closed
    assert(error !== undefined)
    assert.notInclude(everything(error), key)
    return Object.assign(error, { url: server.url })
  }))

/** All that could be printed of something. */
const everything = (value: unknown): string =>
  `${String(value)} ${JSON.stringify(value)} ${inspect(value, { depth: 20, showHidden: true })}`

const said = (message: string, code: unknown = null) => ({ error: { message, type: "some_error", code } })

describe("An answer that is no success", () => {
  const table: ReadonlyArray<
    readonly [status: number, body: unknown, reason: Errors.ModelErrorReason, ...says: ReadonlyArray<string>]
  > = [
    [300, said("Multiple choices"), "ProtocolViolation", "base URL"],
    [400, said("Unknown parameter: 'x'."), "InvalidRequest", "Unknown parameter: 'x'.", "\"test-model\""],
    [
      400,
      said("This model's maximum context length is 8192 tokens. However, you requested 9000"),
      "ContextOverflow",
      "keepLast"
    ],
    [400, said("too big", "context_length_exceeded"), "ContextOverflow", "too big"],
    [
      400,
      { error: "the request exceeds the available context size. try increasing the context size" },
      "ContextOverflow"
    ],
    [
      400,
      { object: "error", message: "prompt is too long: 213462 tokens > 200000 maximum", code: 400 },
      "ContextOverflow"
    ],
    [413, said("The input (9000 tokens) is longer than the model's context length (8192 tokens)."), "ContextOverflow"],
    [422, { detail: [{ loc: ["body"], msg: "field required" }] }, "InvalidRequest", "field required"],
    [400, said("max_tokens (9000) exceeds the maximum of 4096 output tokens"), "InvalidRequest"],
    [400, [said("Bad schema")], "InvalidRequest", "Bad schema"],
    [
      400,
      { error: { message: "Provider returned error", metadata: { raw: "the real reason" } } },
      "InvalidRequest",
      "the real reason"
    ],
    [401, said("Incorrect API key provided"), "Authentication", "Check that the API key is right"],
    [403, said("Country not supported"), "Authentication", "Country not supported"],
    [402, said("Insufficient credits"), "InvalidRequest", "Insufficient credits"],
    [404, said("The model `x` does not exist"), "InvalidRequest", "no model \"test-model\"", "base URL", "/v1"],
    [408, said("slow"), "Timeout"],
    [429, said("Rate limit reached: too many tokens per minute"), "RateLimited", "Wait a while"],
    [500, said("The server had an error"), "Overloaded", "The server had an error", "try again later"],
    [503, {}, "Overloaded"],
    [529, said("Overloaded"), "Overloaded"]
  ]
  for (const [status, body, reason, ...says] of table) {
    it.effect(`${status} ${JSON.stringify(body).slice(0, 50)} is ${reason}`, () =>
      Effect.gen(function*() {
        const error = yield* errorOf(json(status, body))
        assert.strictEqual(error.reason, reason)
        for (const part of [`${error.url}/chat/completions`, `${status}`, ...says]) assert.include(error.message, part)
        assert.isUndefined(error.retryAfter)
      }))
  }

  it.effect("a 401 without a key says how to give one", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(json(401, said("Missing bearer")), { apiKey: undefined })
      assert.include(error.message, "No API key was sent: set OPENAI_API_KEY")
    }))

  it.effect("what the server says is shortened, and a page of HTML is not repeated", () =>
    Effect.gen(function*() {
      const long = yield* errorOf(json(400, said("x".repeat(100_000))))
      assert.isBelow(long.message.length, 1000)
      const page = yield* errorOf({ status: 502, headers: { "content-type": "text/html" }, body: ["<html><h1>Bad"] })
      assert.deepStrictEqual([page.reason, page.message.includes("<h1>")], ["Overloaded", false])
      const plain = yield* errorOf({ status: 400, headers: {}, body: ["line one\n  line two"] })
      assert.include(plain.message, "line one line two")
    }))

  it.effect("its body may be cut off or be no JSON", () =>
    Effect.gen(function*() {
      const error = yield* errorOf({
        status: 500,
        headers: { "content-type": "application/json" },
        body: ["{\"error", cut]
      })
      assert.strictEqual(error.reason, "Overloaded")
    }))

  it.effect("its body is not waited for without end", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve({ status: 500, headers: {}, body: ["half of a", hold] })
      const fiber = yield* Effect.forkChild(Effect.provide(ask(), layer(server.url)))
      yield* server.holding
      // What was sent arrives in real time, and only then the test clock is waited for.
      while (fiber.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => void setImmediate(resolve)))
        yield* TestClock.adjust("5 seconds")
      }
      const { error } = yield* Fiber.join(fiber)
      yield* server.closed
      assert.strictEqual(error?.reason, "Overloaded")
    })))

  const waits: ReadonlyArray<readonly [headers: Readonly<Record<string, string>>, millis: number | undefined]> = [
    [{ "retry-after": "2" }, 2000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after-ms": "1500", "retry-after": "9" }, 1500],
    [{ "retry-after": "Thu, 01 Jan 1970 00:01:30 GMT" }, 60_000],
    [{ "retry-after": "Thu, 01 Jan 1970 00:00:01 GMT" }, 0],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after-ms": "x", "retry-after": "" }, undefined]
  ]
  for (const [headers, millis] of waits) {
    it.effect(`${JSON.stringify(headers)} asks to wait ${millis} ms`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(30_000)
        for (const status of [429, 503]) {
          assert.strictEqual((yield* errorOf(json(status, said("later"), headers))).retryAfter, millis)
        }
      }))
  }
})

describe("An answer that is no stream of events", () => {
  const html = { "content-type": "text/html; charset=utf-8" }
  const table: ReadonlyArray<readonly [name: string, reply: Reply, ...says: ReadonlyArray<string>]> = [
    ["HTML", { headers: html, body: ["<!doctype html><title>Welcome</title>"] }, "text/html", "Welcome", "/v1"],
    ["JSON", json(200, { models: ["x"] }), "application/json", "models", "/v1"],
    [
      "a whole chat completion",
      json(200, { choices: [{ message: { content: "x" } }] }),
      "application/json",
      "ignores `stream: true`"
    ],
    [
      "the beginning of a long chat completion",
      json(200, { object: "chat.completion", choices: [{ message: { content: "x".repeat(100_000) } }] }),
      "ignores `stream: true`"
    ],
    [
      "a whole chat completion that is called a stream",
      { body: [JSON.stringify({ object: "chat.completion", choices: [{ message: { content: "x" } }] })] },
      "ignores `stream: true`"
    ],
    [
      "plain text",
      { headers: { "content-type": "text/plain" }, body: ["Ollama is running"] },
      "text/plain",
      "Ollama is running"
    ],
    ["nothing", { headers: {}, body: [] }, "without a content type", "is empty"],
    ["an event that is no JSON", { body: ["data: hello\n\n"] }, "no JSON", "hello"],
    [
      "an event that never ends",
      { body: ["data: ", ...Array.from({ length: 6 }, () => "x".repeat(2 ** 21)), "\n\n"] },
      "sent too much"
    ]
  ]
  for (const [name, reply, ...says] of table) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const error = yield* errorOf(reply)
        assert.strictEqual(error.reason, "ProtocolViolation")
        for (const part of [error.url, ...says]) assert.include(error.message, part)
      }))
  }

  it.effect("but one that ends before its first event was cut off", () =>
    Effect.gen(function*() {
      for (const body of [[], ["\n"]]) {
        const error = yield* errorOf({ body })
        assert.strictEqual(error.reason, "IncompleteStream")
        assert.isTrue(error.isRetryable)
      }
    }))

  it.effect("but an error with the status of a success is that error", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(json(200, said("Rate limited", "rate_limit_exceeded")))
      assert.strictEqual(error.reason, "RateLimited")
      assert.include(error.message, "Rate limited")
    }))
})

describe("An error inside the stream", () => {
  const table: ReadonlyArray<readonly [event: string, reason: Errors.ModelErrorReason]> = [
    [sse(said("busy", 429)), "RateLimited"],
    [sse(said("busy", "503")), "Overloaded"],
    [sse({ error: { message: "no", type: "server_error" } }), "Overloaded"],
    [sse({ error: { message: "no", type: "invalid_request_error" } }), "InvalidRequest"],
    [sse({ error: { message: "no", code: "invalid_api_key" } }), "Authentication"],
    [sse({ error: { message: "context window exceeds limit" } }), "ContextOverflow"],
    [sse({ error: { message: "no" } }), "Reported"],
    [sse({ error: "no" }), "Reported"],
    [sse({ object: "error", message: "no", code: 400 }), "InvalidRequest"],
    ["event: error\ndata: no\n\n", "Reported"],
    ["event: error\ndata: {\"message\":\"no\"}\n\n", "Reported"],
    [
      sse({
        id: "x",
        error: { code: 502, message: "no" },
        choices: [{ delta: { content: "" }, finish_reason: "error" }]
      }),
      "Overloaded"
    ]
  ]
  for (const [event, reason] of table) {
    it.effect(`${event.trim().slice(0, 70)} is ${reason}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const server = yield* Server.serve({ body: [sse(text("x")) + event + done] })
        const { error, events } = yield* Effect.provide(ask(), layer(server.url))
        yield* server.closed
        assert(error !== undefined)
        assert.strictEqual(error.reason, reason)
        assert.include(error.message, server.url)
        assert.match(error.message, /\b(no|busy|context)\b/)
        assert.strictEqual(events.at(-1)?.type, "text_delta", "what came before it is kept")
      })))
  }
})

describe("No connection", () => {
  it.effect("to a server that does not run", () =>
    Effect.gen(function*() {
      const { error } = yield* Effect.provide(ask(), layer("http://127.0.0.1:1/v1"))
      assert(error !== undefined)
      assert.strictEqual(error.reason, "Network")
      assert.isTrue(error.isRetryable)
      for (const part of ["http://127.0.0.1:1/v1/chat/completions", "Check that the server runs"]) {
        assert.include(error.message, part)
      }
    }))

  it.effect("where the base URL is none", () =>
    Effect.gen(function*() {
      for (
        const url of ["nonsense", "http://a b/", "localhost 7", "localhost:8080/v1", "127.0.0.1:8080", "ftp://a/v1"]
      ) {
        const { error } = yield* Effect.provide(ask(), layer(url))
        assert(error !== undefined)
        assert.strictEqual(error.reason, "InvalidRequest", url)
        assert.match(error.message, /Check the base URL|the base URL has to begin with http/)
      }
    }))

  it.effect("is made for an agent that was given no model", () =>
    Effect.gen(function*() {
      const { error } = yield* Effect.provide(ask({ model: StreamFn.unknownModel }), layer("http://127.0.0.1:1/v1"))
      assert(error !== undefined)
      assert.strictEqual(error.reason, "InvalidRequest")
      assert.include(error.message, "OpenAi.model(")
    }))

  it.effect("that is cut before the answer begins", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* errorOf({ body: [cut] })).reason, "Network")
    }))

  it.effect("with a key that no header can hold", () =>
    Effect.gen(function*() {
      for (const bad of ["sk-“quoted-key”", "sk-one\nsk-two"]) {
        const { error } = yield* Effect.provide(ask(), layer("http://127.0.0.1:1", { apiKey: Redacted.make(bad) }))
        assert(error !== undefined)
        assert.strictEqual(error.reason, "Authentication")
        assert.notInclude(everything(error), "sk-")
      }
    }))
})

describe("A hook that fails", () => {
  it.effect("is the failure of the response", () =>
    Effect.gen(function*() {
      const error = new Errors.ModelError({ reason: "InvalidRequest", message: "not with me" })
      const options: ReadonlyArray<OpenAi.Options> = [
        { onPayload: () => Effect.fail(error) },
        { onResponse: () => Effect.fail(error) }
      ]
      for (const each of options) assert.include((yield* errorOf({ body: [done] }, each)).message, "not with me")
    }))
})

describe("The key", () => {
  const echo = `You sent Bearer ${key}, and sk-proj-abc*********xyz. `
  const replies: ReadonlyArray<readonly [name: string, reply: Reply]> = [
    ["a 401", json(401, said(echo))],
    ["a 400 of text", { status: 400, headers: { "content-type": "text/plain", "x-echo": key }, body: [echo] }],
    ["a very long 500", json(500, said(`${"x".repeat(590)}${key}`))],
    ["HTML", { headers: { "content-type": "text/html" }, body: [`<p>${echo}`] }],
    ["JSON", json(200, { echo })],
    ["plain text", { headers: {}, body: [echo] }],
    ["an error in the stream", { body: [sse(said(echo))] }],
    ["an event that is no JSON", { body: [`data: ${echo}\n\n`] }],
    ["a cut connection", { body: [sse(text("x")), cut] }]
  ]
  for (const [name, reply] of replies) {
    it.effect(`shows in no error, message or log: ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const server = yield* Server.serve(reply)
        const logs: Array<unknown> = []
        const logger = Logger.make((entry) => void logs.push(entry.message, entry.cause))
        const run = yield* Effect.gen(function*() {
          const agent = yield* Agent.make({ model })
          return yield* agent.prompt("hi")
        }).pipe(
          Effect.provide(layer(server.url)),
          Effect.provide(Logger.layer([logger])),
          Effect.provideService(References.MinimumLogLevel, "All")
        )
        assert.strictEqual(run.outcome._tag, "Failed")
        for (const secret of [key, "sk-test", "sk-proj-abc"]) {
          assert.notInclude(everything(run.outcome), secret)
          assert.notInclude(everything(run.messages), secret)
          assert.notInclude(everything(logs), secret)
        }
      })))
  }

  it.effect("in another header shows in no error either", () =>
    Effect.gen(function*() {
      const error = yield* errorOf(json(401, said("You sent azure-secret-key")), {
        apiKey: undefined,
        headers: { "api-key": "azure-secret-key" }
      })
      assert.notInclude(everything(error), "azure-secret-key")
      assert.include(error.message, "Check that the API key is right")
    }))
})
