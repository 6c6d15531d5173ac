/**
 * Counts in options, where `Infinity` stands for no limit.
 */
import * as Effect from "effect/Effect"
import type { AgentConfigError } from "../../Errors.ts"
import { refuse } from "../checks.ts"

export const checkCount = (name: string, count: number, atLeast: number): Effect.Effect<number, AgentConfigError> =>
  count === Infinity || (Number.isInteger(count) && count >= atLeast)
    ? Effect.succeed(count)
    : Effect.fromResult(refuse("InvalidOption", `${name} must be a whole number of at least ${atLeast}, not ${count}.`))
