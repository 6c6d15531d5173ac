/**
 * Hooks: a policy that blocks a tool, one that masks secrets in results with the help of a service, one that keeps
 * requests short. Hooks are values; one layer supplies them, and only what they ask for shows in its type.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Context, Effect, Layer, Schema } from "effect"
import { Agent, Hooks, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"

class Secrets extends Context.Service<Secrets, {
  readonly mask: (content: Tools.Content) => Effect.Effect<Tools.Content>
}>()("examples/Secrets") {
  static readonly layer = (secrets: ReadonlyArray<string>) =>
    Layer.succeed(Secrets, {
      mask: (content) => Effect.succeed(content.map((block) => block.type === "text" ? hide(block, secrets) : block))
    })
}

const hide = (block: Messages.TextContent, secrets: ReadonlyArray<string>): Messages.TextContent => ({
  ...block,
  text: secrets.reduce((text, secret) => text.replaceAll(secret, "***"), block.text)
})

const noDeletes = Hooks.beforeToolCall(({ toolCall }) =>
  toolCall.name === "delete_file" ? Hooks.block("deleting is not allowed here") : Hooks.allow
)

const redact = Hooks.afterToolCall(({ result }) =>
  Effect.map(Secrets.use((secrets) => secrets.mask(result.content ?? [])), (content) => ({ content }))
)

const keepLast50 = Hooks.transformContext((messages) => Messages.keepLast(messages, 50)) // never splits a call from its result

const Policy = Hooks.layer(noDeletes, redact, keepLast50) // Layer<never, never, Secrets>

const path = Schema.Struct({ path: Schema.String })

const readFile = Tools.make("read_file", {
  description: "Read a file.",
  parameters: path,
  execute: () => Effect.succeed("user=ada password=tr0ub4dor")
})

const deleteFile = Tools.make("delete_file", {
  description: "Delete a file.",
  parameters: path,
  execute: () => Effect.die(new Error("the policy did not hold"))
})

const program = Effect.gen(function*() {
  const agent = yield* Agent.make({ tools: [readFile, deleteFile] })
  yield* agent.prompt("Read the settings, then delete them.")
  yield* Console.log(Transcript.show(yield* agent.messages))
  yield* ScriptedModel.assertComplete
})

const Model = ScriptedModel.layer([
  ScriptedModel.calls([["a", "read_file", { path: ".env" }], ["b", "delete_file", { path: ".env" }]]),
  ScriptedModel.text("I read them; deleting is not allowed.")
])

program.pipe(
  Effect.scoped,
  Effect.provide([Model, Layer.provide(Policy, Secrets.layer(["tr0ub4dor"]))]),
  NodeRuntime.runMain
)
