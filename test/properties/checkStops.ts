/**
 * I2 and A1 to A4: what happens, and what does not, once a run is stopped: no request, no tool, no hook but `finishTurn`, no
 * queue is read; what does not end within the grace period is left behind, and nothing else is.
 */
import { holds } from "./actions.ts"
import type { Played } from "./play.ts"
import { entriesOf, eventsOf, inEveryRun, isExact, runsOf, type RunView, startsInside, worksOf } from "./runs.ts"
import type { Place, WorkRecord } from "./world.ts"

export const isTaken = ({ world }: Played): boolean =>
  entriesOf(world.entries, "act").some(({ action }) => action.do === "prompt" && action.take !== undefined)

const nameOf = (place: Place): string => `${place.kind} ${place.name}`

/** What may still be called once a run is stopped. */
const mayBegin = ({ place }: WorkRecord): boolean =>
  place.kind === "listener" || (place.kind === "hook" && place.name === "finishTurn")

/** When a run was stopped: the index of an entry and the time. */
interface Stopped {
  readonly index: number
  readonly t: number
}

const stopOf = (played: Played, run: RunView): Stopped | undefined => {
  // Where fibers are switched between any two steps, a prompt may be interrupted before it has begun.
  const stop = run.stops.find(({ how }) => isExact(played) || how !== "interrupt")
  const late = run.entries.find(({ t }) => t > run.deadline)
  if (stop === undefined) return late
  return late === undefined || stop.index < late.index ? stop : late
}

/**
 * Whether something comes after the stop. Where fibers are switched between any two steps, others may go on until the
 * interruption has arrived.
 */
const isAfter = (played: Played, stop: Stopped, { index, t }: Stopped): boolean =>
  index > stop.index && (isExact(played) || t > stop.t)

/** I2, A3: what began although the run was stopped. `run.end` is no bound: nothing of the run begins later either. */
const begunAfterStop = (played: Played, run: RunView, stop: Stopped): ReadonlyArray<string> => {
  const { entries, works } = played.world
  const isLast = !runsOf(played).some(({ activity, start }) =>
    activity === run.activity && start.index > run.start.index
  )
  const until = isLast ? Infinity : run.end?.index ?? Infinity
  const requests = entriesOf(entries, "request").filter((request) =>
    request.activity === run.activity && isAfter(played, stop, request) && request.index < until
  )
  const begun = works.filter((work) =>
    work.activity === run.activity && isAfter(played, stop, entries[work.begun]!) && work.begun < until &&
    !mayBegin(work)
  )
  return [
    ...requests.map(({ index }) => `I2: the request at ${index} comes after the stop at ${stop.index}`),
    ...begun.map(({ begun, place }) => `A3: ${nameOf(place)} begins at ${begun}, after the stop at ${stop.index}`)
  ]
}

/** A3: no queue is read after the stop. */
const readAfterStop = (played: Played, run: RunView, stop: Stopped): ReadonlyArray<string> => {
  // What a run begins with is recorded in any case, also when it came from a queue (Q4, Q5).
  if (!run.entries.some(({ index, kind }) => kind === "request" && index < stop.index)) return []
  return eventsOf(run.entries, "message_start").filter((start) => isAfter(played, stop, start))
    .flatMap(({ event, index }) => {
      const given = played.world.given.find((given) => holds(event.message, given))
      return given === undefined || given.way === "prompt"
        ? []
        : [`A3: ${given.token} is delivered at ${index}, after the stop at ${stop.index}`]
    })
}

/** A2: calls of tools that work when the run is stopped are answered as aborted. */
const wrongAnswers = (played: Played, run: RunView, { index: from }: Stopped): ReadonlyArray<string> =>
  worksOf(played, run).flatMap(({ begun, deadline, ended = Infinity, place }) => {
    if (place.kind !== "tool" || place.nested || deadline || begun > from || ended < from) return []
    const { callId } = place
    const end = eventsOf(run.entries, "tool_execution_end").find(({ event, index }) =>
      event.toolCallId === callId && index > begun
    )
    // A call of a retried tool ends after its last execution.
    if (end === undefined || end.index < from) return []
    const text = (end.event.result.content ?? []).map((block) => block.type === "text" ? block.text : "").join("")
    return end.event.isError && text.startsWith("Operation aborted")
      ? []
      : [`A2: ${callId} worked when the run was stopped at ${from} and was answered with "${text.slice(0, 50)}"`]
  })

/** A4: what is still at work when the run ends had its grace. */
const leftTooEarly = (played: Played, run: RunView): ReadonlyArray<string> => {
  const { end } = run
  if (end === undefined) return []
  const grace = played.world.scenario.options.gracePeriod ?? 1000
  const [stop] = run.stops
  const stopT = Math.min(stop?.t ?? Infinity, run.deadline)
  // When a stream of events is ended early is not noted, nor that the run around this one was stopped.
  if (end.t >= stopT + grace || isTaken(played) || startsInside(played)) return []
  return worksOf(played, run)
    .filter(({ begun, deadline, ended = Infinity, place }) =>
      !deadline && begun < end.index && ended > end.index && place.kind !== "listener" &&
      !(place.kind === "tool" && place.nested)
    )
    .map(({ place }) => `A4: ${nameOf(place)} is at work when the run ends at ${end.t}, the stop was at ${stopT}`)
}

/** A1, A4: an abort takes no longer than the grace periods allow. */
const slowAborts = (played: Played): ReadonlyArray<string> => {
  const { entries, scenario } = played.world
  const grace = scenario.options.gracePeriod ?? 1000
  const acted = entriesOf(entries, "acted")
  return entriesOf(entries, "act").filter(({ action }) => action.do === "abort").flatMap(({ act, index, t }) => {
    const done = acted.find((entry) => entry.act === act)
    if (done === undefined) return [`A1: the abort at ${index} never ends`]
    return done.t - t > grace ? [`A4: the abort at ${index} takes ${done.t - t} ms, the grace period is ${grace}`] : []
  })
}

/** Once it has ended, nothing of a run is called, whatever ended it. */
const begunAfterEnd = (played: Played, runs: ReadonlyArray<RunView>): ReadonlyArray<string> =>
  played.world.works.flatMap(({ activity, begun, place }) => {
    if (activity === 0 || place.kind === "listener") return []
    const within = runs.some((run) =>
      run.activity === activity && run.start.index < begun && begun < (run.end?.index ?? Infinity)
    )
    return within ? [] : [`I5: ${nameOf(place)} begins at ${begun}, outside of the runs of activity ${activity}`]
  })

/** `finishTurn` is asked at most once about a turn. */
const askedTwice = (played: Played, run: RunView): ReadonlyArray<string> => {
  const hooks = played.world.scenario.hooks.filter(({ kind }) => kind === "finishTurn").length
  const starts = eventsOf(run.entries, "turn_start").map(({ index }) => index)
  const asked = worksOf(played, run).filter(({ place }) => place.kind === "hook" && place.name === "finishTurn")
  return starts.flatMap((start, index) => {
    const next = starts[index + 1] ?? Infinity
    const count = asked.filter(({ begun }) => begun > start && begun < next).length
    return count > hooks ? [`L5: ${hooks} finishTurn hooks are asked ${count} times about the turn at ${start}`] : []
  })
}

/** A call that is allowed is executed once, unless it is tried again. */
const executedTwice = (played: Played, run: RunView): ReadonlyArray<string> => {
  const { options, tools } = played.world.scenario
  const counts = new Map<string, number>()
  for (const { place } of worksOf(played, run)) {
    if (place.kind !== "tool" || place.nested || !/^c\d+$/.test(place.callId)) continue
    const isRetried = tools.some(({ name, retry }) => name === place.name && retry !== undefined)
    if (!isRetried && options.toolRetry === undefined) counts.set(place.callId, (counts.get(place.callId) ?? 0) + 1)
  }
  return [...counts].filter(([, count]) => count > 1).map(([id, count]) => `T3: ${id} is executed ${count} times`)
}

const afterStop = (played: Played, run: RunView): ReadonlyArray<string> => {
  const stop = stopOf(played, run)
  return stop === undefined ? [] : [
    ...begunAfterStop(played, run, stop),
    ...readAfterStop(played, run, stop),
    ...(isExact(played) ? wrongAnswers(played, run, stop) : [])
  ]
}

export const checkStops = (played: Played): ReadonlyArray<string> => [
  ...inEveryRun(played, [afterStop, leftTooEarly, askedTwice, executedTwice]),
  ...begunAfterEnd(played, runsOf(played)),
  ...slowAborts(played)
]
