/**
 * The conversation as pi-ai takes it. What its adapters would send and servers refuse is mended: calls and results without
 * each other, questions with nothing in them (M1), half characters in arguments (T9).
 */
import type { TranscriptContext } from "@earendil-works/pi-ai"
import * as Result from "effect/Result"
import type { AssistantMessage, Message } from "../../Messages.ts"
import { encode } from "../json.ts"
import { isJsonObject } from "../record.ts"
import { normalize } from "../requestMessages.ts"

/** Prompt and tools are in the system messages already, which is what makes a context a normalized one. */
export const contextOf = (messages: ReadonlyArray<Message>): TranscriptContext => {
  const kept = normalize(messages).messages.filter((message) => !isEmpty(message))
  const context: unknown = { messages: kept.map((message) => message.role === "assistant" ? mended(message) : message) }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the brand says just that; the messages are pi's
  return context as TranscriptContext
}

const isEmpty = (message: Message): boolean => message.role === "user" && message.content.length === 0

/** Texts are pi-ai's own business, arguments it sends as they are. */
const mended = (message: AssistantMessage): AssistantMessage => {
  const isMended = message.content.every((block) =>
    block.type !== "toolCall" || !JSON.stringify(block.arguments).includes("\\ud")
  )
  return isMended ? message : { ...message, content: message.content.map(withEncodedArguments) }
}

const withEncodedArguments = (block: AssistantMessage["content"][number]): AssistantMessage["content"][number] => {
  if (block.type !== "toolCall") return block
  const encoded = encode(block.arguments)
  return Result.isSuccess(encoded) && isJsonObject(encoded.success) ? { ...block, arguments: encoded.success } : block
}
