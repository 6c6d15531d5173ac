/**
 * Work in a fiber of its own, so that the work's own interruption can be told from that of whoever waits.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"

/**
 * The exit of the work. Interrupting the wait interrupts the work. Start and end are steps of their own, so that work
 * inside work inside work, however deep, does not nest on the stack.
 */
export const inFiber = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<Exit.Exit<A, E>, never, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(work), (fiber) =>
      Effect.tap(
        Effect.onInterrupt(restore(Fiber.await(fiber)), () => Fiber.interrupt(fiber)),
        Effect.yieldNow
      ))
  )
