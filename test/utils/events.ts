/** Events as short texts, and a recorder that notes when they came and whether they change afterwards. */
import { Clock, Effect } from "effect"
import type { AgentEvent } from "../../src/Events.ts"
import type { AgentMessage } from "../../src/Messages.ts"
import { Transcript } from "../../src/testing/index.ts"

const mark = (isError: boolean): string => isError ? "!" : ""

/**
 * One event as a text: `message_end A[a]`, `tool_execution_end a!`, `turn_end A[a] R(a)`, `agent_end Aborted`. Messages
 * look as in `Transcript.print`, system messages included.
 */
export const show = (event: AgentEvent): string => {
  switch (event.type) {
    case "agent_start":
    case "turn_start":
      return event.type
    case "agent_end":
      return `agent_end ${event.outcome._tag}`
    case "turn_end":
      return `turn_end ${Transcript.print([event.message, ...event.toolResults])}`
    case "message_start":
    case "message_end":
      return `${event.type} ${Transcript.print([event.message], { system: true })}`
    case "message_update":
      return `message_update ${event.assistantMessageEvent.type} ${
        event.assistantMessageEvent.type === "retract"
          ? event.assistantMessageEvent.attempt
          : event.assistantMessageEvent.contentIndex
      }`
    case "tool_execution_start":
    case "tool_execution_update":
      return `${event.type} ${event.toolCallId}`
    case "tool_execution_end":
      return `tool_execution_end ${event.toolCallId}${mark(event.isError)}`
  }
}

export const showAll = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> => events.map(show)

/** Without the events inside messages: what a turn looks like. */
export const outline = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> =>
  events.filter(({ type }) => type !== "message_update" && type !== "message_start").map((event) =>
    show(event).replace(/^message_end /, "")
  )

export type EventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: Type }>

export const ofType = <Type extends AgentEvent["type"]>(
  events: ReadonlyArray<AgentEvent>,
  type: Type
): ReadonlyArray<EventOf<Type>> => events.filter((event): event is EventOf<Type> => event.type === type)

/** The messages an event hands out. */
export const messagesIn = (event: AgentEvent): ReadonlyArray<AgentMessage> => {
  switch (event.type) {
    case "agent_end":
      return event.messages
    case "turn_end":
      return [event.message, ...event.toolResults]
    case "message_start":
    case "message_end":
    case "message_update":
      return [event.message]
    default:
      return []
  }
}

const handedOut = (event: AgentEvent): string =>
  event.type === "agent_end" ? JSON.stringify({ ...event, outcome: event.outcome._tag }) : JSON.stringify(event)

/** Keeps every event, the time it came at and what it looked like then. */
export class Recorder {
  readonly events: Array<AgentEvent> = []
  readonly times: Array<number> = []
  readonly #copies: Array<string> = []

  readonly record = (event: AgentEvent): Effect.Effect<void> =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      this.events.push(event)
      this.times.push(now)
      this.#copies.push(handedOut(event))
    })

  /** Everything that was handed out, as it was then. Two runs of one scenario give the same text (I7). */
  get bytes(): string {
    return this.#copies.map((copy, index) => `${this.times[index]} ${copy}`).join("\n")
  }

  /** The events that do not look any more as they did when they were handed out (M3). */
  get changed(): ReadonlyArray<string> {
    return this.events.flatMap((event, index) =>
      handedOut(event) === this.#copies[index]
        ? []
        : [`event ${index}: ${this.#copies[index]} became ${handedOut(event)}`]
    )
  }

  /** The events as texts. */
  get shown(): ReadonlyArray<string> {
    return showAll(this.events)
  }

  get outline(): ReadonlyArray<string> {
    return outline(this.events)
  }

  /** When the first event that `show`s as this text came, or `undefined`. */
  timeOf(text: string): number | undefined {
    const index = this.shown.indexOf(text)
    return index < 0 ? undefined : this.times[index]
  }
}
