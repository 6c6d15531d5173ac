/**
 * Ids of tool calls are unique within a message, so that every call gets a result of its own (T8).
 */
import { wellFormed } from "./json.ts"

/** The ids of a message's calls so far, each with the number that the next call of the same id tries first. */
export type UsedIds = Map<string, number>

/**
 * The id a call gets: its own, one with a number if that is used (`ID_2` and so on), `call` if it has none. It is added to
 * `used`.
 */
export const freshId = (used: UsedIds, id: string, numbered = withNumber): string => {
  const base = id === "" ? "call" : wellFormed(id)
  let n = used.get(base)
  if (n === undefined) {
    used.set(base, 2)
    return base
  }
  while (used.has(numbered(base, n))) n++
  const fresh = numbered(base, n)
  used.set(base, n + 1)
  used.set(fresh, 2)
  return fresh
}

const withNumber = (id: string, n: number): string => `${id}_${n}`
