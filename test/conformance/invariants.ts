/** The invariants I1 to I4 of docs/SPEC.md, section 7, as checks of a trace of this library. */
import { findAnomalies } from "./anomalies.mjs"
import { allActions, messageEvents, openCallIds, runsOf } from "./runs.ts"
import type { Trace, TraceAction, TraceMessage } from "./trace.ts"
import type { Content, InnerAction, Message, Rule, Scenario } from "./types.ts"
import { contentIn } from "./values.mjs"

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
    open = openCallIds(message)
  }
  if (!mayEndOpen) { for (const id of open) problems.push(`no result of ${id}`) }
  return problems
}

const isLoop = ({ do: action }: { readonly do: string }): boolean => action.startsWith("loop")

/** Whether a loop of its own and another run went on at the same time: the trace mixes their events. */
const isMixed = (trace: Trace): boolean => {
  const runs = allActions(trace).filter((action) =>
    isLoop(action) || action.do === "prompt" || action.do === "continue"
  )
  return runs.some((loop, index) =>
    isLoop(loop) &&
    runs.some((other, place) => place !== index && other.at <= (loop.t ?? Infinity) && (other.t ?? Infinity) >= loop.at)
  )
}

/** I1: every call is answered once, in order, before anything else; requests hold whole pairs only. */
const everyCallAnswered = (trace: Trace): Array<string> => [
  ...runsOf(trace).flatMap((run) =>
    pairing(messageEvents(run.events, "message_end").map(({ message }) => message), run.end === Infinity)
      .map((problem) => `run at ${run.start}: ${problem}`)
  ),
  ...trace.requests.flatMap((request) => pairing(request.messages, false).map((p) => `request ${request.n}: ${p}`))
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

/** A message as far as inputs are told apart. */
interface Look {
  readonly role: string
  readonly content?: unknown
  readonly call?: string
}

const signature = ({ call, content, role }: Look): string => JSON.stringify([role, content ?? "", call ?? null])

/** Content as traces show it: a single text block is its text. */
const shownContent = (content: Content | undefined): unknown => {
  const blocks = contentIn(content)
  return blocks.length === 1 && blocks[0]!.type === "text" ? blocks[0]!.text : content
}

/** A message of a scenario as traces show it. */
const shown = (message: Message): string => {
  if (typeof message === "string") return signature({ role: "user", content: message })
  const isShortened = message.role === "user" || message.role === "assistant" || message.role === "toolResult"
  return signature(isShortened ? { ...message, content: shownContent(message.content) } : message)
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
  const hooks: ReadonlyArray<[string, ReadonlyArray<Rule>]> = Object.entries(scenario.hooks ?? {})
  for (const [hook, rules] of hooks) for (const rule of rules) add(hook, rule.do)
  for (const { name, rules } of scenario.listeners ?? []) for (const rule of rules) add(`listener:${name}`, rule.do)
  for (const tool of scenario.tools ?? []) {
    for (const behaviour of [tool, ...(tool.cases ?? [])]) add("tool", behaviour.do)
  }
  return lists
}

const inputsOf = (input: Message | ReadonlyArray<Message>): ReadonlyArray<Message> =>
  typeof input === "string" || "role" in input ? [input] : input

/** The inputs a scenario gave and the agent accepted, by what they look like; `undefined` when that cannot be told. */
const acceptedInputs = (scenario: Scenario, trace: Trace): Map<string, Array<Input>> | undefined => {
  const inputs = new Map<string, Array<Input>>()
  const add = (message: Message, at: number, queue: Input["queue"]) => {
    const key = shown(message)
    inputs.set(key, [...(inputs.get(key) ?? []), { at, queue }])
  }
  const accept = (action: InnerAction, entry: TraceAction) => {
    if (entry.outcome === "rejected") return
    if (action.do === "steer" || action.do === "followUp") {
      add(action.message, entry.at, action.do === "steer" ? "steering" : "followUp")
    } else if (action.do === "prompt" && action.images === undefined) {
      for (const message of inputsOf(action.input)) add(message, entry.at, undefined)
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
  if (scenario.timeline.some(isLoop)) return []
  const inputs = acceptedInputs(scenario, trace)
  if (inputs === undefined) return []
  const problems: Array<string> = []
  const delivered = messageEvents(trace.events, "message_end").map(({ message }) => message)
  const seen = [...delivered, ...trace.final.steering, ...trace.final.followUp].map(signature)
  // What hooks append is no input; a declaration of tools looks like a system message that says nothing.
  const prepared = new Set((scenario.hooks?.prepareNextTurn ?? []).flatMap((rule) => rule.messages ?? []).map(shown))
  const declaration = signature({ role: "system" })
  for (const [key, given] of inputs) {
    if (prepared.has(key) || key === declaration) continue
    const count = seen.filter((other) => other === key).length
    const mayBeCleared = given.filter((input) =>
      allActions(trace).some((a) =>
        a.outcome === "ok" && a.at >= input.at && clears[a.do]?.includes(input.queue)
      )
    ).length
    if (count > given.length) problems.push(`${key} was given ${given.length} times and is there ${count} times`)
    else if (count < given.length - mayBeCleared) {
      problems.push(
        `${key} was given ${given.length} times and is there ${count} times (${mayBeCleared} may be cleared)`
      )
    }
  }
  return problems
}

/** Violations of I1 to I4, as text that begins with the invariant's name. */
export const violations = (scenario: Scenario, trace: Trace): ReadonlyArray<string> => {
  if (isMixed(trace)) return []
  const named = (name: string, problems: ReadonlyArray<string>) => problems.map((problem) => `${name}: ${problem}`)
  return [
    ...named("I1", everyCallAnswered(trace)),
    ...named("I2", noRequestAfterAbort(trace)),
    ...named("I3", balanced(trace)),
    ...named("I4", nothingLost(scenario, trace))
  ]
}
