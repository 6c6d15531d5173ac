/**
 * A run as the stream of its events, without loss: the run waits for a slow consumer, and ends when the consumer goes.
 */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { RunOutcome } from "../Errors.ts"
import type { AgentEvent } from "../Events.ts"

const capacity = 64

/**
 * `run` tells every event to the first function it is given, and asks the second to wait until the end with a certain
 * outcome was taken: after an abort a run does not wait for a consumer beyond the grace period, but the stream does.
 */
export const eventStream = <A, E, R>(
  run: (
    emit: (event: AgentEvent) => Effect.Effect<void> | void,
    taken: (outcome: RunOutcome) => Effect.Effect<void>
  ) => Effect.Effect<A, E, R>
): Stream.Stream<AgentEvent, E, R> =>
  Stream.unwrap(Effect.gen(function*() {
    const queue = yield* Queue.bounded<AgentEvent, E | Cause.Done>(capacity)
    const ends = new Map<RunOutcome, Deferred.Deferred<void>>()
    const endOf = (outcome: RunOutcome): Deferred.Deferred<void> => {
      const end = ends.get(outcome) ?? Deferred.makeUnsafe()
      ends.set(outcome, end)
      return end
    }
    const offered = (event: AgentEvent): void => {
      if (event.type === "agent_end") Deferred.doneUnsafe(endOf(event.outcome), Effect.void)
    }
    const emit = (event: AgentEvent): Effect.Effect<void> | void => {
      if (Queue.offerUnsafe(queue, event)) return offered(event)
      return Effect.map(Queue.offer(queue, event), () => offered(event))
    }
    yield* Effect.acquireRelease(
      Effect.forkDetach(
        Effect.onExit(run(emit, (outcome) => Deferred.await(endOf(outcome))), (exit) =>
          exit._tag === "Success" ? Queue.end(queue) : Queue.failCause(queue, exit.cause)),
        { startImmediately: true }
      ),
      // A consumer that has gone takes nothing more: waiting offers are released before the run is aborted.
      (fiber) =>
        Effect.andThen(Queue.shutdown(queue), Fiber.interrupt(fiber))
    )
    return Stream.fromQueue(queue)
  }))
