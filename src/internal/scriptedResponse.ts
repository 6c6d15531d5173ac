/**
 * The responses of a script and their constructors. Public through `ScriptedModel`.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import { ModelError, type ModelErrorReason } from "../Errors.ts"
import type { JsonObject, StopReason, Usage } from "../Messages.ts"
import type { StreamEvent } from "../StreamFn.ts"
import { excerpt } from "./excerpt.ts"
import * as Script from "./script.ts"

export { InvalidScript } from "./script.ts"

/**
 * Brand of {@link Response}.
 *
 * @category type IDs
 * @since 0.1.0
 */
export const TypeId = "~effect-pi/testing/ScriptedModel/Response"

/**
 * An event of a response and when it is due, in milliseconds after the response began.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScriptedStep {
  readonly at: number
  readonly event: StreamEvent
}

/**
 * A scripted response. It is data and can be used any number of times. Made by {@link text}, {@link calls},
 * {@link error}, {@link hang} and {@link events}.
 *
 * @category models
 * @since 0.1.0
 */
export interface Response {
  readonly [TypeId]: typeof TypeId
  /** One line for error messages, such as `text("fine")`. */
  readonly label: string
  readonly timeline: ReadonlyArray<ScriptedStep>
  readonly end:
    | { readonly _tag: "Ended" }
    | { readonly _tag: "Open" }
    | { readonly _tag: "Failed"; readonly at: number; readonly error: ModelError }
}

/**
 * When the deltas of a response arrive.
 *
 * @category options
 * @since 0.1.0
 */
export interface Timing {
  /** How long the model is silent before the response begins with its first delta. Default: not at all. */
  readonly after?: Duration.Input | undefined
  /** The time between two deltas. Default: 0, all at once. */
  readonly every?: Duration.Input | undefined
  /** In how many deltas the text arrives, or the arguments of each call; at most one a character. Default: 1. */
  readonly chunks?: number | undefined
}

/**
 * The usage of a response. What is left out is 0, a total that is left out is the sum.
 *
 * @category options
 * @since 0.1.0
 */
export interface ScriptedUsage extends Partial<Omit<Usage, "cost">> {
  readonly cost?: Partial<Usage["cost"]>
}

interface Ending {
  /** Reasoning before the rest, in one delta. */
  readonly thinking?: string | undefined
  readonly stopReason?: Exclude<StopReason, "pending"> | undefined
  /** Default: no tokens. */
  readonly usage?: ScriptedUsage | undefined
}

const response = (label: string, timeline: ReadonlyArray<ScriptedStep>, end: Response["end"]): Response => ({
  [TypeId]: TypeId,
  label,
  timeline,
  end
})

const ended: Response["end"] = { _tag: "Ended" }

const open: Response["end"] = { _tag: "Open" }

const complete = (
  name: string,
  label: string,
  blocks: ReadonlyArray<Script.Block>,
  stopReason: Exclude<StopReason, "pending">,
  options: Timing & Ending
): Response => {
  const { last, timeline } = Script.layout(Script.pace(name, options), blocks, true)
  timeline.push({
    at: last,
    event: Script.end(options.stopReason ?? stopReason, Script.usage(name, options.usage))
  })
  return response(label, timeline, ended)
}

/**
 * A text. Its last delta and the end of the response come at the same time.
 *
 * **Example** (Three deltas)
 *
 * ```ts
 * import { ScriptedModel } from "effect-pi/testing"
 *
 * const response = ScriptedModel.text("It works", { after: "1 second", chunks: 2, every: "50 millis" })
 * response.timeline.map(({ at }) => at) // => [1000, 1000, 1000, 1050, 1050, 1050]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (text: string, options: Timing & Ending = {}): Response =>
  complete(
    "text",
    `text(${excerpt(text, 40)})`,
    [
      ...Script.leading("thinking", options.thinking),
      { type: "text", deltas: Script.split(text, options.chunks ?? 1) }
    ],
    "stop",
    options
  )

/**
 * Tool calls, each `[id, name, arguments]`.
 *
 * **Details**
 *
 * The arguments are streamed as JSON text; a string is streamed as it is, so that malformed arguments can be scripted.
 *
 * **Example** (Two calls and a broken one)
 *
 * ```ts
 * import { ScriptedModel } from "effect-pi/testing"
 *
 * ScriptedModel.calls([["a", "read_file", { path: "README.md" }], ["b", "list_files", {}]], { after: "200 millis" })
 * ScriptedModel.calls([["c", "read_file", "{\"path\": \"READ"]], { text: "Let me look.", stopReason: "length" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const calls = (
  calls: ReadonlyArray<readonly [id: string, name: string, args: JsonObject | string]>,
  options: Timing & Ending & {
    /** Text before the calls, in one delta. */
    readonly text?: string | undefined
  } = {}
): Response => {
  if (calls.length === 0) throw Script.invalid("calls", "there are no calls; a response without calls is a `text`")
  const blocks = calls.map(([id, name, args]): Script.Block => ({
    type: "toolcall",
    id,
    name,
    deltas: Script.split(typeof args === "string" ? args : JSON.stringify(args), options.chunks ?? 1)
  }))
  return complete(
    "calls",
    `calls(${calls.map(([id, name]) => `${id}: ${name}`).join(", ")})`,
    [...Script.leading("thinking", options.thinking), ...Script.leading("text", options.text), ...blocks],
    "toolUse",
    options
  )
}

const partial = (name: string, options: Timing & { readonly partial?: string | undefined }) => {
  const pace = Script.pace(name, options)
  return options.partial === undefined
    ? { timeline: [], next: pace.after }
    : Script.layout(pace, [{ type: "text", deltas: Script.split(options.partial, pace.chunks) }], false)
}

/**
 * A response that fails with a `ModelError`.
 *
 * **When to use**
 *
 * For failures of the connection or the provider. A provider that reports the failure inside its stream is scripted with
 * {@link events} and an `error` event.
 *
 * **Details**
 *
 * `partial` is the text that arrives before, as in {@link text}; the failure comes where the next delta would have come.
 *
 * **Example** (A connection that breaks)
 *
 * ```ts
 * import { ScriptedModel } from "effect-pi/testing"
 *
 * ScriptedModel.error("connection reset", { reason: "Network", partial: "The answer is", every: "50 millis" })
 * ScriptedModel.error("slow down", { reason: "RateLimited", retryAfter: "30 seconds" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const error = (
  message: string,
  options: Timing & {
    readonly partial?: string | undefined
    /** Default: `Unknown`. */
    readonly reason?: ModelErrorReason | undefined
    /** What the provider asks to wait. */
    readonly retryAfter?: Duration.Input | undefined
  } = {}
): Response => {
  const { next, timeline } = partial("error", options)
  const { reason = "Unknown", retryAfter } = options
  const wait = retryAfter === undefined ? undefined : Script.millis("error", "retryAfter", retryAfter)
  return response(`error(${excerpt(message, 40)})`, timeline, {
    _tag: "Failed",
    at: next,
    error: new ModelError({ reason, message, retryAfter: wait })
  })
}

/**
 * A response that never ends, for tests of aborts and timeouts.
 *
 * **Example** (Silence after a few words)
 *
 * ```ts
 * import { ScriptedModel } from "effect-pi/testing"
 *
 * ScriptedModel.hang({ partial: "Let me think about", after: "200 millis" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const hang = (options: Timing & { readonly partial?: string | undefined } = {}): Response =>
  response(
    options.partial === undefined ? "hang()" : `hang(${excerpt(options.partial, 40)})`,
    partial("hang", options).timeline,
    open
  )

/**
 * An event and when it is due after the response began; without `at` at the same time as the event before.
 *
 * @category models
 * @since 0.1.0
 */
export type TimedEvent = StreamEvent & { readonly at?: Duration.Input | undefined }

/**
 * Any events at any times, for tests of the protocol. Nothing is added and nothing is checked but that time does not run
 * backwards.
 *
 * **Details**
 *
 * After the last event the stream ends, with or without a terminal event; with `open` it stays open, and with `error` it
 * fails.
 *
 * **Example** (A stream that ends in the middle of a call)
 *
 * ```ts
 * import { ScriptedModel } from "effect-pi/testing"
 *
 * ScriptedModel.events([
 *   { type: "start" },
 *   { at: "10 millis", type: "toolcall_start", contentIndex: 0, id: "a", name: "read_file" },
 *   { at: "20 millis", type: "toolcall_delta", contentIndex: 0, delta: "{\"path\": \"REA" }
 * ])
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const events = (
  events: ReadonlyArray<TimedEvent>,
  options: { readonly open?: boolean | undefined; readonly error?: ModelError | undefined } = {}
): Response => {
  let now = 0
  const timeline = events.map(({ at, ...event }, index): ScriptedStep => {
    const due = at === undefined ? now : Script.millis("events", `events[${index}].at`, at)
    if (due < now) {
      throw Script.invalid(
        "events",
        `event ${index} (${event.type}) is due at ${due} ms, the one before it at ${now} ms`
      )
    }
    now = due
    return { at: due, event }
  })
  if (options.open === true && options.error !== undefined) {
    throw Script.invalid("events", "a stream cannot stay `open` and fail with an `error`")
  }
  return response(
    `events(${events.map(({ type }) => type).join(", ")})`,
    timeline,
    options.error === undefined
      ? options.open === true ? open : ended
      : { _tag: "Failed", at: now, error: options.error }
  )
}
