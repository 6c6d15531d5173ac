/**
 * A language model and a toolkit of effect/ai, as the model and the tools of an agent.
 *
 * The language model is made by hand, so that it runs offline; that of a provider takes its place.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { LanguageModel, type Response, Tool, Toolkit } from "effect/ai"
import { Agent } from "../src/index.ts"
import { EffectAi } from "../src/language-model/index.ts"

const Weather = Toolkit.make(
  Tool.make("temperature", {
    description: "The temperature in a city, in degrees Celsius.",
    parameters: Schema.Struct({ city: Schema.String }),
    success: Schema.Struct({ city: Schema.String, degrees: Schema.Finite })
  }).annotate(Tool.Readonly, true)
)

const WeatherLive = Weather.toLayer({
  temperature: ({ city }) => Effect.succeed({ city, degrees: city === "Oslo" ? 4 : 21 })
})

const usage: Response.FinishPartEncoded["usage"] = {
  inputTokens: { uncached: undefined, total: 15, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: undefined, reasoning: undefined }
}

/** Asks for two cities at once, and says what it was told. */
const Model = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: () => Effect.die("agents read streams"),
    streamText: ({ prompt }) => {
      const results = prompt.content.flatMap((message) => message.role === "tool" ? message.content : [])
      const said = results.flatMap((part) => part.type === "tool-result" ? [JSON.parse(String(part.result))] : [])
      return said.length === 0
        ? Stream.make(
          { type: "tool-call", id: "a", name: "temperature", params: { city: "Lisbon" } },
          { type: "tool-call", id: "b", name: "temperature", params: { city: "Oslo" } },
          { type: "finish", reason: "tool-calls", usage }
        )
        : Stream.make(
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: said.map(({ city, degrees }) => `${city}: ${degrees}`).join(", ") },
          { type: "text-end", id: "1" },
          { type: "finish", reason: "stop", usage }
        )
    }
  })
)

const program = Effect.gen(function*() {
  const agent = yield* Agent.make({ tools: yield* EffectAi.fromToolkit(Weather) })
  yield* agent.subscribe(Agent.onText((delta) => Effect.sync(() => process.stdout.write(delta))))
  const run = yield* agent.prompt("How warm is it in Lisbon and in Oslo?")
  yield* Console.log(`\n${run.outcome._tag}, ${run.usage.totalTokens} tokens`)
})

program.pipe(
  Effect.scoped,
  Effect.provide([EffectAi.layer().pipe(Layer.provide(Model)), WeatherLive]),
  NodeRuntime.runMain
)
