/**
 * Calls at the end of a transcript that were never answered, as a crash or another program leaves them.
 */
import { type AgentMessage, type ToolCall, toolCalls, type ToolResultMessage } from "../Messages.ts"

/** The error result for a call nobody answered. */
export const unanswered = (call: ToolCall, timestamp: number): ToolResultMessage => ({
  role: "toolResult",
  toolCallId: call.id,
  toolName: call.name,
  content: [{ type: "text", text: "Operation aborted. The call was never answered; its outcome is unknown." }],
  details: {},
  isError: true,
  timestamp
})

export const openCalls = (messages: ReadonlyArray<AgentMessage>): ReadonlyArray<ToolCall> => {
  const at = messages.findLastIndex((message) => message.role !== "toolResult")
  const caller = messages[at]
  if (caller?.role !== "assistant" || caller.stopReason === "error" || caller.stopReason === "aborted") return []
  const answered = messages.slice(at + 1).map((message) => message.role === "toolResult" ? message.toolCallId : "")
  return toolCalls(caller).filter((call) => {
    const index = answered.indexOf(call.id)
    if (index >= 0) answered.splice(index, 1)
    return index < 0
  })
}

/** The error results that answer them, so that the conversation can go on (Q4); timestamps are 0. */
export const answersTo = (open: ReadonlyArray<ToolCall>): ReadonlyArray<ToolResultMessage> =>
  open.map((call) => unanswered(call, 0))

export const answersToOpenCalls = (messages: ReadonlyArray<AgentMessage>): ReadonlyArray<ToolResultMessage> =>
  answersTo(openCalls(messages))
