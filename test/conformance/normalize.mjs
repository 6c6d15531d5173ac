// From messages, events and results to the form of a trace (SCENARIO.md, section 9), for both players.
import { compact, describeTool } from "./values.mjs"

export const showTool = (tool) =>
  tool.description === undefined || tool.description === describeTool(tool.name)
    ? tool.name
    : `${tool.name} (${tool.description})`
// What follows is library text, free to be more helpful than that of pi.
const text = (s) =>
  typeof s === "string"
    ? s
      .replace(/^Validation failed for tool "([^"]*)"[\s\S]*$/, "Validation failed for tool \"$1\"")
      .replace(/^(Tool [^\n]+? not found)[.:;,\n][\s\S]*$/, "$1")
    : s
/** A value as plain JSON. */
export const json = (v) => (v === undefined ? undefined : JSON.parse(JSON.stringify(v)))

function normBlock(b) {
  switch (b.type) {
    case "text":
      return { text: text(b.text) }
    case "thinking":
      return { thinking: b.thinking }
    case "toolCall":
      return { call: b.id, tool: b.name, args: json(b.arguments) }
    case "image":
      return { image: b.data, mime: b.mimeType }
    default:
      return json(b)
  }
}
function normContent(content) {
  if (content === undefined || content === null) return undefined
  if (typeof content === "string") return text(content)
  const blocks = content.map(normBlock)
  return blocks.length === 1 && "text" in blocks[0] ? blocks[0].text : blocks
}
export function normMessage(m) {
  switch (m?.role) {
    case "user":
      return { role: "user", content: normContent(m.content) }
    case "assistant":
      return compact({
        role: "assistant",
        content: normContent(m.content),
        stopReason: m.stopReason === "pending" ? undefined : m.stopReason,
        errorMessage: m.errorMessage,
        model: m.model,
        thinkingLevel: m.thinkingLevel
      })
    case "toolResult":
      return compact({
        role: "toolResult",
        call: m.toolCallId,
        tool: m.toolName,
        content: normContent(m.content),
        details: json(m.details),
        usage: json(m.usage),
        isError: m.isError
      })
    case "system":
      return compact({
        role: "system",
        content: normContent(m.content),
        sections: json(m.sections),
        toolsAdded: m.toolsAdded?.map(showTool),
        toolsRemoved: m.toolsRemoved?.map((t) => t.name)
      })
    case undefined:
      return m ?? null
    default: {
      const { timestamp: _timestamp, ...rest } = m
      return json(rest)
    }
  }
}
export const normMessages = (ms) => ms.map(normMessage)
export function normResult(r) {
  if (r === undefined || r === null) return null
  return compact({
    content: normContent(r.content),
    details: json(r.details),
    structuredContent: json(r.structuredContent),
    usage: json(r.usage),
    isError: r.isError,
    terminate: r.terminate
  })
}
export function normEvent(e) {
  switch (e.type) {
    case "agent_start":
    case "turn_start":
      return { type: e.type }
    case "agent_end":
      return { type: e.type, messages: normMessages(e.messages) }
    case "turn_end":
      return { type: e.type, message: normMessage(e.message), toolResults: normMessages(e.toolResults) }
    case "message_start":
    case "message_end":
      return { type: e.type, message: normMessage(e.message) }
    case "message_update": {
      const a = e.assistantMessageEvent
      return {
        type: e.type,
        event: compact({
          type: a.type,
          index: a.contentIndex,
          delta: a.delta,
          content: a.content,
          call: a.toolCall && normBlock({ type: "toolCall", ...a.toolCall })
        }),
        message: normMessage(e.message)
      }
    }
    case "tool_execution_start":
      return { type: e.type, call: e.toolCallId, tool: e.toolName, args: json(e.args) }
    case "tool_execution_update":
      return {
        type: e.type,
        call: e.toolCallId,
        tool: e.toolName,
        args: json(e.args),
        partial: normResult(e.partialResult)
      }
    case "tool_execution_end":
      return { type: e.type, call: e.toolCallId, tool: e.toolName, result: normResult(e.result), isError: e.isError }
    default:
      return json(e)
  }
}
/** One letter for each role a model knows. */
export const ROLE_LETTER = { __proto__: null, system: "s", user: "u", assistant: "a", toolResult: "t" }
/** Roles of a message list as one letter each; custom roles are "c". */
export const roles = (ms) => ms.map((m) => ROLE_LETTER[m.role] ?? "c").join("")
