/**
 * What a request leaves out of a conversation, although the transcript keeps it (M1): calls of messages that ended in
 * `error` or `aborted`, assistant messages with nothing left in them, results whose call is not in the request, and calls
 * whose result is not. A call and its results pair by position: the results stand right behind the message that calls.
 */
import {
  type AgentMessage,
  type AssistantMessage,
  isMessage,
  type Message,
  type ToolCall,
  type ToolResultMessage
} from "../Messages.ts"

/** Whether a block says nothing: empty text, or empty thinking without an encrypted payload. */
const isEmpty = (block: AssistantMessage["content"][number]): boolean =>
  block.type === "text"
    ? block.text === ""
    : block.type === "thinking" && block.thinking === "" && block.thinkingSignature === undefined

/** Whether its calls never ran: it failed, was aborted, or was stored before it was finished. */
const failed = ({ stopReason }: AssistantMessage): boolean =>
  stopReason === "error" || stopReason === "aborted" || stopReason === "pending"

/** The message as a request holds it; the same one when nothing was left out. */
const asSent = (message: AssistantMessage, content: AssistantMessage["content"]): AssistantMessage => {
  if (message.stopReason === "pending") return { ...message, content, stopReason: "aborted" }
  return content.length === message.content.length ? message : { ...message, content }
}

const isCall = (block: { readonly type: string }): block is ToolCall => block.type === "toolCall"

/** Takes messages one after the other and says which of them, in which form, a request holds. */
class Normalizer {
  /** Results or calls that a conversion or a context hook cut from their counterparts. */
  splitPairs = 0

  /** Appends the normal form of the messages to `target`. A call at their end is one without a result. */
  run(source: ReadonlyArray<Message>, target: Array<Message>): void {
    let index = 0
    while (index < source.length) {
      const message = source[index]!
      if (message.role === "toolResult") {
        this.splitPairs++
        index++
      } else if (message.role !== "assistant") {
        target.push(message)
        index++
      } else {
        index++
        const results: Array<ToolResultMessage> = []
        for (let next = source[index]; next?.role === "toolResult"; next = source[++index]) results.push(next)
        this.#group(message, results, target)
      }
    }
  }

  /** One assistant message with the results behind it. */
  #group(message: AssistantMessage, results: ReadonlyArray<ToolResultMessage>, target: Array<Message>): void {
    const calls = failed(message) ? [] : message.content.filter(isCall)
    const open = new Map<string, number>()
    for (const call of calls) open.set(call.id, (open.get(call.id) ?? 0) + 1)
    const paired: Array<ToolResultMessage> = []
    const answered = new Map<string, number>()
    for (const result of results) {
      const left = open.get(result.toolCallId) ?? 0
      if (left === 0) {
        this.splitPairs++
        continue
      }
      open.set(result.toolCallId, left - 1)
      answered.set(result.toolCallId, (answered.get(result.toolCallId) ?? 0) + 1)
      paired.push(result)
    }
    const unanswered = calls.length - paired.length
    this.splitPairs += unanswered
    const content = unanswered === 0 && !failed(message) ? message.content : message.content.filter((block) => {
      if (!isCall(block)) return true
      const left = answered.get(block.id) ?? 0
      answered.set(block.id, left - 1)
      return left > 0
    })
    if (content.every(isEmpty)) return
    target.push(asSent(message, content))
    for (const result of paired) target.push(result)
  }
}

/**
 * The normal form of a whole conversation, the same list when nothing had to be left out, and how many calls and results
 * were cut from their counterparts.
 */
export const normalize = (
  messages: ReadonlyArray<Message>
): { readonly messages: ReadonlyArray<Message>; readonly splitPairs: number } => {
  const normalizer = new Normalizer()
  const normal: Array<Message> = []
  normalizer.run(messages, normal)
  const same = normal.length === messages.length && normal.every((message, index) => message === messages[index])
  return { messages: same ? messages : normal, splitPairs: normalizer.splitPairs }
}

/**
 * The request made of a growing transcript with the default conversion. Each message is looked at once; as long as
 * nothing has to be left out the request is the transcript's own list, so the next turn of a long conversation costs
 * what that of a short one does.
 */
export class RequestMessages {
  readonly #source: ReadonlyArray<AgentMessage>
  #seen = 0
  #own: Array<Message> | undefined

  /** `source` only grows. */
  constructor(source: ReadonlyArray<AgentMessage>) {
    this.#source = source
  }

  messages: ReadonlyArray<Message> = []
  splitPairs = 0

  /** Takes in what was added to the transcript since. */
  extend(): this {
    const source = this.#source
    this.splitPairs = 0
    if (this.#own === undefined) {
      this.#seen = normalUntil(source, this.#seen)
      const whole = wholeOf(source, this.#seen)
      if (whole !== undefined) {
        this.messages = whole
        return this
      }
      this.#own = source.slice(0, this.#seen).filter(isMessage)
    }
    const normalizer = new Normalizer()
    normalizer.run(source.slice(this.#seen).filter(isMessage), this.#own)
    this.#seen = source.length
    this.splitPairs = normalizer.splitPairs
    this.messages = this.#own
    return this
  }
}

/** How far a list, from this place on, is in its normal form already: with nothing to leave out, results in call order. */
const normalUntil = (source: ReadonlyArray<AgentMessage>, from: number): number => {
  let index = from
  while (index < source.length) {
    const message = source[index]!
    if (!isMessage(message) || message.role === "toolResult") return index
    const next = message.role === "assistant" ? endOfGroup(source, index, message) : index + 1
    if (next === undefined) return index
    index = next
  }
  return index
}

/** The place behind an assistant message and its results, if both are sent as they are. */
const endOfGroup = (
  source: ReadonlyArray<AgentMessage>,
  index: number,
  message: AssistantMessage
): number | undefined => {
  if (failed(message)) return undefined
  let next = index + 1
  let isSaid = false
  for (const block of message.content) {
    if (!isEmpty(block)) isSaid = true
    if (block.type !== "toolCall") continue
    const result = source[next]
    if (result?.role !== "toolResult" || result.toolCallId !== block.id) return undefined
    next++
  }
  return isSaid && source[next]?.role !== "toolResult" ? next : undefined
}

/** The list itself, if it was looked at to its end: then a model knows all of its messages. */
const wholeOf = (source: ReadonlyArray<AgentMessage>, seen: number): ReadonlyArray<Message> | undefined =>
  isSeen(source, seen) ? source : undefined

const isSeen = (source: ReadonlyArray<AgentMessage>, seen: number): source is ReadonlyArray<Message> =>
  seen === source.length
