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
import { type RunError, RunOutcome } from "../Errors.ts"
import type { AgentEvent } from "../Events.ts"
import { toolCalls } from "../Messages.ts"
import { RunResult } from "../RunResult.ts"
import { Accumulator } from "./accumulator.ts"
import { type Batch, closeBatch, openBatch } from "./batch.ts"
import { awaitLeftovers, withinHookTime } from "./deadline.ts"
import * as Log from "./log.ts"
import { abortedResponse, ask, hookError } from "./response.ts"
import type { Run } from "./run.ts"

type Emit = (event: AgentEvent) => Effect.Effect<void>

/** Whoever was replaced in the meantime stops here. */
const stillOwner = (run: Run, owner: number): Effect.Effect<void> =>
  Effect.suspend(() => run.owner === owner ? Effect.void : Effect.interrupt)

const emitFor = (run: Run, owner: number): Emit => (event) =>
  Effect.suspend(() => {
    const pending = run.emitter.emit(event)
    return pending === undefined ? Effect.void : Effect.andThen(pending, stillOwner(run, owner))
  })

/** Gives an unfinished response its end: the error's, or the abort's. */
const closeResponse = Effect.fnUntraced(function*(run: Run, error: RunError | undefined, emit: Emit) {
  const { model, thinkingLevel } = run.requested ?? run.settings
  const announced = run.openMessage !== undefined
  const response = run.response ?? new Accumulator(model, run.now())
  run.response = response
  if (error === undefined) response.stop("aborted", abortedResponse)
  else response.stop("error", error.message)
  const message = response.message(thinkingLevel)
  run.told = error
  if (!announced) yield* emit({ type: "message_start", message })
  yield* emit({ type: "message_end", message })
})

/**
 * Asks `finishTurn` about the open turn; the answer is ignored, the run is over. It runs in a fiber of its own, which the
 * end of the grace period leaves behind.
 */
const finishOpenTurn = Effect.fnUntraced(function*(run: Run, owner: number) {
  const message = run.turnMessage
  if (run.turnFinished || message === undefined) return
  run.turnFinished = true
  for (const hook of run.config.hooks.finishTurn) {
    const turn = run.finishedTurn(message)
    const asking = withinHookTime(run, "finishTurn", ask(() => hook(turn)))
    const fiber = yield* Effect.forkDetach(asking, { startImmediately: true })
    run.finishing = fiber
    const exit = yield* Fiber.await(fiber)
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

const closeTurn = Effect.fnUntraced(function*(run: Run, emit: Emit, owner: number) {
  yield* finishOpenTurn(run, owner)
  yield* emit({ type: "turn_end", message: run.turnMessage!, toolResults: run.turnResults })
})

const closeOpen = Effect.fnUntraced(function*(run: Run, owner: number) {
  const emit = emitFor(run, owner)
  if (!run.started) yield* emit({ type: "agent_start" })
  if (!run.turnOpen && run.prompts.length > 0) yield* emit({ type: "turn_start" })
  if (run.openMessage !== undefined && run.response === undefined) {
    yield* emit({ type: "message_end", message: run.openMessage })
  }
  while (run.prompts.length > 0) {
    const message = run.prompts[0]!
    run.prompts = run.prompts.slice(1)
    yield* emit({ type: "message_start", message })
    yield* emit({ type: "message_end", message })
  }
  if (run.turnOpen && run.turnMessage === undefined) yield* closeResponse(run, failureOf(run.outcome), emit)
  const batch = run.batch ?? unopenedBatch(run)
  if (batch !== undefined) yield* closeBatch(run, batch, emit)
  if (run.turnOpen) yield* closeTurn(run, emit, owner)
  const error = failureOf(run.outcome)
  if (error === undefined || run.told === error) return
  // A failure that no message tells of yet stands in a turn of its own (H5).
  yield* emit({ type: "turn_start" })
  yield* closeResponse(run, error, emit)
  yield* closeTurn(run, emit, owner)
})

/** The batch of a message whose calls were not begun. */
const unopenedBatch = (run: Run): Batch | undefined => {
  const message = run.turnMessage
  if (message === undefined || message.stopReason === "error" || message.stopReason === "aborted") return undefined
  const calls = toolCalls(message)
  const { toolExecution, tools } = run.settings
  return calls.length > run.turnResults.length ? openBatch(run, message, calls, tools, toolExecution) : undefined
}

/** Ends the run. Runs uninterruptibly, in whatever fiber owns the run's end. */
export const close = Effect.fnUntraced(function*(run: Run, outcome: RunOutcome, owner: number) {
  run.outcome = outcome
  if (run.held !== undefined) {
    run.held.queue.putBack(run.held.messages.slice(run.held.next))
    run.held = undefined
  }
  if (!run.ended) {
    if (outcome._tag !== "Completed") yield* closeOpen(run, owner)
    if (run.leftovers !== undefined && owner === 0) yield* awaitLeftovers(run)
    run.result = new RunResult(run.outcome, run.added)
    yield* emitFor(run, owner)({ type: "agent_end", messages: run.added, outcome: run.outcome })
  }
  yield* run.settle(run.result!)
  Deferred.doneUnsafe(run.done, Exit.succeed(run.result!))
})

/** Ends a stopped run in the place of its fiber, which does not stop: what still works is left behind. */
export const takeOver = Effect.fnUntraced(function*(run: Run) {
  const fork = Effect.runForkWith(yield* Effect.context())
  const owner = ++run.owner
  run.finishing?.interruptUnsafe()
  run.emitter.detach((effect) => void fork(effect))
  yield* close(run, run.outcome ?? run.stop ?? RunOutcome.Aborted(), owner)
})
