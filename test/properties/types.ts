/**
 * A scenario: plain data that says what the model, the tools, the hooks and the listeners of one agent do and when what is
 * done with it. Times are milliseconds of the virtual clock.
 *
 * Whatever a scenario names and does not have (a tool that was shrunk away, a listener with a number too high) is ignored
 * where it is named, so that any part of a scenario can be left out.
 */
import type { AgentEventType } from "../../src/Events.ts"
import type { AgentMessage, ThinkingLevel } from "../../src/Messages.ts"
import type { QueueMode } from "../../src/Queues.ts"
import type { StreamEvent } from "../../src/StreamFn.ts"
import type { ExecutionMode } from "../../src/Tools.ts"
import type { Oddity } from "./oddities.ts"

/** How long something takes; `forever` ends when the scenario is over. */
export type Span = number | "forever"

/** One thing that code of the user does. */
export type Step =
  /** Sleeps; when it is interrupted its finalizer takes `cleanup`. */
  | { readonly do: "sleep"; readonly ms: Span; readonly cleanup?: Span }
  /** Sleeps and ignores interruption. */
  | { readonly do: "deaf"; readonly ms: Span }
  /** Waits for a promise that knows nothing of interruption. */
  | { readonly do: "promise"; readonly ms: number; readonly rejects?: boolean }
  | { readonly do: "yield" }
  /** Does something with the agent: in place, or from outside of the run without waiting for it. */
  | { readonly do: "act"; readonly action: Action; readonly outside?: boolean }
  /** Goes on beside the rest, as a child of the fiber or on its own. */
  | { readonly do: "background"; readonly detached: boolean; readonly steps: ReadonlyArray<Step> }
  | { readonly do: "fail" | "die" | "throw"; readonly with: Oddity }
  | { readonly do: "interrupt" }
  /** Only in tools. */
  | { readonly do: "update"; readonly output: Oddity }
  | { readonly do: "nested"; readonly tool: string; readonly args: unknown; readonly progress?: boolean }

/** What code of the user does when it is called. `sync`: as a plain function, which can only act, throw and return. */
export interface Work {
  readonly sync?: boolean
  readonly steps: ReadonlyArray<Step>
}

/** Messages that are given to the agent; each gets a text of its own when it is given. */
export type Input = "text" | "message" | "custom" | "system" | "odd" | "rich"

/** Something that is done with the agent. Queued messages and listeners are named by number, modulo how many there are. */
export type Action =
  | {
    readonly do: "prompt"
    readonly inputs: ReadonlyArray<Input>
    readonly whileRunning?: "steer" | "followUp"
    /** Interrupts the prompt after this time. */
    readonly timeout?: number
    /** Reads the events as a stream, and stops after so many. */
    readonly take?: number
  }
  | { readonly do: "invalidPrompt"; readonly prompt: "empty" | "undecodable" }
  | { readonly do: "continue" }
  | { readonly do: "steer" | "followUp"; readonly input: Input; readonly id?: string }
  | { readonly do: "note"; readonly input: Input }
  | { readonly do: "offerSteering" | "offerFollowUp"; readonly input: Input }
  | { readonly do: "withdraw"; readonly receipt: number }
  | { readonly do: "clearSteering" | "clearFollowUps" | "clearQueues" }
  | { readonly do: "abort" | "awaitIdle" | "reset" }
  /** Interrupts the fiber of a prompt that is waited for from outside. */
  | { readonly do: "interruptPrompt" }
  | { readonly do: "setModel"; readonly model: string }
  | { readonly do: "setThinkingLevel"; readonly level: ThinkingLevel }
  | { readonly do: "setToolExecution"; readonly mode: ExecutionMode }
  | { readonly do: "setTools"; readonly tools: ReadonlyArray<string> }
  | { readonly do: "setSessionId"; readonly id: string }
  | { readonly do: "setSteeringMode" | "setFollowUpMode"; readonly mode: QueueMode }
  | { readonly do: "append" | "setMessages"; readonly inputs: ReadonlyArray<Input> }
  | { readonly do: "subscribe" | "unsubscribe"; readonly listener: number }
  | { readonly do: "peek" }
  /** Closes the agent's scope. */
  | { readonly do: "close" }

/** An action and when it is done; `joined`: right behind the one before, with nothing in between. */
export interface TimedAction {
  readonly at: number
  readonly joined?: boolean
  readonly action: Action
}

/** Events of a response that arrive together. */
export interface Chunk {
  /** How long after the chunk before. */
  readonly after: number
  /** Done before the events are handed over. */
  readonly steps?: ReadonlyArray<Step>
  /** What a provider might send: it need not keep the protocol. */
  readonly events: ReadonlyArray<StreamEvent>
}

export interface Response {
  /** What goes wrong before there is a stream. */
  readonly opening?: "throws" | "none"
  /** Done when the stream is opened. */
  readonly setup?: ReadonlyArray<Step>
  readonly chunks: ReadonlyArray<Chunk>
  /** What comes after the last chunk, when anybody still reads. */
  readonly end: "done" | "open" | "fail" | "die" | "interrupt"
  /** How long closing the stream takes. */
  readonly cleanup?: Span
}

export interface Tool {
  readonly name: string
  /** `number`: wants `{ n: number }`; `any`: takes everything. */
  readonly parameters: "any" | "number"
  readonly mode?: ExecutionMode
  readonly timeout?: number
  readonly retry?: { readonly times: number; readonly every: number }
  readonly prepare?: Work
  /** Whether the agent has it from the start; the others come by `setTools` and hooks. */
  readonly spare?: boolean
  /** What each execution does, in order; later ones are quick and give a text. */
  readonly runs: ReadonlyArray<{ readonly work: Work; readonly output: Oddity }>
}

export type HookKind =
  | "transformContext"
  | "convertToLlm"
  | "beforeToolCall"
  | "afterToolCall"
  | "finishTurn"
  | "prepareNextTurn"
  | "prepareRequest"
  | "apiKey"

/** What a hook answers. Each kind knows some of them; the others mean nothing. */
export type Answer =
  | "nothing"
  | "odd"
  /** transformContext, convertToLlm, prepareNextTurn, prepareRequest: what becomes of the conversation. */
  | "same"
  | "short"
  | "noResults"
  | "empty"
  | "more"
  /** beforeToolCall */
  | "allow"
  | "otherArguments"
  | "block"
  | "blockAndTerminate"
  /** afterToolCall */
  | "content"
  | "details"
  | "error"
  | "noError"
  | "terminate"
  /** finishTurn */
  | "end"
  | "continue"
  /** prepareNextTurn, prepareRequest */
  | "model"
  | "thinking"
  | "messages"
  | "fewerTools"
  | "moreTools"
  | "doubleTools"
  /** apiKey */
  | "key"

export interface Hook {
  readonly kind: HookKind
  /** What each call does, in order; later ones answer nothing at once. */
  readonly runs: ReadonlyArray<{ readonly work: Work; readonly answer: Answer }>
}

/** What a listener does at the n-th event of a type, counted from 1. */
export interface Rule {
  readonly on: AgentEventType
  readonly nth: number
  readonly work: Work
}

export interface Listener {
  readonly required?: boolean
  /** Not subscribed from the start. */
  readonly later?: boolean
  readonly rules: ReadonlyArray<Rule>
}

/** Somebody who reads the events as they come, and takes so long for each. */
export interface Observer {
  readonly capacity: number
  readonly strategy: "sliding" | "dropping"
  readonly every: number
}

export interface Limits {
  readonly turns?: number
  readonly toolCalls?: number
  readonly tokens?: number
  readonly cost?: number
  readonly duration?: number
}

export interface Options {
  readonly systemPrompt?: string
  readonly steeringMode?: QueueMode
  readonly followUpMode?: QueueMode
  readonly toolExecution?: ExecutionMode
  readonly toolConcurrency?: number
  readonly toolTimeout?: number
  readonly toolRetry?: { readonly times: number; readonly every: number }
  readonly maxResultLength?: number
  readonly hookTimeout?: number
  readonly firstEventTimeout?: number
  readonly eventTimeout?: number
  readonly limits?: Limits
  readonly repeatedCalls?: number
  readonly wrapUp?: boolean
  readonly gracePeriod?: number
}

export interface Scenario {
  readonly seed: number
  /** After how many operations a fiber lets others go on; default: Effect's own. */
  readonly yieldAfter?: number
  readonly options: Options
  /** What all runs of the agent may spend together. */
  readonly budget?: Limits
  /** The stored transcript the agent starts with. */
  readonly stored: ReadonlyArray<AgentMessage>
  /** The responses, in order; later requests are answered with a text. */
  readonly model: ReadonlyArray<Response>
  readonly tools: ReadonlyArray<Tool>
  readonly hooks: ReadonlyArray<Hook>
  readonly listeners: ReadonlyArray<Listener>
  readonly observer?: Observer
  readonly timeline: ReadonlyArray<TimedAction>
}
