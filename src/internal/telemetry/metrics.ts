/**
 * The metrics of runs. Version 0.1.0 of the conventions renamed those of a request; both names are kept, since what reads
 * them mostly knows the older ones.
 */
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { AssistantMessage, Usage } from "../../Messages.ts"
import type { StreamRequest } from "../../StreamFn.ts"
import { attempt } from "../json.ts"
import { inputTokens, providerName } from "./attributes.ts"

const growing = (first: number, factor: number, count: number): ReadonlyArray<number> =>
  Metric.boundariesFromIterable(Array.from({ length: count }, (_, n) => first * factor ** n))

const histogram = (name: string, unit: string, description: string, boundaries: ReadonlyArray<number>) =>
  Metric.histogram(name, { description, attributes: { unit }, boundaries })

const counter = (name: string, unit: string, description: string) =>
  Metric.counter(name, { description, attributes: { unit }, incremental: true })

const seconds = growing(0.01, 2, 14)
const counts = growing(1, 2, 8)

const requestDurations = ["gen_ai.client.operation.duration", "gen_ai.client.inference.duration"].map((name) =>
  histogram(name, "s", "How long a request took, its attempts included.", seconds)
)
const firstChunks = ["gen_ai.client.operation.time_to_first_chunk", "gen_ai.client.inference.time_to_first_chunk"].map(
  (name) => histogram(name, "s", "Time from a request to the first piece of its response.", seconds)
)
const tokenUsage = histogram("gen_ai.client.token.usage", "{token}", "Tokens of a response.", growing(1, 4, 14))
const tokenCounter = (name: string) =>
  counter(`gen_ai.client.inference.usage.${name}`, "{token}", "Tokens of all responses.")
const tokens = {
  input: tokenCounter("input_tokens"),
  output: tokenCounter("output_tokens"),
  cacheRead: tokenCounter("cache_read.input_tokens"),
  cacheWrite: tokenCounter("cache_write.input_tokens"),
  reasoning: tokenCounter("reasoning.output_tokens")
}
const cost = counter("effect_pi.cost", "USD", "What responses cost.")

const toolDuration = histogram("gen_ai.execute_tool.duration", "s", "How long a tool call took.", seconds)
const toolCallCounter = counter("effect_pi.tool_calls", "{tool_call}", "Tool calls, those of tools among them.")

const runDuration = histogram("gen_ai.invoke_agent.duration", "s", "How long a run took.", growing(0.1, 2, 13))
const runRequests = histogram("gen_ai.invoke_agent.inference_calls", "{inference_call}", "Requests of a run.", counts)
const runToolCalls = histogram("gen_ai.invoke_agent.tool_calls", "{tool_call}", "Tool calls of a run.", counts)
const runCounter = counter("effect_pi.runs", "{run}", "Runs that ended.")
const turnCounter = counter("effect_pi.turns", "{turn}", "Turns of runs that ended.")

type Labels = Readonly<Record<string, string | undefined>>

/** Adds to metrics in the registry of one place. */
export class Meter {
  readonly #services: Context.Context<never>

  constructor(services: Context.Context<never>) {
    this.#services = services
  }

  #update(metric: Metric.Metric<number, unknown>, input: number, labels: Labels): void {
    const attributes = Object.entries(labels).flatMap(([key, value]): ReadonlyArray<[string, string]> =>
      value === undefined ? [] : [[key, value]]
    )
    attempt(() => Metric.withAttributes(metric, Object.fromEntries(attributes)).updateUnsafe(input, this.#services))
  }

  response(
    { model }: StreamRequest,
    message: AssistantMessage,
    times: { readonly duration: number; readonly toFirstChunk: number | undefined },
    errorType: string | undefined
  ): void {
    const labels = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": providerName(model),
      "gen_ai.request.model": model.id,
      "gen_ai.response.model": message.responseModel ?? message.model
    }
    const outcome = { ...labels, "error.type": errorType }
    for (const metric of requestDurations) this.#update(metric, times.duration, outcome)
    if (times.toFirstChunk !== undefined) {
      for (const metric of firstChunks) this.#update(metric, times.toFirstChunk, labels)
    }
    this.#tokens(message.usage, labels)
  }

  #tokens(usage: Usage, labels: Labels): void {
    const input = inputTokens(usage)
    // A response that tells nothing of its tokens says nothing of how many responses use.
    if (usage.totalTokens > 0) {
      this.#update(tokenUsage, input, { ...labels, "gen_ai.token.type": "input" })
      this.#update(tokenUsage, usage.output, { ...labels, "gen_ai.token.type": "output" })
    }
    const ofKind = { ...labels, "gen_ai.token.modality": "unknown" }
    this.#update(tokens.input, input, ofKind)
    this.#update(tokens.output, usage.output, ofKind)
    if (usage.cacheRead > 0) this.#update(tokens.cacheRead, usage.cacheRead, ofKind)
    if (usage.cacheWrite > 0) this.#update(tokens.cacheWrite, usage.cacheWrite, ofKind)
    if (usage.reasoning !== undefined) this.#update(tokens.reasoning, usage.reasoning, ofKind)
    if (usage.cost.total > 0) this.#update(cost, usage.cost.total, labels)
  }

  toolCall(tool: string, duration: number, agent: string | undefined, errorType: string | undefined): void {
    const labels = { "gen_ai.tool.name": tool, "gen_ai.agent.name": agent, "error.type": errorType }
    this.#update(toolDuration, duration, { ...labels, "gen_ai.tool.type": "function" })
    this.#update(toolCallCounter, 1, labels)
  }

  run(
    { duration, requests, toolCalls, turns }: {
      readonly duration: number
      readonly requests: number
      readonly toolCalls: number
      readonly turns: number
    },
    agent: string | undefined,
    outcome: string,
    errorType: string | undefined
  ): void {
    const labels = { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent }
    this.#update(runDuration, duration, { ...labels, "error.type": errorType })
    this.#update(runRequests, requests, labels)
    this.#update(runToolCalls, toolCalls, labels)
    this.#update(runCounter, 1, { "gen_ai.agent.name": agent, "effect_pi.run.outcome": outcome })
    this.#update(turnCounter, turns, { "gen_ai.agent.name": agent })
  }
}
