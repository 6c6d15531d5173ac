/**
 * Ids of tool calls are unique within a message, so that every call gets a result of its own (T8).
 */
import { wellFormed } from "./json.ts"

/** The id a call gets in a message whose calls so far have the ids in `used`, to which it is added: `ID_2`, or `call`. */
export const freshId = (used: Set<string>, id: string): string => {
  const base = id === "" ? "call" : wellFormed(id)
  let fresh = base
  for (let n = 2; used.has(fresh); n++) fresh = `${base}_${n}`
  used.add(fresh)
  return fresh
}
