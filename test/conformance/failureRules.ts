/** The rules of docs/SPEC.md, section 5, that are about failures and runs that do not end as they should. */
import { type Rule, trigger } from "./rule.ts"
import { allActions, isFailed, messageEvents } from "./runs.ts"

/** pi's failure report, an empty text without a thinking level, and the failing listeners that lead to one. */
const failurePath: Rule = ({ failedListeners, pi }) => [
  ...messageEvents(pi.events, "message_start")
    .filter(({ message }) =>
      message.role === "assistant" && message.content === "" && isFailed(message) && message.thinkingLevel === undefined
    )
    .map(({ t }) => trigger("failure-path", t)),
  ...failedListeners.map((t) => trigger("failure-path", t))
]

const runWithoutEnd: Rule = ({ failedListeners, pi, runs }) => {
  if (runs.every((run) => run.end < Infinity)) return []
  const rejected = allActions(pi).flatMap((a) => a.do.startsWith("loop") && a.outcome === "rejected" ? [a.t!] : [])
  return [...rejected, ...failedListeners].map((t) => trigger("run-without-end", t))
}

const secondAgentEnd: Rule = ({ pi }) =>
  pi.anomalies.filter(({ kind }) => kind === "second-agent-end").map(({ t }) => trigger("second-agent-end", t!))

const neverSettles: Rule = ({ ours, pi }) => {
  const here = allActions(ours)
  return allActions(pi)
    .filter(({ outcome }, index) => outcome === "pending" && here[index]?.outcome !== "pending")
    .map(({ at }) => trigger("never-settles", at, Infinity))
}

const orphanExecution: Rule = ({ failedListeners, pi }) =>
  pi.anomalies.some(({ kind }) => kind === "orphan-execution" || kind === "execution-outside-run")
    ? failedListeners.map((t) => trigger("orphan-execution", t))
    : []

const unhandledRejection: Rule = ({ pi }) =>
  (pi.unhandled ?? []).map(({ t }) => trigger("unhandled-rejection", t, Infinity))

const queuedMessageLost: Rule = ({ failedListeners, pi }) => {
  if (!pi.anomalies.some(({ kind }) => kind === "queued-message-lost")) return []
  const failures = messageEvents(pi.events, "message_end").filter(({ message }) => isFailed(message)).map(({ t }) => t)
  return [...failures, ...failedListeners].map((t) => trigger("queued-message-lost", t, Infinity))
}

export const failureRules: ReadonlyArray<Rule> = [
  failurePath,
  runWithoutEnd,
  secondAgentEnd,
  neverSettles,
  orphanExecution,
  unhandledRejection,
  queuedMessageLost
]
