/**
 * Builds the assistant message of one response from the events of its stream. Plain state and plain functions: the loop
 * decides what to emit.
 *
 * Blocks are immutable, and those that grow are made anew for each snapshot, which is a new message over a copy of the block
 * list and never changes afterwards. Text grows by concatenation, which engines keep as ropes: a response costs linear time
 * in total.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ModelError } from "../Errors.ts"
import type { AssistantMessageEvent } from "../Events.ts"
import type {
  AssistantMessage,
  StopReason,
  TextContent,
  ThinkingContent,
  ThinkingLevel,
  ToolCall,
  Usage
} from "../Messages.ts"
import { addUsage, AssistantContent, emptyUsage } from "../Messages.ts"
import type { Model, ResponseInfo, StreamEnd, StreamEvent } from "../StreamFn.ts"
import { readArguments } from "./callArguments.ts"
import { copyJson } from "./copyJson.ts"
import { freshId, type UsedIds } from "./freshIds.ts"
import { attempt, encode, show, wellFormed } from "./json.ts"
import { isRecord } from "./record.ts"
import { eagerBlocks, snapshotOf } from "./snapshot.ts"

type Block = TextContent | ThinkingContent | ToolCall

/** A block that is still growing. Only its text is kept: a block for each delta would live longer than it is needed. */
class OpenBlock {
  readonly index: number
  readonly #begun: Block
  text = ""

  constructor(index: number, begun: Block) {
    this.index = index
    this.#begun = begun
  }

  get type(): Block["type"] {
    return this.#begun.type
  }

  /** The block as far as it has come. */
  get block(): Block {
    const begun = this.#begun
    switch (begun.type) {
      case "text":
        return { type: "text", text: this.text }
      case "thinking":
        return { type: "thinking", thinking: this.text }
      case "toolCall":
        return { ...begun, argumentsText: this.text }
    }
  }
}

/** What an event means for the loop: nothing to tell, the message's start, an update, or its end. */
export type Step = undefined | "start" | "end" | AssistantMessageEvent

/** What a message records of the model that answered. */
interface Answering {
  readonly id: string
  readonly api: string
  readonly provider: string
}

const unknown: Answering = { id: "unknown", api: "unknown", provider: "unknown" }

const textOr = (text: unknown, otherwise: string): string => typeof text === "string" ? wellFormed(text) : otherwise

/** A model comes from a host and may be anything; the message stays one that can be stored. */
const readAnswering = (model: Pick<Model, "id" | "api" | "provider">): Answering =>
  attempt(() => ({
    id: textOr(model.id, unknown.id),
    api: textOr(model.api, unknown.api),
    provider: textOr(model.provider, unknown.provider)
  })) ?? unknown

const deltas = { text: "text_delta", thinking: "thinking_delta", toolCall: "toolcall_delta" } as const

const ends = { text: "text_end", thinking: "thinking_end", toolCall: "toolcall_end" } as const

const signatures = { text: "textSignature", thinking: "thinkingSignature", toolCall: "thoughtSignature" } as const

const stopReasons: ReadonlySet<unknown> = new Set(["stop", "length", "toolUse", "error", "aborted", "deferred"])

const isUsageOrNone = (usage: unknown): boolean =>
  usage === undefined || (isRecord(usage) && typeof usage.cost === "object")

const isTextOrNone = (text: unknown): text is string | undefined => text === undefined || typeof text === "string"

const isFlagOrNone = (flag: unknown): boolean => flag === undefined || typeof flag === "boolean"

/** The error of an `error` event, typed whatever it was. */
const readError = (error: unknown): ModelError | undefined =>
  error === undefined || error === null || error instanceof ModelError
    ? error ?? undefined
    : new ModelError({ reason: "Reported", message: show(error), cause: error })

const messageOf = (error: ModelError): string => textOr(error.message, show(error))

const textFields = ["responseId", "responseModel", "rawStopReason", "providerThinkingLevel"] as const

const jsonFields = ["diagnostics", "deferred"] as const

/** What a message keeps of what a provider told about the response. */
type Details = Omit<ResponseInfo, "usage" | "model">

const noDetails: Details = {}

/** A copy, in which what is missing or no number counts as none. */
const readUsage = ({ cost, ...tokens }: Usage): Usage => ({
  ...emptyUsage,
  ...finiteFields(tokens),
  cost: { ...emptyUsage.cost, ...finiteFields(cost) }
})

const finiteFields = <Counts extends object>(counts: Counts): Counts => {
  const copy = { ...counts }
  for (const [key, value] of Object.entries(copy)) {
    if (!Number.isFinite(value)) Object.assign(copy, { [key]: 0 })
  }
  return copy
}

export class Accumulator {
  /** The message was announced with `message_start`. */
  announced = false
  /** The stream gave its final event: whatever happens then, the message is complete. */
  complete = false
  /** The error of a stream that failed or broke the protocol, or that an `error` event carried. */
  error: ModelError | undefined
  #model: Answering
  readonly #timestamp: number
  readonly #asked: Model
  /** The attempt at hand has begun. */
  #started = false
  /** What attempts have used that were withdrawn. */
  #withdrawn: Usage | undefined
  /** Those that are still growing stand here as they began. */
  #blocks: Array<Block> = []
  #open: Array<OpenBlock> = []
  #ids: UsedIds | undefined
  #info: Details = noDetails
  #usage: Usage = emptyUsage
  #end: { readonly stopReason: StopReason; readonly errorMessage: string | undefined } | undefined

  constructor(model: Model, timestamp: number) {
    this.#asked = model
    this.#model = readAnswering(model)
    this.#timestamp = timestamp
  }

  /** Takes the next event of the stream. After `end` no event must be given any more. */
  add(event: StreamEvent): Step {
    switch (event.type) {
      case "text_delta":
      case "thinking_delta":
      case "toolcall_delta":
        return this.#delta(event.type, event.contentIndex, event.delta)
      case "start":
        if (this.#started) return this.#violation("a second `start`")
        if (!isUsageOrNone(event.usage)) return this.#violation("a `start` whose usage is none")
        return this.#start(event)
      case "retract":
        if (!isUsageOrNone(event.usage)) return this.#violation("a `retract` whose usage is none")
        return this.#retract(event)
      case "text_start":
        return this.#openBlock(event.type, event.contentIndex, { type: "text", text: "" })
      case "thinking_start":
        return this.#openBlock(event.type, event.contentIndex, { type: "thinking", thinking: "" })
      case "toolcall_start":
        return this.#openCall(event)
      case "text_end":
      case "thinking_end":
      case "toolcall_end":
        return this.#closeBlock(event)
      case "done":
      case "error":
        return this.#finish(event)
      default:
        return this.#violation(`an event of unknown type ${JSON.stringify((event as { type?: unknown }).type)}`)
    }
  }

  /** Ends the message with an error of the stream, keeping what had arrived. */
  fail(error: ModelError): void {
    this.error = error
    this.#end = { stopReason: "error", errorMessage: messageOf(error) }
  }

  /** Ends the message with a stop reason the stream did not give, keeping what had arrived. */
  stop(stopReason: "error" | "aborted", errorMessage: string): void {
    this.#end = { stopReason, errorMessage }
  }

  /** An immutable snapshot of the message while it is being streamed. */
  snapshot(): AssistantMessage {
    const { api, id: model, provider } = this.#model
    const usage = this.#usage
    const stopReason = "pending"
    const timestamp = this.#timestamp
    // In one piece where that is possible: there is a snapshot for every event.
    if (this.#info === noDetails && this.#blocks.length <= eagerBlocks) {
      const content = this.#blocks.slice()
      for (let n = 0; n < this.#open.length; n++) content[this.#open[n]!.index] = this.#open[n]!.block
      return { role: "assistant", api, provider, model, usage, stopReason, timestamp, content }
    }
    const rest = { role: "assistant", api, provider, model, ...this.#info, usage, stopReason, timestamp } as const
    return snapshotOf(rest, this.#blocks, this.#open.map(({ block, index }) => [index, block]))
  }

  /** The finished message. `thinkingLevel` is the level that was asked for. */
  message(thinkingLevel: ThinkingLevel): AssistantMessage {
    const { errorMessage, stopReason } = this.#end!
    // Arguments of a response that broke off are kept as they came; they never run.
    const complete = this.error === undefined && stopReason !== "error" && stopReason !== "aborted"
    for (const { block, index } of this.#open) this.#blocks[index] = finishBlock(block, complete)
    this.#open = []
    return {
      role: "assistant",
      content: this.#blocks.slice(),
      api: this.#model.api,
      provider: this.#model.provider,
      model: this.#model.id,
      ...this.#details(),
      thinkingLevel,
      usage: this.#usage,
      stopReason,
      ...(errorMessage === undefined ? undefined : { errorMessage: wellFormed(errorMessage) }),
      timestamp: this.#timestamp
    }
  }

  #details(): Details | undefined {
    return this.#info === noDetails ? undefined : this.#info
  }

  #start(info: ResponseInfo): Step {
    this.#learn(info)
    this.#started = true
    if (this.announced) return undefined
    this.announced = true
    return "start"
  }

  /** Forgets what had arrived, but not what it cost. */
  #retract({ attempt, error, model, usage }: StreamEvent & { readonly type: "retract" }): Step {
    if (usage !== undefined) this.#learn({ usage })
    this.#withdrawn = this.#usage
    this.#started = false
    this.#blocks = []
    this.#open = []
    this.#ids = undefined
    this.#info = noDetails
    this.#model = readAnswering({ ...this.#asked, ...model })
    if (!this.announced) return undefined
    const reason = readError(error)
    return { type: "retract", attempt, ...(reason !== undefined && { errorMessage: messageOf(reason) }) }
  }

  #learn(info: ResponseInfo): void {
    if (info.usage !== undefined) {
      const usage = readUsage(info.usage)
      this.#usage = this.#withdrawn === undefined ? usage : addUsage(this.#withdrawn, usage)
    }
    if (isRecord(info.model)) this.#model = readAnswering({ ...this.#model, ...info.model })
    for (const field of textFields) {
      const value = info[field]
      if (typeof value === "string") this.#info = { ...this.#info, [field]: wellFormed(value) }
    }
    if (typeof info.endTurn === "boolean") this.#info = { ...this.#info, endTurn: info.endTurn }
    for (const field of jsonFields) {
      const value = encode(info[field])
      if (info[field] !== undefined && Result.isSuccess(value)) {
        this.#info = { ...this.#info, [field]: copyJson(value.success) }
      }
    }
  }

  #openBlock(type: "text_start" | "thinking_start" | "toolcall_start", index: number, block: Block): Step {
    if (index !== this.#blocks.length) {
      return this.#violation(`\`${type}\` for block ${index}, where block ${this.#blocks.length} comes next`)
    }
    this.#blocks.push(block)
    this.#open.push(new OpenBlock(index, block))
    return this.announced ? { type, contentIndex: index } : undefined
  }

  #openCall(event: StreamEvent & { readonly type: "toolcall_start" }): Step {
    const { contentIndex, id, name, namespace, type } = event
    if (typeof id !== "string" || typeof name !== "string" || !isTextOrNone(namespace)) {
      return this.#violation(`\`${type}\` for block ${contentIndex} whose id, name or namespace is no text`)
    }
    return this.#openBlock(type, contentIndex, {
      type: "toolCall",
      id: freshId(this.#ids ??= new Map(), id),
      name: wellFormed(name),
      arguments: {},
      argumentsText: "",
      ...(namespace === undefined ? undefined : { namespace: wellFormed(namespace) })
    })
  }

  #delta(type: "text_delta" | "thinking_delta" | "toolcall_delta", index: number, delta: string): Step {
    if (typeof delta !== "string") return this.#violation(`\`${type}\` for block ${index} without a text`)
    const open = this.#openAt(index)
    if (open === undefined || type !== deltas[open.type]) {
      return this.#violation(`\`${type}\` for block ${index}, which is not open for it`)
    }
    open.text += delta
    return this.announced ? { type, contentIndex: index, delta } : undefined
  }

  #openAt(index: number): OpenBlock | undefined {
    for (let n = 0; n < this.#open.length; n++) if (this.#open[n]!.index === index) return this.#open[n]
    return undefined
  }

  #closeBlock(event: StreamEvent & { readonly type: "text_end" | "thinking_end" | "toolcall_end" }): Step {
    const index = event.contentIndex
    const block = this.#openAt(index)?.block
    if (block === undefined || event.type !== ends[block.type]) {
      return this.#violation(`\`${event.type}\` for block ${index}, which is not open for it`)
    }
    const field = signatures[block.type]
    const signature: unknown = Reflect.get(event, field)
    if (!isTextOrNone(signature)) return this.#wrongEnd(event, "signature is no text")
    const redacted = event.type === "thinking_end" ? event.redacted : undefined
    if (!isFlagOrNone(redacted)) return this.#wrongEnd(event, "`redacted` is no boolean")
    const signed: Block = {
      ...block,
      ...(signature !== undefined && { [field]: wellFormed(signature) }),
      ...(redacted !== undefined && { redacted })
    }
    const given = event.type === "toolcall_end" ? event.arguments : undefined
    const whole = signed.type === "toolCall" && given !== undefined
      ? readArguments(signed, given)
      : finishBlock(signed, true)
    this.#open = this.#open.filter((open) => open.index !== index)
    this.#blocks[index] = whole
    if (!this.announced) return undefined
    switch (whole.type) {
      case "text":
        return { type: "text_end", contentIndex: index, content: whole.text }
      case "thinking":
        return { type: "thinking_end", contentIndex: index, content: whole.thinking }
      case "toolCall":
        return { type: "toolcall_end", contentIndex: index, toolCall: whole }
    }
  }

  #finish(event: StreamEnd): Step {
    const stopReason = event.stopReason ?? (event.type === "done" ? "stop" : "error")
    if (!stopReasons.has(stopReason)) return this.#violation(`\`${event.type}\` with stop reason ${show(stopReason)}`)
    if (!isUsageOrNone(event.usage)) return this.#violation(`\`${event.type}\` whose usage is none`)
    const errorMessage: unknown = event.errorMessage ?? undefined
    if (errorMessage !== undefined && typeof errorMessage !== "string") {
      return this.#violation(`\`${event.type}\` whose error message is no text`)
    }
    this.#learn(event)
    if (event.content !== undefined) {
      const blocks = this.#wholeBlocks(event.content)
      if (Result.isFailure(blocks)) return this.#violation(`\`${event.type}\` whose content${blocks.failure}`)
      this.#open = []
      this.#blocks = blocks.success
    }
    this.complete = true
    const error = readError(event.error)
    this.error = error
    this.#end = { stopReason, errorMessage: errorMessage ?? (error === undefined ? undefined : messageOf(error)) }
    return "end"
  }

  /** The blocks a provider gives whole, or what is wrong with them. */
  #wholeBlocks(given: unknown): Result.Result<Array<Block>, string> {
    if (!Array.isArray(given)) return Result.fail(" is no list")
    this.#ids = undefined
    const blocks: Array<Block> = []
    for (const each of given) {
      // What has not the fields of its type throws somewhere.
      const block = attempt(() => this.#wholeBlock(each))
      if (!isBlock(block)) return Result.fail(`[${blocks.length}] is no block of a response`)
      blocks.push(block)
    }
    return Result.succeed(blocks)
  }

  #wholeBlock(given: Block): Block {
    const block = mendBlock(given)
    return block.type === "toolCall"
      ? readArguments(
        { ...block, id: freshId(this.#ids ??= new Map(), block.id) },
        block.argumentsText ?? block.arguments
      )
      : block
  }

  #wrongEnd(event: { readonly type: string; readonly contentIndex: number }, what: string): Step {
    return this.#violation(`\`${event.type}\` for block ${event.contentIndex} whose ${what}`)
  }

  #violation(what: string): Step {
    this.fail(
      new ModelError({ reason: "ProtocolViolation", message: `The model's stream broke the protocol: ${what}` })
    )
    return "end"
  }
}

const isBlock = Schema.is(AssistantContent)

const finishBlock = (block: Block, complete: boolean): Block => {
  if (block.type === "text") {
    const text = wellFormed(block.text)
    return text === block.text ? block : { ...block, text }
  }
  if (block.type === "thinking") {
    const thinking = wellFormed(block.thinking)
    return thinking === block.thinking ? block : { ...block, thinking }
  }
  if (block.type !== "toolCall" || block.argumentsText === undefined) return block
  return complete ? readArguments(block, block.argumentsText) : keepText(block, block.argumentsText)
}

/** A copy, its text and signatures well formed; of a block that is no JSON only the text is looked at. */
const mendBlock = (block: Block): Block => {
  const encoded = encode(block)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- encoding JSON changes nothing but text
  return Result.isSuccess(encoded) ? copyJson(encoded.success) as Block : finishBlock(block, true)
}

const keepText = (call: ToolCall, text: string): ToolCall => {
  const { argumentsText: _, ...rest } = call
  return text === "" ? rest : { ...rest, argumentsText: wellFormed(text) }
}
