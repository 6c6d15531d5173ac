/**
 * The conversation as a prompt of effect/ai. What comes out is valid for every provider: calls and their results are
 * paired, no message is empty, every id is one that servers take, and every text is well-formed Unicode (T9).
 */
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import {
  type AssistantMessage,
  type ImageContent,
  type Message,
  systemPrompt,
  type TextContent,
  type ToolCall,
  type ToolResultMessage
} from "../../Messages.ts"
import type { Model } from "../../StreamFn.ts"
import { encode, wellFormed } from "../json.ts"
import { CallIds } from "../openai/callIds.ts"
import { contentText } from "../replay.ts"
import { normalize } from "../requestMessages.ts"
import { fromSignature } from "./metadata.ts"

const noOutput = "(no output)"

export const promptOf = (messages: ReadonlyArray<Message>, model: Model): Prompt.Prompt => {
  const conversation = new Conversation(model)
  // Few providers take instructions in the middle: what holds now stands at the beginning.
  conversation.system(systemPrompt(messages))
  for (const message of normalize(messages).messages) {
    if (message.role === "user") conversation.user(message.content)
    else if (message.role === "assistant") conversation.assistant(message)
    else if (message.role === "toolResult") conversation.result(message)
  }
  return Prompt.fromMessages(conversation.messages)
}

class Conversation {
  readonly messages: Array<Prompt.Message> = []
  readonly #model: Model
  readonly #ids = new CallIds()
  /** The ids that were sent for the calls of the last assistant message, by their own ids. */
  #open = new Map<string, Array<string>>()
  /** Results that stand together are one message. */
  #results: Array<Prompt.ToolResultPart> | undefined

  constructor(model: Model) {
    this.#model = model
  }

  system(content: string): void {
    if (content !== "") this.#push(Prompt.systemMessage({ content: wellFormed(content) }))
  }

  user(content: string | ReadonlyArray<TextContent | ImageContent>): void {
    const parts = typeof content === "string" ? textParts(content) : content.flatMap(contentParts)
    if (parts.length > 0) this.#push(Prompt.userMessage({ content: parts }))
  }

  assistant(message: AssistantMessage): void {
    this.#open = new Map()
    const isOwn = message.model === this.#model.id && message.api === (this.#model.api ?? "unknown") &&
      message.provider === (this.#model.provider ?? "unknown")
    const content: Array<Prompt.AssistantMessagePart> = []
    for (const block of message.content) {
      if (block.type === "text") {
        if (block.text.trim() === "") continue
        const options = isOwn ? fromSignature(block.textSignature) : {}
        content.push(Prompt.textPart({ text: wellFormed(block.text), options }))
      } else if (block.type === "toolCall") {
        content.push(this.#call(block, isOwn))
      } else if (block.type === "thinking" && isOwn) {
        const options = fromSignature(block.thinkingSignature)
        if (block.thinking.trim() === "" && Object.keys(options).length === 0) continue
        content.push(Prompt.reasoningPart({ text: block.redacted === true ? "" : wellFormed(block.thinking), options }))
      } else if (block.type === "thinking" && block.redacted !== true && block.thinking.trim() !== "") {
        // What another model thought is no thinking of this one, but it may need it to go on.
        content.push(Prompt.textPart({ text: wellFormed(block.thinking) }))
      }
    }
    if (content.length > 0) this.#push(Prompt.assistantMessage({ content }))
  }

  #call(call: ToolCall, isOwn: boolean): Prompt.ToolCallPart {
    const id = this.#ids.next(call.id)
    const open = this.#open.get(call.id)
    if (open === undefined) this.#open.set(call.id, [id])
    else open.push(id)
    return Prompt.toolCallPart({
      id,
      name: wellFormed(call.name),
      params: Result.getOrElse(encode(call.arguments), () => call.arguments),
      providerExecuted: false,
      options: isOwn ? fromSignature(call.thoughtSignature) : {}
    })
  }

  result(message: ToolResultMessage): void {
    const id = this.#open.get(message.toolCallId)?.shift()
    if (id === undefined) return
    const text = wellFormed(contentText(message.content))
    const part = Prompt.toolResultPart({
      id,
      name: wellFormed(message.toolName),
      isFailure: message.isError,
      // For providers that do not know of `modelOutput`.
      result: text === "" ? noOutput : text,
      modelOutput: message.content.some(({ type }) => type === "image")
        ? message.content.flatMap(contentParts)
        : textParts(text === "" ? noOutput : text),
      providerExecuted: false
    })
    if (this.#results === undefined) {
      const results = [part]
      this.#push(Prompt.toolMessage({ content: results }))
      this.#results = results
    } else {
      this.#results.push(part)
    }
  }

  #push(message: Prompt.Message): void {
    this.messages.push(message)
    this.#results = undefined
  }
}

const textParts = (text: string): ReadonlyArray<Prompt.TextPart> =>
  text === "" ? [] : [Prompt.textPart({ text: wellFormed(text) })]

const contentParts = (block: TextContent | ImageContent): ReadonlyArray<Prompt.TextPart | Prompt.FilePart> => {
  if (block.type === "text") return textParts(block.text)
  if (block.type === "image") return [Prompt.filePart({ mediaType: block.mimeType, data: block.data })]
  return []
}
