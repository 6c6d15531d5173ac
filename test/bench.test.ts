/**
 * The benchmark's harness: every contender that is installed does every case with little work, and all of them count the same.
 * Nothing is timed. The library is measured from its sources here, because tests need no build.
 */
import { beforeAll, describe, expect, it } from "vitest"
import { cases } from "../bench/cases.ts"
import type { Answer } from "../bench/child.ts"
import { ask } from "../bench/children.ts"
import { checkSame } from "../bench/counts.ts"
import { available } from "../bench/install.ts"
import { ours } from "../bench/roster.ts"

const ids = cases.map(({ id }) => id)

const contenders = available().map(({ id }) => id)

describe("bench", () => {
  const answers = new Map<string, Readonly<Record<string, Answer>>>()

  beforeAll(async () => {
    process.env["BENCH_LIBRARY"] = "src"
    for (const contender of contenders) answers.set(contender, await ask(contender, ids, "smoke"))
  }, 300_000)

  it.each(ids)("all do the same work in %s", (id) => {
    const all = [...answers].map(([contender, byCase]) => [contender, byCase[id]!] as const)
    expect(all.filter(([, answer]) => "points" in answer).map(([contender]) => contender)).toContain(ours)
    checkSame(id, all)
  })

  it("names two that do not do the same work", () => {
    const counts = { responses: 1, deltas: 1, executions: 0, results: 0, queued: 0 }
    const answer = (deltas: number): Answer => ({
      version: "1",
      points: [{ id: "W", counts: { ...counts, deltas }, value: 1 }]
    })
    expect(() => checkSame("W", [["a", answer(1)], ["b", { cannot: "so" }], ["c", answer(1)]])).not.toThrow()
    expect(() => checkSame("W", [["a", answer(1)], ["b", answer(2)]])).toThrow(
      /^W: a and b did not do the same work in W:\n {2}a: .*deltas 1.*\n {2}b: .*deltas 2/
    )
  })
})
