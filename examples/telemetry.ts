/**
 * What a run tells a tracer: the spans of a run, of its requests and calls, and of another agent inside a tool.
 *
 * A program would send them to a collector, with `Otlp.layerJson` in the place of the tracer here; see docs/telemetry.md.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Metric, Option, Schema, Tracer } from "effect"
import { Agent, Messages, Tools } from "../src/index.ts"
import { Telemetry } from "../src/telemetry/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"

const spans: Array<Tracer.NativeSpan> = []

const InMemory = Layer.succeed(
  Tracer.Tracer,
  Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
)

const model = { id: "demo-model", provider: "demo" }

const search = Tools.make("search", {
  description: "Searches the archive.",
  parameters: Schema.Struct({ query: Schema.String }),
  // A span of the tool's own stands in that of the call.
  execute: ({ query }) => Effect.succeed(`2 hits for ${query}`).pipe(Effect.withSpan("read the index"))
})

const research = Tools.make("research", {
  description: "Asks the researcher.",
  parameters: Schema.Struct({ question: Schema.String }),
  execute: Effect.fn(function*({ question }) {
    const researcher = yield* Agent.make({ model, tools: [search] }).pipe(
      Effect.provideService(Telemetry.AgentInfo, { name: "researcher" })
    )
    const run = yield* researcher.prompt(question)
    return Messages.text(run.messages.at(-1)!)
  }, Effect.scoped)
})

const program = Effect.gen(function*() {
  const agent = yield* Agent.make({ model, tools: [research], sessionId: "session-1" }).pipe(
    Effect.provideService(Telemetry.AgentInfo, { name: "editor" })
  )
  yield* agent.followUp("And the sources?")
  const run = yield* agent.prompt("What is known of the lighthouse?")

  const show = (span: Tracer.NativeSpan, depth: number): Effect.Effect<void> =>
    Effect.gen(function*() {
      const tokens = span.attributes.get("gen_ai.usage.output_tokens")
      const events = span.events.map(([name]) => ` [${name}]`).join("")
      const indent = "  ".repeat(depth)
      yield* Console.log(
        `${indent}${span.name}${typeof tokens === "number" ? `, ${tokens} output tokens` : ""}${events}`
      )
      const inside = spans.filter(({ parent }) => Option.isSome(parent) && parent.value === span)
      yield* Effect.forEach(inside, (child) => show(child, depth + 1), { discard: true })
    })
  for (const span of spans) if (Option.isNone(span.parent)) yield* show(span, 0)

  const { totalUsage, usage } = run
  yield* Console.log(`\n${usage.totalTokens} tokens, with the researcher ${totalUsage.totalTokens}`)
  for (const metric of yield* Metric.snapshot) {
    if (metric.type === "Counter" && metric.id.startsWith("effect_pi.tool_calls")) {
      yield* Console.log(`calls of ${metric.attributes?.["gen_ai.tool.name"]}: ${metric.state.count}`)
    }
  }
})

const usage = { input: 100, output: 10 }

const Model = ScriptedModel.layer([
  ScriptedModel.calls([["a", "research", { question: "lighthouse" }]], { usage }),
  ScriptedModel.calls([["b", "search", { query: "lighthouse" }]], { usage }),
  ScriptedModel.text("It was built in 1895.", { usage }),
  ScriptedModel.text("It dates from 1895.", { usage }),
  ScriptedModel.text("The archive of the harbour.", { usage })
])

program.pipe(Effect.scoped, Effect.provide([Telemetry.layer(), InMemory, Model]), NodeRuntime.runMain)
