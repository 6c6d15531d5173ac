/**
 * JSON as a text that does not depend on the order of keys.
 */
import type { Json } from "../Messages.ts"

const isList = (value: object): value is ReadonlyArray<Json> => Array.isArray(value)

export const canonicalText = (value: Json): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (isList(value)) return `[${value.map(canonicalText).join(",")}]`
  const fields = Object.keys(value).toSorted().map((key) => `${JSON.stringify(key)}:${canonicalText(value[key]!)}`)
  return `{${fields.join(",")}}`
}
