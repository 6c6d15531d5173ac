/**
 * The models of pi-ai (`@earendil-works/pi-ai`), some forty providers, as a `StreamFn`.
 *
 * Install pi-ai beside this library. The layers here call a function of pi-ai and never load it themselves: what of it a
 * program carries is decided where that function is imported.
 *
 * - When a run is aborted, or a response ends early, pi-ai's `AbortSignal` fires and the connection is closed.
 * - pi-ai does not try again by itself (`maxRetries: 0`, unless an option says otherwise).
 * - The messages are those that pi-ai gives, field by field; only their time comes from Effect's `Clock`.
 * - Errors are `ModelError`s whose reason and waiting time come from the server's answer, and whose text never holds the key.
 *
 * **Example** (An agent)
 *
 * ```ts
 * import { builtinModels } from "@earendil-works/pi-ai/providers/all"
 * import { Effect } from "effect"
 * import { Agent } from "effect-pi"
 * import { PiAi } from "effect-pi/pi-ai"
 *
 * const models = builtinModels()
 *
 * const program = Effect.gen(function*() {
 *   const model = yield* PiAi.find(models, "anthropic", "claude-sonnet-4-5")
 *   const agent = yield* Agent.make({ systemPrompt: "Be brief.", model })
 *   return yield* agent.prompt("What is an agent?")
 * }).pipe(Effect.scoped, Effect.provide(PiAi.layerModels(models)))
 * ```
 *
 * @since 0.1.0
 */
import type { Api, Model as PiModel, Models } from "@earendil-works/pi-ai"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type Options as RequestOptions,
  type PiStream,
  respond,
  type StreamFunction as Call
} from "../internal/pi-ai/request.ts"
import { type Model, StreamFn } from "../StreamFn.ts"

/**
 * A stream function as pi-agent-core takes it: `streamSimple` of an api module (`@earendil-works/pi-ai/api/…`), of a
 * provider, or one's own. Source: pi-agent-core's `StreamFn`.
 *
 * @category models
 * @since 0.1.0
 */
export type StreamFunction = Call

/**
 * What a stream function gives: pi-ai's `AssistantMessageEventStream`, or any other iterable of its events. Without a
 * final event the message of `result()` is the end.
 *
 * @category models
 * @since 0.1.0
 */
export type ResponseStream = PiStream

/**
 * Options of pi-ai that go with every request, such as `temperature`, `maxTokens`, `cacheRetention`, `transport`, `env`,
 * `onPayload` and `onResponse`.
 *
 * **Details**
 *
 * What a request carries wins: its key, session, headers (field by field), thinking level and budgets, and metadata are the
 * agent's. `apiKey` is for requests for which the hook `Hooks.apiKey` has none.
 *
 * **Gotchas**
 *
 * With `maxRetries` pi-ai tries again by itself, by the clock of the machine and without telling anybody.
 *
 * @category models
 * @since 0.1.0
 */
export type Options = RequestOptions

/**
 * Answers requests with a stream function of pi-ai.
 *
 * **Gotchas**
 *
 * A function that ignores its `AbortSignal` is left behind when a run is aborted: the run ends, the function goes on unseen
 * until its next event.
 *
 * **Example** (One api, one server)
 *
 * ```ts
 * import { streamSimple } from "@earendil-works/pi-ai/api/openai-completions"
 * import { Redacted } from "effect"
 * import { PiAi } from "effect-pi/pi-ai"
 *
 * const Local = PiAi.layer(streamSimple, { apiKey: Redacted.make("none"), temperature: 0 })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (streamFunction: StreamFunction, options: Options = {}): Layer.Layer<StreamFn> =>
  Layer.succeed(StreamFn, { stream: (request) => respond(streamFunction, options, request) })

/**
 * Answers requests with the providers of a `Models` collection: each model goes to its own provider, with the key that
 * pi-ai finds for it, in the environment or in its store.
 *
 * **Example** (All providers that are built in)
 *
 * ```ts
 * import { builtinModels } from "@earendil-works/pi-ai/providers/all"
 * import { PiAi } from "effect-pi/pi-ai"
 *
 * const Anything = PiAi.layerModels(builtinModels())
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerModels = (models: Pick<Models, "streamSimple">, options: Options = {}): Layer.Layer<StreamFn> =>
  layer((model, context, requestOptions) => models.streamSimple(model, context, requestOptions), options)

/**
 * A model of pi-ai as one that an agent takes. All fields are kept, those that only pi-ai knows among them.
 *
 * **Example** (A model of a list)
 *
 * ```ts
 * import { getBuiltinModel } from "@earendil-works/pi-ai/providers/all"
 * import { PiAi } from "effect-pi/pi-ai"
 *
 * const model = PiAi.model(getBuiltinModel("openai", "gpt-5.2"))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const model = (piModel: PiModel<Api>): Model => ({ ...piModel })

/**
 * There is no such model in a collection.
 *
 * @category errors
 * @since 0.1.0
 */
export class ModelNotFound extends Data.TaggedError("ModelNotFound")<{
  readonly reason: "UnknownProvider" | "UnknownModel"
  readonly message: string
  readonly provider: string
  readonly model: string
}> {}

/** How many names an error lists. */
const maxListed = 12

const listed = (names: ReadonlyArray<string>): string =>
  names.length <= maxListed
    ? names.join(", ")
    : `${names.slice(0, maxListed).join(", ")} and ${names.length - maxListed} more`

/**
 * A model of a collection by provider and id; an id that it does not know fails with what there is.
 *
 * **Example** (A model, or why not)
 *
 * ```ts
 * import { builtinModels } from "@earendil-works/pi-ai/providers/all"
 * import { PiAi } from "effect-pi/pi-ai"
 *
 * const found = PiAi.find(builtinModels(), "anthropic", "claude-sonnet-4-5")
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const find = (
  models: Pick<Models, "getModel" | "getModels" | "getProviders">,
  provider: string,
  id: string
): Effect.Effect<Model, ModelNotFound> =>
  Effect.suspend(() => {
    const found = models.getModel(provider, id)
    if (found !== undefined) return Effect.succeed(model(found))
    const providers = models.getProviders().map((each) => each.id)
    if (!providers.includes(provider)) {
      return Effect.fail(
        new ModelNotFound({
          reason: "UnknownProvider",
          provider,
          model: id,
          message: `pi-ai has no provider "${provider}"; it has ${listed(providers)}.`
        })
      )
    }
    const ids = models.getModels(provider).map((each) => each.id)
    return Effect.fail(
      new ModelNotFound({
        reason: "UnknownModel",
        provider,
        model: id,
        message: `The provider "${provider}" has no model "${id}"; it has ${listed(ids)}.`
      })
    )
  })
