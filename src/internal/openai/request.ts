/**
 * One request and its answer: opens the connection, reads the stream, and closes the connection with the scope of the
 * stream, however that ends.
 */
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as UrlParams from "effect/http/UrlParams"
import type * as Pull from "effect/Pull"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ModelError } from "../../Errors.ts"
import type { JsonObject } from "../../Messages.ts"
import { type Model, type StreamEvent, type StreamRequest, unknownModel } from "../../StreamFn.ts"
import { asEffect, type OrEffect } from "../answer.ts"
import { secretsIn } from "../errorText.ts"
import { isRecord } from "../record.ts"
import { AnswerReader, type Events } from "./answerReader.ts"
import { ChunkReader, isErrorReport } from "./chunkReader.ts"
import { Failures } from "./failures.ts"
import { jsonText } from "./jsonText.ts"
import { payloadOf } from "./payload.ts"
import { retryAfter } from "./retryAfter.ts"
import { readSettings, type Settings } from "./settings.ts"

/** The options of `OpenAi.layer`; see there. */
export interface Options {
  readonly baseUrl?: string | undefined
  readonly apiKey?: Redacted.Redacted | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly onPayload?: ((payload: JsonObject, model: Model) => OrEffect<JsonObject | void, ModelError>) | undefined
  readonly onResponse?:
    | ((
      response: { readonly status: number; readonly headers: Readonly<Record<string, string>> },
      model: Model
    ) => OrEffect<void, ModelError>)
    | undefined
}

export const defaultBaseUrl = "https://api.openai.com/v1"

export const respond = (
  client: HttpClient.HttpClient,
  options: Options,
  request: StreamRequest
): Stream.Stream<StreamEvent, ModelError> =>
  Stream.fromChannel(
    Channel.fromTransform((_: Pull.Pull<unknown, unknown, unknown>, scope): Effect.Effect<Events, ModelError> =>
      open(client, options, request, scope)
    )
  )

const open = Effect.fnUntraced(function*(
  client: HttpClient.HttpClient,
  options: Options,
  request: StreamRequest,
  scope: Scope.Scope
) {
  const { model } = request
  const baseUrl = model.baseUrl ?? options.baseUrl ?? defaultBaseUrl
  const url = endpoint(baseUrl)
  const settings = readSettings(model, baseUrl)
  const headers = headersOf(options, request, settings)
  const failures = new Failures(UrlParams.redactUrl(url), model.id, secretsIn([], headers))
  const { authorization } = headers
  if (model.id === unknownModel.id) return yield* Effect.fail(failures.noModel())
  if (!/^https?:\/\//i.test(url)) return yield* Effect.fail(failures.noScheme())
  if (authorization !== undefined && !/^[\x20-\x7e]*$/.test(authorization)) return yield* Effect.fail(failures.badKey())

  const payload = payloadOf(request, settings)
  const replaced = yield* asEffect(options.onPayload?.(payload, model))
  const response = yield* HttpClient.withScope(client).execute(
    HttpClientRequest.post(url, { headers }).pipe(
      HttpClientRequest.bodyText(jsonText(replaced ?? payload), "application/json")
    )
  ).pipe(
    Effect.provideService(Scope.Scope, scope),
    Effect.updateService(Headers.CurrentRedactedNames, (names) => [...names, ...keyHeaders]),
    // A provider has no use for trace ids, and a browser would have to ask its leave for the headers.
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
    Effect.mapError((error) => failures.http(error))
  )
  yield* asEffect(options.onResponse?.({ status: response.status, headers: { ...response.headers } }, model))
  if (response.status < 200 || response.status > 299) {
    const body = yield* start(response)
    const now = yield* Clock.currentTimeMillis
    return yield* Effect.fail(failures.status(response.status, body, retryAfter(response.headers, now)))
  }
  const type = response.headers["content-type"]
  if (type !== undefined && /\b(json|html|xml)\b/i.test(type) && !/ndjson/i.test(type)) {
    const body = yield* start(response)
    return yield* Effect.fail(errorIn(body, failures) ?? failures.notEvents(type, body))
  }
  const reader = new AnswerReader(new ChunkReader(model, settings, failures), failures, type)
  const body = Stream.mapError(response.stream, (error) => failures.http(error))
  const bytes = yield* Channel.toTransform(Stream.toChannel(body))(Cause.done(), scope)
  // Runs before the finalizer of `withScope`, which closes what is still open.
  yield* Scope.addFinalizer(scope, reader.drain(bytes))
  return reader.events(bytes)
})

const path = "/chat/completions"

/** The base URL may end in a slash, hold a query (Azure), or be the whole URL already. */
const endpoint = (baseUrl: string): string => {
  const [base = "", ...query] = baseUrl.trim().split("?")
  const trimmed = base.replace(/\/+$/, "")
  const url = trimmed.endsWith(path) ? trimmed : `${trimmed}${path}`
  return query.length === 0 ? url : `${url}?${query.join("?")}`
}

/** Headers that hold a key, beside those that Effect keeps out of logs and traces by itself. */
const keyHeaders = ["api-key"]

/** What is nearer to the request wins: the layer, then the model, then the request; the headers of each after its key. */
const headersOf = (options: Options, request: StreamRequest, settings: Settings): Readonly<Record<string, string>> => {
  const headers = new Map<string, string>([["accept", "text/event-stream"]])
  const bearer = (key: Redacted.Redacted | undefined): void => {
    const value = key === undefined ? "" : Redacted.value(key).trim()
    if (value !== "") headers.set("authorization", `Bearer ${value}`)
  }
  const add = (more: unknown): void => {
    if (!isRecord(more)) return
    for (const [name, value] of Object.entries(more)) {
      if (typeof value === "string") headers.set(name.toLowerCase(), value)
    }
  }
  bearer(options.apiKey)
  if (settings.sessionHeader && request.sessionId !== undefined) headers.set("x-session-id", request.sessionId)
  add(options.headers)
  add(request.model["headers"])
  bearer(request.apiKey)
  add(request.headers)
  return Object.fromEntries(headers)
}

/** More of an answer that is no stream of events is not read. */
const maxBody = 65_536

/** … and not waited for: some servers leave the connection of an error open. */
const maxWait = "5 seconds"

/** The beginning of an answer as text; what cannot be read is left out. */
const start = (response: HttpClientResponse.HttpClientResponse): Effect.Effect<string> =>
  Effect.suspend(() => {
    const decoder = new TextDecoder()
    let text = ""
    const read = Stream.runForEachWhile(response.stream, (bytes) =>
      Effect.sync(() => {
        text += decoder.decode(bytes, { stream: true })
        return text.length < maxBody
      }))
    return Effect.map(Effect.timeoutOption(Effect.ignore(read), maxWait), () => text)
  })

/** The error that a JSON answer is, if it is one: some servers report it with the status of a success. */
const errorIn = (body: string, failures: Failures): ModelError | undefined => {
  const json = Result.getOrUndefined(Result.try((): unknown => JSON.parse(body)))
  return isErrorReport(json) ? failures.inStream(json) : undefined
}
