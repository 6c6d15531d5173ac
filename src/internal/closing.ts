/**
 * The one way a run ends, whatever ended it: close the open message and turn, answer every call, report everything that
 * was added, and emit `agent_end` once and last. What is open is read off the run's state, so the ending can be taken
 * over in the middle: an abort does that when the grace period is over and something still does not stop (A4).
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { ModelError, type RunError, RunOutcome } from "../Errors.ts"
import type { AgentEvent } from "../Events.ts"
import { type AssistantMessage, toolCalls } from "../Messages.ts"
import { RunResult } from "../RunResult.ts"
import { Accumulator } from "./accumulator.ts"
import { ask } from "./answer.ts"
import { type Batch, closeBatch, openBatch } from "./batch.ts"
import { awaitLeftovers, withinHookTime } from "./deadline.ts"
import { show } from "./json.ts"
import * as Log from "./log.ts"
import { abortedResponse, hookError } from "./response.ts"
import type { Run } from "./run.ts"

/**
 * One step of the ending: changes the state and gives the event that tells of it, if any. Whoever was replaced in the
 * meantime takes no step any more. A step is one operation, so that two who end a run never see half of it.
 */
export type Step = (step: () => AgentEvent | undefined) => Effect.Effect<void>

const stillOwner = (run: Run, owner: number): Effect.Effect<void> =>
  Effect.suspend(() => run.owner === owner ? Effect.void : Effect.interrupt)

const stepFor = (run: Run, owner: number): Step => (step) =>
  Effect.suspend(() => {
    if (run.owner !== owner) return Effect.interrupt
    const event = step()
    const pending = event === undefined ? undefined : run.emitter.emit(event)
    return pending === undefined ? Effect.void : Effect.andThen(pending, stillOwner(run, owner))
  })

/** The final form of a response whose message has not ended: by the error, or by the abort unless it was complete. */
const finishResponse = (run: Run, error: RunError | undefined): AssistantMessage => {
  const { model, thinkingLevel } = run.requested ?? run.settings
  const response = run.response ?? new Accumulator(model, run.now())
  run.response = response
  if (error !== undefined) response.stop("error", error.message)
  else if (!response.complete) response.stop("aborted", abortedResponse)
  run.told = error
  return response.message(thinkingLevel)
}

const closeResponse = Effect.fnUntraced(function*(run: Run, step: Step) {
  const finished = () => finishResponse(run, failureOf(run.outcome))
  yield* step(() => run.openMessage === undefined ? { type: "message_start", message: finished() } : undefined)
  yield* step(() => ({ type: "message_end", message: finished() }))
})

/**
 * Asks `finishTurn` about the open turn; the answer is ignored, the run is over. It runs in a fiber of its own, which the
 * end of the grace period leaves behind.
 */
const finishOpenTurn = Effect.fnUntraced(function*(run: Run, step: Step, owner: number) {
  const { finishTurn } = run.hooks
  let message: AssistantMessage | undefined
  yield* step(() => {
    message = run.turnFinished ? undefined : run.turnMessage
    run.turnFinished = true
    return undefined
  })
  if (message === undefined) return
  const turn = run.finishedTurn(message)
  for (const hook of finishTurn) {
    const asking = withinHookTime(run, "finishTurn", ask(() => hook(turn)))
    const fiber = yield* Effect.forkDetach(asking, { startImmediately: true })
    run.finishing = fiber
    // Whoever takes over has no time left to wait.
    if (owner > 0) fiber.interruptUnsafe()
    const exit = owner > 0 ? fiber.pollUnsafe() ?? Exit.void : yield* Fiber.await(fiber)
    yield* stillOwner(run, owner)
    run.finishing = undefined
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) yield* finishTurnFailed(run, exit.cause)
  }
})

/** After an error, the hook's failure is the run's (H5); after an abort, and when it fails again, it only goes to the log. */
const finishTurnFailed = (run: Run, cause: Cause.Cause<unknown>): Effect.Effect<void> => {
  const error = failureOf(run.outcome)
  if (error === undefined || run.stopping || (error._tag === "HookError" && error.hook === "finishTurn")) {
    return Log.warn("The finishTurn hook failed while the run was ending", cause)
  }
  run.outcome = RunOutcome.Failed({ error: hookError("finishTurn", cause) })
  return Effect.void
}

const failureOf = (outcome: RunOutcome | undefined): RunError | undefined =>
  outcome?._tag === "Failed" ? outcome.error : undefined

const closeTurn = Effect.fnUntraced(function*(run: Run, step: Step, owner: number) {
  yield* finishOpenTurn(run, step, owner)
  yield* step(() => ({ type: "turn_end", message: run.turnMessage!, toolResults: run.turnResults }))
})

const closeOpen = Effect.fnUntraced(function*(run: Run, step: Step, owner: number) {
  yield* step(() => run.started ? undefined : { type: "agent_start" })
  yield* step(() => !run.turnOpen && run.promptsLeft ? { type: "turn_start" } : undefined)
  const closeMessage = step(() =>
    run.openMessage !== undefined && run.response === undefined
      ? { type: "message_end", message: run.openMessage }
      : undefined
  )
  yield* closeMessage
  while (run.promptsLeft) {
    yield* step(() => {
      const message = run.takePrompt()
      return message === undefined ? undefined : { type: "message_start", message }
    })
    yield* closeMessage
  }
  if (run.turnOpen && run.turnMessage === undefined) yield* closeResponse(run, step)
  const batch = run.batch ?? unopenedBatch(run)
  if (batch !== undefined) yield* closeBatch(run, batch, step)
  if (run.turnOpen) yield* closeTurn(run, step, owner)
  const error = failureOf(run.outcome)
  if (error === undefined || run.told === error) return
  // A failure that no message tells of yet stands in a turn of its own (H5).
  yield* step(() => ({ type: "turn_start" }))
  yield* closeResponse(run, step)
  yield* closeTurn(run, step, owner)
})

/** The batch of a message whose calls were not begun. */
const unopenedBatch = (run: Run): Batch | undefined => {
  const message = run.turnMessage
  if (message === undefined || message.stopReason === "error" || message.stopReason === "aborted") return undefined
  const calls = toolCalls(message)
  const { toolExecution, tools } = run.settings
  return calls.length > run.turnResults.length ? openBatch(run, message, calls, tools, toolExecution) : undefined
}

/**
 * Ends the run. Runs uninterruptibly, in whatever fiber owns the run's end. A run whose ending throws is settled all the
 * same: whoever waits for it must not wait for ever.
 */
export const close = (run: Run, outcome: RunOutcome, owner: number): Effect.Effect<void> =>
  Effect.catchDefect(takeSteps(run, outcome, owner), (defect) => {
    if (run.owner !== owner) return Effect.void
    run.result ??= new RunResult(
      RunOutcome.Failed({ error: new ModelError({ reason: "Unknown", message: show(defect), cause: defect }) }),
      run.added,
      run.childUsage
    )
    return Effect.andThen(settle(run), Log.error("A run could not be ended in order", Cause.die(defect)))
  })

const takeSteps = Effect.fnUntraced(function*(run: Run, outcome: RunOutcome, owner: number) {
  const step = stepFor(run, owner)
  yield* step(() => {
    run.outcome = outcome
    if (run.held !== undefined) run.held.queue.putBack(run.held.messages.slice(run.held.next))
    run.held = undefined
    return undefined
  })
  if (!run.ended) {
    if (outcome._tag !== "Completed") yield* closeOpen(run, step, owner)
    if (run.leftovers !== undefined && owner === 0) yield* awaitLeftovers(run)
    yield* step(() => {
      run.result = new RunResult(run.outcome!, run.added, run.childUsage)
      return { type: "agent_end", messages: run.added, outcome: run.outcome! }
    })
  }
  yield* settle(run)
})

/** Tells the receipts of messages the run leaves in its queues. One that stopped by itself leaves none to speak of. */
const returnQueued = ({ inbox, result }: Run): void => {
  const outcome = result!.outcome
  if (outcome._tag === "Completed" && outcome.by !== "FinishTurn") return
  const because = returnedBecause[outcome._tag]
  inbox.steering?.returned(because)
  inbox.followUps?.returned(because)
}

const returnedBecause = { Completed: "ended", Aborted: "aborted", Limited: "limited", Failed: "failed" } as const

/** Tells the host, then those who wait; once. */
const settle = (run: Run): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (run.settled) return Effect.void
    run.settled = true
    // Each of them is told, whatever becomes of the one before.
    return Effect.sync(() => returnQueued(run)).pipe(
      Effect.ensuring(Effect.suspend(() => run.settle(run.result!))),
      Effect.ensuring(Effect.sync(() => Deferred.doneUnsafe(run.done, Exit.succeed(run.result!))))
    )
  })

/**
 * Ends a stopped run in the place of its fiber, which does not stop: what still works is left behind. Runs in the context
 * of the run, so that hooks and listeners are inside it.
 */
export const takeOver = (run: Run): Effect.Effect<void> => Effect.updateContext(takeOverInside(run), () => run.services)

const takeOverInside = Effect.fnUntraced(function*(run: Run) {
  const fork = Effect.runForkWith(run.services)
  const owner = ++run.owner
  run.finishing?.interruptUnsafe()
  run.emitter.detach((effect) => void fork(effect))
  yield* close(run, run.outcome ?? run.stop ?? RunOutcome.Aborted(), owner)
})
