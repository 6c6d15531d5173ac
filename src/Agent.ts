/**
 * The stateful host of a conversation: it keeps the transcript and the queues, runs one run at a time, tells its
 * listeners, and can be steered and aborted while it works.
 *
 * An agent lives in a scope: closing the scope aborts a run that is under way and waits until it is settled. The services
 * its tools and hooks ask for are taken from the context it is made in.
 *
 * **Failure modes**
 *
 * Misuse fails: a wrong configuration with `AgentConfigError`, a second prompt with `AgentBusy`, an unusable one with
 * `InvalidPrompt`. Whatever happens inside a run is its outcome; every message that was accepted is in the transcript or
 * still queued.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { AgentBusy, AgentConfigError, CannotContinue, InvalidPrompt } from "./Errors.ts"
import type { AgentEvent, ObservedEvent } from "./Events.ts"
import { eventStream } from "./internal/eventStream.ts"
import { makeHost } from "./internal/host.ts"
import type { RunOptions } from "./internal/options.ts"
import type { AgentMessage, ImageContent, ThinkingLevel } from "./Messages.ts"
import type { QueueMode, Receipt } from "./Queues.ts"
import type { RunResult } from "./RunResult.ts"
import type { Model, StreamFn } from "./StreamFn.ts"
import type { Any, ExecutionMode, Services } from "./Tools.ts"

/**
 * The configuration of an agent.
 *
 * - `systemPrompt` and `tools` become the first system message, unless `messages` begins with one: then that one counts
 * - `messages`: a stored transcript
 * - `transcript`: what is done with one in which calls and results do not pair, ids double or messages are empty: mended
 *   and reported to the log, or refused; default `repair`. Open calls at its end are left to the next run, which answers
 *   them. It counts for messages that are set, appended or prompted later, too
 * - `steeringMode`, `followUpMode`: how many queued messages one drain takes; default `one-at-a-time`
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<T extends ReadonlyArray<Any> = ReadonlyArray<Any>> extends RunOptions {
  readonly systemPrompt?: string | undefined
  readonly tools?: T | undefined
  readonly messages?: ReadonlyArray<AgentMessage> | undefined
  readonly transcript?: "repair" | "refuse" | undefined
  readonly steeringMode?: QueueMode | undefined
  readonly followUpMode?: QueueMode | undefined
}

/**
 * What an agent is at one moment.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentState {
  /** Read from the transcript's system messages. */
  readonly systemPrompt: string
  readonly model: Model
  readonly thinkingLevel: ThinkingLevel
  readonly tools: ReadonlyArray<Any>
  readonly messages: ReadonlyArray<AgentMessage>
  /** Whether the agent works: from the start of a run until the listeners of `agent_end` are done. */
  readonly isStreaming: boolean
  /** The message that has started and not ended yet. */
  readonly streamingMessage: AgentMessage | undefined
  readonly pendingToolCalls: ReadonlySet<string>
  /** The error of the last run's message, if it had one. */
  readonly errorMessage: string | undefined
}

/**
 * What an agent can be asked to do.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentService {
  /**
   * Runs the agent on a text, a text with images, one message or several, and gives the outcome and what was added once
   * every listener has seen the end. Interrupting it aborts the run. With `whileRunning` a prompt during a run is queued
   * and waits for the end of that run.
   *
   * Calls and results in a list of messages are paired (`Options.transcript`): results may be those of open calls at the
   * end of the transcript, and every call without a result gets an error result. A prompt to be queued may have neither.
   */
  readonly prompt: (
    input: string | AgentMessage | ReadonlyArray<AgentMessage>,
    options?: PromptOptions
  ) => Effect.Effect<RunResult, AgentBusy | InvalidPrompt>
  /**
   * Goes on from the transcript as it is. From an assistant's message it takes a batch of queued messages; calls that
   * were never answered get an error result first.
   */
  readonly continue: Effect.Effect<RunResult, AgentBusy | CannotContinue>
  /**
   * Queues a message for the run that is under way, to be read before its next request, and gives a receipt. When no run
   * is under way it waits for the next one. A message with an id that was used before is not queued again.
   *
   * Dies with `InvalidPrompt` if the message does not decode, is a tool result or has tool calls: what stands alone cannot
   * be paired. Such a message that other code offers to the queue itself is left out and logged.
   */
  readonly steer: (message: string | AgentMessage, options?: QueueOptions) => Effect.Effect<Receipt>
  /** Queues a message for when the agent would stop, and gives a receipt; refuses what {@link steer} refuses. */
  readonly followUp: (message: string | AgentMessage, options?: QueueOptions) => Effect.Effect<Receipt>
  /** Takes a queued message back, by the id of its receipt; `false` when it does not wait any more. */
  readonly withdraw: (id: string) => Effect.Effect<boolean>
  /**
   * Records a message without asking for an answer: it is part of the next request when there is one anyway, and does not
   * wake an agent that has finished. Refuses what {@link steer} refuses.
   */
  readonly note: (message: string | AgentMessage) => Effect.Effect<void>
  /**
   * The steering queue; other code may offer to it. Ended or shut down, it takes nothing more from others; what the agent
   * is asked to queue is queued and delivered all the same.
   */
  readonly steering: Queue.Enqueue<AgentMessage>
  /** The follow-up queue; as {@link steering}. */
  readonly followUps: Queue.Enqueue<AgentMessage>
  /** What the next drain would take: steering messages, or else follow-ups. */
  readonly peek: Effect.Effect<ReadonlyArray<AgentMessage>>
  /** Everything that waits in the queues, oldest first. */
  readonly queued: Effect.Effect<{
    readonly steering: ReadonlyArray<AgentMessage>
    readonly followUps: ReadonlyArray<AgentMessage>
  }>
  /** Empties the steering queue and gives what was in it. */
  readonly clearSteering: Effect.Effect<ReadonlyArray<AgentMessage>>
  /** Empties the follow-up queue and gives what was in it. */
  readonly clearFollowUps: Effect.Effect<ReadonlyArray<AgentMessage>>
  /** Empties both queues and gives what was in them, steering messages first. */
  readonly clearQueues: Effect.Effect<ReadonlyArray<AgentMessage>>
  readonly setSteeringMode: (mode: QueueMode) => Effect.Effect<void>
  readonly setFollowUpMode: (mode: QueueMode) => Effect.Effect<void>
  /**
   * Stops the run: what works is interrupted, every call is answered, and the effect ends when the run is settled. From
   * inside the run it returns at once. Does nothing when idle.
   */
  readonly abort: Effect.Effect<void>
  /** Waits until no run is under way. Fails inside a run, which would wait for itself. */
  readonly awaitIdle: Effect.Effect<void, AgentBusy>
  /** Clears the conversation and both queues; system prompt and tools stay. */
  readonly reset: Effect.Effect<void, AgentBusy>
  /** Replaces the tools; the model is told before the next request. */
  readonly setTools: <const T extends ReadonlyArray<Any>>(
    tools: T
  ) => Effect.Effect<void, AgentConfigError, Services<T[number]>>
  readonly setModel: (model: Model) => Effect.Effect<void>
  readonly setThinkingLevel: (level: ThinkingLevel) => Effect.Effect<void>
  readonly setToolExecution: (mode: ExecutionMode) => Effect.Effect<void>
  /** Counts from the next run. */
  readonly setSessionId: (sessionId: string | undefined) => Effect.Effect<void>
  /** Replaces the transcript; calls and results are paired (`Options.transcript`). */
  readonly setMessages: (messages: ReadonlyArray<AgentMessage>) => Effect.Effect<void, AgentBusy | AgentConfigError>
  /**
   * Adds to the transcript without running. Calls and results are paired (`Options.transcript`), also with calls that are
   * open at its end: those without a result are answered by an error result when anything else follows.
   */
  readonly appendMessages: (messages: ReadonlyArray<AgentMessage>) => Effect.Effect<void, AgentBusy | AgentConfigError>
  /** The transcript; the list is a copy that never changes. */
  readonly messages: Effect.Effect<ReadonlyArray<AgentMessage>>
  readonly state: Effect.Effect<AgentState>
  /**
   * Adds a listener and gives the effect that removes it. Listeners are told one event at a time, in the order of
   * subscription, and awaited; the agent's state already includes the event. One that fails is logged and costs nothing
   * else, unless it is `required`, as a session writer is: then its failure ends the run.
   */
  readonly subscribe: <E = never, R = never>(
    listener: Listener<E, R>,
    options?: { readonly required?: boolean | undefined }
  ) => Effect.Effect<Unsubscribe, never, R>
  /** {@link observe} with a buffer of 1024 events of which the oldest are left out when it is full. */
  readonly events: Stream.Stream<ObservedEvent>
  /**
   * The events of all runs, for observers that must not slow them: a bounded buffer, with a mark where events were left
   * out. The end of a run always arrives, unless a later run ended before it was read. The stream ends when the agent's
   * scope has closed and its last run has ended. It observes from the moment it is run: fork it with `startImmediately`
   * before the prompt whose events it is to see.
   */
  readonly observe: (options: ObserveOptions) => Stream.Stream<ObservedEvent>
}

/**
 * The effect that removes a listener. The tag tells Effect's language service that it may be left unused: most listeners
 * stay as long as their agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Unsubscribe extends Effect.Effect<void> {
  readonly _tag: "Unsubscribe"
}

/**
 * How a message is queued.
 *
 * @category models
 * @since 0.1.0
 */
export interface QueueOptions {
  /** Default: a number in order. One that the receipt of another message has already is replaced by the next number. */
  readonly id?: string | undefined
}

/**
 * How many events an observer may be behind, from 1, and which are left out then: the oldest (`sliding`, the default) or
 * the newest (`dropping`).
 *
 * @category models
 * @since 0.1.0
 */
export interface ObserveOptions {
  readonly capacity: number
  readonly strategy?: "sliding" | "dropping" | undefined
}

/**
 * How a prompt is taken.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptOptions {
  readonly images?: ReadonlyArray<ImageContent> | undefined
  /** Queue the prompt when a run is under way, instead of failing with `AgentBusy`. */
  readonly whileRunning?: "steer" | "followUp" | undefined
}

/**
 * A function that is told of every event.
 *
 * @category models
 * @since 0.1.0
 */
export type Listener<E = never, R = never> = (event: AgentEvent) => Effect.Effect<unknown, E, R> | void

/**
 * The service key of an agent that a whole program shares; see {@link layer}.
 *
 * @category services
 * @since 0.1.0
 */
export class Agent extends /* @__PURE__ */ Context.Service<Agent, AgentService>()("effect-pi/Agent") {}

/**
 * Makes an agent that lives as long as the scope.
 *
 * **Details**
 *
 * Hooks and the conversion are read from the context here, and so are the services of the tools. Making one per session
 * is cheap.
 *
 * **Example** (A question)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-pi"
 *
 * const program = Effect.gen(function*() {
 *   const agent = yield* Agent.make({ systemPrompt: "Be brief." })
 *   const run = yield* agent.prompt("What is an agent?")
 *   return run.outcome._tag
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <const T extends ReadonlyArray<Any> = readonly []>(
  options: Options<T> = {}
): Effect.Effect<AgentService, AgentConfigError, Scope.Scope | StreamFn | Services<T[number]>> => makeHost(options)

/**
 * A single agent as a service.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <const T extends ReadonlyArray<Any> = readonly []>(
  options: Options<T> = {}
): Layer.Layer<Agent, AgentConfigError, StreamFn | Exclude<Services<T[number]>, Scope.Scope>> =>
  Layer.effect(Agent, make(options))

/**
 * The events of one prompt as a stream, up to `agent_end`.
 *
 * **Details**
 *
 * Nothing is lost: the run waits when the consumer is slow. Ending the stream early aborts the run, as when the client of
 * a server-sent event stream goes away.
 *
 * @category combinators
 * @since 0.1.0
 */
export const stream = (
  agent: AgentService,
  input: string | AgentMessage | ReadonlyArray<AgentMessage>,
  options?: Omit<PromptOptions, "whileRunning">
): Stream.Stream<AgentEvent, AgentBusy | InvalidPrompt> =>
  eventStream((emit, taken) =>
    Effect.acquireUseRelease(
      agent.subscribe(emit),
      () => Effect.tap(agent.prompt(input, options), ({ outcome }) => taken(outcome)),
      (unsubscribe) => unsubscribe
    )
  )

/**
 * A listener for the text of responses, as it comes.
 *
 * **Details**
 *
 * When the model begins again, what was told of the response no longer counts. `onRetract` is told why; without it, a line
 * that says so takes the place of a delta.
 *
 * **Example** (Printing a response)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-pi"
 *
 * const print = Agent.onText((delta) => Effect.sync(() => process.stdout.write(delta)))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const onText = <E = never, R = never, E2 = never, R2 = never>(
  f: (delta: string) => Effect.Effect<unknown, E, R> | void,
  options?: { readonly onRetract?: (reason: string | undefined) => Effect.Effect<unknown, E2, R2> | void }
): Listener<E | E2, R | R2> =>
(event): Effect.Effect<unknown, E | E2, R | R2> | void => {
  if (event.type !== "message_update") return
  const { assistantMessageEvent: update } = event
  if (update.type === "text_delta") return f(update.delta)
  if (update.type !== "retract") return
  const { errorMessage } = update
  if (options?.onRetract !== undefined) return options.onRetract(errorMessage)
  return f(`\n[begins again${errorMessage === undefined ? "" : `: ${errorMessage}`}]\n`)
}
