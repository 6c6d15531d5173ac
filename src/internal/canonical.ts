/**
 * JSON as a text that does not depend on the order of keys.
 */
import { isRecord } from "./record.ts"

export const canonicalText = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`
  if (!isRecord(value)) return value === undefined ? "undefined" : JSON.stringify(value)
  const fields = Object.keys(value).toSorted().map((key) => `${JSON.stringify(key)}:${canonicalText(value[key])}`)
  return `{${fields.join(",")}}`
}
