/** Answers over a real connection: what arrives, and that nothing stays open. */
import { NodeHttpClient } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, StreamFn } from "../../src/index.ts"
import { OpenAi } from "../../src/openai/index.ts"
import * as Server from "../utils/completionsServer.ts"
import { answer, calls, cut, delta, done, finish, hold, piece, sse, text, usage } from "../utils/completionsServer.ts"
import { ask, type Given, layer, model, request } from "./ask.ts"

/** Asks a server once; afterwards none of its answers is open. */
const askServer = (
  reply: Server.Reply,
  fields?: Partial<StreamFn.StreamRequest>,
  options?: OpenAi.Options
): Effect.Effect<Given & { readonly server: Server.CompletionsServer }> =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* Server.serve(reply)
    const given = yield* Effect.provide(ask(fields), layer(server.url, options))
    yield* server.closed
    return { ...given, server }
  }))

const textOf = ({ events }: Given): string =>
  events.flatMap((event) => event.type === "text_delta" ? [event.delta] : []).join("")

const last = ({ events }: Given): StreamFn.StreamEvent | undefined => events.at(-1)

describe("An answer", () => {
  it.effect("is text, its usage and its end", () =>
    Effect.gen(function*() {
      const { error, events } = yield* askServer(
        answer(
          delta({ role: "assistant", content: "" }),
          text("Hel"),
          text("lo"),
          finish("stop"),
          usage({
            prompt_tokens: 10,
            completion_tokens: 2,
            total_tokens: 12,
            prompt_tokens_details: { cached_tokens: 4 }
          })
        ),
        { model: { ...model, cost: { input: 1e6, output: 2e6, cacheRead: 5e5, cacheWrite: 0 } } }
      )
      assert.isUndefined(error)
      assert.deepStrictEqual(events, [
        { type: "start", responseId: "chatcmpl-1" },
        { type: "text_start", contentIndex: 0 },
        { type: "text_delta", contentIndex: 0, delta: "Hel" },
        { type: "text_delta", contentIndex: 0, delta: "lo" },
        { type: "text_end", contentIndex: 0 },
        {
          type: "done",
          stopReason: "stop",
          responseId: "chatcmpl-1",
          rawStopReason: "stop",
          usage: {
            input: 6,
            output: 2,
            cacheRead: 4,
            cacheWrite: 0,
            totalTokens: 12,
            cost: { input: 6, output: 4, cacheRead: 2, cacheWrite: 0, total: 12 }
          }
        }
      ])
    }))

  it.effect("asks for what it needs", () =>
    Effect.gen(function*() {
      const { server } = yield* askServer(answer(text("x"), finish("stop")))
      const [asked] = server.asked
      assert.strictEqual(asked!.path, "/v1/chat/completions")
      assert.strictEqual(asked!.headers.authorization, "Bearer sk-test-0123456789abcdef")
      // Nobody there knows what to do with them.
      for (const name of ["traceparent", "b3"]) assert.isUndefined(asked!.headers[name], name)
      assert.strictEqual(asked!.headers["content-type"], "application/json")
      assert.deepStrictEqual(asked!.body, {
        model: "test-model",
        messages: [{ role: "user", content: "hi" }],
        stream: true,
        stream_options: { include_usage: true }
      })
    }))

  it.effect("comes in the lists in which the network brought it", () =>
    Effect.gen(function*() {
      const many = Array.from({ length: 50 }, (_, n) => text(`${n} `))
      const given = yield* askServer({ body: [sse(...many), sse(finish("stop")), done] })
      assert.isBelow(given.lists.length, 10)
      assert.strictEqual(given.lists[0]![0]!.type, "start")
    }))

  it.effect("may come with CRLF, comments, keep-alives, event names, ids, retry lines and a BOM", () =>
    Effect.gen(function*() {
      const crlf = (value: unknown) => `id: 7\r\nevent: message\r\ndata: ${JSON.stringify(value)}\r\n\r\n`
      const given = yield* askServer({
        body: [
          "\uFEFF: OPENROUTER PROCESSING\r\n\r\n",
          "retry: 1000\r\n\r\n",
          ": keep-alive\n\n",
          crlf(text("a")),
          ":\n\n",
          `data:${JSON.stringify(text("b"))}\n\n`,
          crlf(finish("stop")),
          "data: [DONE]\r\n\r\n"
        ]
      })
      assert.deepStrictEqual([given.error, textOf(given)], [undefined, "ab"])
    }))

  it.effect("may end without [DONE], and without the empty line behind it", () =>
    Effect.gen(function*() {
      const plain = yield* askServer({ body: [sse(text("a"), finish("stop"))] })
      assert.deepStrictEqual([plain.error, last(plain)?.type], [undefined, "done"])
      const bare = yield* askServer({ body: [sse(text("a")), `data: ${JSON.stringify(finish("stop"))}`] })
      assert.deepStrictEqual([bare.error, last(bare)?.type], [undefined, "done"])
    }))

  // In real time: the connection is kept for a moment.
  it.live("is read to [DONE] and no further", () =>
    Effect.gen(function*() {
      const given = yield* askServer({ body: [sse(text("a"), finish("stop")), done, sse(text("b")), hold] })
      assert.deepStrictEqual([given.error, textOf(given)], [undefined, "a"])
    }))

  it.effect("may hold nulls and what nobody knows", () =>
    Effect.gen(function*() {
      const given = yield* askServer(answer(
        delta({ role: "assistant", content: null, tool_calls: null, reasoning: null, new_field: [1] }),
        { id: "x", choices: null },
        { id: "x", choices: [{ index: 0, delta: null, finish_reason: null }], usage: null, error: null },
        null,
        text("a"),
        { choices: [] },
        finish("stop"),
        usage({ prompt_tokens: null, completion_tokens: "many" })
      ))
      assert.deepStrictEqual([given.error, textOf(given)], [undefined, "a"])
      const end = last(given)
      assert.isTrue(end?.type === "done" && end.usage?.totalTokens === 0)
    }))

  it.effect("tells which model answered", () =>
    Effect.gen(function*() {
      const { events } = yield* askServer(answer({ ...text("x"), model: "test-model-2026" }, finish("stop")))
      assert.deepInclude(events[0], { type: "start", responseModel: "test-model-2026" })
    }))

  it.effect("of thinking, in any of its fields, says where it came from", () =>
    Effect.gen(function*() {
      for (const field of ["reasoning_content", "reasoning", "reasoning_text"]) {
        const { events } = yield* askServer(
          answer(delta({ [field]: "hm" }), delta({ [field]: "m" }), text("x"), finish("stop"))
        )
        assert.deepStrictEqual(events.slice(1, -1), [
          { type: "thinking_start", contentIndex: 0 },
          { type: "thinking_delta", contentIndex: 0, delta: "hm" },
          { type: "thinking_delta", contentIndex: 0, delta: "m" },
          { type: "text_start", contentIndex: 1 },
          { type: "text_delta", contentIndex: 1, delta: "x" },
          { type: "thinking_end", contentIndex: 0, thinkingSignature: field },
          { type: "text_end", contentIndex: 1 }
        ])
      }
    }))

  it.effect("of thinking in two fields is read once", () =>
    Effect.gen(function*() {
      const { events } = yield* askServer(
        answer(delta({ reasoning_content: "hm", reasoning: "hm" }), text("x"), finish("stop"))
      )
      assert.strictEqual(events.filter((event) => event.type === "thinking_delta").length, 1)
    }))

  it.effect("with OpenRouter's details keeps them for the next request", () =>
    Effect.gen(function*() {
      const detail = (text: string, more: object = {}) => ({ type: "reasoning.text", text, index: 0, ...more })
      const { events } = yield* askServer(answer(
        delta({ reasoning: "a", reasoning_details: [detail("a", { format: "f" })] }),
        delta({ reasoning: "b", reasoning_details: [detail("b"), 7] }),
        delta({ reasoning_details: [detail("", { signature: "s" })] }),
        delta({ reasoning_details: [{ type: "reasoning.encrypted", data: "e" }] }),
        text("x"),
        finish("stop")
      ))
      const deltas = events.flatMap((event) => event.type === "thinking_delta" ? [event.delta] : [])
      assert.deepStrictEqual(deltas, ["a", "b"])
      const end = events.find((event) => event.type === "thinking_end")
      assert.deepStrictEqual(JSON.parse(end?.thinkingSignature ?? ""), [
        { type: "reasoning.text", text: "ab", index: 0, format: "f", signature: "s" },
        { type: "reasoning.encrypted", data: "e" }
      ])
    }))

  it.effect("with nothing but details shows their text", () =>
    Effect.gen(function*() {
      const { events } = yield* askServer(answer(
        delta({ reasoning_details: [{ type: "reasoning.summary", summary: "I th" }] }),
        delta({ reasoning_details: [{ type: "reasoning.summary", summary: "ink" }] }),
        text("x"),
        finish("stop")
      ))
      const deltas = events.flatMap((event) => event.type === "thinking_delta" ? [event.delta] : [])
      assert.deepStrictEqual(deltas, ["I th", "ink"])
    }))

  it.effect("that is a refusal is text", () =>
    Effect.gen(function*() {
      assert.strictEqual(textOf(yield* askServer(answer(delta({ refusal: "No." }), finish("stop")))), "No.")
    }))
})

describe("Its end", () => {
  const ends: ReadonlyArray<readonly [finish: string, stopReason: string]> = [
    ["stop", "stop"],
    ["end", "stop"],
    ["length", "length"],
    ["tool_calls", "toolUse"],
    ["function_call", "toolUse"],
    ["content_filter", "error"],
    ["network_error", "error"],
    ["something_new", "error"]
  ]
  for (const [reason, stopReason] of ends) {
    it.effect(`${reason} is ${stopReason}`, () =>
      Effect.gen(function*() {
        const given = yield* askServer(answer(text("x"), finish(reason)))
        const end = last(given)
        assert(end?.type === "done" || end?.type === "error")
        assert.deepStrictEqual(
          [end.type, end.stopReason, end.rawStopReason],
          [stopReason === "error" ? "error" : "done", stopReason, reason]
        )
        assert.strictEqual(end.error?.reason, stopReason === "error" ? "Reported" : undefined)
        if (end.error !== undefined) assert.include(end.error.message, reason)
      }))
  }

  it.effect("without a finish reason the answer broke off, with [DONE] or without", () =>
    Effect.gen(function*() {
      for (const body of [[sse(text("x"))], [sse(text("x")), done]]) {
        const { error, events } = yield* askServer({ body })
        assert.strictEqual(error?.reason, "IncompleteStream")
        assert.strictEqual(events.at(-1)?.type, "text_delta", "what had arrived is kept")
      }
    }))

  it.effect("of a server that gives no finish reasons is that of its content", () =>
    Effect.gen(function*() {
      const fields = { model: OpenAi.model("test-model", { compat: { supportsFinishReason: false } }) }
      assert.deepInclude(last(yield* askServer(answer(text("x")), fields)), { type: "done", stopReason: "stop" })
      const call = calls(piece(0, "{}", { id: "a", name: "t" }))
      assert.deepInclude(last(yield* askServer(answer(call), fields)), { type: "done", stopReason: "toolUse" })
    }))

  it.effect("is a failure where the connection is cut", () =>
    Effect.gen(function*() {
      const { error, events } = yield* askServer({ body: [sse(text("x")), cut] })
      assert.strictEqual(error?.reason, "Network")
      assert.strictEqual(events.at(-1)?.type, "text_delta", "what had arrived is kept")
    }))
})

describe("The connection", () => {
  it.effect("is closed by an interruption, before the answer and in the middle of it", () =>
    Effect.scoped(Effect.gen(function*() {
      const replies: ReadonlyArray<Server.Reply> = [
        { silent: true, body: [hold] },
        { body: [hold] },
        { body: [sse(text("x")), hold] },
        { status: 500, body: ["half", hold] }
      ]
      for (const reply of replies) {
        const server = yield* Server.serve(reply)
        const fiber = yield* Effect.forkChild(Effect.provide(ask(), layer(server.url)))
        yield* server.holding
        yield* Fiber.interrupt(fiber)
        yield* server.closed
      }
    })))

  it.effect("is closed when nobody reads on", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve({ body: [sse(text("x"), text("y")), hold] })
      const { stream } = yield* StreamFn.StreamFn.pipe(Effect.provide(layer(server.url)))
      yield* Stream.runDrain(Stream.take(stream(request()), 2))
      yield* server.closed
    })))

  it.effect("is closed after an error while the server goes on", () =>
    Effect.gen(function*() {
      yield* askServer({ status: 500, headers: { "content-type": "text/plain" }, body: ["x".repeat(100_000), hold] })
      yield* askServer({ body: [sse({ error: { message: "no" } }), hold] })
      yield* askServer({ headers: { "content-type": "text/html" }, body: ["<html>".repeat(20_000), hold] })
    }))

  it.effect("is closed when an agent is aborted; what had arrived is kept", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve({ body: [sse(text("x")), hold] })
      const agent = yield* Agent.make({ model }).pipe(Effect.provide(layer(server.url)))
      yield* agent.subscribe((event) => event.type === "message_update" ? agent.abort : undefined)
      const { messages, outcome } = yield* agent.prompt("hi")
      yield* server.closed
      assert.strictEqual(outcome._tag, "Aborted")
      const message = messages.at(-1)
      assert.isTrue(message?.role === "assistant" && message.stopReason === "aborted")
    })))

  it.effect("is used again for the next turn", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      yield* Effect.provide(Effect.forEach([1, 2, 3, 4, 5, 6], () => ask()), layer(server.url))
      assert.strictEqual(server.asked.length, 6)
      // Fetch may open a second one before the first is free again.
      assert.isAtMost(server.connections(), 2)
    })))

  it.effect("of one layer serves many runs at once, each with its own state", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(
        ...Array.from({ length: 20 }, (_, n): Server.Reply => ({
          body: [sse(text(`${n}`)), sse(text(`${n}`)), sse(finish("stop")), done]
        }))
      )
      const given = yield* Effect.provide(
        Effect.forEach(Array.from({ length: 20 }), () => ask(), { concurrency: "unbounded" }),
        layer(server.url)
      )
      const texts = given.map(textOf)
      assert.sameMembers(texts, Array.from({ length: 20 }, (_, n) => `${n}${n}`))
    })))
})

describe("What the layer is told", () => {
  it.effect("headers, key and URL: the request's win over the model's, those over the layer's", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      const here = layer("http://127.0.0.1:1/nowhere", { headers: { "X-A": "layer", "X-B": "layer", "X-C": "layer" } })
      yield* Effect.provide(
        ask({
          model: OpenAi.model("test-model", { baseUrl: `${server.url}/`, headers: { "x-b": "model", "x-c": "model" } }),
          apiKey: Redacted.make(" fresh-key\n"),
          headers: { "x-c": "request" }
        }),
        here
      )
      const { headers } = server.asked[0]!
      assert.deepInclude(headers, {
        "x-a": "layer",
        "x-b": "model",
        "x-c": "request",
        authorization: "Bearer fresh-key"
      })
    })))

  it.effect("no key sends none, and a header may stand in for it", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      yield* Effect.provide(ask(), layer(server.url, { apiKey: undefined }))
      yield* Effect.provide(ask({ headers: { Authorization: "Basic abc" } }), layer(server.url))
      assert.deepStrictEqual(server.asked.map(({ headers }) => headers.authorization), [undefined, "Basic abc"])
    })))

  it.effect("onPayload may replace the body, onResponse sees the answer; both with an effect or without", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve({ ...answer(text("x"), finish("stop")), headers: { "x-limit": "7" } })
      const seen: Array<unknown> = []
      const hooks: ReadonlyArray<OpenAi.Options> = [
        {
          onPayload: (payload, model) => ({ ...payload, seed: 1, id: model.id }),
          onResponse: ({ headers, status }, model) => void seen.push([status, headers["x-limit"], model.id])
        },
        {
          onPayload: (payload) => Effect.succeed({ ...payload, seed: 2 }),
          onResponse: ({ status }) => Effect.sync(() => void seen.push(status))
        },
        { onPayload: () => undefined, onResponse: () => Effect.void }
      ]
      for (const options of hooks) yield* Effect.provide(ask(), layer(server.url, options))
      assert.deepStrictEqual(server.asked.map(({ body }) => body["seed"]), [1, 2, undefined])
      assert.strictEqual(server.asked[0]!.body["id"], "test-model")
      assert.deepStrictEqual(seen, [[200, "7", "test-model"], 200])
    })))

  it.effect("the session, as OpenRouter wants it", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      yield* Effect.provide(ask({ sessionId: "s" }), layer(`${server.url}/openrouter.ai`))
      yield* Effect.provide(ask({ sessionId: "s" }), layer(server.url))
      assert.deepStrictEqual(server.asked.map(({ headers }) => headers["x-session-id"]), ["s", undefined])
    })))

  it.effect("a base URL may end in a slash, hold a query or be the whole URL", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      for (const end of ["", "//", "?api-version=1", "/chat/completions"]) {
        yield* Effect.provide(ask(), layer(`${server.url}${end}`))
      }
      assert.deepStrictEqual(server.asked.map(({ path }) => path), [
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/v1/chat/completions?api-version=1",
        "/v1/chat/completions"
      ])
    })))

  it.effect("the client of Node: answers, interruption and failures are the same", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(
        answer(text("x"), finish("stop")),
        { body: [sse(text("x")), hold] },
        { body: [sse(text("x")), cut] },
        Server.json(429, { error: "slow down" }, { "retry-after": "1" })
      )
      const undici = OpenAi.layer({ baseUrl: server.url }).pipe(Layer.provide(NodeHttpClient.layerUndici))
      yield* Effect.gen(function*() {
        assert.strictEqual(textOf(yield* ask()), "x")
        const fiber = yield* Effect.forkChild(ask())
        yield* server.holding
        yield* Fiber.interrupt(fiber)
        yield* server.closed
        assert.strictEqual((yield* ask()).error?.reason, "Network")
        const { error } = yield* ask()
        assert.deepStrictEqual([error?.reason, error?.retryAfter], ["RateLimited", 1000])
        yield* server.closed
      }).pipe(Effect.provide(undici))
    })))

  it.effect("an HTTP client of the application's own", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      const urls: Array<string> = []
      const fetch: typeof globalThis.fetch = (input, init) => {
        urls.push(input instanceof URL ? input.href : JSON.stringify(input))
        return globalThis.fetch(input, init)
      }
      const own = OpenAi.layer({ baseUrl: server.url }).pipe(Layer.provide(FetchHttpClient.layer))
      yield* ask().pipe(Effect.provide(own), Effect.provideService(FetchHttpClient.Fetch, fetch))
      assert.deepStrictEqual(urls, [`${server.url}/chat/completions`])
    })))
})
