/**
 * One request to a stream function of pi-ai and its answer. Here Effect ends: what is called is somebody's asynchronous
 * code, which may throw, end early, or ignore its `AbortSignal`.
 */
import type {
  AssistantMessage,
  AssistantMessageEvent,
  Model as PiModel,
  SimpleStreamOptions,
  TranscriptContext
} from "@earendil-works/pi-ai"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { ModelError } from "../../Errors.ts"
import { type StreamEvent, type StreamRequest, unknownModel } from "../../StreamFn.ts"
import { secretsIn } from "../errorText.ts"
import { retryAfter } from "../openai/retryAfter.ts"
import { isRecord } from "../record.ts"
import { contextOf } from "./context.ts"
import { Failures, type LastAnswer } from "./failures.ts"
import { Translator } from "./translate.ts"

/** What a stream function gives: pi-ai's `AssistantMessageEventStream` or anything like it. */
export interface PiStream extends AsyncIterable<AssistantMessageEvent> {
  readonly result?: () => Promise<AssistantMessage>
}

/** A stream function of pi-ai; see `PiAi.StreamFunction`. */
export type StreamFunction = (
  // oxlint-disable-next-line typescript/no-explicit-any -- a function for models of one API is one for those it is given
  model: PiModel<any>,
  context: TranscriptContext,
  options?: SimpleStreamOptions
) => PiStream | Promise<PiStream>

/** The options of `PiAi.layer`; see there. */
export type Options =
  & Omit<
    SimpleStreamOptions,
    "signal" | "reasoning" | "thinkingBudgets" | "sessionId" | "metadata" | "toolChoice" | "apiKey"
  >
  & { readonly apiKey?: Redacted.Redacted | undefined }

export const respond = (
  streamFunction: StreamFunction,
  options: Options,
  request: StreamRequest
): Stream.Stream<StreamEvent, ModelError> =>
  Stream.callback<StreamEvent, ModelError>((queue) =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const last: LastAnswer = { status: undefined, retryAfter: undefined, contentType: undefined }
      const failures = failuresOf(options, request, last)
      if (request.model.id === unknownModel.id) return Queue.fail(queue, failures.noModel())
      const now = (): number => clock.currentTimeMillisUnsafe()
      return Effect.promise((signal) =>
        pump(queue, failures, signal, () =>
          streamFunction(
            asPiModel(request),
            contextOf(request.messages),
            optionsOf(options, request, signal, last, now)
          ))
      )
    })
  )

/**
 * Reads a stream into the queue until it ends or nobody wants it any more. Never rejects. A stream that ignores its signal
 * is left behind at its next event.
 */
const pump = async (
  queue: Queue.Queue<StreamEvent, ModelError | Cause.Done>,
  failures: Failures,
  signal: AbortSignal,
  call: () => PiStream | Promise<PiStream>
): Promise<void> => {
  const translator = new Translator(failures)
  const tell = (read: (out: Array<StreamEvent>) => void): void => {
    const out: Array<StreamEvent> = []
    read(out)
    Queue.offerAllUnsafe(queue, out)
  }
  try {
    const response = await call()
    if (typeof response?.[Symbol.asyncIterator] !== "function") {
      Queue.failCauseUnsafe(queue, Cause.fail(failures.violation("is no stream: the stream function returned none")))
      return
    }
    for await (const event of response) {
      if (signal.aborted) return
      if (!isRecord(event)) throw new Error("an event is no object")
      tell((out) => translator.add(out, event))
      if (translator.ended) break
    }
    if (signal.aborted) return
    const message = translator.ended ? undefined : await settled(response)
    if (message !== undefined) tell((out) => translator.end(out, message))
    if (translator.ended) Queue.endUnsafe(queue)
    else Queue.failCauseUnsafe(queue, Cause.fail(failures.incomplete()))
  } catch (error) {
    Queue.failCauseUnsafe(queue, Cause.fail(failures.thrown(error)))
  }
}

/** The result of a stream that is over, if it has one: without, pi-ai's promise would stay open for ever. */
const settled = (response: PiStream): Promise<AssistantMessage | undefined> =>
  response.result === undefined ? aMoment() : Promise.race([response.result(), aMoment()])

/** Long enough for a promise that is settled already to be heard, behind a few functions that pass it on. */
const aMoment = async (): Promise<undefined> => {
  for (let turns = 0; turns < 8; turns++) await Promise.resolve()
}

/**
 * The model as it was given. What is no model of pi-ai lacks fields that its providers read: they get what says nothing.
 */
const asPiModel = ({ model }: StreamRequest): PiModel<string> => ({
  baseUrl: "",
  reasoning: false,
  contextWindow: 0,
  maxTokens: 0,
  ...model,
  name: model.name ?? model.id,
  api: model.api ?? "unknown",
  provider: model.provider ?? "unknown",
  input: [...model.input ?? ["text"]],
  cost: model.cost ?? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
})

/** Those whose adapters take another `fetch`; the rest refuse it. */
const takeFetch: ReadonlySet<unknown> = new Set([
  "openai-completions",
  "openai-responses",
  "azure-openai-responses",
  "openai-codex-responses",
  "anthropic-messages",
  "mistral-conversations",
  "pi-messages"
])

const optionsOf = (
  options: Options,
  request: StreamRequest,
  signal: AbortSignal,
  last: LastAnswer,
  now: () => number
): SimpleStreamOptions => {
  const { model, sessionId, thinkingBudgets, thinkingLevel, toolChoice } = request
  const { apiKey: layerKey, headers, ...rest } = options
  const key = request.apiKey ?? layerKey
  const merged = { ...headers, ...request.headers }
  const budgets = thinkingBudgets === undefined ? undefined : { ...thinkingBudgets }
  return {
    // Another try is the business of who sees the run: it is told, counted, and waits by Effect's clock.
    maxRetries: 0,
    ...rest,
    ...(takeFetch.has(model.api) && { fetch: watched(options.fetch ?? globalThis.fetch, last, now) }),
    ...(key !== undefined && { apiKey: Redacted.value(key) }),
    ...(Object.keys(merged).length > 0 && { headers: merged }),
    ...(thinkingLevel !== "off" && { reasoning: thinkingLevel }),
    ...(sessionId !== undefined && { sessionId }),
    ...(budgets !== undefined && { thinkingBudgets: budgets }),
    ...(request.metadata !== undefined && { metadata: { ...request.metadata } }),
    ...(toolChoice !== "auto" && { toolChoice }),
    signal
  }
}

/** Remembers status, waiting time and content type of the last answer, which pi-ai's errors leave out. */
const watched =
  (fetch: typeof globalThis.fetch, last: LastAnswer, now: () => number): typeof globalThis.fetch =>
  async (input, init) => {
    last.status = undefined
    last.retryAfter = undefined
    last.contentType = undefined
    const response = await fetch(input, init)
    last.status = response.status
    last.retryAfter = retryAfter(Object.fromEntries(response.headers), now())
    last.contentType = response.headers.get("content-type") ?? undefined
    return response
  }

const failuresOf = (options: Options, request: StreamRequest, last: LastAnswer): Failures => {
  const { id, provider } = request.model
  const keys = [options.apiKey, request.apiKey].flatMap((key) => key === undefined ? [] : [Redacted.value(key)])
  const secrets = secretsIn(keys, options.headers, request.headers, options.env)
  const subject = provider === undefined ? `the model "${id}"` : `the model "${id}" of ${provider}`
  return new Failures(subject, secrets, last)
}
