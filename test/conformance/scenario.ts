#!/usr/bin/env node
// Plays scenarios (SCENARIO.md) against this library and prints their traces, one line of JSON each.
//
//   node test/conformance/scenario.ts FILE...     a file holds a scenario, or JSON lines: a scenario a line
//   node test/conformance/scenario.ts -           JSON lines on standard input
import { readFile } from "node:fs/promises"
import { text } from "node:stream/consumers"
import { playScenario } from "./player.ts"
import type { Scenario } from "./types.ts"
import { validate } from "./validate.mjs"

/** Something the user gave that cannot be played. */
class Unusable extends Error {}

interface Source {
  /** Where it stands, for messages. */
  readonly place: string
  readonly text: string
}

const nameOf = (file: string): string => file === "-" ? "standard input" : file

const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

const read = async (file: string): Promise<string> => {
  try {
    return file === "-" ? await text(process.stdin) : await readFile(file, "utf8")
  } catch (error) {
    throw new Unusable(`${nameOf(file)}: cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

const parses = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A file is one scenario when it is JSON as a whole, else every line that is not blank is one. */
const sourcesOf = async (file: string): Promise<ReadonlyArray<Source>> => {
  const whole = (await read(file)).replace(/^\uFEFF/, "")
  const name = nameOf(file)
  const lines = whole.split("\n").flatMap((line, index) =>
    line.trim() === "" ? [] : [{ place: `${name}, line ${index + 1}`, text: line }]
  )
  if (lines.length === 1 || (lines.length === 0 && file === "-")) return lines
  // Of a scenario over several lines that is not valid JSON no line would parse alone: it is reported as a whole.
  return parses(whole) || !lines.some((line) => parses(line.text)) ? [{ place: name, text: whole }] : lines
}

interface Playable {
  readonly place: string
  readonly scenario: Scenario
}

const playable = ({ place, text }: Source): Playable => {
  let scenario: Scenario
  try {
    scenario = JSON.parse(text)
  } catch (error) {
    throw new Unusable(`${place}: not valid JSON: ${messageOf(error)}`, { cause: error })
  }
  const problems = validate(scenario)
  if (problems.length > 0) throw new Unusable(`${place}: not a valid scenario: ${problems.join("; ")}`)
  return { place, scenario }
}

const main = async (files: ReadonlyArray<string>): Promise<void> => {
  if (files.length === 0) throw new Unusable("usage: scenario.ts FILE... | -")
  const sources = await Promise.all(files.map(sourcesOf))
  // All are checked before the first is played: either every scenario has its line, or a message says why not.
  for (const { place, scenario } of sources.flat().map(playable)) {
    let line: string
    try {
      line = JSON.stringify(await playScenario(scenario))
    } catch (error) {
      throw new Unusable(`${place}: cannot be played: ${messageOf(error)}`, { cause: error })
    }
    process.stdout.write(`${line}\n`)
  }
}

// Whoever reads the traces may stop early.
process.stdout.on("error", () => process.exit(0))

try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 2
}
