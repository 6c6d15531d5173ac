/** What becomes of the calls of a response: which are executed, with which tools, and what is kept of their results. */
import * as Messages from "../../src/Messages.ts"
import type { Played } from "./play.ts"
import { entriesOf, eventsOf, inEveryRun, isExact, type RunView, worksOf } from "./runs.ts"
import type { WorkRecord } from "./world.ts"

/** Executions of calls that the model made. */
const executions = (played: Played, run: RunView): ReadonlyArray<WorkRecord & { readonly callId: string }> =>
  worksOf(played, run).flatMap((work) =>
    work.place.kind === "tool" && !work.place.nested ? [{ ...work, callId: work.place.callId }] : []
  )

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** M5 to M7: calls of a response that broke off, was cut short, or made no sense never run. */
const wronglyExecuted = (played: Played, run: RunView): ReadonlyArray<string> => {
  const works = executions(played, run)
  const turns = eventsOf(run.entries, "turn_start").map(({ index }) => index)
  return eventsOf(run.entries, "message_end").flatMap(({ event: { message }, index }) => {
    if (message.role !== "assistant") return []
    const next = turns.find((start) => start > index) ?? Infinity
    const cut = ["error", "aborted", "length"].includes(message.stopReason)
    const never = Messages.toolCalls(message).filter(({ argumentsText }) =>
      cut || (argumentsText !== undefined && !isJson(argumentsText))
    )
    return works.filter(({ begun, callId }) => begun > index && begun < next && never.some(({ id }) => id === callId))
      .map(({ callId }) => `M6: ${callId} is executed, although its message ended as ${message.stopReason}`)
  })
}

/** S3: the model was told of a tool in the request that led to its execution. */
const undeclared = (played: Played, run: RunView): ReadonlyArray<string> => {
  const { hooks } = played.world.scenario
  // These hooks may hide the declarations from the model.
  if (hooks.some(({ kind }) => kind === "transformContext" || kind === "convertToLlm")) return []
  const requests = entriesOf(run.entries, "request")
  return executions(played, run).flatMap(({ begun, place }) => {
    const request = requests.findLast(({ index }) => index < begun)
    return request === undefined || request.tools.includes(place.name)
      ? []
      : [`S3: ${place.name} is executed at ${begun}, the request had ${request.tools.join()}`]
  })
}

/** What the transcript keeps of a result is as long as it may be, and a note of what is missing. */
const tooLong = (played: Played, run: RunView): ReadonlyArray<string> => {
  const max = (played.world.scenario.options.maxResultLength ?? 1_000_000) + 60
  return eventsOf(run.entries, "message_end").flatMap(({ event: { message } }) =>
    message.role === "toolResult" && !message.toolCallId.startsWith("old") && Messages.text(message).length > max
      ? [`the result of ${message.toolCallId} has ${Messages.text(message).length} characters`]
      : []
  )
}

/** T6: what missed its deadline is awaited at the end of a run, within the grace period. */
const notAwaited = (played: Played, run: RunView): ReadonlyArray<string> => {
  const { end } = run
  const turnEnd = eventsOf(run.entries, "turn_end").at(-1)
  if (end === undefined || turnEnd === undefined || run.stops.length > 0 || end.t >= run.deadline) return []
  const grace = played.world.scenario.options.gracePeriod ?? 1000
  if (!isExact(played) || end.event.outcome._tag === "Aborted" || end.t >= turnEnd.t + grace) return []
  return worksOf(played, run)
    .filter(({ begun, deadline, ended = Infinity, place }) =>
      deadline && begun < end.index && ended > end.index && place.kind !== "listener"
    )
    .map(({ place }) => `T6: ${place.kind} ${place.name} is at work when its run ends at ${end.t}, and was not awaited`)
}

/** H3: a listener is told of one event at a time. */
const overlapping = ({ world }: Played): ReadonlyArray<string> => {
  const last = new Map<string, WorkRecord>()
  return world.works.flatMap((work) => {
    const { begun, place } = work
    if (place.kind !== "listener") return []
    const before = last.get(place.name)
    last.set(place.name, work)
    return before === undefined || (before.ended ?? Infinity) < begun
      ? []
      : [`H3: listener ${place.name} is told of ${place.event} at ${begun} while it works on another event`]
  })
}

export const checkCalls = (played: Played): ReadonlyArray<string> => [
  ...inEveryRun(played, [wronglyExecuted, undeclared, tooLong, notAwaited]),
  ...overlapping(played),
  ...played.world.complaints
]
