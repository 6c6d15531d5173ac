/**
 * From the chunks of a chat completion to stream events: plain state and plain functions, one reader for each response.
 *
 * The thinking, the text and the calls of a response are blocks that stay open until it ends, because chunks may add to
 * any of them at any time; a response has one block of text and one of thinking, as in pi.
 */
import * as Result from "effect/Result"
import { ModelError } from "../../Errors.ts"
import type { Usage } from "../../Messages.ts"
import type { Model, ResponseInfo, StreamEvent } from "../../StreamFn.ts"
import { isRecord } from "../record.ts"
import { CallReader } from "./callReader.ts"
import type { Failures } from "./failures.ts"
import { Details, detailsOf, isReasoningField, reasoningOf } from "./reasoning.ts"
import type { Settings } from "./settings.ts"
import { readUsage } from "./usage.ts"

type Chunk = { readonly [key: string]: unknown }

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

/** Whether a JSON document says that something went wrong. */
export const isErrorReport = (json: unknown): json is Chunk =>
  isRecord(json) && (isRecord(json["error"]) || isText(json["error"]) || json["object"] === "error")

export class ChunkReader {
  /** What happened since it was emptied last. */
  events: Array<StreamEvent> = []
  /** The final event was given. */
  finished = false
  failure: ModelError | undefined
  /** A chunk has arrived: this is a stream of chat completion chunks. */
  begun = false
  readonly #model: Model
  readonly #settings: Settings
  readonly #failures: Failures
  #started = false
  /** The type of each block, by content index. */
  readonly #blocks: Array<"text" | "thinking" | "toolcall"> = []
  #text: number | undefined
  #thinking: number | undefined
  #signature: string | undefined
  #details: Details | undefined
  readonly #calls: CallReader
  #usage: Usage | undefined
  #finish: string | undefined
  #responseId: string | undefined
  #responseModel: string | undefined

  constructor(model: Model, settings: Settings, failures: Failures) {
    this.#model = model
    this.#settings = settings
    this.#failures = failures
    this.#calls = new CallReader((id, name) => {
      const contentIndex = this.#blocks.push("toolcall") - 1
      this.events.push({ type: "toolcall_start", contentIndex, id, name })
      return contentIndex
    }, (contentIndex, delta) => this.events.push({ type: "toolcall_delta", contentIndex, delta }))
  }

  /** The data of one server-sent event; `name` is that of the event. */
  read(data: string, name: string): void {
    if (this.finished || this.failure !== undefined) return
    if (data.startsWith("[DONE]")) return this.end(", although with [DONE]")
    const parsed = Result.try((): unknown => JSON.parse(data))
    if (Result.isFailure(parsed)) {
      // An `event: error` may carry plain text.
      this.failure = name === "error" ? this.#failures.inStream(data) : this.#failures.notJson(data)
      return
    }
    const chunk = parsed.success
    if (!isRecord(chunk)) return
    this.begun = true
    if (isErrorReport(chunk) || name === "error") {
      this.failure = this.#failures.inStream(chunk)
      return
    }
    this.#learn(chunk)
    const choices: unknown = chunk["choices"]
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    if (isRecord(choice)) this.#choice(choice, isRecord(chunk["usage"]))
  }

  /** The answer has ended; `how` is for the message of one that ended too early. */
  end(how = ""): void {
    if (this.finished || this.failure !== undefined) return
    if (this.#finish === undefined && this.#settings.finishReason) {
      this.failure = this.#failures.incomplete(how)
      return
    }
    this.#calls.end()
    this.#closeBlocks()
    this.events.push(this.#finalEvent())
    this.finished = true
  }

  #learn(chunk: Chunk): void {
    if (this.#responseId === undefined && isText(chunk["id"])) this.#responseId = chunk["id"]
    const { model } = chunk
    if (this.#responseModel === undefined && isText(model) && model !== this.#model.id) this.#responseModel = model
    if (!this.#started) {
      this.#started = true
      this.events.push({ type: "start", ...this.#info() })
    }
    if (isRecord(chunk["usage"])) this.#usage = readUsage(chunk["usage"], this.#model)
  }

  #choice(choice: Chunk, hasUsage: boolean): void {
    // Moonshot tells the usage here.
    if (!hasUsage && isRecord(choice["usage"])) this.#usage = readUsage(choice["usage"], this.#model)
    if (isText(choice["finish_reason"])) this.#finish = choice["finish_reason"]
    if (isRecord(choice["delta"])) this.#delta(choice["delta"])
  }

  #delta(delta: Chunk): void {
    const reasoning = reasoningOf(delta)
    if (reasoning !== undefined) this.#think(reasoning.text, reasoning.field)
    const details = detailsOf(delta)
    if (details.length > 0) {
      const text = (this.#details ??= new Details()).add(details)
      // Mostly the same text has just been read from a field.
      this.#think(reasoning === undefined && !isReasoningField(this.#signature ?? "") ? text : "", "")
    }
    if (isText(delta["content"])) this.#say(delta["content"])
    if (isText(delta["refusal"])) this.#say(delta["refusal"])
    const calls: unknown = delta["tool_calls"]
    if (Array.isArray(calls)) { for (const call of calls) if (isRecord(call)) this.#calls.read(call) }
  }

  #say(delta: string): void {
    if (this.#text === undefined) {
      this.#text = this.#blocks.push("text") - 1
      this.events.push({ type: "text_start", contentIndex: this.#text })
    }
    this.events.push({ type: "text_delta", contentIndex: this.#text, delta })
  }

  #think(delta: string, signature: string): void {
    if (this.#thinking === undefined) {
      this.#thinking = this.#blocks.push("thinking") - 1
      this.#signature = signature
      this.events.push({ type: "thinking_start", contentIndex: this.#thinking })
    }
    if (delta !== "") this.events.push({ type: "thinking_delta", contentIndex: this.#thinking, delta })
  }

  #closeBlocks(): void {
    this.#blocks.forEach((type, contentIndex) => {
      if (type !== "thinking") this.events.push({ type: `${type}_end`, contentIndex })
      else {
        const thinkingSignature = this.#details?.signature ?? this.#signature
        this.events.push({ type: "thinking_end", contentIndex, ...(thinkingSignature && { thinkingSignature }) })
      }
    })
  }

  #info(): ResponseInfo {
    return {
      ...(this.#responseId !== undefined && { responseId: this.#responseId }),
      ...(this.#responseModel !== undefined && { responseModel: this.#responseModel })
    }
  }

  #finalEvent(): StreamEvent {
    const info: ResponseInfo = {
      ...this.#info(),
      ...(this.#finish !== undefined && { rawStopReason: this.#finish }),
      ...(this.#usage !== undefined && { usage: this.#usage })
    }
    switch (this.#finish) {
      case undefined:
        return { type: "done", stopReason: this.#blocks.includes("toolcall") ? "toolUse" : "stop", ...info }
      case "stop":
      case "end":
        return { type: "done", stopReason: "stop", ...info }
      case "length":
        return { type: "done", stopReason: "length", ...info }
      case "tool_calls":
      case "function_call":
        return { type: "done", stopReason: "toolUse", ...info }
      default: {
        const error = new ModelError({ reason: "Reported", message: stopText(this.#finish) })
        return { type: "error", stopReason: "error", error, ...info }
      }
    }
  }
}

const stopText = (finish: string): string =>
  finish === "content_filter"
    ? "The provider's content filter stopped the answer (finish reason content_filter)"
    : `The answer ended with the finish reason ${JSON.stringify(finish)}`
