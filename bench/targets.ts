/** What effect-pi wants to hold. */
import type { Size } from "./cases.ts"
import { ratios, speed } from "./ratios.ts"
import { base, type Entry, ours } from "./roster.ts"
import type { Row } from "./rounds.ts"
import { median } from "./statistics.ts"

/** What a target is about; of all of them effect-pi is the subject. */
export type Quantity =
  /** How many times as fast as another contender. */
  | { readonly type: "speed"; readonly row: string; readonly size: Size; readonly over: string }
  /** Its bytes as a share of pi's. */
  | { readonly type: "share"; readonly row: string }
  /** What one row costs as a multiple of another. */
  | { readonly type: "growth"; readonly row: string; readonly from: string }
  /** A figure as it is. */
  | { readonly type: "amount"; readonly row: string }

export interface Target {
  readonly quantity: Quantity
  /** Has to hold: at least this speed, or at most this share or growth. */
  readonly plain: number
  /** The aim. */
  readonly bold?: number | undefined
  /** Against another library than pi 1.0.3. */
  readonly rival?: boolean
}

const faster = (row: string, plain: number, bold?: number, over = base): Target => ({
  quantity: { type: "speed", row, size: "full", over },
  plain,
  bold
})

const smaller = (row: string, plain: number, bold?: number): Target => ({
  quantity: { type: "share", row },
  plain,
  bold
})

const growth = (row: string, from: string, plain: number): Target => ({
  quantity: { type: "growth", row, from },
  plain
})

const atMost = (row: string, plain: number, bold: number): Target => ({
  quantity: { type: "amount", row },
  plain,
  bold
})

/** Bytes of a program with one agent, `effect` included. */
export const bundleLimit = 60_000

/** As long as that is not reached: what it must not grow beyond. */
export const bundleGuard = 75_000

/** Twice the work costs twice the time; what is quadratic costs four times as much. */
const linear = 2.6

const hooksCost = 1.5

export const targets: ReadonlyArray<Target> = [
  faster("W1", 3.5, 8),
  faster("W1c+import", 0.9, 1.3),
  faster("W1c", 2, 4),
  faster("W2", 4, 9),
  faster("W2-by-8", 3.5),
  faster("W2-by-1", 2),
  faster("W2-async", 1),
  faster("W2-effect", 1.3, 3),
  faster("W2a", 20),
  growth("W2a-growth@2000000", "W2a-growth@1000000", linear),
  faster("W3", 40),
  faster("W3", 1, 1.5, "pi-1.0.3-loop"),
  faster("W4@100", 2),
  faster("W4@1000", 5),
  faster("W4@10000", 20),
  faster("W4@50000", 150),
  growth("W4@50000", "W4@100", 1.5),
  faster("W5", 2.5, 4),
  faster("W6", 1.5, 2.5),
  growth("W7@10000", "W7@5000", linear),
  smaller("memory-idle", 1, 0.3),
  smaller("memory-tool", 0.65),
  smaller("memory-stream", 0.65),
  atMost("bundle", bundleLimit, 50_000),
  faster("import", 1 / 1.2),
  growth("W1-hooks", "W1", hooksCost),
  growth("W1-effect-hooks", "W1-effect", hooksCost),
  growth("W2-hooks", "W2", hooksCost),
  growth("W2-effect-hooks", "W2-effect", hooksCost),
  growth("W3-hooks", "W3", hooksCost),
  growth("W3-effect-hooks", "W3-effect", hooksCost)
]

/** Against every other library: at least as fast in every workload it can do. Bytes and imports are compared with pi only. */
export const peerTargets = (rows: ReadonlyArray<Row>, entries: ReadonlyArray<Entry>): ReadonlyArray<Target> => {
  const rivals = entries.filter(({ id, kind }) => kind === "peer" || id === "pi-1.6.0")
  return rows.filter(({ id, unit }) => unit === "ms" && id !== "import").flatMap(({ contenders, id, size }) =>
    rivals
      .filter((rival) => rival.id in contenders && !("cannot" in contenders[rival.id]!))
      .map(({ id: over }): Target => ({ quantity: { type: "speed", row: id, size, over }, plain: 1, rival: true }))
  )
}

export interface Verdict {
  readonly target: Target
  /** For each round. */
  readonly values: ReadonlyArray<number>
  readonly value: number
  readonly holds: boolean
  readonly reachesAim: boolean
}

/** What the rows say about a target; nothing when they were not measured. */
export const judge = (target: Target, rows: ReadonlyArray<Row>): Verdict | undefined => {
  const { bold, plain, quantity } = target
  const values = valuesOf(quantity, rows)
  if (values === undefined) return undefined
  const value = median(values)
  const reaches = (limit: number) => quantity.type === "speed" ? value >= limit : value <= limit
  return { target, values, value, holds: reaches(plain), reachesAim: bold !== undefined && reaches(bold) }
}

const valuesOf = (quantity: Quantity, rows: ReadonlyArray<Row>): ReadonlyArray<number> | undefined => {
  const find = (id: string, size: Size = "full") => rows.find((row) => row.id === id && row.size === size)
  switch (quantity.type) {
    case "speed":
      return speed(find(quantity.row, quantity.size), ours, quantity.over)
    case "share":
      return ratios(find(quantity.row), ours, find(quantity.row), base)
    case "amount": {
      const shown = find(quantity.row)?.contenders[ours]
      return shown === undefined || "cannot" in shown ? undefined : shown.values
    }
    case "growth":
      return ratios(find(quantity.row), ours, find(quantity.from), ours)
  }
}
