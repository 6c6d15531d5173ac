/** Traces, logs and metrics over OTLP/HTTP, from a model that is asked over HTTP to a collector on this machine. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Metric, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp } from "effect/observability"
import { Agent } from "../../src/index.ts"
import { OpenAi } from "../../src/openai/index.ts"
import { Telemetry } from "../../src/telemetry/index.ts"
import * as Server from "../utils/completionsServer.ts"
import { answer, calls, finish, json, piece, text } from "../utils/completionsServer.ts"
import { tool } from "../utils/timedTools.ts"

interface Value {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
}

interface Attributed {
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: Value }>
}

interface Span extends Attributed {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly status: { readonly code: number; readonly message?: string }
}

interface LogRecord extends Attributed {
  readonly body: Value
  readonly traceId?: string
  readonly spanId?: string
}

interface Collected {
  readonly resourceSpans?: ReadonlyArray<
    { readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<Span> }> }
  >
  readonly resourceLogs?: ReadonlyArray<
    { readonly scopeLogs: ReadonlyArray<{ readonly logRecords: ReadonlyArray<LogRecord> }> }
  >
  readonly resourceMetrics?: ReadonlyArray<
    {
      readonly scopeMetrics: ReadonlyArray<
        { readonly metrics: ReadonlyArray<{ readonly name: string; readonly unit?: string }> }
      >
    }
  >
}

const attribute = ({ attributes }: Attributed, key: string): Value | undefined =>
  attributes.find((each) => each.key === key)?.value

/** What a run of the agent tells the collector, and what the collector was sent byte by byte. */
const collect = <E, R>(
  use: Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function*() {
    const collector = yield* Server.serve({ headers: { "content-type": "application/json" }, body: ["{}"] })
    const otlp = Otlp.layerJson({
      baseUrl: collector.url.replace("/v1", ""),
      resource: { serviceName: "test" },
      loggerMergeWithExisting: false
    }).pipe(Layer.provide(FetchHttpClient.layer))
    const registry = Layer.succeed(Metric.MetricRegistry, new Map())
    // What is left is sent when the layer is closed.
    yield* Effect.provide(use, Layer.provideMerge(Layer.merge(otlp, Telemetry.layer()), registry))
    const sent = collector.asked.map(({ body }) => body as Collected) // oxlint-disable-line typescript/no-unsafe-type-assertion -- what OTLP sends
    return {
      spans: sent.flatMap(({ resourceSpans = [] }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
      ),
      logs: sent.flatMap(({ resourceLogs = [] }) =>
        resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
      ),
      metrics: sent.flatMap(({ resourceMetrics = [] }) =>
        resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      ),
      bytes: JSON.stringify(collector.asked)
    }
  })

const openAi = (url: string) =>
  OpenAi.layer({ baseUrl: url, apiKey: Redacted.make("sk-secret") }).pipe(Layer.provide(FetchHttpClient.layer))

describe("A collector", () => {
  it.live(
    "gets spans that are nested right, logs with trace and run, and metrics; and no key",
    () =>
      Effect.gen(function*() {
        const model = yield* Server.serve(
          answer(calls(piece(0, "{}", { id: "a", name: "look" })), finish("tool_calls")),
          answer(text("answer-content"), finish("stop"))
        )
        const look = tool("look", () =>
          Effect.gen(function*() {
            yield* Effect.log("looking")
            yield* Effect.withSpan(Effect.void, "read a file")
            return "result-content"
          }))
        const { bytes, logs, metrics, spans } = yield* collect(
          Effect.gen(function*() {
            const agent = yield* Agent.make({ model: OpenAi.model("gpt", { baseUrl: model.url }), tools: [look] })
            const { outcome } = yield* agent.prompt("prompt-content")
            assert.strictEqual(outcome._tag, "Completed")
          }).pipe(Effect.scoped, Effect.provide(openAi(model.url)))
        )
        const byId = new Map(spans.map((span) => [span.spanId, span]))
        const path = (span: Span): string => {
          const parent = span.parentSpanId === undefined ? undefined : byId.get(span.parentSpanId)
          return parent === undefined ? span.name : `${span.name} < ${path(parent)}`
        }
        const run = "invoke_agent"
        assert.sameMembers(spans.map(path), [
          run,
          `chat gpt < ${run}`,
          `POST < chat gpt < ${run}`,
          `execute_tool look < ${run}`,
          `read a file < execute_tool look < ${run}`,
          `chat gpt < ${run}`,
          `POST < chat gpt < ${run}`
        ])
        assert.strictEqual(new Set(spans.map(({ traceId }) => traceId)).size, 1)
        assert.deepStrictEqual([...new Set(spans.map(({ status }) => status.code))], [1])

        const runSpan = spans.find(({ name }) => name === run)!
        const call = spans.find(({ name }) => name === "execute_tool look")!
        const log = logs.find(({ body }) => body.stringValue === "looking")
        assert.isDefined(log)
        assert.deepStrictEqual([log.traceId, log.spanId], [call.traceId, call.spanId])
        assert.isDefined(attribute(log, "run")?.stringValue)
        assert.strictEqual(attribute(log, "run")?.stringValue, attribute(runSpan, "effect_pi.run.id")?.stringValue)

        const units = new Map(metrics.map(({ name, unit }) => [name, unit]))
        assert.strictEqual(units.get("gen_ai.client.operation.duration"), "s")
        assert.strictEqual(units.get("gen_ai.execute_tool.duration"), "s")
        assert.strictEqual(units.get("gen_ai.invoke_agent.inference_calls"), "{inference_call}")
        assert.strictEqual(units.get("effect_pi.turns"), "{turn}")

        assert.include(JSON.stringify(model.asked), "sk-secret")
        assert.notMatch(bytes, /sk-secret|-content/)
      }).pipe(Effect.scoped),
    30_000
  )

  it.live("gets spans of failed runs by class, without the text of the error", () =>
    Effect.gen(function*() {
      const model = yield* Server.serve(json(401, { error: { message: "Incorrect API key: sk-secret" } }))
      const { bytes, spans } = yield* collect(
        Effect.gen(function*() {
          const agent = yield* Agent.make({ model: OpenAi.model("gpt", { baseUrl: model.url }) })
          yield* agent.prompt("hi")
        }).pipe(Effect.scoped, Effect.provide(openAi(model.url)))
      )
      const failed = spans.filter(({ name }) => name !== "POST")
      assert.deepStrictEqual(
        failed.map((span) => [span.name, span.status, attribute(span, "error.type")?.stringValue]),
        [
          ["chat gpt", { code: 2, message: "Authentication" }, "Authentication"],
          ["invoke_agent", { code: 2, message: "Authentication" }, "Authentication"]
        ]
      )
      assert.notInclude(bytes, "sk-secret")
    }).pipe(Effect.scoped), 30_000)
})
