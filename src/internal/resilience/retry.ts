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
import { checkMillis } from "../checks.ts"
import { type Attempt, attempts, type Next } from "./attempts.ts"
import { checkCount } from "./checks.ts"
import { type Answer, onLayer } from "./onLayer.ts"

/** The options of `Resilience.retry`; see there. */
export interface RetryOptions {
  readonly schedule?: Schedule.Schedule<unknown, ModelError> | undefined
  readonly times?: number | undefined
  readonly while?: ((error: ModelError) => boolean) | undefined
  readonly maxDelay?: Duration.Input | undefined
}

interface Settings extends Required<RetryOptions> {
  readonly schedule: Schedule.Schedule<unknown, ModelError>
  readonly while: (error: ModelError) => boolean
  /** Milliseconds. */
  readonly maxDelay: number
  readonly times: number
}

const defaultSchedule = Schedule.exponential("500 millis").pipe(Schedule.jittered)

/** Milliseconds. */
const defaultMaxDelay = 60_000

const isRetryable = (error: ModelError): boolean => error.isRetryable

export const retry = (options: RetryOptions) =>
  onLayer((stream) =>
    Effect.gen(function*() {
      const { schedule = defaultSchedule, times = 3 } = options
      const settings: Settings = {
        schedule,
        times: yield* checkCount("retry: times", times, 0),
        maxDelay: (yield* Effect.fromResult(checkMillis("retry: maxDelay", options.maxDelay, "InvalidOption", 1))) ??
          defaultMaxDelay,
        while: options.while ?? isRetryable
      }
      return (request): ReturnType<Answer> => {
        const attempt: Attempt = { stream: Stream.suspend(() => stream(request)) }
        return Stream.unwrap(Effect.map(nextOf(settings, attempt), (next) => attempts(attempt, next)))
      }
    })
  )

const nextOf = (settings: Settings, attempt: Attempt): Effect.Effect<Next> =>
  Effect.map(Schedule.toStep(settings.schedule), (step): Next => {
    let left = settings.times
    return Effect.fnUntraced(function*(error: ModelError) {
      const { retryAfter = 0 } = error
      if (!settings.while(error) || left-- === 0 || retryAfter > settings.maxDelay) return undefined
      const delay = yield* delayOf(step, error)
      if (delay === undefined) return undefined
      const budget = yield* Budget
      if (budget?.reached !== undefined) return undefined
      yield* Effect.sleep(Math.max(Math.min(delay, settings.maxDelay), retryAfter))
      return budget?.takeTurn() === undefined ? attempt : undefined
    })
  })

/** A schedule at work. */
type Step = (now: number, error: ModelError) => Pull.Pull<[unknown, Duration.Duration], never, unknown>

/** Milliseconds, or nothing when the schedule is over. */
const delayOf = Effect.fnUntraced(function*(step: Step, error: ModelError) {
  const now = yield* Clock.currentTimeMillis
  return yield* Pull.catchDone(
    Effect.map(step(now, error), ([, delay]): number | undefined => Duration.toMillis(delay)),
    () => Effect.undefined
  )
})
