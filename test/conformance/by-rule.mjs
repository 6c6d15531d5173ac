// byRule(scenario, trace of pi): the classes of docs/SPEC.md, section 5, that can make an unmarked scenario differ; an empty set = must be equal.
const empty = (c) => (Array.isArray(c) ? c.every((b) => b.text === "" || b.thinking === "") : c === "")
const splitPairs = (ms) => {
  let bad = 0, open
  for (const m of ms) {
    if (m.role === "toolResult") {
      const i = open?.indexOf(m.call) ?? -1
      if (i < 0) bad++
      else open.splice(i, 1)
    } else {
      if (open?.length) bad++
      open = m.role === "assistant" && Array.isArray(m.content) && !/error|aborted/.test(m.stopReason ?? "")
        ? m.content.filter((b) => b.call).map((b) => b.call)
        : undefined
    }
  }
  return bad + (open?.length ?? 0)
}
export function byRule(s, t) {
  const out = new Set(), runs = []
  let start
  for (const e of t.events) {
    if (e.type === "agent_start") start = e.t
    if (e.type === "agent_end") runs.push([start, e.t])
  }
  const inRun = (at) => runs.some(([a, b]) => at >= a && at < b)
  const acts = [...t.actions, ...(t.inner ?? [])]
  const hostAborts = acts.filter((a) => a.do === "abort")
  for (const r of t.requests) {
    for (const m of r.messages) {
      if (m.role === "assistant") {
        if (empty(m.content)) out.add("empty-message-sent")
        if (/error|aborted/.test(m.stopReason ?? "") && Array.isArray(m.content) && m.content.some((b) => b.call)) {
          out.add("aborted-call-kept")
        }
      }
    }
    if (splitPairs(r.messages)) out.add("split-pair")
  }
  for (const a of acts) {
    if (
      /^set(Model|ThinkingLevel|Tools|ToolExecution|Messages)$|^pushMessage$/.test(a.do) &&
      ((t.inner ?? []).includes(a) || inRun(a.at))
    ) out.add("change-during-run")
  }
  for (const l of s.listeners ?? []) {
    for (const r of l.rules) {
      if (r.on === "agent_end" && (r.do ?? []).some((d) => d.do === "followUp")) out.add("end-follow-up")
    }
  }
  // A follow-up of the host counts as well while a listener still works on agent_end.
  for (const l of t.listeners ?? []) {
    if (l.on === "agent_end" && acts.some((a) => a.do === "followUp" && a.at >= l.t && a.at <= (l.done ?? l.t))) {
      out.add("end-follow-up")
    }
  }
  if (
    hostAborts.length && t.hooks.some((h) =>
      h.hook === "afterToolCall" &&
      hostAborts.some((a) =>
        (a.t ?? a.at) <= h.t &&
        (h.stopReason === "aborted" || t.executions.some((x) => x.how === "aborted" && x.end === h.t))
      )
    )
  ) out.add("hook-after-abort")
  if (
    t.events.some((e) =>
      e.type === "message_end" && e.message.role === "assistant" && e.message.content === "" &&
      e.message.thinkingLevel === undefined && /error|aborted/.test(e.message.stopReason)
    )
  ) out.add("failure-path")
  if (s.tools?.some((x) => [x, ...(x.cases ?? [])].some((b) => b.onAbort === "ignore")) && hostAborts.length) {
    out.add("abort-depends-on-provider")
  }
  for (const r of s.hooks?.prepareRequest ?? []) {
    if (r.context?.tools || (r.context?.messages) || (r.context?.keepLast && !r.context.keepSystem)) {
      out.add("undeclared-tools")
    }
  }
  return out
}
