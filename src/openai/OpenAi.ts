/**
 * Models behind the chat completions API of OpenAI, which most other servers speak as well: OpenRouter, Ollama, vLLM,
 * llama.cpp, LM Studio and more.
 *
 * A {@link layer} answers the requests of any number of agents at once, each over a connection of its own. When a run is
 * aborted the connection is closed at once; nothing is tried again in here. Whatever goes wrong is a `ModelError` whose
 * text names the URL and the way out and never holds the key.
 *
 * **Example** (An agent)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-pi"
 * import { OpenAi } from "effect-pi/openai"
 *
 * const program = Effect.gen(function*() {
 *   const agent = yield* Agent.make({ systemPrompt: "Be brief.", model: OpenAi.model("gpt-5.2") })
 *   return yield* agent.prompt("What is an agent?")
 * }).pipe(Effect.scoped, Effect.provide(OpenAi.layerConfig()))
 * ```
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import { defaultBaseUrl, type Options as RequestOptions, respond } from "../internal/openai/request.ts"
import type { Compat as ServerCompat } from "../internal/openai/settings.ts"
import type { ThinkingLevel } from "../Messages.ts"
import { type Model, StreamFn } from "../StreamFn.ts"

/**
 * How a server or a model differs from the rest. The names are those of pi-ai, whose model lists can be used; fields that
 * are not listed here are ignored.
 *
 * @category models
 * @since 0.1.0
 */
export type Compat = ServerCompat

/**
 * What can be said of a model. Everything is optional, and fields that are not listed are kept.
 *
 * **Details**
 *
 * - `reasoning: false` keeps the thinking level out of requests.
 * - `thinkingLevelMap` translates levels into the provider's words; `null` says that the model has no such level, and then
 *   the next one is taken. `xhigh` and `max` are sent only when they are in it.
 * - `input: ["text"]` replaces images by a note.
 * - `maxTokens` bounds an answer; without it the server decides.
 * - `cost` is in dollars per million tokens; without it responses cost nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelFields extends Partial<Model> {
  readonly thinkingLevelMap?: { readonly [level in ThinkingLevel]?: string | null }
  readonly headers?: Readonly<Record<string, string>>
  readonly compat?: Compat
}

/**
 * A model behind this API.
 *
 * **Gotchas**
 *
 * With a `baseUrl` of its own a model still gets the layer's key: a model of another company needs a key of its own, from
 * the hook `Hooks.apiKey`, which is asked with the model, or a layer of its own.
 *
 * **Example** (Models of three servers)
 *
 * ```ts
 * import { OpenAi } from "effect-pi/openai"
 *
 * OpenAi.model("gpt-5.2", { reasoning: true, cost: { input: 1.75, output: 14, cacheRead: 0.175, cacheWrite: 0 } })
 * OpenAi.model("qwen3:8b", { provider: "ollama", baseUrl: "http://localhost:11434/v1" })
 * OpenAi.model("my-model", { maxTokens: 4096, compat: { thinkingTokenBudgetField: "thinking_budget" } })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const model = (id: string, fields?: ModelFields): Model => ({
  name: id,
  api: "openai-completions",
  provider: "openai",
  ...fields,
  id
})

/**
 * How to reach the server.
 *
 * **Details**
 *
 * - `baseUrl`: default `https://api.openai.com/v1`; `baseUrl` of a model wins.
 * - `apiKey`: sent as a bearer token; a key of the hook `Hooks.apiKey` wins. Servers that need no key get none.
 * - `headers`: sent with every request; those of the model and of the request win. An `authorization` among them stands
 *   in for the key.
 * - `onPayload` sees the body before it is sent, and what it returns replaces the body.
 * - `onResponse` sees status and headers of every answer.
 *
 * Both may return an effect. When it fails, the response fails.
 *
 * @category models
 * @since 0.1.0
 */
export type Options = RequestOptions

/**
 * A `StreamFn` for one server, over the `HttpClient` of the application.
 *
 * **When to use**
 *
 * With a client that is shared, traced, proxied or faked, or with a key that does not come from the configuration.
 * {@link layerConfig} needs nothing else.
 *
 * **Gotchas**
 *
 * A client that tries again by itself (`HttpClient.retryTransient`) does so only until the answer has begun.
 *
 * **Example** (A local server, and a field it alone knows)
 *
 * ```ts
 * import { Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { OpenAi } from "effect-pi/openai"
 *
 * const Ollama = OpenAi.layer({
 *   baseUrl: "http://localhost:11434/v1",
 *   onPayload: (payload) => ({ ...payload, keep_alive: "1h" })
 * }).pipe(Layer.provide(FetchHttpClient.layer))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<StreamFn, never, HttpClient.HttpClient> =>
  Layer.effect(
    StreamFn,
    Effect.map(HttpClient.HttpClient, (client) => ({ stream: (request) => respond(client, options, request) }))
  )

/**
 * A `StreamFn` from the configuration, over `fetch`: the key in `OPENAI_API_KEY` and the base URL in `OPENAI_BASE_URL`.
 * Both may be missing: local servers need no key, and the default URL is that of OpenAI.
 *
 * **Details**
 *
 * `apiKey` and `baseUrl` read other places. Another HTTP client goes with {@link layer}; another `fetch` with the reference
 * `FetchHttpClient.Fetch`.
 *
 * **Example** (OpenRouter)
 *
 * ```ts
 * import { Config } from "effect"
 * import { OpenAi } from "effect-pi/openai"
 *
 * const OpenRouter = OpenAi.layerConfig({
 *   apiKey: Config.Redacted("OPENROUTER_API_KEY"),
 *   baseUrl: Config.succeed("https://openrouter.ai/api/v1")
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Omit<Options, "apiKey" | "baseUrl"> & {
    readonly apiKey?: Config.Config<Redacted.Redacted | undefined>
    readonly baseUrl?: Config.Config<string>
  } = {}
): Layer.Layer<StreamFn, Config.ConfigError> =>
  Layer.unwrap(
    Effect.gen(function*() {
      const apiKey = yield* options.apiKey ?? keyConfig
      const baseUrl = yield* options.baseUrl ?? baseUrlConfig
      return layer({ ...options, apiKey, baseUrl })
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))

const keyConfig = Config.map(Config.option(Config.Redacted("OPENAI_API_KEY")), Option.getOrUndefined)

/** A variable that is set but empty counts as missing, as in the shell. */
const baseUrlConfig = Config.map(
  Config.option(Config.String("OPENAI_BASE_URL")),
  (url) => Option.getOrElse(url, () => "").trim() || defaultBaseUrl
)
