/** The rules of docs/SPEC.md, section 5, that are about listeners, order, and changes by the host. */
import { type Rule, trigger } from "./rule.ts"
import { allActions, isFailed, listenersOf, settledAt, within } from "./runs.ts"
import type { Scenario } from "./types.ts"

const liveListenerSet: Rule = ({ pi }) =>
  (pi.inner ?? []).filter((a) => a.from.startsWith("listener:") && (a.do === "subscribe" || a.do === "unsubscribe"))
    .map(({ at }) => trigger("live-listener-set", at))

/** pi delivered another event while a listener still worked on one. */
const eventsNotSerialized: Rule = ({ pi, runs }) =>
  listenersOf(pi)
    .filter(({ done = 0, t: begin }) => runs.some((run) => run.events.some(({ t }) => t > begin && t < done)))
    .map(({ done, t }) => trigger("events-not-serialized", t, done))

const microtaskOrder: Rule = ({ pi }) =>
  pi.executions
    .filter((one) => pi.executions.some((other) => other !== one && other.end !== undefined && other.end === one.end))
    .map(({ end }) => trigger("microtask-order", end!))

const stateSplit: Rule = ({ pi, runs }) =>
  allActions(pi)
    .filter((a) => (a.do === "setMessages" || a.do === "pushMessage") && runs.some((run) => within(run, a.at)))
    .map(({ at }) => trigger("state-split", at))

/** Whether requests take time to prepare; then a change may come too late for the next one. */
const preparesSlowly = ({ hooks }: Scenario): boolean =>
  [hooks?.prepareRequest, hooks?.transformContext, hooks?.convertToLlm, hooks?.getApiKey]
    .some((rules) => rules?.some(({ delay }) => delay !== undefined))

/** A change counts from the next request, which declares tools right before it; a mode shows in the batch after that. */
const changeDuringRun: Rule = ({ pi, runs, scenario }) =>
  allActions(pi).flatMap(({ at, do: action, outcome }) => {
    const run = runs.find((run) => within(run, at))
    if (run === undefined || outcome !== "ok") return []
    if (action === "setToolExecution") return [trigger("change-during-run", at, run.end)]
    if (action !== "setModel" && action !== "setThinkingLevel" && action !== "setTools") return []
    const later = pi.requests.filter(({ t }) => t >= at && within(run, t))
    const next = later[preparesSlowly(scenario) && later.length > 1 ? 1 : 0]
    // Without a further request it can show only where one was being prepared.
    const until = next?.t ?? run.events.find(({ t, type }) => type === "turn_start" && t >= at)?.t
    return until === undefined ? [] : [trigger("change-during-run", at, until)]
  })

/** A follow-up was queued after a run that stopped by itself, before its last event was delivered. */
const endFollowUp: Rule = ({ pi, runs }) =>
  runs.flatMap((run) => {
    const settled = settledAt(pi, run)
    const last = run.events.findLast((event) => event.type === "turn_end")
    const queued = allActions(pi).some((a) => a.do === "followUp" && a.at >= run.end && a.at <= settled)
    return queued && last !== undefined && !isFailed(last.message) ? [trigger("end-follow-up", run.end, settled)] : []
  })

export const hostRules: ReadonlyArray<Rule> = [
  liveListenerSet,
  eventsNotSerialized,
  microtaskOrder,
  stateSplit,
  changeDuringRun,
  endFollowUp
]
