import type { Anomaly, Trace, TraceMessage } from "./trace.ts"

/** Ids of tool calls in finished assistant messages that no later tool result answers. */
export function danglingCalls(messages: ReadonlyArray<TraceMessage>): Array<string>

/** What a player knows beside the trace. */
export interface Extra {
  readonly ties: ReadonlyArray<object>
  readonly lost: ReadonlyArray<unknown>
  readonly mutated: ReadonlyArray<number>
  readonly runs: ReadonlyArray<{ readonly start: number; readonly end?: number }>
}

/** Violations of what a caller of an agent expects: balance of events, answered calls, lost messages and so on. */
export function findAnomalies(trace: Omit<Trace, "anomalies">, extra: Extra): ReadonlyArray<Anomaly>
