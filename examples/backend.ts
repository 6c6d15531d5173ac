/**
 * A back end: every event of a run as server-sent events. A client that goes away interrupts the run.
 *
 * The server listens on a free port, is asked by a client that reads to the end and by one that leaves early, and stops.
 */
import { NodeHttpServer, NodeRuntime } from "@effect/platform-node"
import { Console, Context, Effect, Layer, Queue, Schema, Stream } from "effect"
import {
  HttpClient,
  HttpClientRequest,
  HttpClientResponse,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { Agent, Events, Tools } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"

const Chat = Schema.Struct({ prompt: Schema.String })

const clock = Tools.make("clock", {
  description: "Tell the time.",
  parameters: Schema.Struct({}),
  execute: () => Effect.succeed("half past nine")
})

/** How the runs on the server ended, for the end of this program. */
class Outcomes extends Context.Service<Outcomes, Queue.Queue<string>>()("examples/Outcomes") {
  static readonly layer = Layer.effect(Outcomes, Queue.unbounded<string>())
}

// One agent per request. It lives until the response is sent, or nobody reads it any more.
const ChatRoute = HttpRouter.add(
  "POST",
  "/chat",
  Effect.gen(function*() {
    const { prompt } = yield* HttpServerRequest.schemaBodyJson(Chat)
    const outcomes = yield* Outcomes
    const agent = yield* Agent.make({ systemPrompt: "Be brief.", tools: [clock] })
    yield* agent.subscribe((event) =>
      event.type === "agent_end" ? Queue.offer(outcomes, event.outcome._tag) : undefined
    )
    return HttpServerResponse.stream(Agent.stream(agent, prompt).pipe(Events.toSse, Stream.encodeText), {
      contentType: "text/event-stream"
    })
  })
)

const ask = (prompt: string) =>
  HttpClientRequest.post("/chat").pipe(
    HttpClientRequest.bodyJsonUnsafe({ prompt }),
    HttpClientRequest.setHeader("connection", "close"), // so that the server need not wait for an idle connection
    HttpClient.execute,
    HttpClientResponse.stream,
    Stream.decodeText(),
    Stream.splitLines,
    Stream.filter((line) => line !== "")
  )

const excerpt = (line: string) => line.length > 100 ? `${line.slice(0, 100)}…` : line

const program = Effect.gen(function*() {
  const outcomes = yield* Outcomes

  yield* Stream.runForEach(ask("What time is it?"), (line) => Console.log(excerpt(line)))
  yield* Console.log(`\nthe run on the server: ${yield* Queue.take(outcomes)}`)

  yield* ask("Tell me everything").pipe(
    Stream.takeUntil((line) => line.includes("\"text_delta\"")),
    Stream.runDrain
  )
  yield* Console.log(`the run whose client left: ${yield* Queue.take(outcomes)}`)
})

const Model = ScriptedModel.layer([
  ScriptedModel.calls([["a", "clock", {}]]),
  ScriptedModel.text("It is half past nine.", { chunks: 4, every: "10 millis" }),
  ScriptedModel.hang({ partial: "To begin with," })
])

// A server for the time of the program, and a client that knows its port; `NodeHttpServer.layer` is the usual one.
const Server = HttpRouter.serve(ChatRoute, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provide(Model),
  Layer.provideMerge(Layer.mergeAll(NodeHttpServer.layerTest, Outcomes.layer))
)

program.pipe(Effect.provide(Server), NodeRuntime.runMain)
