/** What of Effect an agent needs at least: effects, streams, queues, layers and schemas. Nothing of effect-pi. */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const decode = Schema.decodeUnknownEffect(Schema.Struct({ text: Schema.String }))

const program = Effect.gen(function*() {
  const queue = yield* Queue.unbounded<string>()
  yield* Queue.offer(queue, "go")
  const [text] = yield* Stream.runCollect(Stream.take(Stream.fromQueue(queue), 1))
  return yield* decode({ text })
})

export const main = (layer: Layer.Layer<never>): Promise<unknown> => Effect.runPromise(Effect.provide(program, layer))
