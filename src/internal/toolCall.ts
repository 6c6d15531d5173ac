/**
 * One tool call, from the gates to the final result: prepare, execute, finalize. Knows nothing of batches, events or
 * messages; a call the model made and a call a tool made go the same way.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { HookSet, RunContext, ToolCallDecision, ToolResultPatch } from "../Hooks.ts"
import type { AssistantMessage, ToolCall } from "../Messages.ts"
import type { Any, CallContext, NestedCall, Services, ToolCallOutcome, ToolOutput, ToolResult } from "../Tools.ts"
import { asEffect, ask, guarded, inTurn, type OrEffect, whenAnswered } from "./answer.ts"
import { validationMessage } from "./arguments.ts"
import { givenArguments, readArguments } from "./callArguments.ts"
import { copyJson } from "./copyJson.ts"
import { inFiber } from "./inFiber.ts"
import { excerpt, show, wellFormed } from "./json.ts"
import type { Probe } from "./probe.ts"
import { readOutput } from "./toolOutput.ts"
import { makeToolSet, type ToolSet } from "./toolSet.ts"

/** What calls are made for: the batch of the model's calls, also where a tool makes the call. */
export interface CallHost {
  readonly hooks: HookSet
  /** The services that are there where a call works. */
  readonly services: Context.Context<never>
  readonly assistantMessage: AssistantMessage
  readonly context: RunContext
  /** Whether the run is stopping or over: then no call begins, and no hook is asked. */
  readonly stopping: boolean
  /** When tools that have no schedule of their own try again. */
  readonly retry: Any["retry"]
  readonly probe: Probe | undefined
  /** Counts a call that is to be executed; `false` when a limit does not allow it (L7). */
  takeToolCall(): boolean
  /** Gives a tool's work the time it has (T6). */
  inToolTime(tool: Any, toolCall: ToolCall, work: Effect.Effect<unknown, unknown>): Effect.Effect<unknown, unknown>
  /** Gives a hook the time it may take. */
  inTime<A>(
    hook: "beforeToolCall" | "afterToolCall",
    effect: Effect.Effect<A, unknown>
  ): Effect.Effect<A, unknown>
}

/** What a call is made within. */
export interface CallScope {
  readonly host: CallHost
  readonly tools: ToolSet
  /** How many calls are around this one; 0 for a call of the model. */
  readonly depth: number
}

/** A call with its final result. */
export interface Answered {
  readonly _tag: "Answered"
  readonly result: ToolResult
  readonly isError: boolean
}

/** A call that passed the gates. */
export interface Ready {
  readonly _tag: "Ready"
  readonly tool: Any
  readonly args: unknown
}

export const answered = (result: ToolResult, isError: boolean): Answered => ({ _tag: "Answered", result, isError })

/** An error result; source: pi's `createErrorToolResult`. */
export const errorResult = (text: string): Answered =>
  answered({ content: [{ type: "text", text: wellFormed(text) }], details: {} }, true)

/** The result of a call that an abort left open. */
export const aborted = errorResult("Operation aborted")

/** The result of a call beyond the limit (L7). */
export const overLimit = errorResult("Tool call was not executed: the limit of tool calls for this run is reached.")

const callerEnded = errorResult("Operation aborted. The call that made this one has ended.")

const notFound = (name: string, tools: ToolSet): string => {
  const names = [...tools.byName.keys()]
  const available = names.length === 0 ? "There are no tools." : `Available tools: ${excerpt(names.join(", "), 1000)}`
  return `Tool ${excerpt(name, 200)} not found. ${available}`
}

/** An interruption is handed on: it is the run's abort, not the hook's failure. */
const unlessInterrupted = <A>(onFailure: (cause: Cause.Cause<unknown>) => A) => (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.succeed(onFailure(cause))

const isBlock = (decision: ToolCallDecision | void): decision is ToolCallDecision & { readonly _tag: "Block" } =>
  decision !== undefined && decision._tag === "Block"

const blocked = (decision: ToolCallDecision & { readonly _tag: "Block" }): Answered => {
  const { isError, result } = errorResult(decision.reason || "Tool execution was blocked")
  return answered(decision.terminate ? { ...result, terminate: true } : result, isError)
}

/** What the decision of a hook makes of a call. */
const decided = (ready: Ready, decision: ToolCallDecision | void): Answered | Ready => {
  if (isBlock(decision)) return blocked(decision)
  return decision?._tag === "AllowWith" ? { ...ready, args: decision.args } : ready
}

const decode = (tool: Any, given: unknown): Answered | Ready => {
  const decoded = Result.getOrThrow(tool.parameters).decode(given)
  return Result.isSuccess(decoded)
    ? { _tag: "Ready", tool, args: decoded.success }
    : errorResult(validationMessage(tool.name, decoded.failure, given))
}

type Gate = Answered | Ready

/**
 * The services of its tool set, and a scope that closes when the work is done. A call of the model finds those of the host
 * where it works; a call that a tool makes finds what that tool has provided there.
 */
export const provideTool = <A>(
  { depth, host, tools }: CallScope,
  work: Effect.Effect<A, unknown>
): Effect.Effect<A, unknown> => {
  const scoped = Effect.scoped(work)
  return depth === 0 && tools.services === host.services ? scoped : Effect.provideContext(scoped, tools.services)
}

/** Code of a tool, whose services are those of its tool set: they are provided where it runs. */
const withoutServices = (effect: Effect.Effect<unknown, unknown, unknown>): Effect.Effect<unknown, unknown> =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
  effect as Effect.Effect<unknown, unknown>

const failedHook = unlessInterrupted((cause) => errorResult(show(Cause.squash(cause))))

/** Asks the hooks; those that answer at once cost no effect. */
const throughHooks = ({ host }: CallScope, toolCall: ToolCall, gate: Gate): OrEffect<Gate> => {
  const { beforeToolCall } = host.hooks
  if (beforeToolCall.length === 0) return gate
  const { assistantMessage, context } = host
  const change = (passed: Gate, hook: HookSet["beforeToolCall"][number]): OrEffect<Gate, unknown> => {
    if (passed._tag === "Answered") return passed
    if (host.stopping) return Effect.interrupt
    const answer = hook({ toolCall, args: passed.args, assistantMessage, context })
    return Effect.isEffect(answer)
      ? Effect.map(host.inTime("beforeToolCall", answer), (decision) => decided(passed, decision))
      : decided(passed, answer)
  }
  return guarded(() => inTurn(beforeToolCall, gate, change), failedHook)
}

/**
 * The three gates (T1): the tool exists, its arguments decode, no hook blocks. Answers without an effect when no hook and
 * no preparation has to be asked.
 */
export const prepare = (scope: CallScope, toolCall: ToolCall): Gate | Effect.Effect<Gate> => {
  const tool = scope.tools.byName.get(toolCall.name)
  if (tool === undefined) return errorResult(notFound(toolCall.name, scope.tools))
  // A copy: what the model gave stays in the transcript, whatever the tool or a hook does with its arguments.
  const given = Result.map(givenArguments(toolCall), copyJson)
  if (Result.isFailure(given)) {
    return errorResult(
      `Tool call "${excerpt(toolCall.name, 200)}" was not executed: its arguments are not valid JSON. Received: ${
        excerpt(given.failure, 400)
      }`
    )
  }
  if (tool.prepareArguments === undefined) return throughHooks(scope, toolCall, decode(tool, given.success))
  // They ask for services of the tool's set.
  const prepared = withoutServices(ask(() => tool.prepareArguments!(given.success)))
  return Effect.flatMap(
    Effect.catchCause(provideTool(scope, Effect.map(prepared, (args) => decode(tool, args))), failedHook),
    (gate) => asEffect(throughHooks(scope, toolCall, gate))
  )
}

/**
 * The tool's effect, an `Exit` when it is done at once. Whatever the tool throws is a defect of the effect. `retry` is
 * for tools that have no schedule of their own.
 */
export const execute = (
  ready: Ready,
  call: CallContext,
  retry: Any["retry"]
): Effect.Effect<unknown, unknown> => {
  const schedule = ready.tool.retry ?? retry
  return schedule === undefined
    ? attempt(ready, call)
    : Effect.retry(Effect.suspend(() => attempt(ready, call)), schedule)
}

const attempt = (ready: Ready, call: CallContext): Effect.Effect<unknown, unknown> => {
  const started = Result.try(() => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the arguments were decoded for this tool
    const work: unknown = ready.tool.execute(ready.args as never, call)
    // Asked in here, for a proxy may throw when it is looked at.
    return Effect.isEffect(work) ? withoutServices(work) : undefined
  })
  if (Result.isFailure(started)) return Exit.die(started.failure)
  return started.success ?? Exit.die(new Error(`Tool "${ready.tool.name}" did not return an Effect`))
}

/** What an ended execution means (T4). */
export const settle = (tool: Any, exit: Exit.Exit<unknown, unknown>): Answered => {
  if (Exit.isSuccess(exit)) {
    const output = readOutput(tool.name, exit.value)
    return Result.isSuccess(output)
      ? answered(output.success, output.success.isError === true)
      : errorResult(output.failure)
  }
  return settleFailure(tool.name, exit.cause)
}

const settleFailure = (name: string, cause: Cause.Cause<unknown>): Answered =>
  errorResult(Cause.hasInterruptsOnly(cause) ? `Tool "${name}" was interrupted` : show(Cause.squash(cause)))

/** A result with the change a hook made to it. */
const changed = (current: Answered, change: ToolResultPatch | void): Answered => {
  if (change === undefined) return current
  const { isError, result } = current
  const { content, details, structuredContent, terminate, usage } = change
  const structured = structuredContent !== undefined
    ? structuredContent
    : content === undefined
    ? result.structuredContent
    : undefined
  const { structuredContent: _, ...rest } = result
  return answered({
    ...rest,
    ...(content !== undefined && { content }),
    ...(details !== undefined && { details }),
    ...(usage !== undefined && { usage }),
    ...(terminate !== undefined && { terminate }),
    ...(structured !== undefined && { structuredContent: structured })
  }, change.isError ?? isError)
}

/** The result that hooks have changed, read like that of a tool. */
const checked = ({ tool }: Ready, { isError, result }: Answered): Answered => {
  // The flag shows in a result only if the tool put it there, and then with its final value.
  const flagged = result.isError !== undefined && result.isError !== isError ? { ...result, isError } : result
  const output = readOutput(tool.name, flagged)
  return Result.isSuccess(output) ? answered(output.success, isError) : errorResult(output.failure)
}

const outcomeFields = ({ isError, result }: Answered) => ({ result, isError })

/** Lets the `afterToolCall` hooks change a result (T5); those that answer at once cost no effect. */
export const finalize = (
  scope: CallScope,
  toolCall: ToolCall,
  ready: Ready,
  outcome: Answered
): Answered | Effect.Effect<Answered> => {
  const { host } = scope
  const { afterToolCall } = host.hooks
  if (afterToolCall.length === 0) return outcome
  const { assistantMessage, context } = host
  const { args } = ready
  const change = (current: Answered, hook: HookSet["afterToolCall"][number]): OrEffect<Answered, unknown> => {
    if (host.stopping) return Effect.interrupt
    const answer = hook({ toolCall, args, assistantMessage, context, ...outcomeFields(current) })
    return Effect.isEffect(answer)
      ? Effect.map(host.inTime("afterToolCall", answer), (patch) => changed(current, patch))
      : changed(current, answer)
  }
  return guarded(
    () =>
      whenAnswered(
        inTurn(afterToolCall, outcome, change),
        (last) => host.stopping ? Effect.interrupt : last === outcome ? last : checked(ready, last)
      ),
    failedHook
  )
}

/**
 * A call that a tool makes to another: the same steps without events and messages (T7). Its progress goes to `onUpdate`.
 * `caller` is the call it is made from.
 */
export const runNested = <T extends ReadonlyArray<Any>>(
  scope: CallScope,
  caller: Caller,
  nested: NestedCall,
  { onUpdate, tools }: { readonly tools?: T | undefined; readonly onUpdate?: Progress | undefined }
): Effect.Effect<ToolCallOutcome, never, Services<T[number]>> => {
  const toolCall = readArguments(
    { type: "toolCall", id: nested.id, name: nested.name, arguments: {} },
    nested.arguments ?? {}
  )
  if (tools === undefined) return runIn(scope, caller, toolCall, onUpdate)
  return Effect.contextWith((services: Context.Context<Services<T[number]>>) => {
    const set = makeToolSet(tools, services)
    return Result.isFailure(set)
      ? Effect.succeed(outcomeOf(toolCall, errorResult(set.failure.message)))
      : runIn({ ...scope, tools: set.success }, caller, toolCall, onUpdate)
  })
}

/** A call whose tool may call others, as long as it works itself: what it left running makes no calls any more. */
export interface Caller {
  readonly works: () => boolean
  /** The same of the model's call that it all began with. */
  readonly outermostWorks: () => boolean
}

type Progress = (partial: ToolOutput) => Effect.Effect<void>

const outcomeOf = (toolCall: ToolCall, { isError, result }: Answered): ToolCallOutcome => ({
  toolCall,
  result,
  isError
})

/** Only every so often does a chain of calls pause, which is all the stack needs. */
const startsAtOnce = ({ depth }: CallScope): boolean => depth % 16 !== 15

/** In a fiber of its own: a tool or hook that interrupts itself does not interrupt the tool that made the call. */
const runIn = (
  scope: CallScope,
  caller: Caller,
  toolCall: ToolCall,
  onUpdate: Progress | undefined
): Effect.Effect<ToolCallOutcome> => {
  const call = nestedCall({ ...scope, depth: scope.depth + 1 }, caller, toolCall, onUpdate)
  return Effect.map(
    inFiber(scope.host.probe?.nestedCall(toolCall, scope.tools, call) ?? call, startsAtOnce(scope)),
    (exit) =>
      outcomeOf(
        toolCall,
        Exit.isSuccess(exit) ? exit.value : refusal(scope, caller) ?? settleFailure(toolCall.name, exit.cause)
      )
  )
}

/** Why a call that a tool makes does not go on. */
const refusal = (scope: CallScope, caller: Caller): Answered | undefined =>
  !caller.works() ? callerEnded : scope.host.stopping ? aborted : undefined

const nestedCall = Effect.fnUntraced(function*(
  scope: CallScope,
  caller: Caller,
  toolCall: ToolCall,
  onUpdate: Progress | undefined
): Effect.fn.Return<Answered> {
  const refused = refusal(scope, caller)
  if (refused !== undefined) return refused
  const prepared = prepare(scope, toolCall)
  const gate = Effect.isEffect(prepared) ? yield* prepared : prepared
  if (gate._tag === "Answered") return gate
  const late = refusal(scope, caller)
  if (late !== undefined) return late
  if (!scope.host.takeToolCall()) return overLimit
  let works = true
  const { outermostWorks } = caller
  const self: Caller = { works: () => works && outermostWorks(), outermostWorks }
  const call: CallContext = {
    toolCall,
    assistantMessage: scope.host.assistantMessage,
    update: onUpdate ?? (() => Effect.void),
    runToolCall: (nested, options) => runNested(scope, self, nested, options ?? {})
  }
  const work = provideTool(scope, execute(gate, call, scope.host.retry))
  const exit = yield* Effect.ensuring(
    inFiber(scope.host.inToolTime(gate.tool, toolCall, work), startsAtOnce(scope)),
    Effect.sync(() => {
      works = false
    })
  )
  const settled = settle(gate.tool, exit)
  const finalized = scope.host.stopping ? settled : finalize(scope, toolCall, gate, settled)
  return Effect.isEffect(finalized) ? yield* finalized : finalized
})
