/** The scenarios of SCENARIO.md, sections 2 to 8, as types. */
import type { Json, ThinkingLevel, Usage } from "../../src/Messages.ts"

export type Level = ThinkingLevel
export type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted" | "deferred"
export type JsonObject = { readonly [key: string]: unknown }

export type Block =
  | { readonly text: string }
  | { readonly thinking: string }
  | { readonly call: string; readonly tool: string; readonly args?: JsonObject }
  | { readonly image: string; readonly mime: string }
export type Content = string | ReadonlyArray<Block>
export type Declaration = { readonly name: string; readonly description?: string; readonly parameters?: JsonObject }
export type Message = string | {
  readonly role: string
  readonly content?: Content
  readonly stopReason?: StopReason
  readonly errorMessage?: string
  readonly model?: string
  readonly call?: string
  readonly tool?: string
  readonly details?: unknown
  readonly isError?: boolean
  readonly sections?: { readonly [name: string]: string | null }
  readonly toolsAdded?: ReadonlyArray<string | Declaration>
  readonly toolsRemoved?: ReadonlyArray<string>
}

export interface Behaviour {
  readonly delay?: number
  readonly content?: Content
  readonly noContent?: boolean
  readonly details?: unknown
  readonly structuredContent?: unknown
  readonly usage?: JsonObject
  readonly terminate?: boolean
  readonly isError?: boolean
  readonly throws?: string
  readonly throwsRaw?: boolean
  readonly updates?: ReadonlyArray<{ readonly at: number; readonly content?: Content; readonly details?: unknown }>
  readonly onAbort?:
    | "stop"
    | "ignore"
    | {
      readonly after?: number
      readonly throws?: string
      readonly content?: Content
      readonly details?: unknown
      readonly isError?: boolean
    }
  readonly nested?: ReadonlyArray<{
    readonly call: string
    readonly tool: string
    readonly args?: JsonObject
    readonly tools?: ReadonlyArray<string>
  }>
  readonly do?: ReadonlyArray<InnerAction>
}
export interface ToolDefinition extends Behaviour {
  readonly name: string
  readonly key?: string
  readonly label?: string
  readonly description?: string
  readonly parameters?: JsonObject
  readonly executionMode?: "parallel" | "sequential"
  readonly prepareArguments?: {
    readonly throws?: string
    readonly rename?: { readonly [from: string]: string }
    readonly set?: JsonObject
    readonly inPlace?: boolean
  }
  readonly cases?: ReadonlyArray<
    Behaviour & { readonly when: { readonly call?: string; readonly args?: JsonObject; readonly nth?: number } }
  >
}

export type StreamStep = {
  readonly at?: number
  readonly type: string
  readonly call?: string
  readonly tool?: string
  readonly delta?: string
  readonly index?: number
  readonly args?: JsonObject
  readonly stopReason?: StopReason
  readonly content?: Content
  readonly errorMessage?: string
  readonly noResult?: boolean
  readonly message?: string
}
export interface Response {
  readonly setup?: number
  readonly throws?: string
  readonly throwsRaw?: boolean
  readonly events?: ReadonlyArray<StreamStep>
  readonly onAbort?: "error" | number | "ignore" | "throw"
  readonly sharedPartial?: boolean
  readonly frozen?: boolean
}

export interface Rule {
  readonly times?: number
  readonly delay?: number
  readonly onAbort?: "ignore" | "throw"
  readonly throws?: string
  readonly do?: ReadonlyArray<InnerAction>
}
export interface ToolMatch {
  readonly tool?: string
  readonly call?: string
  readonly args?: JsonObject
  readonly isError?: boolean
}
export interface ContextSpec {
  readonly messages?: ReadonlyArray<Message> | "live"
  readonly keepLast?: number
  readonly keepSystem?: boolean
  readonly tools?: ReadonlyArray<string>
}
interface Numbered extends Rule {
  readonly n?: number
}
export interface UpdateRule extends Numbered {
  readonly stopReason?: StopReason
  readonly model?: string
  readonly thinkingLevel?: Level
  readonly messages?: ReadonlyArray<Message>
  readonly context?: ContextSpec
}
export interface HookRules {
  readonly beforeToolCall?: ReadonlyArray<
    Rule & {
      readonly match?: ToolMatch
      readonly block?: boolean
      readonly reason?: string
      readonly terminate?: boolean
      readonly setArgs?: JsonObject
    }
  >
  readonly afterToolCall?: ReadonlyArray<
    Rule & {
      readonly match?: ToolMatch
      readonly patch?: {
        readonly content?: Content
        readonly details?: unknown
        readonly structuredContent?: Json
        readonly usage?: Usage
        readonly isError?: boolean
        readonly terminate?: boolean
      }
    }
  >
  readonly finishTurn?: ReadonlyArray<
    Numbered & { readonly stopReason?: StopReason; readonly action?: "end" | "continue" }
  >
  readonly prepareNextTurn?: ReadonlyArray<UpdateRule>
  readonly prepareRequest?: ReadonlyArray<UpdateRule>
  readonly transformContext?: ReadonlyArray<
    Numbered & { readonly keepLast?: number; readonly keepSystem?: boolean; readonly inPlace?: boolean }
  >
  readonly convertToLlm?: ReadonlyArray<
    Numbered & { readonly roles?: { readonly [role: string]: "user" | "drop" | "keep" } }
  >
  readonly getApiKey?: ReadonlyArray<Numbered & { readonly key?: string }>
}

export interface ListenerRule extends Rule {
  readonly on: string
  readonly role?: string
  readonly call?: string
  readonly nth?: number
  readonly mutate?: Content
}
export interface ListenerDefinition {
  readonly name: string
  readonly initially?: boolean
  readonly rules: ReadonlyArray<ListenerRule>
}

type LowLevelContext = { readonly messages?: ReadonlyArray<Message>; readonly tools?: ReadonlyArray<string> }
type Mode = "all" | "one-at-a-time"
export type InnerAction =
  | {
    readonly do: "prompt"
    readonly input: Message | ReadonlyArray<Message>
    readonly images?: ReadonlyArray<Block>
  }
  | {
    readonly do:
      | "continue"
      | "waitIdle"
      | "abort"
      | "reset"
      | "clearSteering"
      | "clearFollowUp"
      | "clearAll"
      | "peek"
      | "snapshot"
  }
  | { readonly do: "steer" | "followUp" | "pushMessage"; readonly message: Message }
  | { readonly do: "setTools"; readonly tools: ReadonlyArray<string> }
  | { readonly do: "setModel"; readonly model: string }
  | { readonly do: "setThinkingLevel"; readonly level: Level }
  | { readonly do: "setSessionId"; readonly id: string }
  | { readonly do: "setMessages"; readonly messages: ReadonlyArray<Message> }
  | { readonly do: "setSteeringMode" | "setFollowUpMode"; readonly mode: Mode }
  | { readonly do: "setToolExecution"; readonly mode: "parallel" | "sequential" }
  | { readonly do: "subscribe" | "unsubscribe"; readonly listener: string }
  | { readonly do: "loop" | "loopStream"; readonly prompts: ReadonlyArray<Message>; readonly context: LowLevelContext }
  | { readonly do: "loopContinue"; readonly context: LowLevelContext }
export type LowLevelAction = Extract<InnerAction, { readonly context: LowLevelContext }>
export type Action = InnerAction & { readonly at: number }

export interface Scenario {
  readonly format: 1
  readonly name: string
  readonly description: string
  readonly covers?: ReadonlyArray<string>
  readonly divergence?: string
  readonly tags?: ReadonlyArray<string>
  readonly agent: {
    readonly systemPrompt?: string
    readonly model?: string
    readonly thinkingLevel?: Level
    readonly tools?: ReadonlyArray<string>
    readonly messages?: ReadonlyArray<Message>
    readonly toolExecution?: "parallel" | "sequential"
    readonly steeringMode?: Mode
    readonly followUpMode?: Mode
    readonly sessionId?: string
  }
  readonly tools?: ReadonlyArray<ToolDefinition>
  readonly hooks?: HookRules
  readonly listeners?: ReadonlyArray<ListenerDefinition>
  readonly model: ReadonlyArray<Response>
  readonly timeline: ReadonlyArray<Action>
}
