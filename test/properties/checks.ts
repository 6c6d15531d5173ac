/** Everything that must hold of a scenario that was played: docs/SPEC.md, section 7, and what follows from section 4. */
import { checkCalls } from "./checkCalls.ts"
import { checkInputs } from "./checkInputs.ts"
import { checkLeft } from "./checkLeft.ts"
import { checkOutcomes } from "./checkOutcomes.ts"
import { checkQueues } from "./checkQueues.ts"
import { checkStops } from "./checkStops.ts"
import { play, type Played } from "./play.ts"
import type { Scenario } from "./types.ts"

const failure = (what: string, error: unknown): string =>
  `${what}: ${error instanceof Error ? error.stack : String(error)}`

/** A check that fails itself is a violation, too: a transcript that does not encode, for instance. */
const safely = (name: string, check: (played: Played) => ReadonlyArray<string>) => (played: Played) => {
  try {
    return check(played)
  } catch (error) {
    return [failure(`${name} cannot be checked`, error)]
  }
}

const checks = [
  safely("I5", checkLeft),
  safely("I4", checkInputs),
  safely("Q", checkQueues),
  safely("I2", checkStops),
  safely("the outcome", checkOutcomes),
  safely("the calls", checkCalls)
]

/** What is wrong, as texts that begin with the number of the rule. */
export const violations = (played: Played): ReadonlyArray<string> => checks.flatMap((check) => check(played))

/** Plays a scenario twice (I7), once with a listener that reads the events late (M3), and gives what is wrong. */
export const examine = async (scenario: Scenario): Promise<ReadonlyArray<string>> => {
  let played: Played
  let again: Played
  try {
    played = await play(scenario)
    again = await play(scenario, { late: true })
  } catch (error) {
    return [failure("cannot be played", error)]
  }
  const [first, second] = [played.world.bytes, again.world.bytes]
  const different = first.findIndex((line, index) => line !== second[index])
  const i7 = different >= 0 || first.length !== second.length
    ? [`I7: entry ${different} is ${first[different]}, and then ${second[different]}`]
    : []
  return [...i7, ...violations(played)]
}
