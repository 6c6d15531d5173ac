#!/usr/bin/env node
// Plays one scenario (SCENARIO.md) against the real @earendil-works/pi-agent-core under
// virtual time and prints the trace as JSON.
//
//   node player-pi.mjs scenarios/x.json            trace on stdout
//   node player-pi.mjs - < x.json                  scenario on stdin
//   --jitter N   insert seeded random microtask hops at every async boundary the player owns;
//                a trace that changes under jitter depends on microtask scheduling
//   --compact    one line of JSON
//
// The packages are the ones in the project's node_modules, whatever the current folder is.
import { existsSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { findAnomalies } from "./anomalies.mjs"
import { json, normEvent, normMessage, normMessages, normResult, ROLE_LETTER, roles, showTool } from "./normalize.mjs"
import {
  behaviourOf,
  blockIn,
  compact,
  contentIn,
  convertMessages,
  DEFAULT_SCHEMA,
  describeTool,
  eventGroups,
  keepLast,
  matchesCall,
  messageIn,
  modelIn,
  prepareArguments,
  resultIn,
  usage
} from "./values.mjs"

const locate = (file) => new URL(`../../node_modules/@earendil-works/${file}`, import.meta.url)
const load = (file) => import(locate(file).href)
const core = await load("pi-agent-core/dist/index.js")
const transcript = await load("pi-ai/dist/utils/transcript.js")
export const piVersion = JSON.parse(readFileSync(locate("pi-agent-core/package.json"), "utf8")).version

const MAX_TIMERS = 20_000
const ABORTED_MODEL = "Request was aborted"
const ABORTED_TOOL = "Operation aborted"

// ---------------------------------------------------------------- virtual clock

class Clock {
  now = 0
  seq = 0
  timers = []
  ties = []
  /** Resolves at virtual time `due`. `group` names the activity; same group = not a tie. */
  until(due, group) {
    const timer = { due, seq: this.seq++, group, cancelled: false }
    timer.promise = new Promise((r) => (timer.resolve = r))
    this.timers.push(timer)
    return timer
  }
  /** Fires the earliest timer; false when none is left. */
  step() {
    this.timers = this.timers.filter((t) => !t.cancelled)
    if (this.timers.length === 0) return false
    this.timers.sort((a, b) => a.due - b.due || a.seq - b.seq)
    const timer = this.timers.shift()
    const rival = this.timers.find((t) => t.due === timer.due && t.group !== timer.group)
    if (rival) this.ties.push({ t: timer.due, between: [timer.group, rival.group] })
    this.now = timer.due
    timer.resolve()
    return true
  }
}

/** Deterministic 32-bit PRNG. */
export function mulberry32(seed) {
  let a = seed >>> 0
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let x = Math.imul(a ^ (a >>> 15), 1 | a)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296
  }
}

// ---------------------------------------------------------------- the scripted stream

class ScriptedStream {
  items = []
  waiting = []
  closed = false
  constructor() {
    this.finalMessage = new Promise((r) => (this.resolveFinal = r))
  }
  #put(item) {
    if (this.closed) return
    if (item.end || item.error) this.closed = true
    const waiter = this.waiting.shift()
    if (waiter) waiter(item)
    else this.items.push(item)
  }
  push(value) {
    if (value.type === "done") this.resolveFinal(value.message)
    if (value.type === "error") this.resolveFinal(value.error)
    this.#put({ value })
  }
  end(message) {
    if (message) this.resolveFinal(message)
    this.#put({ end: true })
  }
  fail(error) {
    this.#put({ error })
  }
  async *[Symbol.asyncIterator]() {
    while (true) {
      const item = this.items.length > 0 ? this.items.shift() : await new Promise((r) => this.waiting.push(r))
      if (item.error) throw item.error
      if (item.end) return
      yield item.value
    }
  }
  result() {
    return this.finalMessage
  }
}

// ---------------------------------------------------------------- playing

export async function playScenario(scenario, options = {}) {
  const clock = new Clock()
  const rand = options.jitter ? mulberry32(options.jitter) : undefined
  const hop = async () => {
    if (!rand) return
    for (let n = Math.floor(rand() * 24); n > 0; n--) await Promise.resolve()
  }
  const realNow = Date.now
  const trace = {
    scenario: scenario.name,
    events: [],
    requests: [],
    executions: [],
    hooks: [],
    listeners: [],
    actions: [],
    inner: [],
    final: undefined,
    unhandled: []
  }
  const raw = { events: [], queued: [], dropped: new Set(), runs: [] }
  const onUnhandled = (error) =>
    trace.unhandled.push({ t: clock.now, error: error instanceof Error ? error.message : String(error) })
  let failure
  const fatal = (error) => (failure ??= error)

  // ---- building blocks from scenario values

  const registry = new Map()
  const messageNow = (m) => messageIn(m, clock.now, (key) => transcript.toToolDeclaration(toolByKey(key)))
  const messagesNow = (ms) => (ms ?? []).map(messageNow)
  const sleep = async (ms, group, signal) => {
    if (!(ms > 0)) return
    const timer = clock.until(clock.now + ms, group)
    if (signal) {
      let stop
      const aborted = new Promise((_, reject) => {
        stop = () => {
          timer.cancelled = true
          reject(new Error(ABORTED_TOOL))
        }
        if (signal.aborted) stop()
        else signal.addEventListener("abort", stop, { once: true })
      })
      try {
        await Promise.race([timer.promise, aborted])
      } finally {
        signal.removeEventListener("abort", stop)
      }
    } else await timer.promise
    await hop()
  }

  // ---- tools

  let groupSeq = 0
  const executionCounts = new Map()
  let lastAssistant
  const buildTool = (def) => ({
    name: def.name,
    label: def.label ?? def.name,
    description: def.description ?? describeTool(def.name),
    parameters: structuredClone(def.parameters ?? DEFAULT_SCHEMA),
    ...(def.executionMode ? { executionMode: def.executionMode } : {}),
    ...(def.prepareArguments
      ? {
        prepareArguments: (args) => prepareArguments(def.prepareArguments, args)
      }
      : {}),
    execute: async (id, args, signal, onUpdate) => {
      const nth = (executionCounts.get(def.name) ?? 0) + 1
      executionCounts.set(def.name, nth)
      const b = behaviourOf(def, id, nth, args)
      const group = `tool:${id}#${groupSeq++}`
      const record = { t: clock.now, call: id, tool: def.name, args: json(args) }
      trace.executions.push(record)
      const settle = (how) => {
        record.end = clock.now
        record.how = how
      }
      runInner(b.do, group)
      const started = clock.now
      let stopped = false
      const updateTimers = []
      for (const u of b.updates ?? []) {
        const emitUpdate = () => onUpdate?.(resultIn({ content: u.content ?? "", details: u.details }))
        if (u.at > 0) {
          // An update may outlive its tool on purpose: the agent must ignore late ones.
          const timer = clock.until(started + u.at, group)
          updateTimers.push(timer)
          timer.promise.then(hop).then(() => (stopped ? undefined : emitUpdate()))
        } else emitUpdate()
      }
      const mode = b.onAbort ?? "stop"
      try {
        if (mode === "ignore") await sleep(b.delay ?? 0, group)
        else {
          if (signal?.aborted) throw new Error(ABORTED_TOOL)
          await sleep(b.delay ?? 0, group, signal)
        }
        if (b.nested) {
          const outcomes = []
          for (const n of b.nested) {
            const outcome = await core.runToolCall(
              { type: "toolCall", id: n.call, name: n.tool, arguments: structuredClone(n.args ?? {}) },
              {
                tools: (n.tools ?? (scenario.tools ?? []).map((x) => x.key ?? x.name)).map(toolByKey),
                assistantMessage: lastAssistant,
                context: { messages: agent.state.messages.slice(), tools: agent.state.tools },
                signal,
                onUpdate: (partial) => onUpdate?.(partial),
                beforeToolCall: hookFns.beforeToolCall,
                afterToolCall: hookFns.afterToolCall
              }
            )
            outcomes.push(
              compact({ call: outcome.toolCall.id, isError: outcome.isError, result: normResult(outcome.result) })
            )
          }
          await hop()
          settle("returned")
          return {
            content: contentIn(outcomes.map((o) => `${o.call}:${o.isError ? "error" : "ok"}`).join(" ")),
            details: { outcomes }
          }
        }
      } catch (error) {
        if (error.message !== ABORTED_TOOL || !signal?.aborted) throw error
        stopped = true
        for (const timer of updateTimers) timer.cancelled = true
        const rule = typeof mode === "object" ? mode : {}
        await sleep(rule.after ?? 0, group)
        settle("aborted")
        await hop()
        if (rule.content !== undefined) return resultIn(rule)
        throw new Error(rule.throws ?? ABORTED_TOOL, { cause: error })
      }
      await hop()
      if (b.throws !== undefined) {
        settle("threw")
        // `throwsRaw` throws a bare string instead of an Error.
        throw b.throwsRaw ? b.throws : new Error(b.throws)
      }
      settle("returned")
      return resultIn(b)
    }
  })
  for (const def of scenario.tools ?? []) registry.set(def.key ?? def.name, buildTool(def))
  function toolByKey(key) {
    const tool = registry.get(key)
    if (!tool) throw new Error(`scenario has no tool ${key}`)
    return tool
  }

  // ---- hooks

  const hooks = scenario.hooks ?? {}
  const counters = {}
  const resetRunCounters = () => {
    for (
      const k of ["finishTurn", "prepareNextTurn", "prepareRequest", "transformContext", "convertToLlm", "getApiKey"]
    ) counters[k] = 0
  }
  const ruleUses = new Map()
  const log = (hook, fields) => trace.hooks.push(compact({ t: clock.now, hook, ...fields }))
  const unspent = (rule) => rule.times === undefined || (ruleUses.get(rule) ?? 0) < rule.times
  /** The shared part of every rule: run its actions, wait, throw. */
  const applyRule = async (rule, hook, signal) => {
    if (!rule) return
    ruleUses.set(rule, (ruleUses.get(rule) ?? 0) + 1)
    runInner(rule.do, hook)
    await sleep(rule.delay ?? 0, `hook:${hook}#${groupSeq++}`, rule.onAbort === "throw" ? signal : undefined)
    await hop()
    if (rule.throws !== undefined) throw new Error(rule.throws)
  }
  const toolRule = (rules, facts) => rules.find((r) => unspent(r) && matchesCall(r.match ?? {}, facts))
  const numberedRule = (hook, facts = {}) => {
    counters[hook] = (counters[hook] ?? 0) + 1
    const n = counters[hook]
    const rule = (hooks[hook] ?? []).find((r) =>
      unspent(r) && (r.n === undefined || r.n === n) &&
      (r.stopReason === undefined || r.stopReason === facts.stopReason)
    )
    return { n, rule }
  }
  const contextIn = (spec, context) => {
    if (!spec) return undefined
    const messages = spec.messages === "live"
      ? agent.state.messages
      : spec.messages
      ? messagesNow(spec.messages)
      : spec.keepLast !== undefined
      ? keepLast(context.messages, spec)
      : context.messages.slice()
    return { ...context, messages, tools: spec.tools ? spec.tools.map(toolByKey) : context.tools }
  }
  const update = (rule, context) =>
    rule &&
    compact({
      context: contextIn(rule.context, context),
      messages: rule.messages && messagesNow(rule.messages),
      model: rule.model && modelIn(rule.model),
      thinkingLevel: rule.thinkingLevel
    })
  const hookFns = compact({
    beforeToolCall: hooks.beforeToolCall &&
      (async ({ toolCall, args, context }, signal) => {
        log("beforeToolCall", {
          call: toolCall.id,
          tool: toolCall.name,
          args: json(args),
          context: roles(context.messages)
        })
        const rule = toolRule(hooks.beforeToolCall, { call: toolCall.id, tool: toolCall.name, args })
        await applyRule(rule, "beforeToolCall", signal)
        if (rule?.setArgs) Object.assign(args, structuredClone(rule.setArgs))
        return rule && compact({ block: rule.block, reason: rule.reason, terminate: rule.terminate })
      }),
    afterToolCall: hooks.afterToolCall &&
      (async ({ toolCall, args, isError, result }, signal) => {
        log("afterToolCall", {
          call: toolCall.id,
          tool: toolCall.name,
          args: json(args),
          isError,
          result: normResult(result)
        })
        const rule = toolRule(hooks.afterToolCall, { call: toolCall.id, tool: toolCall.name, args, isError })
        await applyRule(rule, "afterToolCall", signal)
        if (!rule?.patch) return undefined
        const patch = structuredClone(rule.patch)
        if (patch.content !== undefined) patch.content = contentIn(patch.content)
        return patch
      }),
    finishTurn: hooks.finishTurn &&
      (async ({ message, toolResults, context, newMessages }, signal) => {
        const { n, rule } = numberedRule("finishTurn", { stopReason: message.stopReason })
        log("finishTurn", {
          n,
          stopReason: message.stopReason,
          toolResults: toolResults.map((r) => r.toolCallId),
          context: roles(context.messages),
          newMessages: roles(newMessages)
        })
        await applyRule(rule, "finishTurn", signal)
        return rule?.action ? { action: rule.action } : undefined
      }),
    prepareNextTurnWithContext: hooks.prepareNextTurn &&
      (async ({ message, toolResults, context, newMessages }, signal) => {
        const { n, rule } = numberedRule("prepareNextTurn", { stopReason: message.stopReason })
        log("prepareNextTurn", {
          n,
          stopReason: message.stopReason,
          toolResults: toolResults.map((r) => r.toolCallId),
          context: roles(context.messages),
          newMessages: roles(newMessages)
        })
        await applyRule(rule, "prepareNextTurn", signal)
        return update(rule, context)
      }),
    prepareRequest: hooks.prepareRequest &&
      (async ({ context, model, thinkingLevel }, signal) => {
        const { n, rule } = numberedRule("prepareRequest")
        log("prepareRequest", { n, model: model.id, thinkingLevel, context: roles(context.messages) })
        await applyRule(rule, "prepareRequest", signal)
        return update(rule && { ...rule, messages: undefined }, context)
      }),
    transformContext: hooks.transformContext &&
      (async (messages, signal) => {
        const { n, rule } = numberedRule("transformContext")
        log("transformContext", { n, context: roles(messages) })
        await applyRule(rule, "transformContext", signal)
        if (rule?.keepLast === undefined) return messages
        if (rule.inPlace) {
          messages.splice(0, messages.length - rule.keepLast)
          return messages
        }
        return keepLast(messages, rule)
      }),
    convertToLlm: hooks.convertToLlm &&
      (async (messages) => {
        const { n, rule } = numberedRule("convertToLlm")
        log("convertToLlm", { n, context: roles(messages) })
        await applyRule(rule, "convertToLlm")
        return convertMessages(messages, rule?.roles)
      }),
    getApiKey: hooks.getApiKey &&
      (async () => {
        const { n, rule } = numberedRule("getApiKey")
        log("getApiKey", { n })
        await applyRule(rule, "getApiKey")
        return rule?.key
      })
  })

  // ---- the scripted model

  let responses = 0
  const streamFn = async (model, context, requestOptions) => {
    const signal = requestOptions?.signal
    const preAborted = signal?.aborted === true
    const n = trace.requests.length + 1
    trace.requests.push(
      compact({
        t: clock.now,
        n,
        model: model.id,
        thinkingLevel: requestOptions?.reasoning ?? "off",
        apiKey: requestOptions?.apiKey,
        sessionId: requestOptions?.sessionId,
        aborted: preAborted || undefined,
        tools: transcript.getCurrentTools(context.messages).map(showTool),
        messages: normMessages(context.messages)
      })
    )
    const group = `model:${n}`
    const stream = new ScriptedStream()
    const message = {
      role: "assistant",
      content: [],
      api: model.api,
      provider: model.provider,
      model: model.id,
      usage: usage(),
      stopReason: "pending",
      timestamp: clock.now
    }
    const finish = (extra, content) => ({
      ...message,
      content: content === undefined ? structuredClone(message.content) : contentIn(content),
      ...extra,
      timestamp: clock.now
    })
    const abortedEvent = () => ({
      type: "error",
      reason: "aborted",
      error: finish({ stopReason: "aborted", errorMessage: ABORTED_MODEL })
    })
    if (preAborted) {
      // A dead signal never consumes a scripted response.
      await hop()
      stream.push(abortedEvent())
      return stream
    }
    const response = scenario.model?.[responses++]
    await hop()
    if (!response) throw new Error(`no scripted response for request ${n}`)
    const mode = response.onAbort ?? "error"
    let over = false // the response is complete: an abort has no effect any more
    let cut = false // the abort has cut the script short
    let resolveAbort
    const abortReaction = new Promise((r) => (resolveAbort = r))
    const timers = []
    let opened = !(response.setup > 0)
    if (mode !== "ignore") {
      signal?.addEventListener(
        "abort",
        async () => {
          if (over) return
          for (const timer of timers) timer.cancelled = true
          over = cut = true
          if (typeof mode === "number") await sleep(mode, group)
          await hop()
          const fail = mode === "throw" ? new Error(ABORTED_MODEL) : undefined
          if (!opened) resolveAbort({ fail })
          else if (fail) stream.fail(fail)
          else stream.push(abortedEvent())
        },
        { once: true }
      )
    }
    if (response.setup > 0) {
      const timer = clock.until(clock.now + response.setup, group)
      timers.push(timer)
      const early = await Promise.race([timer.promise, abortReaction])
      opened = true
      await hop()
      if (early) {
        if (early.fail) throw early.fail
        stream.push(abortedEvent())
        return stream
      }
    }
    if (response.throws !== undefined) {
      over = true
      throw response.throwsRaw ? response.throws : new Error(response.throws)
    }

    const blocks = message.content
    const partial = () => (response.sharedPartial ? message : { ...message, content: structuredClone(message.content) })
    const emitOne = (e) => {
      const [kind, phase] = e.type.split("_")
      if (phase === "start") {
        blocks.push(
          kind === "text"
            ? { type: "text", text: "" }
            : kind === "thinking"
            ? { type: "thinking", thinking: "" }
            : { type: "toolCall", id: e.call, name: e.tool, arguments: {} }
        )
      }
      const contentIndex = e.index ?? blocks.length - 1
      const block = blocks[contentIndex]
      switch (e.type) {
        case "start":
          return stream.push({ type: "start", partial: partial() })
        case "text_start":
        case "thinking_start":
        case "toolcall_start":
          return stream.push({ type: e.type, contentIndex, partial: partial() })
        case "text_delta":
        case "thinking_delta":
          block[kind] += e.delta
          return stream.push({ type: e.type, contentIndex, delta: e.delta, partial: partial() })
        case "toolcall_delta":
          return stream.push({ type: e.type, contentIndex, delta: e.delta, partial: partial() })
        case "text_end":
        case "thinking_end":
          return stream.push({ type: e.type, contentIndex, content: block[kind], partial: partial() })
        case "toolcall_end":
          block.arguments = structuredClone(e.args ?? {})
          return stream.push({ type: e.type, contentIndex, toolCall: structuredClone(block), partial: partial() })
        case "done":
          over = true
          return stream.push({
            type: "done",
            reason: e.stopReason ?? "stop",
            message: finishOrShare(e, e.stopReason ?? "stop")
          })
        case "error":
          over = true
          return stream.push({
            type: "error",
            reason: e.stopReason ?? "error",
            error: finishOrShare(e, e.stopReason ?? "error")
          })
        case "end":
          over = true
          return stream.end(e.noResult ? undefined : finishOrShare(e, e.stopReason ?? "stop"))
        case "throw":
          over = true
          return stream.fail(new Error(e.message))
        default:
          throw new Error(`bad stream event ${e.type}`)
      }
    }
    const finishOrShare = (e, stopReason) => {
      const extra = compact({ stopReason, errorMessage: e.errorMessage })
      if (response.frozen) return Object.freeze(finish(extra, e.content))
      if (!response.sharedPartial) return finish(extra, e.content)
      if (e.content !== undefined) message.content = contentIn(e.content)
      return Object.assign(message, extra)
    }
    const opening = clock.now
    for (const g of eventGroups(response.events)) {
      const emit = async () => {
        if (cut) return
        await hop()
        for (const e of g.events) if (!cut) emitOne(e)
      }
      if (g.due === 0) void emit().catch(fatal)
      else {
        const timer = clock.until(opening + g.due, group)
        timers.push(timer)
        timer.promise.then(emit).catch(fatal)
      }
    }
    return stream
  }

  // ---- the agent

  Date.now = () => clock.now
  process.on("unhandledRejection", onUnhandled)
  const a = scenario.agent ?? {}
  const agent = new core.Agent({
    initialState: compact({
      systemPrompt: a.systemPrompt,
      model: modelIn(a.model ?? "m1"),
      thinkingLevel: a.thinkingLevel,
      tools: (a.tools ?? []).map(toolByKey),
      messages: messagesNow(a.messages)
    }),
    streamFn,
    ...compact({
      toolExecution: a.toolExecution,
      steeringMode: a.steeringMode,
      followUpMode: a.followUpMode,
      sessionId: a.sessionId
    }),
    ...hookFns
  })

  // ---- listeners

  const record = (event) => {
    if (event.type === "agent_start") resetRunCounters()
    if (event.type === "message_end" && event.message.role === "assistant") lastAssistant = event.message
    const norm = { t: clock.now, ...normEvent(event) }
    trace.events.push(norm)
    raw.events.push({ event, norm: JSON.stringify(norm) })
  }
  agent.subscribe(record)
  const unsubscribers = new Map()
  const listenerCounts = new Map()
  const listen = (name) => {
    const def = (scenario.listeners ?? []).find((l) => l.name === name)
    if (!def) throw new Error(`no listener ${name}`)
    if (unsubscribers.has(name)) return
    unsubscribers.set(
      name,
      agent.subscribe(async (event) => {
        for (const rule of def.rules) {
          if (rule.on !== event.type) continue
          if (rule.role !== undefined && event.message?.role !== rule.role) continue
          if (rule.call !== undefined && event.toolCallId !== rule.call) continue
          const nth = (listenerCounts.get(rule) ?? 0) + 1
          listenerCounts.set(rule, nth)
          if (rule.nth !== undefined && rule.nth !== nth) continue
          const entry = compact({
            t: clock.now,
            listener: name,
            on: event.type,
            call: event.toolCallId,
            role: event.message?.role
          })
          trace.listeners.push(entry)
          if (rule.mutate !== undefined && event.message) event.message.content = contentIn(rule.mutate)
          await applyRule(rule, `listener:${name}`)
          entry.done = clock.now
          break
        }
      })
    )
  }
  for (const l of scenario.listeners ?? []) if (l.initially !== false) listen(l.name)

  // ---- actions

  const snapshot = () => {
    const s = agent.state
    return compact({
      isStreaming: s.isStreaming,
      streamingMessage: s.streamingMessage && normMessage(s.streamingMessage),
      pendingToolCalls: [...s.pendingToolCalls],
      errorMessage: s.errorMessage,
      model: s.model.id,
      thinkingLevel: s.thinkingLevel,
      systemPrompt: s.systemPrompt,
      tools: s.tools.map(showTool),
      roles: roles(s.messages)
    })
  }
  const enqueue = (message) => {
    raw.queued.push(message)
    return message
  }
  /** Remembers what a clear or reset throws away, so that it does not count as lost. */
  const dropping = (queues, clear) => {
    const gone = queues.flatMap((q) => agent[q].messages.slice())
    clear()
    for (const m of gone) raw.dropped.add(m)
  }
  const run = (outcome, promise) => {
    outcome.outcome = "pending"
    const span = { start: clock.now }
    raw.runs.push(span)
    promise.then(
      () => Object.assign(outcome, { outcome: "resolved", t: span.end = clock.now }),
      (error) =>
        Object.assign(outcome, {
          outcome: "rejected",
          t: span.end = clock.now,
          error: error instanceof Error ? error.message : String(error)
        })
    )
  }
  const lowLevel = (outcome, action) => {
    const context = {
      messages: messagesNow(action.context?.messages),
      tools: (action.context?.tools ?? []).map(toolByKey)
    }
    const { prepareNextTurnWithContext, ...rest } = hookFns
    const config = {
      model: modelIn(a.model ?? "m1"),
      reasoning: a.thinkingLevel === "off" ? undefined : a.thinkingLevel,
      convertToLlm: (ms) => ms.filter((m) => ROLE_LETTER[m.role]),
      toolExecution: a.toolExecution,
      ...rest,
      ...(prepareNextTurnWithContext ? { prepareNextTurn: prepareNextTurnWithContext } : {})
    }
    const emit = async (event) => record(event)
    const drained = async (events) => {
      for await (const event of events) record(event)
      return events.result()
    }
    const promise = action.do === "loop"
      ? core.runAgentLoop(messagesNow(action.prompts), context, config, emit, undefined, streamFn)
      : action.do === "loopStream"
      ? drained(core.agentLoop(messagesNow(action.prompts), context, config, undefined, streamFn))
      : core.runAgentLoopContinue(context, config, emit, undefined, streamFn)
    run(
      outcome,
      promise.then((messages) => {
        outcome.value = { returned: normMessages(messages), callerContext: roles(context.messages) }
      })
    )
  }
  function perform(action, outcome) {
    const list = (input) => (Array.isArray(input) ? messagesNow(input) : messageNow(input))
    try {
      switch (action.do) {
        case "prompt":
          if (typeof action.input === "string") run(outcome, agent.prompt(action.input, action.images?.map(blockIn)))
          else run(outcome, agent.prompt(list(action.input)))
          break
        case "continue":
          run(outcome, agent.continue())
          break
        case "waitIdle":
          outcome.outcome = "pending"
          agent.waitForIdle().then(() => Object.assign(outcome, { outcome: "resolved", t: clock.now }))
          break
        case "steer":
          agent.steer(enqueue(messageNow(action.message)))
          break
        case "followUp":
          agent.followUp(enqueue(messageNow(action.message)))
          break
        case "abort":
          agent.abort()
          break
        case "reset":
          dropping(["steeringQueue", "followUpQueue"], () => agent.reset())
          break
        case "clearSteering":
          dropping(["steeringQueue"], () => agent.clearSteeringQueue())
          break
        case "clearFollowUp":
          dropping(["followUpQueue"], () => agent.clearFollowUpQueue())
          break
        case "clearAll":
          dropping(["steeringQueue", "followUpQueue"], () => agent.clearAllQueues())
          break
        case "setTools":
          agent.state.tools = action.tools.map(toolByKey)
          break
        case "setModel":
          agent.state.model = modelIn(action.model)
          break
        case "setThinkingLevel":
          agent.state.thinkingLevel = action.level
          break
        case "setMessages":
          agent.state.messages = messagesNow(action.messages)
          break
        case "pushMessage":
          agent.state.messages.push(messageNow(action.message))
          break
        case "setSteeringMode":
          agent.steeringMode = action.mode
          break
        case "setFollowUpMode":
          agent.followUpMode = action.mode
          break
        case "setToolExecution":
          agent.toolExecution = action.mode
          break
        case "setSessionId":
          agent.sessionId = action.id
          break
        case "subscribe":
          listen(action.listener)
          break
        case "unsubscribe":
          unsubscribers.get(action.listener)?.()
          unsubscribers.delete(action.listener)
          break
        case "peek":
          outcome.value = { messages: normMessages(agent.peekQueuedMessages()), hasQueued: agent.hasQueuedMessages() }
          break
        case "snapshot":
          outcome.value = snapshot()
          break
        case "loop":
        case "loopContinue":
        case "loopStream":
          lowLevel(outcome, action)
          break
        default:
          fatal(new Error(`bad action ${action.do}`))
      }
      outcome.outcome ??= "ok"
    } catch (error) {
      outcome.outcome = "rejected"
      outcome.t = clock.now
      outcome.error = error instanceof Error ? error.message : String(error)
    }
  }
  /** Actions attached to a hook rule, listener rule or tool: performed in place, in order. */
  function runInner(actions, source) {
    for (const action of actions ?? []) {
      const outcome = { at: clock.now, from: source.split("#")[0], do: action.do }
      trace.inner.push(outcome)
      perform(action, outcome)
    }
  }

  let previous = -1
  for (const action of scenario.timeline) {
    if (action.at < 0 || action.at <= previous) {
      throw new Error(`timeline of ${scenario.name} is not strictly increasing`)
    }
    previous = action.at
    const outcome = { at: action.at, do: action.do }
    trace.actions.push(outcome)
    clock.until(action.at, `action:${action.do}@${action.at}`).promise.then(() => perform(action, outcome)).catch(fatal)
  }

  const drain = async () => {
    for (let i = 0; i < 3; i++) await new Promise((r) => setImmediate(r))
  }
  try {
    for (let fired = 0;; fired++) {
      await drain()
      if (failure) throw failure
      if (fired > MAX_TIMERS) throw new Error(`${scenario.name}: more than ${MAX_TIMERS} timers`)
      if (!clock.step()) break
    }
  } finally {
    Date.now = realNow
    process.off("unhandledRejection", onUnhandled)
  }

  trace.final = {
    ...snapshot(),
    messages: normMessages(agent.state.messages),
    steering: normMessages(agent.steeringQueue.messages),
    followUp: normMessages(agent.followUpQueue.messages)
  }
  delete trace.final.roles
  for (const key of ["listeners", "inner", "unhandled"]) if (trace[key].length === 0) delete trace[key]
  const delivered = new Set(raw.events.filter((r) => r.event.type === "message_end").map((r) => r.event.message))
  const deliveredText = new Set([...delivered].map((m) => JSON.stringify(normMessage(m).content)))
  const stillQueued = new Set([...agent.steeringQueue.messages, ...agent.followUpQueue.messages])
  const lost = raw.queued.filter((m) =>
    !delivered.has(m) && !stillQueued.has(m) && !raw.dropped.has(m) &&
    !deliveredText.has(JSON.stringify(normMessage(m).content))
  )
  const mutated = raw.events.flatMap(({ event, norm }, index) => {
    const again = { t: trace.events[index].t, ...normEvent(event) }
    return JSON.stringify(again) === norm ? [] : [index]
  })
  trace.anomalies = findAnomalies(trace, {
    ties: clock.ties,
    lost: lost.map((m) => normMessage(m).content),
    mutated,
    runs: raw.runs
  })
  return trace
}

/** Trace as text: one line per list entry, so that diffs stay readable. */
export function formatTrace(trace) {
  const parts = Object.entries(trace).map(([key, value]) => {
    if (!Array.isArray(value) || value.length === 0) return `${JSON.stringify(key)}: ${JSON.stringify(value)}`
    return `${JSON.stringify(key)}: [\n  ${value.map((v) => JSON.stringify(v)).join(",\n  ")}\n ]`
  })
  return `{\n ${parts.join(",\n ")}\n}\n`
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2)
  const flag = args.indexOf("--jitter")
  const jitter = flag >= 0 ? Number(args[flag + 1]) : undefined
  const file = args.find((x, i) => !x.startsWith("--") && (flag < 0 || i !== flag + 1)) ?? "-"
  if (file !== "-" && !existsSync(file)) {
    console.error(`no such scenario: ${file}`)
    process.exit(2)
  }
  const scenario = JSON.parse(readFileSync(file === "-" ? 0 : file, "utf8"))
  const trace = await playScenario(scenario, { jitter })
  process.stdout.write(args.includes("--compact") ? `${JSON.stringify(trace)}\n` : formatTrace(trace))
}
