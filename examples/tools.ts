/**
 * Everything a tool can do: progress, services, a timeout, retries, typed failures, details for the host, calls to other
 * tools, parameters that are only known at run time.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Context, Effect, Layer, Schedule, Schema } from "effect"
import { Agent, type Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"

interface Hit {
  readonly title: string
  readonly url: string
}

class Offline extends Schema.TaggedError<Offline>()("Offline", { message: Schema.String }) {}

class Web extends Context.Service<Web, {
  readonly search: (query: string, limit: number) => Effect.Effect<ReadonlyArray<Hit>, Offline>
}>()("examples/Web") {}

const search = Tools.make("search", {
  description: "Search the web.",
  parameters: Schema.Struct({ query: Schema.String, limit: Schema.optionalKey(Schema.Int) }),
  executionMode: "parallel",
  timeout: "30 seconds",
  retry: Schedule.exponential("10 millis").pipe(Schedule.upTo({ times: 1 })),
  execute: Effect.fn("search")(function*({ limit = 5, query }, call) {
    yield* call.update(`searching for ${query}`) // progress for the listeners
    const web = yield* Web // a service: part of the agent's type
    const hits = yield* web.search(query, limit) // a typed failure becomes an error result
    return Tools.result({ text: hits.map(({ title }) => title).join("\n"), details: hits }) // details: for the host only
  })
})

// A tool may use another one; its own call is what the model and the listeners see.
const compare = Tools.make("compare", {
  description: "Search for several things at once.",
  parameters: Schema.Struct({ queries: Schema.Array(Schema.String) }),
  execute: Effect.fn("compare")(function*({ queries }, call) {
    const outcomes = yield* Effect.forEach(
      queries,
      (query, index) =>
        call.runToolCall({ id: `${call.toolCall.id}.${index}`, name: "search", arguments: { query, limit: 1 } }),
      { concurrency: "unbounded" }
    )
    return queries.map((query, index) => `${query}: ${outcomes[index]?.isError === true ? "failed" : "found"}`).join(
      "\n"
    )
  })
})

// Found at run time: parameters are a plain JSON Schema, arguments are checked against it and come as `unknown`.
const weatherParameters: Messages.JsonObject = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 } },
  required: ["city"]
}

const weather = Tools.dynamic("weather", {
  description: "Tell the weather.",
  parameters: weatherParameters,
  execute: (args) => Effect.succeed(`fine: ${JSON.stringify(args)}`)
})

const program = Effect.gen(function*() {
  const agent = yield* Agent.make({ tools: [search, compare, weather] })
  yield* agent.subscribe((event) =>
    event.type === "tool_execution_update"
      ? Console.log(`progress of ${event.toolCallId}: ${JSON.stringify(event.partialResult.content)}`)
      : undefined
  )
  const run = yield* agent.prompt("Look around.")
  yield* Console.log(Transcript.show(yield* agent.messages, { width: 200 }))
  for (const message of run.messages) {
    if (message.role === "toolResult" && !message.isError && message.details !== undefined) {
      yield* Console.log(`details of ${message.toolCallId}: ${JSON.stringify(message.details)}`)
    }
  }
})

const LocalWeb = Layer.succeed(Web, {
  search: (query, limit) =>
    query === "the moon"
      ? Effect.fail(new Offline({ message: "the moon is out of reach" }))
      : Effect.succeed([{ title: `All about ${query}`, url: "https://example.org" }].slice(0, limit))
})

const Model = ScriptedModel.layer([
  ScriptedModel.calls([
    ["a", "search", { query: "effects", limit: "3" }], // "3" fits the schema without loss and becomes 3
    ["b", "search", { query: "the moon" }],
    ["c", "compare", { queries: ["effects", "the moon"] }],
    ["d", "weather", { city: "Berlin", days: 2 }],
    ["e", "weather", { days: 0 }]
  ]),
  ScriptedModel.text("That is what I found.")
])

program.pipe(Effect.scoped, Effect.provide([Model, LocalWeb]), NodeRuntime.runMain)
