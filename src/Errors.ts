/**
 * What can go wrong, as values: the tagged errors of the library and the outcome of a run.
 *
 * Only misuse is in the error channel of an agent: a second prompt during a run (`AgentBusy`), an unusable prompt
 * (`InvalidPrompt`), nothing to continue from (`CannotContinue`) and a wrong configuration (`AgentConfigError`). All
 * that happens while a run works, a failing model or hook or an abort, is a `RunOutcome`.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"

/**
 * The agent cannot take the call now, and nothing was changed: it works on a run already (`Running`), the call comes from
 * inside that run, which would wait for itself (`Inside`), or the agent's scope has closed (`Closed`).
 *
 * **When to use**
 *
 * Catch it where two callers may prompt one agent. Queue the message with `agent.steer` or `agent.followUp`, wait with
 * `agent.awaitIdle`, or prompt with `whileRunning`.
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentBusy extends Data.TaggedError("AgentBusy")<{
  readonly reason: "Running" | "Inside" | "Closed"
  readonly message: string
}> {}

/**
 * The prompt cannot be used: an empty text without images, a message that does not decode or cannot be paired, or an
 * unknown option.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidPrompt extends Data.TaggedError("InvalidPrompt")<{
  readonly reason: "Empty" | "InvalidMessage" | "InvalidOption"
  readonly message: string
}> {}

/**
 * There is nothing a run could continue from, or the loop's prompts, context or options cannot be used.
 *
 * @category errors
 * @since 0.1.0
 */
export class CannotContinue extends Data.TaggedError("CannotContinue")<{
  readonly reason: "EmptyTranscript" | "AssistantTail" | "InvalidContext"
  readonly message: string
}> {}

/**
 * The agent was given options it cannot work with; `message` names the thing and the way out.
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentConfigError extends Data.TaggedError("AgentConfigError")<{
  readonly reason:
    | "DuplicateTool"
    | "InvalidTool"
    | "InvalidToolParameters"
    | "InvalidConcurrency"
    | "InvalidGracePeriod"
    | "InvalidTimeout"
    | "InvalidLimit"
    | "InvalidOption"
    | "InvalidTranscript"
  readonly message: string
}> {}

/**
 * Why a model's response failed.
 *
 * `Reported` is an error event of the provider that says no more than its text; `IncompleteStream` and
 * `ProtocolViolation` are broken streams, found by the loop.
 *
 * @category models
 * @since 0.1.0
 */
export type ModelErrorReason =
  | "Authentication"
  | "InvalidRequest"
  | "ContextOverflow"
  | "RateLimited"
  | "Overloaded"
  | "Network"
  | "Timeout"
  | "IncompleteStream"
  | "ProtocolViolation"
  | "Reported"
  | "Aborted"
  | "Unknown"

const retryable: ReadonlySet<ModelErrorReason> = new Set([
  "RateLimited",
  "Overloaded",
  "Network",
  "Timeout",
  "IncompleteStream"
])

/**
 * A response of the model that could not be obtained or completed.
 *
 * **When to use**
 *
 * Fail the stream of a `StreamFn` with it. The text becomes the `errorMessage` of the assistant message that ends the
 * run; what had arrived of the response is kept.
 *
 * @category errors
 * @since 0.1.0
 */
export class ModelError extends Data.TaggedError("ModelError")<{
  readonly reason: ModelErrorReason
  readonly message: string
  /** Milliseconds the provider asks to wait before another try. */
  readonly retryAfter?: number | undefined
  readonly cause?: unknown
}> {
  /** Whether the same request may succeed later. */
  get isRetryable(): boolean {
    return retryable.has(this.reason)
  }
}

/**
 * The hooks whose failure ends a run, and the conversion.
 *
 * @category models
 * @since 0.1.0
 */
export type HookName =
  | "transformContext"
  | "convertToLlm"
  | "apiKey"
  | "prepareRequest"
  | "prepareNextTurn"
  | "finishTurn"
  | "beforeToolCall"
  | "afterToolCall"

/**
 * A hook failed or died, and ended the run.
 *
 * @category errors
 * @since 0.1.0
 */
export class HookError extends Data.TaggedError("HookError")<{
  readonly hook: HookName
  readonly message: string
  readonly cause: unknown
}> {}

/**
 * A required listener failed, and ended the run.
 *
 * @category errors
 * @since 0.1.0
 */
export class ListenerError extends Data.TaggedError("ListenerError")<{
  /** The type of the event it failed on. */
  readonly event: string
  readonly message: string
  readonly cause: unknown
}> {}

/**
 * Why a run ended as `Failed`.
 *
 * @category errors
 * @since 0.1.0
 */
export type RunError = ModelError | HookError | ListenerError

/**
 * What a run can be limited by; see `Budget`. `repeatedCalls` is the guard against a model that makes the same call again
 * and again.
 *
 * @category models
 * @since 0.1.0
 */
export type Limit = "turns" | "toolCalls" | "tokens" | "cost" | "duration" | "repeatedCalls"

/**
 * How a run ended.
 *
 * - `Completed`: the model stopped (`Stop`), all tools of a batch asked to stop (`Terminate`), or the `finishTurn` hook
 *   ended the run (`FinishTurn`). `stopReason` is that of the last assistant message.
 * - `Aborted`: `agent.abort`, an interrupted `prompt`, or a closed scope.
 * - `Failed`: the model, a hook, the conversion or a required listener failed; `error` says which.
 * - `Limited`: a limit was reached; `limit` says which.
 *
 * @category models
 * @since 0.1.0
 */
export type RunOutcome = Data.TaggedEnum<{
  Completed: { readonly by: "Stop" | "Terminate" | "FinishTurn"; readonly stopReason: string }
  Aborted: {}
  Failed: { readonly error: RunError }
  Limited: { readonly limit: Limit }
}>

/**
 * Constructors and matchers of {@link RunOutcome}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const RunOutcome = Data.taggedEnum<RunOutcome>()

/**
 * A run that was aborted, as a failure; made by `run.orFail`.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunAborted extends Data.TaggedError("RunAborted")<{ readonly message: string }> {}

/**
 * A run that failed, as a failure; made by `run.orFail`.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunFailed extends Data.TaggedError("RunFailed")<{
  readonly message: string
  readonly error: RunError
}> {}

/**
 * A run that reached a limit, as a failure; made by `run.orFail`.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunLimited extends Data.TaggedError("RunLimited")<{
  readonly message: string
  readonly limit: Limit
}> {}
