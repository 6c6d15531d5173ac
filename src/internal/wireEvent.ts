/**
 * The form of an event on the wire: errors as plain fields, and updates without the snapshot their deltas add up to.
 */
import type { RunOutcome } from "../Errors.ts"
import type { AgentEvent } from "../Events.ts"

export const toWire = (event: AgentEvent): object => {
  switch (event.type) {
    case "message_update": {
      const { assistantMessageEvent, type } = event
      return { type, assistantMessageEvent }
    }
    case "agent_end":
      return { ...event, outcome: wireOutcome(event.outcome) }
    default:
      return event
  }
}

const wireOutcome = (outcome: RunOutcome): object => {
  if (outcome._tag !== "Failed") return outcome
  const { error } = outcome
  const { _tag, message } = error
  const where = _tag === "HookError"
    ? { hook: error.hook }
    : _tag === "ListenerError"
    ? { event: error.event }
    : { reason: error.reason }
  return { _tag: "Failed", error: { _tag, message, ...where } }
}
