/**
 * Events for observers that must not slow the run: a bounded buffer that counts what it had to leave out.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as MutableList from "effect/MutableList"
import * as Stream from "effect/Stream"
import type { AgentEvent, ObservedEvent } from "../Events.ts"

/** What a full buffer leaves out: its oldest events, or the newest. */
export type Strategy = "sliding" | "dropping"

/**
 * The events one observer has not read yet: at most as many as the capacity, and the last end of a run that was left out,
 * with how many were left out before and after it.
 */
class Buffer {
  readonly #capacity: number
  readonly #strategy: Strategy
  #kept = MutableList.make<AgentEvent>()
  /** How many of the kept are ends of runs. */
  #keptEnds = 0
  #end: AgentEvent | undefined
  #missedBefore = 0
  #missedAfter = 0
  #wake: (() => void) | undefined
  #closed = false

  constructor(capacity: number, strategy: Strategy) {
    this.#capacity = capacity
    this.#strategy = strategy
  }

  readonly add = (event: AgentEvent): void => {
    if (this.#kept.length < this.#capacity) this.#keep(event)
    else if (this.#strategy === "dropping") this.#miss(event)
    else {
      const oldest = MutableList.take(this.#kept)
      if (oldest !== MutableList.Empty) {
        if (oldest.type === "agent_end") this.#keptEnds--
        this.#miss(oldest)
      }
      this.#keep(event)
    }
    this.#wake?.()
  }

  readonly close = (): void => {
    this.#closed = true
    this.#wake?.()
  }

  /** What is there, or what comes next; ends when the buffer was closed and read. */
  readonly pull: Effect.Effect<readonly [ObservedEvent, ...Array<ObservedEvent>], Cause.Done> = Effect.suspend(() => {
    const [first, ...rest] = this.#takeAll()
    if (first !== undefined) return Effect.succeed([first, ...rest] as const)
    return this.#closed ? Cause.done() : Effect.andThen(this.#next, Effect.suspend(() => this.pull))
  })

  readonly #next = Effect.callback<void>((resume) => {
    // What came since one looked for it woke nobody.
    if (this.#closed || this.#kept.length > 0) return resume(Effect.void)
    this.#wake = () => {
      this.#wake = undefined
      resume(Effect.void)
    }
    return Effect.sync(() => {
      this.#wake = undefined
    })
  })

  #keep(event: AgentEvent): void {
    MutableList.append(this.#kept, event)
    if (event.type !== "agent_end") return
    this.#keptEnds++
    // It is the last one now.
    if (this.#end !== undefined) this.#foldEnd()
  }

  /** Leaves an event out, unless it is the last end of a run. */
  #miss(event: AgentEvent): void {
    if (event.type === "agent_end" && (this.#strategy === "dropping" || this.#keptEnds === 0)) {
      if (this.#end !== undefined) this.#foldEnd()
      this.#end = event
    } else if (this.#end === undefined) this.#missedBefore++
    else this.#missedAfter++
  }

  #foldEnd(): void {
    this.#missedBefore += 1 + this.#missedAfter
    this.#missedAfter = 0
    this.#end = undefined
  }

  #takeAll(): ReadonlyArray<ObservedEvent> {
    const kept = MutableList.toArray(this.#kept)
    this.#kept = MutableList.make()
    const missed = [
      ...gap(this.#missedBefore),
      ...(this.#end === undefined ? [] : [this.#end]),
      ...gap(this.#missedAfter)
    ]
    this.#keptEnds = this.#missedBefore = this.#missedAfter = 0
    this.#end = undefined
    return this.#strategy === "sliding" ? [...missed, ...kept] : [...kept, ...missed]
  }
}

const gap = (missed: number): ReadonlyArray<ObservedEvent> => missed === 0 ? [] : [{ type: "gap", missed }]

/** `attach` adds the buffer's functions to whoever emits and gives the way to take them away again. */
export const observe = (
  options: { readonly capacity: number; readonly strategy: Strategy },
  attach: (add: (event: AgentEvent) => void, close: () => void) => () => void
): Stream.Stream<ObservedEvent> =>
  Stream.unwrap(Effect.gen(function*() {
    const buffer = new Buffer(options.capacity, options.strategy)
    yield* Effect.acquireRelease(
      Effect.sync(() => attach(buffer.add, buffer.close)),
      (detach) => Effect.sync(detach)
    )
    return Stream.fromPull(Effect.succeed(buffer.pull))
  }))
