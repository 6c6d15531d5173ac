/**
 * The tool calls of one response (T2): gates in call order, execution one after the other or concurrently, ends in the
 * order of completion, results in call order.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type { AgentEvent } from "../Events.ts"
import type { AssistantMessage, ToolCall, ToolResultMessage } from "../Messages.ts"
import type { Any, CallContext, ToolOutput } from "../Tools.ts"
import { capContent } from "./capContent.ts"
import { within, withinHookTime } from "./deadline.ts"
import type { Pending } from "./emitter.ts"
import { show } from "./json.ts"
import * as Log from "./log.ts"
import type { Run } from "./run.ts"
import {
  aborted,
  type Answered,
  type CallScope,
  errorResult,
  execute,
  finalize,
  overLimit,
  prepare,
  provideTool,
  type Ready,
  runNested,
  settle
} from "./toolCall.ts"
import { readOutput } from "./toolOutput.ts"
import type { ToolSet } from "./toolSet.ts"

/** One call and how far it is. */
export interface Call {
  readonly toolCall: ToolCall
  state: "waiting" | "started" | "running" | "ended"
  ready: Ready | undefined
  /** The fiber its tool works in. */
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  final: Answered | undefined
  /** Deliveries of progress that its end waits for. */
  updates: Array<Fiber.Fiber<void>> | undefined
}

/** The calls of one response. */
export interface Batch {
  readonly scope: CallScope
  readonly calls: ReadonlyArray<Call>
  readonly sequential: boolean
  /** No call of it may run. */
  readonly sealed: boolean
  /** How many messages the context held when the batch began. */
  readonly contextLength: number
}

const leftBehind = errorResult(
  `Operation aborted. The tool did not stop within the grace period; it may still be running, so its outcome is unknown.`
)

const sealed = errorResult("Tool call was not executed: the run has reached a limit and ends.")

const truncated = (call: ToolCall): Answered =>
  errorResult(
    `Tool call "${call.name}" was not executed: the response hit the output token limit, so its arguments may be truncated. Re-issue the tool call with complete arguments.`
  )

/** Opens the batch of a message; `tools` and `sequential` are those of the request that was answered. */
export const openBatch = (
  run: Run,
  message: AssistantMessage,
  toolCalls: ReadonlyArray<ToolCall>,
  tools: ToolSet,
  mode: "parallel" | "sequential"
): Batch => {
  const batch: Batch = {
    scope: {
      tools,
      hooks: run.config.hooks,
      assistantMessage: message,
      get context() {
        return run.hookContext()
      },
      depth: 0,
      stopping: () => run.stopping || run.ended,
      takeToolCall: () => run.budget === undefined || run.budget.takeToolCall(),
      inToolTime: (tool, toolCall, work) => withinToolTime(run, tool, toolCall, work),
      retry: run.config.toolRetry,
      inTime: (hook, effect) => withinHookTime(run, hook, effect)
    },
    calls: toolCalls.map((toolCall) => ({
      toolCall,
      state: "waiting",
      ready: undefined,
      fiber: undefined,
      final: undefined,
      updates: undefined
    })),
    sequential: mode === "sequential" || message.stopReason === "length" ||
      toolCalls.some((call) => tools.byName.get(call.name)?.executionMode === "sequential"),
    sealed: run.limit !== undefined,
    contextLength: run.context.messages.length
  }
  return run.batch = batch
}

/** Begins the call and gives the event that says so. */
const begun = (call: Call): AgentEvent => {
  call.state = "started"
  const { id, name, arguments: args } = call.toolCall
  return { type: "tool_execution_start", toolCallId: id, toolName: name, args }
}

/** Ends the call and gives the event that says so. */
const ended = (call: Call, final: Answered): AgentEvent => {
  call.state = "ended"
  call.final = final
  return {
    type: "tool_execution_end",
    toolCallId: call.toolCall.id,
    toolName: call.toolCall.name,
    result: final.result,
    isError: final.isError
  }
}

const end = (run: Run, call: Call, final: Answered): Pending => run.emitter.emit(ended(call, final))

const resultMessage = (run: Run, { final, toolCall }: Call): ToolResultMessage => {
  const { content = [], details, usage } = final!.result
  return {
    role: "toolResult",
    toolCallId: toolCall.id,
    toolName: toolCall.name,
    content: capContent(content, run.config.maxResultLength),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a tool gave was checked to be JSON
    ...(details !== undefined && { details: details as NonNullable<ToolResultMessage["details"]> }),
    ...(usage !== undefined && { usage }),
    isError: final!.isError,
    timestamp: run.now()
  }
}

/** What a tool gets to know about its call. The methods are made when they are asked for: most tools never do. */
class RunningCall implements CallContext {
  readonly #run: Run
  readonly #scope: CallScope
  readonly #call: Call

  constructor(run: Run, scope: CallScope, call: Call) {
    this.#run = run
    this.#scope = scope
    this.#call = call
  }

  get toolCall(): ToolCall {
    return this.#call.toolCall
  }

  get assistantMessage(): AssistantMessage {
    return this.#scope.assistantMessage
  }

  get update(): (partial: ToolOutput) => Effect.Effect<void> {
    return (partial) => Effect.suspend(() => progress(this.#run, this.#call, partial))
  }

  get runToolCall(): CallContext["runToolCall"] {
    const works = () => this.#call.state === "running"
    return (call, options) => runNested(this.#scope, { works, outermostWorks: works }, call, options ?? {})
  }
}

/** Hands progress over. The delivery begins in the same operation, so that an interruption of the tool cannot lose it. */
const progress = (run: Run, call: Call, partial: ToolOutput): Effect.Effect<void> => {
  if (call.state !== "running") return Effect.void
  const { id, name, arguments: args } = call.toolCall
  const output = readOutput(name, partial)
  if (Result.isFailure(output)) return Log.warn(`Progress was ignored: ${output.failure}`)
  const pending = run.emitter.emit({
    type: "tool_execution_update",
    toolCallId: id,
    toolName: name,
    args,
    partialResult: output.success
  })
  if (pending === undefined) return Effect.void
  call.updates ??= []
  call.updates.push(Effect.runForkWith(run.services)(pending))
  return Effect.void
}

/** The cause of a failed tool goes to the log; the model reads its message only. */
const logCause = (call: Call, exit: Exit.Exit<unknown, unknown>): Pending => {
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return undefined
  const message = `Tool "${call.toolCall.name}" failed: ${show(Cause.squash(exit.cause))}`
  return Cause.hasDies(exit.cause) ? Log.warn(message, exit.cause) : Log.debug(message, exit.cause)
}

const lateLog = (call: Call, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
  Log.warn(
    `Tool "${call.toolCall.name}" (call ${call.toolCall.id}) was left behind and ended now: ${endOf(exit)}`
  )

const endOf = (exit: Exit.Exit<unknown, unknown>): string => {
  if (Exit.isSuccess(exit)) return "it succeeded"
  return Cause.hasInterruptsOnly(exit.cause) ? "it was interrupted" : `it failed: ${show(Cause.squash(exit.cause))}`
}

/** From the tool's own end to the call's: progress delivered, hooks asked, end emitted. */
const conclude = (run: Run, batch: Batch, call: Call, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
  if (call.state === "ended") return lateLog(call, exit)
  call.state = "started"
  const logged = logCause(call, exit)
  if (logged !== undefined || call.updates !== undefined) return concludeSlowly(run, batch, call, exit, logged)
  if (run.stopping) return end(run, call, aborted) ?? Effect.void
  const final = finalize(batch.scope, call.toolCall, call.ready!, settle(call.ready!.tool, exit))
  return Effect.isEffect(final)
    ? concludeHooked(run, call, exit, final)
    : end(run, call, run.stopping ? aborted : final) ?? Effect.void
}

/** The end of a call whose hooks answer with an effect. */
const concludeHooked = Effect.fnUntraced(
  function*(run: Run, call: Call, exit: Exit.Exit<unknown, unknown>, finalized: Effect.Effect<Answered>) {
    const hooked = yield* Effect.exit(Effect.interruptible(finalized))
    const final = Exit.isSuccess(hooked) ? hooked.value : errorResult("The afterToolCall hook was interrupted")
    if (hasEnded(call)) return yield* lateLog(call, exit)
    const pending = end(run, call, run.stopping ? aborted : final)
    if (pending !== undefined) yield* pending
  }
)

/** The end of a call of which something is to be logged, or whose progress is still delivered. */
const concludeSlowly = Effect.fnUntraced(
  function*(run: Run, batch: Batch, call: Call, exit: Exit.Exit<unknown, unknown>, logged: Pending) {
    if (logged !== undefined) yield* logged
    if (call.updates !== undefined) yield* Fiber.awaitAll(call.updates)
    const settled = settle(call.ready!.tool, exit)
    const final = run.stopping ? aborted : finalize(batch.scope, call.toolCall, call.ready!, settled)
    if (Effect.isEffect(final)) return yield* concludeHooked(run, call, exit, final)
    if (hasEnded(call)) return yield* lateLog(call, exit)
    const pending = end(run, call, run.stopping ? aborted : final)
    if (pending !== undefined) yield* pending
  }
)

// While an effect was awaited, the end of a grace period may have answered the call.
const hasEnded = (call: Call): boolean => call.state === "ended"

const executeCall = (run: Run, batch: Batch, call: Call): Effect.Effect<void> => {
  if (run.stopping) return Effect.void
  call.state = "running"
  const effect = execute(call.ready!, new RunningCall(run, batch.scope, call), batch.scope.retry)
  if (Exit.isExit(effect)) {
    const rest = conclude(run, batch, call, effect)
    return Exit.isExit(rest) ? rest : inCallFiber(run, call, rest)
  }
  const work = batch.scope.inToolTime(call.ready!.tool, call.toolCall, provideTool(batch.scope, effect))
  // The tool is interrupted, its end is not.
  return inCallFiber(
    run,
    call,
    Effect.flatMap(Effect.exit(Effect.interruptible(work)), (exit) => conclude(run, batch, call, exit))
  )
}

/** Remembers the fiber of the call, so that a stop reaches what can be interrupted in it; also one that came just before. */
const inCallFiber = (run: Run, call: Call, effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    call.fiber = fiber
    if (run.stopping) fiber.interruptUnsafe()
    return effect
  })

/** The tool's work within the time it has (T6). */
const withinToolTime = (
  run: Run,
  tool: Any,
  toolCall: ToolCall,
  work: Effect.Effect<unknown, unknown>
): Effect.Effect<unknown, unknown> => {
  const millis = Result.getOrElse(tool.timeout, () => undefined) ?? run.config.toolTimeout
  if (millis === undefined) return work
  const what = `Tool "${toolCall.name}" (call ${toolCall.id})`
  return Effect.flatMap(
    within(run, millis, what, work),
    (exit) => exit ?? Effect.fail(`Tool "${toolCall.name}" timed out after ${millis} ms`)
  )
}

/**
 * Each call that is not done at once runs in a fiber of its own, which what it forked ends with. The fibers are told one
 * by one when the run stops (`internal/lifecycle.ts`), so that their ends come in call order.
 */
const executeCalls = (run: Run, batch: Batch, calls: ReadonlyArray<Call>): Effect.Effect<void> =>
  Effect.forEach(calls, (call) => executeCall(run, batch, call), {
    concurrency: run.config.toolConcurrency,
    discard: true
  })

const gate = Effect.fnUntraced(function*(run: Run, batch: Batch, call: Call) {
  if (run.stopping) return yield* Effect.interrupt
  let pending = run.emit(begun(call))
  if (pending !== undefined) yield* pending
  const prepared = batch.sealed
    ? sealed
    : batch.scope.assistantMessage.stopReason === "length"
    ? truncated(call.toolCall)
    : prepare(batch.scope, call.toolCall)
  let passed: Answered | Ready
  if (Effect.isEffect(prepared)) {
    const exit = yield* Effect.exit(Effect.interruptible(prepared))
    if (run.stopping) return yield* Effect.interrupt
    passed = Exit.isSuccess(exit) ? exit.value : errorResult("The beforeToolCall hook was interrupted")
  } else passed = prepared
  if (passed._tag === "Ready" && run.budget !== undefined && !run.budget.takeToolCall()) passed = overLimit
  if (passed._tag === "Ready") call.ready = passed
  else if ((pending = end(run, call, passed)) !== undefined) yield* pending
  if (run.stopping) return yield* Effect.interrupt
})

/** Runs the calls of an open batch and records their results; whether all of them ask the run to stop. */
export const runBatch = Effect.fnUntraced(function*(run: Run, batch: Batch) {
  let pending: Pending
  for (const call of batch.calls) {
    yield* gate(run, batch, call)
    if (!batch.sequential) continue
    if (call.ready !== undefined) yield* executeCalls(run, batch, [call])
    if ((pending = run.record(resultMessage(run, call))) !== undefined) yield* pending
  }
  if (!batch.sequential) {
    const ready = batch.calls.filter((call) => call.ready !== undefined)
    yield* executeCalls(run, batch, ready)
    for (const call of batch.calls) {
      if (run.stopping) return yield* Effect.interrupt
      if ((pending = run.record(resultMessage(run, call))) !== undefined) yield* pending
    }
  }
  run.batch = undefined
  if (!batch.sealed) run.countRepeated(batch.scope.assistantMessage.content)
  return batch.calls.every((call) => call.final?.result.terminate === true)
})

/** Answers what an abort left open: every call gets its end, every call gets its result (A2). */
export const closeBatch = Effect.fnUntraced(
  function*(run: Run, batch: Batch, step: (step: () => AgentEvent | undefined) => Effect.Effect<void>) {
    const closeResult = (index: number, call: Call): Effect.Effect<void> =>
      // Results are recorded in call order, so their number tells which are missing.
      Effect.suspend(() => {
        if (index < run.turnResults.length) return Effect.void
        const message = resultMessage(run, call)
        return Effect.andThen(
          step(() => ({ type: "message_start", message })),
          step(() => ({ type: "message_end", message }))
        )
      })
    for (const [index, call] of batch.calls.entries()) {
      yield* step(() => call.state === "waiting" ? begun(call) : undefined)
      yield* step(() =>
        call.state === "ended" ? undefined : ended(call, call.state === "running" ? leftBehind : aborted)
      )
      if (batch.sequential) yield* closeResult(index, call)
    }
    if (!batch.sequential) { for (const [index, call] of batch.calls.entries()) yield* closeResult(index, call) }
    yield* step(() => {
      run.batch = undefined
      return undefined
    })
  }
)
