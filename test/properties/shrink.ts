/** Makes a scenario that fails small: leaves out part after part as long as it still fails in the same way. */
import { examine } from "./checks.ts"
import type { Scenario } from "./types.ts"

/** A problem without what differs from scenario to scenario. */
export const kindOf = (problem: string): string =>
  problem.split("\n", 1)[0]!.replace(/"[^"]*"/g, "…").replace(/<[^>]*>/g, "…").replace(/-?\d+(\.\d+)?/g, "#").slice(
    0,
    120
  )

type Path = ReadonlyArray<string | number>

/** The fields of a scenario that may be absent. */
const optional = new Set([
  "yieldAfter",
  "cleanup",
  "rejects",
  "outside",
  "sync",
  "whileRunning",
  "timeout",
  "take",
  "joined",
  "opening",
  "setup",
  "mode",
  "observer",
  "budget",
  "progress",
  "retry",
  "prepare",
  "spare",
  "required",
  "later",
  "sections",
  "usage",
  "errorMessage",
  "content",
  "systemPrompt",
  "steeringMode",
  "followUpMode",
  "toolExecution",
  "toolConcurrency",
  "toolTimeout",
  "toolRetry",
  "maxResultLength",
  "hookTimeout",
  "firstEventTimeout",
  "eventTimeout",
  "limits",
  "turns",
  "toolCalls",
  "tokens",
  "cost",
  "duration",
  "repeatedCalls",
  "wrapUp",
  "gracePeriod"
])

/** The places of a value that may be made smaller, the outer ones first. */
const places = (value: unknown, path: Path, found: Array<Path>): ReadonlyArray<Path> => {
  if (typeof value !== "object" || value === null) return found
  const inner: ReadonlyArray<readonly [string | number, unknown]> = Array.isArray(value)
    ? value.map((item: unknown, index) => [index, item] as const).toReversed()
    : Object.entries(value)
  for (const [key, item] of inner) {
    const place = [...path, key]
    if (key !== "seed") found.push(place)
    places(item, place, found)
  }
  return found
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

/** A copy in which the value at a place is what `change` makes of it; `undefined` leaves it out. */
const changed = (value: unknown, [key, ...rest]: Path, change: (value: unknown) => unknown): unknown => {
  if (Array.isArray(value)) {
    const list: ReadonlyArray<unknown> = value
    return list.flatMap((item, index) => {
      if (index !== key) return [item]
      const made = rest.length === 0 ? change(item) : changed(item, rest, change)
      return made === undefined ? [] : [made]
    })
  }
  if (!isRecord(value) || typeof key !== "string") return value
  const { [key]: item, ...others } = value
  const made = rest.length === 0 ? change(item) : changed(item, rest, change)
  return made === undefined ? others : { ...others, [key]: made }
}

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (inner, key) => Array.isArray(inner) ? inner[Number(key)] : isRecord(inner) ? inner[key] : undefined,
    value
  )

/** What may stand in the place of a value instead, smaller first; `undefined` leaves it out. */
const smaller = (value: unknown, key: string | number | undefined): ReadonlyArray<unknown> => {
  const absent = typeof key === "number" || (key !== undefined && optional.has(key)) ? [undefined] : []
  if (Array.isArray(value)) {
    const half = Math.ceil(value.length / 2)
    return value.length < 2 ? [...absent, []] : [...absent, [], value.slice(0, half), value.slice(half)]
  }
  if (typeof value !== "number" || key === "contentIndex" || key === "nth") return absent
  return [...absent, ...[1, 10].filter((number) => number < value)]
}

export interface Shrunk {
  readonly scenario: Scenario
  readonly problems: ReadonlyArray<string>
  /** How many scenarios were tried. */
  readonly tries: number
}

/** Tries at most so many scenarios. */
export const shrink = async (
  scenario: Scenario,
  problems: ReadonlyArray<string>,
  maxTries = 1500
): Promise<Shrunk> => {
  const wanted = kindOf(problems[0]!)
  let best: Shrunk = { scenario, problems, tries: 0 }
  let tries = 0
  const attempt = async (candidate: Scenario): Promise<boolean> => {
    tries++
    const found = await examine(candidate)
    if (!found.some((problem) => kindOf(problem) === wanted)) return false
    best = { scenario: candidate, problems: found, tries }
    return true
  }
  let progress = true
  while (progress) {
    progress = false
    for (const path of places(best.scenario, [], [])) {
      const value = at(best.scenario, path)
      if (value === undefined) continue
      for (const other of smaller(value, path.at(-1))) {
        if (tries >= maxTries) return { ...best, tries }
        if (JSON.stringify(other) === JSON.stringify(value)) continue
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what cannot be played fails in another way
        if (await attempt(changed(best.scenario, path, () => other) as Scenario)) {
          progress = true
          break
        }
      }
    }
  }
  return { ...best, tries }
}
