/**
 * One tool call on the screen: what it is about, how long it takes, and the end of what it says.
 */
import { type Component, truncateToWidth } from "@earendil-works/pi-tui"
import type { JsonObject } from "../../Messages.ts"
import type { ToolResult } from "../../Tools.ts"
import { callLine, changeLines, duration, resultText, summaryOf } from "../describe.ts"
import { oneLine } from "../plainText.ts"
import { spinner, type Theme } from "./theme.ts"

const shownLines = 6

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
  #state: State

  constructor(theme: Theme, now: () => number, name: string, args: JsonObject) {
    this.#theme = theme
    this.#now = now
    this.#name = name
    this.#args = args
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
    const tail = dim(` · ${facts.join(" · ")}`)
    const tailLength = facts.join(" · ").length + 3
    const head = `${mark} ${bold(oneLine(this.#name))} ${callLine(this.#name, this.#args)}`
    const title = truncateToWidth(head, Math.max(12, width - 1 - tailLength), "…")
    return ["", truncateToWidth(` ${title}${tail}`, width, "…"), ...this.#body(width)]
  }

  #body(width: number): ReadonlyArray<string> {
    const { bad, dim, good } = this.#theme
    const state = this.#state
    if (state._tag === "Waiting") return []
    const fit = (line: string) => truncateToWidth(`   ${line}`, width, "…")
    if (state._tag === "Running") return state.progress.slice(-shownLines).map((line) => fit(dim(line)))
    if (state.failed || this.#name === "run") {
      const left = state.lines.length - shownLines
      // What went wrong with a call stands at the beginning, with a command at the end.
      const some = this.#name === "run" ? state.lines.slice(-shownLines) : state.lines.slice(0, shownLines)
      const more = left > 0 ? [fit(dim(`… ${left} more lines`))] : []
      const lines = some.map((line) => fit(dim(line)))
      return this.#name === "run" ? [...more, ...lines] : [...lines, ...more]
    }
    const changes = changeLines(this.#name, this.#args)
    const left = changes.length - 2 * shownLines
    return [
      ...changes.slice(0, 2 * shownLines).map((line) =>
        fit(line.startsWith("+") ? good(line) : line.startsWith("-") ? bad(line) : line)
      ),
      ...(left > 0 ? [fit(dim(`… ${left} more lines`))] : [])
    ]
  }

  invalidate(): void {}
}
