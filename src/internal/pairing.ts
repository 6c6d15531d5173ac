/**
 * Calls and results that come from outside go together in a transcript (I1), at a cost in proportion to what comes.
 */
import * as Effect from "effect/Effect"
import { type AgentMessage, assistant } from "../Messages.ts"
import { excerpt } from "./json.ts"
import * as Log from "./log.ts"
import { answersTo, answersToOpenCalls, openCalls } from "./openCalls.ts"
import { repairBehind } from "./repair.ts"

/** Messages whose calls and results go together. */
export interface Paired {
  /** Results for calls that were open before, in call order. */
  readonly results: ReadonlyArray<AgentMessage>
  readonly messages: ReadonlyArray<AgentMessage>
  /** What was wrong with what was given. */
  readonly mended: string | undefined
}

/**
 * Pairs messages that follow a conversation. They may bring results for calls that are open at its end; those without one
 * get an error result, as they do when anything else follows, and that is no defect. Neither are open calls at the end of
 * what is given, unless it has to be complete because a request follows.
 */
export const pairUp = (
  before: ReadonlyArray<AgentMessage>,
  given: ReadonlyArray<AgentMessage>,
  complete: boolean
): Paired => {
  const open = openCalls(before)
  if (!given.some(({ role }) => role === "assistant" || role === "toolResult")) {
    return { results: complete || given.length > 0 ? answersTo(open) : [], messages: given, mended: undefined }
  }
  const caller = open.length === 0 ? undefined : assistant(open)
  const answers = complete ? [] : answersToOpenCalls(caller === undefined ? given : [caller, ...given])
  const { messages: paired, repairs } = repairBehind(before, caller, [...given, ...answers])
  if (repairs.length === 0) return split(given, undefined)
  const defects = repairs.filter(({ defect }) => defect._tag !== "OpenCall" || defect.index >= 0)
  // An answer whose call was renamed is another one now; then all of them stay, so that they stand in call order.
  const added = new Set<AgentMessage>(
    paired.slice(-answers.length).every((one, n) => one === answers[n]) ? answers : []
  )
  return split(
    paired.filter((message) => !added.has(message)),
    defects.length === 0 ? undefined : excerpt(defects.map(({ message }) => message).join("; "), 1500)
  )
}

const split = (messages: ReadonlyArray<AgentMessage>, mended: string | undefined): Paired => {
  const first = messages.findIndex(({ role }) => role !== "toolResult")
  const count = first < 0 ? messages.length : first
  return { results: messages.slice(0, count), messages: messages.slice(count), mended }
}

export const logMended = (what: string, { mended }: Paired): Effect.Effect<void> =>
  mended === undefined ? Effect.void : Log.warn(`The ${what} was mended: ${mended}`)
