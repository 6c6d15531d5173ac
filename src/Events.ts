/**
 * What a run tells its listeners, in the vocabulary of pi: `agent_start`, then for every turn `turn_start`, messages and
 * tool executions, `turn_end`, and `agent_end` once and last.
 *
 * ```text
 * agent_start
 *   turn_start
 *     message_start … message_end            prompts and queued messages
 *     message_start message_update* message_end   the assistant's response
 *     tool_execution_start tool_execution_update* tool_execution_end   for every call
 *     message_start message_end              the tool results, in call order
 *   turn_end
 * agent_end
 * ```
 *
 * Whatever happens, every start has its end.
 *
 * @since 0.1.0
 */
import * as Stream from "effect/Stream"
import type { RunOutcome } from "./Errors.ts"
import { toWire } from "./internal/wireEvent.ts"
import type { AgentMessage, AssistantMessage, JsonObject, ToolCall, ToolResultMessage } from "./Messages.ts"
import type { ToolResult } from "./Tools.ts"

/**
 * What happened inside an assistant message that is being streamed; source: pi-ai's `AssistantMessageEvent`.
 *
 * @category models
 * @since 0.1.0
 */
export type AssistantMessageEvent =
  | { readonly type: "text_start" | "thinking_start" | "toolcall_start"; readonly contentIndex: number }
  | {
    readonly type: "text_delta" | "thinking_delta" | "toolcall_delta"
    readonly contentIndex: number
    readonly delta: string
  }
  | { readonly type: "text_end" | "thinking_end"; readonly contentIndex: number; readonly content: string }
  | { readonly type: "toolcall_end"; readonly contentIndex: number; readonly toolCall: ToolCall }
  | {
    /** What was told of the response no longer counts: another attempt begins, and the message is empty again. */
    readonly type: "retract"
    /** The attempt that begins, from 2. */
    readonly attempt: number
    /** Why the one before is withdrawn. */
    readonly errorMessage?: string
  }

/**
 * An event of a run. The messages it carries never change after it was handed out.
 *
 * @category models
 * @since 0.1.0
 */
export type AgentEvent =
  | { readonly type: "agent_start" }
  | {
    readonly type: "agent_end"
    /** All messages the run added, prompts included. */
    readonly messages: ReadonlyArray<AgentMessage>
    readonly outcome: RunOutcome
  }
  | { readonly type: "turn_start" }
  | {
    readonly type: "turn_end"
    readonly message: AssistantMessage
    readonly toolResults: ReadonlyArray<ToolResultMessage>
  }
  | { readonly type: "message_start"; readonly message: AgentMessage }
  | {
    readonly type: "message_update"
    readonly message: AssistantMessage
    readonly assistantMessageEvent: AssistantMessageEvent
  }
  | { readonly type: "message_end"; readonly message: AgentMessage }
  | {
    readonly type: "tool_execution_start"
    readonly toolCallId: string
    readonly toolName: string
    readonly args: JsonObject
  }
  | {
    readonly type: "tool_execution_update"
    readonly toolCallId: string
    readonly toolName: string
    readonly args: JsonObject
    readonly partialResult: ToolResult
  }
  | {
    readonly type: "tool_execution_end"
    readonly toolCallId: string
    readonly toolName: string
    readonly result: ToolResult
    readonly isError: boolean
  }

/**
 * What an observer sees: events, and a mark where some were left out because it was too slow.
 *
 * @category models
 * @since 0.1.0
 */
export type ObservedEvent = AgentEvent | { readonly type: "gap"; readonly missed: number }

/**
 * The `type` of an event.
 *
 * @category models
 * @since 0.1.0
 */
export type AgentEventType = AgentEvent["type"]

/**
 * Events as server-sent events, one text each: the event's type as `event`, its JSON as `data`.
 *
 * **Details**
 *
 * A `message_update` carries its delta only: the snapshot of the whole message would make a long response cost quadratic
 * traffic. `message_end` carries the message.
 *
 * **Example** (The body of a response)
 *
 * ```ts
 * import { Stream } from "effect"
 * import { Agent, Events } from "effect-pi"
 *
 * const body = (agent: Agent.AgentService, prompt: string) =>
 *   Agent.stream(agent, prompt).pipe(Events.toSse, Stream.encodeText)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const toSse = <E, R>(events: Stream.Stream<AgentEvent, E, R>): Stream.Stream<string, E, R> =>
  Stream.map(events, (event) => `event: ${event.type}\ndata: ${JSON.stringify(toWire(event))}\n\n`)
