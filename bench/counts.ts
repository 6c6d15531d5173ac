/** Whether contenders did the same work. */
import type { Answer } from "./child.ts"
import { ask } from "./children.ts"
import type { Counts } from "./contender.ts"

const show = (counts: Counts): string => Object.entries(counts).map(([name, count]) => `${name} ${count}`).join(", ")

/** Fails when two contenders that did the same case counted differently. */
export const checkSame = (caseId: string, answers: ReadonlyArray<readonly [contender: string, Answer]>): void => {
  const did = answers.flatMap(([contender, answer]) => "cannot" in answer ? [] : [[contender, answer.points] as const])
  const [reference, expected] = did[0] ?? []
  for (const [contender, points] of did.slice(1)) {
    for (const [index, { counts, id }] of points.entries()) {
      const wanted = expected![index]!.counts
      if (show(counts) === show(wanted)) continue
      throw new Error(
        `${caseId}: ${reference} and ${contender} did not do the same work in ${id}:\n` +
          `  ${reference}: ${show(wanted)}\n  ${contender}: ${show(counts)}`
      )
    }
  }
}

/** Does every given case once with little work, in one process for each contender, and compares. */
export const checkCounts = async (contenders: ReadonlyArray<string>, caseIds: ReadonlyArray<string>): Promise<void> => {
  const all: Array<readonly [string, Readonly<Record<string, Answer>>]> = []
  for (const contender of contenders) all.push([contender, await ask(contender, caseIds, "smoke")])
  for (const id of caseIds) checkSame(id, all.map(([contender, answers]) => [contender, answers[id]!]))
}
