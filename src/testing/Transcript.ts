/**
 * Transcripts as short texts: their shape in one line for assertions, their content in a line each for failing tests.
 *
 * | text       | message                                                                   |
 * | ---------- | ------------------------------------------------------------------------- |
 * | `S`        | system                                                                    |
 * | `U`        | user                                                                      |
 * | `A`        | assistant, without tool calls                                             |
 * | `A[a,b]`   | assistant that calls tools, by the ids of the calls                       |
 * | `A{error}` | assistant that ended in `error`, `aborted`, or is still being streamed    |
 * | `R(a)`     | result of the call `a`                                                    |
 * | `R(a!)`    | error result of the call `a`                                              |
 * | `C(note)`  | custom message with the role `note`                                       |
 *
 * An id or role with other characters than letters, digits, `_`, `-`, `.`, `:` and `|` is quoted.
 *
 * @since 0.1.0
 */
import { excerpt, oneLine } from "../internal/excerpt.ts"
import { type AgentMessage, type AssistantMessage, text, toolCalls } from "../Messages.ts"

const name = (id: string): string => /^[\w.:|-]+$/.test(id) ? id : JSON.stringify(id)

const shape = (message: AgentMessage): string => {
  switch (message.role) {
    case "system":
      return "S"
    case "user":
      return "U"
    case "assistant": {
      const calls = toolCalls(message)
      const { stopReason } = message
      return "A" + (calls.length > 0 ? `[${calls.map(({ id }) => name(id)).join(",")}]` : "") +
        (stopReason === "error" || stopReason === "aborted" || stopReason === "pending" ? `{${stopReason}}` : "")
    }
    case "toolResult":
      return `R(${name(message.toolCallId)}${message.isError ? "!" : ""})`
    default:
      return `C(${name((message as { readonly role: string }).role)})`
  }
}

/**
 * The shape of a transcript in one line. System messages are left out unless `system` is set: most transcripts begin
 * with one.
 *
 * **Example** (One call and its result)
 *
 * ```ts
 * import { Messages } from "effect-pi"
 * import { Transcript } from "effect-pi/testing"
 *
 * const call: Messages.ToolCall = { type: "toolCall", id: "a", name: "read_file", arguments: { path: "x" } }
 * const messages = [
 *   Messages.system("Be brief."),
 *   Messages.user("What is in x?"),
 *   Messages.assistant([call]),
 *   Messages.toolResult(call, "no such file", { isError: true }),
 *   Messages.assistant("There is no x.")
 * ]
 * Transcript.print(messages) // => "U A[a] R(a!) A"
 * Transcript.print(messages, { system: true }) // => "S U A[a] R(a!) A"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const print = (
  messages: Iterable<AgentMessage>,
  options: { readonly system?: boolean | undefined } = {}
): string => {
  const shapes: Array<string> = []
  for (const message of messages) {
    if (message.role !== "system" || options.system === true) shapes.push(shape(message))
  }
  return shapes.join(" ")
}

const blocks = (
  content: AssistantMessage["content"] | Extract<AgentMessage, { role: "user" }>["content"],
  width: number
) =>
  typeof content === "string" ? [excerpt(content, width)] : content.map((block) => {
    switch (block.type) {
      case "text":
        return excerpt(block.text, width)
      case "thinking":
        return `thinking ${block.redacted === true ? "(redacted)" : excerpt(block.thinking, width)}`
      case "toolCall":
        return `${name(block.id)}: ${name(block.name)}(${
          oneLine(block.argumentsText ?? JSON.stringify(block.arguments), width)
        })`
      case "image":
        return `<${block.mimeType}>`
      default:
        return `<${(block as { readonly type: string }).type}>`
    }
  })

const details = (message: AgentMessage, width: number): ReadonlyArray<string> => {
  switch (message.role) {
    case "system":
      return [
        ...(text(message) === "" ? [] : [excerpt(text(message), width)]),
        ...Object.keys(message.sections ?? {}).map((section) => `#${name(section)}`),
        ...(message.toolsRemoved ?? []).map((tool) => `-${name(tool.name)}`),
        ...(message.toolsAdded ?? []).map((tool) => `+${name(tool.name)}`)
      ]
    case "user":
    case "toolResult":
      return blocks(message.content, width)
    case "assistant": {
      const { errorMessage, stopReason } = message
      const usual = stopReason === "stop" || stopReason === "toolUse"
      return [
        ...blocks(message.content, width),
        ...(usual && errorMessage === undefined ? [] : [`-- ${stopReason}`]),
        ...(errorMessage === undefined ? [] : [excerpt(errorMessage, width)])
      ]
    }
    default:
      return [excerpt(JSON.stringify(message), width)]
  }
}

/**
 * A transcript with the beginnings of its texts, one line a message, system messages included: what the message of a
 * failing test should show.
 *
 * **Example** (Looking at a transcript)
 *
 * ```ts
 * import { Messages } from "effect-pi"
 * import { Transcript } from "effect-pi/testing"
 *
 * const call: Messages.ToolCall = { type: "toolCall", id: "a", name: "read_file", arguments: { path: "x" } }
 * Transcript.show([
 *   Messages.user("What is in x?"),
 *   Messages.assistant([{ type: "text", text: "Let me look." }, call]),
 *   Messages.toolResult(call, "no such file", { isError: true })
 * ])
 * // U "What is in x?"
 * // A[a] "Let me look." a: read_file({"path":"x"})
 * // R(a!) "no such file"
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const show = (
  messages: Iterable<AgentMessage>,
  options: {
    /** How many characters of a text are shown. Default: 60. */
    readonly width?: number | undefined
  } = {}
): string =>
  Array.from(messages, (message) => [shape(message), ...details(message, options.width ?? 60)].join(" ")).join("\n")
