/**
 * effect/ai and this library: its language models answer the requests of agents, and its toolkits become their tools.
 *
 * - Calls are not resolved by effect/ai: the loop decodes and runs them, so that a wrong name or wrong arguments are a
 *   result the model can read, never the end of the response.
 * - Signatures, encrypted reasoning and ids of the provider's items are kept in the transcript and go back to the same model.
 * - `AiError`s become `ModelError`s, with reason and waiting time.
 *
 * **Example** (An agent)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import type { LanguageModel } from "effect/ai"
 * import { Agent } from "effect-pi"
 * import { EffectAi } from "effect-pi/language-model"
 *
 * declare const SomeProvider: Layer.Layer<LanguageModel.LanguageModel>
 *
 * const program = Effect.gen(function*() {
 *   const agent = yield* Agent.make({ systemPrompt: "Be brief." })
 *   return yield* agent.prompt("What is an agent?")
 * }).pipe(Effect.scoped, Effect.provide(EffectAi.layer().pipe(Layer.provide(SomeProvider))))
 * ```
 *
 * @since 0.1.0
 */
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as AiTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AgentConfigError } from "../Errors.ts"
import { type Options as RequestOptions, respond } from "../internal/language-model/request.ts"
import {
  type ApprovalRequest as Request,
  type ToolkitOptions as FromToolkitOptions,
  toTool
} from "../internal/language-model/toolkit.ts"
import { StreamFn } from "../StreamFn.ts"
import type { Tool } from "../Tools.ts"

/**
 * What can be set for a layer.
 *
 * **Details**
 *
 * `configure` sees the stream of every response before it runs, together with the request. effect/ai has no place for
 * thinking levels, keys, headers, session ids or metadata: providers take such things from services of their own, which can be
 * provided here.
 *
 * @category models
 * @since 0.1.0
 */
export type Options = RequestOptions

/**
 * Answers requests with the `LanguageModel` of the context.
 *
 * **Gotchas**
 *
 * - Which model answers is decided by the `LanguageModel`. The agent's `model` is what messages say of it, and its `cost` and
 *   `id` count: give an agent one when costs matter, and a new one when the language model changes, since signed reasoning
 *   only goes back to the model that is named in the message.
 * - What a provider executes itself, sources and files of a response are kept in the message's `diagnostics`.
 * - Providers have to honour `toolCallValidation: "deferred"`, as those made with `LanguageModel.make` do.
 *
 * **Example** (The thinking level of the agent)
 *
 * ```ts
 * import { Context, Stream } from "effect"
 * import { EffectAi } from "effect-pi/language-model"
 *
 * // What a provider might read.
 * class Effort extends Context.Service<Effort, string>()("Effort") {}
 *
 * const Model = EffectAi.layer({
 *   configure: (stream, request) => Stream.provideService(stream, Effort, request.thinkingLevel)
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<StreamFn, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    StreamFn,
    Effect.map(LanguageModel.LanguageModel, (model) => ({ stream: (request) => respond(model, options, request) }))
  )

/**
 * What an approval is asked for: the tool's name, its decoded parameters, and the call.
 *
 * @category models
 * @since 0.1.0
 */
export type ApprovalRequest = Request

/**
 * What can be set for the tools of a toolkit.
 *
 * **Details**
 *
 * - `approve` is asked before a tool with `needsApproval` runs; `false`, or nobody to ask, is an error result.
 * - `executionMode: "sequential"`: a response that calls one of these tools runs its calls one after the other.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolkitOptions<R = never> = FromToolkitOptions<R>

/**
 * The tools of a `Toolkit` of effect/ai with their handlers, for an agent.
 *
 * **Details**
 *
 * - Arguments are decoded leniently, as for every tool of an agent, before the handler gets them.
 * - Preliminary results are progress. The last result is the call's: its encoded value as text (or what `toModelOutput` makes
 *   of it), and as `details` and `structuredContent` unless it is a text.
 * - A failure is an error result: with the failure mode `return` its encoded value, else its message.
 * - Title and annotations (`Readonly`, `Destructive`, `Idempotent`, `OpenWorld`) become `label` and `annotations`.
 *
 * **Gotchas**
 *
 * A function in `needsApproval` sees the call alone for its `messages`. A tool that the provider executes itself cannot be
 * run by an agent and fails with `AgentConfigError`.
 *
 * **Example** (A toolkit)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool, Toolkit } from "effect/ai"
 * import { Agent } from "effect-pi"
 * import { EffectAi } from "effect-pi/language-model"
 *
 * const Weather = Toolkit.make(Tool.make("weather", {
 *   description: "The weather of a city.",
 *   parameters: Schema.Struct({ city: Schema.String }),
 *   success: Schema.Struct({ degrees: Schema.Finite })
 * }))
 *
 * const agent = Effect.gen(function*() {
 *   const tools = yield* EffectAi.fromToolkit(Weather)
 *   return yield* Agent.make({ tools })
 * }).pipe(Effect.provide(Weather.toLayer({ weather: () => Effect.succeed({ degrees: 21 }) })))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromToolkit = <T extends Record<string, AiTool.Any>, E = never, R = never, R2 = never>(
  toolkit: Effect.Effect<Toolkit.WithHandler<T>, E, R> | Toolkit.WithHandler<T>,
  options: ToolkitOptions<R2> = {}
): Effect.Effect<ReadonlyArray<Tool<AiTool.HandlerServices<T[keyof T]> | R2>>, AgentConfigError | E, R> =>
  Effect.gen(function*() {
    const { handle, tools } = Effect.isEffect(toolkit) ? yield* toolkit : toolkit
    return yield* Effect.forEach(
      Object.values<AiTool.Any>(tools),
      (tool) =>
        toTool<AiTool.HandlerServices<T[keyof T]>, R2>(
          tool,
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- name and parameters are those of this tool
          (name, params, id) => handle(name as keyof T, params as never, id),
          options
        )
    )
  })
