/**
 * Reading a JSON text that has not arrived completely.
 *
 * For showing the arguments of a tool call while the model still writes them (M8). Never for running the call: what runs
 * is parsed by `parse`, which refuses an incomplete text (M7).
 *
 * @since 0.1.0
 */
import type { Json } from "./json.ts"
import { setField } from "./record.ts"

/** An array or object that is still open; `key` is the field whose value comes next. */
type Open =
  | { readonly items: Array<Json> }
  | { readonly fields: Record<string, Json>; key: string | undefined }

/** What the reader takes next. `first…` also takes the end of the container it is in. */
type Next = "value" | "first value" | "key" | "first key" | "colon" | "comma or end"

interface Reader {
  readonly text: string
  at: number
  next: Next
  readonly open: Array<Open>
  root: Json | undefined
}

/** A string token. Not closed: the text ends, or stops being JSON, within it. */
interface Token {
  readonly value: string
  readonly end: number
  readonly closed: boolean
}

/**
 * What can be said about the value of a JSON text of which only the beginning is there.
 *
 * **Details**
 *
 * Open strings, arrays and objects are taken as if they ended here; a key without a value, an incomplete literal, escape
 * or half of a surrogate pair are left out, and of a number that breaks off the part that is a number counts. Reading
 * stops where the text is not JSON any more and keeps what came before. A complete text gives what `JSON.parse` gives.
 * The answer is `undefined` while nothing can be said. The time is linear in the length of the text, and no nesting is
 * too deep.
 *
 * @category parsing
 * @since 0.1.0
 */
export const parsePartial = (text: string): Json | undefined => {
  const reader: Reader = { text, at: 0, next: "value", open: [], root: undefined }
  while (step(reader));
  return reader.root
}

/** Reads one token; whether there is more to read. */
const step = (reader: Reader): boolean => {
  skipSpace(reader)
  const char = reader.text[reader.at]
  if (char === undefined) return false
  switch (reader.next) {
    case "first value":
      return char === "]" ? close(reader) : readValue(reader, char)
    case "value":
      return readValue(reader, char)
    case "first key":
      return char === "}" ? close(reader) : readKey(reader, char)
    case "key":
      return readKey(reader, char)
    case "colon":
      return char === ":" && advance(reader, 1, "value")
    default:
      return readSeparator(reader, char)
  }
}

const skipSpace = (reader: Reader): void => {
  for (;; reader.at++) {
    const code = reader.text.charCodeAt(reader.at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
  }
}

const advance = (reader: Reader, length: number, next: Next): true => {
  reader.at += length
  reader.next = next
  return true
}

/** The end of a container, or of the whole text when none is left open. */
const close = (reader: Reader): boolean => {
  reader.open.pop()
  advance(reader, 1, "comma or end")
  return reader.open.length > 0
}

const readSeparator = (reader: Reader, char: string): boolean => {
  const open = reader.open.at(-1)
  if (open === undefined) return false
  const inArray = "items" in open
  if (char === ",") return advance(reader, 1, inArray ? "value" : "key")
  return char === (inArray ? "]" : "}") && close(reader)
}

const readKey = (reader: Reader, char: string): boolean => {
  const open = reader.open.at(-1)
  if (char !== "\"" || open === undefined || "items" in open) return false
  const token = readString(reader.text, reader.at + 1)
  open.key = token.value
  return token.closed && advance(reader, token.end - reader.at, "colon")
}

const readValue = (reader: Reader, char: string): boolean => {
  switch (char) {
    case "{": {
      const fields: Record<string, Json> = {}
      put(reader, fields)
      reader.open.push({ fields, key: undefined })
      return advance(reader, 1, "first key")
    }
    case "[": {
      const items: Array<Json> = []
      put(reader, items)
      reader.open.push({ items })
      return advance(reader, 1, "first value")
    }
    case "\"": {
      const token = readString(reader.text, reader.at + 1)
      put(reader, token.value)
      return token.closed && advance(reader, token.end - reader.at, "comma or end")
    }
    case "t":
      return readLiteral(reader, "true", true)
    case "f":
      return readLiteral(reader, "false", false)
    case "n":
      return readLiteral(reader, "null", null)
    default:
      return readNumber(reader)
  }
}

/** Puts a value where it belongs. Containers are put there when they open, so that they need no end. */
const put = (reader: Reader, value: Json): void => {
  const open = reader.open.at(-1)
  if (open === undefined) reader.root = value
  else if ("items" in open) open.items.push(value)
  else if (open.key !== undefined) setField(open.fields, open.key, value)
}

const readLiteral = (reader: Reader, word: string, value: Json): boolean => {
  if (!reader.text.startsWith(word, reader.at)) return false
  put(reader, value)
  return advance(reader, word.length, "comma or end")
}

const readNumber = (reader: Reader): boolean => {
  const pattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
  pattern.lastIndex = reader.at
  const digits = pattern.exec(reader.text)?.[0]
  if (digits === undefined) return false
  put(reader, Number(digits))
  return advance(reader, digits.length, "comma or end")
}

const escapes: { readonly [char: string]: string } = {
  "\"": "\"",
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t"
}

/** The string whose content begins at `start`, after the opening quote. */
const readString = (text: string, start: number): Token => {
  let value = ""
  let from = start
  let at = start
  for (;;) {
    const char = text[at]
    if (char === "\"") return { value: value + text.slice(from, at), end: at + 1, closed: true }
    if (char === undefined) return openEnd(value + text.slice(from, at))
    if (char !== "\\") {
      at++
      continue
    }
    value += text.slice(from, at)
    const escape = text[at + 1] ?? ""
    const hex = text.slice(at + 2, at + 6)
    if (escape === "u" && /^[0-9a-fA-F]{4}$/.test(hex)) {
      value += String.fromCharCode(Number.parseInt(hex, 16))
      at += 6
    } else if (Object.hasOwn(escapes, escape)) {
      value += escapes[escape] ?? ""
      at += 2
    } else {
      return openEnd(value)
    }
    from = at
  }
}

/** A string that breaks off. The first half of a surrogate pair waits for the second one. */
const openEnd = (value: string): Token => {
  const last = value.charCodeAt(value.length - 1)
  const half = last >= 0xd800 && last <= 0xdbff
  return { value: half ? value.slice(0, -1) : value, end: 0, closed: false }
}
