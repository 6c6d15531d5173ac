/**
 * The lines around the editor: what waits to be sent, the question whether a tool may run, and what the agent is doing.
 */
import { type Component, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui"
import type { ToolCall } from "../../Messages.ts"
import { plural } from "../cap.ts"
import { callLine, changeLines } from "../describe.ts"
import { oneLine, wholeLine } from "../plainText.ts"
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

/** All of the parts, on as many lines as they need; each is shortened to one line. */
export const filling = (parts: ReadonlyArray<string>, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let some: Array<string> = []
  for (const part of parts.filter((each) => each !== "")) {
    if (some.length > 0 && visibleWidth([...some, part].join(" · ")) > width - 2) {
      lines.push(fitting(some, width))
      some = []
    }
    some.push(part)
  }
  return [...lines, fitting(some, width)]
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
    fitting([theme.dim("Alt+Up takes one back")], width)
  ]

/** A text on as many lines as it needs. */
export const wrapped = (
  text: string,
  width: number,
  indent: string,
  style: (line: string) => string
): ReadonlyArray<string> =>
  wrapTextWithAnsi(text, Math.max(1, width - indent.length - 1)).map((line) => `${indent}${style(line)}`)

/** Rows of the screen that are not for what a call would change: the question, the editor, the state. */
const otherRows = 13

/**
 * The question whether a call may be made. It comes after what the call would change, next to the editor, where it is seen
 * however small the terminal is. The whole of a command is shown, however long it is: it is what is allowed.
 */
export class Question implements Component {
  readonly call: ToolCall
  readonly #theme: Theme
  #made: { readonly width: number; readonly rows: number; readonly lines: ReadonlyArray<string> } | undefined

  constructor(theme: Theme, call: ToolCall) {
    this.#theme = theme
    this.call = call
  }

  render(width: number, rows = 24): ReadonlyArray<string> {
    if (this.#made?.width !== width || this.#made.rows !== rows) {
      this.#made = { width, rows, lines: this.#make(width, rows) }
    }
    return this.#made.lines
  }

  #make(width: number, rows: number): ReadonlyArray<string> {
    const { bad, bold, dim, good, warn } = this.#theme
    const { arguments: args, name } = this.call
    const changes = changeLines(name, args)
    const room = name === "run" ? Infinity : Math.max(4, rows - otherRows)
    const shown: Array<string> = []
    // Lines that are not shown to their end.
    let left = changes.length
    for (const line of changes) {
      const style = line.startsWith("+") ? good : line.startsWith("-") ? bad : (text: string) => text
      const pieces = wrapped(line, width, "   ", style)
      const free = room - shown.length
      shown.push(...pieces.slice(0, free))
      if (pieces.length > free) break
      left--
    }
    const question = name === "run" && changes.length > 0
      ? `Allow ${name}?`
      : `Allow ${wholeLine(name)} ${callLine(name, args)} ?`
    return [
      "",
      ...shown,
      ...(left > 0 ? [dim(`   … ${plural(left, "more line")}`)] : []),
      ...wrapped(question, width, " ", (line) => bold(warn(line)))
    ]
  }

  invalidate(): void {
    this.#made = undefined
  }
}

/** How a question is answered. */
export const answerLines = (theme: Theme, call: ToolCall, typing: boolean, width: number): ReadonlyArray<string> =>
  wrapped(
    typing
      ? "send or clear what you are typing, then answer y, a or n"
      : `y yes, once · a always allow ${wholeLine(call.name)} · n no · Esc stop`,
    width,
    " ",
    theme.dim
  )
