/** The traces of SCENARIO.md, section 9, as types. */
import type { Block, Level, StopReason } from "./types.ts"

export interface TraceMessage {
  readonly role: string
  readonly content?: string | ReadonlyArray<Block>
  readonly stopReason?: StopReason
  readonly errorMessage?: string
  readonly model?: string
  readonly thinkingLevel?: Level
  readonly call?: string
  readonly tool?: string
  readonly details?: unknown
  readonly usage?: unknown
  readonly isError?: boolean
  readonly sections?: { readonly [name: string]: string | null }
  readonly toolsAdded?: ReadonlyArray<string>
  readonly toolsRemoved?: ReadonlyArray<string>
}

/** The result of a tool call. */
export interface TraceResult {
  readonly content?: string | ReadonlyArray<Block>
  readonly details?: unknown
  readonly structuredContent?: unknown
  readonly usage?: unknown
  readonly isError?: boolean
  readonly terminate?: boolean
}

/** An event, without its time. */
export type EventBody =
  | { readonly type: "agent_start" | "turn_start" }
  | { readonly type: "message_start" | "message_end"; readonly message: TraceMessage }
  | {
    readonly type: "message_update"
    readonly event: { readonly type: string; readonly index: number }
    readonly message: TraceMessage
  }
  | { readonly type: "tool_execution_start"; readonly call: string; readonly tool: string; readonly args: object }
  | {
    readonly type: "tool_execution_update"
    readonly call: string
    readonly tool: string
    readonly args: object
    readonly partial: TraceResult | null
  }
  | {
    readonly type: "tool_execution_end"
    readonly call: string
    readonly tool: string
    readonly result: TraceResult | null
    readonly isError: boolean
  }
  | { readonly type: "turn_end"; readonly message: TraceMessage; readonly toolResults: ReadonlyArray<TraceMessage> }
  | { readonly type: "agent_end"; readonly messages: ReadonlyArray<TraceMessage> }

/** `t` is a virtual time. */
export type TraceEvent = { readonly t: number } & EventBody

export interface TraceRequest {
  readonly t: number
  readonly n: number
  readonly model: string
  readonly thinkingLevel: Level
  readonly apiKey?: string
  readonly sessionId?: string
  /** Only pi makes requests with a signal that is aborted already. */
  readonly aborted?: true
  readonly tools: ReadonlyArray<string>
  readonly messages: ReadonlyArray<TraceMessage>
}

export interface TraceExecution {
  readonly t: number
  readonly call: string
  readonly tool: string
  readonly args: unknown
  readonly end?: number
  readonly how?: "returned" | "threw" | "aborted"
}

export interface TraceHook {
  readonly t: number
  readonly hook: string
  readonly n?: number
  readonly [field: string]: unknown
}

export interface TraceListener {
  readonly t: number
  readonly listener: string
  readonly on: string
  readonly call?: string
  readonly role?: string
  /** Absent: it threw. */
  readonly done?: number
}

/** An action and how it went. */
export interface TraceAction {
  readonly at: number
  readonly do: string
  readonly outcome: "ok" | "resolved" | "rejected" | "pending"
  readonly t?: number
  readonly error?: string
  readonly value?: unknown
}

export interface TraceState {
  readonly isStreaming: boolean
  readonly streamingMessage?: TraceMessage
  readonly pendingToolCalls: ReadonlyArray<string>
  readonly errorMessage?: string
  readonly model: string
  readonly thinkingLevel: Level
  readonly systemPrompt: string
  readonly tools: ReadonlyArray<string>
}

export interface FinalState extends TraceState {
  readonly messages: ReadonlyArray<TraceMessage>
  readonly steering: ReadonlyArray<TraceMessage>
  readonly followUp: ReadonlyArray<TraceMessage>
}

export interface Anomaly {
  readonly kind: string
  readonly t?: number
  readonly [field: string]: unknown
}

/** What an agent did. */
export interface Trace {
  readonly scenario: string
  readonly events: ReadonlyArray<TraceEvent>
  readonly requests: ReadonlyArray<TraceRequest>
  readonly executions: ReadonlyArray<TraceExecution>
  readonly hooks: ReadonlyArray<TraceHook>
  readonly listeners?: ReadonlyArray<TraceListener>
  readonly actions: ReadonlyArray<TraceAction>
  readonly inner?: ReadonlyArray<TraceAction & { readonly from: string }>
  readonly final: FinalState
  readonly unhandled?: ReadonlyArray<{ readonly t: number; readonly error: string }>
  readonly anomalies: ReadonlyArray<Anomaly>
}
