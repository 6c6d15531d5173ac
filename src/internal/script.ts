/**
 * How a scripted response becomes timed events: checking the options, cutting texts into deltas, laying blocks out in
 * time, and playing the result. Everything but the last is a plain function.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { format } from "effect/Formatter"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { ModelError } from "../Errors.ts"
import { type AssistantMessage, emptyUsage, type Usage } from "../Messages.ts"
import type { StreamEnd, StreamEvent } from "../StreamFn.ts"
import type { Response, ScriptedStep, ScriptedUsage, Timing } from "./scriptedResponse.ts"

/**
 * A script that cannot be played; thrown by the constructor that was given it, so that the stack names the line.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidScript extends Data.TaggedError("InvalidScript")<{
  /** The constructor, such as `text`. */
  readonly constructorName: string
  readonly message: string
}> {}

export const invalid = (name: string, what: string): InvalidScript =>
  new InvalidScript({ constructorName: name, message: `ScriptedModel.${name}: ${what}` })

/** Milliseconds of a duration that may be given. */
export const millis = (name: string, option: string, input: Duration.Input | undefined): number => {
  if (input === undefined) return 0
  const value = Number.isNaN(input) ? Option.none() : Duration.fromInput(input)
  const ms = Option.isSome(value) ? Duration.toMillis(value.value) : NaN
  if (ms >= 0 && ms < Infinity) return ms
  throw invalid(name, `\`${option}\` is ${format(input)}; it must be a finite duration of at least 0`)
}

export interface Pace {
  readonly after: number
  readonly every: number
  readonly chunks: number
}

export const pace = (name: string, { after, chunks = 1, every }: Timing): Pace => {
  if (!Number.isInteger(chunks) || chunks < 1) {
    throw invalid(name, `\`chunks\` is ${chunks}; it must be a whole number of at least 1`)
  }
  return { after: millis(name, "after", after), every: millis(name, "every", every), chunks }
}

const amount = (name: string, option: string, value: number | undefined): number => {
  if (value === undefined) return 0
  if (value >= 0 && value < Infinity) return value
  throw invalid(name, `\`${option}\` is ${value}; it must be a finite number of at least 0`)
}

/** Adds up what was given; a total that was given counts. */
export const usage = (name: string, given: ScriptedUsage | undefined): Usage | undefined => {
  if (given === undefined) return undefined
  const sums = (path: string, part: Partial<Omit<Usage["cost"], "total">>) => {
    const sum = {
      input: amount(name, `${path}.input`, part.input),
      output: amount(name, `${path}.output`, part.output),
      cacheRead: amount(name, `${path}.cacheRead`, part.cacheRead),
      cacheWrite: amount(name, `${path}.cacheWrite`, part.cacheWrite)
    }
    return { sum, total: sum.input + sum.output + sum.cacheRead + sum.cacheWrite }
  }
  const { cacheWrite1h, cost = {}, reasoning, totalTokens } = given
  const tokens = sums("usage", given)
  const dollars = sums("usage.cost", cost)
  return {
    ...emptyUsage,
    ...tokens.sum,
    ...(cacheWrite1h !== undefined && { cacheWrite1h: amount(name, "usage.cacheWrite1h", cacheWrite1h) }),
    ...(reasoning !== undefined && { reasoning: amount(name, "usage.reasoning", reasoning) }),
    totalTokens: totalTokens === undefined ? tokens.total : amount(name, "usage.totalTokens", totalTokens),
    cost: {
      ...dollars.sum,
      total: cost.total === undefined ? dollars.total : amount(name, "usage.cost.total", cost.total)
    }
  }
}

/** Cuts a text into pieces of about the same length, at most one a character, never inside one. */
export const split = (text: string, chunks: number): ReadonlyArray<string> => {
  if (text === "") return []
  if (chunks === 1) return [text]
  const characters = Array.from(text)
  const pieces = Math.min(chunks, characters.length)
  const cut = (piece: number) => Math.floor((piece * characters.length) / pieces)
  return Array.from({ length: pieces }, (_, piece) => characters.slice(cut(piece), cut(piece + 1)).join(""))
}

/** A block of a response and the deltas it arrives in. */
export type Block =
  | { readonly type: "text" | "thinking"; readonly deltas: ReadonlyArray<string> }
  | { readonly type: "toolcall"; readonly id: string; readonly name: string; readonly deltas: ReadonlyArray<string> }

/** The block before a text or a call, when there is one. */
export const leading = (type: "text" | "thinking", text: string | undefined): ReadonlyArray<Block> =>
  text === undefined ? [] : [{ type, deltas: split(text, 1) }]

/**
 * Lays blocks out in time: every delta takes one step of `every`, and so does a block without deltas. `endOfLast` tells
 * whether the last block is closed; `next` is when a further delta would come.
 */
export const layout = (
  { after, every }: Pace,
  blocks: ReadonlyArray<Block>,
  endOfLast: boolean
): { readonly timeline: Array<ScriptedStep>; readonly last: number; readonly next: number } => {
  let last = after
  let next = after
  let step = 0
  const timeline: Array<ScriptedStep> = [{ at: after, event: { type: "start" } }]
  const push = (event: StreamEvent) => timeline.push({ at: last, event })
  const advance = () => {
    last = next
    next = after + every * ++step
  }
  blocks.forEach((block, contentIndex) => {
    advance()
    if (block.type === "toolcall") push({ type: "toolcall_start", contentIndex, id: block.id, name: block.name })
    else push({ type: `${block.type}_start`, contentIndex })
    block.deltas.forEach((delta, index) => {
      if (index > 0) advance()
      push({ type: `${block.type}_delta`, contentIndex, delta })
    })
    if (endOfLast || contentIndex < blocks.length - 1) push({ type: `${block.type}_end`, contentIndex })
  })
  return { timeline, last, next }
}

/** The last event of a response: `error` for a stop reason a provider reports with one. */
export const end = (
  stopReason: Exclude<AssistantMessage["stopReason"], "pending">,
  usage: Usage | undefined
): StreamEnd => ({
  type: stopReason === "error" || stopReason === "aborted" ? "error" : "done",
  stopReason,
  ...(usage !== undefined && { usage })
})

/** Whether reading stops at this event. */
const isEnd = (event: StreamEvent): boolean => event.type === "done" || event.type === "error"

/**
 * Plays a response from the moment it is pulled for the first time. What is due is handed out as one array; nothing
 * waits for a slow reader. `onEnd` is called when the terminal event is handed out.
 */
export const play = (response: Response, onEnd: () => void): Stream.Stream<StreamEvent, ModelError> =>
  Stream.fromPull(Effect.map(Clock.currentTimeMillis, (start) => {
    const { end, timeline } = response
    let next = 0
    const take = (first: ScriptedStep, until: number): NonEmptyReadonlyArray<StreamEvent> => {
      const due: [StreamEvent, ...Array<StreamEvent>] = [first.event]
      for (let step = timeline[++next]; step !== undefined && step.at <= until; step = timeline[++next]) {
        due.push(step.event)
      }
      if (due.some(isEnd)) onEnd()
      return due
    }
    return Effect.flatMap(
      Clock.currentTimeMillis,
      (now): Pull.Pull<NonEmptyReadonlyArray<StreamEvent>, ModelError> => {
        const elapsed = now - start
        const first = timeline[next]
        if (first !== undefined) {
          return first.at <= elapsed
            ? Effect.sync(() => take(first, elapsed))
            : Effect.map(Effect.sleep(first.at - elapsed), () => take(first, first.at))
        }
        if (end._tag !== "Failed") return end._tag === "Open" ? Effect.never : Cause.done()
        return Effect.andThen(Effect.sleep(Math.max(0, end.at - elapsed)), Effect.fail(end.error))
      }
    )
  }))
