// Structural checks over one trace. Each violation is reported as { kind, ... }.
// They describe what a caller of an agent would expect; real pi breaks several of them
// (FINDINGS.md). They are not part of the conformance comparison.

const key = (m) => JSON.stringify(m)
const callIds = (m) => (Array.isArray(m.content) ? m.content.filter((b) => "call" in b).map((b) => b.call) : [])

/** Tool calls of finished assistant messages that no later toolResult answers. */
export function danglingCalls(messages) {
  const out = []
  messages.forEach((m, i) => {
    if (m.role !== "assistant" || m.stopReason === "error" || m.stopReason === "aborted") return
    for (const id of callIds(m)) {
      if (!messages.slice(i + 1).some((r) => r.role === "toolResult" && r.call === id)) out.push(id)
    }
  })
  return out
}

export function findAnomalies(trace, extra) {
  const found = []
  const add = (kind, detail) => found.push({ kind, ...detail })

  let run // state of the run being walked
  let runIndex = -1
  for (const [index, e] of trace.events.entries()) {
    if (e.type === "agent_start") {
      if (run && !run.ended) add("run-without-end", { t: e.t })
      run = { ended: 0, turn: false, message: false, tools: new Set(), done: [] }
      runIndex++
      continue
    }
    if (!run) {
      add("event-outside-run", { t: e.t, index, type: e.type })
      continue
    }
    if (run.ended && e.type !== "agent_end") add("event-after-agent-end", { t: e.t, index, type: e.type })
    switch (e.type) {
      case "turn_start":
        if (run.turn) add("turn-unbalanced", { t: e.t, index, what: "turn_start inside a turn" })
        run.turn = true
        break
      case "turn_end":
        if (!run.turn) add("turn-unbalanced", { t: e.t, index, what: "turn_end without turn_start" })
        run.turn = false
        break
      case "message_start":
        if (run.message) {
          add("message-unbalanced", { t: e.t, index, what: "message_start before the previous message_end" })
        }
        run.message = true
        break
      case "message_end":
        if (!run.message) add("message-unbalanced", { t: e.t, index, what: "message_end without message_start" })
        run.message = false
        run.done.push(key(e.message))
        break
      case "tool_execution_start":
        if (run.tools.has(e.call)) add("tool-unbalanced", { t: e.t, index, call: e.call, what: "started twice" })
        run.tools.add(e.call)
        break
      case "tool_execution_update":
        if (!run.tools.has(e.call)) {
          add("tool-unbalanced", { t: e.t, index, call: e.call, what: "update of a call that is not running" })
        }
        break
      case "tool_execution_end":
        if (!run.tools.delete(e.call)) {
          add("tool-unbalanced", { t: e.t, index, call: e.call, what: "end without start" })
        }
        if (e.result && e.result.isError !== undefined && e.result.isError !== e.isError) {
          add("result-flag-mismatch", { t: e.t, call: e.call, event: e.isError, result: e.result.isError })
        }
        break
      case "agent_end":
        run.ended++
        if (run.ended > 1) add("second-agent-end", { t: e.t, index })
        if (run.turn) add("turn-unbalanced", { t: e.t, index, what: "agent_end inside a turn" })
        if (run.message) add("message-unbalanced", { t: e.t, index, what: "agent_end inside a message" })
        for (const call of run.tools) {
          add("tool-unbalanced", { t: e.t, call, what: "no tool_execution_end before agent_end" })
        }
        if (key(e.messages.map(key)) !== key(run.done)) {
          add("agent-end-incomplete", { t: e.t, reported: e.messages.length, emitted: run.done.length })
        }
        break
    }
  }
  if (run && !run.ended) add("run-without-end", {})

  for (const r of trace.requests) {
    if (r.aborted) add("request-after-abort", { t: r.t, request: r.n })
    const open = danglingCalls(r.messages)
    if (open.length > 0) add("request-with-dangling-call", { t: r.t, request: r.n, calls: open })
    const pending = r.messages.filter((m) => m.role === "assistant" && m.stopReason === undefined).length
    if (pending > 0) add("request-with-partial-message", { t: r.t, request: r.n, count: pending })
  }
  const open = danglingCalls(trace.final.messages)
  if (open.length > 0) add("dangling-call", { calls: open })

  for (const x of trace.executions) {
    const span = extra.runs.find((r) => r.start <= x.t && (r.end === undefined || x.t <= r.end))
    if (!span) add("execution-outside-run", { t: x.t, call: x.call })
    else if (span.end !== undefined && (x.end === undefined || x.end > span.end)) {
      add("orphan-execution", { call: x.call, runEnd: span.end, executionEnd: x.end })
    }
  }
  for (const a of [...trace.actions, ...(trace.inner ?? [])]) {
    if (a.outcome === "pending") add("never-settles", { at: a.at, do: a.do })
  }
  for (const u of trace.unhandled ?? []) add("unhandled-rejection", { t: u.t, error: u.error })
  for (const content of extra.lost) add("queued-message-lost", { content })
  if (extra.mutated.length > 0) add("event-mutated-later", { indexes: extra.mutated })
  for (const t of extra.ties) add("tie", t)
  return found
}
