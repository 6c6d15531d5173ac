/**
 * A first program: an agent with one tool answers a question about this repository.
 *
 * The model is scripted, so that it runs without a key or a network; a provider's `StreamFn` layer takes its place.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Schema } from "effect"
import { Agent, Tools } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"

const readFile = Tools.make("read_file", {
  description: "Read a UTF-8 text file.",
  parameters: Schema.Struct({ path: Schema.String.annotate({ description: "Path of the file" }) }),
  execute: ({ path }) => FileSystem.FileSystem.use((fs) => fs.readFileString(path)) // a string is a text result
})

const program = Effect.gen(function*() {
  const agent = yield* Agent.make({ systemPrompt: "You answer questions about this package.", tools: [readFile] })
  yield* agent.subscribe(Agent.onText((delta) => Effect.sync(() => process.stdout.write(delta))))
  const run = yield* agent.prompt("What does package.json say?")
  yield* Console.log(`\n${run.outcome._tag}, ${run.usage.totalTokens} tokens`)
})

const Model = ScriptedModel.layer([ // a provider's StreamFn takes its place
  ScriptedModel.calls([["a", "read_file", { path: "package.json" }]], { usage: { input: 120, output: 20 } }),
  ScriptedModel.text("It is the manifest of this package.", { chunks: 6, every: 20, usage: { input: 900, output: 12 } })
])

program.pipe(
  Effect.scoped,
  Effect.provide([
    Model, // without it: a compile error
    NodeServices.layer // the tool asked for FileSystem; without it: a compile error
  ]),
  NodeRuntime.runMain
)
