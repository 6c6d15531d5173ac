/**
 * Traces, metrics and logs of runs, by OpenTelemetry's conventions for generative AI.
 *
 * The layer here watches over runs; where spans, metrics and logs go is decided by the tracer, the metric registry and the
 * loggers of the program, such as those of `effect/observability/Otlp`.
 *
 * - Spans: `invoke_agent` for a run, in it `chat` for each request and `execute_tool` for each call. What code of a tool, a
 *   stream or a listener does stands in the span it belongs to; so does the run of another agent inside a tool.
 * - Span events: steering and follow-up messages, abort, limit, and attempts of a request.
 * - Metrics: tokens, cost, durations, time to the first piece of a response, turns, tool calls.
 * - Logs inside a run carry its id as `run`, and the session id as `session`.
 * - What was said stays out of spans unless it is asked for. Keys and headers never get into one.
 *
 * Without the layer a run pays nothing for all of it. `docs/telemetry.md` lists the attributes and metrics.
 *
 * **Example** (To a collector)
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Otlp } from "effect/observability"
 * import { Agent } from "effect-pi"
 * import { Telemetry } from "effect-pi/telemetry"
 *
 * const Observed = Layer.mergeAll(
 *   Telemetry.layer(),
 *   Otlp.layerJson({ baseUrl: "http://localhost:4318", resource: { serviceName: "my-agent" } })
 * ).pipe(Layer.provide(FetchHttpClient.layer))
 *
 * const program = Effect.gen(function*() {
 *   const agent = yield* Agent.make({ systemPrompt: "Be brief." })
 *   return yield* agent.prompt("What is an agent?")
 * }).pipe(Effect.scoped, Effect.provide(Observed))
 * ```
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { Watcher } from "../internal/probe.ts"
import type * as Attributes from "../internal/telemetry/attributes.ts"
import { AgentInfo as AgentInfoReference, watch } from "../internal/telemetry/runProbe.ts"

/**
 * What spans and metrics say of an agent.
 *
 * @category models
 * @since 0.1.0
 */
export type AgentInfo = Attributes.AgentInfo

/**
 * How runs are told of.
 *
 * - `captureContent`: spans carry what was said: instructions, messages, tool definitions, arguments, results, the texts of
 *   errors and the names of tools that do not exist. Default: `false`
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  readonly captureContent?: boolean | undefined
}

/**
 * Tells of the runs of agents that are made with this layer, or prompted inside it, and of the runs inside those.
 *
 * **Gotchas**
 *
 * An agent takes tracer, loggers and this layer from where it is made, else from where it is prompted. A listener that was
 * subscribed inside `Effect.annotateLogs`, and tools that were set there, log with those annotations instead of the run's.
 *
 * **Example** (What was said, too)
 *
 * ```ts
 * import { Telemetry } from "effect-pi/telemetry"
 *
 * const Everything = Telemetry.layer({ captureContent: true })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never> =>
  Layer.succeed(Watcher, watch({ captureContent: options.captureContent === true }))

/**
 * Which agent the runs of a place belong to: their span is `invoke_agent NAME`. None by default. It does not hold for the
 * runs of other agents inside a run.
 *
 * **Example** (A named agent)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-pi"
 * import { Telemetry } from "effect-pi/telemetry"
 *
 * const researcher = Agent.make({ systemPrompt: "Find sources." }).pipe(
 *   Effect.provideService(Telemetry.AgentInfo, { name: "researcher", version: "2" })
 * )
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const AgentInfo: Context.Reference<AgentInfo | undefined> = AgentInfoReference
