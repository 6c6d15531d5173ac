/**
 * The time of a clock.
 */
import type * as Clock from "effect/Clock"
import { attempt } from "./json.ts"

/** While the clock throws, its last time counts: what waits for a run must not wait for ever. */
export class Time {
  readonly #clock: Clock.Clock
  #last = 0

  constructor(clock: Clock.Clock) {
    this.#clock = clock
  }

  /** Milliseconds. */
  now(): number {
    return this.#last = attempt(() => this.#clock.currentTimeMillisUnsafe()) ?? this.#last
  }
}
