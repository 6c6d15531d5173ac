/**
 * Trying the same model again.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { Budget } from "../../Budget.ts"
import type { ModelError } from "../../Errors.ts"
import { type Attempt, attempts, type Next } from "./attempts.ts"
import { onLayer } from "./onLayer.ts"

/** The options of `Resilience.retry`; see there. */
export interface RetryOptions {
  readonly schedule?: Schedule.Schedule<unknown, ModelError> | undefined
  readonly times?: number | undefined
  readonly while?: ((error: ModelError) => boolean) | undefined
  readonly maxDelay?: Duration.Input | undefined
}

const defaultSchedule = Schedule.exponential("500 millis").pipe(Schedule.jittered)

export const retry = (options: RetryOptions) =>
  onLayer((stream) =>
    Effect.succeed((request) => {
      const attempt: Attempt = { stream: Stream.suspend(() => stream(request)) }
      return Stream.unwrap(Effect.map(nextOf(options, attempt), (next) => attempts(attempt, next)))
    })
  )

const nextOf = (options: RetryOptions, attempt: Attempt): Effect.Effect<Next> => {
  const { maxDelay = "1 minute", schedule = defaultSchedule, times = 3 } = options
  const isWorthIt = options.while ?? ((error: ModelError) => error.isRetryable)
  return Effect.map(Schedule.toStep(schedule), (step): Next => (error, count) =>
    Effect.gen(function*() {
      if (!isWorthIt(error) || count > times + 1) return undefined
      const { retryAfter = 0 } = error
      if (retryAfter > Duration.toMillis(maxDelay)) return undefined
      const now = yield* Clock.currentTimeMillis
      const scheduled = yield* Pull.catchDone(
        Effect.map(step(now, error), ([, delay]) => Duration.toMillis(delay)),
        () => Effect.undefined
      )
      if (scheduled === undefined) return undefined
      yield* Effect.sleep(Math.max(scheduled, retryAfter))
      const budget = yield* Budget
      return budget?.takeTurn() === undefined ? attempt : undefined
    }))
}
