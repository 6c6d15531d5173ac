/**
 * The thread in which a pattern is held against lines. An expression can take longer than anybody waits, and nothing can
 * interrupt it but the end of its thread; in a thread of its own it keeps no key press waiting.
 */
import { parentPort, workerData } from "node:worker_threads"

/** What the thread is started with. */
export interface Setup {
  readonly pattern: RegExp
  /** Of a longer line, the piece around the match is given. */
  readonly maxLineLength: number
}

export interface Question {
  readonly text: string
  /** How many lines are wanted at most. */
  readonly most: number
}

export interface Hit {
  /** From 1. */
  readonly line: number
  readonly text: string
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- matcher.ts starts this thread with it
const { maxLineLength, pattern } = workerData as Setup

const pieceAround = (line: string, index: number): string => {
  if (line.length <= maxLineLength) return line
  const start = Math.max(0, Math.min(index - Math.floor(maxLineLength / 4), line.length - maxLineLength))
  const end = start + maxLineLength
  // A cut may go through a character of two units.
  const piece = line.slice(start, end).toWellFormed()
  return `${start > 0 ? "…" : ""}${piece}${end < line.length ? "…" : ""}`
}

parentPort?.on("message", ({ most, text }: Question) => {
  const hits: Array<Hit> = []
  for (const [index, line] of text.split("\n").entries()) {
    if (hits.length >= most) break
    const match = pattern.exec(line)
    if (match !== null) hits.push({ line: index + 1, text: pieceAround(line.trimEnd(), match.index) })
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node has no origin
  parentPort?.postMessage(hits)
})
