/**
 * Events for observers that must not slow the run: a bounded buffer that counts what it had to leave out.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AgentEvent, ObservedEvent } from "../Events.ts"

/** What a full buffer leaves out: its oldest events, or the newest. */
export type Strategy = "sliding" | "dropping"

/** The events one observer has not read yet. */
class Buffer {
  readonly #capacity: number
  readonly #strategy: Strategy
  #events: Array<ObservedEvent> = []
  #wake: (() => void) | undefined
  #closed = false

  constructor(capacity: number, strategy: Strategy) {
    this.#capacity = capacity
    this.#strategy = strategy
  }

  readonly add = (event: AgentEvent): void => {
    if (this.#events.length < this.#capacity) this.#events.push(event)
    else if (this.#strategy === "sliding") this.#slide(event)
    else this.#drop(event)
    this.#wake?.()
  }

  readonly close = (): void => {
    this.#closed = true
    this.#wake?.()
  }

  /** What is there, or what comes next; ends when the buffer was closed and read. */
  readonly pull: Effect.Effect<readonly [ObservedEvent, ...Array<ObservedEvent>], Cause.Done> = Effect.suspend(() => {
    const [first, ...rest] = this.#events
    if (first !== undefined) {
      this.#events = []
      return Effect.succeed([first, ...rest] as const)
    }
    return this.#closed ? Cause.done() : Effect.andThen(this.#next, Effect.suspend(() => this.pull))
  })

  readonly #next = Effect.callback<void>((resume) => {
    this.#wake = () => {
      this.#wake = undefined
      resume(Effect.void)
    }
    return Effect.sync(() => {
      this.#wake = undefined
    })
  })

  /** Leaves out the oldest event that is not the end of a run; the mark stands in its place. */
  #slide(event: AgentEvent): void {
    const at = this.#events.findIndex(({ type }) => type !== "gap" && type !== "agent_end")
    if (at >= 0) {
      const before = this.#events[at - 1]
      if (before?.type === "gap") this.#events.splice(at - 1, 2, { type: "gap", missed: before.missed + 1 })
      else this.#events[at] = { type: "gap", missed: 1 }
    }
    this.#events.push(event)
  }

  /** The end of a run is never left out. */
  #drop(event: AgentEvent): void {
    const last = this.#events.at(-1)
    if (event.type === "agent_end") this.#events.push(event)
    else if (last?.type === "gap") this.#events[this.#events.length - 1] = { type: "gap", missed: last.missed + 1 }
    else this.#events.push({ type: "gap", missed: 1 })
  }
}

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
