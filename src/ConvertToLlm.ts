/**
 * The conversion from what an agent records to what a model understands, once per request.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { withoutAmbient } from "./internal/currentRun.ts"
import { type AgentMessage, isMessage, type Message } from "./Messages.ts"

/**
 * A conversion whose requirements were met.
 *
 * @category models
 * @since 0.1.0
 */
export interface Conversion {
  readonly convert: (
    messages: ReadonlyArray<AgentMessage>
  ) => ReadonlyArray<Message> | Effect.Effect<ReadonlyArray<Message>, unknown>
}

/**
 * Keeps the roles a model knows (`system`, `user`, `assistant`, `toolResult`) and drops the rest; source: pi's
 * `defaultConvertToLlm`. While it is in place, requests are extended instead of built anew.
 *
 * @category constructors
 * @since 0.1.0
 */
export const defaultConversion: Conversion = { convert: (messages) => messages.filter(isMessage) }

/**
 * The conversion in use; the default is {@link defaultConversion}.
 *
 * @category services
 * @since 0.1.0
 */
export const ConvertToLlm: Context.Reference<Conversion> = Context.Reference("effect-pi/ConvertToLlm", {
  defaultValue: () => defaultConversion
})

/**
 * Replaces the conversion, for instance to show custom messages to the model.
 *
 * **Gotchas**
 *
 * A conversion that drops the system messages hides prompt and tools from the model. Its failure ends the run as
 * `Failed`.
 *
 * **Example** (Notes become user messages)
 *
 * ```ts
 * import { ConvertToLlm, Messages } from "effect-pi"
 *
 * const Notes = ConvertToLlm.layer((messages) =>
 *   messages.map((message) => (message.role as string) === "note" ? Messages.user(Messages.text(message)) : message)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E = never, R = never>(
  convert: (
    messages: ReadonlyArray<AgentMessage>
  ) => ReadonlyArray<Message> | Effect.Effect<ReadonlyArray<Message>, E, R>
): Layer.Layer<never, never, R> =>
  Layer.effect(
    ConvertToLlm,
    Effect.contextWith((context: Context.Context<R>) => {
      const services = withoutAmbient(context)
      return Effect.succeed<Conversion>({
        convert: (messages) => {
          const converted = convert(messages)
          return Effect.isEffect(converted) ? Effect.provideContext(Effect.scoped(converted), services) : converted
        }
      })
    })
  )
