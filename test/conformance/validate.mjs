#!/usr/bin/env node
// Checks scenario files against the format of SCENARIO.md (keys, types, time rules).
//   node validate.mjs scenarios/*.json
import { readFileSync } from "node:fs"

const isInt = (v) => Number.isInteger(v) && v >= 0
const str = (v) => typeof v === "string"
const bool = (v) => typeof v === "boolean"
const any = () => true
const obj = (v) => v !== null && typeof v === "object" && !Array.isArray(v)
const oneOf = (...xs) => (v) => xs.includes(v)
const listOf = (check) => (v, path, errors) => {
  if (!Array.isArray(v)) return false
  v.forEach((x, i) => run(check, x, `${path}[${i}]`, errors))
  return true
}
const mapOf = (check) => (v, path, errors) => {
  if (!obj(v)) return false
  for (const [k, x] of Object.entries(v)) run(check, x, `${path}.${k}`, errors)
  return true
}
const either = (...checks) => (v, path) => {
  for (const c of checks) {
    const trial = []
    if (run(c, v, path, trial) && trial.length === 0) return true
  }
  return false
}
/** "key!" is required. */
const shape = (spec) => (v, path, errors) => {
  if (!obj(v)) return false
  const keys = new Map(
    Object.entries(spec).map(([k, c]) => [k.replace("!", ""), { check: c, required: k.endsWith("!") }])
  )
  for (const k of Object.keys(v)) if (!keys.has(k)) errors.push(`${path}: unknown key ${k}`)
  for (const [k, { check, required }] of keys) {
    if (v[k] === undefined) {
      if (required) errors.push(`${path}: missing ${k}`)
    } else run(check, v[k], `${path}.${k}`, errors)
  }
  return true
}
function run(check, v, path, errors) {
  const ok = check(v, path, errors)
  if (!ok) errors.push(`${path}: bad value ${JSON.stringify(v)?.slice(0, 80)}`)
  return ok
}

const level = oneOf("off", "minimal", "low", "medium", "high", "xhigh", "max")
const queueMode = oneOf("all", "one-at-a-time")
const execMode = oneOf("sequential", "parallel")
const stop = oneOf("stop", "length", "toolUse", "error", "aborted", "deferred")
const block = either(
  shape({ "text!": str }),
  shape({ "thinking!": str }),
  shape({ "call!": str, "tool!": str, args: obj }),
  shape({ "image!": str, "mime!": str })
)
const content = either(str, listOf(block))
const declared = either(str, shape({ "name!": str, description: str, parameters: obj }))
const message = (v, path, errors) => {
  if (str(v)) return true
  if (!obj(v) || !str(v.role)) return false
  const shapes = {
    user: shape({ "role!": str, "content!": content }),
    assistant: shape({ "role!": str, "content!": content, stopReason: stop, errorMessage: str, model: str }),
    toolResult: shape({ "role!": str, "call!": str, "tool!": str, "content!": content, details: any, isError: bool }),
    system: shape({
      "role!": str,
      content: content,
      sections: mapOf((x) => x === null || str(x)),
      toolsAdded: listOf(declared),
      toolsRemoved: listOf(str)
    })
  }
  const known = Object.hasOwn(shapes, v.role) ? shapes[v.role] : shape({ "role!": str, "content!": content })
  return known(v, path, errors)
}
const messages = listOf(message)

const agent = shape({
  systemPrompt: str,
  model: str,
  thinkingLevel: level,
  tools: listOf(str),
  messages,
  toolExecution: execMode,
  steeringMode: queueMode,
  followUpMode: queueMode,
  sessionId: str
})

const nested = shape({ "call!": str, "tool!": str, args: obj, tools: listOf(str) })
const abortTool = either(
  oneOf("stop", "ignore"),
  shape({ after: isInt, content, details: any, isError: bool, throws: str })
)
let actionsLazy
const actions = (v, path, errors) => actionsLazy(v, path, errors)
const behaviour = {
  delay: isInt,
  content,
  noContent: bool,
  details: any,
  structuredContent: any,
  usage: obj,
  terminate: bool,
  isError: bool,
  throws: str,
  throwsRaw: bool,
  updates: listOf(shape({ "at!": isInt, content, details: any })),
  onAbort: abortTool,
  nested: listOf(nested),
  do: actions
}
const tool = shape({
  "name!": str,
  key: str,
  label: str,
  description: str,
  parameters: obj,
  executionMode: execMode,
  prepareArguments: shape({ rename: mapOf(str), set: obj, throws: str, inPlace: bool }),
  ...behaviour,
  cases: listOf(shape({ "when!": shape({ call: str, args: obj, nth: isInt }), ...behaviour }))
})

const streamEvent = either(
  shape({ at: isInt, "type!": oneOf("start") }),
  shape({ at: isInt, "type!": oneOf("text_start", "thinking_start") }),
  shape({ at: isInt, "type!": oneOf("text_delta", "thinking_delta", "toolcall_delta"), index: isInt, "delta!": str }),
  shape({ at: isInt, "type!": oneOf("text_end", "thinking_end"), index: isInt }),
  shape({ at: isInt, "type!": oneOf("toolcall_start"), "call!": str, "tool!": str }),
  shape({ at: isInt, "type!": oneOf("toolcall_end"), index: isInt, args: obj }),
  shape({ at: isInt, "type!": oneOf("done", "error"), stopReason: stop, content, errorMessage: str }),
  shape({ at: isInt, "type!": oneOf("end"), stopReason: stop, content, errorMessage: str, noResult: bool }),
  shape({ at: isInt, "type!": oneOf("throw"), "message!": str })
)
const response = shape({
  setup: isInt,
  throws: str,
  throwsRaw: bool,
  events: listOf(streamEvent),
  onAbort: either(oneOf("error", "ignore", "throw"), isInt),
  sharedPartial: bool,
  frozen: bool
})

const rule = { times: isInt, delay: isInt, throws: str, onAbort: oneOf("ignore", "throw"), do: actions }
const match = shape({ tool: str, call: str, args: obj, isError: bool })
const context = shape({
  messages: either(oneOf("live"), messages),
  keepLast: isInt,
  keepSystem: bool,
  tools: listOf(str)
})
const hooks = shape({
  beforeToolCall: listOf(shape({ match, ...rule, block: bool, reason: str, terminate: bool, setArgs: obj })),
  afterToolCall: listOf(
    shape({
      match,
      ...rule,
      patch: shape({ content, details: any, structuredContent: any, usage: obj, isError: bool, terminate: bool })
    })
  ),
  finishTurn: listOf(shape({ n: isInt, stopReason: stop, ...rule, action: oneOf("end", "continue") })),
  prepareNextTurn: listOf(
    shape({ n: isInt, stopReason: stop, ...rule, model: str, thinkingLevel: level, messages, context })
  ),
  prepareRequest: listOf(shape({ n: isInt, ...rule, model: str, thinkingLevel: level, context })),
  transformContext: listOf(shape({ n: isInt, ...rule, keepLast: isInt, keepSystem: bool, inPlace: bool })),
  convertToLlm: listOf(shape({ n: isInt, ...rule, roles: mapOf(oneOf("user", "drop", "keep")) })),
  getApiKey: listOf(shape({ n: isInt, ...rule, key: str }))
})
const eventType = oneOf(
  "agent_start",
  "agent_end",
  "turn_start",
  "turn_end",
  "message_start",
  "message_update",
  "message_end",
  "tool_execution_start",
  "tool_execution_update",
  "tool_execution_end"
)
const listener = shape({
  "name!": str,
  initially: bool,
  "rules!": listOf(
    shape({
      "on!": eventType,
      role: str,
      call: str,
      nth: isInt,
      delay: isInt,
      throws: str,
      do: actions,
      mutate: content
    })
  )
})

const lowContext = shape({ messages, tools: listOf(str) })
const actionShapes = {
  prompt: { "input!": either(message, messages), images: listOf(block) },
  continue: {},
  abort: {},
  reset: {},
  waitIdle: {},
  peek: {},
  snapshot: {},
  clearSteering: {},
  clearFollowUp: {},
  clearAll: {},
  steer: { "message!": message },
  followUp: { "message!": message },
  pushMessage: { "message!": message },
  setTools: { "tools!": listOf(str) },
  setModel: { "model!": str },
  setThinkingLevel: { "level!": level },
  setMessages: { "messages!": messages },
  setSteeringMode: { "mode!": queueMode },
  setFollowUpMode: { "mode!": queueMode },
  setToolExecution: { "mode!": execMode },
  setSessionId: { "id!": str },
  subscribe: { "listener!": str },
  unsubscribe: { "listener!": str },
  loop: { "prompts!": messages, "context!": lowContext },
  loopContinue: { "context!": lowContext },
  loopStream: { "prompts!": messages, "context!": lowContext }
}
const action = (timed) => (v, path, errors) => {
  if (!obj(v) || !Object.hasOwn(actionShapes, v.do)) return false
  return shape({ ...(timed ? { "at!": isInt } : {}), "do!": str, ...actionShapes[v.do] })(v, path, errors)
}
actionsLazy = listOf(action(false))

const TAGS = ["microtask", "low-level", "hang", "ignores-abort", "abort-aware-result", "slow-abort", "generated"]
const scenario = shape({
  "format!": oneOf(1),
  "name!": str,
  "description!": str,
  covers: listOf(str),
  divergence: str,
  tags: listOf(oneOf(...TAGS)),
  "agent!": agent,
  tools: listOf(tool),
  hooks,
  listeners: listOf(listener),
  "model!": listOf(response),
  "timeline!": listOf(action(true))
})

export function validate(s) {
  const errors = []
  run(scenario, s, s?.name ?? "scenario", errors)
  if (errors.length > 0) return errors
  let last = -1
  for (const a of s.timeline) {
    if (a.at <= last) errors.push(`timeline: ${a.do}@${a.at} is not later than the action before it`)
    last = a.at
  }
  s.model.forEach((r, i) => {
    let t = 0
    for (const e of r.events ?? []) {
      if (e.at !== undefined && e.at < t) errors.push(`model[${i}]: stream events go back in time`)
      t = e.at ?? t
    }
    if (r.throws !== undefined && r.events) errors.push(`model[${i}]: throws and events`)
  })
  const keys = new Set((s.tools ?? []).map((t) => t.key ?? t.name))
  if (keys.size !== (s.tools ?? []).length) errors.push("tools: duplicate keys")
  for (const k of s.agent.tools ?? []) if (!keys.has(k)) errors.push(`agent.tools: no tool ${k}`)
  return errors
}

if (process.argv[1]?.endsWith("validate.mjs")) {
  let bad = 0
  for (const file of process.argv.slice(2)) {
    for (const e of validate(JSON.parse(readFileSync(file, "utf8")))) {
      bad++
      console.log(`${file}: ${e}`)
    }
  }
  console.log(`${process.argv.length - 2} files, ${bad} problems`)
  process.exit(bad ? 1 : 0)
}
