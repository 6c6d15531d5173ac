/**
 * Deadlines that hold for code that ignores interruption: the work runs in a fiber of its own, and whoever waits goes on
 * when the time is over. What is left of the work is interrupted and remembered; the end of the run waits for it once
 * more, within the grace period.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { HookName } from "../Errors.ts"
import * as Log from "./log.ts"
import type { Run } from "./run.ts"

const leave = (run: Run, what: string, fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> => {
  run.leftovers ??= []
  run.leftovers.push(fiber)
  fiber.interruptUnsafe()
  if (fiber.pollUnsafe() !== undefined) return Effect.void
  const late = Effect.flatMap(Fiber.await(fiber), () => Log.warn(`${what} ended after its deadline`))
  return Effect.asVoid(Effect.forkDetach(late, { startImmediately: true }))
}

/** The exit of the work, or `undefined` when it did not end in time. Interrupting the wait interrupts the work. */
export const within = <A, E, R>(
  run: Run,
  millis: number,
  what: string,
  work: Effect.Effect<A, E, R>
): Effect.Effect<Exit.Exit<A, E> | undefined, never, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(work, { startImmediately: true }), (fiber) => {
      const done = fiber.pollUnsafe()
      if (done !== undefined) return Effect.succeed(done)
      return Effect.flatMap(
        Effect.onInterrupt(
          restore(Effect.raceFirst(Fiber.await(fiber), Effect.as(Effect.sleep(millis), undefined))),
          () => Fiber.interrupt(fiber)
        ),
        (exit) => exit === undefined ? Effect.as(leave(run, what, fiber), undefined) : Effect.succeed(exit)
      )
    })
  )

/** Runs work that nobody waits for any more; see {@link within}. */
export const inBackground = (run: Run, what: string, work: Effect.Effect<unknown>): Effect.Effect<void> =>
  Effect.flatMap(Effect.forkDetach(work, { startImmediately: true }), (fiber) => leave(run, what, fiber))

/**
 * Closes what is not needed any more, without waiting for it: it is not interrupted, and awaited once more when the run
 * ends. Its failure goes to the log.
 */
export const closeInBackground = (run: Run, what: string, close: Effect.Effect<unknown>): Effect.Effect<void> => {
  const closing = Effect.andThen(
    Effect.catchCause(close, (cause) => Log.warn(`${what} could not be closed`, cause)),
    Effect.suspend(() => run.settled ? Log.warn(`${what} was closed after its run had ended`) : Effect.void)
  )
  return Effect.map(Effect.forkDetach(closing, { startImmediately: true, uninterruptible: true }), (fiber) => {
    if (fiber.pollUnsafe() !== undefined) return
    run.leftovers = run.leftovers?.filter((left) => left.pollUnsafe() === undefined) ?? []
    run.leftovers.push(fiber)
  })
}

/** A hook's effect within the time hooks have. */
export const withinHookTime = <A, E, R>(
  run: Run,
  hook: HookName,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | string, R> => {
  const { hookTimeout } = run.config
  if (hookTimeout === undefined) return effect
  return Effect.flatMap(
    within(run, hookTimeout, `The ${hook} hook`, effect),
    (exit): Effect.Effect<A, E | string> => exit ?? Effect.fail(`The ${hook} hook timed out after ${hookTimeout} ms`)
  )
}

/** Waits for what missed its deadline, no longer than the grace period. */
export const awaitLeftovers = (run: Run): Effect.Effect<void> => {
  const open = run.leftovers?.filter((fiber) => fiber.pollUnsafe() === undefined) ?? []
  if (open.length === 0) return Effect.void
  return Effect.raceFirst(Effect.asVoid(Fiber.awaitAll(open)), Effect.sleep(run.config.gracePeriod))
}
