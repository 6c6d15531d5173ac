/**
 * The seam through which something watches over runs, such as `effect-pi/telemetry`. Without it a run pays one look for a
 * watcher, and one for each call that waits.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { RunOutcome } from "../Errors.ts"
import type { ToolCall } from "../Messages.ts"
import type { Run } from "./run.ts"
import type { Answered } from "./toolCall.ts"
import type { ToolSet } from "./toolSet.ts"

/** What watches over one run. None of it fails. */
export interface Probe {
  /** Code of a call of the model, by the call's id, as it is to work. */
  inCall<A, E>(toolCallId: string, work: Effect.Effect<A, E>): Effect.Effect<A, E>
  /** A call that a tool makes, of which no event tells. */
  nestedCall(toolCall: ToolCall, tools: ToolSet, work: Effect.Effect<Answered>): Effect.Effect<Answered>
  /** Something other than the loop has decided how the run ends. */
  stopped(outcome: RunOutcome): void
}

/**
 * Asked about every run that begins, with the services its code is to work with; gives those it works with. It may put
 * itself in the way of the run's events (`emitter.source`), its requests (`functions`) and its end (`settle`), and be its
 * `probe`. It does not throw.
 */
export type Watch = (run: Run, services: Context.Context<never>) => Context.Context<never>

export const Watcher = Context.Reference<Watch | undefined>("effect-pi/Watcher", { defaultValue: () => undefined })
