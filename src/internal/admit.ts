/**
 * Messages on their way into a transcript: a message without a time gets the clock's, and its text is made well formed
 * (T9). A message that needs neither is taken as it is.
 */
import type { AgentMessage, UserMessage } from "../Messages.ts"
import { wellFormed } from "./json.ts"

type Content = UserMessage["content"]

const isWellFormed = (content: Content): boolean =>
  typeof content === "string"
    ? content.isWellFormed()
    : content.every((block) => block.type !== "text" || block.text.isWellFormed())

const mendBlock = (block: Exclude<Content, string>[number]): Exclude<Content, string>[number] =>
  block.type === "text" ? { ...block, text: wellFormed(block.text) } : block

const mend = (message: AgentMessage): AgentMessage => {
  if (message.role !== "user" || isWellFormed(message.content)) return message
  const { content } = message
  return { ...message, content: typeof content === "string" ? wellFormed(content) : content.map(mendBlock) }
}

export const admit = (message: AgentMessage, now: number): AgentMessage => {
  const mended = mend(message)
  return mended.timestamp === 0 ? { ...mended, timestamp: now } : mended
}
