#!/usr/bin/env node
// Plays random scenarios (generate.mjs) against pi and against this library and compares the traces.
//
//   npm run -s fuzz -- --seeds FROM-TO [--profile safe|full]     default: full
//
// Traces that differ are explained by the rules of docs/SPEC.md, section 5 (attribute.ts); scenarios of the profile safe
// must not differ at all. Every trace of this library has to keep the invariants I1 to I4. What remains is unexplained:
// exit code 1.
import { attribute } from "./attribute.ts"
import { diffTraces } from "./compare.mjs"
import { generate, type Profile } from "./generate.mjs"
import { violations } from "./invariants.ts"
import { playScenario } from "./player.ts"
import type { Trace } from "./trace.ts"

interface Options {
  readonly from: number
  readonly to: number
  readonly profile: Profile
}

/** The options, or what is wrong with them. */
const parse = (args: ReadonlyArray<string>): Options | string => {
  let seeds: string | undefined
  let profile = "full"
  for (let index = 0; index < args.length; index++) {
    const [name, inline] = args[index]!.split("=", 2)
    if (name !== "--seeds" && name !== "--profile") return `unknown argument ${args[index]}`
    const value = inline ?? args[++index]
    if (value === undefined) return `${name} needs a value`
    if (name === "--seeds") seeds = value
    else profile = value
  }
  if (profile !== "safe" && profile !== "full") return `unknown profile ${profile}; it is safe or full`
  if (seeds === undefined) return "usage: fuzz.ts --seeds FROM-TO [--profile safe|full]"
  const range = /^(\d+)(?:-(\d+))?$/.exec(seeds)
  const from = Number(range?.[1])
  const to = Number(range?.[2] ?? range?.[1])
  if (range === null || !Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from > to) {
    return `bad range of seeds ${seeds}; it is FROM-TO, such as 1-100`
  }
  return { from, to, profile }
}

/** How one seed went: equal, the classes that explain the difference, or what cannot be explained. */
type Verdict =
  | { readonly _tag: "Equal" }
  | { readonly _tag: "Differs"; readonly classes: ReadonlyArray<string> }
  | { readonly _tag: "Unexplained"; readonly problems: ReadonlyArray<string> }

const unexplained = (problems: ReadonlyArray<string>): Verdict => ({ _tag: "Unexplained", problems })

const judge = async (seed: number, profile: Profile): Promise<Verdict> => {
  const { scenario, trace } = await generate(seed, profile)
  // As JSON, as the traces of this library: what is undefined is absent.
  const pi: Trace = JSON.parse(JSON.stringify(trace))
  let ours: Trace
  try {
    ours = await playScenario(scenario)
  } catch (error) {
    return unexplained([`cannot be played: ${error instanceof Error ? error.stack : String(error)}`])
  }
  const broken = violations(scenario, ours)
  if (broken.length > 0) return unexplained(broken)
  const differences = diffTraces(pi, ours)
  if (differences.length === 0) return { _tag: "Equal" }
  const classes = profile === "safe" ? [] : [...attribute(scenario, pi, ours)]
  return classes.length > 0 ? { _tag: "Differs", classes } : unexplained(differences)
}

const main = async ({ from, profile, to }: Options): Promise<void> => {
  const byClass = new Map<string, number>()
  let equal = 0
  let explained = 0
  let failed = 0
  for (let seed = from; seed <= to; seed++) {
    const verdict = await judge(seed, profile)
    switch (verdict._tag) {
      case "Equal":
        equal++
        break
      case "Differs":
        explained++
        for (const name of verdict.classes) byClass.set(name, (byClass.get(name) ?? 0) + 1)
        break
      case "Unexplained":
        failed++
        console.log(`seed ${seed} (${profile}):`)
        for (const problem of verdict.problems.slice(0, 5)) console.log(`  ${problem}`)
        console.log(`  reproduce: npm run -s fuzz -- --seeds ${seed}-${seed} --profile ${profile}`)
        console.log(`  scenario:  node test/conformance/generate.mjs ${seed} --profile ${profile} --play`)
    }
  }
  const classes = [...byClass].toSorted(([a, n], [b, m]) => m - n || a.localeCompare(b))
  const differs = `${explained} differ by rule${
    classes.length === 0 ? "" : ` (${classes.map(([name, count]) => `${name} ${count}`).join(", ")})`
  }`
  console.log(`${profile}, seeds ${from}-${to}: ${equal} equal, ${differs}, ${failed} unexplained`)
  if (failed > 0) process.exitCode = 1
}

const options = parse(process.argv.slice(2))
if (typeof options === "string") {
  process.stderr.write(`${options}\n`)
  process.exitCode = 2
} else await main(options)
