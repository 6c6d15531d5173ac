/** The files of a run: `results/latest.json` and `results/chart.svg`, or, of a run that left something out, `results/partial.*`. */
import { mkdirSync, writeFileSync } from "node:fs"
import { chart } from "./chart.ts"
import type { Machine } from "./machine.ts"
import type { Options } from "./options.ts"
import { speed } from "./ratios.ts"
import { base, type Entry } from "./roster.ts"
import type { Row, Versions } from "./rounds.ts"
import type { Verdict } from "./targets.ts"

export interface Results {
  readonly machine: Machine
  readonly entries: ReadonlyArray<Entry>
  readonly options: Options
  readonly versions: Versions
  readonly rows: ReadonlyArray<Row>
  readonly verdicts: ReadonlyArray<Verdict>
}

/** Four digits are more than the figures are good for. */
const short = (value: number): number => Number(value.toPrecision(4))

/** What each contender showed, and pi's figure over it, round by round. */
const encodeRow = (row: Row) => ({
  ...row,
  contenders: Object.fromEntries(
    Object.entries(row.contenders).map(([id, shown]) => {
      if ("cannot" in shown) return [id, shown]
      const ratios = speed(row, id, base)?.map(short)
      return [id, { values: shown.values.map(short), ratios }]
    })
  )
})

const folder = new URL("results/", import.meta.url)

export const writeResults = ({ entries, machine, options, rows, verdicts, versions }: Results): void => {
  const latest = {
    date: new Date().toISOString(),
    machine,
    options,
    versions,
    rows: rows.map(encodeRow),
    targets: verdicts.map(({ holds, reachesAim, target, value }) => ({
      ...target,
      value: short(value),
      holds,
      reachesAim
    }))
  }
  const whole = options.only === undefined && !options.quick && options.peers
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL(whole ? "chart.svg" : "partial.svg", folder), chart(rows, entries))
  writeFileSync(new URL(whole ? "latest.json" : "partial.json", folder), `${JSON.stringify(latest, undefined, 1)}\n`)
}
