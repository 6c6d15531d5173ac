/**
 * What an agent and a loop alone are configured with, checked and turned into the state of a run.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import type * as Schedule from "effect/Schedule"
import type { Limits } from "../Budget.ts"
import { ConvertToLlm } from "../ConvertToLlm.ts"
import type { AgentConfigError } from "../Errors.ts"
import { Hooks } from "../Hooks.ts"
import { ThinkingLevel } from "../Messages.ts"
import { type Model, StreamFn, type StreamRequest, unknownModel } from "../StreamFn.ts"
import type { Any, ExecutionMode } from "../Tools.ts"
import { checkCount, checkLimits, checkMillis, checkOneOf, checkSchedule, refuse } from "./checks.ts"
import type { RunConfig, RunFunctions, RunSettings } from "./run.ts"
import { executionModes, makeToolSet } from "./toolSet.ts"

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
  /** For tools that have none of their own: how long a call may take, its retries included. */
  readonly toolTimeout?: Duration.Input | undefined
  /** For tools that have none of their own: when a call that failed is tried again. */
  readonly toolRetry?: Schedule.Schedule<unknown> | undefined
  /** Characters of text in a tool result that the transcript keeps; default: 1 000 000. Events carry the whole result. */
  readonly maxResultLength?: number | undefined
  /** How long a hook may take. */
  readonly hookTimeout?: Duration.Input | undefined
  /** How long a response may take to its first event. */
  readonly firstEventTimeout?: Duration.Input | undefined
  /** How long a response may pause between events. */
  readonly eventTimeout?: Duration.Input | undefined
  /** What one run may spend; see `Budget`. */
  readonly limits?: Limits | undefined
  /** A run that makes the same call with the same arguments this many times in a row ends as `Limited`. */
  readonly repeatedCalls?: number | undefined
  /** Whether a run that reached a limit, other than its duration, makes one last request in which no tool may be called. */
  readonly wrapUp?: boolean | undefined
  /** How long an abort waits for what does not stop; default: 1 second. */
  readonly gracePeriod?: Duration.Input | undefined
}

type Checked<A> = Result.Result<A, AgentConfigError>

const checkConcurrency = (concurrency: number | "unbounded"): Checked<number | "unbounded"> =>
  concurrency === "unbounded" || (Number.isInteger(concurrency) && concurrency > 0)
    ? Result.succeed(concurrency)
    : refuse("InvalidConcurrency", `toolConcurrency is ${concurrency}; give a whole number from 1, or "unbounded".`)

/** Reads the services a run works with. */
export const readFunctions = (services: Context.Context<StreamFn>): RunFunctions => ({
  stream: Context.get(services, StreamFn).stream,
  hooks: Context.get(services, Hooks),
  conversion: Context.get(services, ConvertToLlm)
})

const defaultConfig: RunConfig = {
  toolConcurrency: "unbounded",
  toolTimeout: undefined,
  toolRetry: undefined,
  maxResultLength: 1_000_000,
  hookTimeout: undefined,
  firstEventTimeout: undefined,
  eventTimeout: undefined,
  limits: undefined,
  repeatedCalls: undefined,
  wrapUp: false,
  gracePeriod: 1000,
  headers: undefined,
  metadata: undefined,
  thinkingBudgets: undefined
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is an object literal
const configKeys = Object.keys(defaultConfig) as ReadonlyArray<keyof RunConfig>

const isDefault = (options: { readonly [Key in keyof RunConfig]?: unknown }): boolean =>
  configKeys.every((key) => options[key] === undefined || options[key] === defaultConfig[key])

/** Checks the options. Agents that choose none share one configuration. */
export const readConfig = (options: RunOptions): Checked<RunConfig> =>
  isDefault(options) ? Result.succeed(defaultConfig) : Result.gen(function*() {
    return {
      toolConcurrency: yield* checkConcurrency(options.toolConcurrency ?? defaultConfig.toolConcurrency),
      toolTimeout: yield* checkMillis("toolTimeout", options.toolTimeout, "InvalidTimeout", 1),
      toolRetry: yield* checkSchedule("toolRetry", options.toolRetry),
      maxResultLength: (yield* checkCount("maxResultLength", options.maxResultLength, false)) ??
        defaultConfig.maxResultLength,
      hookTimeout: yield* checkMillis("hookTimeout", options.hookTimeout, "InvalidTimeout", 1),
      firstEventTimeout: yield* checkMillis("firstEventTimeout", options.firstEventTimeout, "InvalidTimeout", 1),
      eventTimeout: yield* checkMillis("eventTimeout", options.eventTimeout, "InvalidTimeout", 1),
      limits: options.limits === undefined ? undefined : yield* checkLimits(options.limits, "limits."),
      repeatedCalls: yield* checkCount("repeatedCalls", options.repeatedCalls, true),
      wrapUp: options.wrapUp === true,
      gracePeriod: (yield* checkMillis("gracePeriod", options.gracePeriod, "InvalidGracePeriod", 0)) ??
        defaultConfig.gracePeriod,
      headers: options.headers,
      metadata: options.metadata,
      thinkingBudgets: options.thinkingBudgets
    }
  })

/** What may change during a run. */
export const readSettings = (
  options: RunOptions,
  tools: ReadonlyArray<Any>,
  services: Context.Context<never>
): Checked<RunSettings> =>
  Result.gen(function*() {
    return {
      model: options.model ?? unknownModel,
      thinkingLevel: (yield* checkOneOf("thinkingLevel", options.thinkingLevel, ThinkingLevel.literals)) ?? "off",
      tools: yield* makeToolSet(tools, services),
      toolExecution: (yield* checkOneOf("toolExecution", options.toolExecution, executionModes)) ?? "parallel"
    }
  })
