/**
 * One play of a scenario: its time, its agent, and the log of everything that happened, in order.
 */
import { Cause, Context, Effect, Exit, Fiber, Metric, type Scope } from "effect"
import type { AgentService } from "../../src/Agent.ts"
import type { AgentEvent, ObservedEvent } from "../../src/Events.ts"
import type { AgentMessage, Message } from "../../src/Messages.ts"
import type { Delivery, Receipt } from "../../src/Queues.ts"
import { Transcript } from "../../src/testing/index.ts"
import type { Tool } from "../../src/Tools.ts"
import type { Time } from "./time.ts"
import type { Action, HookKind, Scenario, Span } from "./types.ts"

/** Who code of the user belongs to. */
export type Place =
  | { readonly kind: "tool"; readonly name: string; readonly callId: string; readonly nested: boolean }
  | { readonly kind: "prepare" | "stream"; readonly name: string }
  | { readonly kind: "hook"; readonly name: HookKind }
  | { readonly kind: "listener"; readonly name: string; readonly event: string; readonly required: boolean }

/** Code of the user at work. */
export interface WorkRecord {
  readonly id: number
  readonly place: Place
  /** The activity it was called in; 0 when that cannot be told. */
  readonly activity: number
  /** It is waited for only so long. */
  readonly deadline: boolean
  readonly begun: number
  /** The index of the entry of its end. */
  ended: number | undefined
  exit: "ok" | "failed" | "interrupted" | undefined
}

/** How a message was given to the agent. */
export type Way = "prompt" | "steering" | "followUp" | "note" | "append" | "set"

/** A message that was given to the agent; its token is in its text. */
export interface Given {
  readonly token: string
  readonly way: Way
  readonly message: AgentMessage
  /** The activity that was going on, or that it began. */
  readonly activity: number
  /** Whether the agent worked when it was given. */
  readonly busy: boolean
  /**
   * `maybe`: the action that gave it was cut short, so that it may have been taken or not; `unknown`: it was taken and may
   * have been wiped.
   */
  accepted: "yes" | "no" | "maybe" | "unknown"
  /** The index of the entry when it was accepted, and when it was withdrawn, cleared or wiped. */
  at: number
  removed: number | undefined
  receipt: Receipt | undefined
  delivery: { readonly delivery: Delivery; readonly at: number } | undefined
}

/** What a listener heard, and how many events had been told before it was subscribed. */
export interface Hearing {
  readonly from: number
  readonly heard: Array<AgentEvent>
  removed: boolean
}

/** What stops a run from outside of its loop. */
export type Stop = "abort" | "interrupt" | "close" | "listener"

export type EntryBody =
  | {
    readonly kind: "event"
    readonly event: AgentEvent
    /** What it looked like when it was told. */
    readonly copy: string | undefined
    readonly activity: number
  }
  | {
    readonly kind: "request"
    readonly activity: number
    readonly toolChoice: string
    readonly tools: ReadonlyArray<string>
    readonly messages: ReadonlyArray<Message>
  }
  | { readonly kind: "begin" | "end"; readonly work: WorkRecord; readonly exit?: string }
  | {
    readonly kind: "act"
    readonly act: number
    readonly action: Action
    readonly from: string
    readonly busy: boolean
  }
  | { readonly kind: "acted"; readonly act: number; readonly action: Action; readonly result: string }
  | { readonly kind: "stop"; readonly how: Stop; readonly activity: number }
  | { readonly kind: "delivery"; readonly token: string; readonly delivery: Delivery }
  | { readonly kind: "log"; readonly level: string; readonly text: string }
  | Snapshot

/** What the agent holds at one moment. */
export interface Snapshot {
  readonly kind: "snapshot"
  /** `wipe`: the transcript is about to be replaced. */
  readonly why: "idle" | "wipe" | "settled" | "end"
  readonly busy: boolean
  readonly messages: ReadonlyArray<AgentMessage>
  readonly steering: ReadonlyArray<AgentMessage>
  readonly followUps: ReadonlyArray<AgentMessage>
}

export type Entry = EntryBody & { readonly index: number; readonly t: number }

/** The activity whose code a fiber executes: a run with the runs that follow it by themselves. */
export const Activity = Context.Reference<number>("properties/Activity", { defaultValue: () => 0 })

/** How an effect ended, in a word or two. */
export const exitText = (exit: Exit.Exit<unknown, unknown>): string => {
  if (Exit.isSuccess(exit)) return "ok"
  if (Cause.hasInterruptsOnly(exit.cause)) return "interrupted"
  try {
    const error = Cause.squash(exit.cause)
    if (typeof error === "object" && error !== null && "_tag" in error) return `failed ${String(error._tag)}`
    return `failed ${error instanceof Error ? error.message.slice(0, 60) : typeof error}`
  } catch {
    return "failed strangely"
  }
}

/** What an event looks like. */
export const written = (event: AgentEvent): string =>
  JSON.stringify(event.type === "agent_end" ? { ...event, outcome: event.outcome._tag } : event)

/** An entry as it is compared between plays. */
const writtenEntry = (entry: Entry): string => {
  switch (entry.kind) {
    case "event":
      return `${entry.t} ${entry.activity} ${entry.copy ?? written(entry.event)}`
    case "snapshot":
      return `${entry.t} ${entry.why} ${
        entry.why === "end" ? JSON.stringify(entry) : Transcript.print(entry.messages, { system: true })
      }`
    default:
      return JSON.stringify(entry)
  }
}

export class World {
  readonly scenario: Scenario
  readonly time: Time
  readonly entries: Array<Entry> = []
  readonly given: Array<Given> = []
  readonly works: Array<WorkRecord> = []
  readonly active = new Set<WorkRecord>()
  /** Fibers that wait for a run from outside, with its activity. */
  readonly prompts: Array<{ readonly fiber: Fiber.Fiber<unknown, unknown>; readonly activity: number }> = []
  /** What every listener heard, by its name. */
  readonly heard = new Map<string, Hearing>()
  /** What code of the user noticed that must not be. */
  readonly complaints: Array<string> = []
  /** What the observer read. */
  readonly observed: Array<ObservedEvent> = []
  agent!: AgentService
  scope!: Scope.Closeable
  tools: ReadonlyArray<Tool> = []
  subscribe: (listener: number) => Effect.Effect<void> = () => Effect.void
  unsubscribe: (listener: number) => Effect.Effect<void> = () => Effect.void
  /** The context of everything that happens outside of runs. */
  readonly root: Context.Context<never>
  /** The number of the last activity that was begun, or tried to. */
  activity = 0
  /** The activity of the last `agent_start`, and whether its run is open. */
  started = { activity: 0, open: false }
  acts = 0
  #nested = 0
  /** Sleeps of code of the user. */
  sleeps = 0
  closed = false
  readonly #waiting = new Set<() => void>()
  #released = false

  constructor(scenario: Scenario, time: Time) {
    this.scenario = scenario
    this.time = time
    this.root = time.context
  }

  log(body: EntryBody): number {
    const index = this.entries.length
    this.entries.push({ index, t: this.time.now(), ...body })
    return index
  }

  /** Whether the agent works. */
  get busy(): boolean {
    return this.now(this.agent.state).isStreaming
  }

  /** The activity that goes on while the agent works. */
  get current(): number {
    return this.started.open ? this.started.activity : this.activity
  }

  /** The value of an effect that waits for nothing. */
  now<A>(effect: Effect.Effect<A>): A {
    return Effect.runSyncWith(Context.add(this.root, Metric.FiberRuntimeMetrics, undefined))(effect)
  }

  /** The list of what a new listener hears. */
  hears(name: string): Array<AgentEvent> {
    const heard: Array<AgentEvent> = []
    const from = this.entries.filter(({ kind }) => kind === "event").length
    this.heard.set(name, { from, heard, removed: false })
    return heard
  }

  snapshot(why: Snapshot["why"]): Snapshot {
    const { isStreaming, messages } = this.now(this.agent.state)
    const snapshot: Snapshot = { kind: "snapshot", why, busy: isStreaming, messages, ...this.now(this.agent.queued) }
    this.log(snapshot)
    return snapshot
  }

  /** A fresh id for a call that a tool makes. */
  nestedId(): string {
    return `nested${++this.#nested}`
  }

  /** Runs something from outside of all runs. */
  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.root)(effect)
  }

  /** Runs something that only observes and is not counted among the fibers. */
  observe(effect: Effect.Effect<unknown>): void {
    Effect.runForkWith(Context.add(this.root, Metric.FiberRuntimeMetrics, undefined))(effect)
  }

  sleep(span: Span): Effect.Effect<void> {
    if (span === "forever") return this.#forever
    return Effect.acquireUseRelease(
      Effect.sync(() => this.sleeps++),
      () => Effect.sleep(span),
      () => Effect.sync(() => this.sleeps--)
    )
  }

  readonly #forever = Effect.callback<void>((resume) => {
    if (this.#released) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    this.#waiting.add(wake)
    return Effect.sync(() => this.#waiting.delete(wake))
  })

  /** Ends everything that lasts for ever. */
  release(): void {
    this.#released = true
    const waiting = Array.from(this.#waiting)
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  begin(place: Place, deadline: boolean): WorkRecord {
    const work: WorkRecord = {
      id: this.works.length,
      place,
      activity: currentActivity(),
      deadline,
      begun: this.entries.length,
      ended: undefined,
      exit: undefined
    }
    this.works.push(work)
    this.active.add(work)
    this.log({ kind: "begin", work })
    return work
  }

  end(work: WorkRecord, exit: Exit.Exit<unknown, unknown>): void {
    this.active.delete(work)
    const text = exitText(exit)
    work.exit = text === "ok" ? "ok" : text === "interrupted" ? "interrupted" : "failed"
    work.ended = this.log({ kind: "end", work, exit: text })
    const { place } = work
    if (work.exit !== "ok" && place.kind === "listener" && place.required && work.activity > 0) {
      this.log({ kind: "stop", how: "listener", activity: work.activity })
    }
  }

  /** The play as text: what two plays of one scenario must have in common. */
  get bytes(): ReadonlyArray<string> {
    return this.entries.map(writtenEntry)
  }
}

/** Whether a call with this id was made by a tool. */
export const isNested = (callId: string): boolean => callId.startsWith("nested")

/** The activity of the fiber at work. */
export const currentActivity = (): number => Fiber.getCurrent()?.getRef(Activity) ?? 0
