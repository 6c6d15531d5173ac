/**
 * The agent behind `Agent.make`: one object per agent, whose methods are shared.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type {
  AgentService,
  AgentState,
  Listener,
  ObserveOptions,
  Options,
  QueueOptions,
  Unsubscribe
} from "../Agent.ts"
import { Budget, type BudgetState } from "../Budget.ts"
import { AgentBusy, type AgentConfigError, CannotContinue, type InvalidPrompt } from "../Errors.ts"
import type { ObservedEvent } from "../Events.ts"
import { type Beginning, doubleLoop } from "../Loop.ts"
import { addUsage, type AgentMessage, emptyUsage, initialSystem, user } from "../Messages.ts"
import { MessageQueue, type QueueMode, type Receipt } from "../Queues.ts"
import { RunResult } from "../RunResult.ts"
import type { StreamFn } from "../StreamFn.ts"
import type { Any, ExecutionMode, Services } from "../Tools.ts"
import { admit } from "./admit.ts"
import { checkOneOf } from "./checks.ts"
import { commonBudget, CurrentRun, isInside, layeredBudget, withoutAmbient, withoutRun } from "./currentRun.ts"
import { type Subscriber, subscriber, type Subscribers } from "./emitter.ts"
import {
  checkQueueable,
  pairPrompts,
  readPaired,
  readPrompt,
  readWhileRunning,
  type TranscriptMode
} from "./hostInput.ts"
import { wellFormed } from "./json.ts"
import { abort as abortRun, join, start } from "./lifecycle.ts"
import { Mailbox } from "./mailbox.ts"
import { observe } from "./observer.ts"
import { answersToOpenCalls } from "./openCalls.ts"
import { readConfig, readFunctions, readSettings } from "./options.ts"
import { logMended, type Paired, pairUp } from "./pairing.ts"
import { logRefused, readQueued, takeDeliverable } from "./queued.ts"
import { Run, type RunConfig, type RunSettings } from "./run.ts"
import { Time } from "./time.ts"
import { makeToolSet } from "./toolSet.ts"
import { Transcript } from "./transcript.ts"

const busy = (message: string): AgentBusy => new AgentBusy({ reason: "Running", message })

const busyPrompting = () =>
  busy(
    "Agent is already processing a prompt. Use steer() or followUp() to queue messages, or wait for completion."
  )
const busyFor = (what: string) => () => busy(`Agent is already processing. Wait for completion before ${what}.`)
const busyContinuing = busyFor("continuing")
const busyResetting = busyFor("resetting")
const busyChanging = busyFor("changing messages")
const busyWaiting = () =>
  new AgentBusy({ reason: "Inside", message: "The agent cannot be awaited from inside its own run." })
const closed = () => new AgentBusy({ reason: "Closed", message: "The agent's scope has closed; make another agent." })

/** From the start of a run until the agent is idle: the run, and those that follow-ups of its listeners start. */
interface Activity {
  run: Run
  aborted: boolean
  readonly results: Array<RunResult>
  readonly done: Deferred.Deferred<RunResult>
}

/** The last outcome and all messages of runs that followed each other. */
const joined = (results: ReadonlyArray<RunResult>): RunResult => {
  const last = results[results.length - 1]!
  if (results.length === 1) return last
  const childUsage = results.reduce((total, result) => addUsage(total, result.childUsage), emptyUsage)
  return new RunResult(last.outcome, results.flatMap((result) => result.messages), childUsage)
}

/** Takes the next batch of a queue to begin a run with it; adds what is wrong with what was left out. */
const takePrompts = (queue: MessageQueue, refused: Array<string>): ReadonlyArray<AgentMessage> => {
  const batch = takeDeliverable(queue)
  refused.push(...batch.refused)
  for (const message of batch.messages) queue.delivered(message, 1)
  return batch.messages
}

const withText = (message: string | AgentMessage): AgentMessage => typeof message === "string" ? user(message) : message

type Restore = <B>(effect: Effect.Effect<B>) => Effect.Effect<B>

const noCalls: ReadonlySet<string> = new Set()

/** Methods are getters of functions: they work when they are taken off the agent, and cost an idle agent nothing. */
class Host implements AgentService {
  readonly #config: RunConfig
  readonly #services: Context.Context<StreamFn>
  /** The budget the agent was made in. */
  readonly #budget: BudgetState | undefined
  readonly #settings: RunSettings
  readonly #subscribers: Subscribers = { list: [] }
  readonly #mailbox: Mailbox
  readonly #transcriptMode: TranscriptMode
  #sessionId: string | undefined
  #transcript: Transcript
  #activity: Activity | undefined
  #observers: Set<() => void> | undefined
  #errorMessage: string | undefined
  #closed = false

  constructor(options: {
    readonly config: RunConfig
    readonly services: Context.Context<StreamFn>
    readonly budget: BudgetState | undefined
    readonly settings: RunSettings
    readonly messages: ReadonlyArray<AgentMessage>
    readonly mailbox: Mailbox
    readonly sessionId: string | undefined
    readonly transcriptMode: TranscriptMode
  }) {
    this.#config = options.config
    this.#services = options.services
    this.#budget = options.budget
    this.#settings = options.settings
    this.#transcript = new Transcript(options.messages)
    this.#mailbox = options.mailbox
    this.#sessionId = options.sessionId
    this.#transcriptMode = options.transcriptMode
  }

  // ---------------------------------------------------------------------------
  // Runs
  // ---------------------------------------------------------------------------

  get prompt(): AgentService["prompt"] {
    return (input, options = {}) =>
      this.#guarded((fiber, restore): Effect.Effect<RunResult, AgentBusy | InvalidPrompt> => {
        const activity = this.#activity
        if (activity !== undefined && (options.whileRunning === undefined || isInside(fiber, activity.run))) {
          return Effect.fail(busyPrompting())
        }
        if (this.#closed) return Effect.fail(closed())
        const messages = Result.flatMap(readWhileRunning(options), () => readPrompt(input, options))
        if (Result.isFailure(messages)) return Effect.fail(messages.failure)
        if (activity === undefined) {
          const paired = pairPrompts(this.#transcript.messages, messages.success, this.#transcriptMode)
          if (Result.isFailure(paired)) return Effect.fail(paired.failure)
          const { messages: prompts, results } = paired.success
          const begun = this.#begin(fiber, restore, { _tag: "Prompts", results, prompts, fromSteering: false })
          return Effect.andThen(logMended("prompt", paired.success), begun)
        }
        const queueable = checkQueueable(messages.success)
        if (Result.isFailure(queueable)) return Effect.fail(queueable.failure)
        const queue = options.whileRunning === "steer" ? this.#mailbox.steering : this.#mailbox.followUps
        for (const message of messages.success) queue.offer(message)
        return join(restore, activity.done, this.abort)
      })
  }

  get continue(): Effect.Effect<RunResult, AgentBusy | CannotContinue> {
    return this.#guarded((fiber, restore): Effect.Effect<RunResult, AgentBusy | CannotContinue> => {
      if (this.#activity !== undefined) return Effect.fail(busyContinuing())
      if (this.#closed) return Effect.fail(closed())
      const { messages } = this.#transcript
      const last = messages.at(-1)
      if (last === undefined || messages.every((message) => message.role === "system")) {
        return Effect.fail(
          new CannotContinue({ reason: "EmptyTranscript", message: "No messages to continue from" })
        )
      }
      const results = answersToOpenCalls(messages)
      if (last.role !== "assistant" || results.length > 0) {
        return this.#begin(fiber, restore, { _tag: "Continue", results })
      }
      const refused: Array<string> = []
      for (const queue of [this.#mailbox.steering, this.#mailbox.followUps]) {
        if (queue.size === 0) continue
        // A run that may not begin a turn reads no queue (L7).
        if (this.#spent(fiber)) return this.#begin(fiber, restore, { _tag: "Continue", results })
        const prompts = takePrompts(queue, refused)
        if (prompts.length === 0) continue
        const fromSteering = queue === this.#mailbox.steering
        const begun = this.#begin(fiber, restore, { _tag: "Prompts", results: [], prompts, fromSteering })
        return Effect.andThen(logRefused(refused), begun)
      }
      return Effect.andThen(
        logRefused(refused),
        new CannotContinue({ reason: "AssistantTail", message: "Cannot continue from message role: assistant" })
      )
    })
  }

  /**
   * What asks whether the agent is idle and makes it busy is one operation, inside a region that is not interrupted: two
   * prompts never both begin, and none begins without somebody who waits for it.
   */
  #guarded<A, E>(
    f: (fiber: Fiber.Fiber<unknown, unknown>, restore: Restore) => Effect.Effect<A, E>
  ): Effect.Effect<A, E> {
    return Effect.uninterruptibleMask((restore) => Effect.withFiber((fiber) => f(fiber, restore)))
  }

  get abort(): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      const activity = this.#activity
      if (activity === undefined) return Effect.void
      activity.aborted = true
      const aborting = abortRun(activity.run)
      return isInside(fiber, activity.run)
        ? aborting
        : Effect.andThen(aborting, Effect.asVoid(Deferred.await(activity.done)))
    })
  }

  get awaitIdle(): Effect.Effect<void, AgentBusy> {
    return Effect.withFiber((fiber) => {
      const activity = this.#activity
      if (activity === undefined) return Effect.void
      if (isInside(fiber, activity.run)) return Effect.fail(busyWaiting())
      return Effect.asVoid(Deferred.await(activity.done))
    })
  }

  #spent(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    const budget = commonBudget(this.#budget, fiber.getRef(Budget))
    return budget?.spentAt(fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()) !== undefined
  }

  #begin(fiber: Fiber.Fiber<unknown, unknown>, restore: Restore, beginning: Beginning): Effect.Effect<RunResult> {
    const run = this.#makeRun(new Time(fiber.getRef(Clock.Clock)), commonBudget(this.#budget, fiber.getRef(Budget)))
    const activity: Activity = { run, aborted: false, results: [], done: Deferred.makeUnsafe() }
    this.#activity = activity
    this.#start(run, fiber.context, beginning)
    return join(restore, activity.done, this.abort)
  }

  #start(run: Run, context: Context.Context<never>, beginning: Beginning): void {
    start(run, Context.merge(context, this.#services), doubleLoop(run, beginning))
  }

  #makeRun(time: Time, budget: BudgetState | undefined): Run {
    return new Run({
      functions: readFunctions(this.#services),
      given: this.#services,
      config: this.#config,
      sessionId: this.#sessionId,
      inbox: this.#mailbox,
      settings: { ...this.#settings },
      transcript: this.#transcript,
      budget,
      time,
      subscribers: this.#subscribers,
      settle: (result) => this.#settle(time, budget, result)
    })
  }

  /**
   * Makes the agent idle, unless a listener of `agent_end` queued a follow-up: then a further run begins (Q5). It begins
   * in a later step, so that runs that follow each other do not nest.
   */
  #settle(time: Time, budget: BudgetState | undefined, result: RunResult): Effect.Effect<void> {
    const activity = this.#activity!
    activity.results.push(result)
    this.#errorMessage = activity.run.errorMessage
    const goesOn = result.outcome._tag === "Completed" && result.outcome.by !== "FinishTurn"
    if (!goesOn || this.#mailbox.followUps.size === 0) {
      this.#becomeIdle(time, activity)
      return Effect.void
    }
    return Effect.asVoid(Effect.forkDetach(Effect.withFiber((fiber) => {
      const kept = activity.aborted ? "aborted" : budget?.spentAt(time.now()) === undefined ? undefined : "limited"
      if (kept !== undefined) this.#mailbox.returned(kept)
      const refused: Array<string> = []
      const prompts = kept === undefined ? takePrompts(this.#mailbox.followUps, refused) : []
      if (prompts.length === 0) {
        this.#becomeIdle(time, activity)
        return logRefused(refused)
      }
      // It stands beside the run that ended, not inside of it.
      const { parent } = activity.run
      activity.run = this.#makeRun(time, budget)
      const beside = Context.add(fiber.context, CurrentRun, parent)
      return Effect.map(
        logRefused(refused),
        () => this.#start(activity.run, beside, { _tag: "Prompts", results: [], prompts, fromSteering: false })
      )
    })))
  }

  #becomeIdle(time: Time, activity: Activity): void {
    this.#activity = undefined
    const { notes } = this.#mailbox
    if (notes.length > 0) {
      this.#mailbox.notes = []
      this.#append(pairUp(this.#transcript.messages, notes, false), time.now())
    }
    if (this.#closed) this.#leave()
    Deferred.doneUnsafe(activity.done, Exit.succeed(joined(activity.results)))
  }

  // ---------------------------------------------------------------------------
  // Queues
  // ---------------------------------------------------------------------------

  get steer(): AgentService["steer"] {
    return (message: string | AgentMessage, options?: QueueOptions): Effect.Effect<Receipt> => {
      return Effect.sync(() => this.#post("steering", withText(message), options))
    }
  }

  get followUp(): AgentService["followUp"] {
    return (message: string | AgentMessage, options?: QueueOptions): Effect.Effect<Receipt> => {
      return Effect.sync(() => this.#post("followUps", withText(message), options))
    }
  }

  #post(to: "steering" | "followUps", message: AgentMessage, options: QueueOptions | undefined): Receipt {
    const receipt = this.#mailbox.post(to, message, options?.id, this.#activity === undefined)
    if (this.#closed && this.#activity === undefined) this.#mailbox.returned("disposed")
    return receipt
  }

  get withdraw(): AgentService["withdraw"] {
    return (id: string): Effect.Effect<boolean> => {
      return Effect.sync(() => this.#mailbox.withdraw(id))
    }
  }

  get note(): AgentService["note"] {
    return (message: string | AgentMessage): Effect.Effect<void> => {
      return Effect.clockWith((clock) => {
        const note = Result.getOrThrow(readQueued(withText(message)))
        if (this.#activity !== undefined) this.#mailbox.notes = this.#mailbox.notes.concat(note)
        else this.#append(pairUp(this.#transcript.messages, [note], false), clock.currentTimeMillisUnsafe())
        return Effect.void
      })
    }
  }

  get steering(): Queue.Enqueue<AgentMessage> {
    return this.#mailbox.steering.queue
  }

  get followUps(): Queue.Enqueue<AgentMessage> {
    return this.#mailbox.followUps.queue
  }

  get peek(): Effect.Effect<ReadonlyArray<AgentMessage>> {
    return Effect.sync(() => this.#mailbox.peek())
  }

  get queued() {
    return Effect.sync(() => ({
      steering: this.#mailbox.steering.messages,
      followUps: this.#mailbox.followUps.messages
    }))
  }

  get clearSteering(): Effect.Effect<ReadonlyArray<AgentMessage>> {
    return Effect.sync(() => this.#mailbox.steering.clear())
  }

  get clearFollowUps(): Effect.Effect<ReadonlyArray<AgentMessage>> {
    return Effect.sync(() => this.#mailbox.followUps.clear())
  }

  get clearQueues(): Effect.Effect<ReadonlyArray<AgentMessage>> {
    return Effect.sync(() => this.#mailbox.clear())
  }

  get setSteeringMode(): AgentService["setSteeringMode"] {
    return (mode: QueueMode): Effect.Effect<void> => {
      return Effect.sync(() => {
        this.#mailbox.steering.mode = mode
      })
    }
  }

  get setFollowUpMode(): AgentService["setFollowUpMode"] {
    return (mode: QueueMode): Effect.Effect<void> => {
      return Effect.sync(() => {
        this.#mailbox.followUps.mode = mode
      })
    }
  }

  // ---------------------------------------------------------------------------
  // State
  // ---------------------------------------------------------------------------

  get reset(): Effect.Effect<void, AgentBusy> {
    return Effect.suspend(() => {
      if (this.#activity !== undefined) return Effect.fail(busyResetting())
      const baseline = this.#transcript.replay.systemMessage()
      this.#transcript = new Transcript(baseline === undefined ? [] : [baseline])
      this.#errorMessage = undefined
      this.#mailbox.clear()
      return Effect.void
    })
  }

  get setTools(): AgentService["setTools"] {
    return <const T extends ReadonlyArray<Any>>(
      tools: T
    ): Effect.Effect<void, AgentConfigError, Services<T[number]>> => {
      return Effect.contextWith((services: Context.Context<Services<T[number]>>) =>
        Effect.map(Effect.fromResult(makeToolSet(tools, services)), (set) => this.#set("tools", set))
      )
    }
  }

  get setModel(): AgentService["setModel"] {
    return (model: RunSettings["model"]): Effect.Effect<void> => {
      return Effect.sync(() => this.#set("model", model))
    }
  }

  get setThinkingLevel(): AgentService["setThinkingLevel"] {
    return (level: RunSettings["thinkingLevel"]): Effect.Effect<void> => {
      return Effect.sync(() => this.#set("thinkingLevel", level))
    }
  }

  get setToolExecution(): AgentService["setToolExecution"] {
    return (mode: ExecutionMode): Effect.Effect<void> => {
      return Effect.sync(() => this.#set("toolExecution", mode))
    }
  }

  get setSessionId(): AgentService["setSessionId"] {
    return (sessionId: string | undefined): Effect.Effect<void> => {
      return Effect.sync(() => {
        this.#sessionId = sessionId
      })
    }
  }

  /** Changes a setting for the agent and for the rest of a run that is under way. */
  #set<K extends keyof RunSettings>(key: K, value: RunSettings[K]): void {
    this.#settings[key] = value
    if (this.#activity !== undefined) this.#activity.run.settings[key] = value
  }

  get setMessages(): AgentService["setMessages"] {
    return (messages) =>
      Effect.suspend((): Effect.Effect<void, AgentBusy | AgentConfigError> => {
        if (this.#activity !== undefined) return Effect.fail(busyChanging())
        const read = readPaired([], messages, this.#transcriptMode)
        if (Result.isFailure(read)) return Effect.fail(read.failure)
        this.#transcript = new Transcript([...read.success.results, ...read.success.messages])
        return logMended("transcript", read.success)
      })
  }

  get appendMessages(): AgentService["appendMessages"] {
    return (messages) =>
      Effect.clockWith((clock): Effect.Effect<void, AgentBusy | AgentConfigError> => {
        if (this.#activity !== undefined) return Effect.fail(busyChanging())
        const read = readPaired(this.#transcript.messages, messages, this.#transcriptMode)
        if (Result.isFailure(read)) return Effect.fail(read.failure)
        this.#append(read.success, clock.currentTimeMillisUnsafe())
        return logMended("appended list", read.success)
      })
  }

  /** Adds to the transcript of an idle agent. Nothing comes between an open call and its answer. */
  #append({ messages, results }: Paired, now: number): void {
    for (const message of [...results, ...messages]) this.#transcript.push(admit(message, now))
  }

  get messages(): Effect.Effect<ReadonlyArray<AgentMessage>> {
    return Effect.sync(() => this.#transcript.snapshot())
  }

  get state(): Effect.Effect<AgentState> {
    return Effect.sync(() => {
      const run = this.#activity?.run
      return {
        systemPrompt: this.#transcript.replay.systemPrompt(),
        model: this.#settings.model,
        thinkingLevel: this.#settings.thinkingLevel,
        tools: this.#settings.tools.tools,
        messages: this.#transcript.snapshot(),
        isStreaming: run !== undefined,
        streamingMessage: run?.streamingMessage,
        pendingToolCalls: run?.batch?.pending ?? noCalls,
        errorMessage: run === undefined ? this.#errorMessage : run.errorMessage
      }
    })
  }

  get subscribe(): AgentService["subscribe"] {
    return <E = never, R = never>(
      listener: Listener<E, R>,
      options?: { readonly required?: boolean | undefined }
    ): Effect.Effect<Unsubscribe, never, R> => {
      return Effect.contextWith((services: Context.Context<R>) =>
        Effect.sync(() => {
          // A listener that is subscribed inside a run is not part of that run.
          const remove = this.#attach(subscriber(listener, withoutRun(services), options?.required === true))
          return Object.assign(Effect.sync(remove), { _tag: "Unsubscribe" } as const)
        })
      )
    }
  }

  #attach(added: Subscriber): () => void {
    this.#subscribers.list = this.#subscribers.list.concat(added)
    return () => {
      added.active = false
      this.#subscribers.list = this.#subscribers.list.filter((one) => one !== added)
    }
  }

  get events(): Stream.Stream<ObservedEvent> {
    return this.observe({ capacity: 1024 })
  }

  get observe(): AgentService["observe"] {
    return ({ capacity, strategy = "sliding" }: ObserveOptions): Stream.Stream<ObservedEvent> => {
      return observe({ capacity: capacity >= 1 ? Math.floor(capacity) : 1, strategy }, (add, close) => {
        const remove = this.#attach(subscriber(add, Context.empty(), false))
        if (this.#closed && this.#activity === undefined) close()
        else (this.#observers ??= new Set()).add(close)
        return () => {
          remove()
          this.#observers?.delete(close)
        }
      })
    }
  }

  /** The end of the agent's scope; also from inside its own run, which then ends after it. */
  get dispose(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#closed = true
      if (this.#activity !== undefined) return this.abort
      this.#leave()
      return Effect.void
    })
  }

  /** Tells those who wait for something of a closed agent that nothing follows. */
  #leave(): void {
    this.#mailbox.returned("disposed")
    for (const close of this.#observers ?? []) close()
  }
}

const queueModes: ReadonlyArray<QueueMode> = ["one-at-a-time", "all"]

const oneOf = <A extends string>(name: string, value: A | undefined, allowed: ReadonlyArray<A>) =>
  Effect.fromResult(checkOneOf(name, value, allowed))

/** Makes an agent; see `Agent.make`. */
export const makeHost = Effect.fnUntraced(
  function*<T extends ReadonlyArray<Any>>(options: Options<T>): Effect.fn.Return<
    AgentService,
    AgentConfigError,
    Scope.Scope | StreamFn | Services<T[number]>
  > {
    const given = yield* Effect.context<StreamFn | Services<T[number]>>()
    const services = withoutAmbient(given)
    const config = yield* Effect.fromResult(readConfig(options))
    const settings = yield* Effect.fromResult(readSettings(options, options.tools ?? [], services))
    const mode = (yield* oneOf("transcript", options.transcript, ["repair", "refuse"])) ?? "repair"
    const steeringMode = yield* oneOf("steeringMode", options.steeringMode, queueModes)
    const followUpMode = yield* oneOf("followUpMode", options.followUpMode, queueModes)
    const paired = yield* Effect.fromResult(readPaired([], options.messages ?? [], mode))
    yield* logMended("transcript", paired)
    const messages = [...paired.results, ...paired.messages]
    const first = messages[0]?.role === "system"
      ? undefined
      : initialSystem(
        options.systemPrompt === undefined ? undefined : wellFormed(options.systemPrompt),
        settings.tools.declarations
      )
    const host = new Host({
      config,
      services,
      budget: layeredBudget(given),
      settings,
      messages: first === undefined ? messages : [first, ...messages],
      mailbox: new Mailbox(
        new MessageQueue(undefined, steeringMode ?? "one-at-a-time"),
        new MessageQueue(undefined, followUpMode ?? "one-at-a-time")
      ),
      sessionId: options.sessionId,
      transcriptMode: mode
    })
    yield* Scope.addFinalizerExit(yield* Effect.scope, () => host.dispose)
    return host
  }
)
