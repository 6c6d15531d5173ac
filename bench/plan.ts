/** What a run of the benchmark measures. */
import { type Case, cases } from "./cases.ts"
import type { Options } from "./options.ts"
import { base, type Entry, ours } from "./roster.ts"
import type { Contest } from "./rounds.ts"

/** Variants that even a quick run measures, because targets are about them. */
const quickVariants = new Set(["W1-hooks", "W2-effect"])

/** Cases that a quick run leaves out: they take longest, or say what another case says. */
const slow = new Set(["W3-promise", "W3-sleep", "W7"])

const quick = ({ id, variant }: Case): boolean => !slow.has(id) && (!variant || quickVariants.has(id))

/** Who does a case at full size. */
const coreOf = (
  { id, only, variant }: Case,
  entries: ReadonlyArray<Entry>,
  options: Options
): ReadonlyArray<string> => {
  const wanted = (entry: string): boolean => {
    if (only !== undefined) return only.includes(entry)
    if (entry === ours || entry === base) return true
    if (variant) return false
    return !options.quick || (entry === "pi-1.0.3-loop" && id === "W3")
  }
  return entries.filter(({ id: entry, kind }) => kind === "core" && wanted(entry)).map((entry) => entry.id)
}

/** The contests, by group. Other libraries are so far away that half of the rounds show where. */
export const plan = (options: Options, entries: ReadonlyArray<Entry>): ReadonlyMap<string, ReadonlyArray<Contest>> => {
  const { rounds } = options
  const peers = options.peers ? entries.filter(({ kind }) => kind === "peer").map(({ id }) => id) : []
  const chosen = cases.filter((item) =>
    (options.only === undefined || options.only.includes(item.group)) && (!options.quick || quick(item))
  )
  return Map.groupBy(
    chosen.flatMap((item): ReadonlyArray<Contest> => {
      const full: Contest = { case: item, size: "full", contenders: coreOf(item, entries, options), rounds }
      if (peers.length === 0 || item.variant || item.only !== undefined) return [full]
      return [full, { case: item, size: "peers", contenders: [ours, base, ...peers], rounds: Math.ceil(rounds / 2) }]
    }),
    (contest) => contest.case.group
  )
}
