/**
 * What an agent and a loop alone are configured with, checked and turned into the state of a run.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import { ConvertToLlm } from "../ConvertToLlm.ts"
import { AgentConfigError } from "../Errors.ts"
import { Hooks } from "../Hooks.ts"
import type { ThinkingLevel } from "../Messages.ts"
import { type Model, StreamFn, type StreamRequest, unknownModel } from "../StreamFn.ts"
import type { Any, ExecutionMode } from "../Tools.ts"
import type { RunConfig, RunSettings } from "./run.ts"
import { makeToolSet } from "./toolSet.ts"

/** Options that an agent and a loop alone share. */
export interface RunOptions
  extends Partial<Pick<StreamRequest, "headers" | "metadata" | "sessionId" | "thinkingBudgets">>
{
  /** Default: a model whose id is `unknown`. */
  readonly model?: Model | undefined
  /** Default: `off`. */
  readonly thinkingLevel?: ThinkingLevel | undefined
  /** Default: `parallel`. */
  readonly toolExecution?: ExecutionMode | undefined
  /** How many tools may work at the same time; default: `unbounded`. */
  readonly toolConcurrency?: number | "unbounded" | undefined
  /** How long an abort waits for what does not stop; default: 1 second. */
  readonly gracePeriod?: Duration.Input | undefined
}

const checkConcurrency = (concurrency: number | "unbounded"): Result.Result<number | "unbounded", AgentConfigError> =>
  concurrency === "unbounded" || (Number.isInteger(concurrency) && concurrency > 0)
    ? Result.succeed(concurrency)
    : Result.fail(
      new AgentConfigError({
        reason: "InvalidConcurrency",
        message: `toolConcurrency is ${concurrency}; give a whole number from 1, or "unbounded".`
      })
    )

const checkGrace = (grace: Duration.Input): Result.Result<number, AgentConfigError> => {
  const duration = Duration.fromInput(grace)
  const millis = duration._tag === "Some" ? Duration.toMillis(duration.value) : Number.NaN
  return Number.isFinite(millis) && millis >= 0
    ? Result.succeed(millis)
    : Result.fail(
      new AgentConfigError({
        reason: "InvalidGracePeriod",
        message: "gracePeriod must be a finite duration of 0 or more, such as \"1 second\"."
      })
    )
}

/** What stays the same during the runs of an agent; the session id is that of the moment a run starts. */
export type BaseConfig = Omit<RunConfig, "sessionId" | "steering" | "followUps">

/** Reads the services a run works with and checks the options. */
export const readConfig = (
  options: RunOptions,
  services: Context.Context<StreamFn>
): Result.Result<BaseConfig, AgentConfigError> =>
  Result.gen(function*() {
    return {
      stream: Context.get(services, StreamFn).stream,
      hooks: Context.get(services, Hooks),
      conversion: Context.get(services, ConvertToLlm),
      toolConcurrency: yield* checkConcurrency(options.toolConcurrency ?? "unbounded"),
      gracePeriod: yield* checkGrace(options.gracePeriod ?? defaultGrace),
      headers: options.headers,
      metadata: options.metadata,
      thinkingBudgets: options.thinkingBudgets
    }
  })

const defaultGrace = 1000

/** What may change during a run. */
export const readSettings = (
  options: RunOptions,
  tools: ReadonlyArray<Any>,
  services: Context.Context<never>
): Result.Result<RunSettings, AgentConfigError> =>
  Result.map(makeToolSet(tools, services), (set) => ({
    model: options.model ?? unknownModel,
    thinkingLevel: options.thinkingLevel ?? "off",
    tools: set,
    toolExecution: options.toolExecution ?? "parallel"
  }))
