/**
 * Type tests of `src/Messages.ts`; `tsc` checks them, nothing runs them. A host's roles are declared here for the whole
 * test program, so that sources and tests are checked against a union with more than the four roles.
 */
import type * as Schema from "effect/Schema"
import * as Messages from "../src/Messages.ts"

declare module "../src/Messages.ts" {
  interface CustomMessages {
    readonly typetestNote: { readonly role: "typetest-note"; readonly note: string; readonly timestamp: number }
  }
}

type Equal<A, B> = [A] extends [B] ? [B] extends [A] ? true : false : false
const equal = <A, B>(_same: Equal<A, B>): void => {}

// A switch over the role narrows, custom roles included, and is exhaustive.
export const describe = (message: Messages.AgentMessage): string => {
  switch (message.role) {
    case "system":
      return Object.keys(message.sections ?? {}).join()
    case "user":
      return typeof message.content === "string" ? message.content : message.content.map((block) => block.type).join()
    case "assistant":
      return message.content.map((block) => block.type === "toolCall" ? block.name : block.type).join()
    case "toolResult":
      return message.toolName
    case "typetest-note":
      // @ts-expect-error a note has no content
      void message.content
      return message.note
    default:
      return message satisfies never
  }
}

export const describeModelMessage = (message: Messages.AgentMessage): string => {
  // @ts-expect-error a message of the host may be none a model understands
  const unchecked: Messages.Message = message
  void unchecked
  if (!Messages.isMessage(message)) return message.note
  const checked: Messages.Message = message
  return checked.role
}

// Type, schema and JSON are one.
equal<typeof Messages.AgentMessage.Type, Messages.AgentMessage>(true)
equal<typeof Messages.AssistantMessage.Type, Messages.AssistantMessage>(true)
equal<typeof Messages.Transcript.Encoded, Messages.Transcript>(true)
equal<Messages.StopReason, "pending" | "stop" | "length" | "toolUse" | "error" | "aborted" | "deferred">(true)
equal<Messages.ThinkingLevel, "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max">(true)
equal<Schema.Codec.Encoded<typeof Messages.Usage>, Messages.Usage>(true)
equal<ReturnType<typeof Messages.keepLast<Messages.Message>>, ReadonlyArray<Messages.Message>>(true)

export const readonly = (message: Messages.AssistantMessage, usage: Messages.Usage): void => {
  // @ts-expect-error messages are read-only
  message.timestamp = 1
  // @ts-expect-error so are their lists
  message.content.push({ type: "text", text: "x" })
  // @ts-expect-error and what is in them
  usage.cost.total = 1
}

// Constructors take only what fits the message.
Messages.user([{ type: "text", text: "hi" }, { type: "image", data: "", mimeType: "image/png" }], { timestamp: 1 })
// @ts-expect-error users do not think aloud
Messages.user([{ type: "thinking", thinking: "hm" }])
// @ts-expect-error no such stop reason
Messages.assistant("hi", { stopReason: "tired" })
// @ts-expect-error content is the first argument
Messages.assistant("hi", { content: [] })
// @ts-expect-error an optional field is absent, not undefined
Messages.assistant("hi", { errorMessage: undefined })
// @ts-expect-error details are JSON
Messages.toolResult({ id: "1", name: "a" }, "x", { details: () => 1 })
// @ts-expect-error arguments are a JSON object
export const call: Messages.ToolCall = { type: "toolCall", id: "1", name: "a", arguments: [1] }
