import type {
  AgentMessage,
  ImageContent,
  Message,
  TextContent,
  ThinkingContent,
  ToolCall,
  ToolDeclaration,
  Usage
} from "../../src/Messages.ts"
import type { Model } from "../../src/StreamFn.ts"
import type { ToolResult } from "../../src/Tools.ts"
import type {
  Behaviour,
  Content,
  Declaration,
  JsonObject,
  Message as ScenarioMessage,
  StreamStep,
  ToolDefinition,
  ToolMatch
} from "./types.ts"

type AnyBlock = TextContent | ThinkingContent | ToolCall | ImageContent

/** The fields that may be undefined are absent instead. */
type Compact<T> =
  & { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { readonly [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> }

/** A copy without the fields that are undefined. */
export function compact<T extends object>(object: T): Compact<T>

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

/** The blocks of a content; they are such that its place allows, as scenarios are written that way. */
export function contentIn<B extends AnyBlock>(content: Content | undefined): Array<B>

export function usage(): Usage
export function modelIn(id: string): Model

/** The declaration of a tool definition, or of a declaration in a system message. */
export function declarationIn(tool: Declaration): ToolDeclaration

/** A message; `declarationOf` finds the declaration of a tool key. */
export function messageIn(
  message: ScenarioMessage,
  timestamp: number,
  declarationOf: (key: string) => ToolDeclaration
): AgentMessage

/** The result of a behaviour of SCENARIO.md, section 4. */
export function resultIn(behaviour: Behaviour): ToolResult

/** The arguments as `prepareArguments` of a tool leaves them. */
export function prepareArguments(rule: NonNullable<ToolDefinition["prepareArguments"]>, args: unknown): JsonObject

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

/** The conversion of SCENARIO.md, section 6, with the `roles` of a rule. */
export function convertMessages(
  messages: ReadonlyArray<AgentMessage>,
  roles?: { readonly [role: string]: "user" | "drop" | "keep" }
): Array<Message>
