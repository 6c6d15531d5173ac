#!/usr/bin/env node
// Seeded random scenarios (format of SCENARIO.md).
//
//   node generate.mjs SEED [--profile safe|full]            scenario on stdout
//   node generate.mjs SEED --play                           scenario and trace summary
//   node generate.mjs --range FROM TO [--profile P] [--out FILE.jsonl]
//                                                           plays FROM..TO, prints statistics;
//                                                           FILE gets {"scenario":…,"trace":…} lines
//
// Profiles:
//   full  everything, including aborts during tools and hooks, failing hooks, failing listeners
//   safe  only features whose behaviour is not in dispute: the trace has no anomaly at all, nothing that
//         docs/SPEC.md, section 5, changes on purpose (by-rule.mjs), and no abort falls into a hook,
//         a listener or a tool
// A candidate is redrawn until its trace has no timer tie and does not change under microtask
// jitter, so every accepted scenario has one well-defined outcome.
import { appendFileSync, writeFileSync } from "node:fs"
import { byRule } from "./by-rule.mjs"
import { formatScenario } from "./format.mjs"
import { mulberry32, playScenario } from "./player-pi.mjs"
import { summarize } from "./summarize.mjs"
import { validate } from "./validate.mjs"

function draw(seed, profile, attempt) {
  const rand = mulberry32(seed * 7919 + attempt * 104729 + (profile === "safe" ? 1 : 2))
  const chance = (p) => rand() < p
  const int = (lo, hi) => lo + Math.floor(rand() * (hi - lo + 1))
  const pick = (xs) => xs[int(0, xs.length - 1)]
  const safe = profile === "safe"
  // Durations and times come from one pool of distinct numbers, so that sums rarely meet.
  const used = new Set()
  const fresh = (lo, hi) => {
    // The range widens when it runs full.
    for (let tries = 0;; tries++) {
      const v = int(lo, hi + (tries >> 3))
      if (!used.has(v)) {
        used.add(v)
        return v
      }
    }
  }
  const dur = () => fresh(2, 400)
  let seq = 0
  const text = (p) => `${p}${++seq}`

  // An abort only mixes with waiting hooks and listeners in the full profile.
  const aborts = chance(0.45)
  const calm = safe && aborts
  const hookDelay = () => (calm || !chance(0.3) ? {} : { delay: dur() })

  // ---- tools
  const toolNames = ["read", "write", "ask", "bye"].slice(0, int(1, 4))
  const schemas = {
    read: { type: "object", properties: { n: { type: "integer" }, path: { type: "string" } }, required: ["n"] },
    write: { type: "object", properties: { path: { type: "string" }, force: { type: "boolean" } } },
    ask: { type: "object", properties: {} },
    bye: { type: "object", properties: {} }
  }
  const tools = toolNames.map((name) => ({
    name,
    parameters: schemas[name],
    ...(name === "ask" && chance(0.6) ? { executionMode: "sequential" } : {}),
    ...(name === "bye" ? { terminate: true } : {}),
    ...(name === "write" && chance(0.3) ? { prepareArguments: { rename: { file: "path" } } } : {}),
    cases: []
  }))
  let call = 0
  const makeCall = () => {
    const id = `c${++call}`
    if (chance(0.06)) return { call: id, tool: "ghost", args: {} }
    const tool = pick(tools)
    const args = {}
    if (tool.name === "read") {
      Object.assign(
        args,
        pick([
          { n: int(1, 9) },
          { n: String(int(1, 9)) },
          { n: int(1, 9), path: text("p") },
          chance(0.4) ? {} : { n: "2" },
          chance(0.4) ? { n: "x" } : { n: 3 }
        ])
      )
    }
    if (tool.name === "write") {
      Object.assign(args, pick([{ path: text("p") }, { file: text("f") }, { path: text("p"), force: "true" }, {}]))
    }
    const behaviour = { when: { call: id }, delay: dur(), content: `${tool.name} ${id}` }
    if (chance(0.12)) behaviour.throws = `boom ${id}`
    else if (chance(0.1)) behaviour.isError = true
    if (chance(0.2)) behaviour.details = { id }
    if (chance(0.06)) behaviour.terminate = chance(0.7)
    if (chance(0.25)) {
      const at = new Set()
      for (let i = int(1, 3); i > 0; i--) at.add(int(1, Math.max(1, behaviour.delay - 1)))
      behaviour.updates = [...at].toSorted((a, b) => a - b).map((t) => ({ at: t, content: text("progress ") }))
      if (chance(0.15)) behaviour.updates.push({ at: behaviour.delay + dur(), content: "late" })
    }
    behaviour.onAbort = { after: dur() }
    if (!safe && chance(0.15)) behaviour.onAbort = "ignore"
    tool.cases.push(behaviour)
    return { call: id, tool: tool.name, args }
  }

  // ---- the model's script
  const stream = (blocks, stopReason, errorMessage) => {
    let t = dur()
    const events = []
    const step = () => (t += fresh(1, 90))
    if (chance(0.9)) events.push({ at: t, type: "start" })
    if (events.length > 0 && chance(0.6)) {
      for (const b of blocks) {
        if ("call" in b) {
          events.push({ at: step(), type: "toolcall_start", call: b.call, tool: b.tool })
          if (chance(0.4)) events.push({ at: step(), type: "toolcall_delta", delta: JSON.stringify(b.args) })
          events.push({ at: step(), type: "toolcall_end", args: b.args })
        } else {
          const kind = "thinking" in b ? "thinking" : "text"
          events.push({ at: step(), type: `${kind}_start` })
          const whole = b[kind]
          const cut = int(0, whole.length)
          for (const delta of [whole.slice(0, cut), whole.slice(cut)].filter(Boolean)) {
            events.push({ at: chance(0.2) ? t : step(), type: `${kind}_delta`, delta })
          }
          events.push({ at: step(), type: `${kind}_end` })
        }
      }
      events.push({
        at: step(),
        type: stopReason === "error" ? "error" : "done",
        stopReason,
        ...(errorMessage ? { errorMessage } : {})
      })
    } else {events.push({
        at: step(),
        type: stopReason === "error" ? "error" : chance(0.1) ? "end" : "done",
        stopReason,
        ...(errorMessage ? { errorMessage } : {}),
        content: blocks
      })}
    const response = { ...(chance(0.15) ? { setup: dur() } : {}), events }
    if (!safe && chance(0.08)) response.onAbort = pick(["ignore", "throw", dur()])
    return response
  }
  const say = () => [...(chance(0.2) ? [{ thinking: text("hm") }] : []), { text: text("reply ") }]
  const model = []
  for (let i = int(4, 11); i > 0; i--) {
    const r = rand()
    if (r < 0.66) {
      const calls = Array.from({ length: pick([1, 1, 2, 2, 3, 3, 4, 5]) }, makeCall)
      model.push(
        stream([...(chance(0.3) ? say() : []), ...calls], chance(0.08) ? "length" : chance(0.05) ? "stop" : "toolUse")
      )
    } else if (r < 0.93) model.push(stream(say(), chance(0.05) ? "length" : "stop"))
    else if (!safe && r < 0.95) model.push({ ...(chance(0.5) ? { setup: dur() } : {}), throws: text("setup failed ") })
    else if (!safe && r < 0.965) {
      model.push({
        events: [{ at: dur(), type: "start" }, { at: 480 + dur(), type: "throw", message: text("stream failed ") }]
      })
    } else model.push(stream(chance(0.5) ? say() : [], "error", text("overloaded ")))
  }
  for (let i = 0; i < 14; i++) {
    model.push({
      events: [{ at: dur(), type: "start" }, {
        at: 480 + int(1, 400),
        type: "done",
        stopReason: "stop",
        content: text("filler ")
      }]
    })
  }

  // ---- hooks
  const hooks = {}
  const fail = (p) => (!safe && chance(p) ? { throws: text("hook failed ") } : {})
  if (chance(0.35)) {
    hooks.beforeToolCall = [
      ...(chance(0.5)
        ? [{
          match: { tool: pick(toolNames) },
          times: int(1, 2),
          block: true,
          ...(chance(0.6) ? { reason: text("no ") } : {}),
          ...(chance(0.3) ? { terminate: true } : {}),
          ...hookDelay()
        }]
        : []),
      ...(chance(0.25) ? [{ match: { tool: pick(toolNames) }, times: 1, throws: text("policy ") }] : []),
      ...(chance(0.2) ? [{ match: { tool: "write" }, times: 1, setArgs: { path: "changed" } }] : []),
      { ...hookDelay() }
    ]
  }
  if (chance(0.35)) {
    hooks.afterToolCall = [
      ...(chance(0.5)
        ? [{
          match: { tool: pick(toolNames) },
          times: int(1, 2),
          patch: pick([
            { content: text("patched ") },
            { details: { by: "hook" } },
            { terminate: true },
            { terminate: false },
            { isError: true },
            { content: [] }
          ]),
          ...hookDelay()
        }]
        : []),
      ...(chance(0.2) ? [{ match: { tool: pick(toolNames) }, times: 1, throws: text("audit ") }] : []),
      ...(chance(0.3) ? [{ match: { isError: true }, times: 1, patch: { content: "tolerated" } }] : []),
      { ...hookDelay() }
    ]
  }
  if (chance(0.3)) {
    hooks.finishTurn = [
      { n: int(1, 4), action: pick(["end", "continue", "continue"]), ...hookDelay(), ...fail(0.1) },
      ...(chance(0.3)
        ? [{ n: int(1, 4), do: [{ do: chance(0.5) ? "steer" : "followUp", message: text("from finishTurn ") }] }]
        : [])
    ]
  }
  const context = () =>
    pick([{ keepLast: int(2, 6), keepSystem: true }, { keepLast: int(2, 6) }, {
      tools: toolNames.slice(0, int(0, toolNames.length))
    }, { messages: [{ role: "user", content: text("summary ") }] }])
  if (chance(0.3)) {
    hooks.prepareNextTurn = [
      {
        n: int(1, 3),
        ...hookDelay(),
        ...fail(0.12),
        ...(chance(0.4) ? { model: "m2" } : {}),
        ...(chance(0.4) ? { thinkingLevel: pick(["off", "low", "high"]) } : {}),
        ...(chance(0.3) ? { messages: [{ role: "user", content: text("prepared ") }] } : {}),
        ...(chance(0.3) ? { context: context() } : {})
      },
      { ...hookDelay() }
    ]
  }
  if (chance(0.25)) {
    hooks.prepareRequest = [{
      n: int(1, 3),
      ...hookDelay(),
      ...fail(0.12),
      ...(chance(0.4) ? { model: "m3" } : {}),
      ...(chance(0.3) ? { thinkingLevel: pick(["off", "medium"]) } : {}),
      ...(chance(0.2) ? { context: { keepLast: int(2, 6), keepSystem: true } } : {})
    }]
  }
  if (chance(0.2)) {
    hooks.transformContext = [{
      ...(chance(0.5) ? { n: int(1, 3) } : {}),
      keepLast: int(3, 8),
      keepSystem: chance(0.8),
      ...hookDelay(),
      ...fail(0.08)
    }]
  }
  if (chance(0.25)) hooks.convertToLlm = [{ roles: { note: pick(["user", "drop"]) }, ...hookDelay() }]
  if (chance(0.1)) hooks.getApiKey = [{ n: 1, key: "k1" }, { key: "k2", ...hookDelay() }]

  // ---- listeners: never slow on events of parallel tools in the safe profile
  const listeners = []
  if (!calm && chance(0.25)) {
    const calmEvents = ["message_start", "message_end", "turn_start", "turn_end", "agent_end", "agent_start"]
    listeners.push({
      name: "slow",
      rules: [{
        on: pick(safe ? calmEvents : [...calmEvents, "message_update", "tool_execution_end", "tool_execution_update"]),
        nth: int(1, 4),
        delay: dur()
      }]
    })
  }
  if (chance(0.2)) {
    listeners.push({
      name: "talker",
      rules: [{
        on: pick(["turn_end", "message_end", "agent_end", "tool_execution_end"]),
        nth: int(1, 3),
        do: [{ do: pick(["steer", "followUp"]), message: text("from listener ") }]
      }]
    })
  }
  if (!safe && chance(0.08)) {
    listeners.push({
      name: "broken",
      rules: [{
        on: pick([
          "turn_start",
          "turn_end",
          "message_start",
          "message_end",
          "message_update",
          "agent_end",
          "agent_start"
        ]),
        nth: int(1, 4),
        throws: text("listener failed ")
      }]
    })
  }

  // ---- timeline
  const at = new Set()
  const when = (lo, hi) => {
    for (;;) {
      const t = int(lo, hi)
      if (!at.has(t)) {
        at.add(t)
        return t
      }
    }
  }
  const note = () => (chance(0.15)
    ? { role: "note", content: text("note ") }
    : chance(0.08)
    ? { role: "system", content: text("rule ") }
    : text("msg "))
  const timeline = []
  const put = (t, action) => timeline.push({ at: t, ...action })
  let start = 1 + int(0, 40)
  at.add(start)
  put(start, { do: "prompt", input: chance(0.2) ? [note(), text("prompt ")] : text("prompt ") })
  const spans = int(1, 4)
  for (let i = 0; i < spans; i++) {
    const end = start + int(600, 3000)
    for (let k = int(0, 4); k > 0; k--) put(when(start + 1, end), { do: "steer", message: note() })
    for (let k = int(0, 2); k > 0; k--) put(when(start + 1, end), { do: "followUp", message: note() })
    if (aborts && chance(0.7)) put(when(start + 1, end), { do: "abort" })
    if (chance(0.3)) put(when(start + 1, end), { do: "peek" })
    if (chance(0.4)) put(when(start + 1, end), { do: "snapshot" })
    if (chance(0.15)) put(when(start + 1, end), { do: "setModel", model: pick(["m1", "m4"]) })
    if (chance(0.15)) put(when(start + 1, end), { do: "setThinkingLevel", level: pick(["off", "low", "high"]) })
    if (chance(0.15)) put(when(start + 1, end), { do: "setTools", tools: toolNames.slice(0, int(0, toolNames.length)) })
    if (chance(0.1)) put(when(start + 1, end), { do: pick(["clearSteering", "clearFollowUp", "clearAll"]) })
    if (chance(0.1)) put(when(start + 1, end), { do: "setSteeringMode", mode: pick(["all", "one-at-a-time"]) })
    if (chance(0.08)) put(when(start + 1, end), { do: "setToolExecution", mode: pick(["parallel", "sequential"]) })
    if (chance(0.08)) put(when(start + 1, end), { do: "reset" })
    if (chance(0.2)) put(when(start + 1, end), { do: "waitIdle" })
    if (chance(0.15)) put(when(start + 1, end), { do: "prompt", input: text("maybe busy ") })
    start = when(end, end + 3000)
    put(start, chance(0.35) ? { do: "continue" } : { do: "prompt", input: text("prompt ") })
  }
  timeline.sort((a, b) => a.at - b.at)

  for (const t of tools) if (t.cases.length === 0) delete t.cases
  const opt = (key, value, p = 0.5) => (chance(p) ? { [key]: value } : {})
  return {
    format: 1,
    name: `gen-${profile}-${seed}`,
    description: `Generated from seed ${seed} (${profile}).`,
    tags: ["generated"],
    agent: {
      ...opt("systemPrompt", "sys"),
      ...opt("thinkingLevel", pick(["low", "medium"]), 0.3),
      tools: toolNames.slice(0, int(1, toolNames.length)),
      ...opt("toolExecution", pick(["parallel", "sequential"]), 0.4),
      ...opt("steeringMode", pick(["all", "one-at-a-time"])),
      ...opt("followUpMode", pick(["all", "one-at-a-time"])),
      ...(chance(0.2) ? { messages: ["old question", { role: "assistant", content: "old answer" }] } : {})
    },
    tools,
    ...(Object.keys(hooks).length ? { hooks } : {}),
    ...(listeners.length ? { listeners } : {}),
    model,
    timeline
  }
}

/** Does an abort fall into a moment where a running hook, listener or tool would be cut short? */
function abortInDispute(scenario, trace) {
  const aborts = scenario.timeline.filter((a) => a.do === "abort").map((a) => a.at)
  return aborts.some((t) => trace.executions.some((x) => x.t <= t && t <= (x.end ?? Infinity)))
}

export async function generate(seed, profile = "full") {
  for (let attempt = 0; attempt < 400; attempt++) {
    const scenario = draw(seed, profile, attempt)
    const errors = validate(scenario)
    if (errors.length > 0) throw new Error(`invalid scenario from seed ${seed}: ${errors[0]}`)
    const trace = await playScenario(scenario)
    if (trace.anomalies.some((a) => a.kind === "tie")) continue
    if (
      profile === "safe" &&
      (trace.anomalies.length > 0 || abortInDispute(scenario, trace) || byRule(scenario, trace).size > 0)
    ) continue
    const plain = JSON.stringify(trace)
    let steady = true
    for (const jitter of [3, 17, 91]) {
      if (JSON.stringify(await playScenario(scenario, { jitter })) !== plain) steady = false
    }
    if (!steady) continue
    return { scenario, trace, attempt }
  }
  throw new Error(`no acceptable scenario for seed ${seed}`)
}

const args = process.argv.slice(2)
if (process.argv[1]?.endsWith("generate.mjs")) {
  const value = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined)
  const profile = value("--profile") ?? "full"
  if (args.includes("--range")) {
    const i = args.indexOf("--range")
    const [from, to] = [Number(args[i + 1]), Number(args[i + 2])]
    const out = value("--out")
    if (out) writeFileSync(out, "")
    const stats = {
      scenarios: 0,
      redrawn: 0,
      events: 0,
      requests: 0,
      executions: 0,
      aborts: 0,
      withAnomaly: 0,
      crashed: 0
    }
    const kinds = {}
    for (let seed = from; seed <= to; seed++) {
      try {
        const { scenario, trace, attempt } = await generate(seed, profile)
        const again = JSON.stringify((await generate(seed, profile)).trace)
        if (again !== JSON.stringify(trace)) throw new Error("not reproducible")
        stats.scenarios++
        stats.redrawn += attempt
        stats.events += trace.events.length
        stats.requests += trace.requests.length
        stats.executions += trace.executions.length
        stats.aborts += scenario.timeline.filter((a) => a.do === "abort").length
        if (trace.anomalies.length) stats.withAnomaly++
        for (const k of new Set(trace.anomalies.map((a) => a.kind))) kinds[k] = (kinds[k] ?? 0) + 1
        if (out) appendFileSync(out, `${JSON.stringify({ scenario, trace })}\n`)
      } catch (error) {
        stats.crashed++
        console.log(`seed ${seed}: ${error.stack}`)
      }
    }
    console.log(JSON.stringify({ profile, from, to, ...stats, anomalies: kinds }, null, 1))
  } else {
    const { scenario, trace } = await generate(Number(args[0] ?? 1), profile)
    process.stdout.write(formatScenario(scenario))
    if (args.includes("--play")) console.log(summarize(trace))
  }
}
