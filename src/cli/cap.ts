/**
 * What a model reads of a long output: its beginning or its end, with a note of what is left out.
 */

export const maxLines = 2000
export const maxBytes = 50_000

const utf8 = new TextEncoder()

/** The longest beginning of a text with so many bytes, no character cut in half. */
const firstBytes = (text: string, limit: number): string => {
  const bytes = utf8.encode(text)
  if (bytes.length <= limit) return text
  let end = limit
  while (end > 0 && (bytes[end]! & 0xC0) === 0x80) end--
  return new TextDecoder().decode(bytes.subarray(0, end))
}

/** The longest end of a text with so many bytes. */
const lastBytes = (text: string, limit: number): string => {
  const bytes = utf8.encode(text)
  if (bytes.length <= limit) return text
  let begin = bytes.length - limit
  while (begin < bytes.length && (bytes[begin]! & 0xC0) === 0x80) begin++
  return new TextDecoder().decode(bytes.subarray(begin))
}

export interface Capped {
  readonly text: string
  /** How many lines are shown, whole or in part. */
  readonly lines: number
  readonly cut: boolean
}

const cap = (
  text: string,
  lines: (all: ReadonlyArray<string>) => ReadonlyArray<string>,
  bytes: (text: string) => string
): Capped => {
  const kept = bytes(lines(text.split("\n")).join("\n"))
  return { text: kept, lines: kept.split("\n").length, cut: kept.length < text.length }
}

/** The beginning of a text. */
export const head = (text: string, limits = { lines: maxLines, bytes: maxBytes }): Capped =>
  cap(text, (all) => all.slice(0, limits.lines), (some) => firstBytes(some, limits.bytes))

/** The end of a text. */
export const tail = (text: string, limits = { lines: maxLines, bytes: maxBytes }): Capped =>
  cap(text, (all) => all.slice(-limits.lines), (some) => lastBytes(some, limits.bytes))

/** A number and what is counted. */
export const plural = (n: number, one: string, more = `${one}s`): string => `${n} ${n === 1 ? one : more}`
