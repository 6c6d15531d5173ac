/**
 * What changes the `StreamFn` that a layer supplies.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { StreamFn } from "../../StreamFn.ts"

export type Answer = StreamFn["Service"]["stream"]

/** The layer's `StreamFn` with another function in its place. */
export const onLayer =
  <E2 = never, R2 = never>(change: (stream: Answer) => Effect.Effect<Answer, E2, R2>) =>
  <E, R>(self: Layer.Layer<StreamFn, E, R>) =>
    Layer.effect(
      StreamFn,
      Effect.flatMap(StreamFn, ({ stream }) => Effect.map(change(stream), (changed) => ({ stream: changed })))
    ).pipe(Layer.provide(self))
