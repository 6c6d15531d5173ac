/**
 * The time of a clock.
 */
import type * as Clock from "effect/Clock"
import { attempt } from "./json.ts"

/** Gives the time in milliseconds. While the clock throws, its last time counts: what waits for a run must not wait for ever. */
export const timeOf = (clock: Clock.Clock): () => number => {
  let last = 0
  return () => last = attempt(() => clock.currentTimeMillisUnsafe()) ?? last
}
