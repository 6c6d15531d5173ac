/**
 * Whether two requests ask the same: what they say, not when they were made or in which session.
 */
import { canonicalText } from "../canonical.ts"
import { excerpt, formatPath, type Json } from "../json.ts"
import { isJsonObject, isList, setField } from "../record.ts"

const maxShown = 120

/** A request without what differs from run to run. */
export const comparable = (request: Json): Json => {
  if (!isJsonObject(request)) return request
  const { sessionId: _, ...rest } = request
  return withoutTimes(rest)
}

const withoutTimes = (value: Json): Json => {
  if (isList(value)) return value.map(withoutTimes)
  if (!isJsonObject(value)) return value
  const copy: Record<string, Json> = {}
  for (const [key, field] of Object.entries(value)) {
    // Only of messages: an argument of a tool may have the same name.
    if (key === "arguments") setField(copy, key, field)
    else if (key !== "timestamp") setField(copy, key, withoutTimes(field))
  }
  return copy
}

/** The first place where two requests differ, as a text. */
export const firstDifference = (recorded: Json, asked: Json): string => {
  const path: Array<string | number> = []
  let [before, now]: [Json | undefined, Json | undefined] = [recorded, asked]
  for (;;) {
    const key = differingKey(before, now)
    if (key === undefined) break
    path.push(key)
    before = childOf(before, key)
    now = childOf(now, key)
  }
  return `differs at ${formatPath(path) || "its root"}: ${shown(before)} there, ${shown(now)} here`
}

const differingKey = (before: Json | undefined, now: Json | undefined): string | number | undefined => {
  if (isList(before) && isList(now)) {
    const most = Math.max(before.length, now.length)
    for (let index = 0; index < most; index++) if (!isSame(before[index], now[index])) return index
  } else if (isJsonObject(before) && isJsonObject(now)) {
    return [...new Set([...Object.keys(before), ...Object.keys(now)])].find((key) => !isSame(before[key], now[key]))
  }
  return undefined
}

const isSame = (before: Json | undefined, now: Json | undefined): boolean =>
  canonicalText(before) === canonicalText(now)

const childOf = (value: Json | undefined, key: string | number): Json | undefined =>
  isList(value) ? value[Number(key)] : isJsonObject(value) ? value[key] : undefined

const shown = (value: Json | undefined): string =>
  value === undefined ? "nothing" : excerpt(JSON.stringify(value), maxShown)
