/**
 * Which rules of docs/SPEC.md, section 5, can explain that this library plays a scenario differently from pi.
 *
 * Every rule has a trigger: something that happened in pi's trace (or, where pi does too little, in ours), and the span
 * of time in which the first difference it causes must lie. A rule explains the difference of two traces only when the
 * first difference lies in the span of one of its triggers. The rules about what a request leaves out are applied to the
 * requests of pi beforehand, so that they explain nothing else.
 */
import { isDeepStrictEqual } from "node:util"
import type { Class } from "./classes.ts"
import { diffTraces } from "./compare.mjs"
import { allActions, callIds, eventsOf, type Run, runsOf, type TraceMessage } from "./invariants.ts"
import type { Trace } from "./player-pi.mjs"
import type { Behaviour, Declaration, Message, Rule as HookRule, Scenario } from "./types.ts"
import { withRepairedRequests } from "./repair.ts"
import { DEFAULT_SCHEMA, describeTool } from "./values.mjs"

/** What may cause a difference that first shows between `from` and `until`. */
interface Trigger {
  readonly name: Class
  readonly from: number
  readonly until: number
}

/** The facts the rules look at. */
interface Facts {
  readonly scenario: Scenario
  readonly pi: Trace
  readonly ours: Trace
  readonly runs: ReadonlyArray<Run>
  /** Aborts that met a run of pi, with that run. */
  readonly aborts: ReadonlyArray<{ readonly at: number; readonly run: Run; readonly settled: number }>
  /** Times at which a listener of pi's run failed. */
  readonly failedListeners: ReadonlyArray<number>
}

type Rule = (facts: Facts) => Array<Trigger>

const at = (name: Class, from: number, until: number = from): Trigger => ({ name, from, until })

const innerOf = (trace: Trace) => trace.inner ?? []
const listenersOf = (trace: Trace) =>
  (trace.listeners ?? []) as ReadonlyArray<{ t: number; done?: number; on: string; listener: string }>
const executionsOf = (trace: Trace) =>
  trace.executions as ReadonlyArray<{ t: number; end?: number; call: string; tool: string; how?: string; args: unknown }>

/** When a run of pi was over for the host: its `agent_end`, and the listeners of that. */
const settledAt = (trace: Trace, run: Run): number => {
  const ends = listenersOf(trace).filter((l) => l.on === "agent_end" && l.t === run.end).map((l) => l.done ?? l.t)
  return Math.max(run.end, ...ends)
}

/** Whether something recorded in pi lies in a run. */
const within = (run: Run, t: number): boolean => t >= run.start && t <= run.end

const isFailed = (message: TraceMessage): boolean => message.stopReason === "error" || message.stopReason === "aborted"

const behavioursOf = (scenario: Scenario, tool: string): ReadonlyArray<Behaviour> =>
  (scenario.tools ?? []).filter((t) => t.name === tool).flatMap((t) => [t, ...(t.cases ?? [])])

// -----------------------------------------------------------------------------
// Aborts
// -----------------------------------------------------------------------------

const danglingCall: Rule = ({ pi, runs }) =>
  runs.flatMap((run) => {
    const messages = run.events.filter((e) => e.type === "message_end")
    const answered = new Set(messages.filter((e) => e.message.role === "toolResult").map((e) => e.message.call))
    return messages.filter((e) => callIds(e.message).some((id) => !answered.has(id)))
      .map((e) => at("dangling-call", e.t, settledAt(pi, run)))
  })

const requestAfterAbort: Rule = ({ aborts, pi }) =>
  aborts.flatMap(({ at: t, run }) =>
    pi.requests.filter((r) => r["aborted"] === true && within(run, r.t)).map((r) => at("request-after-abort", t, r.t))
  )

const spentQueues: Rule = ({ aborts, scenario }) =>
  aborts.flatMap(({ at: t, run }) => {
    const taken = run.events.find((e) =>
      e.type === "message_start" && e.t >= t && e.message.role !== "assistant" && e.message.role !== "toolResult"
    )
    if (taken === undefined) return []
    const queued = JSON.stringify(scenario)
    return [
      ...(queued.includes("\"steer\"") ? [at("steer-spent-on-aborted-turn", t, taken.t)] : []),
      ...(queued.includes("\"followUp\"") ? [at("follow-up-spent-on-aborted-turn", t, taken.t)] : [])
    ]
  })

/** `finishTurn` of the open turn is allowed after the abort. */
const hookAfterAbort: Rule = ({ aborts, pi }) =>
  aborts.flatMap(({ at: t, run }) =>
    pi.hooks.filter((h) => h.t >= t && within(run, h.t) && h.hook !== "finishTurn")
      .map((h) => at("hook-after-abort", t, h.t))
  )

/** A hook whose rule waits was at work at the abort. */
const hooksNotInterrupted: Rule = ({ aborts, pi, scenario }) =>
  aborts.flatMap(({ at: t, run }) => {
    const waiting = Object.entries(scenario.hooks ?? {}).flatMap(([hook, rules]) =>
      (rules as ReadonlyArray<HookRule>).flatMap((rule) => rule.delay === undefined ? [] : [{ hook, delay: rule.delay }])
    )
    const atWork = pi.hooks.some((h) =>
      within(run, h.t) && h.t <= t && waiting.some(({ delay, hook }) => hook === h.hook && h.t + delay >= t)
    )
    return atWork ? [at("hooks-not-interrupted", t)] : []
  })

const dependsOnProvider: Rule = ({ aborts, pi, scenario }) =>
  aborts.flatMap(({ at: t, run, settled }) => {
    const open = pi.requests.filter((r) => within(run, r.t) && r.t <= t && r["aborted"] !== true).at(-1)
    const consumed = pi.requests.filter((r) => r["aborted"] !== true)
    const response = open && scenario.model[consumed.indexOf(open)]
    const ended = open && run.events.some((e) =>
      e.type === "message_end" && e.message.role === "assistant" && e.t >= open.t && e.t < t
    )
    const deafStream = response !== undefined && !ended && response.onAbort !== undefined && response.onAbort !== "error"
    const deafTool = executionsOf(pi).some((x) =>
      within(run, x.t) && x.t <= t && (x.end ?? Infinity) >= t && x.how !== "aborted" &&
      behavioursOf(scenario, x.tool).some((b) => b.onAbort === "ignore" || b.nested !== undefined || !b.delay)
    )
    const slowTool = executionsOf(pi).some((x) => x.how === "aborted" && x.t <= t && (x.end ?? Infinity) > t + 1000)
    return deafStream || deafTool || slowTool ? [at("abort-depends-on-provider", t, settled)] : []
  })

/** A listener was at work, or events that had been produced before the abort were delivered after it. */
const listenersNotInterrupted: Rule = ({ aborts, pi }) =>
  aborts.flatMap(({ at: t, run, settled }) => {
    const atWork = listenersOf(pi).some((l) => l.t <= t && (l.done ?? l.t) > t && l.t >= run.start)
    return atWork ? [at("listeners-not-interrupted", t, settled)] : []
  })

const abortAware: Rule = ({ aborts, pi, scenario }) =>
  aborts.flatMap(({ at: t, run, settled }) => {
    const chose = executionsOf(pi).some((x) =>
      x.how === "aborted" && within(run, x.t) && behavioursOf(scenario, x.tool).some((b) =>
        typeof b.onAbort === "object" && (b.onAbort.content !== undefined || b.onAbort.throws !== undefined)
      )
    )
    return chose ? [at("abort-aware-result", t, settled)] : []
  })

// -----------------------------------------------------------------------------
// Requests
// -----------------------------------------------------------------------------

const undeclaredTools: Rule = ({ pi, runs, scenario }) =>
  (scenario.hooks?.prepareRequest ?? []).flatMap((rule): Array<Trigger> => {
    const { context } = rule
    if (context === undefined) return []
    if (context.tools === undefined && context.messages === undefined && (context.keepLast === undefined || context.keepSystem)) {
      return []
    }
    return pi.hooks.filter((h) => h.hook === "prepareRequest" && (rule.n === undefined || rule.n === h["n"])).map((h) => {
      const run = runs.find((run) => within(run, h.t))
      return at("undeclared-tools", h.t, run?.end ?? Infinity)
    })
  })

const declarationsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<Declaration> =>
  messages.flatMap((m) => typeof m === "string" ? [] : m.toolsAdded ?? []).filter((d) => typeof d !== "string")

const keyOrder: Rule = ({ scenario }) => {
  const stored = [
    ...declarationsOf(scenario.agent.messages ?? []),
    ...scenario.timeline.flatMap((a) => a.do === "setMessages" ? declarationsOf(a.messages) : [])
  ]
  const whole = (d: Declaration) => ({
    name: d.name,
    description: d.description ?? describeTool(d.name),
    parameters: d.parameters ?? DEFAULT_SCHEMA
  })
  const reordered = stored.some((d) =>
    (scenario.tools ?? []).some((tool) =>
      isDeepStrictEqual(whole(d), whole(tool)) && JSON.stringify(whole(d)) !== JSON.stringify(whole(tool))
    )
  )
  return reordered ? [at("key-order", 0, Infinity)] : []
}

// -----------------------------------------------------------------------------
// Failures
// -----------------------------------------------------------------------------

/** pi's failure report: an empty text and no thinking level; and whatever made it necessary. */
const failurePath: Rule = ({ failedListeners, pi }) => [
  ...eventsOf(pi).filter((e) =>
    e.type === "message_start" && e.message.role === "assistant" && e.message.content === "" && isFailed(e.message) &&
    e.message.thinkingLevel === undefined
  ).map((e) => at("failure-path", e.t)),
  ...failedListeners.map((t) => at("failure-path", t))
]

const runWithoutEnd: Rule = ({ failedListeners, pi, runs }) => {
  const rejected = allActions(pi).filter((a) => a.do.startsWith("loop") && a.outcome === "rejected").map((a) => a.t!)
  const open = runs.filter((run) => run.end === Infinity).length > 0
  return open ? [...rejected, ...failedListeners].map((t) => at("run-without-end", t)) : []
}

const secondEnd: Rule = ({ pi }) =>
  pi.anomalies.filter((a) => a.kind === "second-agent-end").map((a) => at("second-agent-end", a["t"] as number))

const neverSettles: Rule = ({ ours, pi }) => {
  const settles = allActions(ours)
  return allActions(pi).flatMap((a, index) =>
    a.outcome === "pending" && settles[index]?.outcome !== "pending" ? [at("never-settles", a.at, Infinity)] : []
  )
}

const orphan: Rule = ({ failedListeners, pi }) =>
  pi.anomalies.some((a) => a.kind === "orphan-execution" || a.kind === "execution-outside-run")
    ? failedListeners.map((t) => at("orphan-execution", t))
    : []

const unhandled: Rule = ({ pi }) => (pi.unhandled ?? []).map((u) => at("unhandled-rejection", u.t, Infinity))

const messageLost: Rule = ({ failedListeners, pi }) => {
  if (!pi.anomalies.some((a) => a.kind === "queued-message-lost")) return []
  const failures = eventsOf(pi).filter((e) => e.type === "message_end" && isFailed(e.message)).map((e) => e.t)
  return [...failures, ...failedListeners].map((t) => at("queued-message-lost", t, Infinity))
}

// -----------------------------------------------------------------------------
// Mutation, ids, tools
// -----------------------------------------------------------------------------

const sharedMutation: Rule = ({ pi, scenario }) => {
  const { hooks, listeners, model, tools } = scenario
  const triggers: Array<Trigger> = []
  const mutates = (hook: string) => pi.hooks.filter((h) => h.hook === hook).map((h) => h.t)
  const first = (times: ReadonlyArray<number>) => {
    if (times.length > 0) triggers.push(at("shared-mutation", Math.min(...times), Infinity))
  }
  if (hooks?.transformContext?.some((rule) => rule.inPlace)) first(mutates("transformContext"))
  if (hooks?.prepareRequest?.some((rule) => rule.context?.messages === "live")) first(mutates("prepareRequest"))
  if (hooks?.prepareNextTurn?.some((rule) => rule.context?.messages === "live")) first(mutates("prepareNextTurn"))
  const editors = new Set((listeners ?? []).filter((l) => l.rules.some((r) => r.mutate !== undefined)).map((l) => l.name))
  first(listenersOf(pi).filter((l) => editors.has(l.listener)).map((l) => l.t))
  const consumed = pi.requests.filter((r) => r["aborted"] !== true)
  first(consumed.filter((_, i) => model[i]?.sharedPartial || model[i]?.frozen).map((r) => r.t))
  const inPlace = new Set((tools ?? []).filter((tool) => tool.prepareArguments?.inPlace).map((tool) => tool.name))
  first(eventsOf(pi).filter((e) => e.type === "tool_execution_start" && inPlace.has((e as unknown as { tool: string }).tool)).map((e) => e.t))
  for (const a of allActions(pi)) {
    if (a.do === "loopContinue" && a.outcome === "resolved") triggers.push(at("shared-mutation", a.t!))
  }
  return triggers
}

const doubleStart: Rule = ({ pi, scenario }) =>
  pi.requests.filter((r) => r["aborted"] !== true).flatMap((r, index) =>
    (scenario.model[index]?.events ?? []).filter((e) => e.type === "start").length > 1
      ? [at("double-start", r.t, Infinity)]
      : []
  )

const duplicateIds: Rule = ({ runs }) =>
  runs.flatMap((run) =>
    run.events.filter((e) => {
      if (e.message?.role !== "assistant" || !Array.isArray(e.message.content)) return false
      const ids = (e.message.content as ReadonlyArray<{ call?: string }>).flatMap((b) => b.call ?? [])
      return new Set(ids).size < ids.length || ids.includes("")
    }).map((e) => at("duplicate-call-ids", e.t, run.end))
  )

const duplicateNames: Rule = ({ scenario }) => {
  const nameOf = new Map((scenario.tools ?? []).map((tool) => [tool.key ?? tool.name, tool.name]))
  const doubled = (keys: ReadonlyArray<string> | undefined) => {
    const names = (keys ?? []).map((key) => nameOf.get(key))
    return new Set(names).size < names.length
  }
  const hooks = [...(scenario.hooks?.prepareNextTurn ?? []), ...(scenario.hooks?.prepareRequest ?? [])]
  const from = doubled(scenario.agent.tools) || hooks.some((rule) => doubled(rule.context?.tools))
    ? [0]
    : scenario.timeline.filter((a) =>
      (a.do === "setTools" && doubled(a.tools)) || ("context" in a && doubled(a.context.tools))
    ).map((a) => a.at)
  return from.map((t) => at("duplicate-tool-names", t, Infinity))
}

/** Steps of pi's conversion that lose something: section 6 does not take them. */
const isLossy = (value: unknown, schema: { readonly type?: unknown } | undefined): boolean => {
  if (value === null) return true
  switch (schema?.type) {
    case "number":
    case "integer":
      return typeof value === "boolean" || (typeof value === "string" && value.trim() === "") ||
        (schema.type === "integer" && typeof value === "string" && !/^-?\d+$/.test(value))
    case "boolean":
      return typeof value === "number" || (typeof value === "string" && !/^(true|false)$/.test(value))
    case "string":
      return typeof value === "object"
    case "array":
      return !Array.isArray(value)
    case "object":
      return typeof value !== "object"
    default:
      return schema !== undefined && schema.type === undefined
  }
}

/** Such a call ran in one of the traces only, or with other arguments. */
const lenient: Rule = ({ ours, pi, runs, scenario }) =>
  runs.flatMap((run) =>
    run.events.filter((e) => e.type === "tool_execution_start").flatMap((e) => {
      const { args, call, tool } = e as unknown as { readonly call: string; readonly tool: string; readonly args: object }
      const schemas = (scenario.tools ?? []).filter((t) => t.name === tool).map((t) =>
        t.parameters as { readonly properties?: { readonly [key: string]: { readonly type?: unknown } } } | undefined
      )
      const lossy = schemas.some((schema) =>
        Object.entries(args).some(([key, value]) => isLossy(value, schema?.properties?.[key]))
      )
      const argsIn = (trace: Trace) => executionsOf(trace).filter((x) => x.call === call).map((x) => x.args)
      return lossy && !isDeepStrictEqual(argsIn(pi), argsIn(ours))
        ? [at("lenient-validation", e.t, settledAt(pi, run))]
        : []
    })
  )

// -----------------------------------------------------------------------------
// Results, events, changes
// -----------------------------------------------------------------------------

const flagMismatch: Rule = ({ pi }) =>
  pi.anomalies.filter((a) => a.kind === "result-flag-mismatch").map((a) =>
    at("result-flag-mismatch", a["t"] as number)
  )

const nullPatch: Rule = ({ pi, runs, scenario }) =>
  (scenario.hooks?.afterToolCall ?? []).flatMap((rule) =>
    Object.values(rule.patch ?? {}).includes(null as never)
      ? pi.hooks.filter((h) => h.hook === "afterToolCall")
        .map((h) => at("null-patch", h.t, runs.find((run) => within(run, h.t))?.end ?? Infinity))
      : []
  )

const liveListeners: Rule = ({ pi }) =>
  innerOf(pi).filter((a) => a.from.startsWith("listener:") && (a.do === "subscribe" || a.do === "unsubscribe"))
    .map((a) => at("live-listener-set", a.at))

/** pi delivered another event while a listener still worked on one. */
const notSerialized: Rule = ({ pi, runs }) =>
  listenersOf(pi).flatMap((l) => {
    const done = l.done ?? l.t
    const run = runs.find((run) => within(run, l.t))
    const overlaps = run !== undefined && run.events.some((e) => e.t > l.t && e.t < done)
    return overlaps ? [at("events-not-serialized", l.t, done)] : []
  })

/** Whether requests take time to prepare; then a change may come too late for the next one. */
const preparesSlowly = ({ hooks }: Scenario): boolean =>
  [hooks?.prepareRequest, hooks?.transformContext, hooks?.convertToLlm, hooks?.getApiKey]
    .some((rules) => rules?.some((rule) => rule.delay !== undefined))

/** A change counts from the next request, which declares tools right before it; a mode shows in the batch after that. */
const duringRun: Rule = ({ pi, runs, scenario }) =>
  allActions(pi).flatMap((a) => {
    const run = runs.find((run) => within(run, a.at))
    if (a.outcome === "rejected" || run === undefined) return []
    switch (a.do) {
      case "setModel":
      case "setThinkingLevel":
      case "setTools": {
        const later = pi.requests.filter((r) => r.t >= a.at && within(run, r.t))
        const next = later[preparesSlowly(scenario) && later.length > 1 ? 1 : 0]
        // Without a further request it can show only where one was being prepared.
        const until = next?.t ?? run.events.find((e) => e.type === "turn_start" && e.t >= a.at)?.t
        return until === undefined ? [] : [at("change-during-run", a.at, until)]
      }
      case "setToolExecution":
        return [at("change-during-run", a.at, run.end)]
      case "setMessages":
      case "pushMessage":
        return [at("state-split", a.at)]
      default:
        return []
    }
  })

const sameInstant: Rule = ({ pi }) =>
  executionsOf(pi).flatMap((x, index) =>
    executionsOf(pi).some((y, other) => other !== index && y.end !== undefined && y.end === x.end)
      ? [at("microtask-order", x.end!)]
      : []
  )

/** A follow-up was queued after a run that stopped by itself, before its last event was delivered. */
const endFollowUp: Rule = ({ pi, runs }) =>
  runs.flatMap((run) => {
    const last = run.events.findLast((e) => e.type === "turn_end")?.message
    const settled = settledAt(pi, run)
    const queued = allActions(pi).some((a) => a.do === "followUp" && a.at >= run.end && a.at <= settled)
    return queued && last !== undefined && !isFailed(last) ? [at("end-follow-up", run.end, settled)] : []
  })

const rules: ReadonlyArray<Rule> = [
  danglingCall,
  requestAfterAbort,
  spentQueues,
  hookAfterAbort,
  hooksNotInterrupted,
  dependsOnProvider,
  listenersNotInterrupted,
  abortAware,
  undeclaredTools,
  keyOrder,
  failurePath,
  runWithoutEnd,
  secondEnd,
  neverSettles,
  orphan,
  unhandled,
  messageLost,
  sharedMutation,
  doubleStart,
  duplicateIds,
  duplicateNames,
  lenient,
  flagMismatch,
  nullPatch,
  liveListeners,
  notSerialized,
  duringRun,
  sameInstant,
  endFollowUp
]

// -----------------------------------------------------------------------------
// The first difference
// -----------------------------------------------------------------------------

const timeOf = (entry: unknown): number => {
  const { at, end, t } = entry as { readonly t?: number; readonly at?: number; readonly end?: number }
  return end ?? t ?? at ?? Infinity
}

/** The time of the first entry of a list that is not the same in both; an entry tells its latest time. */
const firstDifferent = (left: ReadonlyArray<unknown> = [], right: ReadonlyArray<unknown> = []): number => {
  const length = Math.max(left.length, right.length)
  let first = Infinity
  for (let index = 0; index < length; index++) {
    if (isDeepStrictEqual(left[index], right[index])) continue
    const times = [left[index], right[index]].map((entry) => entry === undefined ? Infinity : timeOf(entry))
    first = Math.min(first, ...times)
    // Later entries of lists that are in order of time come later; those of actions settle in any order.
    if (left[index] === undefined || right[index] === undefined) break
  }
  return first
}

/** When two traces go apart; infinite when only the final state differs. */
export const firstDifference = (pi: Trace, ours: Trace): number =>
  Math.min(
    firstDifferent(pi.events, ours.events),
    firstDifferent(pi.requests, ours.requests),
    firstDifferent(pi.executions, ours.executions),
    firstDifferent(pi.hooks, ours.hooks),
    firstDifferent(pi.listeners, ours.listeners),
    firstDifferent(pi.actions, ours.actions),
    firstDifferent(pi.inner, ours.inner)
  )

/** The classes that can explain why two traces of a scenario differ; empty when none can. */
export const attribute = (scenario: Scenario, pi: Trace, ours: Trace): ReadonlySet<Class> => {
  const { classes, trace } = withRepairedRequests(pi)
  if (diffTraces(trace, ours).length === 0) return classes
  const runs = runsOf(pi)
  const aborts = allActions(pi).filter((a) => a.do === "abort").flatMap((a) =>
    runs.map((run) => ({ at: a.at, run, settled: settledAt(pi, run) }))
      .filter(({ run, settled }) => a.at >= run.start && a.at <= settled)
  )
  const failedListeners = listenersOf(pi).filter((l) => l.done === undefined).map((l) => l.t)
  const facts: Facts = { scenario, pi, ours, runs, aborts, failedListeners }
  const difference = firstDifference(trace, ours)
  return new Set(
    rules.flatMap((rule) => rule(facts))
      .filter(({ from, until }) => difference >= from && difference <= until)
      .map(({ name }) => name)
  )
}
