/** The runs of a play, read off the events the first listener was told. */
import type { AgentEvent } from "../../src/Events.ts"
import type { Played } from "./play.ts"
import type { Entry, EntryBody, Stop, WorkRecord } from "./world.ts"

export type EntryOf<Kind extends EntryBody["kind"]> = Entry & { readonly kind: Kind }

export const entriesOf = <Kind extends EntryBody["kind"]>(
  entries: ReadonlyArray<Entry>,
  kind: Kind
): ReadonlyArray<EntryOf<Kind>> => entries.filter((entry): entry is EntryOf<Kind> => entry.kind === kind)

type EventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: Type }>

/** An event with the index of its entry and its time. */
export interface At<Type extends AgentEvent["type"]> {
  readonly index: number
  readonly t: number
  readonly event: EventOf<Type>
}

export const eventsOf = <Type extends AgentEvent["type"]>(
  entries: ReadonlyArray<Entry>,
  type: Type
): ReadonlyArray<At<Type>> =>
  entries.flatMap((entry) =>
    entry.kind === "event" && entry.event.type === type
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its type was compared
      ? [{ index: entry.index, t: entry.t, event: entry.event as EventOf<Type> }]
      : []
  )

/** One run, from `agent_start` to `agent_end`. */
export interface RunView {
  readonly activity: number
  readonly start: At<"agent_start">
  /** Absent when the run never ended. */
  readonly end: At<"agent_end"> | undefined
  /** Everything between. */
  readonly entries: ReadonlyArray<Entry>
  /** What stopped it from outside of its loop, in order; a deadline is not among it. */
  readonly stops: ReadonlyArray<{ readonly index: number; readonly t: number; readonly how: Stop }>
  /** When its time is over. */
  readonly deadline: number
}

const viewOf = (played: Played, start: At<"agent_start">, end: At<"agent_end"> | undefined, next: number): RunView => {
  const { entries, scenario } = played.world
  const last = end?.index ?? next
  const between = entries.slice(start.index, last + 1)
  const entry = entries[start.index]!
  const activity = entry.kind === "event" ? entry.activity : 0
  // A run may be stopped in the step before its `agent_start`.
  const earlier = eventsOf(entries.slice(0, start.index), "agent_end").at(-1)?.index ?? -1
  const stops = entriesOf(entries.slice(earlier + 1, last + 1), "stop").filter((stop) => stop.activity === activity)
  return {
    activity,
    start,
    end,
    entries: between,
    stops,
    deadline: Math.min(
      start.t + (scenario.options.limits?.duration ?? Infinity),
      // The time of a budget starts with the first run.
      eventsOf(entries, "agent_start")[0]!.t + (scenario.budget?.duration ?? Infinity)
    )
  }
}

export const runsOf = (played: Played): ReadonlyArray<RunView> => {
  const { entries } = played.world
  const starts = eventsOf(entries, "agent_start")
  const ends = eventsOf(entries, "agent_end")
  return starts.map((start, index) => {
    const next = starts[index + 1]?.index ?? entries.length
    return viewOf(played, start, ends.find((end) => end.index > start.index && end.index < next), next)
  })
}

/** Work of a run: what was called in its activity while it was open. */
export const worksOf = ({ world }: Played, run: RunView): ReadonlyArray<WorkRecord> =>
  world.works.filter(({ activity, begun }) =>
    activity === run.activity && begun >= run.start.index && begun <= (run.end?.index ?? Infinity)
  )

/** Whether it may be told exactly what came before what: not when fibers are switched between any two steps. */
export const isExact = ({ world }: Played): boolean => world.scenario.yieldAfter === undefined

/** What checks of a single run find in all runs. */
export const inEveryRun = (
  played: Played,
  checks: ReadonlyArray<(played: Played, run: RunView) => ReadonlyArray<string>>
): ReadonlyArray<string> => {
  const runs = runsOf(played)
  return checks.flatMap((check) => runs.flatMap((run) => check(played, run)))
}

/** Whether code of a run began another one, in its own fiber: code that was left behind can do that. */
export const startsInside = (played: Played): boolean =>
  entriesOf(played.world.entries, "act").some(({ action, busy, from }) =>
    (action.do === "prompt" || action.do === "continue") && !(busy && isExact(played)) &&
    !/^(timeline|end|outside)/.test(from)
  )
