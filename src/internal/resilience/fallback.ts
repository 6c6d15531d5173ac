/**
 * Other models for requests that one could not answer.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ModelError } from "../../Errors.ts"
import { type Model, StreamFn, type StreamRequest } from "../../StreamFn.ts"
import { type Attempt, attempts } from "./attempts.ts"
import { type Answer, onLayer } from "./onLayer.ts"

/** One of the models of `Resilience.fallback`; see there. */
export interface Alternative<E = never, R = never> {
  readonly layer: Layer.Layer<StreamFn, E, R>
  readonly model?: Model | undefined
  readonly when?: ((error: ModelError) => boolean) | undefined
}

/** An alternative that is ready to answer. */
interface Ready extends Omit<Alternative, "layer"> {
  readonly stream: Answer
}

export const fallback = <E2, R2>(alternatives: ReadonlyArray<Alternative<E2, R2>>) =>
  onLayer<E2, Exclude<R2, Scope.Scope>>((stream) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the scope of the layer is there when it is built
    Effect.map(Effect.forEach(alternatives, make), (ready): Answer => (request) => {
      let tried = 0
      return attempts({ stream: Stream.suspend(() => stream(request)) }, (error) =>
        Effect.sync(() => {
          while (tried < ready.length) {
            const alternative = ready[tried++]!
            if ((alternative.when ?? isNoAbort)(error)) return attemptOf(alternative, request)
          }
          return undefined
        }))
    }) as Effect.Effect<Answer, E2, Exclude<R2, Scope.Scope>>
  )

const isNoAbort = ({ reason }: ModelError): boolean => reason !== "Aborted"

const make = <E, R>({ layer, ...rest }: Alternative<E, R>): Effect.Effect<Ready, E, R | Scope.Scope> =>
  Effect.map(Layer.build(layer), (services) => ({ ...rest, stream: Context.get(services, StreamFn).stream }))

const attemptOf = ({ model, stream }: Ready, request: StreamRequest): Attempt => {
  // Keys and headers were asked for the provider of the request: whoever is not known to be that one must not see them.
  const { baseUrl, provider } = request.model
  const isKnown = model?.provider !== undefined && model.provider === provider && model.baseUrl === baseUrl
  const asked = {
    ...request,
    model: model ?? request.model,
    ...(!isKnown && { apiKey: undefined, headers: undefined })
  }
  return {
    stream: Stream.suspend(() => stream(asked)),
    ...(model !== undefined && {
      model: { id: model.id, api: model.api ?? "unknown", provider: model.provider ?? "unknown" }
    })
  }
}
