/**
 * Starting a run in a fiber of its own, waiting for it, and aborting it.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { Budget } from "../Budget.ts"
import { type ListenerError, ModelError, type RunError, RunOutcome } from "../Errors.ts"
import { close, takeOver } from "./closing.ts"
import { CurrentRun, isInside } from "./currentRun.ts"
import { show } from "./json.ts"
import * as Log from "./log.ts"
import { Watcher } from "./probe.ts"
import type { Run } from "./run.ts"

const outcomeOf = (run: Run, exit: Exit.Exit<RunOutcome, RunError>): RunOutcome => {
  if (run.stop !== undefined) return run.stop
  if (run.stopping) return RunOutcome.Aborted()
  if (Exit.isSuccess(exit)) return exit.value
  const error = Cause.findError(exit.cause)
  if (Result.isSuccess(error)) return RunOutcome.Failed({ error: error.success })
  const defect = Cause.squash(exit.cause)
  return RunOutcome.Failed({ error: new ModelError({ reason: "Unknown", message: show(defect), cause: defect }) })
}

/**
 * Runs a loop in a fiber of its own, in this context. The fiber is not interrupted but where it waits for code of others:
 * the loop opens such places itself, and looks behind each of them and behind every event whether the run is stopping.
 */
export const start = (
  run: Run,
  context: Context.Context<never>,
  loop: Effect.Effect<RunOutcome, RunError>
): void => {
  // At once: a run may be stopped before the first step of its fiber.
  run.parent = Context.get(context, CurrentRun)
  const inside = Context.add(context, CurrentRun, run)
  const services = Context.get(context, Budget) === run.budget ? inside : Context.add(inside, Budget, run.budget)
  run.services = Context.get(context, Watcher)?.(run, services) ?? services
  run.emitter.services = run.services
  run.budget?.begin(run.now())
  Effect.runForkWith(run.services)(execute(run, loop), { uninterruptible: true })
  if (run.budget !== undefined) Effect.runForkWith(context)(stopInTime(run))
}

const execute = (run: Run, loop: Effect.Effect<RunOutcome, RunError>): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    run.fiber = fiber
    if (run.stopping) fiber.interruptUnsafe()
    return Effect.flatMap(
      isPausing(run) ? pausing(Effect.exit(loop)) : Effect.exit(loop),
      (exit) => {
        if (run.owner !== 0) return Effect.void
        // Stopped by the run around it, which nobody watches from here.
        if (run.stopping && !run.watched) {
          run.watched = true
          Effect.runForkWith(fiber.context)(watch(run, run.config.gracePeriod))
        }
        return close(run, outcomeOf(run, exit), 0)
      }
    )
  })

/** Only every so often does a chain of runs inside runs pause, which is all the stack needs. */
const isPausing = ({ parent }: Run): boolean => {
  let depth = 0
  for (let around = parent; around !== undefined; around = around.parent) depth++
  return depth % 16 === 15
}

/** Start and end as steps of their own: runs inside runs do then not nest on the stack. */
const pausing = <A>(work: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.andThen(Effect.yieldNow, Effect.tap(work, Effect.yieldNow))

/** Stops the run when the time of its budget is over. */
const stopInTime = (run: Run): Effect.Effect<void> => {
  const millis = run.budget?.millisLeft(run.now())
  if (millis === undefined || Deferred.isDoneUnsafe(run.done)) return Effect.void
  const outcome = RunOutcome.Limited({ limit: "duration" })
  return millis > 0
    ? Effect.andThen(orDone(run, millis), stop(run, outcome))
    // Without any time left the loop begins no turn; what keeps it from its end has the grace period.
    : Effect.andThen(orDone(run, run.config.gracePeriod), stop(run, outcome, 0))
}

/** Waits that many milliseconds, or until the run is settled. */
const orDone = (run: Run, millis: number): Effect.Effect<unknown> =>
  millis === 0 ? Effect.yieldNow : Effect.raceFirst(Deferred.await(run.done), Effect.sleep(millis))

/** Takes over when the run is not settled at the end of the grace period (A4). */
const watch = (run: Run, gracePeriod: number): Effect.Effect<void> =>
  Effect.andThen(
    orDone(run, gracePeriod),
    Effect.suspend(() => run.result !== undefined && Deferred.isDoneUnsafe(run.done) ? Effect.void : takeOver(run))
  )

/** Tells what works for the run to stop: hooks, the stream, and the tools in call order. */
const interrupt = (run: Run): void => {
  run.finishing?.interruptUnsafe()
  run.fiber?.interruptUnsafe()
  for (const call of run.batch?.calls ?? []) call.fiber?.interruptUnsafe()
}

/**
 * Stops the run and waits until it is settled; from inside the run it returns at once (A1). Once `agent_end` is emitted
 * the outcome stays, and only what does not finish with that event is left behind. The first stop counts.
 */
export const stop = (
  run: Run,
  outcome: RunOutcome,
  gracePeriod: number = run.config.gracePeriod
): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    if (Deferred.isDoneUnsafe(run.done)) return Effect.void
    const inside = isInside(fiber, run)
    if (!run.watched) {
      run.watched = true
      if (!run.ended) {
        run.stop = outcome
        run.probe?.stopped(outcome)
      }
      // A tool that stops its own run goes on to the next place where it waits; then all tools stop, in call order.
      const later = inside && fiber !== run.fiber
      const watching = later
        ? Effect.andThen(Effect.yieldNow, Effect.andThen(Effect.sync(() => interrupt(run)), watch(run, gracePeriod)))
        : watch(run, gracePeriod)
      // Forked here and not in a step of its own, which a fiber that is stopped might never take.
      if (!later && fiber !== run.fiber) interrupt(run)
      if (Deferred.isDoneUnsafe(run.done)) return Effect.void
      Effect.runForkWith(fiber.context)(watching)
      if (fiber === run.fiber) interrupt(run)
    }
    return inside ? Effect.void : Effect.asVoid(Deferred.await(run.done))
  })

/** Ends the run because a required listener failed; when it is ending already, the failure is only logged (H3). */
export const stopForListener = (run: Run, error: ListenerError): Effect.Effect<void> =>
  run.outcome === undefined && run.stop === undefined
    ? stop(run, RunOutcome.Failed({ error }))
    : Log.error(`A required listener failed while the run was ending: ${error.message}`, Cause.fail(error))

/** Aborts the run; see {@link stop}. */
export const abort = (run: Run): Effect.Effect<void> => stop(run, RunOutcome.Aborted())

/** Waits for the end of something that was started. Interrupting the wait aborts it, then the interruption goes on. */
export const join = <A>(
  restore: <B>(effect: Effect.Effect<B>) => Effect.Effect<B>,
  done: Deferred.Deferred<A>,
  aborting: Effect.Effect<void>
): Effect.Effect<A> => Effect.onInterrupt(restore(Deferred.await(done)), () => aborting)
