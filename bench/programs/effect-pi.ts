/** An agent with one tool; the model is somebody else's. The files beside this one are the same program with other libraries. */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Agent, type StreamFn, Tools } from "../../src/index.ts"

const echo = Tools.make("echo", {
  description: "Says what it is told.",
  parameters: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.succeed(text)
})

const program = Effect.gen(function*() {
  const agent = yield* Agent.make({ systemPrompt: "You echo.", tools: [echo] })
  const run = yield* agent.prompt("go")
  return run.outcome._tag
})

export const main = (model: Layer.Layer<StreamFn.StreamFn>): Promise<string> =>
  Effect.runPromise(Effect.provide(Effect.scoped(program), model))
