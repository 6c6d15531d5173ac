/**
 * A model of any of pi-ai's providers; pi-ai finds its key in the environment.
 *
 *     ANTHROPIC_API_KEY=sk-… node examples/pi-ai.ts anthropic claude-sonnet-4-5
 *     GROQ_API_KEY=gsk_… node examples/pi-ai.ts groq openai/gpt-oss-120b
 */
import { builtinModels } from "@earendil-works/pi-ai/providers/all"
import { NodeRuntime } from "@effect/platform-node"
import { Config, Console, Effect, Option, Schema } from "effect"
import { Agent, Tools } from "../src/index.ts"
import { PiAi } from "../src/pi-ai/index.ts"

const models = builtinModels()

const weather = Tools.make("weather", {
  description: "The weather of a city.",
  parameters: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(`${city}: 21 degrees, light wind`)
})

const program = Effect.gen(function*() {
  const [provider = "anthropic", id = "claude-sonnet-4-5"] = process.argv.slice(2)
  const found = yield* PiAi.find(models, provider, id)
  const baseUrl = yield* Config.option(Config.String("BASE_URL")) // a gateway or a proxy of your own
  const agent = yield* Agent.make({
    model: Option.isSome(baseUrl) ? { ...found, baseUrl: baseUrl.value } : found,
    tools: [weather]
  })
  yield* agent.subscribe(Agent.onText((delta) => Effect.sync(() => process.stdout.write(delta))))
  const run = yield* agent.prompt("Is it warmer in Lisbon or in Oslo?")
  yield* Console.log(
    run.outcome._tag === "Failed"
      ? run.outcome.error.message
      : `\n${run.outcome._tag}, ${run.usage.totalTokens} tokens`
  )
})

program.pipe(
  Effect.scoped,
  Effect.catchTag("ModelNotFound", ({ message }) => Console.error(message)),
  Effect.provide(PiAi.layerModels(models)),
  NodeRuntime.runMain
)
