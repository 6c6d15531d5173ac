/** Stream functions of pi-ai: what they are asked, what comes of their events, and what happens when they misbehave. */
import type { AssistantMessage, AssistantMessageEvent, Model as PiModel } from "@earendil-works/pi-ai"
import { createFauxCore, fauxAssistantMessage, fauxText, fauxThinking, fauxToolCall } from "@earendil-works/pi-ai"
import { streamSimple } from "@earendil-works/pi-ai/api/openai-completions"
import { builtinModels } from "@earendil-works/pi-ai/providers/all"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted, Schema } from "effect"
import { Agent, Hooks, Tools } from "../../src/index.ts"
import { PiAi } from "../../src/pi-ai/index.ts"
import * as Server from "../utils/completionsServer.ts"
import { answer, calls, finish, hold, json, piece, sse, text } from "../utils/completionsServer.ts"

const usage = {
  input: 3,
  output: 2,
  cacheRead: 1,
  cacheWrite: 0,
  totalTokens: 6,
  cost: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0, total: 3 }
}

const piModel: PiModel<"openai-completions"> = {
  id: "test-model",
  name: "Test",
  api: "openai-completions",
  provider: "openai",
  baseUrl: "http://127.0.0.1:1/v1",
  reasoning: true,
  input: ["text"],
  cost: { input: 1, output: 4, cacheRead: 0.25, cacheWrite: 2 },
  contextWindow: 1000,
  maxTokens: 100
}

const message = (fields: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: "assistant",
  content: [],
  api: piModel.api,
  provider: piModel.provider,
  model: piModel.id,
  usage,
  stopReason: "stop",
  timestamp: 0,
  ...fields
})

/** A stream of these events, as pi-ai's look to those who read them. */
const streamOf = (
  events: ReadonlyArray<AssistantMessageEvent>,
  result?: () => Promise<AssistantMessage>
): PiAi.ResponseStream => ({
  async *[Symbol.asyncIterator]() {
    yield* events
  },
  ...(result !== undefined && { result })
})

const run = (
  streamFunction: PiAi.StreamFunction,
  options: PiAi.Options = {}
) =>
  Effect.gen(function*() {
    const agent = yield* Agent.make({ model: PiAi.model(piModel), limits: { turns: 1 } })
    const result = yield* agent.prompt("hi")
    const { messages, outcome } = result
    return { messages, outcome, last: messages.at(-1) }
  }).pipe(Effect.scoped, Effect.provide(PiAi.layer(streamFunction, options)))

const failureOf = (streamFunction: PiAi.StreamFunction, options?: PiAi.Options) =>
  Effect.map(run(streamFunction, options), ({ last, outcome }) => {
    assert.strictEqual(outcome._tag, "Failed")
    const error = outcome._tag === "Failed" ? outcome.error : undefined
    assert.isDefined(error)
    assert.strictEqual(error._tag, "ModelError")
    return { error: error._tag === "ModelError" ? error : assert.fail("no ModelError"), last }
  })

describe("A request", () => {
  it.effect("reaches the function as that of pi's agent does", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({
        model: PiAi.model(piModel),
        systemPrompt: "Be brief.",
        thinkingLevel: "high",
        headers: { "x-a": "1" },
        thinkingBudgets: { high: 2048 },
        metadata: { user_id: "u" },
        sessionId: "s"
      })
      const { outcome } = yield* agent.prompt("hi")
      assert.strictEqual(outcome._tag, "Completed")
    }).pipe(
      Effect.scoped,
      Effect.provide([
        PiAi.layer(
          (model, context, options) => {
            const { fetch: _, signal, ...rest } = options ?? {}
            assert.instanceOf(signal, AbortSignal)
            assert.deepStrictEqual(model, piModel)
            assert.deepStrictEqual(rest, {
              maxRetries: 0,
              temperature: 0.5,
              apiKey: "from the hook",
              headers: { "x-a": "1", "x-b": "2" },
              reasoning: "high",
              sessionId: "s",
              thinkingBudgets: { high: 2048 },
              metadata: { user_id: "u" }
            })
            assert.deepStrictEqual(Object.keys(context), ["messages"])
            assert.deepStrictEqual(context.messages.map(({ role }) => role), ["system", "user"])
            return streamOf([{ type: "done", reason: "stop", message: message() }])
          },
          { temperature: 0.5, headers: { "x-a": "0", "x-b": "2" }, apiKey: Redacted.make("of the layer") }
        ),
        Hooks.layer(Hooks.apiKey(() => "from the hook"))
      ])
    ))

  it.effect("without a model says how to choose one", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const { outcome } = yield* agent.prompt("hi")
      assert.include(outcome._tag === "Failed" ? outcome.error.message : "", "PiAi.model")
    }).pipe(Effect.scoped, Effect.provide(PiAi.layer(() => assert.fail("called")))))
})

describe("A response", () => {
  it.effect("is the message that pi-ai gives, field by field", () =>
    Effect.gen(function*() {
      const full = message({
        content: [
          { type: "thinking", thinking: "hm", thinkingSignature: "sig", redacted: false },
          { type: "text", text: "hello", textSignature: "{\"v\":1,\"id\":\"x\"}" }
        ],
        api: "anthropic-messages",
        provider: "router",
        model: "another",
        responseId: "r1",
        responseModel: "exact",
        providerThinkingLevel: "high",
        rawStopReason: "end_turn",
        endTurn: true,
        diagnostics: [{ type: "noted", timestamp: 1 }]
      })
      const { last, messages } = yield* run(() =>
        streamOf([
          { type: "start", partial: message() },
          { type: "thinking_start", contentIndex: 0, partial: full },
          { type: "thinking_delta", contentIndex: 0, delta: "hm", partial: full },
          { type: "thinking_end", contentIndex: 0, content: "hm", partial: full },
          { type: "text_start", contentIndex: 1, partial: full },
          { type: "text_delta", contentIndex: 1, delta: "hel", partial: full },
          { type: "text_end", contentIndex: 1, content: "hello", partial: full },
          { type: "done", reason: "stop", message: full }
        ])
      )
      const expected: unknown = { ...full, thinkingLevel: "off" }
      assert.deepStrictEqual<unknown>(last, expected)
      assert.lengthOf(messages, 2)
    }))

  it.effect("never hands the live message out", () =>
    Effect.gen(function*() {
      const live = message({ content: [{ type: "text", text: "" }], stopReason: "pending" })
      const { last } = yield* run(() =>
        streamOf([{ type: "start", partial: live }, {
          type: "done",
          reason: "stop",
          message: { ...live, stopReason: "stop" }
        }])
      )
      Object.assign(live.content[0]!, { text: "changed later" })
      assert.deepStrictEqual(last?.role === "assistant" ? last.content : [], [{ type: "text", text: "" }])
    }))

  it.effect("may leave out starts and ends: the final message says what it is", () =>
    Effect.gen(function*() {
      const whole = message({ content: [{ type: "text", text: "ab" }] })
      const { last } = yield* run(() =>
        streamOf([
          { type: "start", partial: message() },
          { type: "text_delta", contentIndex: 4, delta: "a", partial: whole },
          { type: "text_end", contentIndex: 4, content: "ab", partial: whole },
          { type: "text_delta", contentIndex: 4, delta: "late", partial: whole },
          { type: "thinking_end", contentIndex: 9, content: "all at once", partial: whole },
          { type: "done", reason: "stop", message: whole }
        ])
      )
      assert.deepStrictEqual(last?.role === "assistant" ? last.content : [], [{ type: "text", text: "ab" }])
    }))

  it.effect("without a final event is the stream's result", () =>
    Effect.gen(function*() {
      const { last, outcome } = yield* run(() =>
        streamOf([], () => Promise.resolve(message({ content: [{ type: "text", text: "x" }] })))
      )
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(last?.role === "assistant" ? last.content : [], [{ type: "text", text: "x" }])
    }))

  it.effect("comes from pi-ai's own scripted provider, with calls", () =>
    Effect.gen(function*() {
      const faux = createFauxCore({})
      faux.setResponses([
        fauxAssistantMessage([
          fauxThinking("two things"),
          fauxToolCall("add", { a: 1, b: 2 }),
          fauxToolCall("add", { a: 3, b: 4 })
        ], {
          stopReason: "toolUse"
        }),
        fauxAssistantMessage([fauxText("3 and 7")])
      ])
      const add = Tools.make("add", {
        description: "Adds.",
        parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
        execute: ({ a, b }) => Effect.succeed(`${a + b}`)
      })
      const agent = yield* Agent.make({ model: PiAi.model(faux.getModel()), tools: [add] }).pipe(
        Effect.provide(PiAi.layer(faux.streamSimple))
      )
      const { messages, outcome } = yield* agent.prompt("hi").pipe(Effect.provide(PiAi.layer(faux.streamSimple)))
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(
        messages.flatMap((each) => each.role === "toolResult" ? each.content : []),
        [{ type: "text", text: "3" }, { type: "text", text: "7" }]
      )
    }).pipe(Effect.scoped))
})

describe("A function that misbehaves", () => {
  const started: AssistantMessageEvent = { type: "start", partial: message() }
  const some: ReadonlyArray<AssistantMessageEvent> = [
    started,
    { type: "text_start", contentIndex: 0, partial: message() },
    { type: "text_delta", contentIndex: 0, delta: "some", partial: message() }
  ]
  const kept = [{ type: "text", text: "some" }]
  const contentOf = (last: unknown) => (last as { readonly content: unknown }).content // oxlint-disable-line typescript/no-unsafe-type-assertion -- looked at

  it.effect("and throws at once is a failure with its text", () =>
    Effect.gen(function*() {
      const { error } = yield* failureOf(() => {
        throw new Error("No API key for provider: openai")
      })
      assert.strictEqual(error.reason, "Authentication")
      assert.include(error.message, "No API key for provider: openai")
    }))

  it.effect("and rejects is a failure with its text", () =>
    Effect.gen(function*() {
      const { error } = yield* failureOf(() => Promise.reject(new Error("fetch failed")))
      assert.strictEqual(error.reason, "Network")
      assert.isTrue(error.isRetryable)
    }))

  it.effect("and returns no stream is a broken protocol", () =>
    Effect.gen(function*() {
      for (const nothing of [undefined, null, 1, {}, Promise.resolve()]) {
        const { error } = yield* failureOf(() => nothing as never) // oxlint-disable-line typescript/no-unsafe-type-assertion -- JavaScript does
        assert.strictEqual(error.reason, "ProtocolViolation")
      }
    }))

  it.effect("and ends early keeps what had arrived", () =>
    Effect.gen(function*() {
      const never = (): Promise<AssistantMessage> => new Promise(() => {})
      for (const response of [streamOf(some), streamOf(some, never)]) {
        const { error, last } = yield* failureOf(() => response)
        assert.strictEqual(error.reason, "IncompleteStream")
        assert.deepStrictEqual(contentOf(last), kept)
      }
    }))

  it.effect("and throws in the middle keeps what had arrived", () =>
    Effect.gen(function*() {
      const { error, last } = yield* failureOf(() => ({
        async *[Symbol.asyncIterator]() {
          yield* some
          throw new Error("socket hang up")
        }
      }))
      assert.strictEqual(error.reason, "Network")
      assert.deepStrictEqual(contentOf(last), kept)
    }))

  it.effect("and gives what are no events is a failure", () =>
    Effect.gen(function*() {
      for (const event of [null, "text", 5]) {
        const { last } = yield* failureOf(() => streamOf([...some, event as never])) // oxlint-disable-line typescript/no-unsafe-type-assertion -- JavaScript does
        assert.deepStrictEqual(contentOf(last), kept)
      }
      for (const end of [{ type: "done" }, { type: "error" }, { type: "done", message: 5 }]) {
        const { error, last } = yield* failureOf(() => streamOf([...some, end as never])) // oxlint-disable-line typescript/no-unsafe-type-assertion -- JavaScript does
        assert.strictEqual(error.reason, "ProtocolViolation")
        assert.deepStrictEqual(contentOf(last), kept)
      }
    }))

  it.effect("and never answers can be aborted, before and after it began", () =>
    Effect.gen(function*() {
      const deaf: ReadonlyArray<PiAi.StreamFunction> = [
        () => new Promise(() => {}),
        () => ({
          async *[Symbol.asyncIterator]() {
            yield* some
            await new Promise(() => {})
          }
        })
      ]
      for (const streamFunction of deaf) {
        const asked = yield* Deferred.make<AbortSignal | undefined>()
        const layer = PiAi.layer((model, context, options) => {
          Deferred.doneUnsafe(asked, Effect.succeed(options?.signal))
          return streamFunction(model, context, options)
        })
        yield* Effect.gen(function*() {
          const agent = yield* Agent.make({ model: PiAi.model(piModel) })
          const fiber = yield* Effect.forkChild(agent.prompt("hi"), { startImmediately: true })
          const signal = yield* Deferred.await(asked)
          for (let turns = 0; turns < 20; turns++) yield* Effect.yieldNow
          yield* agent.abort
          const { messages, outcome } = yield* Fiber.join(fiber)
          assert.strictEqual(outcome._tag, "Aborted")
          assert.isTrue(signal?.aborted)
          assert.strictEqual(messages.at(-1)?.role, "assistant")
        }).pipe(Effect.scoped, Effect.provide(layer))
      }
    }))
})

describe("An error that pi-ai reports", () => {
  const cases: ReadonlyArray<readonly [text: string, reason: string]> = [
    ["401 Incorrect API key provided", "Authentication"],
    ["403: {\"message\":\"forbidden\"}", "Authentication"],
    ["OpenAI API error (429): slow down", "RateLimited"],
    ["Too many requests, please wait", "RateLimited"],
    ["529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}", "Overloaded"],
    ["The model is overloaded", "Overloaded"],
    ["400 prompt is too long: 213462 tokens > 200000 maximum", "ContextOverflow"],
    ["413 {\"error\":{\"type\":\"request_too_large\"}}", "ContextOverflow"],
    ["404 model not found", "InvalidRequest"],
    ["400 bad schema", "InvalidRequest"],
    ["Connection error.", "Network"],
    ["Request timed out.", "Timeout"],
    ["Stream ended without finish_reason", "IncompleteStream"],
    ["the model refused", "Reported"]
  ]
  for (const [text, reason] of cases) {
    it.effect(`"${text}" is ${reason}, and keeps text and content`, () =>
      Effect.gen(function*() {
        const failed = message({ stopReason: "error", errorMessage: text, content: [{ type: "text", text: "some" }] })
        const { error, last } = yield* failureOf(() => streamOf([{ type: "error", reason: "error", error: failed }]))
        assert.strictEqual(error.reason, reason)
        const expected: unknown = { ...failed, thinkingLevel: "off" }
        assert.deepStrictEqual<unknown>(last, expected)
      }))
  }

  it.effect("never holds the key", () =>
    Effect.gen(function*() {
      const failed = message({
        stopReason: "error",
        errorMessage: "401 wrong key top-secret-key, header Bearer hidden-token"
      })
      const { error, last } = yield* failureOf(
        () => streamOf([{ type: "error", reason: "error", error: failed }]),
        { apiKey: Redacted.make("top-secret-key"), headers: { authorization: "Bearer hidden-token" } }
      )
      for (const secret of ["top-secret-key", "hidden-token"]) {
        assert.notInclude(error.message, secret)
        assert.notInclude(JSON.stringify(last), secret)
      }
    }))
})

describe("Over a connection", () => {
  const layerFor = () => PiAi.layer(streamSimple, { apiKey: Redacted.make("sk-test-0123456789abcdef") })

  it.effect("two parallel tools run, and their results go back", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve(
        answer(
          calls(piece(0, "{\"a\":1,", { id: "x", name: "add" }), piece(1, "{\"a\":3,", { id: "y", name: "add" })),
          calls(piece(1, "\"b\":4}"), piece(0, "\"b\":2}")),
          finish("tool_calls"),
          Server.usage({ prompt_tokens: 10, completion_tokens: 5 })
        ),
        answer(text("3 and 7"), finish("stop"))
      )
      const add = Tools.make("add", {
        description: "Adds.",
        parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
        execute: ({ a, b }) => Effect.succeed(`${a + b}`)
      })
      const agent = yield* Agent.make({ model: PiAi.model({ ...piModel, baseUrl: server.url }), tools: [add] })
      const { outcome, usage } = yield* agent.prompt("hi")
      yield* server.closed
      assert.strictEqual(outcome._tag, "Completed")
      assert.strictEqual(usage.input, 10)
      const sent = server.asked[1]?.body["messages"]
      assert.deepStrictEqual(
        Array.isArray(sent)
          ? sent.slice(-2).map(({ content, role, tool_call_id }) => [role, tool_call_id, content])
          : [],
        [["tool", "x", "3"], ["tool", "y", "7"]]
      )
    }).pipe(Effect.scoped, Effect.provide(layerFor())))

  it.effect("an abort closes it", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve({ body: [sse(text("some")), hold] })
      const agent = yield* Agent.make({ model: PiAi.model({ ...piModel, baseUrl: server.url }) })
      const fiber = yield* Effect.forkChild(agent.prompt("hi"), { startImmediately: true })
      yield* server.holding
      yield* agent.abort
      yield* server.closed
      assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Aborted")
    }).pipe(Effect.scoped, Effect.provide(layerFor())))

  it.effect("status and Retry-After are those of the server, and nothing is tried again", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve(json(429, { error: { message: "slow down" } }, { "retry-after": "7" }))
      const agent = yield* Agent.make({ model: PiAi.model({ ...piModel, baseUrl: server.url }) })
      const { outcome } = yield* agent.prompt("hi")
      const error = outcome._tag === "Failed" && outcome.error._tag === "ModelError"
        ? outcome.error
        : assert.fail("no ModelError")
      assert.strictEqual(error.reason, "RateLimited")
      assert.strictEqual(error.retryAfter, 7000)
      assert.lengthOf(server.asked, 1)
    }).pipe(Effect.scoped, Effect.provide(layerFor())))
})

describe("find", () => {
  it.effect("gives a model of a collection, or says what there is", () =>
    Effect.gen(function*() {
      const models = builtinModels()
      const model = yield* PiAi.find(models, "openai", "gpt-4o")
      assert.strictEqual(model.api, "openai-responses")
      const unknown = yield* Effect.flip(PiAi.find(models, "openai", "gpt-0"))
      assert.strictEqual(unknown.reason, "UnknownModel")
      assert.include(unknown.message, "gpt-4o")
      const nobody = yield* Effect.flip(PiAi.find(models, "nobody", "gpt-0"))
      assert.strictEqual(nobody.reason, "UnknownProvider")
      assert.include(nobody.message, "anthropic")
    }))
})
