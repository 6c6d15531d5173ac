/**
 * The conversation in the words of the chat completions API. What comes out is always valid: calls and their results are
 * paired, no message is empty, and every id is one that servers take.
 */
import {
  type AssistantMessage,
  type ImageContent,
  type Json,
  type JsonObject,
  type Message,
  type SystemMessage,
  systemPrompt,
  type TextContent,
  type ToolCall,
  type ToolResultMessage
} from "../../Messages.ts"
import type { Model } from "../../StreamFn.ts"
import { contentText } from "../replay.ts"
import { normalize } from "../requestMessages.ts"
import { CallIds } from "./callIds.ts"
import { jsonText } from "./jsonText.ts"
import { isReasoningField, readDetails } from "./reasoning.ts"
import type { Settings } from "./settings.ts"

const noOutput = "(no output)"
const imageFollows = "(the image follows)"
const imageLeftOut = "(an image was left out: the model takes text only)"
const imagesOfTools = "The images that the tools returned:"

export const wireMessages = (
  messages: ReadonlyArray<Message>,
  model: Model,
  settings: Settings
): ReadonlyArray<JsonObject> => {
  const conversation = new Conversation(model, settings)
  if (!settings.midConversation) conversation.system(systemPrompt(messages))
  let isFirst = true
  for (const message of normalize(messages).messages) {
    if (message.role === "toolResult") conversation.result(message)
    else if (message.role === "assistant") conversation.assistant(message)
    else if (message.role === "user") conversation.user(message.content)
    else if (settings.midConversation) conversation.system(isFirst ? systemPrompt([message]) : changes(message))
    isFirst = false
  }
  return conversation.end()
}

/** A later system message where it stands: what it adds, and which sections it changes. */
const changes = (message: SystemMessage): string => {
  const parts = [contentText(message.content)]
  for (const [name, section] of Object.entries(message.sections ?? {})) {
    parts.push(
      section === null
        ? `The section "${name}" of the instructions no longer applies.`
        : `The section "${name}" of the instructions is now:\n\n${section}`
    )
  }
  return parts.filter((part) => part !== "").join("\n\n")
}

class Conversation {
  readonly #model: Model
  readonly #settings: Settings
  readonly #out: Array<JsonObject> = []
  readonly #ids = new CallIds()
  /** The ids that were sent for the calls of the last assistant message, by their own ids. */
  #open = new Map<string, Array<string>>()
  /** Images of results wait until all results have been said: nothing may stand between those. */
  #images: Array<Json> = []

  constructor(model: Model, settings: Settings) {
    this.#model = model
    this.#settings = settings
  }

  system(content: string): void {
    this.#flushImages()
    if (content !== "") this.#out.push({ role: "system", content })
  }

  /** Text alone is one text, which the templates of all local servers take; a list is needed for images only. */
  user(content: string | ReadonlyArray<TextContent | ImageContent>): void {
    this.#flushImages()
    if (typeof content === "string" || !this.#settings.images || !content.some(isImage)) {
      const text = typeof content === "string" ? content : contentText(content.map(withoutImage))
      if (text !== "") this.#out.push({ role: "user", content: text })
      return
    }
    const parts: Array<Json> = []
    for (const block of content) {
      if (isImage(block)) parts.push(imagePart(block))
      else if (block.type === "text" && block.text !== "") parts.push({ type: "text", text: block.text })
    }
    this.#out.push({ role: "user", content: parts })
  }

  assistant(message: AssistantMessage): void {
    this.#flushImages()
    this.#open = new Map()
    const isOwn = isSameModel(message, this.#model)
    const calls: Array<Json> = []
    const fields: Record<string, Json> = {}
    let text = ""
    for (const block of message.content) {
      if (block.type === "text") {
        if (block.text.trim() !== "") text += block.text
      } else if (block.type === "toolCall") {
        calls.push(this.#call(block))
      } else if (block.type === "thinking" && isOwn) {
        giveBack(fields, block.thinking, block.thinkingSignature)
      } else if (block.type === "thinking" && block.redacted !== true && block.thinking.trim() !== "") {
        // What another model thought is no thinking of this one, but it may need it to go on.
        text += `${block.thinking}\n\n`
      }
    }
    if (text === "" && calls.length === 0) return
    this.#out.push({
      role: "assistant",
      content: text === "" ? null : text,
      ...fields,
      ...(calls.length > 0 && { tool_calls: calls })
    })
  }

  #call(call: ToolCall): Json {
    const id = this.#ids.next(call.id)
    const open = this.#open.get(call.id)
    if (open === undefined) this.#open.set(call.id, [id])
    else open.push(id)
    return { id, type: "function", function: { name: call.name, arguments: jsonText(call.arguments) } }
  }

  result(message: ToolResultMessage): void {
    const id = this.#open.get(message.toolCallId)?.shift()
    if (id === undefined) return
    const images = message.content.filter(isImage)
    const text = contentText(this.#settings.images ? message.content : message.content.map(withoutImage))
    const content = text !== "" ? text : images.length > 0 ? imageFollows : noOutput
    this.#out.push({ role: "tool", tool_call_id: id, content })
    if (this.#settings.images) this.#images.push(...images.map(imagePart))
  }

  end(): ReadonlyArray<JsonObject> {
    this.#flushImages()
    return this.#out
  }

  /** The message of a tool takes text only. */
  #flushImages(): void {
    if (this.#images.length === 0) return
    this.#out.push({ role: "user", content: [{ type: "text", text: imagesOfTools }, ...this.#images] })
    this.#images = []
  }
}

const isImage = (block: TextContent | ImageContent): block is ImageContent => block.type === "image"

const withoutImage = (block: TextContent | ImageContent): TextContent | ImageContent =>
  isImage(block) ? { type: "text", text: imageLeftOut } : block

const imagePart = ({ data, mimeType }: ImageContent): Json => ({
  type: "image_url",
  image_url: { url: `data:${mimeType};base64,${data}` }
})

const isSameModel = (message: AssistantMessage, model: Model): boolean =>
  message.model === model.id && message.api === (model.api ?? "unknown") &&
  message.provider === (model.provider ?? "unknown")

/** Thinking goes back in the form it came in; the signature says in which. */
const giveBack = (fields: Record<string, Json>, thinking: string, signature: string | undefined): void => {
  if (signature === undefined) return
  if (isReasoningField(signature)) {
    const before = fields[signature]
    if (thinking.trim() !== "") fields[signature] = typeof before === "string" ? `${before}\n${thinking}` : thinking
    return
  }
  const details = readDetails(signature)
  if (details !== undefined) fields["reasoning_details"] = details
}
