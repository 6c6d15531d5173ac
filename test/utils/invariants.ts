/**
 * The invariants I1 to I4 and I6 of docs/SPEC.md, section 7, as checks of what one agent or loop did: its events, its
 * transcript, its requests and its queues.
 */
import { assert } from "@effect/vitest"
import { Schema } from "effect"
import { isDeepStrictEqual as same } from "node:util"
import type { AgentEvent } from "../../src/Events.ts"
import * as Messages from "../../src/Messages.ts"
import { Transcript } from "../../src/testing/index.ts"
import { show } from "./events.ts"

/** What is checked. Left out are the parts a test does not know. */
export interface World {
  /** Everything a listener was told, of any number of runs. */
  readonly events: ReadonlyArray<AgentEvent>
  /** The transcript before the first event. */
  readonly before?: ReadonlyArray<Messages.AgentMessage>
  /** The transcript after the last event; without it, the messages of the runs. */
  readonly transcript?: ReadonlyArray<Messages.AgentMessage>
  readonly requests?: ReadonlyArray<{ readonly messages: ReadonlyArray<Messages.Message> }>
  /** How many requests had been made when the run was aborted, and how many when it had ended. */
  readonly requestsAtAbort?: number
  readonly requestsAtEnd?: number
  /** The texts of all prompts, steers and follow-ups that were accepted; each must be another text. */
  readonly accepted?: ReadonlyArray<string>
  /** What waits in the queues. */
  readonly queued?: ReadonlyArray<Messages.AgentMessage>
}

const stopped = (message: Messages.AssistantMessage): boolean =>
  message.stopReason === "error" || message.stopReason === "aborted"

const callIds = (message: Messages.AgentMessage): ReadonlyArray<string> =>
  message.role === "assistant" && !stopped(message) ? Messages.toolCalls(message).map(({ id }) => id) : []

/** I1: every call is answered exactly once, right behind its message, in call order. */
export const unanswered = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let open: ReadonlyArray<string> = []
  for (const message of messages) {
    if (message.role === "toolResult") {
      const [next, ...rest] = open
      if (message.toolCallId !== next) {
        problems.push(`I1: the result of ${message.toolCallId} stands where that of ${next} belongs`)
      }
      open = rest
      continue
    }
    for (const id of open) problems.push(`I1: ${id} is not answered before the next message`)
    open = callIds(message)
  }
  for (const id of open) problems.push(`I1: ${id} is not answered`)
  return problems
}

/** M1: what no request may hold. */
const badRequest = (messages: ReadonlyArray<Messages.Message>): ReadonlyArray<string> => [
  ...unanswered(messages),
  ...messages.flatMap((message) => {
    if (message.role !== "assistant") return []
    const says = message.content.some((block) =>
      block.type === "text" ? block.text !== "" : block.type !== "thinking" || block.thinking !== ""
    )
    return [
      ...(says ? [] : ["M1: an assistant message with nothing in it"]),
      ...(stopped(message) && Messages.toolCalls(message).length > 0 ? ["M1: a call of a message that broke off"] : []),
      ...(message.stopReason === "pending" ? ["M3: a message that is still being streamed"] : [])
    ]
  })
]

/** What is open between the events of one run. */
interface Open {
  readonly messages: Array<Messages.AgentMessage>
  turn: Array<Messages.AgentMessage> | undefined
  message: Messages.AgentMessage | undefined
  readonly tools: Set<string>
  ended: Set<string>
}

/** I3: `agent_start` first, `agent_end` once and last, every start with its end. */
const unbalanced = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let run: Open | undefined
  const expect = (holds: boolean, event: AgentEvent, problem: string): void => {
    if (!holds) problems.push(`I3: ${show(event)}: ${problem}`)
  }
  for (const event of events) {
    if (event.type === "agent_start") {
      expect(run === undefined, event, "a run is open")
      run = { messages: [], turn: undefined, message: undefined, tools: new Set(), ended: new Set() }
      continue
    }
    if (run === undefined) {
      problems.push(`I3: ${show(event)}: no run is open`)
      continue
    }
    follow(run, event, expect)
    if (event.type === "agent_end") run = undefined
  }
  if (run !== undefined) problems.push("I3: no agent_end")
  return problems
}

const follow = (
  run: Open,
  event: Exclude<AgentEvent, { readonly type: "agent_start" }>,
  expect: (holds: boolean, event: AgentEvent, problem: string) => void
): void => {
  switch (event.type) {
    case "agent_end":
      expect(run.turn === undefined, event, "a turn is open")
      expect(same(event.messages, run.messages), event, "does not carry the messages of the run")
      return
    case "turn_start":
      expect(run.turn === undefined, event, "a turn is open")
      run.turn = []
      run.ended = new Set()
      return
    case "turn_end": {
      expect(run.turn !== undefined, event, "no turn is open")
      expect(run.message === undefined, event, "a message is open")
      expect(run.tools.size === 0, event, `${[...run.tools].join()} not ended`)
      const turn = run.turn ?? []
      const responses = turn.filter(({ role }) => role === "assistant")
      expect(responses.length === 1, event, `${responses.length} assistant messages in one turn`)
      expect(same(event.message, responses[0]), event, "carries another message")
      const results = turn.filter(({ role }) => role === "toolResult")
      expect(same(event.toolResults, results), event, "does not carry the results of the turn")
      run.turn = undefined
      return
    }
    case "message_start":
      expect(run.turn !== undefined, event, "outside of a turn")
      expect(run.message === undefined, event, "another message is open")
      run.message = event.message
      return
    case "message_update":
      expect(run.message?.role === "assistant", event, "no assistant message is open")
      return
    case "message_end": {
      const { message } = event
      expect(run.message?.role === message.role, event, "was not started")
      if (message.role === "toolResult") expect(run.ended.has(message.toolCallId), event, "the call has not ended")
      if (message.role === "assistant") expect(message.stopReason !== "pending", event, "is pending")
      run.message = undefined
      run.messages.push(message)
      run.turn?.push(message)
      return
    }
    case "tool_execution_start":
      expect(run.turn !== undefined, event, "outside of a turn")
      expect(!run.tools.has(event.toolCallId) && !run.ended.has(event.toolCallId), event, "started twice")
      run.tools.add(event.toolCallId)
      return
    case "tool_execution_update":
      expect(run.tools.has(event.toolCallId), event, "the call is not running")
      return
    case "tool_execution_end":
      expect(run.tools.delete(event.toolCallId), event, "the call is not running")
      run.ended.add(event.toolCallId)
  }
}

const recorded = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<Messages.AgentMessage> =>
  events.flatMap((event) => event.type === "message_end" ? [event.message] : [])

const encode = Schema.encodeSync(Schema.fromJsonString(Messages.Transcript))
const decode = Schema.decodeSync(Schema.fromJsonString(Messages.Transcript))

/** I6: the transcript encodes to well-formed JSON and decodes to an equal value. */
const lossy = (transcript: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> => {
  const text = encode(transcript)
  return [
    ...(text.isWellFormed() ? [] : ["I6: the transcript is not well-formed Unicode"]),
    ...(/\\ud[89a-f][0-9a-f]{2}/i.test(text) ? ["I6: the transcript holds a lone surrogate"] : []),
    ...(same(decode(text), transcript) ? [] : ["I6: the transcript does not come back as it was"])
  ]
}

const times = (messages: ReadonlyArray<Messages.AgentMessage>, text: string): number =>
  messages.filter((message) => message.role !== "assistant" && Messages.text(message) === text).length

/** Everything that is wrong, as texts that begin with the number of the rule. */
export const violations = (world: World): ReadonlyArray<string> => {
  const { accepted = [], before = [], events, queued = [], requests = [], requestsAtAbort, requestsAtEnd } = world
  const told = [...before, ...recorded(events)]
  const transcript = world.transcript ?? told
  const lost = accepted.flatMap((text) => {
    const places = times(transcript, text) + times(queued, text)
    return places === 1 ? [] : [`I4: "${text}" is in ${places} places`]
  })
  const afterAbort = requestsAtAbort === requestsAtEnd ? [] : [
    `I2: ${requestsAtAbort} requests at the abort, ${requestsAtEnd} at the end`
  ]
  return [
    ...unanswered(transcript),
    ...requests.flatMap(({ messages }, index) => badRequest(messages).map((problem) => `request ${index}: ${problem}`)),
    ...afterAbort,
    ...unbalanced(events),
    ...(same(told, transcript) ? [] : [
      `H3: the transcript is "${Transcript.print(transcript)}", the events told "${Transcript.print(told)}"`
    ]),
    ...lost,
    ...lossy(transcript)
  ]
}

/** Fails with everything that is wrong. */
export const assertInvariants = (world: World): void => assert.deepStrictEqual(violations(world), [])
