/**
 * The time of a clock.
 */
import type * as Clock from "effect/Clock"
import * as Result from "effect/Result"

/** While the clock throws, its last time counts: what waits for a run must not wait for ever. */
export class Time {
  readonly #clock: Clock.Clock
  #last = 0

  constructor(clock: Clock.Clock) {
    this.#clock = clock
  }

  /** Milliseconds. */
  now(): number {
    const read = Result.try(() => this.#clock.currentTimeMillisUnsafe())
    if (Result.isSuccess(read)) this.#last = read.success
    return this.#last
  }
}
