/**
 * What makes a model dependable, around any `StreamFn`: another try, another model, a limit on the rate of requests, and
 * recordings to play back.
 *
 * Each is a function from a layer to a layer. They nest: what is written last is outermost.
 *
 * - A response may be lost in the middle, when some of it was shown already. Before a second attempt the response is withdrawn
 *   with the event `retract`: the message is empty again, listeners are told, and nothing is stored twice.
 * - Waiting is Effect's `Clock`, and is interrupted by an abort. What had arrived before stays in the message then.
 *
 * **Example** (Three more tries, then another model)
 *
 * ```ts
 * import { OpenAi } from "effect-pi/openai"
 * import { Resilience } from "effect-pi/resilience"
 *
 * const Model = OpenAi.layerConfig().pipe(
 *   Resilience.retry({ times: 3 }),
 *   Resilience.fallback({
 *     layer: OpenAi.layer({ baseUrl: "http://localhost:11434/v1" }),
 *     model: OpenAi.model("llama3.2", { provider: "ollama" })
 *   })
 * )
 * ```
 *
 * @since 0.1.0
 */
import type * as FileSystem from "effect/FileSystem"
import type * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { AgentConfigError, ModelError } from "../Errors.ts"
import { CassetteError as CassetteProblem, type Redact as Hidden } from "../internal/resilience/cassette.ts"
import { type Alternative as OtherModel, fallback as withFallback } from "../internal/resilience/fallback.ts"
import { rateLimit as withRateLimit, type RateLimitOptions as RateOptions } from "../internal/resilience/rateLimit.ts"
import { record as withRecord, type RecordOptions as RecordingOptions } from "../internal/resilience/record.ts"
import { replay as replayed, type ReplayOptions as PlayOptions } from "../internal/resilience/replay.ts"
import { retry as withRetry, type RetryOptions as RetrySettings } from "../internal/resilience/retry.ts"
import type { StreamFn } from "../StreamFn.ts"

/**
 * What can be set for `retry`.
 *
 * **Details**
 *
 * - `times`: further tries of one response. Default: 3.
 * - `schedule`: how long to wait, and how often to try; it sees the errors. Default: exponential from 500 ms, jittered.
 * - `while`: which errors are worth another try. Default: those whose `isRetryable` says so.
 * - `maxDelay`: no wait is longer. A server that asks for more time than that is not tried again: the error says how long.
 *   Default: 1 minute.
 *
 * @category models
 * @since 0.1.0
 */
export type RetryOptions = RetrySettings

/**
 * Asks the same model again when a response fails, from the beginning.
 *
 * **Details**
 *
 * The wait is that of the schedule, or the server's `Retry-After` where that is longer. Every further attempt takes a turn of
 * the budgets of the run; when none is left, the error stands.
 *
 * **Gotchas**
 *
 * - The agent's `eventTimeout` and `firstEventTimeout` hold for the response with all its attempts and waits.
 * - Do not let a provider's own library try again as well (pi-ai's `maxRetries`): it multiplies, and nobody is told.
 *
 * **Example** (By a schedule)
 *
 * ```ts
 * import { Schedule } from "effect"
 * import { OpenAi } from "effect-pi/openai"
 * import { Resilience } from "effect-pi/resilience"
 *
 * const Model = OpenAi.layerConfig().pipe(Resilience.retry(Schedule.spaced("2 seconds")))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const retry = (
  options: RetryOptions | Schedule.Schedule<unknown, ModelError> = {}
): <E, R>(self: Layer.Layer<StreamFn, E, R>) => Layer.Layer<StreamFn, E | AgentConfigError, R> =>
  withRetry(Schedule.isSchedule(options) ? { schedule: options } : options)

/**
 * Another model for `fallback`.
 *
 * **Details**
 *
 * - `layer`: what answers.
 * - `model`: what is asked for there, and named in the message. Default: the model of the request, on another server.
 * - `when`: for which errors of the one before. Default: for all but `Aborted`.
 *
 * @category models
 * @since 0.1.0
 */
export type Alternative<E = never, R = never> = OtherModel<E, R>

/**
 * Asks other models, in order, when a response fails.
 *
 * **Details**
 *
 * The message names the model that answered, so that its cost is right and later requests know whose reasoning it holds. The
 * next request begins with the first model again. The key and the headers of the request go only to a `model` that names the
 * same provider and `baseUrl`; the layer of any other has to know its own.
 *
 * **Example** (A local model when the provider is down)
 *
 * ```ts
 * import { OpenAi } from "effect-pi/openai"
 * import { Resilience } from "effect-pi/resilience"
 *
 * const Model = OpenAi.layerConfig().pipe(Resilience.fallback({
 *   layer: OpenAi.layer({ baseUrl: "http://localhost:11434/v1" }),
 *   model: OpenAi.model("llama3.2", { provider: "ollama" }),
 *   when: (error) => error.isRetryable || error.reason === "Authentication"
 * }))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const fallback = <E2 = never, R2 = never>(
  ...alternatives: ReadonlyArray<Alternative<E2, R2>>
): <E, R>(self: Layer.Layer<StreamFn, E, R>) => Layer.Layer<StreamFn, E | E2, R | Exclude<R2, Scope.Scope>> =>
  withFallback(alternatives)

/**
 * What can be set for `rateLimit`: so many `requests` in a `window` of time (default: 1 minute), and at most `concurrency`
 * responses at once. What is absent is not limited.
 *
 * @category models
 * @since 0.1.0
 */
export type RateLimitOptions = RateOptions

/**
 * Lets requests wait so that no more are made than a provider allows, by all agents that share the layer.
 *
 * **Details**
 *
 * Requests are let through at once until the window's number is used up, then one by one as the window refills (a token bucket
 * of Effect's `RateLimiter`). Who waits can be aborted. A response holds its place until its stream is closed.
 *
 * **Gotchas**
 *
 * - Put it inside `retry` so that every attempt counts: `pipe(Resilience.rateLimit(…), Resilience.retry())`.
 * - An agent's `firstEventTimeout` includes the time that a request waits here.
 *
 * **Example** (60 a minute, 4 at once)
 *
 * ```ts
 * import { OpenAi } from "effect-pi/openai"
 * import { Resilience } from "effect-pi/resilience"
 *
 * const Model = OpenAi.layerConfig().pipe(Resilience.rateLimit({ requests: 60, concurrency: 4 }))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const rateLimit: (
  options: RateLimitOptions
) => <E, R>(self: Layer.Layer<StreamFn, E, R>) => Layer.Layer<StreamFn, E | AgentConfigError, R> = withRateLimit

/**
 * What must not be written down: the values of fields by their names, and what patterns find in texts.
 *
 * @category models
 * @since 0.1.0
 */
export type Redact = Hidden

/**
 * A cassette that is not there (`NotFound`), cannot be written or read, holds no recording (`Invalid`), or has no response
 * for a request (`NoMatch`: the `cause` of the `ModelError` that ends the response).
 *
 * @category errors
 * @since 0.1.0
 */
export const CassetteError = CassetteProblem

/**
 * A cassette that cannot be used.
 *
 * @category errors
 * @since 0.1.0
 */
export type CassetteError = CassetteProblem

/**
 * What can be set for `record`.
 *
 * @category models
 * @since 0.1.0
 */
export type RecordOptions = RecordingOptions

/**
 * Writes every request and its response to a file, with the time of each part: a cassette for `replay`.
 *
 * **Details**
 *
 * The file has a line of JSON for each request, each part of a response and each end that is no event. The key of a request
 * is never written, of headers only the names, and where the provider repeats the key, `<redacted>` stands in its place.
 * `redact` names what else must not be there.
 *
 * **Gotchas**
 *
 * - The file begins anew whenever the layer is built.
 * - What is redacted in a response is redacted in what the replay answers.
 *
 * **Example** (A cassette without addresses)
 *
 * ```ts
 * import { OpenAi } from "effect-pi/openai"
 * import { Resilience } from "effect-pi/resilience"
 *
 * const Model = OpenAi.layerConfig().pipe(
 *   Resilience.record("weather.cassette.jsonl", { redact: ["user_id", /[\w.]+@[\w.]+/] })
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const record = (
  file: string,
  options: RecordOptions = {}
): <E, R>(
  self: Layer.Layer<StreamFn, E, R>
) => Layer.Layer<StreamFn, E | CassetteError, R | FileSystem.FileSystem> => withRecord(file, options)

/**
 * What can be set for `replay`.
 *
 * **Details**
 *
 * - `timing: false`: everything comes at once. Default: at the times of the recording, by `Clock`.
 * - `redact`: as in the recording; what is redacted is equal.
 *
 * @category models
 * @since 0.1.0
 */
export type ReplayOptions = PlayOptions

/**
 * Answers requests with the responses of a cassette.
 *
 * **Details**
 *
 * A request gets the first response that is left and was an answer to the same request; times, session, key and the values of
 * headers do not count. When there is none, the `ModelError` says where the next one differs. Under `TestClock` the parts come
 * when the clock gets there.
 *
 * **Gotchas**
 *
 * A response that was interrupted while it was recorded plays until there, and fails as `IncompleteStream` at that time unless
 * it is interrupted again.
 *
 * **Example** (In a test)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Layer } from "effect"
 * import { Resilience } from "effect-pi/resilience"
 *
 * const Model = Resilience.replay("weather.cassette.jsonl").pipe(Layer.provide(NodeServices.layer))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const replay = (
  file: string,
  options: ReplayOptions = {}
): Layer.Layer<StreamFn, CassetteError, FileSystem.FileSystem> => replayed(file, options)
