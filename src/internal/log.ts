/**
 * Logging that costs nothing else: a logger that fails, or a value that cannot be rendered, is no failure of the run.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

const safely = (logging: Effect.Effect<void>): Effect.Effect<void> => Effect.catchCause(logging, () => Effect.void)

export const debug = (message: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  safely(Effect.logDebug(message, cause))

export const warn = (message: string, ...cause: ReadonlyArray<Cause.Cause<unknown>>): Effect.Effect<void> =>
  safely(Effect.logWarning(message, ...cause))

export const error = (message: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  safely(Effect.logError(message, cause))
