/**
 * Work in a fiber of its own, so that the work's own interruption can be told from that of whoever waits.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"

/**
 * The exit of the work. Interrupting the wait interrupts the work. Work that is not to start at once has start and end as
 * steps of their own: work inside work does then not nest on the stack.
 */
export const inFiber = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  atOnce: boolean
): Effect.Effect<Exit.Exit<A, E>, never, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(work, { startImmediately: atOnce }), (fiber) => {
      const exit = Effect.onInterrupt(restore(Fiber.await(fiber)), () => Fiber.interrupt(fiber))
      return atOnce ? exit : Effect.tap(exit, Effect.yieldNow)
    })
  )
