/** `npm run bench`: builds the library, measures it and the others, prints tables and writes `results/`. */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { cases } from "./cases.ts"
import { checkCounts } from "./counts.ts"
import { available, install } from "./install.ts"
import { machine } from "./machine.ts"
import { type Options, readOptions, usage, UsageError } from "./options.ts"
import { plan } from "./plan.ts"
import { coreTable, peerTable, reasons, sizeTable, targetTable } from "./report.ts"
import { writeResults } from "./results.ts"
import type { Entry } from "./roster.ts"
import { measureGroup, type Row, type Versions } from "./rounds.ts"
import { measureSizes } from "./size.ts"
import { measureImports } from "./startup.ts"
import { judge, peerTargets, targets, type Verdict } from "./targets.ts"

const root = fileURLToPath(new URL("..", import.meta.url))

const build = (): void => {
  const { status } = spawnSync("npm", ["run", "-s", "build"], { cwd: root, stdio: "inherit" })
  if (status !== 0) throw new Error("the library does not build")
}

const groups = new Set([...cases.map(({ group }) => group), "size"])

const measure = async (options: Options, entries: ReadonlyArray<Entry>, versions: Versions) => {
  const contests = plan(options, entries)
  const caseIds = [...new Set([...contests.values()].flat().map((contest) => contest.case.id))]
  const contenders = new Set([...contests.values()].flat().flatMap((contest) => contest.contenders))
  process.stderr.write("Checking that all do the same work …\n")
  await checkCounts([...contenders], caseIds)
  const rows: Array<Row> = []
  for (const [group, inGroup] of contests) {
    const began = performance.now()
    process.stderr.write(`${group} … `)
    rows.push(...await measureGroup(inGroup, versions))
    process.stderr.write(`${Math.round((performance.now() - began) / 1000)} s\n`)
  }
  if (options.only === undefined || options.only.includes("size")) {
    process.stderr.write("size …\n")
    const measured = entries.filter(({ id, kind }) => id !== "floor" && (kind === "core" || options.peers))
    const ids = measured.map(({ id }) => id).filter((id) => id !== "pi-1.0.3-loop")
    rows.push(...await measureSizes(ids), await measureImports(ids, options.rounds))
  }
  return rows
}

const print = (rows: ReadonlyArray<Row>, entries: ReadonlyArray<Entry>, verdicts: ReadonlyArray<Verdict>): void => {
  console.log(`\n${coreTable(rows, entries)}\n`)
  const peers = peerTable(rows, entries)
  if (peers !== undefined) console.log(`${peers}\n`)
  const sizes = sizeTable(rows, entries)
  if (sizes !== undefined) console.log(`${sizes}\n`)
  const why = reasons(rows)
  if (why.length > 0) console.log(`${why.join("\n")}\n`)
  console.log(targetTable(verdicts))
}

const main = async (): Promise<number> => {
  const options = readOptions(process.argv.slice(2), groups)
  build()
  install()
  const entries = available()
  const versions: Versions = {}
  const rows = await measure(options, entries, versions)
  const verdicts = [...targets, ...peerTargets(rows, entries)].flatMap((target) => judge(target, rows) ?? [])
  print(rows, entries, verdicts)
  writeResults({ machine: machine(), entries, options, versions, rows, verdicts })
  const rivals = verdicts.filter(({ target }) => target.rival === true)
  if (rivals.length > 0) {
    const held = rivals.filter(({ holds }) => holds).length
    console.log(`\nAgainst other libraries: at least as fast in ${held} of ${rivals.length} comparisons.`)
  }
  const missed = verdicts.filter(({ holds }) => !holds).length
  console.log(`\n${verdicts.length - missed} of ${verdicts.length} targets held.`)
  return options.check && missed > 0 ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  console.error(`${error.message}\n\n${usage}`)
  process.exitCode = 2
}
