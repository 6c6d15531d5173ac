/**
 * The events of a pi-ai stream as events of a response. `partial`, which is one object that changes under its readers, is
 * only looked at, never handed on.
 *
 * Streams that leave a start or an end out are read all the same: the message of the final event says what the response is.
 */
import type { AssistantMessage, AssistantMessageEvent } from "@earendil-works/pi-ai"
import type { ResponseInfo, StreamEnd, StreamEvent } from "../../StreamFn.ts"
import { isRecord } from "../record.ts"
import type { Failures } from "./failures.ts"

/** The events of blocks, which all have an index. */
type BlockEvent = Exclude<AssistantMessageEvent, { readonly type: "start" | "done" | "error" }>

type BlockType = "text" | "thinking" | "toolcall"

interface Block {
  readonly index: number
  readonly type: BlockType
  /** How many characters have been told. */
  length: number
  open: boolean
}

const blockEvent = /^(text|thinking|toolcall)_(start|delta|end)$/

const isBlockType = (text: string | undefined): text is BlockType =>
  text === "text" || text === "thinking" || text === "toolcall"

export class Translator {
  readonly #failures: Failures
  /** By the index that pi-ai gives them. */
  readonly #blocks = new Map<number, Block>()
  /** The stream gave its final event. */
  ended = false

  constructor(failures: Failures) {
    this.#failures = failures
  }

  /** Adds what an event says. Events come from a library and are only believed to have a type. */
  add(out: Array<StreamEvent>, event: AssistantMessageEvent): void {
    switch (event.type) {
      case "start":
        out.push({ type: "start", ...infoOf(event.partial) })
        return
      case "done":
        return this.end(out, event.message)
      case "error":
        return this.end(out, event.error)
      default:
        return this.#block(out, event)
    }
  }

  /** Adds the end that the final message is. */
  end(out: Array<StreamEvent>, message: AssistantMessage): void {
    this.ended = true
    out.push(endOf(message, this.#failures))
  }

  #block(out: Array<StreamEvent>, event: BlockEvent): void {
    const [, type, step] = blockEvent.exec(event.type) ?? []
    if (!isBlockType(type)) return
    const block = this.#blocks.get(event.contentIndex) ?? this.#start(out, type, event)
    if (!block.open || block.type !== type) return
    if (step === "delta" && "delta" in event) this.#delta(out, block, event.delta)
    else if (step === "end") this.#end(out, block, event)
  }

  #start(out: Array<StreamEvent>, type: BlockType, event: BlockEvent): Block {
    const block: Block = { index: this.#blocks.size, type, length: 0, open: true }
    this.#blocks.set(event.contentIndex, block)
    const contentIndex = block.index
    if (type === "toolcall") {
      const call = event.type === "toolcall_end" ? event.toolCall : event.partial?.content[event.contentIndex]
      const known = call?.type === "toolCall" ? call : undefined
      out.push({
        type: "toolcall_start",
        contentIndex,
        id: known?.id ?? "",
        name: known?.name ?? "",
        ...(known?.namespace !== undefined && { namespace: known.namespace })
      })
    } else {
      out.push({ type: `${type}_start`, contentIndex })
    }
    return block
  }

  #delta(out: Array<StreamEvent>, block: Block, delta: string): void {
    if (delta === "") return
    block.length += delta.length
    out.push({ type: `${block.type}_delta`, contentIndex: block.index, delta })
  }

  #end(out: Array<StreamEvent>, block: Block, event: BlockEvent): void {
    const contentIndex = block.index
    block.open = false
    switch (event.type) {
      case "text_end": {
        this.#rest(out, block, event.content)
        const known = event.partial?.content[event.contentIndex]
        const textSignature = known?.type === "text" ? known.textSignature : undefined
        out.push({ type: "text_end", contentIndex, ...(textSignature !== undefined && { textSignature }) })
        return
      }
      case "thinking_end": {
        this.#rest(out, block, event.content)
        const known = event.partial?.content[event.contentIndex]
        const { redacted, thinkingSignature } = known?.type === "thinking" ? known : {}
        out.push({
          type: "thinking_end",
          contentIndex,
          ...(thinkingSignature !== undefined && { thinkingSignature }),
          ...(redacted !== undefined && { redacted })
        })
        return
      }
      case "toolcall_end": {
        const { arguments: args, thoughtSignature } = event.toolCall
        out.push({
          type: "toolcall_end",
          contentIndex,
          arguments: args,
          ...(thoughtSignature !== undefined && { thoughtSignature })
        })
      }
    }
  }

  /** What an end says beyond the deltas: thinking that is kept from readers comes without any. */
  #rest(out: Array<StreamEvent>, block: Block, content: string | undefined): void {
    if (content !== undefined) this.#delta(out, block, content.slice(block.length))
  }
}

/** What a message tells about the response. */
const infoOf = (message: AssistantMessage | undefined): ResponseInfo => {
  if (!isRecord(message)) return {}
  const {
    api,
    deferred,
    diagnostics,
    endTurn,
    model,
    provider,
    providerThinkingLevel,
    rawStopReason,
    responseId,
    responseModel,
    usage
  } = message
  return defined({
    responseId,
    responseModel,
    rawStopReason,
    providerThinkingLevel,
    endTurn,
    usage: usage === undefined ? undefined : { ...usage, cost: { ...usage.cost } },
    model: defined({ id: model, api, provider }),
    diagnostics,
    deferred
  })
}

/** Without the fields that are missing. */
const defined = (fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

const endOf = (message: AssistantMessage, failures: Failures): StreamEnd => {
  if (!isRecord(message)) return { type: "error", error: failures.violation("ended without a message") }
  const { content, errorMessage, stopReason } = message
  const rest = { ...infoOf(message), ...(Array.isArray(content) && { content: content.map(plain) }) }
  if (stopReason === "error" || stopReason === "aborted") {
    const error = stopReason === "aborted" ? failures.aborted(errorMessage) : failures.reported(errorMessage)
    return { type: "error", stopReason, ...rest, errorMessage: failures.text(errorMessage) ?? error.message, error }
  }
  if (stopReason === "pending") {
    return { type: "error", ...rest, error: failures.violation("ended with a message that is not complete") }
  }
  return { type: "done", stopReason, ...rest, ...(errorMessage !== undefined && { errorMessage }) }
}

type Content = NonNullable<StreamEnd["content"]>[number]

/** A copy without fields that are there but undefined, which are no JSON. */
const plain = (block: AssistantMessage["content"][number]): Content =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is left out was undefined
  isRecord(block) ? defined(block) as Content : block
