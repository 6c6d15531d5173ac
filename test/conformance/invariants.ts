/** The invariants I1 to I4 of docs/SPEC.md, section 7, as checks of a trace of this library. */
import { findAnomalies } from "./anomalies.mjs"
import type { ActionEntry, Trace } from "./player-pi.mjs"
import type { InnerAction, Message, Scenario } from "./types.ts"
import { contentIn } from "./values.mjs"

/** A message of a trace. */
export interface TraceMessage {
  readonly role: string
  readonly content?: string | ReadonlyArray<{ readonly call?: string; readonly text?: string; readonly thinking?: string }>
  readonly stopReason?: string
  readonly errorMessage?: string
  readonly thinkingLevel?: string
  readonly call?: string
}

export interface TraceEvent {
  readonly t: number
  readonly type: string
  readonly message: TraceMessage
  readonly messages: ReadonlyArray<TraceMessage>
  readonly call?: string
}

export const eventsOf = (trace: Trace) => trace.events as unknown as ReadonlyArray<TraceEvent>

/** Ids of the calls of a message; none when it ended in `error` or `aborted`. */
export const callIds = (message: TraceMessage): Array<string> =>
  message.role === "assistant" && message.stopReason !== "error" && message.stopReason !== "aborted" &&
    Array.isArray(message.content)
    ? message.content.flatMap((block) => (block.call === undefined ? [] : [block.call]))
    : []

/** A run of a trace; `end` is infinite when it did not end. */
export interface Run {
  readonly start: number
  readonly end: number
  readonly events: ReadonlyArray<TraceEvent>
}

export const runsOf = (trace: Trace): ReadonlyArray<Run> => {
  const runs: Array<Array<TraceEvent>> = []
  for (const event of eventsOf(trace)) {
    if (event.type === "agent_start" || runs.length === 0) runs.push([])
    runs.at(-1)!.push(event)
  }
  return runs.map((events) => ({
    start: events[0]!.t,
    end: events.find((event) => event.type === "agent_end")?.t ?? Infinity,
    events
  }))
}

export const allActions = (trace: Trace): ReadonlyArray<ActionEntry> => [...trace.actions, ...(trace.inner ?? [])]

/** How calls and results of a list do not pair up as in I1. `open` calls may be left at the end. */
const pairing = (messages: ReadonlyArray<TraceMessage>, mayEndOpen: boolean): Array<string> => {
  const problems: Array<string> = []
  let open: Array<string> = []
  for (const message of messages) {
    if (message.role === "toolResult" && open.length > 0) {
      if (message.call !== open[0]) problems.push(`a result of ${message.call} where that of ${open[0]} comes next`)
      open = open.filter((id) => id !== message.call)
      continue
    }
    if (message.role === "toolResult") problems.push(`a result of ${message.call}, which was not called or is answered`)
    for (const id of open) problems.push(`no result of ${id} before the next message`)
    open = callIds(message)
  }
  if (!mayEndOpen) { for (const id of open) problems.push(`no result of ${id}`) }
  return problems
}

const isLowLevel = (scenario: Scenario): boolean => scenario.timeline.some((action) => action.do.startsWith("loop"))

/** I1: every call is answered once, in order, before anything else; requests hold whole pairs only. */
const everyCallAnswered = (trace: Trace): Array<string> => [
  ...runsOf(trace).flatMap((run) =>
    pairing(run.events.filter((e) => e.type === "message_end").map((e) => e.message), run.end === Infinity)
      .map((problem) => `run at ${run.start}: ${problem}`)
  ),
  ...trace.requests.flatMap((request) =>
    pairing(request["messages"] as ReadonlyArray<TraceMessage>, false).map((p) => `request ${request.n}: ${p}`)
  )
]

/** I2: no request after the abort. */
const noRequestAfterAbort = (trace: Trace): Array<string> =>
  runsOf(trace).flatMap((run) => {
    const aborts = allActions(trace).filter((a) => a.do === "abort" && a.at >= run.start && a.at < run.end)
    const late = trace.requests.filter((r) => aborts.some((a) => r.t > a.at) && r.t <= run.end)
    return late.map((request) => `request ${request.n} at ${request.t} comes after the abort of its run`)
  })

const balanceKinds = new Set([
  "run-without-end",
  "event-outside-run",
  "event-after-agent-end",
  "turn-unbalanced",
  "message-unbalanced",
  "tool-unbalanced",
  "second-agent-end",
  "agent-end-incomplete",
  "request-with-partial-message"
])

/** I3: every run begins with `agent_start` and ends with `agent_end`, every start has its end. */
const balanced = (trace: Trace): Array<string> => {
  const goesOn = allActions(trace).some((action) => action.outcome === "pending")
  return findAnomalies(trace, { ties: [], lost: [], mutated: [], runs: [] })
    .filter(({ kind }) => balanceKinds.has(kind) && !(kind === "run-without-end" && goesOn))
    .map((anomaly) => JSON.stringify(anomaly))
}

const signature = (message: unknown): string => {
  const { call, content, role } = message as TraceMessage
  return JSON.stringify([role, content ?? "", call ?? null])
}

/** A message of a scenario as traces show it, as far as inputs are told apart. */
const shown = (message: Message): string => {
  const { call, content, role } = typeof message === "string" ? { role: "user", content: message, call: null } : message
  if (role !== "user" && role !== "assistant" && role !== "toolResult") return signature({ role, content, call })
  const blocks = contentIn(content) as ReadonlyArray<{ readonly text?: string }>
  const text = blocks.length === 1 ? blocks[0]!.text : undefined
  return signature({ role, content: text ?? content, call })
}

interface Input {
  readonly at: number
  readonly queue: "steering" | "followUp" | undefined
}

const innerActions = (scenario: Scenario): ReadonlyMap<string, ReadonlyArray<InnerAction>> => {
  const lists = new Map<string, Array<InnerAction>>()
  const add = (source: string, actions: ReadonlyArray<InnerAction> | undefined) => {
    if (actions) lists.set(source, [...(lists.get(source) ?? []), ...actions])
  }
  for (const [hook, rules] of Object.entries(scenario.hooks ?? {})) for (const rule of rules) add(hook, rule.do)
  for (const { name, rules } of scenario.listeners ?? []) for (const rule of rules) add(`listener:${name}`, rule.do)
  for (const tool of scenario.tools ?? []) {
    for (const behaviour of [tool, ...(tool.cases ?? [])]) add("tool", behaviour.do)
  }
  return lists
}

/** The inputs a scenario gave and the agent accepted, by what they look like; `undefined` when that cannot be told. */
const acceptedInputs = (scenario: Scenario, trace: Trace): Map<string, Array<Input>> | undefined => {
  const inputs = new Map<string, Array<Input>>()
  const add = (message: Message, at: number, queue: Input["queue"]) => {
    const key = shown(message)
    inputs.set(key, [...(inputs.get(key) ?? []), { at, queue }])
  }
  const accept = (action: InnerAction, entry: ActionEntry) => {
    if (entry.outcome === "rejected") return
    if (action.do === "steer" || action.do === "followUp") {
      add(action.message, entry.at, action.do === "steer" ? "steering" : "followUp")
    } else if (action.do === "prompt" && action.images === undefined) {
      for (const message of Array.isArray(action.input) ? action.input : [action.input]) add(message, entry.at, undefined)
    }
  }
  scenario.timeline.forEach((action, index) => accept(action, trace.actions[index]!))
  const lists = innerActions(scenario)
  for (const entry of trace.inner ?? []) {
    if (!/^(steer|followUp|prompt)$/.test(entry.do)) continue
    const source = entry.from.startsWith("tool:") ? "tool" : entry.from
    const candidates = (lists.get(source) ?? []).filter((action) => action.do === entry.do)
    // The trace does not say which of several rules it was.
    if (new Set(candidates.map((action) => JSON.stringify(action))).size !== 1) return undefined
    accept(candidates[0]!, entry)
  }
  return inputs
}

const clears: { readonly [action: string]: ReadonlyArray<Input["queue"]> } = {
  clearSteering: ["steering"],
  clearFollowUp: ["followUp"],
  clearAll: ["steering", "followUp"],
  reset: ["steering", "followUp"]
}

/** I4: every accepted input is in the transcript or still queued, never both, never neither. */
const nothingLost = (scenario: Scenario, trace: Trace): Array<string> => {
  if (isLowLevel(scenario)) return []
  const inputs = acceptedInputs(scenario, trace)
  if (inputs === undefined) return []
  const problems: Array<string> = []
  const delivered = eventsOf(trace).filter((event) => event.type === "message_end").map((event) => event.message)
  const { followUp, steering } = trace.final as { readonly [queue: string]: ReadonlyArray<TraceMessage> }
  const seen = [...delivered, ...(steering ?? []), ...(followUp ?? [])].map(signature)
  // What hooks append and continued transcripts answer is no input.
  const prepared = new Set((scenario.hooks?.prepareNextTurn ?? []).flatMap((rule) => rule.messages ?? []).map(shown))
  for (const [key, given] of inputs) {
    if (prepared.has(key)) continue
    const count = seen.filter((other) => other === key).length
    const mayBeCleared = given.filter((input) =>
      allActions(trace).some((a) => a.outcome === "ok" && a.at >= input.at && clears[a.do]?.includes(input.queue))
    ).length
    if (count > given.length) problems.push(`${key} was given ${given.length} times and is there ${count} times`)
    else if (count < given.length - mayBeCleared) {
      problems.push(`${key} was given ${given.length} times and is there ${count} times (${mayBeCleared} may be cleared)`)
    }
  }
  return problems
}

/** Violations of I1 to I4, as text that begins with the invariant's name. */
export const violations = (scenario: Scenario, trace: Trace): ReadonlyArray<string> => {
  const named = (name: string, problems: ReadonlyArray<string>) => problems.map((problem) => `${name}: ${problem}`)
  return [
    ...named("I1", everyCallAnswered(trace)),
    ...named("I2", noRequestAfterAbort(trace)),
    ...named("I3", balanced(trace)),
    ...named("I4", nothingLost(scenario, trace))
  ]
}
