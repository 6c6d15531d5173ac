/**
 * The queues of an agent: steering messages are read before every request, follow-ups when the agent would stop. Both are
 * plain Effect `Queue` values, so other code may offer to them directly.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
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

  /** Takes the next batch. */
  take(): ReadonlyArray<AgentMessage> {
    if (this.size === 0) return none
    return MutableList.takeN(this.queue.messages, this.mode === "all" ? this.size : 1)
  }

  /** Takes everything. */
  clear(): ReadonlyArray<AgentMessage> {
    return MutableList.takeAll(this.queue.messages)
  }

  /** Puts messages back to the front, in order. */
  putBack(messages: ReadonlyArray<AgentMessage>): void {
    MutableList.prependAllUnsafe(this.queue.messages, messages)
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
