/**
 * The queues of an agent: steering messages are read before every request, follow-ups when the agent would stop. Both are
 * plain Effect `Queue` values, so other code may offer to them directly.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as MutableList from "effect/MutableList"
import * as Queue from "effect/Queue"
import type { AgentMessage } from "./Messages.ts"

/**
 * How many messages one drain takes: the oldest, or all of them.
 *
 * @category models
 * @since 0.1.0
 */
export type QueueMode = "one-at-a-time" | "all"

/**
 * What became of a queued message.
 *
 * - `Delivered`: it is in the transcript, before the request of the run's `turn`-th turn (from 1)
 * - `Withdrawn`: it was withdrawn, or cleared from the queue
 * - `Returned`: the run ended without it (`ended`: because `finishTurn` said so). It is still queued, for the next run, and may still be withdrawn
 *
 * @category models
 * @since 0.1.0
 */
export type Delivery = Data.TaggedEnum<{
  Delivered: { readonly turn: number }
  Withdrawn: {}
  Returned: { readonly because: "aborted" | "limited" | "failed" | "ended" | "disposed" }
}>

/**
 * Constructors and matchers of {@link Delivery}.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Delivery = Data.taggedEnum<Delivery>()

/**
 * The receipt of a queued message.
 *
 * @category models
 * @since 0.1.0
 */
export interface Receipt {
  readonly id: string
  /** Whether no run was under way: the message then waits for the next one, and is delivered after its prompt. */
  readonly whileIdle: boolean
  /** Waits until it is known what became of the message; the first thing counts. */
  readonly delivered: Effect.Effect<Delivery>
}

interface Entry extends Receipt {
  readonly outcome: Deferred.Deferred<Delivery>
}

/**
 * A queue of messages and the mode in which it is drained.
 *
 * **Gotchas**
 *
 * A drain takes what is there and never waits. Messages a run has read but not delivered are put back to the front.
 *
 * @category models
 * @since 0.1.0
 */
export class MessageQueue {
  readonly queue: Queue.Queue<AgentMessage>
  mode: QueueMode
  #receipts: Map<AgentMessage, Entry> | undefined

  constructor(queue: Queue.Queue<AgentMessage>, mode: QueueMode) {
    this.queue = queue
    this.mode = mode
  }

  /** How many messages wait. */
  get size(): number {
    return Queue.sizeUnsafe(this.queue)
  }

  /** All messages that wait, oldest first; takes nothing. */
  get messages(): ReadonlyArray<AgentMessage> {
    return MutableList.toArray(this.queue.messages)
  }

  /** What the next drain would take; takes nothing. */
  peek(): ReadonlyArray<AgentMessage> {
    return this.mode === "all" ? this.messages : MutableList.toArrayN(this.queue.messages, 1)
  }

  /** Adds a message at the end. */
  offer(message: AgentMessage): void {
    Queue.offerUnsafe(this.queue, message)
  }

  /** Adds a message at the end and gives its receipt. */
  post(id: string, message: AgentMessage, whileIdle: boolean): Receipt {
    const outcome = Deferred.makeUnsafe<Delivery>()
    const entry: Entry = { id, whileIdle, outcome, delivered: Deferred.await(outcome) }
    // A copy, so that one message that is posted twice has two receipts.
    const own = { ...message }
    this.#receipts ??= new Map()
    this.#receipts.set(own, entry)
    this.offer(own)
    return entry
  }

  /** Whether a waiting or taken message was posted, and so checked, rather than offered to the queue directly. */
  wasPosted(message: AgentMessage): boolean {
    return this.#receipts?.has(message) === true
  }

  /** Takes the next batch. */
  take(): ReadonlyArray<AgentMessage> {
    const { size } = this
    return size === 0 ? none : this.#takeFirst(this.mode === "all" ? size : 1)
  }

  /** Through the queue's own operation, so that producers that wait for room go on, and an ended queue is done. */
  #takeFirst(count: number): ReadonlyArray<AgentMessage> {
    const messages: Array<AgentMessage> = []
    while (messages.length < count) {
      const exit = Queue.takeUnsafe(this.queue)
      if (exit === undefined || Exit.isFailure(exit)) break
      messages.push(exit.value)
    }
    return messages
  }

  /** Takes everything; receipts say that it was withdrawn. */
  clear(): ReadonlyArray<AgentMessage> {
    const messages = this.#takeFirst(this.size)
    for (const message of messages) this.#settle(message, Delivery.Withdrawn())
    return messages
  }

  /** Takes the waiting message with this receipt out of the queue; `false` when it does not wait here. */
  withdraw(id: string): boolean {
    const message = this.messages.find((waiting) => this.#receipts?.get(waiting)?.id === id)
    if (message === undefined) return false
    this.putBack(this.#takeFirst(this.size).filter((waiting) => waiting !== message))
    this.#settle(message, Delivery.Withdrawn())
    return true
  }

  /** Puts messages back to the front, in order. */
  putBack(messages: ReadonlyArray<AgentMessage>): void {
    MutableList.prependAllUnsafe(this.queue.messages, messages)
  }

  /** Notes that a message that was taken is in the transcript. */
  delivered(message: AgentMessage, turn: number): void {
    this.#settle(message, Delivery.Delivered({ turn }))
  }

  /** Tells the receipts of what still waits that the run ended without it. */
  returned(because: "aborted" | "limited" | "failed" | "ended" | "disposed"): void {
    if (this.#receipts === undefined) return
    for (const { outcome } of this.#receipts.values()) {
      Deferred.doneUnsafe(outcome, Effect.succeed(Delivery.Returned({ because })))
    }
  }

  #settle(message: AgentMessage, delivery: Delivery): void {
    const entry = this.#receipts?.get(message)
    if (entry === undefined) return
    this.#receipts!.delete(message)
    Deferred.doneUnsafe(entry.outcome, Effect.succeed(delivery))
  }
}

const none: ReadonlyArray<AgentMessage> = []

/**
 * An empty queue.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (mode: QueueMode = "one-at-a-time"): Effect.Effect<MessageQueue> =>
  Effect.map(Queue.unbounded<AgentMessage>(), (queue) => new MessageQueue(queue, mode))
