/**
 * Checks of what can be set.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { AgentConfigError } from "../../Errors.ts"
import { readMillis } from "../millis.ts"

const invalid = (message: string): AgentConfigError => new AgentConfigError({ reason: "InvalidOption", message })

export const checkCount = (name: string, count: number, atLeast: number): Effect.Effect<number, AgentConfigError> =>
  count === Infinity || (Number.isInteger(count) && count >= atLeast)
    ? Effect.succeed(count)
    : Effect.fail(invalid(`${name} must be a whole number of at least ${atLeast}, not ${String(count)}.`))

export const checkMillis = (name: string, input: Duration.Input): Effect.Effect<number, AgentConfigError> =>
  Effect.mapError(Effect.fromResult(readMillis(name, input, 1)), invalid)
