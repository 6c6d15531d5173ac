/**
 * So many requests in a window of time, and so many at once. Who has to wait can be interrupted.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { checkCount, checkMillis } from "./checks.ts"
import { onLayer } from "./onLayer.ts"

/** The options of `Resilience.rateLimit`; see there. */
export interface RateLimitOptions {
  readonly requests?: number | undefined
  readonly window?: Duration.Input | undefined
  readonly concurrency?: number | undefined
}

type Wait = Effect.Effect<void>

const limiterLayer = RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory))

export const rateLimit = (options: RateLimitOptions) =>
  onLayer((stream) =>
    Effect.gen(function*() {
      const { concurrency = Infinity, requests = Infinity, window = "1 minute" } = options
      yield* checkCount("rateLimit: requests", requests, 1)
      yield* checkCount("rateLimit: concurrency", concurrency, 1)
      const millis = yield* checkMillis("rateLimit: window", window)
      const inTime: Wait = requests === Infinity ? Effect.void : yield* windowed(requests, millis)
      const places = concurrency === Infinity ? undefined : yield* Queue.bounded<void>(concurrency)
      if (places === undefined) return (request) => Stream.unwrap(Effect.map(inTime, () => stream(request)))
      yield* Effect.replicateEffect(Queue.offer(places, undefined), concurrency, { discard: true })
      const place = Effect.acquireRelease(
        Queue.take(places),
        () => Queue.offer(places, undefined),
        { interruptible: true }
      )
      return (request) => Stream.unwrap(Effect.map(Effect.andThen(place, inTime), () => stream(request)))
    })
  )

const windowed = (limit: number, millis: number): Effect.Effect<Wait> =>
  Effect.gen(function*() {
    const { consume } = yield* RateLimiter.RateLimiter
    return Effect.flatMap(
      Effect.orDie(
        consume({ algorithm: "token-bucket", onExceeded: "delay", key: "requests", limit, window: millis, tokens: 1 })
      ),
      ({ delay }) => Effect.sleep(delay)
    )
  }).pipe(Effect.provide(limiterLayer))
