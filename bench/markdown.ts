/** Tables in Markdown. */

/** Columns are aligned, so that a table reads well in a terminal too. */
export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = head.map((cell, column) => Math.max(3, cell.length, ...rows.map((row) => row[column]!.length)))
  const line = (cells: ReadonlyArray<string>) =>
    `| ${
      cells.map((cell, column) => column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)).join(" | ")
    } |`
  const rule = `| ${
    widths.map((width, column) => column === 0 ? "-".repeat(width) : "-".repeat(width - 1) + ":").join(" | ")
  } |`
  return [line(head), rule, ...rows.map(line)].join("\n")
}

/** Three digits. */
export const figure = (value: number): string => {
  if (value >= 100) return String(Math.round(value))
  if (value >= 10) return value.toFixed(1)
  return value >= 0.1 ? value.toFixed(2) : value.toPrecision(2)
}

export const times = (value: number): string => `${figure(value)}×`
