/**
 * The state of one run: what it works with, what it has recorded, and where it stands. Where it stands is read off the
 * events it emits, so that whoever ends the run, the loop itself or an abort, knows what is open.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Schedule from "effect/Schedule"
import type * as Stream from "effect/Stream"
import { BudgetState, type Limits } from "../Budget.ts"
import type { Conversion } from "../ConvertToLlm.ts"
import type { Limit, ListenerError, ModelError, RunError, RunOutcome } from "../Errors.ts"
import type { AgentEvent } from "../Events.ts"
import type { FinishedTurn, HookSet, RunContext } from "../Hooks.ts"
import {
  addUsage,
  type AgentMessage,
  type AssistantMessage,
  emptyUsage,
  type ThinkingLevel,
  type ToolResultMessage,
  type Usage
} from "../Messages.ts"
import type { MessageQueue } from "../Queues.ts"
import type { RunResult } from "../RunResult.ts"
import type { Model, StreamEvent, StreamRequest } from "../StreamFn.ts"
import type { ExecutionMode } from "../Tools.ts"
import type { Accumulator } from "./accumulator.ts"
import type { Batch } from "./batch.ts"
import { canonicalText } from "./canonical.ts"
import { Emitter, type EventSource, type Pending, type Subscribers } from "./emitter.ts"
import { stopForListener } from "./lifecycle.ts"
import type { Probe } from "./probe.ts"
import type { Time } from "./time.ts"
import type { ToolSet } from "./toolSet.ts"
import { Transcript } from "./transcript.ts"

/** What a run calls. */
export interface RunFunctions {
  readonly stream: (request: StreamRequest) => Stream.Stream<StreamEvent, ModelError>
  readonly hooks: HookSet
  readonly conversion: Conversion
}

/** What a run reads messages from. */
export interface Inbox {
  readonly steering: MessageQueue | undefined
  readonly followUps: MessageQueue | undefined
  /** Messages to record when a request is made anyway; the run takes them one by one. */
  notes: ReadonlyArray<AgentMessage>
}

/** What stays the same during a run. */
export interface RunConfig extends Pick<StreamRequest, "headers" | "metadata" | "thinkingBudgets"> {
  readonly toolConcurrency: number | "unbounded"
  /** Milliseconds, as all durations here. */
  readonly toolTimeout: number | undefined
  readonly toolRetry: Schedule.Schedule<unknown> | undefined
  /** Characters. */
  readonly maxResultLength: number
  readonly hookTimeout: number | undefined
  readonly firstEventTimeout: number | undefined
  readonly eventTimeout: number | undefined
  readonly limits: Limits | undefined
  readonly repeatedCalls: number | undefined
  readonly wrapUp: boolean
  /** How long a stop waits for what does not stop. */
  readonly gracePeriod: number
}

/** What hooks and the host may change during a run; it counts from the next request. */
export interface RunSettings {
  model: Model
  thinkingLevel: ThinkingLevel
  tools: ToolSet
  toolExecution: ExecutionMode
}

/** Messages read from a queue and not emitted yet; what is left when the run ends goes back to the queue's front. */
export interface Held {
  readonly queue: MessageQueue
  messages: ReadonlyArray<AgentMessage>
  /** The first that is not emitted. */
  next: number
}

export class Run implements EventSource {
  functions: RunFunctions
  readonly config: RunConfig
  readonly sessionId: string | undefined
  readonly inbox: Inbox
  readonly settings: RunSettings
  readonly emitter: Emitter
  /** Everything that is recorded. */
  readonly transcript: Transcript
  /** What the model sees: the transcript, until a hook replaces it for this run. */
  context: Transcript
  /** What this run added. */
  readonly added: Array<AgentMessage> = []

  /** The error that the last turn told of. */
  errorMessage: string | undefined

  /** What it begins with; see {@link takePrompt}. */
  prompts: ReadonlyArray<AgentMessage> = []
  #nextPrompt = 0
  held: Held | undefined
  started = false
  turnOpen = false
  /** The message between its start and its end. */
  openMessage: AgentMessage | undefined
  response: Accumulator | undefined
  /** How many turns began. */
  turns = 0
  /** The finished assistant message of the open turn. */
  turnMessage: AssistantMessage | undefined
  batch: Batch | undefined
  turnResults: Array<ToolResultMessage> = []
  /** `finishTurn` was asked about the open turn. */
  turnFinished = false
  lastTurn: FinishedTurn | undefined
  ended = false

  /** What the open turn's request asked for. */
  requested: Pick<RunSettings, "model" | "thinkingLevel"> | undefined
  /** The error that the last message of the run tells of. */
  told: RunError | undefined
  outcome: RunOutcome | undefined
  result: RunResult | undefined
  settled = false
  /** The services its tools were given with; they are part of the context its fiber works in. */
  readonly given: Context.Context<never>
  /** The context its fiber works in, in which code of the run knows that it is inside. */
  services: Context.Context<never> = Context.empty()

  /** What the run counts against, with the budgets around it. */
  readonly budget: BudgetState | undefined
  /** That of the run's own limits. */
  readonly ownBudget: BudgetState | undefined
  /** The limit that ends the run. */
  limit: Limit | undefined
  /** The last call, and how often it was made in a row. */
  repeatedCall = ""
  repeatedTimes = 0
  /** Work that missed its deadline; it was interrupted and is awaited once more when the run ends. */
  leftovers: Array<Fiber.Fiber<unknown, unknown>> | undefined

  /** How the run ends, when something other than the loop decided it: an abort, a deadline, a required listener. */
  stop: RunOutcome | undefined
  /** A stop watches over the end of the run. */
  watched = false
  /** Who ends the run; whoever finds another number here has been replaced and stops. */
  owner = 0
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  /** The run whose code started this one. */
  parent: Run | undefined
  /** What the responses of the runs inside this one used. */
  childUsage: Usage = emptyUsage
  /** Who watches over it. */
  probe: Probe | undefined
  /** Work of the ending that an abort does not wait for beyond the grace period. */
  finishing: Fiber.Fiber<unknown, unknown> | undefined
  readonly done = Deferred.makeUnsafe<RunResult>()
  /** Called once, when the run is over and before anybody who waits for it goes on. */
  settle: (result: RunResult) => Effect.Effect<void>
  /** Of the clock the run started with. */
  readonly time: Time

  constructor(options: {
    readonly functions: RunFunctions
    readonly given: Context.Context<never>
    readonly config: RunConfig
    readonly sessionId: string | undefined
    readonly inbox: Inbox
    readonly settings: RunSettings
    readonly transcript: Transcript
    /** The budget the run is made within. */
    readonly budget: BudgetState | undefined
    readonly time: Time
    readonly subscribers: Subscribers
    readonly settle: (result: RunResult) => Effect.Effect<void>
  }) {
    this.functions = options.functions
    this.given = options.given
    this.config = options.config
    this.sessionId = options.sessionId
    this.inbox = options.inbox
    this.settings = options.settings
    this.transcript = options.transcript
    this.context = options.transcript
    const { limits } = options.config
    this.budget = limits === undefined
      ? options.budget
      : new BudgetState(limits, options.budget === undefined ? [] : [options.budget])
    this.ownBudget = limits === undefined ? undefined : this.budget
    this.time = options.time
    this.settle = options.settle
    this.emitter = new Emitter(options.subscribers, this)
  }

  /** Milliseconds. */
  now(): number {
    return this.time.now()
  }

  get hooks(): HookSet {
    return this.functions.hooks
  }

  /** The loop is to end where it is: the run was stopped, or one in whose tool it works. */
  get stopping(): boolean {
    return this.stop !== undefined || (this.parent !== undefined && this.parent.stopping)
  }

  /**
   * Takes the next turn, if there is to be one; `true` when a limit does not allow it. Nothing is read from the queues for
   * the question.
   */
  isLimited(more: boolean): boolean {
    if (this.budget === undefined && this.config.repeatedCalls === undefined) return false
    const { followUps, steering } = this.inbox
    if (!more && !steering?.size && !followUps?.size) return false
    this.limit ??= this.budget?.spentAt(this.now()) ?? this.budget?.takeTurn()
    return this.limit !== undefined
  }

  /** Takes the prompt to record next. */
  takePrompt(): AgentMessage | undefined {
    return this.prompts[this.#nextPrompt++]
  }

  get promptsLeft(): boolean {
    return this.#nextPrompt < this.prompts.length
  }

  /** Counts the calls of a batch that repeat the one before. */
  countRepeated(content: AssistantMessage["content"]): void {
    const { repeatedCalls } = this.config
    if (repeatedCalls === undefined) return
    for (const block of content) {
      if (block.type !== "toolCall") continue
      const { arguments: args, argumentsText, name } = block
      const call = `${name} ${argumentsText ?? canonicalText(args)}`
      this.repeatedTimes = call === this.repeatedCall ? this.repeatedTimes + 1 : 1
      this.repeatedCall = call
      if (this.repeatedTimes >= repeatedCalls) this.limit = "repeatedCalls"
    }
  }

  /**
   * Emits an event for the loop. What is returned has to be yielded: the rest of the delivery, or, once the run is
   * stopping, the interruption that ends the loop here.
   */
  emit(event: AgentEvent): Pending {
    if (this.stopping) return Effect.interrupt
    const pending = this.emitter.emit(event)
    if (pending !== undefined) return Effect.andThen(pending, this.goOn)
    return this.stopping ? Effect.interrupt : undefined
  }

  /** Interrupts the loop once the run is stopping. */
  get goOn(): Effect.Effect<void> {
    return Effect.suspend(() => this.stopping ? Effect.interrupt : Effect.void)
  }

  /** Emits start and end of a whole message; see {@link emit}. */
  record(message: AgentMessage): Pending {
    const start = this.emit({ type: "message_start", message })
    return start === undefined ? this.emit({ type: "message_end", message }) : this.#endAfter(start, message)
  }

  #endAfter(start: Effect.Effect<void>, message: AgentMessage): Effect.Effect<void> {
    return Effect.flatMap(start, () => this.emit({ type: "message_end", message }) ?? Effect.void)
  }

  /** The message that has started and not ended yet, as far as it has come. */
  get streamingMessage(): AgentMessage | undefined {
    return this.openMessage !== undefined && this.response !== undefined ? this.response.snapshot() : this.openMessage
  }

  /** The working context, as hooks see it. Results of a batch are part of it once the batch is over. */
  hookContext(): RunContext {
    return {
      messages: this.context.until(this.batch?.contextLength ?? this.context.messages.length),
      tools: this.settings.tools.tools
    }
  }

  finishedTurn(message: AssistantMessage): FinishedTurn {
    return { message, toolResults: this.turnResults, context: this.hookContext(), newMessages: this.added }
  }

  /** Replaces the working context for the rest of the run; what is absent stays. */
  replaceContext(messages: ReadonlyArray<AgentMessage> | undefined, tools: ToolSet | undefined): void {
    if (messages !== undefined && messages !== this.context.messages) this.context = new Transcript(messages)
    if (tools !== undefined) this.settings.tools = tools
  }

  listenerFailed(error: ListenerError): Effect.Effect<void> {
    return stopForListener(this, error)
  }

  reduce(event: AgentEvent): void {
    switch (event.type) {
      case "message_start":
        this.openMessage = event.message
        break
      case "message_end":
        this.#recorded(event.message)
        break
      case "turn_start":
        this.turnOpen = true
        this.turns++
        break
      case "turn_end":
        this.errorMessage = event.message.errorMessage ?? this.errorMessage
        this.turnOpen = false
        this.turnMessage = undefined
        this.turnResults = []
        this.turnFinished = false
        this.requested = undefined
        break
      case "agent_start":
        this.started = true
        break
      case "agent_end":
        this.ended = true
        break
    }
  }

  #recorded(message: AgentMessage): void {
    this.openMessage = undefined
    this.transcript.push(message)
    if (this.context !== this.transcript) this.context.push(message)
    this.added.push(message)
    if (message.role === "assistant" && this.response !== undefined) {
      this.budget?.spend(message.usage)
      for (let run = this.parent; run !== undefined; run = run.parent) {
        run.childUsage = addUsage(run.childUsage, message.usage)
      }
      this.turnMessage = message
      this.response = undefined
    } else if (message.role === "toolResult" && this.batch !== undefined) {
      this.turnResults.push(message)
    }
  }
}
