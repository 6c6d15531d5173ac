/** The chart of a run: how many times as fast as pi, on a logarithmic scale, as an SVG that reads well on light and dark pages. */
import { figure } from "./markdown.ts"
import { speed } from "./ratios.ts"
import { base, type Entry, ours } from "./roster.ts"
import type { Row } from "./rounds.ts"
import { median } from "./statistics.ts"

/** The rows that are shown, in this order. */
const shown: ReadonlyArray<string> = [
  "W1",
  "W1c+import",
  "W2",
  "W2-by-1",
  "W2-async",
  "W2a",
  "W3",
  "W4@100",
  "W4@10000",
  "W4@50000",
  "W5",
  "W6",
  "W7@10000",
  "memory-idle",
  "memory-tool"
]

const left = 330
const right = 90
const width = 960
const rowHeight = 30
const top = 96
const plot = width - left - right

const style = `
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .small { font-size: 11px; fill: #57606a }
  .bar { fill: #0969da }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  .one { stroke: #57606a; stroke-width: 1.5 }
  .dot { stroke: #ffffff; stroke-width: 1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .small { fill: #9198a1 }
    .bar { fill: #4493f8 }
    .grid { stroke: #30363d }
    .one { stroke: #9198a1 }
    .dot { stroke: #0d1117 }
  }`

const colours = ["#bf8700", "#8250df", "#cf222e", "#1a7f37", "#bc4c00", "#1b9aa1", "#6e7781"]

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("`", "")

interface Mark {
  readonly contender: string
  readonly value: number
}

/** pi's figure over that of each contender; of other libraries, from the row with less work. */
const marksOf = (id: string, rows: ReadonlyArray<Row>): ReadonlyArray<Mark> => {
  const marks = new Map<string, number>()
  for (const row of rows.filter((candidate) => candidate.id === id)) {
    for (const contender of Object.keys(row.contenders)) {
      const values = speed(row, contender, base)
      if (values !== undefined && !marks.has(contender)) marks.set(contender, median(values))
    }
  }
  return [...marks].map(([contender, value]) => ({ contender, value }))
}

/** Where a ratio stands between the powers of ten that frame all of them. */
const scale = (marks: ReadonlyArray<Mark>) => {
  const logs = marks.map(({ value }) => Math.log10(value))
  const low = Math.min(-1, Math.floor(Math.min(...logs)))
  const high = Math.max(1, Math.ceil(Math.max(...logs)))
  const x = (value: number): number => Math.round(left + plot * (Math.log10(value) - low) / (high - low))
  return { x, powers: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)) }
}

const line = (x: number, bottom: number, kind: string): string =>
  `<line class="${kind}" x1="${x}" y1="${top - 8}" x2="${x}" y2="${bottom}"/>`

const bar = (y: number, from: number, to: number): string =>
  `<rect class="bar" x="${Math.min(from, to)}" y="${y + 6}" width="${
    Math.max(1, Math.abs(to - from))
  }" height="16" rx="2"/>`

/** Four names a line. */
const legend = (others: ReadonlyArray<Entry>): string =>
  [{ id: ours, title: ours }, ...others].map(({ title }, index) => {
    const x = 16 + index % 4 * 236
    const y = 44 + Math.floor(index / 4) * 20
    const mark = index === 0
      ? `<rect class="bar" x="${x}" y="${y - 10}" width="12" height="12" rx="2"/>`
      : `<circle class="dot" cx="${x + 6}" cy="${y - 4}" r="5" fill="${colours[index - 1]}"/>`
    return `${mark}<text class="small" x="${x + 17}" y="${y}">${escape(title)}</text>`
  }).join("\n")

export const chart = (rows: ReadonlyArray<Row>, entries: ReadonlyArray<Entry>): string => {
  const lines = shown.flatMap((id) => {
    const row = rows.find((candidate) => candidate.id === id && candidate.size === "full")
    return row === undefined ? [] : [{ row, marks: marksOf(id, rows) }]
  })
  const others = entries.filter(({ id }) =>
    id !== ours && id !== base && lines.some(({ marks }) => marks.some(({ contender }) => contender === id))
  )
  const { powers, x } = scale(lines.flatMap(({ marks }) => marks))
  const bottom = top + lines.length * rowHeight
  const body = lines.map(({ marks, row }, index) => {
    const y = top + index * rowHeight
    const own = marks.find(({ contender }) => contender === ours)
    const dots = others.flatMap(({ id }, colour) =>
      marks.filter(({ contender }) => contender === id).map(({ value }) =>
        `<circle class="dot" cx="${x(value)}" cy="${y + 14}" r="5" fill="${colours[colour]}"/>`
      )
    )
    const name = `<text x="16" y="${y + 19}">${escape(row.title)}</text>`
    if (own === undefined) return name + dots.join("")
    const value = `<text x="${width - 16}" y="${y + 19}" text-anchor="end">${figure(own.value)}×</text>`
    return name + bar(y, x(1), x(own.value)) + dots.join("") + value
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${bottom + 30}" role="img">
<title>Speed and memory compared with pi-agent-core 1.0.3</title>
<style>${style}
</style>
<text x="16" y="22">How many times as fast, or as small, as pi-agent-core 1.0.3 Agent (right is better; other libraries did less of the same work)</text>
${legend(others)}
${powers.map((power) => line(x(power), bottom, power === 1 ? "one" : "grid")).join("\n")}
${
    powers.map((power) =>
      `<text class="small" x="${x(power)}" y="${bottom + 16}" text-anchor="middle">${power}×</text>`
    ).join("\n")
  }
${body.join("\n")}
</svg>
`
}
