/**
 * JSON at the edges of the core: what may enter the transcript, and what the model and the people who watch are told.
 *
 * {@link encode} decides whether a value can be kept (T9): it answers with the same value when that is plain JSON already,
 * with a plain copy when a copy loses nothing, and otherwise with the path and kind of what cannot be written down.
 * {@link show} turns anything a tool failed with into a text (T4), {@link excerpt} bounds a text, {@link parsePartial}
 * reads arguments that are still arriving (M8). Nothing here throws, whatever getters, `toJSON` methods or proxies do.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import { isRecord, setField } from "./record.ts"

export { parsePartial } from "./partialJson.ts"

/**
 * A JSON value.
 *
 * @category models
 * @since 0.1.0
 */
export type Json = string | number | boolean | null | ReadonlyArray<Json> | JsonObject

/**
 * A JSON object.
 *
 * @category models
 * @since 0.1.0
 */
export type JsonObject = { readonly [key: string]: Json }

/**
 * Keys and indices that lead from a value to something inside it.
 *
 * @category models
 * @since 0.1.0
 */
export type Path = ReadonlyArray<PropertyKey>

// --- text ---

/**
 * The text with every lone surrogate replaced by U+FFFD (T9). A text that is well formed is returned as it is.
 *
 * @category text
 * @since 0.1.0
 */
export const wellFormed = (text: string): string => text.isWellFormed() ? text : text.toWellFormed()

/** Bytes of the UTF-8 form of the code point at `index`; a lone surrogate counts as the U+FFFD that replaces it. */
const bytesAt = (text: string, index: number): number => {
  const code = text.codePointAt(index) ?? 0
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
}

/** How far one can go in a text before its UTF-8 form exceeds `maxBytes`, and how many bytes that is. */
const measure = (text: string, maxBytes: number): { readonly end: number; readonly bytes: number } => {
  let bytes = 0
  let end = 0
  while (end < text.length) {
    const size = bytesAt(text, end)
    if (bytes + size > maxBytes) break
    bytes += size
    end += size === 4 ? 2 : 1
  }
  return { end, bytes }
}

/**
 * The length of a text as UTF-8.
 *
 * @category text
 * @since 0.1.0
 */
export const byteLength = (text: string): number => measure(text, Number.POSITIVE_INFINITY).bytes

/**
 * The text if it fits into `maxBytes` bytes of UTF-8, else its beginning and a marker that says how much was cut:
 * `Lorem ips… [1234 more bytes]`. The marker counts, so the result never exceeds the bound; it is left out where there is
 * no room for it. The cut is between code points, and the result is well formed.
 *
 * @category text
 * @since 0.1.0
 */
export const excerpt = (text: string, maxBytes: number): string => {
  if (text.length * 3 <= maxBytes) return wellFormed(text)
  const total = byteLength(text)
  if (total <= maxBytes) return wellFormed(text)
  // The marker with the larger number is never shorter than the one that is written.
  const room = maxBytes - byteLength(cutMarker(total))
  const { bytes, end } = measure(text, room < 0 ? maxBytes : room)
  return wellFormed(text.slice(0, end)) + (room < 0 ? "" : cutMarker(total - bytes))
}

const cutMarker = (bytes: number): string => `… [${bytes} more bytes]`

const maxPathBytes = 200

/**
 * A path as people write it, `details.hits[0].id`, cut when it is very long. The empty path is the empty text.
 *
 * @category text
 * @since 0.1.0
 */
export const formatPath = (path: Path): string => {
  let out = ""
  for (const key of path) {
    if (out.length > maxPathBytes) break
    if (typeof key === "number" || typeof key === "symbol") out += `[${String(key)}]`
    else if (/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) out += out === "" ? key : `.${key}`
    else out += `[${JSON.stringify(excerpt(key, maxPathBytes))}]`
  }
  return excerpt(out, maxPathBytes)
}

// --- encoding ---

/** Nesting that `encode` accepts; deeper values would overflow the stack of some reader sooner or later. */
const maxDepth = 1000

interface Walk {
  readonly root: unknown
  readonly path: Array<string | number>
  problem: string | undefined
}

/**
 * The value as plain JSON, equal to what `JSON.parse(JSON.stringify(value))` gives, or a text that names the path and the
 * kind of what cannot be encoded: `details.hits[0].id is a bigint`.
 *
 * **Details**
 *
 * A value that is plain JSON already is returned as it is, neither copied nor changed, so that encoding again costs a walk
 * and nothing else. A copy is made where something differs: fields that are `undefined` are left out, `toJSON` is
 * honoured (a `Date` becomes its ISO text), class instances become their own enumerable fields, strings and keys are made
 * well formed, `-0` becomes `0`. Where `JSON.stringify` would lose data without a word, `encode` fails: functions, symbols
 * and `undefined` (in an array or as the value itself), `NaN` and the infinities, `Map`, `Set` and the like. So do
 * bigints, cycles, getters that throw and more than 1000 levels of nesting. Keys that are symbols are not looked at.
 *
 * @category encoding
 * @since 0.1.0
 */
export const encode = (value: unknown): Result.Result<Json, string> => {
  const walk: Walk = { root: value, path: [], problem: undefined }
  const encoded = Result.try(() => encodeValue(walk, settle(value, "")))
  if (Result.isFailure(encoded)) return Result.fail(refusal(walk, `could not be read: ${show(encoded.failure)}`))
  if (encoded.success === undefined) return Result.fail(walk.problem ?? "the value cannot be encoded")
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that it is JSON is what the walk has found out
  return Result.succeed(encoded.success as Json)
}

const refusal = (walk: Walk, what: string): string => `${formatPath(walk.path) || "the value"} ${what}`

/** Notes the first thing that cannot be encoded; the path stays where it is, and every caller gives up. */
const refuse = (walk: Walk, what: string): undefined => {
  walk.problem = refusal(walk, what)
  return undefined
}

/** What stands for a value in JSON if it says so itself. */
const settle = (value: unknown, key: string): unknown => {
  if (typeof value !== "object" || value === null || !("toJSON" in value)) return value
  return typeof value.toJSON === "function" ? value.toJSON(key) : value
}

/** The value as plain JSON, or nothing when the walk has met a problem. */
const encodeValue = (walk: Walk, value: unknown): unknown => {
  switch (typeof value) {
    case "string":
      return wellFormed(value)
    case "boolean":
      return value
    case "number":
      // JSON has one zero.
      return Number.isFinite(value) ? value === 0 ? 0 : value : refuse(walk, `is ${value}`)
    case "object":
      if (value === null) return null
      return walk.path.length < maxDepth ? encodeObject(walk, value) : refuseDepth(walk)
    case "undefined":
      return refuse(walk, "is undefined")
    default:
      return refuse(walk, `is a ${typeof value}`)
  }
}

/** Objects that JSON would write as `{}` although they hold something. */
const opaque = new Set(["Map", "Set", "WeakMap", "WeakSet", "Promise", "ArrayBuffer"])

/** Objects that JSON writes as the primitive they hold. */
const boxes = new Set(["String", "Number", "Boolean"])

const typeTag = (value: object): string => Object.prototype.toString.call(value).slice(8, -1)

const encodeObject = (walk: Walk, value: object): unknown => {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (Array.isArray(value)) return encodeArray(walk, value, prototype === Array.prototype)
  if (!isRecord(value)) return undefined
  if (prototype === Object.prototype) return encodeFields(walk, value, true)
  const tag = typeTag(value)
  if (opaque.has(tag)) return refuse(walk, `is a ${tag}`)
  const primitive = boxes.has(tag) ? Object(value).valueOf() : value
  return primitive === value ? encodeFields(walk, value, false) : encodeValue(walk, primitive)
}

const encodeArray = (walk: Walk, source: ReadonlyArray<unknown>, plain: boolean): unknown => {
  let copy: Array<unknown> | undefined = plain ? undefined : []
  for (let index = 0; index < source.length; index++) {
    walk.path.push(index)
    const item = source[index]
    const json = encodeValue(walk, settle(item, String(index)))
    if (json === undefined) return undefined
    if (copy === undefined && !Object.is(json, item)) copy = source.slice(0, index)
    copy?.push(json)
    walk.path.pop()
  }
  return copy ?? source
}

type Fields = { readonly [key: string]: unknown }

const encodeFields = (walk: Walk, source: Fields, plain: boolean): unknown => {
  const keys = Object.keys(source)
  let copy: Record<string, unknown> | undefined = plain ? undefined : {}
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index] ?? ""
    walk.path.push(key)
    const field = source[key]
    const settled = settle(field, key)
    if (settled === undefined) {
      copy ??= firstFields(source, keys, index)
    } else {
      const json = encodeValue(walk, settled)
      if (json === undefined) return undefined
      const name = wellFormed(key)
      if (copy === undefined && (!Object.is(json, field) || name !== key)) copy = firstFields(source, keys, index)
      if (copy !== undefined) setField(copy, name, json)
    }
    walk.path.pop()
  }
  return copy ?? source
}

/** A copy of the fields before `count`, which were found to be plain JSON. */
const firstFields = (source: Fields, keys: ReadonlyArray<string>, count: number): Record<string, unknown> => {
  const copy: Record<string, unknown> = {}
  for (const key of keys.slice(0, count)) setField(copy, key, source[key])
  return copy
}

/** Cycles are not looked for while all is well: they show up as endless nesting, and then the path is retraced. */
const refuseDepth = (walk: Walk): undefined => {
  const seen = new Set<unknown>()
  let value = walk.root
  for (const [index, key] of walk.path.entries()) {
    // What `toJSON` made is not found again here.
    if (typeof value !== "object" || value === null) break
    if (seen.has(value)) {
      walk.path.length = index
      return refuse(walk, "is a cycle: it contains itself")
    }
    seen.add(value)
    value = Reflect.get(value, key)
  }
  return refuse(walk, `is nested more than ${maxDepth} levels deep`)
}

// --- parsing ---

/**
 * The value of a JSON text, or why it is none.
 *
 * **Details**
 *
 * `JSON.parse` as a value. A field named `__proto__` becomes an own field; it never touches a prototype.
 *
 * @category parsing
 * @since 0.1.0
 */
export const parse = (text: string): Result.Result<Json, string> =>
  Result.try({ try: (): Json => JSON.parse(text), catch: (error) => excerpt(show(error), maxPathBytes) })

// --- showing ---

const maxShownBytes = 2048

/**
 * A text for anything that was thrown or failed with: readable, well formed, at most `maxBytes` (2 KB) of UTF-8.
 *
 * **Details**
 *
 * A string is shown as it is. An error is shown by its message alone, never with its stack or cause; without a message by
 * the messages of its `errors` (an `AggregateError`), its `_tag` or its name. Objects and arrays are shown as JSON,
 * nothing at all as `no value`. Getters that throw are passed over.
 *
 * @category text
 * @since 0.1.0
 */
export const show = (value: unknown, maxBytes = maxShownBytes): string =>
  excerpt(attempt(() => describe(value, 0)) ?? "a value that cannot be read", maxBytes)

/** What a function answers, or nothing if it throws. */
export const attempt = <A>(evaluate: () => A): A | undefined => Result.getOrUndefined(Result.try(evaluate))

/** What a function reads of something that may throw when it is looked at; then it fails with `problem` and what was thrown. */
export const reading = <A>(problem: string, read: () => Result.Result<A, string>): Result.Result<A, string> => {
  const result = Result.try(read)
  return Result.isSuccess(result) ? result.success : Result.fail(`${problem}: ${show(result.failure)}`)
}

const describe = (value: unknown, depth: number): string => {
  switch (typeof value) {
    case "string":
      return value === "" ? "an empty text" : value
    case "undefined":
      return "no value"
    case "symbol":
      return value.description === undefined ? "a symbol" : `symbol ${value.description}`
    case "function":
      return value.name === "" ? "a function" : `function ${value.name}`
    case "object":
      return value === null ? "no value (null)" : describeObject(value, depth)
    default:
      return String(value)
  }
}

const describeObject = (value: object, depth: number): string => {
  if (value instanceof Error || typeTag(value) === "Error") return describeError(value, depth)
  const json = attempt(() => JSON.stringify(value, replaceUnwritable()))
  if (json !== undefined && (json !== "{}" || Object.getPrototypeOf(value) === Object.prototype)) return json
  const name = attempt(() => value.constructor.name)
  return name === undefined || name === "" || name === "Object" ? "an object" : `an object of type ${name}`
}

const describeError = (error: object, depth: number): string => {
  const message = textField(error, "message")
  if (message !== undefined) return message
  const errors = depth < 5 ? field(error, "errors") : undefined
  if (Array.isArray(errors) && errors.length > 0) {
    return errors.slice(0, 10).map((error) => describe(error, depth + 1)).join("; ")
  }
  // Its other fields are for the program: they may hold what is not for a model (B81).
  return textField(error, "_tag") ?? textField(error, "name") ?? "Error"
}

const field = (value: object, key: string): unknown => attempt((): unknown => Reflect.get(value, key))

/** A field that is a text with something to read in it. */
const textField = (value: object, key: string): string | undefined => {
  const text = field(value, key)
  return typeof text === "string" && text.trim() !== "" ? text : undefined
}

/** A replacer for `JSON.stringify` that writes a word where JSON has no form, and cuts cycles. */
const replaceUnwritable = () => {
  const seen = new WeakSet()
  return (_key: string, value: unknown): unknown => {
    if (typeof value === "bigint") return value.toString()
    if (typeof value === "function" || typeof value === "symbol") return `[${describe(value, 0)}]`
    if (typeof value !== "object" || value === null) return value
    if (value instanceof Error) return describeError(value, 0)
    if (seen.has(value)) return "[shown above]"
    seen.add(value)
    return opaque.has(typeTag(value)) ? `[${typeTag(value)}]` : value
  }
}
