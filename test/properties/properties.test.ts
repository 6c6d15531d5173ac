/**
 * The invariants of docs/SPEC.md, section 7, over generated scenarios. A failure shows the seed, the scenario made small, and
 * what is wrong with it; `node test/properties/search.ts --seeds SEED` plays that seed alone, `--seeds FROM-TO` many more.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { examine } from "./checks.ts"
import { draw } from "./scenario.ts"
import { shrink } from "./shrink.ts"

/** The same in every run: what fails here fails everywhere. */
const firstSeed = 1

const chunks = 20

const chunkSize = 100

/** Shrinking is for people; it must not cost the time of the whole suite. */
const maxTries = 300

const check = async (seed: number): Promise<void> => {
  const scenario = draw(seed)
  const problems = await examine(scenario)
  if (problems.length === 0) return
  const shrunk = await shrink(scenario, problems, maxTries)
  assert.fail(
    [
      `seed ${seed}: ${problems[0]}`,
      `made small in ${shrunk.tries} tries:`,
      JSON.stringify(shrunk.scenario),
      ...shrunk.problems
    ].join("\n")
  )
}

describe("I1 to I7", () => {
  for (let chunk = 0; chunk < chunks; chunk++) {
    const from = firstSeed + chunk * chunkSize
    const to = from + chunkSize - 1
    it.effect(`hold in the scenarios of seeds ${from} to ${to}`, () =>
      Effect.promise(async () => {
        for (let seed = from; seed <= to; seed++) await check(seed)
      }), 120_000)
  }
})

describe("scenarios", () => {
  it("are the same for the same seed", () => {
    for (let seed = 1; seed <= 50; seed++) assert.deepStrictEqual(draw(seed), draw(seed))
  })

  it("are plain data", () => {
    for (let seed = 1; seed <= 50; seed++) assert.deepStrictEqual(JSON.parse(JSON.stringify(draw(seed))), draw(seed))
  })
})
