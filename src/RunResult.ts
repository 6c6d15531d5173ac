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
  /**
   * Tokens and cost of the model's responses in the runs that code of this run started (its tools, hooks and listeners),
   * in those that they started, and so on. What a run spends that is left behind by an abort is counted until this run ended.
   */
  readonly childUsage: Usage

  constructor(outcome: RunOutcome, messages: ReadonlyArray<AgentMessage>, childUsage: Usage = emptyUsage) {
    this.outcome = outcome
    this.messages = messages
    this.childUsage = childUsage
  }

  /** Tokens and cost of the model's responses in this run, without its child runs. */
  get usage(): Usage {
    return this.messages.reduce(
      (total, message) => message.role === "assistant" ? addUsage(total, message.usage) : total,
      emptyUsage
    )
  }

  /**
   * Tokens and cost of the run with its child runs, which is what its budget counts.
   *
   * **Example** (What a prompt cost)
   *
   * ```ts
   * import { Console, Effect } from "effect"
   * import type { Agent } from "effect-pi"
   *
   * const ask = (agent: Agent.Agent["Service"]) =>
   *   agent.prompt("hi").pipe(Effect.tap((run) => Console.log(run.totalUsage.cost.total)))
   * ```
   */
  get totalUsage(): Usage {
    return addUsage(this.usage, this.childUsage)
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
