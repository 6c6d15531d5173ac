/** A tracer that keeps its spans, and what they look like in a test. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Metric, Option, Tracer } from "effect"
import { Telemetry } from "../../src/telemetry/index.ts"

export interface Kept {
  readonly spans: Array<Tracer.NativeSpan>
  readonly layer: Layer.Layer<never>
}

/** Telemetry with a tracer that keeps its spans, and metrics of its own. */
export const keep = (options?: Telemetry.Options): Kept => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (made) => {
      const span = new Tracer.NativeSpan(made)
      spans.push(span)
      return span
    }
  })
  return {
    spans,
    layer: Layer.mergeAll(
      Telemetry.layer(options),
      Layer.succeed(Tracer.Tracer, tracer),
      Layer.succeed(Metric.MetricRegistry, new Map())
    )
  }
}

/** What the span is in: `chat test < invoke_agent`. */
export const path = (span: Tracer.AnySpan): string => {
  const name = span._tag === "Span" ? span.name : "outside"
  return Option.match(
    span._tag === "Span" ? span.parent : Option.none<Tracer.AnySpan>(),
    { onNone: () => name, onSome: (parent) => `${name} < ${path(parent)}` }
  )
}

export const paths = ({ spans }: Kept): ReadonlyArray<string> => spans.map(path)

/** How a span ended: `ok`, `interrupted`, the name and text of its error, or `open`. */
export const ending = ({ status }: Tracer.NativeSpan): string => {
  if (status._tag === "Started") return "open"
  if (status.exit._tag === "Success") return "ok"
  const [reason] = status.exit.cause.reasons
  if (reason === undefined || reason._tag === "Interrupt") return "interrupted"
  return reason._tag === "Fail" ? String(reason.error) : "died"
}

/** The spans with their endings. */
export const endings = ({ spans }: Kept): ReadonlyArray<string> => spans.map((span) => `${span.name}: ${ending(span)}`)

/** The first span of a name. */
export const find = ({ spans }: Kept, name: string): Tracer.NativeSpan => {
  const found = spans.find((span) => span.name === name)
  assert(found !== undefined, `no span "${name}" in ${spans.map((span) => span.name).join(", ")}`)
  return found
}

export const attributesOf = (span: Tracer.NativeSpan): Readonly<Record<string, unknown>> =>
  Object.fromEntries(span.attributes)

/** The names of events, and when they were, in milliseconds. */
export const eventsOf = (span: Tracer.NativeSpan): ReadonlyArray<readonly [string, number, unknown]> =>
  span.events.map(([name, time, attributes]) => [name, Number(time / 1_000_000n), attributes])

/** Milliseconds. */
export const timesOf = ({ startTime, status }: Tracer.NativeSpan): readonly [number, number | undefined] => [
  Number(startTime / 1_000_000n),
  status._tag === "Ended" ? Number(status.endTime / 1_000_000n) : undefined
]

/** No span is open, each has a parent that is no younger, and none outlives the run it is in. */
export const assertClosed = (kept: Kept): void => {
  assert.deepStrictEqual(endings(kept).filter((each) => each.endsWith(": open")), [])
  for (const span of kept.spans) {
    const parent = Option.getOrUndefined(span.parent)
    if (parent?._tag !== "Span") continue
    assert.isAtMost(Number(parent.status.startTime), Number(span.startTime), path(span))
    assert(parent.status._tag === "Ended" && span.status._tag === "Ended")
    assert.isAtMost(Number(span.status.endTime), Number(parent.status.endTime), path(span))
  }
}

/** Everything spans say, as one text. */
export const everything = ({ spans }: Kept): string =>
  spans.map((span) => {
    const cause = span.status._tag === "Ended" && span.status.exit._tag === "Failure" ? ending(span) : ""
    return [span.name, JSON.stringify(attributesOf(span)), JSON.stringify(span.events.map(([, , a]) => a)), cause]
      .join()
  }).join("\n")

/** Metrics as lines: `name{attribute=value,…} state`, without units and without what the runtime counts. */
export const metrics: Effect.Effect<ReadonlyArray<string>> = Effect.map(
  Metric.snapshot,
  (snapshots) =>
    snapshots.flatMap((snapshot) => {
      if (!/^(gen_ai|effect_pi)\./.test(snapshot.id)) return []
      const { unit: _, ...attributes } = snapshot.attributes ?? {}
      const labels = Object.entries(attributes).map(([key, value]) => `${key}=${value}`).toSorted().join()
      const state = snapshot.type === "Counter"
        ? String(snapshot.state.count)
        : snapshot.type === "Histogram"
        ? `${snapshot.state.count}x${snapshot.state.sum}`
        : snapshot.type
      return [`${snapshot.id}{${labels}} ${state}`]
    }).toSorted()
)
