/**
 * The messages of a transcript: what they look like, how they are stored, and what they say about the system prompt and
 * the tools. Everything here is a plain value or a pure function of one.
 *
 * A transcript is a list of {@link AgentMessage}s: the four kinds a model understands (`system`, `user`, `assistant`,
 * `toolResult`) and whatever roles the host adds. Its JSON is that of pi, so that a session stored by pi can be read.
 *
 * - Decoding and encoding lose nothing: fields, block types and roles that this version does not know are kept as they
 *   are, and decoding what was encoded gives an equal value (I6).
 * - What is known is checked, and an error names the message and the field: `Expected string at [3]["content"][0]["text"]`.
 * - System prompt and tools are replayed from the system messages, never stored beside them (S1).
 *
 * **Example** (Reading a stored transcript)
 *
 * ```ts
 * import { Schema } from "effect"
 * import { Messages } from "effect-pi"
 *
 * const messages = Schema.decodeUnknownSync(Schema.fromJsonString(Messages.Transcript))(`[
 *   { "role": "system", "content": "Be brief.", "timestamp": 0 },
 *   { "role": "user", "content": "hi", "timestamp": 1 }
 * ]`)
 * Messages.systemPrompt(messages) // => "Be brief."
 * ```
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import {
  emptyUsage,
  ImageContent,
  Json,
  StopReason,
  TextContent,
  ThinkingContent,
  ThinkingLevel,
  ToolCall,
  ToolDeclaration,
  Usage
} from "./internal/content.ts"
import { openStruct, openUnion, optionalString } from "./internal/openSchema.ts"
import { parsePartial } from "./internal/partialJson.ts"
import { contentText } from "./internal/replay.ts"

export * from "./internal/content.ts"

export {
  declaredTools,
  initialSystem,
  systemMessage,
  systemPrompt,
  type ToolChanges,
  toolChanges
} from "./internal/replay.ts"

export {
  /** What is wrong with a transcript. */
  check,
  /** Something that keeps a transcript from being valid. */
  type Defect,
  /** A change that mends a defect. */
  type Repair,
  /** A transcript with everything mended that is wrong with it. */
  repair
} from "./internal/repair.ts"

// -----------------------------------------------------------------------------
// Messages
// -----------------------------------------------------------------------------

/**
 * Instructions and tool declarations at one point of the transcript.
 *
 * **Details**
 *
 * The first one is the system prompt. Later ones change it: `content` adds instructions, `sections` replace or (`null`)
 * remove named sections, `toolsRemoved` and then `toolsAdded` change the tools. {@link systemMessage} gives the sum.
 *
 * **Gotchas**
 *
 * Section names that look like integers do not keep their order in a JavaScript object.
 *
 * @category models
 * @since 0.1.0
 */
export type SystemMessage = {
  readonly role: "system"
  readonly content: string | ReadonlyArray<TextContent>
  readonly sections?: { readonly [name: string]: string | null }
  readonly toolsAdded?: ReadonlyArray<ToolDeclaration>
  readonly toolsRemoved?: ReadonlyArray<{ readonly name: string }>
  readonly timestamp: number
}

/**
 * Schema of {@link SystemMessage}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const SystemMessage = openStruct<SystemMessage>("SystemMessage", {
  role: Schema.Literal("system"),
  content: Schema.Union([
    Schema.String,
    Schema.Array(openUnion<TextContent>("SystemContent", "type", { text: TextContent }))
  ]),
  sections: Schema.optionalKey(Schema.Record(Schema.String, Schema.NullOr(Schema.String))),
  toolsAdded: Schema.optionalKey(Schema.Array(ToolDeclaration)),
  toolsRemoved: Schema.optionalKey(
    Schema.Array(openStruct<{ readonly name: string }>("ToolReference", { name: Schema.String }))
  ),
  timestamp: Schema.Finite
})

const UserContent = Schema.Array(
  openUnion<TextContent | ImageContent>("UserContent", "type", { text: TextContent, image: ImageContent })
)

/**
 * What the user says.
 *
 * @category models
 * @since 0.1.0
 */
export type UserMessage = {
  readonly role: "user"
  readonly content: string | ReadonlyArray<TextContent | ImageContent>
  readonly timestamp: number
}

/**
 * Schema of {@link UserMessage}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const UserMessage = openStruct<UserMessage>("UserMessage", {
  role: Schema.Literal("user"),
  content: Schema.Union([Schema.String, UserContent]),
  timestamp: Schema.Finite
})

/**
 * A response of the model.
 *
 * **Gotchas**
 *
 * A block of a type this version does not know is kept in `content` although the type does not show it: give a `switch`
 * over block types a default that passes it on.
 *
 * @category models
 * @since 0.1.0
 */
export type AssistantMessage = {
  readonly role: "assistant"
  readonly content: ReadonlyArray<TextContent | ThinkingContent | ToolCall>
  readonly api: string
  readonly provider: string
  readonly model: string
  /** The model that answered, where the provider names another one than was asked for. */
  readonly responseModel?: string
  readonly responseId?: string
  /** The effort in the provider's own words. */
  readonly providerThinkingLevel?: string
  /** The thinking level that was asked for. */
  readonly thinkingLevel?: ThinkingLevel
  /** What the provider's adapter noted about failures it met. */
  readonly diagnostics?: Json
  readonly usage: Usage
  readonly stopReason: StopReason
  readonly errorMessage?: string
  /** The stop reason in the provider's own words. */
  readonly rawStopReason?: string
  /** Whether the model said that its turn is over; recorded, it decides nothing. */
  readonly endTurn?: boolean
  /** How to fetch a response with the stop reason `deferred`; source: pi-ai's `DeferredHandle`. */
  readonly deferred?: Json
  readonly timestamp: number
}

/**
 * Schema of a block of an {@link AssistantMessage}: text, thinking, or a tool call. Blocks of other types pass as they are.
 *
 * @category schemas
 * @since 0.1.0
 */
export const AssistantContent = openUnion<TextContent | ThinkingContent | ToolCall>("AssistantContent", "type", {
  text: TextContent,
  thinking: ThinkingContent,
  toolCall: ToolCall
})

/**
 * Schema of {@link AssistantMessage}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const AssistantMessage = openStruct<AssistantMessage>("AssistantMessage", {
  role: Schema.Literal("assistant"),
  content: Schema.Array(AssistantContent),
  api: Schema.String,
  provider: Schema.String,
  model: Schema.String,
  responseModel: optionalString,
  responseId: optionalString,
  providerThinkingLevel: optionalString,
  thinkingLevel: Schema.optionalKey(ThinkingLevel),
  diagnostics: Schema.optionalKey(Json),
  usage: Usage,
  stopReason: StopReason,
  errorMessage: optionalString,
  rawStopReason: optionalString,
  endTurn: Schema.optionalKey(Schema.Boolean),
  deferred: Schema.optionalKey(Json),
  timestamp: Schema.Finite
})

/**
 * What a tool answered to a call.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolResultMessage = {
  readonly role: "toolResult"
  readonly toolCallId: string
  readonly toolName: string
  readonly content: ReadonlyArray<TextContent | ImageContent>
  /** What the tool tells the host; the model does not see it. */
  readonly details?: Json
  /** What the tool itself used, beside the usage of the model that called it. */
  readonly usage?: Usage
  /** The calls the tool made to other tools; source: pi-ai's `NestedToolCalls`. */
  readonly nestedCalls?: Json
  readonly isError: boolean
  readonly timestamp: number
}

/**
 * Schema of {@link ToolResultMessage}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolResultMessage = openStruct<ToolResultMessage>("ToolResultMessage", {
  role: Schema.Literal("toolResult"),
  toolCallId: Schema.String,
  toolName: Schema.String,
  content: UserContent,
  details: Schema.optionalKey(Json),
  usage: Schema.optionalKey(Usage),
  nestedCalls: Schema.optionalKey(Json),
  isError: Schema.Boolean,
  timestamp: Schema.Finite
})

/**
 * A message a model understands.
 *
 * @category models
 * @since 0.1.0
 */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage

/**
 * Schema of {@link Message}. It refuses other roles; {@link AgentMessage} keeps them.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Message: Schema.Codec<Message> = /* @__PURE__ */ Schema.Union([
  SystemMessage,
  UserMessage,
  AssistantMessage,
  ToolResultMessage
])

/**
 * The messages a host adds to the transcript beside those of {@link Message}, by name; empty until a host declares some.
 * Each needs a `role` of its own and must be JSON. Source: pi-agent-core's `CustomAgentMessages`.
 *
 * **Gotchas**
 *
 * Models never see them unless `ConvertToLlm` makes something of them. Decoding only checks that they are JSON with a
 * `role`: check what you read before you trust its type.
 *
 * **Example** (A note only people see)
 *
 * ```ts
 * declare module "effect-pi/Messages" {
 *   interface CustomMessages {
 *     readonly note: { readonly role: "note"; readonly text: string; readonly timestamp: number }
 *   }
 * }
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface CustomMessages {}

/**
 * A message of a transcript: one a model understands or one of the host's own. A `switch` over `role` narrows it.
 *
 * @category models
 * @since 0.1.0
 */
// oxlint-disable-next-line typescript/no-redundant-type-constituents -- only until a host declares roles of its own
export type AgentMessage = Message | CustomMessages[keyof CustomMessages]

/**
 * Schema of {@link AgentMessage}. A message with a role this version does not know is kept as it is.
 *
 * @category schemas
 * @since 0.1.0
 */
export const AgentMessage: Schema.Codec<AgentMessage> = openUnion<AgentMessage>("AgentMessage", "role", {
  system: SystemMessage,
  user: UserMessage,
  assistant: AssistantMessage,
  toolResult: ToolResultMessage
})

/**
 * A transcript.
 *
 * @category models
 * @since 0.1.0
 */
export type Transcript = ReadonlyArray<AgentMessage>

/**
 * Schema of {@link Transcript}: what a session stores.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Transcript: Schema.Codec<Transcript> = Schema.Array(AgentMessage)

// -----------------------------------------------------------------------------
// Constructors
// -----------------------------------------------------------------------------

/**
 * Makes a user message.
 *
 * **Details**
 *
 * As with every constructor here the timestamp is 0 unless given; the runtime gives a message with timestamp 0 the time
 * of its `Clock` when it records it.
 *
 * **Example** (Text with an image)
 *
 * ```ts
 * import { Messages } from "effect-pi"
 *
 * Messages.user("What is in the picture?")
 * Messages.user([
 *   { type: "text", text: "What is in the picture?" },
 *   { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }
 * ])
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const user = (
  content: UserMessage["content"],
  options?: Partial<Omit<UserMessage, "role" | "content">>
): UserMessage => ({ role: "user", content, timestamp: 0, ...options })

/**
 * Makes a system message.
 *
 * **When to use**
 *
 * To change the prompt in the middle of a conversation. The first system message is made by the agent, see
 * {@link initialSystem}, and the runtime declares tools by itself.
 *
 * @category constructors
 * @since 0.1.0
 */
export const system = (
  content: SystemMessage["content"],
  options?: Partial<Omit<SystemMessage, "role" | "content">>
): SystemMessage => ({ role: "system", content, timestamp: 0, ...options })

/**
 * Makes an assistant message, for tests and for transcripts that come from elsewhere. The stop reason is `toolUse` when
 * the content has tool calls, else `stop`, unless given.
 *
 * @category constructors
 * @since 0.1.0
 */
export const assistant = (
  content: string | AssistantMessage["content"],
  options?: Partial<Omit<AssistantMessage, "role" | "content">>
): AssistantMessage => {
  const blocks: AssistantMessage["content"] = typeof content === "string" ? [{ type: "text", text: content }] : content
  return {
    role: "assistant",
    content: blocks,
    api: "",
    provider: "",
    model: "",
    usage: emptyUsage,
    stopReason: blocks.some((block) => block.type === "toolCall") ? "toolUse" : "stop",
    timestamp: 0,
    ...options
  }
}

/**
 * Makes the result of a tool call.
 *
 * **Example** (Answering a call)
 *
 * ```ts
 * import { Messages } from "effect-pi"
 *
 * const call: Messages.ToolCall = { type: "toolCall", id: "1", name: "add", arguments: { a: 1, b: 2 } }
 * Messages.toolResult(call, "3").toolCallId // => "1"
 * Messages.toolResult(call, "overflow", { isError: true }).isError // => true
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolResult = (
  call: Pick<ToolCall, "id" | "name">,
  content: string | ToolResultMessage["content"],
  options?: Partial<Omit<ToolResultMessage, "role" | "toolCallId" | "toolName" | "content">>
): ToolResultMessage => ({
  role: "toolResult",
  toolCallId: call.id,
  toolName: call.name,
  content: typeof content === "string" ? [{ type: "text", text: content }] : content,
  isError: false,
  timestamp: 0,
  ...options
})

// -----------------------------------------------------------------------------
// Reading messages
// -----------------------------------------------------------------------------

/**
 * Whether a message is one a model understands.
 *
 * @category guards
 * @since 0.1.0
 */
export const isMessage = (message: AgentMessage): message is Message => {
  switch (message.role) {
    case "system":
    case "user":
    case "assistant":
    case "toolResult":
      return true
    default:
      return false
  }
}

/**
 * The text of a message: its text blocks, joined by line breaks. Source: pi-ai's `contentText`.
 *
 * @category getters
 * @since 0.1.0
 */
export const text = (message: AgentMessage): string => "content" in message ? contentText(message.content) : ""

/**
 * The tool calls of a message, in order; none unless it is an assistant message.
 *
 * @category getters
 * @since 0.1.0
 */
export const toolCalls = (message: AgentMessage): ReadonlyArray<ToolCall> => {
  if (message.role !== "assistant") return []
  return message.content.every(isToolCall) ? message.content : message.content.filter(isToolCall)
}

const isToolCall = (block: AssistantMessage["content"][number]): block is ToolCall => block.type === "toolCall"

/**
 * The last `n` messages and every system message, in place: a context hook that keeps requests short.
 *
 * **Details**
 *
 * A call is never split from its results: a result whose call was cut away is left out as well, so that it can be fewer
 * than `n`.
 *
 * **Example** (A hook that keeps fifty messages)
 *
 * ```ts
 * import { Hooks, Messages } from "effect-pi"
 *
 * Hooks.transformContext((messages) => Messages.keepLast(messages, 50))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const keepLast = <M extends AgentMessage>(messages: ReadonlyArray<M>, n: number): ReadonlyArray<M> => {
  let left = n
  const start = messages.findLastIndex((message) => message.role !== "system" && --left < 0) + 1
  if (start === 0) return messages
  const kept = new Set<string>()
  const wasCut = (id: string): boolean =>
    messages.findLastIndex((message, index) => index < start && toolCalls(message).some((call) => call.id === id)) >= 0
  return messages.filter((message: AgentMessage, index) => {
    if (message.role === "system") return true
    if (index < start) return false
    for (const call of toolCalls(message)) kept.add(call.id)
    return message.role !== "toolResult" || kept.has(message.toolCallId) || !wasCut(message.toolCallId)
  })
}

/**
 * What can be read so far of the arguments of a call that is being streamed, for showing them as they come.
 *
 * **Gotchas**
 *
 * Reads the whole text each time it is called, so call it when something is drawn and not for every delta. Of a finished
 * call it gives the arguments.
 *
 * @category accessors
 * @since 0.1.0
 */
export const partialArguments = (call: ToolCall): Json | undefined =>
  call.argumentsText === undefined ? call.arguments : parsePartial(call.argumentsText)
