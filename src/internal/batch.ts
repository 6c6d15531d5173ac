/**
 * The tool calls of one response (T2): gates in call order, execution one after the other or concurrently, ends in the
 * order of completion, results in call order.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type { AgentEvent } from "../Events.ts"
import type { HookSet, RunContext } from "../Hooks.ts"
import type { AssistantMessage, ToolCall, ToolResultMessage } from "../Messages.ts"
import type { Any, CallContext, ExecutionMode, ToolOutput } from "../Tools.ts"
import { capContent } from "./capContent.ts"
import { within, withinHookTime } from "./deadline.ts"
import type { Pending } from "./emitter.ts"
import { show } from "./json.ts"
import * as Log from "./log.ts"
import type { Probe } from "./probe.ts"
import type { Run } from "./run.ts"
import {
  aborted,
  type Answered,
  type CallHost,
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
export class Batch implements CallHost {
  readonly run: Run
  readonly assistantMessage: AssistantMessage
  readonly calls: ReadonlyArray<Call>
  readonly sequential: boolean
  /** No call of it may run. */
  readonly sealed: boolean
  /** How many messages the context held when the batch began. */
  readonly contextLength: number
  readonly scope: CallScope

  /** `mode` and `tools` are those of the request that was answered. */
  constructor(
    run: Run,
    message: AssistantMessage,
    toolCalls: ReadonlyArray<ToolCall>,
    tools: ToolSet,
    mode: ExecutionMode
  ) {
    this.run = run
    this.assistantMessage = message
    this.calls = toolCalls.map(waitingCall)
    this.sequential = mode === "sequential" || message.stopReason === "length" ||
      toolCalls.some((call) => tools.byName.get(call.name)?.executionMode === "sequential")
    this.sealed = run.limit !== undefined
    this.contextLength = run.context.messages.length
    this.scope = { host: this, tools, depth: 0 }
  }

  get hooks(): HookSet {
    return this.run.hooks
  }

  get services(): Context.Context<never> {
    return this.run.given
  }

  get context(): RunContext {
    return this.run.hookContext()
  }

  get stopping(): boolean {
    return this.run.stopping || this.run.ended
  }

  get retry(): Any["retry"] {
    return this.run.config.toolRetry
  }

  get probe(): Probe | undefined {
    return this.run.probe
  }

  /** The ids of calls that have begun and not ended, as far as listeners were told of it. */
  get pending(): ReadonlySet<string> {
    const untold = this.run.emitter.untold
    const isUntold = (type: AgentEvent["type"], id: string): boolean =>
      untold.some((event) => event.type === type && "toolCallId" in event && event.toolCallId === id)
    const isPending = ({ state, toolCall: { id } }: Call): boolean => {
      const isOpen = state === "started" || state === "running" || isUntold("tool_execution_end", id)
      return isOpen && !isUntold("tool_execution_start", id)
    }
    return new Set(this.calls.filter(isPending).map(({ toolCall }) => toolCall.id))
  }

  takeToolCall(): boolean {
    return this.run.budget === undefined || this.run.budget.takeToolCall()
  }

  inToolTime(tool: Any, toolCall: ToolCall, work: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown> {
    const millis = Result.getOrElse(tool.timeout, () => undefined) ?? this.run.config.toolTimeout
    if (millis === undefined) return work
    const what = `Tool "${toolCall.name}" (call ${toolCall.id})`
    return Effect.flatMap(
      within(this.run, millis, what, work),
      (exit) => exit ?? Effect.fail(`Tool "${toolCall.name}" timed out after ${millis} ms`)
    )
  }

  inTime<A>(hook: "beforeToolCall" | "afterToolCall", effect: Effect.Effect<A, unknown>): Effect.Effect<A, unknown> {
    return withinHookTime(this.run, hook, effect)
  }
}

const waitingCall = (toolCall: ToolCall): Call => ({
  toolCall,
  state: "waiting",
  ready: undefined,
  fiber: undefined,
  final: undefined,
  updates: undefined
})

const leftBehind = errorResult(
  `Operation aborted. The tool did not stop within the grace period; it may still be running, so its outcome is unknown.`
)

const sealed = errorResult("Tool call was not executed: the run has reached a limit and ends.")

const truncated = (call: ToolCall): Answered =>
  errorResult(
    `Tool call "${call.name}" was not executed: the response hit the output token limit, so its arguments may be truncated. Re-issue the tool call with complete arguments.`
  )

/** Opens the batch of a message; see {@link Batch}. */
export const openBatch = (
  run: Run,
  message: AssistantMessage,
  toolCalls: ReadonlyArray<ToolCall>,
  tools: ToolSet,
  mode: ExecutionMode
): Batch => run.batch = new Batch(run, message, toolCalls, tools, mode)

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
  readonly #batch: Batch
  readonly #call: Call

  constructor(batch: Batch, call: Call) {
    this.#batch = batch
    this.#call = call
  }

  get toolCall(): ToolCall {
    return this.#call.toolCall
  }

  get assistantMessage(): AssistantMessage {
    return this.#batch.assistantMessage
  }

  get update(): (partial: ToolOutput) => Effect.Effect<void> {
    return (partial) => Effect.suspend(() => progress(this.#batch.run, this.#call, partial))
  }

  get runToolCall(): CallContext["runToolCall"] {
    const works = () => this.#call.state === "running"
    return (call, options) => runNested(this.#batch.scope, { works, outermostWorks: works }, call, options ?? {})
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
  if (hasEnded(call)) return lateLog(call, exit)
  call.state = "started"
  const logged = logCause(call, exit)
  if (logged === undefined && call.updates === undefined) return concludeNow(run, batch, call, exit)
  return Effect.andThen(
    Effect.andThen(logged ?? Effect.void, Effect.suspend(() => Fiber.awaitAll(call.updates ?? []))),
    Effect.suspend(() => concludeNow(run, batch, call, exit))
  )
}

const concludeNow = (run: Run, batch: Batch, call: Call, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
  if (hasEnded(call)) return lateLog(call, exit)
  if (run.stopping) return end(run, call, aborted) ?? Effect.void
  const final = finalize(batch.scope, call.toolCall, call.ready!, settle(call.ready!.tool, exit))
  if (!Effect.isEffect(final)) return end(run, call, run.stopping ? aborted : final) ?? Effect.void
  return Effect.flatMap(Effect.exit(Effect.interruptible(inCall(run, call, final))), (hooked) => {
    if (hasEnded(call)) return lateLog(call, exit)
    const answer = Exit.isSuccess(hooked) ? hooked.value : errorResult("The afterToolCall hook was interrupted")
    return end(run, call, run.stopping ? aborted : answer) ?? Effect.void
  })
}

// While an effect was awaited, the end of a grace period may have answered the call.
const hasEnded = (call: Call): boolean => call.state === "ended"

/** Code of the call, as whoever watches over the run wants it to work. */
const inCall = <A, E>(run: Run, { toolCall }: Call, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  run.probe === undefined ? work : run.probe.inCall(toolCall.id, work)

const executeCall = (run: Run, batch: Batch, call: Call): Effect.Effect<void> => {
  if (run.stopping) return Effect.void
  call.state = "running"
  const effect = execute(call.ready!, new RunningCall(batch, call), batch.retry)
  if (Exit.isExit(effect)) {
    const rest = conclude(run, batch, call, effect)
    return Exit.isExit(rest) ? rest : inCallFiber(run, call, rest)
  }
  const work = batch.inToolTime(call.ready!.tool, call.toolCall, provideTool(batch.scope, effect))
  // The tool is interrupted, its end is not.
  return inCallFiber(
    run,
    call,
    Effect.flatMap(
      Effect.exit(Effect.interruptible(inCall(run, call, work))),
      (exit) => conclude(run, batch, call, exit)
    )
  )
}

/** Remembers the fiber of the call, so that a stop reaches what can be interrupted in it; also one that came just before. */
const inCallFiber = (run: Run, call: Call, effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    call.fiber = fiber
    if (run.stopping) fiber.interruptUnsafe()
    return effect
  })

/** Runs what is left of a call in a fiber of its own. A stop interrupts that fiber and not whoever waits for it. */
const inOwnFiber = (rest: Effect.Effect<void>): Effect.Effect<void> =>
  Exit.isExit(rest)
    ? rest
    : Effect.flatMap(Effect.forkDetach(rest, { startImmediately: true, uninterruptible: true }), Fiber.join)

/**
 * Executes calls: those before the first that has to be waited for here and now, the rest concurrently. Each that is not
 * done at once runs in a fiber of its own, which what it forked ends with. The fibers are told one by one when the run
 * stops (`internal/lifecycle.ts`), so that their ends come in call order.
 */
const executeCalls = (run: Run, batch: Batch, calls: ReadonlyArray<Call>): Pending => {
  for (let n = 0; n < calls.length; n++) {
    const first = executeCall(run, batch, calls[n]!)
    if (Exit.isExit(first)) continue
    if (n === calls.length - 1) return inOwnFiber(first)
    const { toolConcurrency: concurrency } = run.config
    return Effect.forEach(
      calls.slice(n),
      (call, index) => {
        const rest = index === 0 ? first : executeCall(run, batch, call)
        // One at a time nothing is forked for them.
        return concurrency === 1 ? inOwnFiber(rest) : rest
      },
      { concurrency, discard: true }
    )
  }
  return undefined
}

/** Begins a call and leads it through the gates; nothing is left to do when all of them answer at once. */
const gate = (run: Run, batch: Batch, call: Call): Pending => {
  if (run.stopping) return Effect.interrupt
  const pending = run.emit(begun(call))
  return pending === undefined
    ? pass(run, batch, call)
    : Effect.flatMap(pending, () => pass(run, batch, call) ?? Effect.void)
}

const pass = (run: Run, batch: Batch, call: Call): Pending => {
  const prepared = batch.sealed
    ? sealed
    : batch.assistantMessage.stopReason === "length"
    ? truncated(call.toolCall)
    : prepare(batch.scope, call.toolCall)
  return Effect.isEffect(prepared) ? passLater(run, call, prepared) : passed(run, call, prepared)
}

const passLater = (run: Run, call: Call, prepared: Effect.Effect<Answered | Ready>): Effect.Effect<void> =>
  Effect.flatMap(Effect.exit(Effect.interruptible(inCall(run, call, prepared))), (exit) => {
    if (run.stopping) return Effect.interrupt
    const answer = Exit.isSuccess(exit) ? exit.value : errorResult("The beforeToolCall hook was interrupted")
    return passed(run, call, answer) ?? Effect.void
  })

const passed = (run: Run, call: Call, answer: Answered | Ready): Pending => {
  const allowed = answer._tag === "Ready" && run.budget !== undefined && !run.budget.takeToolCall() ? overLimit : answer
  if (allowed._tag === "Ready") call.ready = allowed
  else {
    const pending = end(run, call, allowed)
    if (pending !== undefined) return Effect.andThen(pending, run.goOn)
  }
  return run.stopping ? Effect.interrupt : undefined
}

const isReady = ({ ready }: Call): boolean => ready !== undefined

/** Runs the calls of an open batch and records their results; whether all of them ask the run to stop. */
export const runBatch = Effect.fnUntraced(function*(run: Run, batch: Batch) {
  let pending: Pending
  for (const call of batch.calls) {
    if ((pending = gate(run, batch, call)) !== undefined) yield* pending
    if (!batch.sequential) continue
    if (call.ready !== undefined && (pending = executeCalls(run, batch, [call])) !== undefined) yield* pending
    if ((pending = run.record(resultMessage(run, call))) !== undefined) yield* pending
  }
  if (!batch.sequential) {
    const ready = batch.calls.every(isReady) ? batch.calls : batch.calls.filter(isReady)
    if ((pending = executeCalls(run, batch, ready)) !== undefined) yield* pending
    for (const call of batch.calls) {
      if (run.stopping) return yield* Effect.interrupt
      if ((pending = run.record(resultMessage(run, call))) !== undefined) yield* pending
    }
  }
  run.batch = undefined
  if (!batch.sealed) run.countRepeated(batch.assistantMessage.content)
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
