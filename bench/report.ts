/** The tables of a run. */
import { figure, table, times } from "./markdown.ts"
import { speed } from "./ratios.ts"
import { base, type Entry, ours } from "./roster.ts"
import type { Row } from "./rounds.ts"
import { median, spread } from "./statistics.ts"
import type { Quantity, Verdict } from "./targets.ts"

const span = (values: ReadonlyArray<number>): string => {
  const { max, min } = spread(values)
  return `${figure(min)}–${figure(max)}`
}

const amount = (row: Row, contender: string): string => {
  const shown = row.contenders[contender]
  if (shown === undefined || "cannot" in shown) return ""
  return `${figure(median(shown.values))} ${row.unit === "ms" ? "ms" : "B"}`
}

/** pi's time over a contender's, or why there is none. */
const cell = (row: Row, contender: string): string => {
  const values = speed(row, contender, base)
  if (values !== undefined) return times(median(values))
  const shown = row.contenders[contender]
  return shown !== undefined && "cannot" in shown ? "cannot" : ""
}

/** Rows that have a table of their own. */
const sizeRows = new Set(["bundle", "bundle-without-effect", "import"])

/** Bytes of a program with one agent, and the time an import takes. */
export const sizeTable = (rows: ReadonlyArray<Row>, entries: ReadonlyArray<Entry>): string | undefined => {
  const found = rows.filter(({ id }) => sizeRows.has(id))
  if (found.length === 0) return undefined
  const ids = [...new Set(found.flatMap(({ contenders }) => Object.keys(contenders)))]
  return table(
    ["", ...found.map(({ title }) => title), `${base} / …`],
    ids.map((id) => {
      const title = entries.find((entry) => entry.id === id)?.title ?? id
      return [[title], found.map((row) => amount(row, id)), [cell(found.at(-1)!, id)]].flat()
    })
  )
}

/** effect-pi and the core contenders, at full size. */
export const coreTable = (rows: ReadonlyArray<Row>, entries: ReadonlyArray<Entry>): string => {
  const full = rows.filter(({ id, size }) => size === "full" && !sizeRows.has(id))
  const others = entries.filter(({ id, kind }) =>
    kind === "core" && id !== ours && id !== base && full.some((row) => id in row.contenders)
  )
  const head = [
    "pi-agent-core 1.0.3 `Agent` / …",
    "effect-pi",
    "spread",
    ...others.map(({ title }) => title),
    "effect-pi"
  ]
  return table(
    head,
    full.map((row) => {
      const own = speed(row, ours, base)
      return [
        [`${row.id}: ${row.title}`, cell(row, ours), own === undefined ? "" : span(own)],
        others.map(({ id }) => cell(row, id)),
        [amount(row, ours)]
      ].flat()
    })
  )
}

/** How many times as fast as each of the other libraries effect-pi is, with less work. */
export const peerTable = (rows: ReadonlyArray<Row>, entries: ReadonlyArray<Entry>): string | undefined => {
  const small = rows.filter(({ size }) => size === "peers")
  if (small.length === 0) return undefined
  const peers = entries.filter(({ kind }) => kind === "peer")
  const others = [...peers.map(({ id }) => id), base]
  return table(
    ["… / effect-pi", ...peers.map(({ title }) => title), "pi 1.0.3", "effect-pi"],
    small.map((row) => {
      const faster = others.map((other) => {
        const values = speed(row, ours, other)
        return values === undefined ? "cannot" : times(median(values))
      })
      return [[`${row.id}: ${row.title}`], faster, [amount(row, ours)]].flat()
    })
  )
}

/** Why contenders cannot do what they cannot do. */
export const reasons = (rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const found = new Map<string, Array<string>>()
  for (const { contenders, id } of rows) {
    for (const [contender, shown] of Object.entries(contenders)) {
      if (!("cannot" in shown)) continue
      const reason = `${contender} ${shown.cannot}`
      found.set(reason, [...(found.get(reason) ?? []), id])
    }
  }
  return [...found].map(([reason, ids]) => `- ${reason} (${[...new Set(ids)].join(", ")})`)
}

const named = (quantity: Quantity): string => {
  switch (quantity.type) {
    case "speed":
      return `${quantity.row}, faster than ${quantity.over}${quantity.size === "full" ? "" : ", less work"}`
    case "share":
      return `${quantity.row}, share of pi's bytes`
    case "growth":
      return `${quantity.row} / ${quantity.from}`
    case "amount":
      return `${quantity.row}, bytes`
  }
}

/** Targets, and whether they are held. Of those against other libraries the missed ones suffice. */
export const targetTable = (verdicts: ReadonlyArray<Verdict>): string =>
  table(
    ["target", "measured", "spread", "must", "aim", "held"],
    verdicts.filter(({ holds, target }) => !holds || target.rival !== true).map((
      { holds, reachesAim, target: { bold, plain, quantity }, value, values }
    ) => {
      const sign = quantity.type === "speed" ? "≥" : "≤"
      const unit = quantity.type === "amount" ? "" : "×"
      return [
        named(quantity),
        `${figure(value)}${unit}`,
        span(values),
        `${sign} ${figure(plain)}${unit}`,
        bold === undefined ? "" : `${sign} ${figure(bold)}${unit}`,
        holds ? (reachesAim ? "yes, and the aim" : "yes") : "NO"
      ]
    })
  )
