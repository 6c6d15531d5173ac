/**
 * The loop without a host: no transcript, no state, no listeners. For a program that keeps the conversation elsewhere.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Queue, Schema, Stream } from "effect"
import { Loop, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"

const add = Tools.make("add", {
  description: "Add two numbers.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: ({ a, b }) => Effect.succeed(String(a + b))
})

const program = Effect.gen(function*() {
  // As a stream of events, which waits for whoever reads it.
  const types = yield* Loop.stream([Messages.user("What is 19 + 23?")], { messages: [], tools: [add] }).pipe(
    Stream.map((event) => event.type),
    Stream.filter((type) => type !== "message_update"),
    Stream.runCollect
  )
  yield* Console.log(`events: ${types.join(" ")}\n`)

  // As a result: the outcome, and what has to be added to the conversation.
  const followUps = yield* Queue.unbounded<Messages.AgentMessage>()
  yield* Queue.offer(followUps, Messages.user("Good. Thank you."))
  const context = { messages: [Messages.user("hi"), Messages.assistant("hello")], tools: [] }
  const { messages, outcome } = yield* Loop.run([Messages.user("Was that right?")], context, { followUps })
  yield* Console.log(`${outcome._tag}, ${messages.length} messages to add\n${Transcript.show(messages)}`)
})

const Model = ScriptedModel.layer([
  ScriptedModel.calls([["a", "add", { a: 19, b: 23 }]]),
  ScriptedModel.text("42"),
  ScriptedModel.text("Yes."),
  ScriptedModel.text("You are welcome.")
])

program.pipe(Effect.provide(Model), NodeRuntime.runMain)
