/**
 * Messages on their way into a transcript: a message without a time gets the clock's, and its text is made well formed
 * (T9). A message that needs neither is taken as it is.
 */
import type { AgentMessage } from "../Messages.ts"
import { wellFormed } from "./json.ts"

const isWellFormed = (content: unknown): boolean => {
  if (typeof content === "string") return content.isWellFormed()
  if (!Array.isArray(content)) return true
  const blocks: ReadonlyArray<unknown> = content
  return blocks.every((block) =>
    typeof block !== "object" || block === null || !("text" in block) || typeof block.text !== "string" ||
    block.text.isWellFormed()
  )
}

const mend = (content: unknown): unknown => {
  if (typeof content === "string") return wellFormed(content)
  const blocks = content as ReadonlyArray<{ readonly text?: unknown }>
  return blocks.map((block) => typeof block.text === "string" ? { ...block, text: wellFormed(block.text) } : block)
}

export const admit = (message: AgentMessage, now: number): AgentMessage => {
  const { content } = message as { readonly content?: unknown }
  const wellFormedContent = isWellFormed(content)
  if (wellFormedContent && message.timestamp !== 0) return message
  return {
    ...message,
    timestamp: message.timestamp === 0 ? now : message.timestamp,
    ...(!wellFormedContent && { content: mend(content) })
  } as AgentMessage
}
