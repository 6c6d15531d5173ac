/**
 * A request, and what came of it: the events, the message that the loop makes of them, and the error.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ModelError } from "../../Errors.ts"
import {
  type AssistantMessage,
  declaredTools,
  type Message,
  system,
  type ToolDeclaration,
  user
} from "../../Messages.ts"
import { type Model, type StreamEvent, StreamFn, type StreamRequest } from "../../StreamFn.ts"
import { Accumulator } from "../accumulator.ts"
import { oneLine } from "../excerpt.ts"
import { show } from "../json.ts"
import { isRecord } from "../record.ts"
import { brokenRule } from "./grammar.ts"
import { beside, type Mismatch, mismatch, within } from "./mismatch.ts"
import type { Answering } from "./types.ts"

export type Streaming = StreamFn["Service"]

const contractModel: Model = {
  id: "contract-model",
  name: "contract-model",
  api: "contract",
  provider: "contract",
  reasoning: true,
  input: ["text", "image"],
  cost: { input: 1, output: 4, cacheRead: 0.25, cacheWrite: 2 },
  contextWindow: 100_000,
  maxTokens: 1000
}

/** The model of a wire. */
export const modelAt = (url: string): Model => ({ ...contractModel, api: "openai-completions", baseUrl: url })

const readFile: ToolDeclaration = {
  name: "read_file",
  description: "Reads a file.",
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] }
}

/** What every conversation of the contract begins with. */
export const instructions = system("Be brief.", { toolsAdded: [readFile] })

/** A copy in which every list and every plain object is another; a model may hold what else it likes. */
export const copyOf = <A>(value: A): A => {
  const copy: unknown = Array.isArray(value)
    ? value.map(copyOf)
    : isPlain(value)
    ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, copyOf(each)]))
    : value
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a copy of the same fields
  return copy as A
}

/** An object that is no instance of a class. */
export const isPlain = (value: unknown): value is object =>
  isRecord(value) && Object.getPrototypeOf(value) === Object.prototype

export const requestOf = (model: Model | undefined, fields: Partial<StreamRequest> = {}): StreamRequest => {
  // Whoever changes its request must not change that of the next case.
  const messages: ReadonlyArray<Message> = copyOf(fields.messages ?? [instructions, user("hi")])
  return {
    model: copyOf(model ?? contractModel),
    tools: declaredTools(messages),
    thinkingLevel: "off",
    toolChoice: "auto",
    apiKey: undefined,
    sessionId: undefined,
    headers: undefined,
    thinkingBudgets: undefined,
    metadata: undefined,
    ...fields,
    messages
  }
}

/** The service of a layer, built for the case. */
export const build = (
  { layer }: Pick<Answering, "layer">
): Effect.Effect<Streaming, Mismatch, Scope.Scope> =>
  Layer.build(layer).pipe(
    Effect.map((context) => Context.get(context, StreamFn)),
    Effect.catch((error) => mismatch("a layer that can be built", `it failed with ${show(error)}`))
  )

/** What a response was. */
export interface Given {
  readonly events: ReadonlyArray<StreamEvent>
  readonly message: AssistantMessage
  /** Why it failed, however the stream said so. */
  readonly error: ModelError | undefined
}

const isEnd = ({ type }: StreamEvent): boolean => type === "done" || type === "error"

/** How long a stream may stay open behind its final event: nobody reads it then. */
const moment = "300 millis"

/** Reads a response to its end, behind the final event too. */
export const ask = Effect.fnUntraced(function*(streaming: Streaming, request: StreamRequest) {
  const events: Array<StreamEvent> = []
  const complete = yield* Deferred.make<void>()
  const stream = yield* streamOf(streaming, request)
  const reading = yield* beside(
    Stream.runForEachArray(stream, (list) =>
      Effect.suspend(() => {
        events.push(...list)
        return events.some(isEnd) ? Deferred.succeed(complete, undefined) : Effect.void
      }))
  )
  const readOn = Deferred.await(complete).pipe(Effect.andThen(Effect.sleep(moment)), Effect.as(undefined))
  const exit = yield* within(
    Effect.raceFirst(Fiber.await(reading), readOn),
    "a response that ends",
    `it did not, after ${eventsIn(events)}`
  )
  return yield* read(request, events, exit)
})

/** Making a stream must not throw. */
export const streamOf = (streaming: Streaming, request: StreamRequest): Effect.Effect<StreamOf, Mismatch> =>
  Effect.catchDefect(
    Effect.sync(() => streaming.stream(request)),
    (defect) => mismatch("a stream that fails with a `ModelError`", `\`stream\` threw ${show(defect)}`)
  )

type StreamOf = Stream.Stream<StreamEvent, ModelError>

const eventsIn = (events: ReadonlyArray<StreamEvent>): string =>
  events.length === 0 ? "no event" : `the events ${events.map(({ type }) => type).join(", ")}`

const read = Effect.fnUntraced(function*(
  request: StreamRequest,
  events: ReadonlyArray<StreamEvent>,
  exit: Exit.Exit<void, ModelError> | undefined
) {
  const failure = exit !== undefined && Exit.isFailure(exit) ? yield* failureOf(exit.cause) : undefined
  const wrong = brokenRule(events)
  if (wrong !== undefined) return yield* mismatch("events in order", `there is ${wrong}`)
  const end = events.find(isEnd)
  if (failure !== undefined && end !== undefined) {
    return yield* mismatch("one end", `the stream failed after its final event \`${end.type}\`: ${failure.message}`)
  }
  const message = accumulate(request, events, failure)
  const error = failure ?? errorOf(message, end)
  const given: Given = { events, message, error }
  return given
})

/** As the loop does. */
const accumulate = (
  request: StreamRequest,
  events: ReadonlyArray<StreamEvent>,
  failure: ModelError | undefined
): AssistantMessage => {
  const accumulator = new Accumulator(request.model, 0)
  for (const event of events) accumulator.add(event)
  if (!accumulator.complete && accumulator.error === undefined) {
    accumulator.fail(failure ?? brokenOff())
  }
  return accumulator.message(request.thinkingLevel)
}

const brokenOff = (): ModelError =>
  new ModelError({ reason: "IncompleteStream", message: "The stream ended without a final event" })

/** A message that ended in an error has one, if only its text. */
const errorOf = (message: AssistantMessage, end: StreamEvent | undefined): ModelError | undefined => {
  if (message.stopReason !== "error" && message.stopReason !== "aborted") return undefined
  if (end === undefined) return brokenOff()
  if (end.type === "error" && end.error !== undefined) return end.error
  return new ModelError({ reason: "Reported", message: message.errorMessage ?? "no text" })
}

/** What a stream failed with: a `ModelError`, whichever copy of the library made it. */
const failureOf = (cause: Cause.Cause<ModelError>): Effect.Effect<ModelError, Mismatch> => {
  const failed = cause.reasons.find(Cause.isFailReason)
  if (failed === undefined) {
    const what = Cause.hasInterrupts(cause) ? "was interrupted by itself" : `died: ${oneLine(Cause.pretty(cause), 300)}`
    return mismatch("a failure with a `ModelError`", `the stream ${what}`)
  }
  const error: unknown = failed.error
  return isRecord(error) && error["_tag"] === "ModelError" && typeof error["reason"] === "string" &&
      typeof error["message"] === "string"
    ? Effect.succeed(failed.error)
    : mismatch("a failure with a `ModelError`", `the stream failed with ${show(error)}`)
}
