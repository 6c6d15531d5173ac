/** Language models of effect/ai as the model of an agent: parts, prompts, errors, and a conversation over a connection. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { AiError, LanguageModel, type Prompt, type Response } from "effect/ai"
import { Agent, type Errors, Messages, type StreamFn, Tools } from "../../src/index.ts"
import { EffectAi } from "../../src/language-model/index.ts"
import * as CompletionsModel from "../utils/completionsModel.ts"
import * as Server from "../utils/completionsServer.ts"
import { answer, calls, delta, finish, hold, piece, sse, text } from "../utils/completionsServer.ts"

type Part = Response.StreamPartEncoded

type Answer = ReadonlyArray<Part> | Stream.Stream<Part, AiError.AiError>

/** A model that gives these answers, and what it was asked. */
const scripted = (answers: ReadonlyArray<Answer>, options?: EffectAi.Options) => {
  const asked: Array<LanguageModel.ProviderOptions> = []
  const Model = Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: () => Effect.die("only streams are needed"),
      streamText: (request) => {
        const next = answers[asked.length]
        asked.push(request)
        return next === undefined ? Stream.die("no answer left") : "length" in next ? Stream.fromIterable(next) : next
      }
    })
  )
  return { asked, layer: EffectAi.layer(options).pipe(Layer.provide(Model)) }
}

const usage: Response.FinishPartEncoded["usage"] = {
  inputTokens: { uncached: undefined, total: 10, cacheRead: 4, cacheWrite: undefined },
  outputTokens: { total: 5, text: undefined, reasoning: 2 }
}

const end = (reason: Response.FinishReason = "stop"): Part => ({ type: "finish", reason, usage })

const model: StreamFn.Model = {
  id: "m",
  provider: "p",
  api: "a",
  cost: { input: 1e6, output: 2e6, cacheRead: 5e5, cacheWrite: 0 }
}

/** The run of an agent that is asked once. */
const run = (answers: ReadonlyArray<Answer>, options: { readonly tools?: ReadonlyArray<Tools.Tool> } = {}) => {
  const { asked, layer } = scripted(answers)
  return Effect.gen(function*() {
    const agent = yield* Agent.make({ model, ...options })
    const { messages, outcome } = yield* agent.prompt("hi")
    const last = messages.at(-1)
    return { asked, messages, outcome, last: last?.role === "assistant" ? last : assert.fail("no response") }
  }).pipe(Effect.scoped, Effect.provide(layer))
}

const errorOf = (outcome: { readonly _tag: string; readonly error?: unknown }): Errors.ModelError => {
  const { error } = outcome
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a tagged error of the library
  return error !== undefined ? error as Errors.ModelError : assert.fail(`not failed but ${outcome._tag}`)
}

const echo = Tools.make("echo", {
  description: "Says it again.",
  parameters: Schema.Struct({ say: Schema.String }),
  execute: ({ say }) => Effect.succeed(say)
})

describe("A response", () => {
  it.effect("is text and thinking with their signatures, usage and cost", () =>
    Effect.gen(function*() {
      const { last, outcome } = yield* run([[
        { type: "response-metadata", id: "r1", modelId: "m-2026" },
        { type: "reasoning-start", id: "1", metadata: { p: { item: "i1" } } },
        { type: "reasoning-delta", id: "1", delta: "hm" },
        { type: "reasoning-end", id: "1", metadata: { p: { encrypted: "xyz" } } },
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "Hel" },
        { type: "text-delta", id: "1", delta: "lo", metadata: { p: { logprob: 1 } } },
        { type: "text-end", id: "1" },
        end()
      ]])
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(last.content, [
        {
          type: "thinking",
          thinking: "hm",
          thinkingSignature: "{\"effect/ai\":{\"p\":{\"item\":\"i1\",\"encrypted\":\"xyz\"}}}"
        },
        { type: "text", text: "Hello", textSignature: "{\"effect/ai\":{\"p\":{\"logprob\":1}}}" }
      ])
      assert.strictEqual(last.responseId, "r1")
      assert.strictEqual(last.responseModel, "m-2026")
      assert.deepStrictEqual(last.usage, {
        input: 6,
        output: 5,
        cacheRead: 4,
        cacheWrite: 0,
        reasoning: 2,
        totalTokens: 15,
        cost: { input: 6, output: 10, cacheRead: 2, cacheWrite: 0, total: 18 }
      })
    }))

  const reasons: ReadonlyArray<readonly [Response.FinishReason, string]> = [
    ["stop", "stop"],
    ["length", "length"],
    ["pause", "stop"],
    ["other", "stop"],
    ["unknown", "stop"],
    ["content-filter", "error"],
    ["error", "error"]
  ]
  for (const [reason, stopReason] of reasons) {
    it.effect(`that ends with ${reason} has the stop reason ${stopReason}, and keeps its text`, () =>
      Effect.gen(function*() {
        const { last } = yield* run([[
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "x" },
          end(reason)
        ]])
        assert.strictEqual(last.stopReason, stopReason)
        assert.strictEqual(last.rawStopReason, reason)
        assert.strictEqual(Messages.text(last), "x")
      }))
  }

  it.effect("whose parts leave starts and ends out is read all the same", () =>
    Effect.gen(function*() {
      const { last } = yield* run([[
        { type: "text-delta", id: "1", delta: "a" },
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "b" },
        { type: "text-end", id: "2" },
        { type: "tool-params-delta", id: "9", delta: "lost" },
        { type: "reasoning-delta", id: "1", delta: "c" },
        end()
      ]])
      assert.deepStrictEqual(last.content, [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
        { type: "thinking", thinking: "c" }
      ])
    }))

  it.effect("keeps what has no place in a message in its diagnostics", () =>
    Effect.gen(function*() {
      const { last } = yield* run([[
        { type: "source", sourceType: "url", id: "s", url: "https://example.com", title: "Example" },
        { type: "text-delta", id: "1", delta: "a" },
        end()
      ]])
      assert.include(JSON.stringify(last.diagnostics), "https://example.com")
    }))

  it.effect("that ends without a finish part was cut off", () =>
    Effect.gen(function*() {
      const { last, outcome } = yield* run([[{ type: "text-delta", id: "1", delta: "a" }]])
      assert.strictEqual(errorOf(outcome).reason, "IncompleteStream")
      assert.strictEqual(Messages.text(last), "a")
    }))
})

describe("Calls", () => {
  it.effect("whose parameters interleave run, and their results go back in order", () =>
    Effect.gen(function*() {
      const { asked, messages } = yield* run([[
        { type: "tool-params-start", id: "x", name: "echo", providerExecuted: false },
        { type: "tool-params-start", id: "y", name: "echo", providerExecuted: false },
        { type: "tool-params-delta", id: "y", delta: "{\"say\":" },
        { type: "tool-params-delta", id: "x", delta: "{\"say\":\"1\"}" },
        { type: "tool-params-delta", id: "y", delta: "\"2\"}" },
        { type: "tool-params-end", id: "y" },
        { type: "tool-params-end", id: "x" },
        { type: "tool-call", id: "y", name: "echo", params: { say: "2" }, metadata: { p: { thought: "t" } } },
        { type: "tool-call", id: "x", name: "echo", params: { say: "1" } },
        end("tool-calls")
      ], [{ type: "text-delta", id: "1", delta: "done" }, end()]], { tools: [echo] })
      const sent = asked[1]!.prompt.content
      assert.deepStrictEqual(sent.map(({ role }) => role), ["user", "assistant", "tool"])
      assert.deepStrictEqual(
        sent.flatMap((message): ReadonlyArray<unknown> =>
          message.role === "assistant"
            ? message.content.map((part) =>
              part.type === "tool-call" ? [part.id, part.params, part.options] : part.type
            )
            : message.role === "tool"
            ? message.content.map((part) =>
              part.type === "tool-result" ? [part.id, part.result, part.isFailure] : part.type
            )
            : []
        ),
        [["x", { say: "1" }, {}], ["y", { say: "2" }, { p: { thought: "t" } }], ["x", "1", false], ["y", "2", false]]
      )
      assert.strictEqual(messages.at(-1)?.role, "assistant")
    }))

  it.effect("of tools that do not exist, or with arguments that do not fit, are results, not the end", () =>
    Effect.gen(function*() {
      const { messages, outcome } = yield* run([[
        { type: "tool-call", id: "x", name: "nothing", params: {} },
        { type: "tool-call", id: "y", name: "echo", params: { say: {} } },
        { type: "tool-call", id: "z", name: "echo", params: "no json" },
        end("tool-calls")
      ], [{ type: "text-delta", id: "1", delta: "done" }, end()]], { tools: [echo] })
      assert.strictEqual(outcome._tag, "Completed")
      const results = messages.filter((message) => message.role === "toolResult")
      assert.deepStrictEqual(results.map(({ isError, toolCallId }) => [toolCallId, isError]), [
        ["x", true],
        ["y", true],
        ["z", true]
      ])
    }))

  it.effect("that the provider executed itself are not run again", () =>
    Effect.gen(function*() {
      const { last, outcome } = yield* run([[
        { type: "text-delta", id: "1", delta: "a" },
        { type: "tool-params-start", id: "x", name: "echo", providerExecuted: true },
        { type: "tool-params-delta", id: "x", delta: "{}" },
        { type: "tool-params-end", id: "x" },
        { type: "tool-call", id: "x", name: "echo", params: { say: "1" }, providerExecuted: true },
        end()
      ]], { tools: [echo] })
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(last.content, [{ type: "text", text: "a" }])
      assert.include(JSON.stringify(last.diagnostics), "\"tool-call\"")
    }))
})

describe("A prompt", () => {
  const ask = (
    messages: ReadonlyArray<Messages.AgentMessage>,
    options: { readonly systemPrompt?: string; readonly toolChoice?: "none" } = {}
  ): Effect.Effect<Prompt.Prompt["content"], unknown> => {
    const { asked, layer } = scripted([[{ type: "text-delta", id: "1", delta: "x" }, end()]])
    return Effect.gen(function*() {
      const agent = yield* Agent.make({ model, messages, ...options })
      yield* agent.prompt("go on")
      return asked[0]!.prompt.content
    }).pipe(Effect.scoped, Effect.provide(layer))
  }

  it.effect("gives signatures back to the model they come from, and thinking of others as text", () =>
    Effect.gen(function*() {
      const content = [
        { type: "thinking" as const, thinking: "hm", thinkingSignature: "{\"effect/ai\":{\"p\":{\"item\":\"i1\"}}}" },
        { type: "thinking" as const, thinking: "foreign", thinkingSignature: "of another library" },
        { type: "text" as const, text: "Hello", textSignature: "{\"effect/ai\":{\"p\":{\"id\":\"t\"}}}" }
      ]
      const own = yield* ask([
        Messages.user("hi"),
        Messages.assistant(content, { model: "m", provider: "p", api: "a" }),
        Messages.user("and"),
        Messages.assistant(content, { model: "other", provider: "p", api: "a" })
      ])
      const parts = own.flatMap((message) => message.role === "assistant" ? [message.content] : [])
      assert.deepStrictEqual(
        parts.map((list) =>
          list.map((
            part
          ) => [part.type, part.type === "text" || part.type === "reasoning" ? part.text : "", part.options])
        ),
        [
          [["reasoning", "hm", { p: { item: "i1" } }], ["reasoning", "foreign", {}], ["text", "Hello", {
            p: { id: "t" }
          }]],
          [["text", "hm", {}], ["text", "foreign", {}], ["text", "Hello", {}]]
        ]
      )
    }))

  it.effect("is valid whatever the transcript is: nothing empty, calls with results, safe ids, images, one system message", () =>
    Effect.gen(function*() {
      const image = { type: "image" as const, data: "aGk=", mimeType: "image/png" }
      const call = (id: string) => ({ type: "toolCall" as const, id, name: "echo", arguments: { say: "x" } })
      const sent = yield* ask([
        Messages.user([{ type: "text", text: "look" }, image]),
        Messages.assistant([{ type: "text", text: " " }]),
        Messages.assistant([call("a b|c"), call("open")]),
        Messages.toolResult(call("a b|c"), [image]),
        Messages.system("Later."),
        Messages.user("")
      ], { systemPrompt: "Be brief." })
      assert.deepStrictEqual(sent.map(({ role }) => role), ["system", "user", "assistant", "tool", "user"])
      assert.strictEqual(sent[0]?.content, "Be brief.\n\nLater.")
      const parts = sent.flatMap((message): ReadonlyArray<Prompt.Part> =>
        typeof message.content === "string" ? [] : message.content
      )
      for (const part of parts) {
        if (part.type === "tool-call" || part.type === "tool-result") assert.match(part.id, /^[\w-]{1,40}$/)
        if (part.type === "text") assert.notStrictEqual(part.text, "")
        if (part.type === "tool-result") {
          assert.deepStrictEqual(part.modelOutput?.map(({ type }) => type), part.isFailure ? ["text"] : ["file"])
        }
      }
    }))

  it.effect("goes with what `configure` provides", () =>
    Effect.gen(function*() {
      class Effort extends Context.Service<Effort, string>()("test/Effort") {}
      let seen: unknown
      const { layer } = scripted(
        [Stream.unwrap(Effect.map(Effect.serviceOption(Effort), (effort) => {
          seen = effort
          return Stream.fromIterable<Part>([{ type: "text-delta", id: "1", delta: "x" }, end()])
        }))],
        { configure: (stream, { thinkingLevel }) => Stream.provideService(stream, Effort, thinkingLevel) }
      )
      const agent = yield* Agent.make({ model, thinkingLevel: "high" }).pipe(Effect.provide(layer))
      yield* agent.prompt("hi")
      assert.include(JSON.stringify(seen), "high")
    }).pipe(Effect.scoped))
})

describe("An error", () => {
  const make = (reason: AiError.AiErrorReason): AiError.AiError => AiError.make({ module: "M", method: "m", reason })
  const cases: ReadonlyArray<readonly [AiError.AiErrorReason, Errors.ModelErrorReason]> = [
    [new AiError.RateLimitError({ retryAfter: Duration.seconds(7) }), "RateLimited"],
    [new AiError.QuotaExhaustedError({}), "InvalidRequest"],
    [new AiError.AuthenticationError({ kind: "InvalidKey" }), "Authentication"],
    [new AiError.InternalProviderError({ description: "down" }), "Overloaded"],
    [new AiError.InvalidRequestError({ description: "maximum context length is 8 tokens" }), "ContextOverflow"],
    [new AiError.InvalidRequestError({ description: "bad field" }), "InvalidRequest"],
    [new AiError.InvalidResponseError({ description: "no JSON" }), "ProtocolViolation"],
    [new AiError.ContentPolicyError({ description: "no" }), "Reported"],
    [new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "u" }), "Network"],
    [new AiError.NetworkError({ reason: "InvalidUrlError", method: "POST", url: "u" }), "InvalidRequest"],
    [new AiError.UnknownError({ description: "?" }), "Unknown"]
  ]
  for (const [reason, expected] of cases) {
    it.effect(`${reason._tag} is ${expected}; what had arrived stays`, () =>
      Effect.gen(function*() {
        const some: ReadonlyArray<Part> = [{ type: "text-delta", id: "1", delta: "some" }]
        const failures: ReadonlyArray<Answer> = [
          Stream.concat(Stream.fromIterable(some), Stream.fail(make(reason))),
          [...some, { type: "error", error: make(reason) }, { type: "text-delta", id: "1", delta: "more" }]
        ]
        for (const failure of failures) {
          const { last, outcome } = yield* run([failure])
          const error = errorOf(outcome)
          assert.strictEqual(error.reason, expected)
          assert.strictEqual(error.retryAfter, expected === "RateLimited" ? 7000 : undefined)
          assert.strictEqual(Messages.text(last), "some")
        }
      }))
  }

  it.effect("part that holds anything else is reported, without keys", () =>
    Effect.gen(function*() {
      for (
        const error of ["broken sk-0123456789", { code: 1, key: "sk-0123456789" }, new Error("broken sk-0123456789")]
      ) {
        const { outcome } = yield* run([[{ type: "error", error }]])
        assert.strictEqual(errorOf(outcome).reason, "Reported")
        assert.notInclude(errorOf(outcome).message, "0123456789")
      }
    }))
})

describe("Over a connection", () => {
  const layerFor = (url: string) => EffectAi.layer().pipe(Layer.provide(CompletionsModel.layer(url)))

  it.effect("two parallel tools run, and signed reasoning goes back", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve(
        answer(
          delta({ reasoning_content: "two things" }),
          delta({ signature: "sig" }),
          calls(piece(0, "{\"say\":", { id: "x", name: "echo" }), piece(1, "{\"say\":", { id: "y", name: "echo" })),
          calls(piece(1, "\"2\"}"), piece(0, "\"1\"}")),
          finish("tool_calls")
        ),
        answer(text("done"), finish("stop"))
      )
      const agent = yield* Agent.make({ model, tools: [echo] }).pipe(Effect.provide(layerFor(server.url)))
      const { outcome } = yield* agent.prompt("hi")
      yield* server.closed
      assert.strictEqual(outcome._tag, "Completed")
      assert.include(JSON.stringify(server.asked[0]!.body["tools"]), "\"echo\"")
      const sent = JSON.stringify(server.asked[1]!.body["messages"])
      assert.include(sent, "{\"completions\":{\"signature\":\"sig\"}}")
      assert.include(
        sent,
        "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"1\"},{\"role\":\"tool\",\"tool_call_id\":\"y\",\"content\":\"2\"}"
      )
    }).pipe(Effect.scoped))

  it.effect("an abort closes it", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve({ body: [sse(text("some")), hold] })
      const agent = yield* Agent.make({ model }).pipe(Effect.provide(layerFor(server.url)))
      const fiber = yield* Effect.forkChild(agent.prompt("hi"), { startImmediately: true })
      yield* server.holding
      yield* agent.abort
      yield* server.closed
      assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Aborted")
    }).pipe(Effect.scoped))
})
