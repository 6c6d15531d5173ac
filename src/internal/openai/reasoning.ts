/**
 * The forms in which servers stream what a model thinks: a text in one of three fields, or OpenRouter's list of
 * `reasoning_details`. The signature of a thinking block remembers the form, because the next request has to give it back:
 * the name of the field, or the details as JSON.
 */
import * as Result from "effect/Result"
import type { Json, JsonObject } from "../../Messages.ts"
import { isJsonObject, isRecord } from "../record.ts"

/** In order of preference: some servers send the same text in two of them. */
export const reasoningFields = ["reasoning_content", "reasoning", "reasoning_text"] as const

export const isReasoningField = (name: string): boolean => reasoningFields.some((field) => field === name)

type Detail = JsonObject & { readonly type: string }

const isDetail = (value: unknown): value is Detail => isJsonObject(value) && typeof value["type"] === "string"

/** The details that a signature holds. */
export const readDetails = (signature: string): ReadonlyArray<Detail> | undefined => {
  if (!signature.startsWith("[")) return undefined
  const parsed: unknown = Result.getOrUndefined(Result.try((): unknown => JSON.parse(signature)))
  return Array.isArray(parsed) && parsed.length > 0 && parsed.every(isDetail) ? parsed : undefined
}

/** Which field of a detail is its text, by its type; the encrypted ones have none. */
const textFields: Readonly<Record<string, string>> = { "reasoning.text": "text", "reasoning.summary": "summary" }

/** Collects the pieces of details: those of one text that follow each other become one. */
export class Details {
  readonly #list: Array<Record<string, Json>> = []

  /** Takes the pieces of a chunk; the answer is the text in them. */
  add(pieces: ReadonlyArray<unknown>): string {
    let all = ""
    for (const piece of pieces) {
      if (!isDetail(piece)) continue
      const field = textFields[piece.type]
      const last = this.#list.at(-1)
      const text = field === undefined ? undefined : piece[field]
      if (typeof text === "string") all += text
      if (field === undefined || typeof text !== "string" || last?.["type"] !== piece.type) {
        this.#list.push({ ...piece })
      } else this.#join(last, field, text, piece)
    }
    return all
  }

  /** What the first piece did not say (id, format, signature) is taken from the later one. */
  #join(last: Record<string, Json>, field: string, text: string, piece: JsonObject): void {
    const before = last[field]
    last[field] = typeof before === "string" ? before + text : text
    for (const [key, value] of Object.entries(piece)) {
      if (key !== field && (last[key] ?? "") === "") last[key] = value
    }
  }

  get signature(): string | undefined {
    return this.#list.length === 0 ? undefined : JSON.stringify(this.#list)
  }
}

/** The first field of a delta that holds thinking. */
export const reasoningOf = (
  delta: { readonly [key: string]: unknown }
): { readonly field: string; readonly text: string } | undefined => {
  for (const field of reasoningFields) {
    const text = delta[field]
    if (typeof text === "string" && text !== "") return { field, text }
  }
  return undefined
}

/** The details of a delta, if it has any. */
export const detailsOf = (delta: { readonly [key: string]: unknown }): ReadonlyArray<unknown> => {
  const details = delta["reasoning_details"]
  return Array.isArray(details) && details.some(isRecord) ? details : []
}
