/**
 * Transcripts that another program wrote, or that a crash cut short: what keeps them from being valid (I1, I6), and how
 * to mend it. One walk finds a defect and mends it, so that {@link check} and {@link repair} cannot disagree. Public
 * through `Messages`.
 *
 * @since 0.1.0
 */
import { type AgentMessage, type AssistantMessage, type ToolCall, type ToolResultMessage } from "../Messages.ts"
import { excerpt } from "./excerpt.ts"
import { freshId, type UsedIds } from "./freshIds.ts"
import { unanswered } from "./openCalls.ts"
import { normalize } from "./requestMessages.ts"
import { placeName, salvage } from "./salvage.ts"

/**
 * Something that keeps a transcript from being valid. `index` is the place of the message in the list that was checked.
 *
 * **Details**
 *
 * - `Undecodable`: a message, or the part of it at `path`, is not what {@link AgentMessage} describes.
 * - `NotPlainJson`: a message holds something JSON writes differently, such as a field that is `undefined` or a `Date`.
 * - `IllFormedText`: a text holds half a surrogate pair; strict encoders of UTF-8 refuse it.
 * - `PendingAssistant`: a response that was still being streamed.
 * - `EmptyAssistant`: a response with no block, or only with empty ones. One that ended in `error` or `aborted` may be
 *   empty, and so may a `deferred` one.
 * - `DuplicateCallId`, `EmptyCallId`: a call whose id another call of the same message has, or that has none.
 * - `OpenCall`: a call without a result. Calls of responses that ended in `error` or `aborted` need none: they never ran.
 * - `OrphanResult`: a result of a call that is not there, or that never ran.
 * - `DoubledResult`: a result of a call that has one already.
 * - `EarlyResult`, `LateResult`, `UnorderedResult`: a result that stands before its call, behind other messages, or
 *   before the result of an earlier call of the same response.
 *
 * Of defects that hide one another only one is listed: what is left out counts as gone, so that the result of a call
 * that does not decode is an orphan.
 *
 * @category models
 * @since 0.1.0
 */
export type Defect =
  | {
    readonly _tag: "Undecodable"
    readonly index: number
    /** Where in the message. */
    readonly path: ReadonlyArray<PropertyKey>
    readonly message: string
  }
  | {
    readonly _tag: "NotPlainJson" | "IllFormedText" | "PendingAssistant" | "EmptyAssistant"
    readonly index: number
    readonly message: string
  }
  | {
    readonly _tag:
      | "DuplicateCallId"
      | "EmptyCallId"
      | "OpenCall"
      | "OrphanResult"
      | "DoubledResult"
      | "EarlyResult"
      | "LateResult"
      | "UnorderedResult"
    readonly index: number
    /** The id of the call. */
    readonly id: string
    /** The name of its tool. */
    readonly name: string
    readonly message: string
  }

/**
 * A change that mends a {@link Defect}: a message was left out, moved, changed, or added behind the message at `index`.
 *
 * **Details**
 *
 * `index` counts in the list that was given. It differs from the defect's only where the result of a call with a new id
 * was given that id as well.
 *
 * @category models
 * @since 0.1.0
 */
export interface Repair {
  readonly _tag: "Dropped" | "Moved" | "Changed" | "Added"
  readonly index: number
  readonly defect: Defect
  readonly message: string
}

/**
 * What is wrong with a transcript, in its order; nothing when it is valid.
 *
 * **When to use**
 *
 * To refuse, or to report, a stored conversation before an agent goes on with it. {@link repair} mends all of it.
 *
 * **Gotchas**
 *
 * While an agent runs, its last response may be pending and its calls open. A model may answer with nothing at all: that
 * response is listed although requests leave it out.
 *
 * **Example** (A conversation that ends with a call)
 *
 * ```ts
 * import { Messages } from "effect-pi"
 *
 * const call: Messages.ToolCall = { type: "toolCall", id: "1", name: "add", arguments: { a: 1, b: 2 } }
 * Messages.check([Messages.user("1 + 2?"), Messages.assistant([call])]).map((defect) => defect.message)
 * // => ['Message 1: call "1" of "add" has no result']
 * ```
 *
 * @category validation
 * @since 0.1.0
 */
export const check = (messages: ReadonlyArray<unknown>): ReadonlyArray<Defect> => new Mending(messages).defects()

/**
 * A transcript with everything mended that {@link check} finds, and what was done to it. The same list when nothing was.
 *
 * **Details**
 *
 * - The same transcript always gives the same: no clock and no chance is involved, and repairing twice changes nothing.
 * - Calls and results pair by position: a result belongs to the nearest message before it that calls its id, or, where
 *   nothing before it does, to the first one behind it. An id that comes again in a later turn is a different call.
 * - Results are moved right behind their message, in call order; what stood between follows. An open call gets an error
 *   result that says that its outcome is unknown. Orphan and doubled results are left out.
 * - Calls without an id of their own get one, and their results with them. A pending response is `aborted`, and an empty
 *   one is left out. Half surrogate pairs become U+FFFD.
 * - Of a message that does not decode the smallest part is left out that helps: a field, a block, or all of it. Usage,
 *   time, model and the like get a neutral value instead.
 * - Roles, blocks and fields that this version does not know are kept (I6).
 *
 * **Example** (A stored conversation)
 *
 * ```ts
 * import { Agent, Messages } from "effect-pi"
 *
 * const open = (stored: ReadonlyArray<unknown>) => {
 *   const { messages, repairs } = Messages.repair(stored)
 *   return { agent: Agent.make({ model: { id: "some-model" }, messages }), notes: repairs.map((repair) => repair.message) }
 * }
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const repair = (
  messages: ReadonlyArray<unknown>
): { readonly messages: ReadonlyArray<AgentMessage>; readonly repairs: ReadonlyArray<Repair> } => {
  const mending = new Mending(messages)
  return { messages: isSame(messages, mending.messages) ? messages : mending.messages, repairs: mending.repairs() }
}

/**
 * The same for messages that follow a valid conversation, of which only `caller` has calls that they may answer. Indices
 * count in `messages`, those of the caller are below 0.
 */
export const repairBehind = (
  before: ReadonlyArray<AgentMessage>,
  caller: AssistantMessage | undefined,
  messages: ReadonlyArray<AgentMessage>
): ReturnType<typeof repair> => {
  const callers = caller === undefined ? [] : [caller]
  const mending = new Mending([...callers, ...messages], -callers.length, before)
  return { messages: mending.messages.slice(callers.length), repairs: mending.repairs() }
}

const isSame = (
  messages: ReadonlyArray<unknown>,
  mended: ReadonlyArray<AgentMessage>
): messages is ReadonlyArray<AgentMessage> =>
  messages.length === mended.length && mended.every((message, index) => message === messages[index])

type CallName = Pick<ToolCall, "id" | "name">
type CallDefect = Extract<Defect, { readonly id: string }>
type MessageDefect = Exclude<Defect, CallDefect | { readonly path: unknown }>

/** A call as it was given and as it is now, and the result that was found for it. */
interface Slot {
  readonly given: ToolCall
  readonly call: ToolCall
  /** What gave the call a new id, which its result has to get too. */
  readonly renamed: Defect | undefined
  result: Answer | undefined
}

/** A message that is neither left out nor a result, with the calls of its own that need one. */
interface Turn {
  readonly index: number
  readonly message: AgentMessage
  readonly slots: ReadonlyArray<Slot>
}

/** A result, and how many turns stand before it. */
interface Answer {
  readonly index: number
  readonly message: ToolResultMessage
  readonly turns: number
}

/** The calls of one message that have the same id as it was given. */
interface Called {
  readonly open: Array<Slot>
  readonly ran: boolean
}

/** One walk over a transcript. */
class Mending {
  readonly messages: Array<AgentMessage> = []
  readonly #repairs: Array<Repair> = []
  readonly #turns: Array<Turn> = []
  /** The calls that the results to come belong to, by id. */
  readonly #nearest = new Map<string, Called>()
  /** The first calls of each id, which may have had their results before them. */
  readonly #first = new Map<string, Called>()
  readonly #early: Array<Answer> = []

  /** What stands before. */
  readonly #before: ReadonlyArray<AgentMessage>

  /** `first` is the index of the first message. */
  constructor(messages: ReadonlyArray<unknown>, first = 0, before: ReadonlyArray<AgentMessage> = []) {
    this.#before = before
    for (const [position, value] of messages.entries()) {
      const index = first + position
      const message = this.#read(index, value)
      if (message?.role === "toolResult") this.#addResult({ index, message, turns: this.#turns.length })
      else if (message?.role === "assistant") this.#addAssistant(index, message)
      else if (message !== undefined) this.#turns.push({ index, message, slots: [] })
    }
    // A result further on has the better claim, so those that came too early wait until all others have their calls.
    for (const result of this.#early) this.#assign(result, this.#first.get(result.message.toolCallId))
    for (const [position, turn] of this.#turns.entries()) this.#write(turn, position + 1)
  }

  repairs(): ReadonlyArray<Repair> {
    return this.#repairs.toSorted((left, right) => left.index - right.index)
  }

  /** What was repaired; a defect that took two changes is listed where it lies. */
  defects(): ReadonlyArray<Defect> {
    return this.repairs().filter((change) => change.index === change.defect.index).map((change) => change.defect)
  }

  #read(index: number, value: unknown): AgentMessage | undefined {
    const { losses, message, rewritten } = salvage(value)
    for (const { filled, path, place, problem } of losses) {
      const text = path.length === 0 ? problem : `${placeName(path)}: ${problem}`
      const defect: Defect = { _tag: "Undecodable", index, path, message: `Message ${index}: ${text}` }
      const done = filled ? "has a neutral value now" : "is left out"
      this.#note(defect, place.length === 0 ? "Dropped" : "Changed", `${placeName(place)} ${done}`)
    }
    if (rewritten === "Text") {
      const defect = this.#defect("IllFormedText", index, "a text is not well-formed Unicode")
      this.#note(defect, "Changed", "U+FFFD stands for half surrogate pairs")
    } else if (rewritten === "Form") {
      const defect = this.#defect("NotPlainJson", index, "something in it is not plain JSON")
      this.#note(defect, "Changed", "it is the JSON it stands for")
    }
    return message
  }

  #addAssistant(index: number, given: AssistantMessage): void {
    if (given.stopReason === "pending") {
      const defect = this.#defect("PendingAssistant", index, "the response never ended")
      this.#note(defect, "Changed", "its stop reason is `aborted`")
    }
    const message: AssistantMessage = given.stopReason === "pending" ? { ...given, stopReason: "aborted" } : given
    const ran = didRun(message)
    if (ran && message.stopReason !== "deferred" && saysNothing(message)) {
      this.#note(this.#defect("EmptyAssistant", index, "the response is empty"), "Dropped", "it is left out")
      return
    }
    const slots: Array<Slot> = []
    const called = new Map<string, Called>()
    const used: UsedIds = new Map()
    const content = message.content.map((block) => {
      if (block.type !== "toolCall") return block
      const slot = this.#giveId(index, block, used)
      const same = called.get(block.id) ?? { open: [], ran }
      called.set(block.id, same)
      if (ran) {
        slots.push(slot)
        same.open.push(slot)
      }
      return slot.call
    })
    for (const [id, calls] of called) {
      this.#nearest.set(id, calls)
      if (!this.#first.has(id)) this.#first.set(id, calls)
    }
    const same = content.every((block, position) => block === message.content[position])
    this.#turns.push({ index, message: same ? message : { ...message, content }, slots })
  }

  #giveId(index: number, given: ToolCall, used: UsedIds): Slot {
    const id = freshId(used, given.id)
    if (id === given.id) return { given, call: given, renamed: undefined, result: undefined }
    const renamed = given.id === ""
      ? this.#callDefect("EmptyCallId", index, given, `a call of ${quote(given.name)} has no id`)
      : this.#callDefect("DuplicateCallId", index, given, `another call has the id of ${callName(given)}`)
    this.#note(renamed, "Changed", `the call has the id ${quote(id)}`)
    return { given, call: { ...given, id }, renamed, result: undefined }
  }

  #addResult(result: Answer): void {
    const id = result.message.toolCallId
    const called = this.#nearest.get(id) ?? this.#calledBefore(id)
    if (called === undefined) this.#early.push(result)
    else this.#assign(result, called)
  }

  /** The call of this id in what stands before, which has its result. Only looked for when a result has no call. */
  #calledBefore(id: string): Called | undefined {
    const caller = this.#before.findLast((message) =>
      message.role === "assistant" && message.content.some((block) => block.type === "toolCall" && block.id === id)
    )
    return caller?.role === "assistant" ? { open: [], ran: didRun(caller) } : undefined
  }

  #assign(result: Answer, called: Called | undefined): void {
    const slot = called?.open.shift()
    if (slot !== undefined) {
      slot.result = result
      return
    }
    const call = callOf(result)
    const defect = called?.ran === true
      ? this.#callDefect("DoubledResult", result.index, call, `${callName(call)} has another result`)
      : this.#callDefect("OrphanResult", result.index, call, `no call that ran has the id of ${callName(call)}`)
    this.#note(defect, "Dropped", "the result is left out")
  }

  #write(turn: Turn, turns: number): void {
    this.messages.push(turn.message)
    let last = turn.index
    for (const { call, given, renamed, result } of turn.slots) {
      if (result === undefined) {
        const defect = this.#callDefect("OpenCall", turn.index, given, `${callName(given)} has no result`)
        this.#note(defect, "Added", "an error result says that the outcome is unknown")
        this.messages.push(unanswered(call, turn.message.timestamp))
        continue
      }
      if (result.turns === turns && result.index > last) last = result.index
      else this.#noteMove(result, turns)
      if (renamed !== undefined) this.#note(renamed, "Changed", `its result has the id ${quote(call.id)}`, result.index)
      this.messages.push(renamed === undefined ? result.message : { ...result.message, toolCallId: call.id })
    }
  }

  #noteMove(result: Answer, turns: number): void {
    const call = callOf(result)
    const [_tag, problem] = result.turns < turns
      ? ["EarlyResult", `the result stands before ${callName(call)}`] as const
      : result.turns > turns
      ? ["LateResult", `other messages stand before the result of ${callName(call)}`] as const
      : ["UnorderedResult", `the result of ${callName(call)} is not in call order`] as const
    this.#note(this.#callDefect(_tag, result.index, call, problem), "Moved", "it stands behind its call")
  }

  #defect(_tag: MessageDefect["_tag"], index: number, problem: string): Defect {
    return { _tag, index, message: `Message ${index}: ${problem}` }
  }

  #callDefect(_tag: CallDefect["_tag"], index: number, { id, name }: CallName, problem: string): Defect {
    return { _tag, index, id, name, message: `Message ${index}: ${problem}` }
  }

  #note(defect: Defect, _tag: Repair["_tag"], done: string, index = defect.index): void {
    this.#repairs.push({ _tag, index, defect, message: `${defect.message}; ${done}` })
  }
}

/** Whether the calls of a response need results. */
const didRun = ({ stopReason }: AssistantMessage): boolean => stopReason !== "error" && stopReason !== "aborted"

/** Whether requests leave a response out, as empty ones are. */
const saysNothing = (message: AssistantMessage): boolean =>
  message.content.every((block) => block.type !== "toolCall") && normalize([message]).messages.length === 0

const quote = (text: string): string => excerpt(text, 60)

const callName = (call: CallName): string => `call ${quote(call.id)} of ${quote(call.name)}`

const callOf = ({ message }: Answer): CallName => ({ id: message.toolCallId, name: message.toolName })
