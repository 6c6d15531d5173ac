/**
 * The lines around the editor: what waits to be sent, the question whether a tool may run, and what the agent is doing.
 */
import { type Component, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui"
import type { ToolCall } from "../../Messages.ts"
import { callLine, changeLines } from "../describe.ts"
import { oneLine } from "../plainText.ts"
import type { Theme } from "./theme.ts"

/** Lines that are made anew for every frame. */
export class Lines implements Component {
  readonly #make: (width: number) => ReadonlyArray<string>

  constructor(make: (width: number) => ReadonlyArray<string>) {
    this.#make = make
  }

  render(width: number): ReadonlyArray<string> {
    return this.#make(width)
  }

  invalidate(): void {}
}

/** As many of the parts, from the first, as fit on one line. */
export const fitting = (parts: ReadonlyArray<string>, width: number): string => {
  let line = ""
  for (const part of parts.filter((each) => each !== "")) {
    const next = line === "" ? part : `${line} · ${part}`
    if (visibleWidth(next) > width - 2) {
      if (line === "") line = truncateToWidth(part, width - 2, "…")
      break
    }
    line = next
  }
  return ` ${line}`
}

/** A message that waits for the agent. */
export interface Waiting {
  readonly id: string
  readonly text: string
  readonly kind: "steer" | "followUp"
}

export const waitingLines = (theme: Theme, waiting: ReadonlyArray<Waiting>, width: number): ReadonlyArray<string> =>
  waiting.length === 0 ? [] : [
    "",
    ...waiting.map(({ kind, text }) =>
      truncateToWidth(
        ` ${theme.accent(kind === "steer" ? "↳ next:" : "↳ afterwards:")} ${oneLine(text)}`,
        width,
        "…"
      )
    ),
    fitting([theme.dim("Alt+Up takes the last one back")], width)
  ]

const maxChangeLines = 16

/** The whole of a command is shown, however narrow the terminal is: it is what is allowed. */
export const approvalLines = (
  theme: Theme,
  call: ToolCall,
  typing: boolean,
  width: number
): ReadonlyArray<string> => {
  const { bad, bold, dim, good, warn } = theme
  const changes = changeLines(call.name, call.arguments)
  const shown = call.name === "run" ? changes : changes.slice(0, maxChangeLines)
  const left = changes.length - shown.length
  const title = call.name === "run" && changes.length > 0
    ? `Allow ${call.name}?`
    : `Allow ${call.name} ${callLine(call.name, call.arguments)} ?`
  const wrapped = (text: string, style: (text: string) => string, indent: string) =>
    wrapTextWithAnsi(text, Math.max(1, width - indent.length - 1)).map((line) => `${indent}${style(line)}`)
  return [
    "",
    ...wrapped(oneLine(title), (line) => bold(warn(line)), " "),
    ...shown.flatMap((line) =>
      wrapped(line, (text) => line.startsWith("+") ? good(text) : line.startsWith("-") ? bad(text) : text, "   ")
    ),
    ...(left > 0 ? [dim(`   … ${left} more lines`)] : []),
    ...(typing
      ? wrapped("send or clear what you are typing, then answer y, a or n", dim, " ")
      : wrapped(`y yes, once · a always allow ${oneLine(call.name)} · n no · Esc stop`, dim, " "))
  ]
}
