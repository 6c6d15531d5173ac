/**
 * Lossless repair of arguments that a model wrote in the wrong type, driven by the JSON Schema the model was shown.
 *
 * Rules, each applied only where the schema refuses the value as it is:
 *
 * | value | schema accepts | becomes |
 * | --- | --- | --- |
 * | `"42"`, `"-4.50"` | a number | the number, if no digit is lost: at most 15 significant digits, or a safe integer, and not too small |
 * | `"4.0"` | an integer | `4` |
 * | `"true"`, `"false"` | a boolean | `true`, `false` |
 * | a number | text | its text, unless it is an integer too large to be exact |
 * | JSON text of an array or object | that, and no text | its value, if JSON can hold it |
 * | `null` in a field that is not required | no null | the field is left out |
 * | `undefined` in a field | | the field is left out, as JSON has none |
 *
 * Not accepted as a number: spaces, a plus sign, exponents, leading zeros, hexadecimal, `-0`, nothing. Never: rounding,
 * `null` or a boolean as text, text as an array of one, numbers as booleans. In a union a value that fits a member stays as
 * it is; else the first member that the repaired value fits decides.
 *
 * The input is not changed: what differs is copied, the rest is shared. Fields named `__proto__` stay fields.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import { attempt, encode, type Json, type JsonObject, parse } from "./json.ts"
import { acceptedTypes, isOfType, resolveRef } from "./jsonSchema.ts"
import type { Schemas } from "./jsonSchemaCheck.ts"
import { getField, isJsonObject, isRecord, setField } from "./record.ts"

interface Context {
  readonly document: JsonObject
  readonly schemas: Schemas
  /** Schemas that may still be applied on behalf of others; see the limits of `jsonSchemaCheck`. */
  left: number
  /** What unions made of values: a value that is looked at along several branches is repaired once. */
  readonly unions: Map<unknown, Map<unknown, unknown>>
}

/**
 * The value with every lossless repair the document asks for; the same value if there is none.
 *
 * @category combinators
 * @since 0.1.0
 */
export const coerce = (schemas: Schemas, document: JsonObject, value: unknown): unknown =>
  visit({ document, schemas, left: maxWork, unions: new Map() }, document, value, 0)

const maxWork = 1_000_000

/** Schemas that one value may pass on its way; a `$ref` that leads to itself stops here. */
const maxHops = 50

const visit = (context: Context, schema: unknown, value: unknown, hops: number): unknown => {
  if (!isJsonObject(schema) || hops > maxHops || hops > 0 && --context.left < 0) return value
  let out = value
  if (Object.hasOwn(schema, "$ref")) out = visit(context, resolveRef(context.document, schema["$ref"]), out, hops + 1)
  out = retype(schema, out)
  if (Array.isArray(out)) out = visitItems(context, schema, out)
  else if (isRecord(out)) out = visitFields(context, schema, out)
  if (Array.isArray(schema["allOf"])) {
    for (const member of schema["allOf"]) {
      out = visit(context, member, out, hops + 1)
    }
  }
  if (Array.isArray(schema["anyOf"])) out = visitUnion(context, schema["anyOf"], out, hops + 1)
  if (Array.isArray(schema["oneOf"])) out = visitUnion(context, schema["oneOf"], out, hops + 1)
  return out
}

// --- values of the wrong type ---

const retype = (schema: JsonObject, value: unknown): unknown => {
  if (typeof value !== "string" && typeof value !== "number") return value
  const types = acceptedTypes(schema)
  if (types === undefined || types.some((type) => isOfType(value, type))) return value
  if (typeof value === "number") return types.includes("string") ? numberToText(value) : value
  for (const type of types) {
    const retyped = textTo(type, value)
    if (retyped !== undefined) return retyped
  }
  return value
}

/** An integer that is too large may already have lost digits when the arguments were parsed: an id would be a wrong one. */
const numberToText = (value: number): unknown =>
  Number.isSafeInteger(value) || Number.isFinite(value) && !Number.isInteger(value) ? String(value) : value

const textTo = (type: string, text: string): unknown => {
  switch (type) {
    case "number":
      return textToNumber(text)
    case "integer": {
      const number = textToNumber(text)
      return Number.isInteger(number) ? number : undefined
    }
    case "boolean":
      return text === "true" ? true : text === "false" ? false : undefined
    case "array":
    case "object":
      return textToContainer(type, text)
    default:
      return undefined
  }
}

/** Every decimal of this many significant digits survives the way into a double and back, if it is not too small. */
const exactDigits = 15

/** Below it doubles have fewer digits, down to none. */
const smallestExact = 2 ** -1022

const textToNumber = (text: string): number | undefined => {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)) return undefined
  const number = Number(text)
  const tiny = Math.abs(number) < smallestExact && /[1-9]/.test(text)
  if (tiny || Object.is(number, -0)) return undefined
  const fraction = text.includes(".") ? text.replace(/\.?0+$/, "") : text
  const significant = fraction.replace(/[-.]/g, "").replace(/^0+/, "")
  return Number.isSafeInteger(number) && !fraction.includes(".") || significant.length <= exactDigits
    ? number
    : undefined
}

const textToContainer = (type: "array" | "object", text: string): Json | undefined => {
  if (!text.trimStart().startsWith(type === "array" ? "[" : "{")) return undefined
  return Result.getOrUndefined(Result.flatMap(parse(text), encode))
}

// --- parts ---

const visitItems = (context: Context, schema: JsonObject, items: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  // Before draft 2020-12 the first items were described by an array in `items`, the others by `additionalItems`.
  const legacy = Array.isArray(schema["items"]) ? schema["items"] : undefined
  const prefix = legacy ?? (Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [])
  const rest = legacy === undefined ? schema["items"] : schema["additionalItems"]
  if (prefix.length === 0 && !isRecord(rest)) return items
  let copy: Array<unknown> | undefined
  for (let index = 0; index < items.length; index++) {
    const item = visit(context, prefix[index] ?? rest, items[index], 0)
    if (item !== items[index]) (copy ??= items.slice())[index] = item
  }
  return copy ?? items
}

type Fields = { readonly [key: string]: unknown }

const visitFields = (context: Context, schema: JsonObject, fields: Fields): Fields => {
  const required = Array.isArray(schema["required"]) ? schema["required"] : []
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {}
  let copy: Record<string, unknown> | undefined
  for (const key of Object.keys(fields)) {
    const value = fields[key]
    const described = getField(properties, key)
    const refusedNull = value === null && !required.includes(key) && !context.schemas.fits(described, null)
    if (value === undefined || refusedNull) {
      delete (copy ??= { ...fields })[key]
      continue
    }
    const field = fieldSchemas(schema, key, described).reduce((out, part) => visit(context, part, out, 0), value)
    if (field !== value) setField(copy ??= { ...fields }, key, field)
  }
  return copy ?? fields
}

/** The schemas that describe a field: its own, those of matching patterns, else the one for all other keys. */
const fieldSchemas = (schema: JsonObject, key: string, described: unknown): ReadonlyArray<unknown> => {
  const patterns = isRecord(schema["patternProperties"]) ? Object.entries(schema["patternProperties"]) : []
  const matching = patterns.filter(([pattern]) => matches(pattern, key)).map(([, part]) => part)
  if (described !== undefined) return [described, ...matching]
  return matching.length > 0 ? matching : [schema["additionalProperties"]]
}

const matches = (pattern: string, key: string): boolean => attempt(() => new RegExp(pattern, "u").test(key)) === true

const visitUnion = (context: Context, members: ReadonlyArray<Json>, value: unknown, hops: number): unknown => {
  const known = context.unions.get(members) ?? new Map<unknown, unknown>()
  context.unions.set(members, known)
  if (!known.has(value)) known.set(value, firstFitting(context, members, value, hops))
  return known.get(value)
}

const firstFitting = (context: Context, members: ReadonlyArray<Json>, value: unknown, hops: number): unknown => {
  const { fits } = context.schemas
  if (members.some((member) => fits(member, value))) return value
  for (const member of members) {
    const repaired = visit(context, member, value, hops)
    if (fits(member, repaired)) return repaired
  }
  return value
}
