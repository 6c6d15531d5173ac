/**
 * Reading a JSON Schema: what its references point to, and what it asks for.
 *
 * @since 0.1.0
 */
import * as JsonPointer from "effect/JsonPointer"
import { excerpt, type Json, type JsonObject } from "./json.ts"
import { isJsonObject, isList, isRecord } from "./record.ts"

/**
 * What a `$ref` within a document points to, `undefined` when it leads nowhere or out of the document.
 *
 * @category getters
 * @since 0.1.0
 */
export const resolveRef = (document: JsonObject, ref: unknown): Json | undefined => {
  const tokens = typeof ref === "string" ? JsonPointer.parseUriFragment(ref) : undefined
  let target: Json | undefined = tokens === undefined ? undefined : document
  for (const token of tokens ?? []) {
    if (isJsonObject(target)) target = Object.hasOwn(target, token) ? target[token] : undefined
    else target = isList(target) ? target[Number(token)] : undefined
  }
  return target
}

/**
 * The values a schema lists, if it does.
 *
 * @category getters
 * @since 0.1.0
 */
export const listedValues = (schema: JsonObject): ReadonlyArray<unknown> | undefined =>
  Object.hasOwn(schema, "const") ? [schema["const"]] : Array.isArray(schema["enum"]) ? schema["enum"] : undefined

/**
 * The JSON types a schema accepts as far as it says so: by `type`, else by the values it lists.
 *
 * @category getters
 * @since 0.1.0
 */
export const acceptedTypes = (schema: JsonObject): ReadonlyArray<string> | undefined => {
  if (typeof schema["type"] === "string") return [schema["type"]]
  if (Array.isArray(schema["type"])) return schema["type"].filter((type): type is string => typeof type === "string")
  if (Object.hasOwn(schema, "const")) return [jsonType(schema["const"])]
  return Array.isArray(schema["enum"]) ? [...new Set(schema["enum"].map(jsonType))] : undefined
}

const jsonType = (value: unknown): string => value === null ? "null" : Array.isArray(value) ? "array" : typeof value

/**
 * Whether a value is of a JSON type. Types that JSON Schema does not have accept everything.
 *
 * @category guards
 * @since 0.1.0
 */
export const isOfType = (value: unknown, type: string): boolean => {
  switch (type) {
    case "string":
    case "boolean":
      return typeof value === type
    case "number":
      return Number.isFinite(value)
    case "integer":
      return Number.isInteger(value)
    case "null":
      return value === null
    case "array":
      return Array.isArray(value)
    case "object":
      return isRecord(value)
    default:
      return true
  }
}

const quoted = (value: unknown): string => excerpt(JSON.stringify(value), 60)

const alternatives = (words: ReadonlyArray<string>): string => {
  const distinct = [...new Set(words)]
  return distinct.length > 8
    ? `${distinct.slice(0, 8).join(", ")} or ${distinct.length - 8} more`
    : distinct.join(" or ")
}

/**
 * What a schema of a document asks for, in a few words: `integer`, `"a" or "b"`, `object with t, x or null`.
 *
 * @category formatting
 * @since 0.1.0
 */
export const expectation = (document: JsonObject, schema: unknown): string => words(document, schema, 0)

const words = (document: JsonObject, schema: unknown, depth: number): string => {
  if (schema === false) return "nothing"
  if (!isJsonObject(schema) || depth > 3) return "a value"
  const part = (schema: unknown): string => words(document, schema, depth + 1)
  const listed = listedValues(schema)
  if (listed !== undefined) return alternatives(listed.map(quoted))
  const types = acceptedTypes(schema)
  // Objects that are alternatives of each other are told apart by their keys.
  const keys = depth > 0 && Array.isArray(schema["required"]) ? schema["required"] : []
  if (types !== undefined) return alternatives(types) + (keys.length > 0 ? ` with ${keys.slice(0, 8).join(", ")}` : "")
  const members = schema["anyOf"] ?? schema["oneOf"]
  if (Array.isArray(members)) return alternatives(members.map(part))
  return Object.hasOwn(schema, "$ref") ? part(resolveRef(document, schema["$ref"])) : "a value"
}
