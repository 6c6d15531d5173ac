/**
 * What a run gives back.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { RunAborted, type RunError, RunFailed, RunLimited, type RunOutcome } from "./Errors.ts"
import { addUsage, type AgentMessage, emptyUsage, type Usage } from "./Messages.ts"

const describe = (error: RunError): string => {
  if (error._tag === "HookError") return `The ${error.hook} hook failed: ${error.message}`
  return error._tag === "ListenerError"
    ? `A required listener failed on ${error.event}: ${error.message}`
    : error.message
}

/**
 * The result of a run: how it ended and what it added to the transcript.
 *
 * @category models
 * @since 0.1.0
 */
export class RunResult {
  readonly outcome: RunOutcome
  /** Everything the run added, prompts included, in order. */
  readonly messages: ReadonlyArray<AgentMessage>

  constructor(outcome: RunOutcome, messages: ReadonlyArray<AgentMessage>) {
    this.outcome = outcome
    this.messages = messages
  }

  /** Tokens and cost of the model's responses in this run. */
  get usage(): Usage {
    return this.messages.reduce(
      (total, message) => message.role === "assistant" ? addUsage(total, message.usage) : total,
      emptyUsage
    )
  }

  /**
   * The result of a completed run; the other outcomes as typed failures.
   *
   * **Example** (Failing with the run)
   *
   * ```ts
   * import { Effect } from "effect"
   * import type { Agent } from "effect-pi"
   *
   * const ask = (agent: Agent.Agent["Service"]) =>
   *   agent.prompt("hi").pipe(Effect.flatMap((run) => run.orFail))
   * ```
   */
  get orFail(): Effect.Effect<RunResult, RunAborted | RunFailed | RunLimited> {
    const { outcome } = this
    switch (outcome._tag) {
      case "Completed":
        return Effect.succeed(this)
      case "Aborted":
        return Effect.fail(new RunAborted({ message: "The run was aborted" }))
      case "Failed":
        return Effect.fail(new RunFailed({ message: describe(outcome.error), error: outcome.error }))
      case "Limited":
        return Effect.fail(
          new RunLimited({ message: `The run reached its limit of ${outcome.limit}`, limit: outcome.limit })
        )
    }
  }
}
