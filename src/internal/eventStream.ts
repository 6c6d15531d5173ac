/**
 * A run as the stream of its events, without loss: the run waits for a slow consumer, and ends when the consumer goes.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../Events.ts"

const capacity = 64

/** `run` tells every event to the function it is given. */
export const eventStream = <A, E, R>(
  run: (emit: (event: AgentEvent) => Effect.Effect<void> | void) => Effect.Effect<A, E, R>
): Stream.Stream<AgentEvent, E, R> =>
  Stream.unwrap(Effect.gen(function*() {
    const queue = yield* Queue.bounded<AgentEvent, E | Cause.Done>(capacity)
    const emit = (event: AgentEvent): Effect.Effect<void> | void => {
      if (Queue.offerUnsafe(queue, event)) return
      return Effect.asVoid(Queue.offer(queue, event))
    }
    const fiber = yield* Effect.forkDetach(
      Effect.onExit(
        run(emit),
        (exit) => exit._tag === "Success" ? Queue.end(queue) : Queue.failCause(queue, exit.cause)
      ),
      { startImmediately: true }
    )
    // A consumer that has gone takes nothing more: waiting offers are released before the run is aborted.
    const leave = Effect.andThen(Queue.shutdown(queue), Fiber.interrupt(fiber))
    return Stream.ensuring(Stream.fromQueue(queue), leave)
  }))
