/**
 * I4: every message that was accepted is in the transcript or still queued, never both, never neither, and receipts agree;
 * and the transcript is what was there before, what the events told, and what the host added itself.
 */
import { isDeepStrictEqual } from "node:util"
import type { AgentMessage } from "../../src/Messages.ts"
import type { Delivery } from "../../src/Queues.ts"
import { Transcript } from "../../src/testing/index.ts"
import { unanswered, violations } from "../utils/invariants.ts"
import { holds } from "./actions.ts"
import type { Played } from "./play.ts"
import { entriesOf, type EntryOf, eventsOf, isExact, runsOf, type RunView } from "./runs.ts"
import type { Entry, Given } from "./world.ts"

// -----------------------------------------------------------------------------
// I4
// -----------------------------------------------------------------------------

const places = (given: Given, messages: ReadonlyArray<AgentMessage>): number =>
  messages.filter((message) => holds(message, given)).length

/** How often an input must be there at a moment, at least and at most. */
const expected = (given: Given, runs: ReadonlyArray<RunView>, at: number): readonly [least: number, most: number] => {
  if (given.accepted === "unknown") return [0, 1]
  if (given.accepted === "no" || given.at > at || (given.removed !== undefined && given.removed < at)) return [0, 0]
  if (given.accepted === "yes") return [1, 1]
  // A prompt that was cut short was accepted if its run began.
  const began = !given.busy && runs.some(({ activity, start }) => activity === given.activity && start.index < at)
  return [began ? 1 : 0, 1]
}

/** I4 at one moment. */
const misplaced = (
  played: Played,
  runs: ReadonlyArray<RunView>,
  snapshot: EntryOf<"snapshot">
): ReadonlyArray<string> => {
  const { followUps, index, messages, steering } = snapshot
  return played.world.given.flatMap((given) => {
    const [least, most] = expected(given, runs, index)
    const inTranscript = places(given, messages)
    const queued = places(given, steering) + places(given, followUps)
    const count = inTranscript + queued
    return count >= least && count <= most ? [] : [
      `I4: at ${index} ${given.token} is ${inTranscript} times in the transcript and ${queued} times queued, not ${least} to ${most}`
    ]
  })
}

/** I4 whenever the agent is idle. */
const everyInputOnce = (played: Played, runs: ReadonlyArray<RunView>): ReadonlyArray<string> =>
  entriesOf(played.world.entries, "snapshot").filter(({ busy }) => !busy).flatMap((snapshot) =>
    misplaced(played, runs, snapshot)
  )

// -----------------------------------------------------------------------------
// Receipts
// -----------------------------------------------------------------------------

const outcomeTags = {
  aborted: "Aborted",
  limited: "Limited",
  failed: "Failed",
  ended: "Completed",
  disposed: ""
} as const

type DeliveryOf<Tag extends Delivery["_tag"]> = Extract<Delivery, { readonly _tag: Tag }>

const wrongReturn = (
  { world }: Played,
  given: Given,
  { because }: DeliveryOf<"Returned">,
  at: number
): ReadonlyArray<string> => {
  const { token } = given
  if (eventsOf(world.entries.slice(0, at), "message_end").some(({ event }) => holds(event.message, given))) {
    return [`Q3: ${token} was delivered and its receipt says Returned(${because})`]
  }
  if (because === "disposed") return world.closed ? [] : [`Q3: ${token} was returned by an agent that is not closed`]
  const ended = eventsOf(world.entries.slice(0, at), "agent_end").at(-1)
  // What is queued at the end of a run that stopped by itself begins another one, unless an abort or a limit prevents it.
  const lastTurn = eventsOf(world.entries.slice(0, ended?.index), "turn_end").at(-1)?.index ?? -1
  const tooLate = ended !== undefined && ended.event.outcome._tag === "Completed" && given.at > lastTurn &&
    (because === "aborted" || because === "limited")
  return tooLate || ended?.event.outcome._tag === outcomeTags[because]
    ? []
    : [`Q3: ${token} was returned because of "${because}", the last run ended as ${ended?.event.outcome._tag}`]
}

const wrongTurn = (
  runs: ReadonlyArray<RunView>,
  given: Given,
  { turn }: DeliveryOf<"Delivered">
): ReadonlyArray<string> => {
  for (const { entries } of runs) {
    const told = eventsOf(entries, "message_end").find(({ event }) => holds(event.message, given))
    if (told === undefined) continue
    const turns = eventsOf(entries, "turn_start").filter(({ index }) => index < told.index).length
    return turns === turn ? [] : [`Q3: ${given.token} was delivered in turn ${turns}, its receipt says ${turn}`]
  }
  return [`Q3: the receipt of ${given.token} says that it was delivered, no event tells of it`]
}

const wrongReceipt = (played: Played, runs: ReadonlyArray<RunView>, given: Given): ReadonlyArray<string> => {
  const { delivery, receipt, token } = given
  if (receipt === undefined) return []
  const problems = isExact(played) && receipt.whileIdle === given.busy
    ? [`Q3: the receipt of ${token} says ${receipt.whileIdle ? "idle" : "busy"}`]
    : []
  if (delivery === undefined) {
    // Where fibers are switched between any two steps, a message may be queued while the agent is closed.
    const closed = entriesOf(played.world.entries, isExact(played) ? "acted" : "act").find(({ action }) =>
      action.do === "close"
    )
    const isLate = closed !== undefined && given.at > closed.index
    return isLate ? problems : [...problems, `Q3: the receipt of ${token} never tells what became of it`]
  }
  const what = delivery.delivery
  switch (what._tag) {
    case "Delivered":
      return [...problems, ...wrongTurn(runs, given, what)]
    case "Withdrawn":
      return given.removed === undefined && given.accepted !== "unknown"
        ? [...problems, `Q3: ${token} was withdrawn by nobody`]
        : problems
    case "Returned":
      return [...problems, ...wrongReturn(played, given, what, delivery.at)]
  }
}

// -----------------------------------------------------------------------------
// The transcript
// -----------------------------------------------------------------------------

/** Between two idle moments: what was there, what happened, what is there. */
const epochs = ({ world: { entries } }: Played) => {
  const idle = entriesOf(entries, "snapshot").filter(({ busy }) => !busy)
  return idle.slice(1).map((after, index) => {
    const before = idle[index]!
    return { before, after, between: entries.slice(before.index, after.index) }
  })
}

/** Calls of a stored transcript that were left open are answered without being executed (Q4). */
const isAnswerToStored = (message: AgentMessage): boolean =>
  message.role === "toolResult" && message.toolCallId.startsWith("old")

/** Problems that are none; `illFormed` looks for surrogates. */
const isExcepted = (
  problem: string,
  told: ReadonlyArray<AgentMessage>,
  between: ReadonlyArray<Entry>,
  isBudgeted: boolean
): boolean =>
  /lone surrogate/.test(problem) ||
  (/has not ended|does not carry the results/.test(problem) && told.some(isAnswerToStored)) ||
  // Calls of a stored transcript may be answered without an event; the whole transcript is looked at in the end.
  /I1: old(er)? is not answered/.test(problem) ||
  // A run whose limits are reached before it begins only records what it was given.
  (/message_start [USC].*: outside of a turn/.test(problem) &&
    (isBudgeted || eventsOf(between, "agent_end").some(({ event }) => event.outcome._tag === "Limited")))

/** I1, I3, I6 and M1 of everything between two idle moments, and that the transcript is what was told (H3). */
const transcripts = (played: Played): ReadonlyArray<string> => {
  const silent = played.world.given.filter(({ way }) => way === "note" || way === "append" || way === "set")
  const loud = (messages: ReadonlyArray<AgentMessage>) =>
    messages.filter((message) => !isAnswerToStored(message) && !silent.some((given) => holds(message, given)))
  const isBudgeted = played.world.scenario.budget !== undefined
  return epochs(played).flatMap(({ after, before, between }) => {
    const events = between.flatMap((entry) => entry.kind === "event" ? [entry.event] : [])
    const told = eventsOf(between, "message_end").map(({ event }) => event.message)
    const wiped = entriesOf(between, "acted").some(({ action, result }) =>
      (action.do === "reset" || action.do === "setMessages") && result === "ok"
    )
    const problems = events.length === 0 ? [] : violations({
      before: wiped ? [] : before.messages,
      events,
      requests: entriesOf(between, "request")
    }).filter((problem) => !isExcepted(problem, told, between, isBudgeted))
    const should = loud([...before.messages, ...told])
    if (!wiped && !isDeepStrictEqual(should, loud(after.messages))) {
      const [expected, got] = [should, loud(after.messages)].map((list) => Transcript.print(list, { system: true }))
      problems.push(`H3: by what was there and was told the transcript is "${expected}", it is "${got}"`)
    }
    return problems.map((problem) => `${problem} (up to ${after.index})`)
  })
}

/** Texts that are not well-formed Unicode. */
const illFormed = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return value.isWellFormed() ? [] : [`I6: not well formed: ${JSON.stringify(value)}`]
  return typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, item]) => illFormed(key).concat(illFormed(item)))
    : []
}

/** I6: nothing of what was stored or given is lost. */
const losses = ({ world }: Played): ReadonlyArray<string> => {
  const told = eventsOf(world.entries, "message_end").map(({ event }) => event.message)
  return world.given.filter(({ message }) => "origin" in message || "extra" in message).flatMap((given) => {
    const got = told.find((message) => holds(message, given))
    if (got === undefined) return []
    return isDeepStrictEqual({ ...got, timestamp: 0 }, { ...given.message, timestamp: 0 })
      ? []
      : [`I6: ${given.token} became ${JSON.stringify(got)}`]
  })
}

export const checkInputs = (played: Played): ReadonlyArray<string> => {
  const runs = runsOf(played)
  return [
    ...everyInputOnce(played, runs),
    ...played.world.given.flatMap((given) => wrongReceipt(played, runs, given)),
    ...transcripts(played),
    ...(runs.length === 0 ? [] : unanswered(played.end.messages)),
    ...illFormed(played.end.messages),
    ...losses(played)
  ]
}
