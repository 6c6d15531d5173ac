/**
 * A real model: OpenAI, or any server that speaks its chat completions API.
 *
 *     OPENAI_API_KEY=sk-… node examples/openai.ts
 *     OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=qwen3:8b node examples/openai.ts
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Config, Console, Effect, FileSystem, Schema } from "effect"
import { Agent, Tools } from "../src/index.ts"
import { OpenAi } from "../src/openai/index.ts"

const readFile = Tools.make("read_file", {
  description: "Read a UTF-8 text file.",
  parameters: Schema.Struct({ path: Schema.String.annotate({ description: "Path of the file" }) }),
  execute: ({ path }) => FileSystem.FileSystem.use((fs) => fs.readFileString(path))
})

const program = Effect.gen(function*() {
  const model = yield* Config.String("OPENAI_MODEL").pipe(Config.withDefault("gpt-5.2"))
  const agent = yield* Agent.make({
    systemPrompt: "You answer questions about this package.",
    model: OpenAi.model(model),
    tools: [readFile]
  })
  yield* agent.subscribe(Agent.onText((delta) => Effect.sync(() => process.stdout.write(delta))))
  const run = yield* agent.prompt("What is the name in package.json?")
  yield* Console.log(
    run.outcome._tag === "Failed"
      ? run.outcome.error.message
      : `\n${run.outcome._tag}, ${run.usage.totalTokens} tokens`
  )
})

program.pipe(
  Effect.scoped,
  Effect.provide([
    OpenAi.layerConfig(), // OPENAI_API_KEY, OPENAI_BASE_URL; without it: a compile error
    NodeServices.layer
  ]),
  NodeRuntime.runMain
)
