/**
 * Shows a run: the text as it comes, tools in flight with their progress, what each took. On a terminal the tools in
 * flight stand in one line that is kept up to date; elsewhere there are plain lines and nothing else.
 */
import { Clock, Effect, Schedule, Stdio, Terminal } from "effect"
import { type Agent, type Events, Messages, type Tools } from "../../src/index.ts"
import { makeTimeline } from "./timeline.ts"

export interface Display {
  /** Give it to `agent.subscribe`. */
  readonly listener: Agent.Listener
  readonly say: (line: string) => Effect.Effect<void>
  /** The timeline of the last run. */
  readonly timeline: Effect.Effect<void>
}

interface InFlight {
  readonly name: string
  readonly start: number
  progress: string
}

/** `search(Layer src)` */
const nameOf = (toolName: string, args: object): string => `${toolName}(${Object.values(args).flat().join(" ")})`

const textOf = (result: Tools.ToolResult): string =>
  (result.content ?? []).map((block) => block.type === "text" ? block.text : `<${block.mimeType}>`).join(" ")

const summaryOf = (result: Tools.ToolResult): string => {
  const { details } = result
  return typeof details === "object" && details !== null && "summary" in details
    ? String(details.summary)
    : textOf(result)
}

export const makeDisplay = Effect.gen(function*() {
  const terminal = yield* Terminal.Terminal
  const isTerminal = yield* Effect.flatMap(Stdio.Stdio, (stdio) => stdio.stdoutIsTerminal)
  const inFlight = new Map<string, InFlight>()
  const timeline = makeTimeline(nameOf)
  let midLine = false
  let statusShown = false

  // When nobody reads any more, the program goes on to its end in silence.
  const write = (text: string): Effect.Effect<void> => Effect.ignore(terminal.display(text))

  const erase = (): string => {
    if (!statusShown) return ""
    statusShown = false
    return "\r\u001B[K"
  }

  const say = (line: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const before = erase() + (midLine ? "\n" : "")
      midLine = false
      return write(`${before}${line}\n`)
    })

  const stream = (delta: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const before = erase()
      midLine = !delta.endsWith("\n")
      return write(before + delta)
    })

  /** The line of the tools in flight. */
  const status = Effect.gen(function*() {
    if (!isTerminal || midLine || inFlight.size === 0) return
    const now = yield* Clock.currentTimeMillis
    const columns = yield* terminal.columns
    const tools = Array.from(
      inFlight.values(),
      ({ name, progress, start }) => `${name} ${progress === "" ? "" : `${progress}, `}${now - start} ms`
    )
    const line = `  … ${tools.join(" | ")}`.slice(0, (columns === 0 ? 80 : columns) - 1)
    const before = erase()
    statusShown = true
    yield* write(before + line)
  })
  if (isTerminal) yield* Effect.forkScoped(Effect.repeat(status, Schedule.spaced("100 millis")))

  const show = Effect.fnUntraced(function*(event: Events.AgentEvent, now: number) {
    switch (event.type) {
      case "message_start":
        if (event.message.role === "user") yield* say(`> ${Messages.text(event.message)}`)
        break
      case "message_update":
        if (event.assistantMessageEvent.type === "text_delta") yield* stream(event.assistantMessageEvent.delta)
        break
      case "message_end":
        if (event.message.role === "assistant") yield* endOfMessage(event.message)
        break
      case "tool_execution_start": {
        const name = nameOf(event.toolName, event.args)
        inFlight.set(event.toolCallId, { name, start: now, progress: "" })
        yield* isTerminal ? status : say(`  started  ${name}`)
        break
      }
      case "tool_execution_update": {
        const tool = inFlight.get(event.toolCallId)
        if (tool === undefined) break
        tool.progress = textOf(event.partialResult)
        yield* isTerminal ? status : say(`  working  ${tool.name}, ${now - tool.start} ms: ${tool.progress}`)
        break
      }
      case "tool_execution_end": {
        const tool = inFlight.get(event.toolCallId)
        inFlight.delete(event.toolCallId)
        const took = tool === undefined ? "" : `, ${now - tool.start} ms`
        const name = tool?.name ?? event.toolName
        yield* say(`  ${event.isError ? "failed " : "done   "}  ${name}${took}: ${summaryOf(event.result)}`)
        yield* status
        break
      }
    }
  })

  const endOfMessage = (message: Messages.AssistantMessage): Effect.Effect<void> => {
    if (message.errorMessage !== undefined) return say(`  ${message.errorMessage}`)
    return midLine ? stream("\n") : Effect.void
  }

  const display: Display = {
    listener: (event) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        timeline.record(event, now)
        return show(event, now)
      }),
    say,
    timeline: Effect.gen(function*() {
      const lines = timeline.lines(yield* Clock.currentTimeMillis)
      yield* say("")
      yield* Effect.forEach(lines, say, { discard: true })
    })
  }
  return display
})
