/**
 * I4: every message that was accepted is in the transcript or still queued, never both, never neither, and receipts agree;
 * and the transcript is what was there before, what the events told, and what the host added itself.
 */
import { isDeepStrictEqual } from "node:util"
import type { AgentMessage } from "../../src/Messages.ts"
import { Transcript } from "../../src/testing/index.ts"
import { unanswered, violations } from "../utils/invariants.ts"
import { holds } from "./actions.ts"
import type { Played } from "./play.ts"
import { entriesOf, type EntryOf, eventsOf, runsOf, type RunView } from "./runs.ts"
import type { Given } from "./world.ts"

const places = (given: Given, messages: ReadonlyArray<AgentMessage>): number =>
  messages.filter((message) => holds(message, given)).length

/** How often an input must be there at a moment, at least and at most. */
const expected = (given: Given, runs: ReadonlyArray<RunView>, at: number): readonly [least: number, most: number] => {
  if (given.accepted === "no" || given.at > at || (given.removed !== undefined && given.removed < at)) return [0, 0]
  if (given.accepted === "yes") return [1, 1]
  // A prompt that was cut short was accepted if its run began.
  const began = runs.some(({ activity, start }) => activity === given.activity && start.index < at)
  return [began && given.way === "prompt" && !given.queued ? 1 : 0, 1]
}

const misplaced = (played: Played, runs: ReadonlyArray<RunView>, snapshot: EntryOf<"snapshot">): ReadonlyArray<string> => {
  const { followUps, index, messages, steering } = snapshot
  return played.world.given.flatMap((given) => {
    const [least, most] = expected(given, runs, index)
    const inTranscript = places(given, messages)
    const queued = places(given, steering) + places(given, followUps)
    const count = inTranscript + queued
    return count >= least && count <= most
      ? []
      : [
        `I4: ${given.token} is ${inTranscript} times in the transcript and ${queued} times queued at ${index}, expected ${least} to ${most}`
      ]
  })
}

/** I4 whenever the agent is idle. */
export const everyInputOnce = (played: Played, runs: ReadonlyArray<RunView>): ReadonlyArray<string> =>
  entriesOf(played.world.entries, "snapshot").filter(({ busy }) => !busy).flatMap((snapshot) =>
    misplaced(played, runs, snapshot)
  )

// -----------------------------------------------------------------------------
// The transcript
// -----------------------------------------------------------------------------

/** Between two idle moments: what was there, what was told, what is there. */
const epochs = (played: Played) => {
  const { entries } = played.world
  const idle = entriesOf(entries, "snapshot").filter(({ busy }) => !busy)
  return idle.slice(1).map((after, index) => {
    const before = idle[index]!
    return { before, after, between: entries.slice(before.index, after.index) }
  })
}

/** I1, I3, I6 and M1 of everything between two idle moments, and that the transcript is what was told (H3). */
export const transcripts = (played: Played): ReadonlyArray<string> => {
  const silent = played.world.given.filter(({ way }) => way === "note" || way === "append" || way === "set")
  const isSilent = (message: AgentMessage) => silent.some((given) => holds(message, given))
  return epochs(played).flatMap(({ after, before, between }) => {
    const events = between.flatMap((entry) => entry.kind === "event" ? [entry.event] : [])
    const requests = entriesOf(between, "request")
    const told = eventsOf(between, "message_end").map(({ event }) => event.message)
    const wiped = entriesOf(between, "acted").some(({ action, result }) =>
      (action.do === "reset" || action.do === "setMessages") && result === "ok"
    )
    const was = before.messages.filter((message) => !isSilent(message))
    const is = after.messages.filter((message) => !isSilent(message))
    const problems = events.length === 0 ? [] : violations({ before: before.messages, events, requests })
    if (!wiped && !isDeepStrictEqual([...was, ...told.filter((message) => !isSilent(message))], is)) {
      problems.push(
        `H3: the transcript was "${Transcript.print(was)}", the events told "${Transcript.print(told)}", it is "${
          Transcript.print(is)
        }"`
      )
    }
    return problems.map((problem) => `${problem} (before ${after.index})`)
  })
}
