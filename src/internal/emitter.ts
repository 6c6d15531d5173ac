/**
 * Delivers the events of a run: one at a time, in one order, to every subscriber, in subscription order.
 *
 * Nothing here is an effect while every subscriber answers at once: `emit` then returns `undefined`, which keeps events
 * cheap. When a subscriber answers with an effect, `emit` returns the rest of the delivery for the caller to run, in a
 * region that is not interrupted: a subscriber is never cut in half, an abort waits for the event it has.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as MutableList from "effect/MutableList"
import * as Result from "effect/Result"
import { ListenerError } from "../Errors.ts"
import type { AgentEvent } from "../Events.ts"
import { show } from "./json.ts"
import * as Log from "./log.ts"

/** Work that is left to do; `undefined` when there is none. */
export type Pending = Effect.Effect<void> | undefined

/** What a subscriber answers, as it is; `undefined` when it has answered at once. */
export type Answer = Effect.Effect<void, unknown> | undefined

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- where a delivery is not taken step by step, failures are handled
const handled = (answer: Answer): Pending => answer as Pending

/** One subscriber. */
export interface Subscriber {
  /** May throw; what is no effect is no answer. */
  readonly listener: (event: AgentEvent) => unknown
  /** The services its effects ask for. */
  readonly services: Context.Context<never>
  /** Whether its failure ends the run. */
  readonly required: boolean
  /** A removed subscriber gets nothing more, not even of an event that is being delivered. */
  active: boolean
  /** Set once it was left behind: what it has not seen yet, while it works on an event. */
  backlog: Array<AgentEvent> | undefined
}

export const subscriber = <E, R>(
  listener: (event: AgentEvent) => Effect.Effect<unknown, E, R> | void,
  services: Context.Context<R>,
  required: boolean
): Subscriber => ({ listener, services, required, active: true, backlog: undefined })

const logFailure = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.void
    : Log.error(`A listener failed: ${show(Cause.squash(cause))}`, cause)

const listenerError = (event: AgentEvent, failure: Cause.Cause<unknown>): ListenerError => {
  const cause = Cause.squash(failure)
  return new ListenerError({ event: event.type, message: show(cause), cause })
}

const inContext = <A, E>(effect: Effect.Effect<A, E>, context: Context.Context<never>): Effect.Effect<A, E> => {
  const change: (from: Context.Context<never>) => Context.Context<never> = () => context
  return Effect.updateContext(effect, change)
}

/** Whether all services of one context are those of the other. */
const isWithin = (services: Context.Context<never>, context: Context.Context<never>): boolean => {
  for (const [key, service] of services.mapUnsafe) if (context.mapUnsafe.get(key) !== service) return false
  return true
}

interface Waiting {
  readonly event: AgentEvent
  readonly receivers: ReadonlyArray<Subscriber>
  readonly turn: Deferred.Deferred<void>
}

/** How the effects of a subscriber are run. It works on one event at a time, so this is made once and not for each event. */
interface Answering {
  /** That of the run, unless the subscriber's services are others. */
  readonly context: Context.Context<never> | undefined
  event: AgentEvent | undefined
  readonly onSuccess: (answer: unknown) => Effect.Effect<void>
  readonly onFailure: (cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

/** Who is subscribed; replaced on every change, so that an event goes to those who were there when it was emitted. */
export interface Subscribers {
  list: ReadonlyArray<Subscriber>
}

/** Whose events are delivered. */
export interface EventSource {
  /** Updates the state, before anybody sees the event. */
  reduce(event: AgentEvent): void
  /** A required subscriber failed. */
  listenerFailed(error: ListenerError): Effect.Effect<void>
}

/** The delivery of one run's events. */
export class Emitter {
  readonly #subscribers: Subscribers
  source: EventSource
  #busy = false
  /** The delivery under way is one that {@link begin} began. */
  #stepwise = false
  #event: AgentEvent | undefined
  #receivers: ReadonlyArray<Subscriber> = []
  #next = 0
  #waiting: MutableList.MutableList<Waiting> | undefined
  /** Whose turn it is, until it takes it. */
  #called: Waiting | undefined
  #fork: ((effect: Effect.Effect<void>) => void) | undefined
  /** The context events are delivered in; it is set before the first one. */
  services: Context.Context<never> = Context.empty()
  /** What is known of the subscribers that answer with effects. */
  #answering: Map<Subscriber, Answering> | undefined

  constructor(subscribers: Subscribers, source: EventSource) {
    this.#subscribers = subscribers
    this.source = source
  }

  /** Whether anybody listens; without listeners the snapshots of a streamed message need not be made. */
  get observed(): boolean {
    return this.#subscribers.list.length > 0
  }

  /** Events that were emitted, of which nobody has been told yet. */
  get untold(): ReadonlyArray<AgentEvent> {
    const waiting = this.#waiting === undefined ? [] : MutableList.toArray(this.#waiting)
    const called = this.#called === undefined || this.#fork !== undefined ? waiting : [this.#called, ...waiting]
    return called.map(({ event }) => event)
  }

  /** Delivers an event, after those that were emitted before it. */
  emit(event: AgentEvent): Pending {
    if (this.#fork !== undefined) return this.#emitDetached(event, this.#subscribers.list)
    if (this.#busy) return this.#enqueue(event)
    this.#busy = true
    return handled(this.#start(event, this.#subscribers.list))
  }

  /**
   * {@link emit} for a loop over many events. What it returns is the work of one subscriber as it is: when it is done,
   * `next` gives that of the one after, and when it failed, `failed` is told. So an answer costs no step but its own.
   */
  begin(event: AgentEvent): Answer {
    if (this.#fork !== undefined || this.#busy) return this.emit(event)
    this.#busy = true
    this.#stepwise = true
    return this.#start(event, this.#subscribers.list)
  }

  /** Goes on with the delivery that was begun, if it is not over. */
  next(): Answer {
    if (!this.#stepwise) return undefined
    if (this.#fork === undefined) return this.#advance()
    this.#stepwise = false
    return this.#catchUp(this.#receivers[this.#next - 1]!)
  }

  /** The subscriber that worked on the delivery that was begun has failed. */
  failed(cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return this.#failed(this.#receivers[this.#next - 1]!, this.#event!, cause)
  }

  /**
   * Stops waiting for subscribers. The one that works on an event is left behind: it gets what it misses, in order,
   * when it is done. `fork` runs effects of subscribers in the background.
   */
  detach(fork: (effect: Effect.Effect<void>) => void): void {
    if (this.#fork !== undefined) return
    this.#fork = fork
    if (this.#called !== undefined) this.#emitDetached(this.#called.event, this.#called.receivers)
    else if (this.#event !== undefined) {
      const stuck = this.#receivers[this.#next - 1]
      if (stuck !== undefined) stuck.backlog = []
      this.#deliverDetached(this.#event, this.#receivers.slice(this.#next))
    }
    const waiting = this.#waiting
    if (waiting === undefined) return
    for (let entry = MutableList.take(waiting); entry !== MutableList.Empty; entry = MutableList.take(waiting)) {
      this.#emitDetached(entry.event, entry.receivers)
      Deferred.doneUnsafe(entry.turn, Effect.void)
    }
  }

  /** Tells a subscriber; `undefined`: it has answered. Whatever it throws is its effect's defect. */
  #tell(receiver: Subscriber, event: AgentEvent): Answer {
    const answer = Result.try(() => {
      const given = receiver.listener(event)
      // Asked in here, for a proxy may throw when it is looked at.
      return Effect.isEffect(given) ? given : undefined
    })
    const effect = Result.isFailure(answer) ? Effect.die(answer.failure) : answer.success
    if (effect === undefined) return undefined
    if (Exit.isExit(effect) && Exit.isSuccess(effect)) return undefined
    const { context } = this.#answeringOf(receiver)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- services are provided, nobody looks at its value
    const asked = effect as Effect.Effect<void, unknown>
    return context === undefined ? asked : inContext(asked, context)
  }

  /**
   * Tells a subscriber, and does the rest when it has answered. A failure is logged and costs nothing else, unless the
   * subscriber is required: then it is a `ListenerError`. One effect for all of that, since there is one for every event.
   */
  #notify(receiver: Subscriber, event: AgentEvent): Pending {
    const asked = this.#tell(receiver, event)
    if (asked === undefined) return undefined
    const answering = this.#answeringOf(receiver)
    answering.event = event
    return Effect.matchCauseEffect(asked, answering)
  }

  #answeringOf(receiver: Subscriber): Answering {
    this.#answering ??= new Map()
    const known = this.#answering.get(receiver)
    if (known !== undefined) return known
    const answering: Answering = {
      context: this.#contextOf(receiver),
      event: undefined,
      // oxlint-disable-next-line no-unused-vars -- Effect wraps functions without a parameter in another one, for each event
      onSuccess: (_) => this.#resume(receiver),
      onFailure: (cause) =>
        Effect.andThen(
          this.#failed(receiver, answering.event!, cause),
          Effect.suspend(() => this.#resume(receiver))
        )
    }
    this.#answering.set(receiver, answering)
    return answering
  }

  /** The services of a subscriber, where they are not those of the run anyway. */
  #contextOf({ services }: Subscriber): Context.Context<never> | undefined {
    return isWithin(services, this.services) ? undefined : Context.merge(this.services, services)
  }

  #failed(receiver: Subscriber, event: AgentEvent, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return receiver.required ? this.source.listenerFailed(listenerError(event, cause)) : logFailure(cause)
  }

  #start(event: AgentEvent, receivers: ReadonlyArray<Subscriber>): Answer {
    this.source.reduce(event)
    return this.#deliver(event, receivers, 0)
  }

  #advance(): Answer {
    return this.#deliver(this.#event!, this.#receivers, this.#next)
  }

  /** Where it is, is only written down when there is something to wait for: events that are stored live longer. */
  #deliver(event: AgentEvent, receivers: ReadonlyArray<Subscriber>, from: number): Answer {
    for (let n = from; n < receivers.length; n++) {
      const receiver = receivers[n]!
      if (!receiver.active) continue
      if (receiver.backlog !== undefined) {
        receiver.backlog.push(event)
        continue
      }
      const pending = this.#stepwise ? this.#tell(receiver, event) : this.#notify(receiver, event)
      if (pending === undefined) continue
      this.#event = event
      this.#receivers = receivers
      this.#next = n + 1
      return pending
    }
    this.#event = undefined
    this.#busy = false
    this.#stepwise = false
    if (this.#waiting !== undefined) this.#wake()
    return undefined
  }

  /** What comes after the answer of a subscriber. */
  #resume(receiver: Subscriber): Effect.Effect<void> {
    if (this.#fork !== undefined) return this.#catchUp(receiver)
    return handled(this.#advance()) ?? Effect.void
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
    return handled(this.#start(entry.event, entry.receivers))
  }

  #emitDetached(event: AgentEvent, receivers: ReadonlyArray<Subscriber>): undefined {
    this.source.reduce(event)
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
      this.#fork!(pending)
    }
  }

  #catchUp(receiver: Subscriber): Effect.Effect<void> {
    return Effect.suspend(() => {
      while (receiver.active && receiver.backlog !== undefined && receiver.backlog.length > 0) {
        const pending = this.#notify(receiver, receiver.backlog.shift()!)
        if (pending !== undefined) return pending
      }
      receiver.backlog = undefined
      return Effect.void
    })
  }
}
