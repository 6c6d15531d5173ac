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
import * as Result from "effect/Result"
import { readQueued } from "./internal/queued.ts"
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
 * - `Returned`: the run ended without it (`ended`: because `finishTurn` said so). It is still queued, for the next run, and
 *   may still be withdrawn. After `disposed` nothing follows: the agent's scope has closed, or other code took the message
 *   away by shutting its queue down
 *
 * @category models
 * @since 0.1.0
 */
export type Delivery = Data.TaggedEnum<{
  Delivered: { readonly turn: number }
  Withdrawn: {}
  Returned: { readonly because: "aborted" | "limited" | "failed" | "ended" | "disposed" }
}>

type Because = Extract<Delivery, { readonly _tag: "Returned" }>["because"]

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
  /** Whether the message is out of the queue, in the hands of a run. */
  taken: boolean
}

/**
 * A queue of messages and the mode in which it is drained.
 *
 * **Gotchas**
 *
 * A drain takes what is there and never waits. Messages a run has read but not delivered are put back to the front.
 * What is added here is queued although the queue is full, or was ended or shut down by other code.
 *
 * @category models
 * @since 0.1.0
 */
export class MessageQueue {
  mode: QueueMode
  #queue: Queue.Queue<AgentMessage> | undefined
  #receipts: Map<AgentMessage, Entry> | undefined
  #gone: (() => void) | undefined

  /** Without a queue it makes an unbounded one when there is something to queue: most agents never do. */
  constructor(queue: Queue.Queue<AgentMessage> | undefined, mode: QueueMode) {
    this.#queue = queue
    this.mode = mode
  }

  get queue(): Queue.Queue<AgentMessage> {
    return this.#queue ??= Effect.runSync(Queue.unbounded<AgentMessage>())
  }

  /** How many messages wait. */
  get size(): number {
    return this.#queue === undefined ? 0 : Queue.sizeUnsafe(this.#queue)
  }

  /** All messages that wait, oldest first; takes nothing. */
  get messages(): ReadonlyArray<AgentMessage> {
    return this.#queue === undefined ? [] : MutableList.toArray(this.#queue.messages)
  }

  /** What the next drain would take; takes nothing. */
  peek(): ReadonlyArray<AgentMessage> {
    return this.mode === "all" || this.#queue === undefined
      ? this.messages
      : MutableList.toArrayN(this.#queue.messages, 1)
  }

  /** Adds a message at the end, also of a queue that takes nothing more from others. */
  offer(message: AgentMessage): void {
    if (Queue.offerUnsafe(this.queue, message)) return
    this.#reopen()
    MutableList.append(this.queue.messages, message)
  }

  /** A queue that is done holds no messages; then it is one that has ended and is to be emptied. */
  #reopen(): void {
    const { state } = this.queue
    if (state._tag !== "Done") return
    const { exit } = state
    this.queue.state = { _tag: "Closing", exit, takers: new Set(), offers: new Set(), awaiters: new Set() }
  }

  /**
   * Adds a message at the end and gives its receipt. Throws `InvalidPrompt` for one that does not decode, a tool result,
   * and one with tool calls.
   */
  post(id: string, message: AgentMessage, whileIdle: boolean): Receipt {
    const outcome = Deferred.makeUnsafe<Delivery>()
    const entry: Entry = { id, whileIdle, outcome, delivered: Deferred.await(outcome), taken: false }
    // A copy, so that one message that is posted twice has two receipts.
    const own = Result.getOrThrow(readQueued(message))
    this.#receipts ??= new Map()
    this.#receipts.set(own, entry)
    this.offer(own)
    const { state } = this.queue
    if (state._tag !== "Done") state.awaiters.add(this.#gone ??= () => this.#settleGone())
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
    if (this.#receipts !== undefined) {
      for (const message of MutableList.toArrayN(this.queue.messages, count)) this.#markTaken(message, true)
    }
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
    if (messages.length === 0) return
    this.#reopen()
    for (const message of messages) this.#markTaken(message, false)
    MutableList.prependAllUnsafe(this.queue.messages, messages)
  }

  /** Notes that a message that was taken is in the transcript. */
  delivered(message: AgentMessage, turn: number): void {
    this.#settle(message, Delivery.Delivered({ turn }))
  }

  /** Tells the receipts of what still waits that the run ended without it. */
  returned(because: Because): void {
    for (const { outcome } of this.#receipts?.values() ?? []) {
      Deferred.doneUnsafe(outcome, Effect.succeed(Delivery.Returned({ because })))
    }
  }

  /** Called when the queue is done: what other code took away by that is not delivered any more. */
  #settleGone(): void {
    const waiting = new Set(this.messages)
    for (const [message, { taken }] of this.#receipts ?? []) {
      if (!taken && !waiting.has(message)) this.#settle(message, Delivery.Returned({ because: "disposed" }))
    }
  }

  #markTaken(message: AgentMessage, taken: boolean): void {
    const entry = this.#receipts?.get(message)
    if (entry !== undefined) entry.taken = taken
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
