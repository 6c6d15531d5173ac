/** What the outcome of a run may be (L7, M5, H5, A1), and that whoever asked gets it. */
import type { Limit, RunError } from "../../src/Errors.ts"
import type { AssistantMessage } from "../../src/Messages.ts"
import { isTaken } from "./checkStops.ts"
import type { Played } from "./play.ts"
import { entriesOf, eventsOf, inEveryRun, isExact, runsOf, type RunView, startsInside, worksOf } from "./runs.ts"
import type { Entry, WorkRecord } from "./world.ts"

const stopReasons = (run: RunView): ReadonlyArray<AssistantMessage["stopReason"]> =>
  eventsOf(run.entries, "message_end").flatMap(({ event: { message } }) =>
    message.role === "assistant" ? [message.stopReason] : []
  )

const isFault = ({ exit, place }: WorkRecord, deadlines: boolean): boolean =>
  exit === "failed" || (exit === "interrupted" && place.kind !== "tool") || deadlines

// -----------------------------------------------------------------------------
// Failed
// -----------------------------------------------------------------------------

/** A failure has a cause that the scenario names. */
const unfounded = (played: Played, run: RunView, error: RunError): ReadonlyArray<string> => {
  const works = worksOf(played, run)
  const { options } = played.world.scenario
  switch (error._tag) {
    case "HookError": {
      const asked = works.some(({ place }) => place.kind === "hook" && place.name === error.hook)
      // Without work of its own a hook answers at once and what it answers is right.
      return asked && error.hook !== "beforeToolCall" && error.hook !== "afterToolCall"
        ? []
        : [`H5: a HookError of ${error.hook}, which was not asked: ${error.message}`]
    }
    case "ListenerError": {
      const failed = works.some((work) =>
        work.place.kind === "listener" && work.place.required && work.place.event === error.event &&
        isFault(work, false)
      )
      return failed ? [] : [`H3: a ListenerError on ${error.event}, where no required listener failed`]
    }
    case "ModelError": {
      if (error.reason === "Timeout") {
        return options.eventTimeout ?? options.firstEventTimeout ? [] : ["H5: a timeout without a deadline"]
      }
      // Defects of the library itself end up here.
      const known = ["ProtocolViolation", "IncompleteStream", "Reported", "Aborted", "Network", "Unknown"]
      const text = /provider|connection|step failed|stream|overloaded|model stopped|Request was aborted|broke|x{50}/i
      return known.includes(error.reason) && (error.reason !== "Unknown" || isProviders(played, run))
        ? []
        : [`H5: an unexpected ModelError ${error.reason}: ${error.message.slice(0, 80)} ${text.test(error.message)}`]
    }
  }
}

/** Whether a stream of the run failed or could not be opened. */
const isProviders = (played: Played, run: RunView): boolean =>
  worksOf(played, run).some((work) => work.place.kind === "stream" && work.exit === "failed") ||
  entriesOf(run.entries, "request").length > worksOf(played, run).filter(({ place }) => place.kind === "stream").length

// -----------------------------------------------------------------------------
// Limited
// -----------------------------------------------------------------------------

interface Counts {
  readonly turns: number
  readonly toolCalls: number
  readonly tokens: number
  readonly cost: number
}

/** What was spent in a part of a play, up to the entry with this index. */
const spentIn = (
  entries: ReadonlyArray<Entry>,
  works: ReadonlyArray<WorkRecord>,
  before: number
): Counts => {
  const usages = eventsOf(entries, "message_end").flatMap(({ event: { message }, index }) =>
    index < before && message.role === "assistant" && message.api !== "" ? [message.usage] : []
  )
  const starts = eventsOf(entries, "tool_execution_start")
  return {
    turns: entriesOf(entries, "request").filter(({ index, toolChoice }) => index < before && toolChoice === "auto")
      .length,
    // Executions of one call, which is tried again, count once.
    toolCalls: new Set(
      works.flatMap(({ begun, place }) => {
        if (begun >= before || place.kind !== "tool") return []
        const { callId, nested } = place
        const start = starts.findLast(({ event, index }) => event.toolCallId === callId && index < begun)
        // A call that a tool makes has an id that no other has, and no events.
        return [nested ? callId : String(start?.index)]
      })
    ).size,
    tokens: usages.reduce((sum, { totalTokens }) => sum + totalTokens, 0),
    cost: usages.reduce((sum, { cost }) => sum + cost.total, 0)
  }
}

/** What a run had spent, and what all runs together had spent, each with its limits. */
const accounts = (played: Played, run: RunView, before: number) => {
  const { budget = {}, options: { limits = {} } } = played.world.scenario
  return [
    { limits, spent: spentIn(run.entries, worksOf(played, run), before) },
    { limits: budget, spent: spentIn(played.world.entries, played.world.works, before) }
  ] as const
}

const counted = ["turns", "toolCalls", "tokens", "cost"] as const

/** L7: no request once a limit is reached, but one to wrap up; no call beyond the limit of calls. */
const beyondLimits = (played: Played, run: RunView): ReadonlyArray<string> => {
  const { wrapUp = false } = played.world.scenario.options
  const requests = entriesOf(run.entries, "request")
  const problems = requests.flatMap(({ index, toolChoice }, number) => {
    const reached = accounts(played, run, index).flatMap(({ limits, spent }) =>
      counted.filter((limit) => spent[limit] >= (limits[limit] ?? Infinity))
    )
    if (toolChoice === "auto") {
      return reached.map((limit) => `L7: the request at ${index} comes after the limit of ${limit}`)
    }
    const isLast = number === requests.length - 1
    return wrapUp && isLast ? [] : [`L7: the request at ${index} is no wrap-up`]
  })
  const calls = accounts(played, run, run.end?.index ?? Infinity).filter(({ limits, spent }) =>
    spent.toolCalls > (limits.toolCalls ?? Infinity)
  )
  return problems.concat(calls.map(({ spent }) => `L7: ${spent.toolCalls} tool calls are executed`))
}

const notReached = (played: Played, run: RunView, limit: Limit): ReadonlyArray<string> => {
  // A run that code of another run starts counts against that one's limits, too.
  if (startsInside(played)) return []
  const { budget, options: { repeatedCalls } } = played.world.scenario
  const none = [`L7: Limited(${limit}), which was not reached`]
  switch (limit) {
    case "repeatedCalls":
      return repeatedCalls === undefined ? none : []
    case "duration":
      return run.end!.t >= run.deadline || budget?.duration !== undefined ? [] : none
    default:
      return isReached(played, run, limit) ? [] : none
  }
}

const isReached = (played: Played, run: RunView, limit: typeof counted[number]): boolean => {
  const [own, shared] = accounts(played, run, run.end!.index)
  // A turn counts when it begins, a call when it passed the gates: what stops it then, leaves a shared budget smaller.
  const turns = eventsOf(played.world.entries.slice(0, run.end!.index), "turn_start")
  if (limit === "turns") {
    const begun = turns.filter(({ index }) => index > run.start.index).length
    return begun >= (own.limits.turns ?? Infinity) || turns.length >= (shared.limits.turns ?? Infinity)
  }
  return own.spent[limit] >= (own.limits[limit] ?? Infinity) ||
    (limit === "toolCalls"
      ? shared.limits.toolCalls !== undefined
      : shared.spent[limit] >= (shared.limits[limit] ?? Infinity))
}

// -----------------------------------------------------------------------------
// Every outcome
// -----------------------------------------------------------------------------

const wasStopped = (played: Played, run: RunView): boolean =>
  run.stops.some(({ how }) => how !== "listener") ||
  // Code that was left behind and prompts may be interrupted.
  startsInside(played) ||
  // Where fibers are switched between any two steps, it is not known which run an interruption meets.
  (!isExact(played) && /"interruptPrompt"|"timeout"/.test(JSON.stringify(played.world.scenario))) ||
  // Of two prompts at once either may have become the run.
  (!isExact(played) && entriesOf(played.world.entries.slice(0, run.start.index), "stop").length > 0) ||
  // A stream of events that was ended early stops its run at a moment that is not noted.
  isTaken(played)

const wrongOutcome = (played: Played, run: RunView): ReadonlyArray<string> => {
  const { end } = run
  if (end === undefined) return []
  const { outcome } = end.event
  const reasons = stopReasons(run)
  const last = reasons.at(-1)
  const broken = last === "error" || last === "aborted"
  switch (outcome._tag) {
    case "Completed":
      return [
        ...(broken ? [`M5: Completed, the last message ended as ${last}`] : []),
        ...(last === outcome.stopReason ? [] : [`M5: Completed with ${outcome.stopReason}, the message with ${last}`]),
        ...hooksFailed(played, run)
      ]
    case "Aborted":
      return wasStopped(played, run) ? [] : ["A1: Aborted, but nobody aborted the run"]
    case "Failed":
      return [
        ...(broken ? [] : [`H5: Failed, the last message ended as ${last}`]),
        ...unfounded(played, run, outcome.error)
      ]
    case "Limited":
      return [
        ...(broken && outcome.limit !== "duration" ? [`M5: Limited, the last message ended as ${last}`] : []),
        ...notReached(played, run, outcome.limit)
      ]
  }
}

/** A run whose hook failed is not completed. */
const hooksFailed = (played: Played, run: RunView): ReadonlyArray<string> =>
  worksOf(played, run).flatMap(({ deadline, exit, place }) =>
    place.kind === "hook" && exit === "failed" && !deadline && place.name !== "beforeToolCall" &&
      place.name !== "afterToolCall"
      ? [`H5: Completed, although ${place.name} failed`]
      : []
  )

/** A1: what works for the loop when a run is aborted makes the run end as aborted. */
const missedAbort = (played: Played, run: RunView): ReadonlyArray<string> => {
  const { end } = run
  // Where fibers are switched between any two steps, a prompt may be interrupted before it has begun.
  const stop = run.stops.find(({ how }) => isExact(played) || how !== "interrupt")
  if (end === undefined || stop === undefined || stop.how === "listener" || stop.t >= run.deadline) return []
  if (end.event.outcome._tag === "Aborted") return []
  const works = worksOf(played, run).filter(({ begun, deadline, ended = Infinity, place }) =>
    !deadline && begun < stop.index && ended > stop.index &&
    (place.kind === "stream" || (place.kind === "tool" && !place.nested) ||
      (place.kind === "hook" && place.name !== "finishTurn"))
  )
  return works.slice(0, 1).map(({ place }) =>
    `A1: ${place.kind} ${place.name} worked when the run was stopped at ${stop.index}, it ended as ${end.event.outcome._tag}`
  )
}

/** Completed by itself: nothing that was queued before the last turn ended waits any longer. */
const forgotten = ({ world }: Played, run: RunView): ReadonlyArray<string> => {
  const { end } = run
  if (end?.event.outcome._tag !== "Completed" || end.event.outcome.by === "FinishTurn") return []
  const turnEnd = eventsOf(run.entries, "turn_end").at(-1)?.index ?? -1
  return world.given.flatMap(({ accepted, at, delivery, removed, token, way }) => {
    if ((way !== "steering" && way !== "followUp") || accepted !== "yes" || at > turnEnd) return []
    const told = eventsOf(world.entries.slice(0, end.index), "message_end").some(({ event }) =>
      "content" in event.message && JSON.stringify(event.message.content).includes(token)
    )
    return told || (removed !== undefined && removed < end.index) || (delivery?.at ?? Infinity) < turnEnd
      ? []
      : [`L2: ${token} waits although the run completed at ${end.index}`]
  })
}

/** H2: whoever prompted gets the last outcome and all messages of the runs of the activity. */
const wrongResults = (played: Played, runs: ReadonlyArray<RunView>): ReadonlyArray<string> => {
  if (!isExact(played)) return []
  const { entries } = played.world
  const acts = entriesOf(entries, "act")
  let activity = 0
  const began = new Map<number, number>()
  for (const { act, action, busy } of acts) {
    const begins = (action.do === "prompt" || action.do === "continue") && !busy
    if (begins) began.set(act, ++activity)
  }
  return entriesOf(entries, "acted").flatMap(({ act, action, index, result }) => {
    const number = began.get(act)
    const match = /^(\w+).*, (\d+) messages$/.exec(result)
    if (number === undefined || match === null || (action.do !== "prompt" && action.do !== "continue")) return []
    const ends = runs.flatMap((run) => run.activity === number && run.end !== undefined ? [run.end] : [])
      .filter((end) => end.index < index)
    const tag = ends.at(-1)?.event.outcome._tag
    const count = ends.reduce((sum, { event }) => sum + event.messages.length, 0)
    return match[1] === tag && match[2] === String(count)
      ? []
      : [`H2: a prompt got "${result}", its runs ended as ${tag} with ${count} messages`]
  })
}

/** H1: an agent that works refuses a second run, and one that does not work takes it. */
const wrongRefusals = (played: Played): ReadonlyArray<string> => {
  const { world } = played
  const acted = entriesOf(world.entries, "acted")
  return entriesOf(world.entries, "act").flatMap(({ act, action, busy, index }) => {
    const result = acted.find((entry) => entry.act === act)?.result
    if (result === undefined) return [`the ${action.do} at ${index} never ends`]
    // Where fibers are switched between any two steps, the agent may begin or end in between.
    if (!isExact(played)) return []
    const refused = result === "failed AgentBusy"
    switch (action.do) {
      case "prompt":
        return refused && !busy || (busy && action.whileRunning === undefined && !refused)
          ? [`H1: the prompt at ${index}, ${busy ? "busy" : "idle"}, gives ${result}`]
          : []
      case "continue":
      case "reset":
      case "append":
      case "setMessages":
        return refused === busy ? [] : [`H1: ${action.do} at ${index}, ${busy ? "busy" : "idle"}, gives ${result}`]
      case "steer":
      case "followUp":
      case "note":
      case "abort":
      case "withdraw":
        return result.startsWith("failed") ? [`${action.do} at ${index} gives ${result}`] : []
      default:
        return []
    }
  })
}

export const checkOutcomes = (played: Played): ReadonlyArray<string> => [
  ...inEveryRun(played, [wrongOutcome, beyondLimits, missedAbort, forgotten]),
  ...wrongResults(played, runsOf(played)),
  ...wrongRefusals(played)
]
