/**
 * Objects as JSON knows them, handled so that a field's name is never mistaken for a prototype's.
 *
 * @since 0.1.0
 */
import type { Json, JsonObject } from "./json.ts"

/**
 * Whether a value is an object of JSON's kind: neither null nor an array.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Whether a part of a JSON document is an object. Only for what is known to be JSON: the fields are not looked at.
 *
 * @category guards
 * @since 0.1.0
 */
export const isJsonObject = (value: unknown): value is JsonObject => isRecord(value)

/**
 * Whether a part of a JSON document is a list. `Array.isArray` alone would give one of anything that can be changed.
 *
 * @category guards
 * @since 0.1.0
 */
export const isList = (value: unknown): value is ReadonlyArray<Json> => Array.isArray(value)

/**
 * A field the object itself has, `undefined` if it has none: `constructor` and the like are not found in the prototype.
 *
 * @category getters
 * @since 0.1.0
 */
export const getField = (record: { readonly [key: string]: unknown }, key: string): unknown =>
  Object.hasOwn(record, key) ? record[key] : undefined

/**
 * Sets an own field whatever its name is: assigning to `__proto__` would change the prototype instead.
 *
 * @category combinators
 * @since 0.1.0
 */
export const setField = <A>(record: Record<string, A>, key: string, value: A): void => {
  if (key === "__proto__") {
    Object.defineProperty(record, key, { value, writable: true, enumerable: true, configurable: true })
  } else {
    record[key] = value
  }
}
