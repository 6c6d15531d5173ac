/**
 * One tool call on the screen: what it is about, how long it takes, and the end of what it says.
 */
import { type Component, truncateToWidth, visibleWidth } from "@earendil-works/pi-tui"
import type { JsonObject } from "../../Messages.ts"
import type { ToolResult } from "../../Tools.ts"
import { plural } from "../cap.ts"
import { callLine, changeLines, duration, resultText, summaryOf } from "../describe.ts"
import { wholeLine } from "../plainText.ts"
import { wrapped } from "./statusLines.ts"
import { spinner, type Theme } from "./theme.ts"

const shownLines = 6

/** Less of a title is not worth a line that it shares. */
const minTitle = 40

type State =
  | { readonly _tag: "Waiting" }
  | { readonly _tag: "Running"; readonly since: number; readonly progress: ReadonlyArray<string> }
  | {
    readonly _tag: "Ended"
    readonly millis: number
    readonly failed: boolean
    readonly summary: string | undefined
    readonly lines: ReadonlyArray<string>
  }

const linesOf = (text: string): ReadonlyArray<string> => text === "" ? [] : text.split("\n")

export class ToolBlock implements Component {
  readonly #theme: Theme
  readonly #now: () => number
  readonly #name: string
  readonly #args: JsonObject
  readonly #about: string
  #state: State
  /** What has ended does not change any more. */
  #made: { readonly width: number; readonly lines: ReadonlyArray<string> } | undefined

  constructor(theme: Theme, now: () => number, name: string, args: JsonObject) {
    this.#theme = theme
    this.#now = now
    this.#name = name
    this.#args = args
    this.#about = callLine(name, args)
    this.#state = { _tag: "Running", since: now(), progress: [] }
  }

  /** A person is asked; the time that takes is not the tool's. */
  wait(): void {
    this.#state = { _tag: "Waiting" }
  }

  go(): void {
    this.#state = { _tag: "Running", since: this.#now(), progress: [] }
  }

  progress(result: ToolResult): void {
    if (this.#state._tag === "Running") this.#state = { ...this.#state, progress: linesOf(resultText(result)) }
  }

  end(result: ToolResult, failed: boolean): void {
    const millis = this.#state._tag === "Running" ? this.#now() - this.#state.since : 0
    this.#state = { _tag: "Ended", millis, failed, summary: summaryOf(result), lines: linesOf(resultText(result)) }
  }

  render(width: number): ReadonlyArray<string> {
    if (this.#state._tag !== "Ended") return this.#make(width)
    if (this.#made?.width !== width) this.#made = { width, lines: this.#make(width) }
    return this.#made.lines
  }

  #make(width: number): ReadonlyArray<string> {
    const { bad, bold, dim, good, warn } = this.#theme
    const state = this.#state
    const now = this.#now()
    const mark = state._tag === "Waiting"
      ? warn("?")
      : state._tag === "Running"
      ? warn(spinner(now))
      : state.failed
      ? bad("✗")
      : good("✓")
    const facts = state._tag === "Waiting"
      ? ["waits for you"]
      : state._tag === "Running"
      ? [duration(now - state.since)]
      : [...(state.summary === undefined ? [] : [state.summary]), duration(state.millis)]
    const factLine = facts.join(" · ")
    const head = ` ${mark} ${bold(wholeLine(this.#name))} ${this.#about}`
    const room = width - 1 - factLine.length - 3
    // On a narrow terminal the facts have a line of their own.
    const title = visibleWidth(head) <= room || room >= minTitle
      ? [`${truncateToWidth(head, room, "…")}${dim(` · ${factLine}`)}`]
      : [truncateToWidth(head, width, "…"), truncateToWidth(`   ${dim(factLine)}`, width, "…")]
    return ["", ...title, ...this.#body(width)]
  }

  #body(width: number): ReadonlyArray<string> {
    const { bad, dim, good } = this.#theme
    const state = this.#state
    if (state._tag === "Waiting") return []
    const fit = (line: string) => truncateToWidth(`   ${line}`, width, "…")
    if (state._tag === "Running") return state.progress.slice(-shownLines).map((line) => fit(dim(line)))
    const more = (left: number) => left > 0 ? [fit(dim(`… ${plural(left, "more line")}`))] : []
    // What went wrong with a call stands at the beginning, with a command at the end.
    if (this.#name === "run") {
      return [
        ...more(state.lines.length - shownLines),
        ...state.lines.slice(-shownLines).map((line) => fit(dim(line)))
      ]
    }
    if (state.failed) {
      const lines = state.lines.slice(0, shownLines).flatMap((line) => wrapped(line, width, "   ", dim))
      return [
        ...lines.slice(0, shownLines),
        ...more(Math.max(lines.length, state.lines.length) - shownLines)
      ]
    }
    const changes = changeLines(this.#name, this.#args)
    const left = changes.length - 2 * shownLines
    return [
      ...changes.slice(0, 2 * shownLines).map((line) =>
        fit(line.startsWith("+") ? good(line) : line.startsWith("-") ? bad(line) : line)
      ),
      ...more(left)
    ]
  }

  invalidate(): void {
    this.#made = undefined
  }
}
