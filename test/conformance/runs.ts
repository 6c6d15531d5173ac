/** Reading traces: runs, actions, and what messages say. */
import type { Trace, TraceAction, TraceEvent, TraceListener, TraceMessage } from "./trace.ts"
import type { Block } from "./types.ts"

/** A run of a trace; `end` is infinite when it did not end. */
export interface Run {
  readonly start: number
  readonly end: number
  readonly events: ReadonlyArray<TraceEvent>
}

export const runsOf = (trace: Trace): ReadonlyArray<Run> => {
  const runs: Array<Array<TraceEvent>> = []
  for (const event of trace.events) {
    if (event.type === "agent_start" || runs.length === 0) runs.push([])
    runs.at(-1)!.push(event)
  }
  return runs.map((events) => ({
    start: events[0]!.t,
    end: events.find((event) => event.type === "agent_end")?.t ?? Infinity,
    events
  }))
}

/** Whether something happened while a run went on. */
export const within = (run: Run, t: number): boolean => t >= run.start && t <= run.end

export const listenersOf = (trace: Trace): ReadonlyArray<TraceListener> => trace.listeners ?? []

/** When a run was over for the host: its `agent_end`, and the listeners of that. */
export const settledAt = (trace: Trace, run: Run): number => {
  const ends = listenersOf(trace).filter((l) => l.on === "agent_end" && l.t === run.end).map((l) => l.done ?? l.t)
  return Math.max(run.end, ...ends)
}

/** All actions of the driver and of the scripted parts. */
export const allActions = (trace: Trace): ReadonlyArray<TraceAction> => [...trace.actions, ...(trace.inner ?? [])]

/** Start or end of a message, in order. */
export const messageEvents = (
  events: ReadonlyArray<TraceEvent>,
  type: "message_start" | "message_end"
): Array<{ readonly t: number; readonly message: TraceMessage }> =>
  events.flatMap((event) => event.type === type ? [{ t: event.t, message: event.message }] : [])

export const isFailed = ({ stopReason }: TraceMessage): boolean => stopReason === "error" || stopReason === "aborted"

/** The blocks of a message; a text is a single block. */
export const blocksOf = ({ content }: TraceMessage): ReadonlyArray<Block> =>
  typeof content === "string" ? [{ text: content }] : content ?? []

/** Ids of all calls of an assistant message. */
export const callIds = (message: TraceMessage): Array<string> =>
  message.role === "assistant" ? blocksOf(message).flatMap((block) => "call" in block ? [block.call] : []) : []

/** Ids of the calls of a message that have to be answered: none when it failed. */
export const openCallIds = (message: TraceMessage): Array<string> => isFailed(message) ? [] : callIds(message)
