// From the values of a scenario (SCENARIO.md, section 3) to messages, for both players: the messages of pi-agent-core and of this
// library have the same shape.

/** A copy without the fields that are undefined. */
export const compact = (object) => Object.fromEntries(Object.entries(object).filter(([, v]) => v !== undefined))

export const DEFAULT_SCHEMA = { type: "object", properties: {} }
export const describeTool = (name) => `${name} tool`

/** Whether everything in the pattern is in the value. */
export const partialMatch = (pattern, value) => {
  if (pattern === null || typeof pattern !== "object") return Object.is(pattern, value)
  if (value === null || typeof value !== "object") return false
  return Object.entries(pattern).every(([k, v]) => partialMatch(v, value[k]))
}

/** The last messages; with `keepSystem` all system messages and the last others. */
export const keepLast = (messages, spec) => {
  if (!spec.keepSystem) return messages.slice(-spec.keepLast)
  const rest = new Set(messages.filter((m) => m.role !== "system").slice(-spec.keepLast))
  return messages.filter((m) => m.role === "system" || rest.has(m))
}

export const blockIn = (b) => {
  if ("text" in b) return { type: "text", text: b.text }
  if ("thinking" in b) return { type: "thinking", thinking: b.thinking }
  if ("call" in b) return { type: "toolCall", id: b.call, name: b.tool, arguments: structuredClone(b.args ?? {}) }
  if ("image" in b) return { type: "image", data: b.image, mimeType: b.mime }
  throw new Error(`bad block ${JSON.stringify(b)}`)
}
export const contentIn = (c) => (typeof c === "string" ? [{ type: "text", text: c }] : (c ?? []).map(blockIn))

export const usage = () => ({
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
})
export const modelIn = (id) => ({
  id,
  name: id,
  api: "scripted",
  provider: "scripted",
  baseUrl: "",
  reasoning: true,
  input: ["text", "image"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 100000,
  maxTokens: 1000
})

/** What a tool says of itself: the declaration of a tool definition, or of a declaration in a system message. */
export const declarationIn = (t) => ({
  name: t.name,
  description: t.description ?? describeTool(t.name),
  parameters: structuredClone(t.parameters ?? DEFAULT_SCHEMA)
})

/** A message; `declarationOf` finds the declaration of a tool key. */
export const messageIn = (m, timestamp, declarationOf) => {
  if (typeof m === "string") m = { role: "user", content: m }
  switch (m.role) {
    case "user":
      return { role: "user", content: contentIn(m.content), timestamp }
    case "assistant":
      return {
        role: "assistant",
        content: contentIn(m.content),
        api: "scripted",
        provider: "scripted",
        model: m.model ?? "m1",
        usage: usage(),
        stopReason: m.stopReason ?? "stop",
        ...(m.errorMessage ? { errorMessage: m.errorMessage } : {}),
        timestamp
      }
    case "toolResult":
      return compact({
        role: "toolResult",
        toolCallId: m.call,
        toolName: m.tool,
        content: contentIn(m.content),
        details: structuredClone(m.details),
        isError: m.isError ?? false,
        timestamp
      })
    case "system":
      return compact({
        role: "system",
        content: m.content ?? "",
        sections: structuredClone(m.sections),
        toolsAdded: m.toolsAdded?.map((t) => (typeof t === "string" ? declarationOf(t) : declarationIn(t))),
        toolsRemoved: m.toolsRemoved?.map((name) => ({ name })),
        timestamp
      })
    default:
      return { ...structuredClone(m), timestamp }
  }
}

/** The result of a behaviour of SCENARIO.md, section 4. */
export const resultIn = (b) =>
  compact({
    content: b.noContent ? undefined : contentIn(b.content ?? "ok"),
    details: structuredClone(b.details),
    structuredContent: structuredClone(b.structuredContent),
    usage: structuredClone(b.usage),
    isError: b.isError,
    terminate: b.terminate
  })

/** The arguments as `prepareArguments` of a tool leaves them. */
export const prepareArguments = (rule, args) => {
  if (rule.throws !== undefined) throw new Error(rule.throws)
  const out = rule.inPlace ? args : { ...args }
  for (const [from, to] of Object.entries(rule.rename ?? {})) {
    if (from in out) {
      out[to] = out[from]
      delete out[from]
    }
  }
  return Object.assign(out, structuredClone(rule.set ?? {}))
}

/** The case of a tool that fits an execution, over the tool's own behaviour. */
export const behaviourOf = (def, call, nth, args) => {
  const found = (def.cases ?? []).find(
    ({ when }) =>
      (when.call === undefined || when.call === call) &&
      (when.nth === undefined || when.nth === nth) &&
      (when.args === undefined || partialMatch(when.args, args))
  )
  return { ...def, ...found }
}

/** Whether the `match` of a rule fits the facts of a tool call. */
export const matchesCall = (match, facts) =>
  (match.tool === undefined || match.tool === facts.tool) &&
  (match.call === undefined || match.call === facts.call) &&
  (match.isError === undefined || match.isError === facts.isError) &&
  (match.args === undefined || partialMatch(match.args, facts.args))

/** The stream events of a response by the time they are due, counted from the opening of the stream. */
export const eventGroups = (events) => {
  const groups = []
  let due = 0
  for (const e of events ?? []) {
    due = e.at ?? due
    if (groups.at(-1)?.due === due) groups.at(-1).events.push(e)
    else groups.push({ due, events: [e] })
  }
  return groups
}

const KNOWN_ROLES = new Set(["system", "user", "assistant", "toolResult"])

/** The conversion of SCENARIO.md, section 6, with the `roles` of a rule. */
export const convertMessages = (messages, roles = {}) =>
  messages.flatMap((m) => {
    const to = roles[m.role] ?? (KNOWN_ROLES.has(m.role) ? "keep" : "drop")
    if (to === "keep") return [m]
    if (to === "drop") return []
    return [{ role: "user", content: contentIn(m.content), timestamp: m.timestamp }]
  })
