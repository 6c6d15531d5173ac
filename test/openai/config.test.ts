/** The layer from the configuration, and an agent that works with it. */
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Effect, Layer, Schema } from "effect"
import { Fetch } from "effect/http/FetchHttpClient"
import { Agent, Hooks, Tools } from "../../src/index.ts"
import { OpenAi } from "../../src/openai/index.ts"
import { Transcript } from "../../src/testing/index.ts"
import * as Server from "../utils/completionsServer.ts"
import { answer, calls, delta, finish, piece, text, usage } from "../utils/completionsServer.ts"
import { ask } from "./ask.ts"

const environment = (variables: Readonly<Record<string, string>>) =>
  ConfigProvider.layer(ConfigProvider.fromEnv({ env: { ...variables } }))

describe("layerConfig", () => {
  it.effect("reads OPENAI_API_KEY and OPENAI_BASE_URL", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      const variables = { OPENAI_API_KEY: "k1", OPENAI_BASE_URL: server.url }
      yield* ask().pipe(Effect.provide(OpenAi.layerConfig().pipe(Layer.provide(environment(variables)))))
      assert.strictEqual(server.asked[0]!.headers.authorization, "Bearer k1")
    })))

  it.effect("needs no key; an empty one is none", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      for (const key of [{}, { OPENAI_API_KEY: "" }]) {
        const variables = { ...key, OPENAI_BASE_URL: server.url }
        yield* ask().pipe(Effect.provide(OpenAi.layerConfig().pipe(Layer.provide(environment(variables)))))
      }
      assert.deepStrictEqual(server.asked.map(({ headers }) => headers.authorization), [undefined, undefined])
    })))

  it.effect("goes to OpenAI by default", () =>
    Effect.gen(function*() {
      const urls: Array<string> = []
      for (const variables of [{}, { OPENAI_BASE_URL: "" }]) {
        yield* ask().pipe(
          Effect.provide(OpenAi.layerConfig().pipe(Layer.provide(environment(variables)))),
          Effect.provideService(Fetch, (url) => {
            urls.push(url instanceof URL ? url.href : JSON.stringify(url))
            return Promise.reject(new Error("no network in tests"))
          })
        )
      }
      assert.deepStrictEqual(urls, Array.from({ length: 2 }, () => "https://api.openai.com/v1/chat/completions"))
    }))

  it.effect("reads other places when told so, and fails where they must exist", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(answer(text("x"), finish("stop")))
      const layer = OpenAi.layerConfig({
        apiKey: Config.Redacted("OTHER_KEY"),
        baseUrl: Config.succeed(server.url),
        headers: { "x-title": "test" }
      })
      yield* ask().pipe(Effect.provide(layer.pipe(Layer.provide(environment({ OTHER_KEY: "k2" })))))
      assert.deepInclude(server.asked[0]!.headers, { authorization: "Bearer k2", "x-title": "test" })
      const error = yield* Effect.flip(
        ask().pipe(Effect.provide(layer.pipe(Layer.provide(environment({ OPENAI_API_KEY: "k1" })))))
      )
      assert.strictEqual(error._tag, "ConfigError")
    })))
})

describe("An agent", () => {
  it.effect("thinks, calls tools in parallel, is answered and says what it cost", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* Server.serve(
        answer(
          delta({ reasoning_content: "I should look." }),
          calls(piece(0, "{\"city\":", { id: "call|1", name: "weather" })),
          calls(piece(1, "{\"city\":\"Rome\"}", { id: "call|2", name: "weather" })),
          calls(piece(0, "\"Oslo\"}")),
          finish("tool_calls"),
          usage({ prompt_tokens: 100, completion_tokens: 10 })
        ),
        answer(text("Cold and warm."), finish("stop"), usage({ prompt_tokens: 150, completion_tokens: 5 }))
      )
      const weather = Tools.make("weather", {
        description: "Look out of the window.",
        parameters: Schema.Struct({ city: Schema.String }),
        execute: ({ city }) => Effect.succeed(city === "Oslo" ? "cold" : "warm")
      })
      const agent = yield* Agent.make({
        systemPrompt: "Be brief.",
        model: OpenAi.model("m", { cost: { input: 1e6, output: 0, cacheRead: 0, cacheWrite: 0 } }),
        tools: [weather],
        thinkingLevel: "low"
      }).pipe(
        Effect.provide(OpenAi.layerConfig().pipe(Layer.provide(environment({ OPENAI_BASE_URL: server.url })))),
        Effect.provide(Hooks.layer(Hooks.apiKey((model) => model.provider === "openai" ? "from-the-hook" : undefined)))
      )
      const run = yield* agent.prompt("How is the weather?")
      yield* server.closed
      assert.strictEqual(run.outcome._tag, "Completed")
      assert.deepStrictEqual([run.usage.totalTokens, run.usage.cost.total], [265, 250])
      assert.strictEqual(Transcript.print(run.messages), "U A[call|1,call|2] R(call|1) R(call|2) A")
      assert.strictEqual(server.asked[0]!.headers.authorization, "Bearer from-the-hook")
      const [first, second] = server.asked.map(({ body }) => body)
      assert.deepInclude(first, { model: "m", reasoning_effort: "low" })
      assert.deepStrictEqual(second!["messages"], [
        { role: "system", content: "Be brief." },
        { role: "user", content: "How is the weather?" },
        {
          role: "assistant",
          content: null,
          reasoning_content: "I should look.",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "weather", arguments: "{\"city\":\"Oslo\"}" } },
            { id: "call_2", type: "function", function: { name: "weather", arguments: "{\"city\":\"Rome\"}" } }
          ]
        },
        { role: "tool", tool_call_id: "call_1", content: "cold" },
        { role: "tool", tool_call_id: "call_2", content: "warm" }
      ])
    })))

  it("a model's fields are checked", () => {
    // @ts-expect-error -- prices are an object
    OpenAi.model("m", { cost: 7 })
    // @ts-expect-error -- no such level
    OpenAi.model("m", { thinkingLevelMap: { enormous: "x" } })
    // @ts-expect-error -- no such option
    OpenAi.model("m", { compat: { supportsEverything: true } })
  })

  it("a model has what the transcript records", () => {
    assert.deepStrictEqual(OpenAi.model("m", { contextWindow: 10, custom: true }), {
      id: "m",
      name: "m",
      api: "openai-completions",
      provider: "openai",
      contextWindow: 10,
      custom: true
    })
  })
})
