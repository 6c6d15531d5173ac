#!/usr/bin/env node
// One-glance view of a trace.   node summarize.mjs traces/*.json
import { readFileSync } from "node:fs"
const msg = (m) => {
  const c = typeof m.content === "string"
    ? JSON.stringify(m.content)
    : JSON.stringify(
      (m.content ?? []).map((b) => b.text ?? (b.call ? `${b.call}=${b.tool}` : b.thinking ? `~${b.thinking}` : "img"))
    )
  switch (m.role) {
    case "user":
      return `u${c}`
    case "assistant":
      return `a${c}${m.stopReason ? `/${m.stopReason}` : ""}${m.errorMessage ? `!${m.errorMessage}` : ""}`
    case "toolResult":
      return `t${m.call}${m.isError ? "!" : ""}${c}`
    case "system":
      return `s${c}${m.toolsAdded ? `+${m.toolsAdded}` : ""}${m.toolsRemoved ? `-${m.toolsRemoved}` : ""}`
    default:
      return `${m.role}${c}`
  }
}
export function summarize(t) {
  const out = []
  let at
  const put = (time, s) => {
    if (time !== at) out.push(`\n   ${String(time).padStart(4)}`)
    at = time
    out.push(s)
  }
  for (const e of t.events) {
    const s = {
      agent_start: () => "AGENT{",
      agent_end: () => `}AGENT(${e.messages.length})`,
      turn_start: () => "TURN{",
      turn_end: () => `}TURN(${e.toolResults.length})`,
      message_start: () => `<${e.message.role[0]}`,
      message_end: () => `${msg(e.message)}>`,
      message_update: () => `~${e.event.type}${e.event.delta !== undefined ? `(${e.event.delta})` : ""}`,
      tool_execution_start: () => `[${e.call}`,
      tool_execution_update: () => `${e.call}~`,
      tool_execution_end: () => `${e.call}${e.isError ? "!" : ""}${e.result?.terminate ? "T" : ""}]`
    }[e.type]()
    put(e.t, s)
  }
  const req = t.requests.map((r) =>
    `\n   R${r.n}@${r.t} ${r.model}/${r.thinkingLevel}${r.aborted ? " ABORTED" : ""} [${r.tools}] ${
      r.messages.map(msg).join(" ")
    }`
  ).join("")
  const ex = t.executions.map((x) => `${x.call}@${x.t}-${x.end}:${x.how}`).join(" ")
  const act = [...t.actions, ...(t.inner ?? [])].map((a) =>
    `${a.from ?? ""}${a.do}@${a.at}${
      a.outcome === "ok" ? "" : `:${a.outcome}${a.t !== undefined ? `@${a.t}` : ""}${a.error ? `(${a.error})` : ""}`
    }${a.value ? JSON.stringify(a.value) : ""}`
  ).join(" | ")
  const hk = t.hooks.map((h) => `${h.hook}@${h.t}`).join(" ")
  const li = (t.listeners ?? []).map((l) => `${l.listener}:${l.on}@${l.t}-${l.done}`).join(" ")
  return `${t.scenario}${out.join(" ")}${req}\n   exec ${ex}\n   act ${act}${hk ? `\n   hooks ${hk}` : ""}${
    li ? `\n   listen ${li}` : ""
  }\n   final q=${JSON.stringify(t.final.steering)}${JSON.stringify(t.final.followUp)} err=${t.final.errorMessage} ${
    t.final.messages.map(msg).join(" ")
  }${t.anomalies.length ? `\n   ANOM ${JSON.stringify(t.anomalies)}` : ""}`
}
if (process.argv[1]?.endsWith("summarize.mjs")) {
  for (const f of process.argv.slice(2)) console.log(summarize(JSON.parse(readFileSync(f, "utf8"))))
}
