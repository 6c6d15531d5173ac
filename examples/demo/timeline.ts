/**
 * When the requests and tools of a run worked, as rows of text.
 */
import type { Events } from "../../src/index.ts"

interface Span {
  readonly turn: number
  readonly id: string
  readonly name: string
  readonly start: number
  end: number | undefined
  failed: boolean
}

const barWidth = 40
const nameWidth = 34

export interface Timeline {
  readonly record: (event: Events.AgentEvent, now: number) => void
  /** One line per request and tool call, with its start, its duration and a bar. */
  readonly lines: (now: number) => ReadonlyArray<string>
}

/** `nameOf` is how a tool call is shown. */
export const makeTimeline = (nameOf: (toolName: string, args: object) => string): Timeline => {
  let spans: Array<Span> = []
  let turn = 0

  const end = (id: string, now: number, failed: boolean): void => {
    const span = spans.findLast((one) => one.id === id && one.end === undefined)
    if (span === undefined) return
    span.end = now
    span.failed = failed
  }

  return {
    record: (event, now) => {
      switch (event.type) {
        case "agent_start":
          spans = []
          turn = 0
          break
        case "turn_start":
          turn++
          spans.push({ turn, id: "request", name: "request", start: now, end: undefined, failed: false })
          break
        case "message_end":
          if (event.message.role === "assistant") {
            end("request", now, event.message.stopReason === "error" || event.message.stopReason === "aborted")
          }
          break
        case "tool_execution_start":
          spans.push({
            turn,
            id: event.toolCallId,
            name: nameOf(event.toolName, event.args),
            start: now,
            end: undefined,
            failed: false
          })
          break
        case "tool_execution_end":
          end(event.toolCallId, now, event.isError)
          break
      }
    },
    lines: (now) => {
      const first = spans[0]
      if (first === undefined) return []
      const last = Math.max(...spans.map((span) => span.end ?? now))
      const scale = barWidth / Math.max(1, last - first.start)
      const row = (span: Span, index: number): string => {
        const from = span.start - first.start
        const took = (span.end ?? now) - span.start
        const left = Math.min(barWidth - 1, Math.floor(from * scale))
        const width = Math.max(1, Math.min(barWidth - left, Math.round(took * scale)))
        const bar = `${" ".repeat(left)}${"#".repeat(width)}`.padEnd(barWidth)
        const head = span.turn === spans[index - 1]?.turn ? "        " : `turn ${span.turn}`.padEnd(8)
        const times = `${String(from).padStart(6)} ms + ${String(took).padStart(5)} ms`
        return `${head}${fit(span.name)} ${times}  |${bar}|${span.failed ? " failed" : ""}`
      }
      return [`Timeline, ${last - first.start} ms:`, ...spans.map(row)]
    }
  }
}

const fit = (name: string): string =>
  name.length > nameWidth ? `${name.slice(0, nameWidth - 1)}…` : name.padEnd(nameWidth)
