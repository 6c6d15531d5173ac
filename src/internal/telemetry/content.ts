/**
 * What was said, in the form the conventions have for messages. It gets into spans only where a program asks for it.
 */
import type { AssistantMessage, Message, ToolDeclaration } from "../../Messages.ts"
import type { StreamRequest } from "../../StreamFn.ts"
import { type Attributes, finishReason } from "./attributes.ts"

type Part = Readonly<Record<string, unknown>>

type Block = Exclude<Message["content"], string>[number]

const partOf = (block: Block): Part => {
  switch (block.type) {
    case "text":
      return { type: "text", content: block.text }
    case "thinking":
      return { type: "reasoning", content: block.thinking }
    case "toolCall":
      return { type: "tool_call", id: block.id, name: block.name, arguments: block.arguments }
    // Its bytes would make every span as large as the image.
    case "image":
      return { type: "image", mime_type: block.mimeType }
    // Blocks of types that this version does not know are kept in messages.
    default:
      return { type: "unknown" }
  }
}

const partsOf = (content: Message["content"]): ReadonlyArray<Part> =>
  typeof content === "string" ? [{ type: "text", content }] : content.map(partOf)

const messageOf = (message: Exclude<Message, { readonly role: "system" }>) =>
  message.role === "toolResult"
    ? {
      role: "tool",
      parts: [{ type: "tool_call_response", id: message.toolCallId, response: partsOf(message.content) }]
    }
    : { role: message.role, parts: partsOf(message.content) }

const definitionOf = ({ description, name, parameters }: ToolDeclaration) => ({
  type: "function",
  name,
  description,
  parameters
})

export const requestContent = ({ messages, tools }: StreamRequest): Attributes => ({
  "gen_ai.system_instructions": JSON.stringify(
    messages.flatMap((message) => message.role === "system" ? partsOf(message.content) : [])
  ),
  "gen_ai.input.messages": JSON.stringify(
    messages.flatMap((message) => message.role === "system" ? [] : [messageOf(message)])
  ),
  "gen_ai.tool.definitions": JSON.stringify(tools.map(definitionOf))
})

export const responseContent = (message: AssistantMessage): Attributes => ({
  "gen_ai.output.messages": JSON.stringify([{ ...messageOf(message), finish_reason: finishReason(message) }])
})

export const argumentsContent = (args: unknown): Attributes => ({ "gen_ai.tool.call.arguments": JSON.stringify(args) })

export const resultContent = (result: unknown): Attributes => ({ "gen_ai.tool.call.result": JSON.stringify(result) })
