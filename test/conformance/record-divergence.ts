#!/usr/bin/env node
// Records that this library plays a scenario differently from pi on purpose: an entry of divergences.json, and our trace
// in expected/.
//
//   node test/conformance/record-divergence.ts NAME CLASS "reason"
//   node test/conformance/record-divergence.ts --again [NAME...]     our traces anew, entries as they are
import { mkdirSync, writeFileSync } from "node:fs"
import { classes } from "./classes.ts"
import { diffTraces } from "./compare.mjs"
import { type Divergence, readDivergences, readScenario, readTrace, url } from "./files.ts"
import { formatTrace } from "./player-pi.mjs"
import { playScenario } from "./player.ts"

const record = async (name: string): Promise<void> => {
  const trace = await playScenario(readScenario(name))
  if (diffTraces(readTrace("traces", name), trace).length === 0) {
    throw new Error(`${name} is played like pi: there is nothing to record`)
  }
  mkdirSync(url("expected/"), { recursive: true })
  writeFileSync(url(`expected/${name}.json`), formatTrace(trace))
}

const main = async (args: ReadonlyArray<string>): Promise<void> => {
  const entries = readDivergences()
  if (args[0] === "--again") {
    const names = args.length > 1 ? args.slice(1) : entries.map((entry) => entry.scenario)
    for (const name of names) await record(name)
    return
  }
  const [name, kind, reason] = args
  if (name === undefined || kind === undefined || !reason) {
    throw new Error("usage: record-divergence.ts NAME CLASS \"reason\"")
  }
  if (!classes.some((name) => name === kind)) throw new Error(`unknown class ${kind}; there are ${classes.join(", ")}`)
  await record(name)
  const entry: Divergence = { scenario: name, class: kind, reason }
  const others = entries.filter((other) => other.scenario !== name)
  const sorted = [...others, entry].toSorted((a, b) => a.scenario.localeCompare(b.scenario))
  writeFileSync(url("divergences.json"), `${JSON.stringify(sorted, undefined, 2)}\n`)
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}
