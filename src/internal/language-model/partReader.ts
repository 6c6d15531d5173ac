/**
 * The parts of a response as events of a response. Parts that leave a start or an end out are read all the same.
 */
import type * as Response from "effect/ai/Response"
import * as Result from "effect/Result"
import { ModelError } from "../../Errors.ts"
import type { Json, JsonObject, StopReason, Usage } from "../../Messages.ts"
import type { Model, ResponseInfo, StreamEvent } from "../../StreamFn.ts"
import { costOf } from "../costOf.ts"
import { encode } from "../json.ts"
import { isRecord } from "../record.ts"
import { incomplete, toModelError } from "./failures.ts"
import { merge, toSignature } from "./metadata.ts"

interface Block {
  readonly index: number
  readonly type: "text" | "thinking" | "toolcall"
  metadata: JsonObject | undefined
}

const signatureFields = { text: "textSignature", thinking: "thinkingSignature", toolcall: "thoughtSignature" } as const

export class PartReader {
  readonly #model: Model
  readonly #now: () => number
  #events: Array<StreamEvent> = []
  #started = false
  #count = 0
  #called = false
  /** The blocks that are open, by kind and id: providers number text and reasoning apart. */
  readonly #open = new Map<string, Block>()
  #info: ResponseInfo = {}
  #finish: { readonly reason: string; readonly usage: Usage } | undefined
  /** What has no place in a message: what the provider itself did, sources, files. */
  #others: Array<Json> = []
  #failure: ModelError | undefined

  /** `now` is the time, for errors that name a date. */
  constructor(model: Model, now: () => number) {
    this.#model = model
    this.#now = now
  }

  /** The events of these parts. */
  read(parts: ReadonlyArray<{ readonly type: string }>): ReadonlyArray<StreamEvent> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- parts come decoded; other types fall through
    for (const part of parts) if (this.#failure === undefined) this.#read(part as AnyPart)
    return this.#take()
  }

  /** The end of the stream. */
  end(): ReadonlyArray<StreamEvent> {
    this.#start()
    for (const block of this.#open.values()) this.#close(block)
    this.#open.clear()
    const finish = this.#finish
    const error = this.#failure ?? (finish === undefined ? incomplete() : undefined)
    const info: ResponseInfo = {
      ...this.#info,
      ...(finish !== undefined && { rawStopReason: finish.reason, usage: finish.usage }),
      ...(this.#others.length > 0 && { diagnostics: this.#others })
    }
    if (error !== undefined) this.#events.push({ type: "error", stopReason: "error", error, ...info })
    else this.#events.push(this.#final(finish!.reason, info))
    return this.#take()
  }

  #final(reason: string, info: ResponseInfo): StreamEvent {
    if (reason === "content-filter" || reason === "error") {
      const message = reason === "error"
        ? "The language model ended its answer with an error"
        : "The provider's content filter stopped the answer"
      const error = new ModelError({ reason: "Reported", message })
      return { type: "error", stopReason: "error", error, ...info }
    }
    const stopReason: StopReason = reason === "length" ? "length" : this.#called ? "toolUse" : "stop"
    return { type: "done", stopReason, ...info }
  }

  #take(): ReadonlyArray<StreamEvent> {
    const events = this.#events
    this.#events = []
    return events
  }

  #start(): void {
    if (this.#started) return
    this.#started = true
    this.#events.push({ type: "start", ...this.#info })
  }

  #read(part: AnyPart): void {
    if (part.type === "response-metadata") return this.#learn(part)
    this.#start()
    switch (part.type) {
      case "text-start":
        this.#note(this.#fresh("text", part.id), part.metadata)
        return
      case "reasoning-start":
        this.#note(this.#fresh("thinking", part.id), part.metadata)
        return
      case "text-delta":
        return this.#delta(this.#block("text", part.id), part.delta, part.metadata)
      case "reasoning-delta":
        return this.#delta(this.#block("thinking", part.id), part.delta, part.metadata)
      case "text-end":
        return this.#end("text", part.id, part.metadata)
      case "reasoning-end":
        return this.#end("thinking", part.id, part.metadata)
      case "tool-params-start":
        if (!part.providerExecuted) this.#note(this.#call(part.id, part.name), part.metadata)
        return
      case "tool-params-delta": {
        const call = this.#open.get(`toolcall ${part.id}`)
        if (call !== undefined) this.#delta(call, part.delta, part.metadata)
        return
      }
      case "tool-params-end": {
        // The parameters follow whole, in the call.
        const call = this.#open.get(`toolcall ${part.id}`)
        if (call !== undefined) this.#note(call, part.metadata)
        return
      }
      case "tool-call": {
        if (part.providerExecuted === true) return this.#other(part)
        const call = this.#open.get(`toolcall ${part.id}`) ?? this.#call(part.id, part.name)
        this.#note(call, part.metadata)
        this.#open.delete(`toolcall ${part.id}`)
        this.#events.push({
          type: "toolcall_end",
          contentIndex: call.index,
          arguments: part.params,
          ...signed(call)
        })
        return
      }
      case "finish":
        this.#finish = { reason: part.reason, usage: usageOf(part.usage, this.#model) }
        return
      case "error":
        this.#failure = toModelError(part.error, this.#now)
        return
      default:
        return this.#other(part)
    }
  }

  #learn(part: { readonly id?: string | undefined; readonly modelId?: string | undefined }): void {
    this.#info = {
      ...this.#info,
      ...(part.id !== undefined && { responseId: part.id }),
      ...(part.modelId !== undefined && part.modelId !== this.#model.id && { responseModel: part.modelId })
    }
  }

  #fresh(type: Block["type"], id: string): Block {
    const before = this.#open.get(`${type} ${id}`)
    if (before !== undefined) this.#close(before)
    const block: Block = { index: this.#count++, type, metadata: undefined }
    this.#open.set(`${type} ${id}`, block)
    if (type !== "toolcall") this.#events.push({ type: `${type}_start`, contentIndex: block.index })
    return block
  }

  #block(type: "text" | "thinking", id: string): Block {
    return this.#open.get(`${type} ${id}`) ?? this.#fresh(type, id)
  }

  #call(id: string, name: string): Block {
    this.#called = true
    const block = this.#fresh("toolcall", id)
    this.#events.push({ type: "toolcall_start", contentIndex: block.index, id, name })
    return block
  }

  #note(block: Block, metadata: unknown): void {
    if (metadata !== undefined) block.metadata = merge(block.metadata, metadata)
  }

  #delta(block: Block, delta: string, metadata: unknown): void {
    this.#note(block, metadata)
    if (delta !== "") this.#events.push({ type: `${block.type}_delta`, contentIndex: block.index, delta })
  }

  #end(type: "text" | "thinking", id: string, metadata: unknown): void {
    const block = this.#open.get(`${type} ${id}`)
    if (block === undefined) return
    this.#note(block, metadata)
    this.#open.delete(`${type} ${id}`)
    this.#close(block)
  }

  #close(block: Block): void {
    this.#events.push({ type: `${block.type}_end`, contentIndex: block.index, ...signed(block) })
  }

  /** Noted in the message's diagnostics, so that nothing is lost. */
  #other(part: object): void {
    const encoded = encode(isRecord(part) && part["data"] instanceof Uint8Array ? { ...part, data: undefined } : part)
    if (Result.isSuccess(encoded)) this.#others.push(encoded.success)
  }
}

/** All parts, calls with whatever name and parameters. */
type AnyPart = Exclude<Response.StreamPart<{}>, { readonly type: "tool-call" | "tool-result" }> | {
  readonly type: "tool-call"
  readonly id: string
  readonly name: string
  readonly params: unknown
  readonly providerExecuted?: boolean
  readonly metadata?: unknown
}

const signed = ({ metadata, type }: Block): object => {
  const signature = toSignature(metadata)
  return signature === undefined ? {} : { [signatureFields[type]]: signature }
}

const usageOf = ({ inputTokens, outputTokens }: Response.Usage, model: Model): Usage => {
  const cacheRead = inputTokens.cacheRead ?? 0
  const cacheWrite = inputTokens.cacheWrite ?? 0
  const input = inputTokens.uncached ?? Math.max(0, (inputTokens.total ?? 0) - cacheRead - cacheWrite)
  const output = outputTokens.total ?? (outputTokens.text ?? 0) + (outputTokens.reasoning ?? 0)
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    ...(outputTokens.reasoning !== undefined && { reasoning: outputTokens.reasoning }),
    totalTokens: input + output + cacheRead + cacheWrite,
    cost: costOf(model.cost, { input, output, cacheRead, cacheWrite })
  }
}
