/**
 * One play of a scenario: its time, its agent, and the log of everything that happened, in order.
 */
import { Cause, Context, Effect, Exit, Fiber } from "effect"
import type { AgentService } from "../../src/Agent.ts"
import type { AgentEvent } from "../../src/Events.ts"
import type { AgentMessage, Message } from "../../src/Messages.ts"
import type { Delivery } from "../../src/Queues.ts"
import type { Time } from "./time.ts"
import type { Action, HookKind, Scenario, Span } from "./types.ts"

/** Who code of the user belongs to. */
export type Place =
  | { readonly kind: "tool"; readonly name: string; readonly callId: string; readonly nested: boolean }
  | { readonly kind: "prepare"; readonly name: string }
  | { readonly kind: "hook"; readonly name: HookKind }
  | { readonly kind: "stream"; readonly name: string }
  | { readonly kind: "listener"; readonly name: string; readonly event: string; readonly required: boolean }

/** Code of the user at work. */
export interface WorkRecord {
  readonly id: number
  readonly place: Place
  /** The activity it was called in; 0 when that cannot be told. */
  readonly activity: number
  /** Something waits for it only so long. */
  readonly deadline: boolean
  readonly begun: number
  /** The index of the entry of its end. */
  ended: number | undefined
  /** It is a fault of the run when it fails. */
  exit: "ok" | "failed" | "interrupted" | undefined
}

/** How a message was given to the agent. */
export type Way = "prompt" | "steering" | "followUp" | "note" | "append" | "set"

/** A message that was given to the agent; its token is in its text. */
export interface Given {
  readonly token: string
  readonly way: Way
  readonly message: AgentMessage
  readonly activity: number
  /** `maybe`: the action that gave it was cut short, so that it may have been taken or not. */
  accepted: "yes" | "no" | "maybe"
  /** The index of the entry when it was accepted. */
  at: number
  /** It was taken out of its queue, or wiped from the transcript. */
  removed: boolean
  receipt: { readonly id: string; readonly whileIdle: boolean } | undefined
  delivery: { readonly delivery: Delivery; readonly at: number } | undefined
}

export type EntryBody =
  | { readonly kind: "event"; readonly event: AgentEvent; readonly copy: string; readonly activity: number }
  | {
    readonly kind: "request"
    readonly activity: number
    readonly toolChoice: string
    readonly tools: ReadonlyArray<string>
    readonly messages: ReadonlyArray<Message>
  }
  | { readonly kind: "begin" | "end"; readonly work: WorkRecord; readonly exit?: string }
  | { readonly kind: "act"; readonly act: number; readonly action: Action; readonly from: string; readonly busy: boolean }
  | { readonly kind: "acted"; readonly act: number; readonly action: Action; readonly result: string }
  /** The run of an activity is stopped from outside of its loop. */
  | { readonly kind: "stop"; readonly how: Stop; readonly activity: number }
  | { readonly kind: "delivery"; readonly token: string; readonly delivery: Delivery }
  | { readonly kind: "log"; readonly level: string; readonly text: string }
  | { readonly kind: "mark"; readonly what: string }

export type Stop = "abort" | "interrupt" | "close" | "listener"

export type Entry = EntryBody & { readonly index: number; readonly t: number }

/** The activity whose code a fiber executes: a run with the runs that follow it by themselves. */
export const Activity = Context.Reference<number>("properties/Activity", { defaultValue: () => 0 })

/** How an effect ended, in a word or two. */
export const exitText = (exit: Exit.Exit<unknown, unknown>): string => {
  if (Exit.isSuccess(exit)) return "ok"
  if (Cause.hasInterruptsOnly(exit.cause)) return "interrupted"
  let error: unknown
  try {
    error = Cause.squash(exit.cause)
    if (typeof error === "object" && error !== null && "_tag" in error) return `failed ${String(error._tag)}`
    return `failed ${error instanceof Error ? error.message.slice(0, 60) : typeof error}`
  } catch {
    return "failed strangely"
  }
}

export class World {
  readonly scenario: Scenario
  readonly time: Time
  readonly entries: Array<Entry> = []
  readonly given: Array<Given> = []
  readonly active = new Set<WorkRecord>()
  readonly works: Array<WorkRecord> = []
  /** Fibers of prompts that are waited for from outside, with their activities. */
  readonly prompts: Array<{ readonly fiber: Fiber.Fiber<unknown, unknown>; readonly activity: number }> = []
  /** What every listener heard, by its number. */
  readonly heard = new Map<string, Array<AgentEvent>>()
  agent!: AgentService
  /** The context in which everything from outside happens. */
  root: Context.Context<never>
  /** The number of the last activity that began. */
  activity = 0
  acts = 0
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
    return Effect.runSyncWith(this.root)(this.agent.state).isStreaming
  }

  /** Runs something from outside of all runs. */
  fork<A, E>(effect: Effect.Effect<A, E>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.root)(effect)
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
    for (const wake of [...this.#waiting]) wake()
    this.#waiting.clear()
  }

  begin(place: Place, deadline: boolean): WorkRecord {
    const activity = Fiber.getCurrent()?.getRef(Activity) ?? 0
    const work: WorkRecord = {
      id: this.works.length,
      place,
      activity,
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
  get bytes(): string {
    return this.entries.map((entry) => JSON.stringify(entry.kind === "event" ? { ...entry, event: undefined } : entry))
      .join("\n")
  }
}
