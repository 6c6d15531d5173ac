/**
 * The measurement: round after round, and within a round contender after contender, in an order that changes, each in a
 * process of its own. What slows the machine for a while slows all of them; ratios within a round show little of it.
 */
import type { Case, Size } from "./cases.ts"
import type { Answer } from "./child.ts"
import { ask } from "./children.ts"
import { checkSame } from "./counts.ts"
import { describe } from "./describe.ts"

/** A case at one size, and who does it. */
export interface Contest {
  readonly case: Case
  readonly size: Size
  readonly contenders: ReadonlyArray<string>
  readonly rounds: number
}

/** What one contender showed: a figure for each round, or why there is none. */
export type Shown = { readonly values: ReadonlyArray<number> } | { readonly cannot: string }

/** A row of the results. */
export interface Row {
  readonly id: string
  readonly size: Size
  readonly title: string
  readonly unit: Case["unit"]
  readonly contenders: Readonly<Record<string, Shown>>
}

export type Versions = Record<string, string>

/** The list, begun somewhere else. */
export const rotate = <A>(list: ReadonlyArray<A>, by: number): ReadonlyArray<A> =>
  list.map((_, index) => list[(index + by) % list.length]!)

/** The answers of one contender in all rounds as the rows of its case. */
const gather = (contest: Contest, answers: ReadonlyArray<ReadonlyMap<string, Answer>>): ReadonlyArray<Row> => {
  const { contenders, size, case: { cold, points, unit } } = contest
  const rows = points(size).flatMap(({ id, workload }) => {
    const title = describe(workload)
    if (!cold) return [{ id, title }]
    return [
      { id, title: `${title}, cold` },
      { id: `${id}+import`, title: `${title}, cold, with imports` }
    ]
  })
  return rows.map(({ id, title }): Row => ({
    id,
    size,
    title,
    unit,
    contenders: Object.fromEntries(contenders.map((contender): [string, Shown] => {
      const values: Array<number> = []
      for (const round of answers) {
        const answer = round.get(contender)!
        if ("cannot" in answer) return [contender, answer]
        values.push(answer.points.find((point) => point.id === id)!.value)
      }
      return [contender, { values }]
    }))
  }))
}

/** Measures the contests of one group. */
export const measureGroup = async (
  contests: ReadonlyArray<Contest>,
  versions: Versions
): Promise<ReadonlyArray<Row>> => {
  const answers = contests.map((): Array<Map<string, Answer>> => [])
  for (let round = 0; round < Math.max(...contests.map(({ rounds }) => rounds)); round++) {
    for (const [index, { case: { id }, contenders, rounds, size }] of contests.entries()) {
      if (round >= rounds) continue
      const inRound = new Map<string, Answer>()
      for (const contender of rotate(contenders, round)) {
        const before = answers[index]![0]?.get(contender)
        const answer = before !== undefined && "cannot" in before ? before : (await ask(contender, [id], size))[id]!
        if (!("cannot" in answer)) versions[contender] = answer.version
        inRound.set(contender, answer)
      }
      checkSame(id, [...inRound])
      answers[index]!.push(inRound)
    }
  }
  return contests.flatMap((contest, index) => gather(contest, answers[index]!))
}
