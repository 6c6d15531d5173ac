/** I5: no fiber and no timer is left, and what was left behind never reaches anybody; and no run hangs. */
import type { Played } from "./play.ts"
import { entriesOf, eventsOf, runsOf } from "./runs.ts"
import type { Scenario, Step, Work } from "./types.ts"

// -----------------------------------------------------------------------------
// Hanging
// -----------------------------------------------------------------------------

const stepHangs = (step: Step): boolean => {
  switch (step.do) {
    case "sleep":
      return step.ms === "forever" || step.cleanup === "forever"
    case "deaf":
      return step.ms === "forever"
    case "background":
      return step.steps.some(stepHangs)
    default:
      return false
  }
}

const workHangs = (work: Work | undefined): boolean => work?.steps.some(stepHangs) === true

/** Whether something in the scenario may keep a run from ending by itself. */
const mayHang = ({ budget, hooks, listeners, model, options, tools }: Scenario): boolean => {
  const { eventTimeout, firstEventTimeout, hookTimeout, limits, toolTimeout } = options
  if ((budget?.duration ?? limits?.duration) !== undefined) return false
  const isRead = eventTimeout === undefined || firstEventTimeout === undefined
  return hooks.some(({ runs }) => hookTimeout === undefined && runs.some(({ work }) => workHangs(work))) ||
    listeners.some(({ rules }) => rules.some(({ work }) => workHangs(work))) ||
    model.some(({ chunks, cleanup, end, setup = [] }) =>
      cleanup === "forever" || (isRead && (
        end === "open" || setup.some(stepHangs) || chunks.some(({ steps = [] }) => steps.some(stepHangs))
      ))
    ) ||
    tools.some(({ prepare, runs, timeout = toolTimeout }) =>
      workHangs(prepare) || (timeout === undefined && runs.some(({ work }) => workHangs(work)))
    )
}

const hangs = (played: Played): ReadonlyArray<string> => [
  ...(played.endedByItself || mayHang(played.world.scenario) ? [] : ["a run does not end, although nothing hangs"]),
  ...(played.stopped ? [] : ["A4: a run does not end within the grace period of an abort"])
]

// -----------------------------------------------------------------------------
// What is left
// -----------------------------------------------------------------------------

const leftovers = ({ fibers, stopped, timers }: Played): ReadonlyArray<string> => [
  ...(timers === 0 || !stopped ? [] : [`I5: ${timers} timers of the library while the agent is idle`]),
  ...(fibers === 0 ? [] : [`I5: ${fibers} fibers are left`])
]

/** What happened once the agent was idle for good, other than by what it was asked later. */
const late = (played: Played): ReadonlyArray<string> => {
  const { entries } = played.world
  const settled = entriesOf(entries, "snapshot").find(({ why }) => why === "settled")!.index
  const runs = runsOf(played)
  return eventsOf(entries, "tool_execution_update").concat().filter(({ index }) => index > settled).flatMap((
    { index }
  ) =>
    runs.some(({ end, start }) => start.index < index && index < (end?.index ?? Infinity))
      ? []
      : [`I5: an update reaches the listeners at ${index}, when nothing runs`]
  )
}

/** H2: a run that nothing stopped ends when everything it waits for has ended. */
const unawaited = (played: Played): ReadonlyArray<string> =>
  runsOf(played).flatMap(({ activity, deadline, end, start, stops }) => {
    if (end === undefined || stops.length > 0 || end.t >= deadline || activity === 0) return []
    if (end.event.outcome._tag === "Aborted") return []
    return played.world.works
      .filter((work) =>
        work.activity === activity && work.begun > start.index && work.begun < end.index &&
        (work.ended ?? Infinity) > end.index && !work.deadline && !(work.place.kind === "tool" && work.place.nested)
      )
      .filter(({ place }) => place.kind !== "listener")
      .map(({ place }) => `I5: ${place.kind} ${place.name} is at work when its run ends at ${end.index}`)
  })

/** H3: every listener hears what was told while it was subscribed, in order. */
const misheard = ({ world }: Played): ReadonlyArray<string> => {
  const told = world.entries.flatMap((entry) => entry.kind === "event" ? [entry.event] : [])
  return [...world.heard].flatMap(([name, { from: earliest, heard, removed }]) => {
    const [first] = heard
    if (first === undefined) return []
    const from = told.indexOf(first, earliest)
    const wrong = heard.findIndex((event, index) => event !== told[from + index])
    if (wrong >= 0) return [`H3: listener ${name} heard ${heard[wrong]!.type} out of order`]
    return removed || from + heard.length === told.length
      ? []
      : [`H3: listener ${name} heard ${heard.length} events, not ${told.length - from}`]
  })
}

/** H3: an observer reads events in order, is told how many it missed, and misses no end of a run but for a later one. */
const misread = ({ world }: Played): ReadonlyArray<string> => {
  const { entries, observed, scenario } = world
  if (scenario.observer === undefined) return []
  const told = entries.flatMap((entry) => entry.kind === "event" ? [entry.event] : [])
  const last = told.findLastIndex(({ type }) => type === "agent_end")
  let at = 0
  for (const event of observed) {
    if (event.type === "gap") {
      const missed = told.slice(at, at + event.missed)
      const end = missed.findIndex(({ type }) => type === "agent_end")
      if (end >= 0 && (scenario.observer.every === 0 || at + end === last)) {
        return ["H3: an observer missed the end of a run"]
      }
      at += event.missed
    } else if (told[at++] !== event) return [`H3: an observer read ${event.type} out of order`]
  }
  return at === told.length ? [] : [`H3: an observer was told of ${at} events of ${told.length}`]
}

export const checkLeft = (played: Played): ReadonlyArray<string> => [
  ...hangs(played),
  ...leftovers(played),
  ...late(played),
  ...unawaited(played),
  ...misheard(played),
  ...misread(played),
  ...played.changed.map((change) => `M3: ${change.slice(0, 200)}`)
]
