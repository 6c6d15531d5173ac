/**
 * So many requests in a window of time, and so many at once. Who has to wait can be interrupted.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { checkMillis } from "../checks.ts"
import { checkCount } from "./checks.ts"
import { onLayer } from "./onLayer.ts"

/** The options of `Resilience.rateLimit`; see there. */
export interface RateLimitOptions {
  readonly requests?: number | undefined
  readonly window?: Duration.Input | undefined
  readonly concurrency?: number | undefined
}

/** Milliseconds. */
const defaultWindow = 60_000

type Wait = Effect.Effect<void>

const limiterLayer = RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory))

export const rateLimit = (options: RateLimitOptions) =>
  onLayer((stream) =>
    Effect.gen(function*() {
      const { concurrency = Infinity, requests = Infinity } = options
      yield* checkCount("rateLimit: requests", requests, 1)
      yield* checkCount("rateLimit: concurrency", concurrency, 1)
      const window = yield* Effect.fromResult(checkMillis("rateLimit: window", options.window, "InvalidOption", 1))
      const inTime: Wait = requests === Infinity ? Effect.void : yield* windowed(requests, window ?? defaultWindow)
      const places = yield* Semaphore.make(concurrency)
      // The place is held until the stream is closed.
      const permitted = Effect.andThen(places.takeScoped(1), inTime)
      return (request) => Stream.unwrap(Effect.map(permitted, () => stream(request)))
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
