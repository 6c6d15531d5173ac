/**
 * Requests to a StreamFn, and what came of them.
 */
import { Effect, Layer, Redacted, Result, Stream } from "effect"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import { Agent, type Errors, Messages, StreamFn } from "../../src/index.ts"
import { OpenAi } from "../../src/openai/index.ts"

export const model = OpenAi.model("test-model")

export const key = "sk-test-0123456789abcdef"

export const request = (fields: Partial<StreamFn.StreamRequest> = {}): StreamFn.StreamRequest => ({
  model,
  messages: [Messages.user("hi")],
  tools: Messages.declaredTools(fields.messages ?? []),
  thinkingLevel: "off",
  toolChoice: "auto",
  apiKey: undefined,
  sessionId: undefined,
  headers: undefined,
  thinkingBudgets: undefined,
  metadata: undefined,
  ...fields
})

/** Over fetch, with a key. */
export const layer = (url: string, options: OpenAi.Options = {}): Layer.Layer<StreamFn.StreamFn> =>
  OpenAi.layer({ baseUrl: url, apiKey: Redacted.make(key), ...options }).pipe(Layer.provide(FetchHttpClient.layer))

/** What a response gave: lists of events as they came, and how it failed. */
export interface Given {
  readonly lists: ReadonlyArray<ReadonlyArray<StreamFn.StreamEvent>>
  readonly events: ReadonlyArray<StreamFn.StreamEvent>
  readonly error: Errors.ModelError | undefined
}

export const ask = (fields?: Partial<StreamFn.StreamRequest>): Effect.Effect<Given, never, StreamFn.StreamFn> =>
  Effect.gen(function*() {
    const { stream } = yield* StreamFn.StreamFn
    const lists: Array<ReadonlyArray<StreamFn.StreamEvent>> = []
    const result = yield* Effect.result(
      Stream.runForEachArray(stream(request(fields)), (list) => Effect.sync(() => lists.push(list)))
    )
    return { lists, events: lists.flat(), error: Result.isFailure(result) ? result.failure : undefined }
  })

/** A client that answers with exactly these reads, so that a test decides where the network splits an answer. */
export const fakeLayer = (
  reads: ReadonlyArray<Uint8Array>,
  headers: Readonly<Record<string, string>> = { "content-type": "text/event-stream" }
): Layer.Layer<StreamFn.StreamFn> =>
  OpenAi.layer().pipe(Layer.provide(Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) =>
      Effect.sync(() => {
        let next = 0
        const body = new ReadableStream<Uint8Array>({
          pull: (controller) => {
            const read = reads[next++]
            if (read === undefined) controller.close()
            else controller.enqueue(read)
          }
        })
        return HttpClientResponse.fromWeb(request, new Response(body, { headers: { ...headers } }))
      })
    )
  )))

/** The last message of an agent that was asked once. */
export const lastMessage = (
  options: { readonly model?: StreamFn.Model } = {}
): Effect.Effect<
  Messages.AssistantMessage,
  Errors.AgentConfigError | Errors.AgentBusy | Errors.InvalidPrompt,
  StreamFn.StreamFn
> =>
  Effect.scoped(Effect.gen(function*() {
    const agent = yield* Agent.make({ model: options.model ?? model, limits: { turns: 1 } })
    const { messages } = yield* agent.prompt("hi")
    const message = messages.find((message) => message.role === "assistant")
    return message === undefined ? yield* Effect.die("no response") : message
  }))
