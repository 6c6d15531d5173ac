#!/usr/bin/env node
// Plays the scenarios of a range of seeds and checks the invariants.
//
//   node test/properties/search.ts --seeds FROM-TO [--shrink N]
//
// Of each kind of violation the first N scenarios (default: 1) in which it comes first are shrunk and shown. Exit code 1 when there is any.
import { examine } from "./checks.ts"
import { draw } from "./scenario.ts"
import { kindOf, shrink } from "./shrink.ts"

interface Options {
  readonly from: number
  readonly to: number
  readonly shrinks: number
}

const usage = "usage: search.ts --seeds FROM-TO [--shrink N]"

/** The options, or what is wrong with them. */
const parse = (args: ReadonlyArray<string>): Options | string => {
  let seeds: string | undefined
  let shrinks = "1"
  for (let index = 0; index < args.length; index += 2) {
    const [name, value] = args.slice(index)
    if (value === undefined) return usage
    if (name === "--seeds") seeds = value
    else if (name === "--shrink") shrinks = value
    else return usage
  }
  const range = /^(\d+)(?:-(\d+))?$/.exec(seeds ?? "")
  if (range === null || !/^\d+$/.test(shrinks)) return usage
  return { from: Number(range[1]), to: Number(range[2] ?? range[1]), shrinks: Number(shrinks) }
}

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const report = async (seed: number, problems: ReadonlyArray<string>): Promise<void> => {
  const shrunk = await shrink(draw(seed), problems)
  print(`seed ${seed}, shrunk in ${shrunk.tries} tries:\n${JSON.stringify(shrunk.scenario)}`)
  for (const problem of shrunk.problems) print(`  ${problem}`)
}

const main = async ({ from, shrinks, to }: Options): Promise<void> => {
  const kinds = new Map<string, Array<number>>()
  const began = performance.now()
  let failed = 0
  for (let seed = from; seed <= to; seed++) {
    const problems = await examine(draw(seed))
    if (problems.length > 0) failed++
    const [first] = problems
    if (first !== undefined) {
      const seeds = kinds.get(kindOf(first)) ?? []
      kinds.set(kindOf(first), [...seeds, seed])
      if (seeds.length < shrinks) await report(seed, problems)
    }
    const done = seed - from + 1
    if (done % 1000 === 0) {
      print(`${done} of ${to - from + 1}, ${failed} fail, ${((performance.now() - began) / done).toFixed(1)} ms each`)
    }
  }
  print(`${to - from + 1} scenarios, ${failed} fail`)
  for (const [kind, seeds] of [...kinds].toSorted(([, a], [, b]) => b.length - a.length)) {
    print(`${String(seeds.length).padStart(6)}  ${kind}  ${seeds.slice(0, 5).join(" ")}`)
  }
  if (failed > 0) process.exitCode = 1
}

const options = parse(process.argv.slice(2))
if (typeof options === "string") {
  process.stderr.write(`${options}\n`)
  process.exitCode = 2
} else await main(options)
