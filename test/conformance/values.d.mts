import type { AgentMessage, ImageContent, TextContent, ThinkingContent, ToolCall, ToolDeclaration, Usage } from "../../src/Messages.ts"
import type { Model } from "../../src/StreamFn.ts"
import type { ToolResult } from "../../src/Tools.ts"
import type { Behaviour, Block, Content, Declaration, JsonObject, Message, StreamStep, ToolDefinition, ToolMatch } from "./types.ts"

type AnyBlock = TextContent | ThinkingContent | ToolCall | ImageContent

/** A copy without the fields that are undefined. */
export function compact<T extends object>(object: T): { readonly [K in keyof T]: Exclude<T[K], undefined> }

/** The parameters of a tool that names none. */
export const DEFAULT_SCHEMA: JsonObject

/** The description of a tool that has none. */
export function describeTool(name: string): string

/** Whether everything in the pattern is in the value. */
export function partialMatch(pattern: unknown, value: unknown): boolean

/** The last messages; with `keepSystem` all system messages and the last others. */
export function keepLast(
  messages: ReadonlyArray<AgentMessage>,
  spec: { readonly keepLast?: number; readonly keepSystem?: boolean }
): ReadonlyArray<AgentMessage>

export function blockIn(block: Block): AnyBlock
export function contentIn(content: Content | undefined): Array<AnyBlock>
export function usage(): Usage
export function modelIn(id: string): Model

/** The declaration of a tool definition, or of a declaration in a system message. */
export function declarationIn(tool: Declaration): ToolDeclaration

/** A message; `declarationOf` finds the declaration of a tool key. */
export function messageIn(
  message: Message,
  timestamp: number,
  declarationOf: (key: string) => ToolDeclaration
): AgentMessage

/** The result of a behaviour of SCENARIO.md, section 4. */
export function resultIn(behaviour: Behaviour): ToolResult

/** The arguments as `prepareArguments` of a tool leaves them. */
export function prepareArguments(rule: NonNullable<ToolDefinition["prepareArguments"]>, args: JsonObject): JsonObject

/** The case of a tool that fits an execution, over the tool's own behaviour. */
export function behaviourOf(tool: ToolDefinition, call: string, nth: number, args: unknown): ToolDefinition

/** Whether the `match` of a rule fits the facts of a tool call. */
export function matchesCall(
  match: ToolMatch,
  facts: { readonly call: string; readonly tool: string; readonly args: unknown; readonly isError?: boolean }
): boolean

/** The stream events of a response by the time they are due, counted from the opening of the stream. */
export function eventGroups(
  events: ReadonlyArray<StreamStep> | undefined
): Array<{ readonly due: number; readonly events: Array<StreamStep> }>
