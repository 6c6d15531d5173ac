/**
 * A `LanguageModel` of effect/ai over the chat completions API, as small as it can be: published providers do not load with
 * this version of effect.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { AiError, LanguageModel, type Prompt, type Response, Tool } from "effect/ai"
import { Sse } from "effect/encoding"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"

const failed = (reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "Completions", method: "streamText", reason })

const network = (description: string): AiError.AiError =>
  failed(new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "/chat/completions", description }))

const broken = (description: string): AiError.AiError => failed(new AiError.InvalidResponseError({ description }))

const statusReason = (
  { headers, status }: { readonly headers: Readonly<Record<string, string>>; readonly status: number },
  body: string
): AiError.AiErrorReason => {
  const description = body.slice(0, 500)
  const http = { response: { status, headers: { ...headers } }, body: description }
  if (status === 429) return new AiError.RateLimitError({ http })
  if (status === 408) return new AiError.InternalProviderError({ description, http })
  if (status >= 404 && status < 500) return new AiError.InvalidRequestError({ description, http })
  return AiError.reasonFromHttpStatus({ status, description, http })
}

type WirePart = { readonly type: string; readonly [key: string]: unknown }

const wirePart = (part: Prompt.Part): ReadonlyArray<WirePart> =>
  part.type === "text"
    ? [{ type: "text", text: part.text }]
    : part.type === "file"
    ? [{ type: "image_url", image_url: { url: `data:${part.mediaType};base64,${String(part.data)}` } }]
    : []

const wireMessages = (message: Prompt.Message): ReadonlyArray<object> => {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }]
    case "user":
      return [{ role: "user", content: message.content.flatMap(wirePart) }]
    case "assistant": {
      const text = message.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("")
      const calls = message.content.flatMap((part) =>
        part.type === "tool-call"
          ? [{ id: part.id, type: "function", function: { name: part.name, arguments: JSON.stringify(part.params) } }]
          : []
      )
      const reasoning = message.content.filter((part) => part.type === "reasoning")
      return [{
        role: "assistant",
        content: text === "" ? null : text,
        ...(reasoning.length > 0 && { reasoning: reasoning.map(({ options, text }) => ({ text, options })) }),
        ...(calls.length > 0 && { tool_calls: calls })
      }]
    }
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result"
          ? [{
            role: "tool",
            tool_call_id: part.id,
            content: part.modelOutput?.map((each) => each.type === "text" ? each.text : "(image)").join("") ?? ""
          }]
          : []
      )
  }
}

const Chunk = Schema.fromJsonString(Schema.Struct({
  id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  model: Schema.optionalKey(Schema.NullOr(Schema.String)),
  error: Schema.optionalKey(Schema.Unknown),
  choices: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Struct({
    delta: Schema.optionalKey(Schema.NullOr(Schema.Struct({
      content: Schema.optionalKey(Schema.NullOr(Schema.String)),
      reasoning_content: Schema.optionalKey(Schema.NullOr(Schema.String)),
      signature: Schema.optionalKey(Schema.String),
      tool_calls: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Struct({
        index: Schema.optionalKey(Schema.Finite),
        id: Schema.optionalKey(Schema.NullOr(Schema.String)),
        function: Schema.optionalKey(Schema.Struct({
          name: Schema.optionalKey(Schema.NullOr(Schema.String)),
          arguments: Schema.optionalKey(Schema.NullOr(Schema.String))
        }))
      }))))
    }))),
    finish_reason: Schema.optionalKey(Schema.NullOr(Schema.String))
  })))),
  usage: Schema.optionalKey(Schema.NullOr(Schema.Struct({
    prompt_tokens: Schema.optionalKey(Schema.Finite),
    completion_tokens: Schema.optionalKey(Schema.Finite),
    prompt_tokens_details: Schema.optionalKey(
      Schema.NullOr(Schema.Struct({ cached_tokens: Schema.optionalKey(Schema.NullOr(Schema.Finite)) }))
    ),
    completion_tokens_details: Schema.optionalKey(
      Schema.NullOr(Schema.Struct({ reasoning_tokens: Schema.optionalKey(Schema.NullOr(Schema.Finite)) }))
    )
  })))
}))

const finishReasons: Readonly<Record<string, Response.FinishReason>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool-calls",
  content_filter: "content-filter"
}

/** From chunks to parts; one for each response. */
class Reader {
  #text = false
  #reasoning = false
  #signature: string | undefined
  readonly #calls = new Map<number, { readonly id: string; readonly name: string; args: string }>()
  #finish: string | undefined
  #usage: typeof Chunk.Type["usage"]
  #known = false

  read(chunk: typeof Chunk.Type): ReadonlyArray<Response.StreamPartEncoded> {
    const out: Array<Response.StreamPartEncoded> = []
    if (chunk.error !== undefined) return [{ type: "error", error: JSON.stringify(chunk.error) }]
    if (!this.#known) {
      this.#known = true
      out.push({ type: "response-metadata", id: chunk.id ?? undefined, modelId: chunk.model ?? undefined })
    }
    if (chunk.usage) this.#usage = chunk.usage
    const choice = chunk.choices?.[0]
    if (choice?.finish_reason) this.#finish = choice.finish_reason
    const { content, reasoning_content: reasoning, signature, tool_calls: calls } = choice?.delta ?? {}
    if (signature !== undefined) this.#signature = signature
    if (reasoning) {
      if (!this.#reasoning) out.push({ type: "reasoning-start", id: "r" })
      this.#reasoning = true
      out.push({ type: "reasoning-delta", id: "r", delta: reasoning })
    }
    if (content) {
      if (!this.#text) out.push({ type: "text-start", id: "t" })
      this.#text = true
      out.push({ type: "text-delta", id: "t", delta: content })
    }
    for (const call of calls ?? []) {
      const index = call.index ?? 0
      let known = this.#calls.get(index)
      if (known === undefined) {
        known = { id: call.id ?? `call_${index}`, name: call.function?.name ?? "", args: "" }
        this.#calls.set(index, known)
        out.push({ type: "tool-params-start", id: known.id, name: known.name, providerExecuted: false })
      }
      const delta = call.function?.arguments ?? ""
      known.args += delta
      if (delta !== "") out.push({ type: "tool-params-delta", id: known.id, delta })
    }
    return out
  }

  end(): ReadonlyArray<Response.StreamPartEncoded> {
    const out: Array<Response.StreamPartEncoded> = []
    if (this.#reasoning) {
      const metadata = this.#signature === undefined
        ? {}
        : { metadata: { completions: { signature: this.#signature } } }
      out.push({ type: "reasoning-end", id: "r", ...metadata })
    }
    if (this.#text) out.push({ type: "text-end", id: "t" })
    for (const { args, id, name } of this.#calls.values()) {
      out.push({ type: "tool-params-end", id }, { type: "tool-call", id, name, params: parse(args) })
    }
    if (this.#finish === undefined) return out
    const { completion_tokens, completion_tokens_details, prompt_tokens, prompt_tokens_details } = this.#usage ?? {}
    out.push({
      type: "finish",
      reason: finishReasons[this.#finish] ?? "other",
      usage: {
        inputTokens: {
          uncached: undefined,
          total: prompt_tokens,
          cacheRead: prompt_tokens_details?.cached_tokens ?? undefined,
          cacheWrite: undefined
        },
        outputTokens: {
          total: completion_tokens,
          text: undefined,
          reasoning: completion_tokens_details?.reasoning_tokens ?? undefined
        }
      }
    })
    return out
  }
}

/** Parameters that are no JSON stay a text, which the loop refuses with a result that says so. */
const parse = (args: string): unknown => {
  try {
    return args === "" ? {} : JSON.parse(args)
  } catch {
    return args
  }
}

/** The model behind a server. */
export const layer = (url: string, key = "k"): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.effect(
    LanguageModel.LanguageModel,
    Effect.flatMap(HttpClient.HttpClient, (client) =>
      LanguageModel.make({
        generateText: () => Effect.die("only streams are needed"),
        streamText: ({ prompt, toolChoice, tools }) =>
          Stream.unwrap(Effect.gen(function*() {
            const response = yield* client.execute(
              HttpClientRequest.post(`${url}/chat/completions`).pipe(
                HttpClientRequest.bearerToken(key),
                HttpClientRequest.bodyJsonUnsafe({
                  model: "test-model",
                  stream: true,
                  messages: prompt.content.flatMap(wireMessages),
                  ...(tools.length > 0 && {
                    tool_choice: toolChoice,
                    tools: tools.map((tool) => ({
                      type: "function",
                      function: {
                        name: tool.name,
                        description: Tool.getDescription(tool),
                        parameters: Tool.getJsonSchema(tool)
                      }
                    }))
                  })
                })
              )
            ).pipe(Effect.mapError((error) => network(error.message)))
            if (response.status !== 200) {
              const body = yield* Effect.orElseSucceed(response.text, () => "")
              return yield* failed(statusReason(response, body))
            }
            if (/json|html/.test(response.headers["content-type"] ?? "")) {
              return yield* broken("the answer is no stream")
            }
            const reader = new Reader()
            return response.stream.pipe(
              Stream.mapError((error) => network(error.message)),
              Stream.decodeText(),
              Stream.pipeThroughChannel(Sse.decode()),
              Stream.mapError((error) => AiError.isAiError(error) ? error : broken("no events")),
              Stream.takeWhile(({ data }) => data !== "[DONE]"),
              Stream.mapEffect(({ data }) =>
                Effect.mapError(Schema.decodeUnknownEffect(Chunk)(data), () => broken(`no chunk: ${data}`))
              ),
              Stream.flatMap((chunk) => Stream.fromIterable(reader.read(chunk))),
              Stream.concat(Stream.suspend(() => Stream.fromIterable(reader.end())))
            )
          }))
      }))
  ).pipe(Layer.provide(FetchHttpClient.layer))
