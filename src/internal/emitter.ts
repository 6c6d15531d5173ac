/**
 * Delivers the events of a run: one at a time, in one order, to every subscriber, in subscription order.
 *
 * Nothing here is an effect while every subscriber answers at once: `emit` then returns `undefined`, which keeps events
 * cheap. When a subscriber answers with an effect, `emit` returns the rest of the delivery for the caller to run, in a
 * region that is not interrupted: a subscriber is never cut in half, an abort waits for the event it has.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as MutableList from "effect/MutableList"
import * as Result from "effect/Result"
import { ListenerError } from "../Errors.ts"
import type { AgentEvent } from "../Events.ts"
import { show } from "./json.ts"
import * as Log from "./log.ts"

/** Work that is left to do; `undefined` when there is none. */
export type Pending = Effect.Effect<void> | undefined

/** One subscriber; `notify` fails only if it is required. */
export interface Subscriber {
  readonly notify: (event: AgentEvent) => Effect.Effect<void, ListenerError> | undefined
  /** A removed subscriber gets nothing more, not even of an event that is being delivered. */
  active: boolean
  /** Set once it was left behind: what it has not seen yet, while it works on an event. */
  backlog: Array<AgentEvent> | undefined
}

const logFailure = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.void
    : Log.error(`A listener failed: ${show(Cause.squash(cause))}`, cause)

/**
 * A subscriber from a listener. Whatever the listener throws, fails or dies with is logged and costs nothing else, unless
 * it is required: then it is a `ListenerError`.
 */
export const subscriber = <E, R>(
  listener: (event: AgentEvent) => Effect.Effect<unknown, E, R> | void,
  provide: (effect: Effect.Effect<void, ListenerError, R>) => Effect.Effect<void, ListenerError>,
  required: boolean
): Subscriber => ({
  active: true,
  backlog: undefined,
  notify: (event) => {
    const onFailure = (cause: Cause.Cause<unknown>): Effect.Effect<void, ListenerError> =>
      required ? Effect.fail(listenerError(event, cause)) : logFailure(cause)
    const answer = Result.try(() => listener(event))
    if (Result.isFailure(answer)) return onFailure(Cause.die(answer.failure))
    const effect = answer.success
    if (effect === undefined || !Effect.isEffect(effect)) return undefined
    return provide(Effect.matchCauseEffect(effect, { onFailure, onSuccess: () => Effect.void }))
  }
})

const listenerError = (event: AgentEvent, failure: Cause.Cause<unknown>): ListenerError => {
  const cause = Cause.squash(failure)
  return new ListenerError({ event: event.type, message: show(cause), cause })
}

interface Waiting {
  readonly event: AgentEvent
  readonly receivers: ReadonlyArray<Subscriber>
  readonly turn: Deferred.Deferred<void>
}

/** Who is subscribed; replaced on every change, so that an event goes to those who were there when it was emitted. */
export interface Subscribers {
  list: ReadonlyArray<Subscriber>
}

/** The delivery of one run's events. */
export class Emitter {
  readonly #subscribers: Subscribers
  readonly #reduce: (event: AgentEvent) => void
  readonly #onFailure: (error: ListenerError) => Effect.Effect<void>
  #busy = false
  #event: AgentEvent | undefined
  #receivers: ReadonlyArray<Subscriber> = []
  #next = 0
  #waiting: MutableList.MutableList<Waiting> | undefined
  /** Whose turn it is, until it takes it. */
  #called: Waiting | undefined
  #fork: ((effect: Effect.Effect<void>) => void) | undefined

  /**
   * `reduce` updates the state before anybody sees the event; `onFailure` is told of required subscribers that failed.
   */
  constructor(
    subscribers: Subscribers,
    reduce: (event: AgentEvent) => void,
    onFailure: (error: ListenerError) => Effect.Effect<void>
  ) {
    this.#subscribers = subscribers
    this.#reduce = reduce
    this.#onFailure = onFailure
  }

  /** Whether anybody listens; without listeners the snapshots of a streamed message need not be made. */
  get observed(): boolean {
    return this.#subscribers.list.length > 0
  }

  /** Delivers an event, after those that were emitted before it. */
  emit(event: AgentEvent): Pending {
    if (this.#fork !== undefined) return this.#emitDetached(event, this.#subscribers.list)
    if (this.#busy) return this.#enqueue(event)
    this.#busy = true
    return this.#start(event, this.#subscribers.list)
  }

  /**
   * Stops waiting for subscribers. The one that works on an event is left behind: it gets what it misses, in order,
   * when it is done. `fork` runs effects of subscribers in the background.
   */
  detach(fork: (effect: Effect.Effect<void>) => void): void {
    if (this.#fork !== undefined) return
    this.#fork = fork
    if (this.#called !== undefined) this.#emitDetached(this.#called.event, this.#called.receivers)
    else if (this.#busy) {
      const stuck = this.#receivers[this.#next - 1]
      if (stuck !== undefined) stuck.backlog = []
      this.#deliverDetached(this.#event!, this.#receivers.slice(this.#next))
    }
    const waiting = this.#waiting
    if (waiting === undefined) return
    for (let entry = MutableList.take(waiting); entry !== MutableList.Empty; entry = MutableList.take(waiting)) {
      this.#emitDetached(entry.event, entry.receivers)
      Deferred.doneUnsafe(entry.turn, Effect.void)
    }
  }

  #notify(receiver: Subscriber, event: AgentEvent): Pending {
    const pending = receiver.notify(event)
    return pending === undefined ? undefined : Effect.catch(pending, this.#onFailure)
  }

  #start(event: AgentEvent, receivers: ReadonlyArray<Subscriber>): Pending {
    this.#reduce(event)
    this.#event = event
    this.#receivers = receivers
    this.#next = 0
    return this.#advance()
  }

  #advance(): Pending {
    const event = this.#event!
    const receivers = this.#receivers
    while (this.#next < receivers.length) {
      const receiver = receivers[this.#next++]!
      if (!receiver.active) continue
      if (receiver.backlog !== undefined) {
        receiver.backlog.push(event)
        continue
      }
      const pending = this.#notify(receiver, event)
      if (pending !== undefined) return Effect.flatMap(pending, () => this.#resume(receiver))
    }
    this.#busy = false
    if (this.#waiting !== undefined) this.#wake()
    return undefined
  }

  #resume(receiver: Subscriber): Effect.Effect<void> {
    if (this.#fork !== undefined) return this.#catchUp(receiver)
    return this.#advance() ?? Effect.void
  }

  #enqueue(event: AgentEvent): Effect.Effect<void> {
    const entry: Waiting = { event, receivers: this.#subscribers.list, turn: Deferred.makeUnsafe() }
    this.#waiting ??= MutableList.make()
    MutableList.append(this.#waiting, entry)
    return Effect.andThen(
      Deferred.await(entry.turn),
      // In a later step, so that whoever delivered before goes on first.
      Effect.andThen(Effect.yieldNow, Effect.suspend(() => this.#answer(entry) ?? Effect.void))
    )
  }

  /** Gives the next of those who wait its turn. */
  #wake(): void {
    const entry = MutableList.take(this.#waiting!)
    if (entry === MutableList.Empty) return
    this.#busy = true
    this.#called = entry
    Deferred.doneUnsafe(entry.turn, Effect.void)
  }

  #answer(entry: Waiting): Pending {
    if (this.#fork !== undefined) return undefined
    this.#called = undefined
    return this.#start(entry.event, entry.receivers)
  }

  #emitDetached(event: AgentEvent, receivers: ReadonlyArray<Subscriber>): undefined {
    this.#reduce(event)
    this.#deliverDetached(event, receivers)
  }

  #deliverDetached(event: AgentEvent, receivers: ReadonlyArray<Subscriber>): void {
    for (const receiver of receivers) {
      if (!receiver.active) continue
      if (receiver.backlog !== undefined) {
        receiver.backlog.push(event)
        continue
      }
      const pending = this.#notify(receiver, event)
      if (pending === undefined) continue
      receiver.backlog = []
      this.#fork!(Effect.flatMap(pending, () => this.#catchUp(receiver)))
    }
  }

  #catchUp(receiver: Subscriber): Effect.Effect<void> {
    return Effect.suspend(() => {
      while (receiver.active && receiver.backlog !== undefined && receiver.backlog.length > 0) {
        const pending = this.#notify(receiver, receiver.backlog.shift()!)
        if (pending !== undefined) return Effect.flatMap(pending, () => this.#catchUp(receiver))
      }
      receiver.backlog = undefined
      return Effect.void
    })
  }
}
