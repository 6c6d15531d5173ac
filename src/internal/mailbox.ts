/**
 * The messages that wait for an agent: its two queues, and notes that wait for a request without asking for one.
 */
import type { QueueOptions } from "../Agent.ts"
import type { AgentMessage } from "../Messages.ts"
import type { MessageQueue, Receipt } from "../Queues.ts"

const none: ReadonlyArray<AgentMessage> = []

export class Mailbox {
  readonly steering: MessageQueue
  readonly followUps: MessageQueue
  notes: ReadonlyArray<AgentMessage> = none
  /** Receipts of messages whose sender chose the id, so that one that is sent twice is delivered once. */
  #named: Map<string, Receipt> | undefined
  /** The last number that was given as an id, or left out because somebody chose it. */
  #posted = 0

  constructor(steering: MessageQueue, followUps: MessageQueue) {
    this.steering = steering
    this.followUps = followUps
  }

  post(
    to: "steering" | "followUps",
    message: AgentMessage,
    id: QueueOptions["id"],
    whileIdle: boolean
  ): Receipt {
    const known = id === undefined ? undefined : this.#named?.get(id)
    if (known !== undefined) return known
    const own = id === undefined || this.#isAutomatic(id) ? this.#nextId() : id
    const receipt = this[to].post(own, message, whileIdle)
    if (id !== undefined) {
      this.#named ??= new Map()
      this.#named.set(id, receipt)
    }
    return receipt
  }

  #nextId(): string {
    do this.#posted++
    while (this.#named?.has(`#${this.#posted}`))
    return `#${this.#posted}`
  }

  /** Whether a receipt without a chosen id got this one. */
  #isAutomatic(id: string): boolean {
    const number = Number(id.slice(1))
    return id === `#${number}` && number >= 1 && number <= this.#posted
  }

  withdraw(id: string): boolean {
    return this.steering.withdraw(id) || this.followUps.withdraw(id)
  }

  /** What the next drain would take. */
  peek(): ReadonlyArray<AgentMessage> {
    return this.steering.size > 0 ? this.steering.peek() : this.followUps.peek()
  }

  clear(): ReadonlyArray<AgentMessage> {
    return [...this.steering.clear(), ...this.followUps.clear()]
  }

  returned(because: Parameters<MessageQueue["returned"]>[0]): void {
    this.steering.returned(because)
    this.followUps.returned(because)
  }
}
