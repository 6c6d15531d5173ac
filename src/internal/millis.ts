/**
 * Durations in options, as milliseconds.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Result from "effect/Result"

/** A finite duration in milliseconds; fails with what is wrong. */
export const readMillis = (name: string, input: Duration.Input, atLeast: number): Result.Result<number, string> => {
  const duration = Duration.fromInput(input)
  const millis = Option.isSome(duration) ? Duration.toMillis(duration.value) : Number.NaN
  return Number.isFinite(millis) && millis >= atLeast
    ? Result.succeed(millis)
    : Result.fail(`${name} must be a finite duration of at least ${atLeast} ms, such as "1 second".`)
}
