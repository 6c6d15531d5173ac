/**
 * A model that plays a script: tests of agents without a network, under `TestClock`.
 *
 * A script is a list of responses, one for each request, in order. Every event of a response has an exact time, so that a
 * test can act between two of them: steer while a tool runs, abort in the middle of a text. The model records what it
 * was asked and how each response ended.
 *
 * Nothing goes wrong silently: a request beyond the script fails and is remembered, {@link assertComplete} dies when a
 * response was never asked for, and a script that makes no sense is refused by the constructor it was given to.
 *
 * **Example** (Steering while the model speaks)
 *
 * ```ts
 * import { Effect, Fiber } from "effect"
 * import { TestClock } from "effect/testing"
 * import { Agent } from "effect-pi"
 * import { ScriptedModel, Transcript } from "effect-pi/testing"
 *
 * const test = Effect.gen(function*() {
 *   const agent = yield* Agent.make({})
 *   const run = yield* Effect.forkChild(agent.prompt("Write a poem"))
 *   yield* TestClock.adjust("1 second")
 *   yield* agent.steer("In French")
 *   yield* TestClock.adjust("1 minute")
 *   yield* Fiber.join(run)
 *   Transcript.print(yield* agent.messages) // => "U A U A"
 *   yield* ScriptedModel.assertComplete
 * }).pipe(
 *   Effect.scoped,
 *   Effect.provide(ScriptedModel.layer([
 *     ScriptedModel.text("Roses are red", { chunks: 3, every: "1 second" }),
 *     ScriptedModel.text("Les roses sont rouges", { after: "200 millis" })
 *   ])),
 *   Effect.provide(TestClock.layer())
 * )
 * ```
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { ModelError } from "../Errors.ts"
import { oneLine } from "../internal/excerpt.ts"
import { play } from "../internal/script.ts"
import type { Response } from "../internal/scriptedResponse.ts"
import { type StreamEvent, StreamFn, type StreamRequest } from "../StreamFn.ts"
import * as Transcript from "./Transcript.ts"

export * from "../internal/scriptedResponse.ts"

/**
 * A response that depends on the request. It answers one request, at its place in the script. `index` counts requests
 * from 0.
 *
 * **Details**
 *
 * When it returns an effect, the response begins when the effect ends. A failure of the effect fails the stream; a defect
 * or an exception is a defect of the stream.
 *
 * @category models
 * @since 0.1.0
 */
export type Responder = (request: StreamRequest, index: number) => Response | Effect.Effect<Response, ModelError>

/**
 * A request as it was when it was made, and what became of its response.
 *
 * **Details**
 *
 * - `open`: the response is being played, or nobody reads it
 * - `ended`: its terminal event was handed out, the script had no more, or the reader stopped early
 * - `interrupted`: the reader was interrupted before, as an abort does
 * - `failed`: the stream failed or died
 *
 * @category models
 * @since 0.1.0
 */
export interface RecordedRequest extends StreamRequest {
  /** Counts from 0. */
  readonly index: number
  /** When the request was made, in milliseconds of `Clock`. */
  readonly at: number
  readonly outcome: "open" | "ended" | "interrupted" | "failed"
  /** When the response was over, in milliseconds of `Clock`. */
  readonly endedAt: number | undefined
}

// -----------------------------------------------------------------------------
// Errors
// -----------------------------------------------------------------------------

/**
 * A request for which the script has no response. The agent sees a `ModelError` with this as its cause, and
 * {@link assertComplete} dies with it.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnexpectedRequest extends Data.TaggedError("UnexpectedRequest")<{
  /** Counts from 0. */
  readonly index: number
  /** How many responses the script has. */
  readonly scripted: number
  readonly message: string
}> {}

/**
 * Responses nobody asked for; {@link assertComplete} dies with it.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnusedResponses extends Data.TaggedError("UnusedResponses")<{
  /** The labels of the responses, such as `text("fine")`. */
  readonly unused: ReadonlyArray<string>
  readonly message: string
}> {}

// -----------------------------------------------------------------------------
// Service
// -----------------------------------------------------------------------------

/**
 * The scripted model as a service, provided by {@link layer} beside `StreamFn`.
 *
 * @category services
 * @since 0.1.0
 */
export class ScriptedModel extends Context.Service<ScriptedModel, {
  readonly stream: (request: StreamRequest) => Stream.Stream<StreamEvent, ModelError>
  readonly requests: Effect.Effect<ReadonlyArray<RecordedRequest>>
  readonly assertComplete: Effect.Effect<void>
}>()("effect-pi/testing/ScriptedModel") {}

/**
 * What can be set for a whole script.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** Answers every request beyond the script, so that none is unexpected. */
  readonly otherwise?: Response | Responder | undefined
}

interface Entry {
  readonly request: Omit<RecordedRequest, "outcome" | "endedAt">
  outcome: RecordedRequest["outcome"]
  endedAt: number | undefined
  /** The terminal event was handed out. */
  complete: boolean
}

const beyond = (request: StreamRequest, index: number, scripted: number): UnexpectedRequest => {
  const responses = scripted === 1 ? "1 response was scripted" : `${scripted} responses were scripted`
  const last = request.messages.at(-1)
  const tail = last === undefined ? "it has no messages" : `its last message: ${oneLine(Transcript.show([last]), 200)}`
  const message = `Request ${index + 1} was not expected: ${responses}; ${tail}`
  return new UnexpectedRequest({ index, scripted, message })
}

const labelOf = (step: Response | Responder): string => typeof step === "function" ? "responder" : step.label

const leftOver = (script: ReadonlyArray<Response | Responder>, used: number): UnusedResponses => {
  const unused = script.slice(used).map(labelOf)
  const listed = unused.slice(0, 5).map((label, index) => `${used + index + 1}. ${label}`).join(", ")
  const more = unused.length > 5 ? ` and ${unused.length - 5} more` : ""
  const count = `${unused.length} of ${script.length} scripted responses ${
    unused.length === 1 ? "was" : "were"
  } not asked for`
  return new UnusedResponses({ unused, message: `${count}: ${listed}${more}` })
}

/**
 * Makes a scripted model without a layer, for tests of code that takes a `StreamFn` as a value.
 *
 * **Details**
 *
 * A request is made when its stream is run: a stream that is never run takes no response, one that is run twice takes
 * two.
 *
 * **Example** (A model that fails, then answers)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { StreamFn } from "effect-pi"
 * import { ScriptedModel } from "effect-pi/testing"
 *
 * const program = Effect.gen(function*() {
 *   const model = yield* ScriptedModel.make([
 *     ScriptedModel.error("busy", { reason: "Overloaded" }),
 *     ScriptedModel.text("fine")
 *   ])
 *   return StreamFn.layer(model.stream)
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  responses: ReadonlyArray<Response | Responder>,
  options: Options = {}
): Effect.Effect<ScriptedModel["Service"]> =>
  Effect.sync(() => {
    const script = responses.slice()
    const entries: Array<Entry> = []
    let unexpected: UnexpectedRequest | undefined

    const record = (request: StreamRequest, at: number): Entry => {
      const entry: Entry = {
        request: {
          ...request,
          index: entries.length,
          at,
          messages: Object.freeze(request.messages.slice()),
          tools: Object.freeze(request.tools.slice())
        },
        outcome: "open",
        endedAt: undefined,
        complete: false
      }
      entries.push(entry)
      return entry
    }

    const answer = (entry: Entry): Effect.Effect<Response, ModelError> => {
      const { index } = entry.request
      const step = script[index] ?? options.otherwise
      if (step === undefined) {
        const cause = beyond(entry.request, index, script.length)
        unexpected ??= cause
        return Effect.fail(new ModelError({ reason: "InvalidRequest", message: cause.message, cause }))
      }
      const response = typeof step === "function" ? step(entry.request, index) : step
      return Effect.isEffect(response) ? response : Effect.succeed(response)
    }

    const close = (entry: Entry, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        entry.endedAt = now
        entry.outcome = entry.complete || Exit.isSuccess(exit)
          ? "ended"
          : Exit.hasInterrupts(exit)
          ? "interrupted"
          : "failed"
      })

    return {
      stream: (request) =>
        Stream.unwrap(Effect.map(Clock.currentTimeMillis, (now) => {
          const entry = record(request, now)
          const onEnd = () => {
            entry.complete = true
          }
          return Effect.suspend(() => answer(entry)).pipe(
            Effect.map((response) => play(response, onEnd)),
            Stream.unwrap,
            Stream.onExit((exit) => close(entry, exit))
          )
        })),
      requests: Effect.sync(() =>
        entries.map(({ endedAt, outcome, request }) => Object.freeze({ ...request, outcome, endedAt }))
      ),
      assertComplete: Effect.suspend(() =>
        unexpected !== undefined
          ? Effect.die(unexpected)
          : entries.length < script.length
          ? Effect.die(leftOver(script, entries.length))
          : Effect.void
      )
    }
  })

/**
 * Provides a scripted model as the `StreamFn` of an agent and as {@link ScriptedModel}.
 *
 * **Details**
 *
 * The first request gets the first response, and so on, whoever asks. A request beyond the script fails with a
 * `ModelError` (`InvalidRequest`) that shows its last message.
 *
 * **Gotchas**
 *
 * Every build of the layer begins with the first response. A test that shares a layer shares the script.
 *
 * **Example** (A response that depends on the request)
 *
 * ```ts
 * import { Messages } from "effect-pi"
 * import { ScriptedModel } from "effect-pi/testing"
 *
 * const Echo = ScriptedModel.layer([], {
 *   otherwise: ({ messages }) => ScriptedModel.text(messages.map(Messages.text).join(" "))
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  responses: ReadonlyArray<Response | Responder>,
  options?: Options
): Layer.Layer<StreamFn | ScriptedModel> =>
  Layer.effectContext(
    Effect.map(make(responses, options), (model) =>
      Context.make(ScriptedModel, model).pipe(Context.add(StreamFn, { stream: model.stream })))
  )

/**
 * The requests so far, in order, each as it was when it was made.
 *
 * **Example** (What the model was asked)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ScriptedModel, Transcript } from "effect-pi/testing"
 *
 * const asked = Effect.map(
 *   ScriptedModel.requests,
 *   (requests) => requests.map(({ at, messages, outcome }) => [at, Transcript.print(messages), outcome])
 * )
 * ```
 *
 * @category accessors
 * @since 0.1.0
 */
export const requests: Effect.Effect<ReadonlyArray<RecordedRequest>, never, ScriptedModel> = ScriptedModel.use((
  model
) => model.requests)

/**
 * Dies with `UnexpectedRequest` when a request was made for which there was no response, and with `UnusedResponses`
 * when a response was not asked for.
 *
 * **When to use**
 *
 * At the end of a test: without it, a test passes that asked less than its author thought.
 *
 * **Example** (At the end of every test of a layer)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { ScriptedModel } from "effect-pi/testing"
 *
 * const complete = <A, E, R>(test: Effect.Effect<A, E, R>) => Effect.andThen(test, ScriptedModel.assertComplete)
 * ```
 *
 * @category accessors
 * @since 0.1.0
 */
export const assertComplete: Effect.Effect<void, never, ScriptedModel> = ScriptedModel.use((model) =>
  model.assertComplete
)
