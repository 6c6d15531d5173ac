/**
 * pi-ai, where it is installed beside this program.
 */
import type { Models } from "@earendil-works/pi-ai"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** What is used of pi-ai's collection of models. */
export type PiModels = Pick<
  Models,
  "getModel" | "getModels" | "getProviders" | "getAvailable" | "streamSimple"
>

/** Loads the collection; `undefined` where pi-ai is not installed. */
export const PiAiModels: Context.Reference<Effect.Effect<PiModels | undefined>> = Context.Reference(
  "effect-pi/cli/PiAiModels",
  {
    defaultValue: () =>
      Effect.tryPromise(() => import("@earendil-works/pi-ai/providers/all")).pipe(
        Effect.map(({ builtinModels }): PiModels | undefined => builtinModels()),
        Effect.orElseSucceed(() => undefined)
      )
  }
)

/** For a provider that has a key and no model was named: the first of these that it has, else its first model. */
const preferred = [
  "claude-sonnet-4-5",
  "anthropic/claude-sonnet-4.5",
  "gpt-5.2",
  "gemini-2.5-pro",
  "devstral-medium-latest",
  "grok-4",
  "glm-4.6"
]

export const preferredOf = <M extends { readonly id: string }>(models: ReadonlyArray<M>): M | undefined => {
  for (const id of preferred) {
    const found = models.find((model) => model.id === id)
    if (found !== undefined) return found
  }
  return models[0]
}
