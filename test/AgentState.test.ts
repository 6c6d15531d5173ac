import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { answerTexts, line, ofType, record, settled, withModel } from "./utils/agents.ts"
import { echo, slow, tool, untyped } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")
const calls = (...names: ReadonlyArray<string>) =>
  ScriptedModel.calls(names.map((name, index) => [String.fromCodePoint(97 + index), name, {}]))
const system = (messages: ReadonlyArray<Messages.AgentMessage>) => Transcript.print(messages, { system: true })
const names = (tools: ReadonlyArray<{ readonly name: string }>) => tools.map(({ name }) => name)

/** What the system messages of a transcript do to the tools: `+added -removed`. */
const changes = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> =>
  messages.flatMap((message) =>
    message.role === "system"
      ? [[
        ...(message.toolsRemoved ?? []).map(({ name }) => `-${name}`),
        ...(message.toolsAdded ?? []).map(({ name }) => `+${name}`)
      ].join(" ")]
      : []
  )

/** Every request declares exactly the tools it was made with (S3). */
const assertDeclared = Effect.gen(function*() {
  for (const { messages, tools } of yield* ScriptedModel.requests) {
    assert.deepStrictEqual(Messages.declaredTools(messages), tools)
  }
})

/** A tool that does something to its agent. */
const acting = (name: string, action: (agent: Agent.AgentService) => Effect.Effect<unknown, unknown>) => {
  const holder: { agent?: Agent.AgentService } = {}
  return {
    holder,
    tool: tool(name, () => Effect.as(Effect.suspend(() => action(holder.agent!)), "acted"))
  }
}

describe("The state of an agent", () => {
  it.effect("H4: what it is at the beginning", () =>
    Effect.gen(function*() {
      const state = yield* (yield* Agent.make({})).state
      assert.deepStrictEqual({ ...state, pendingToolCalls: [...state.pendingToolCalls] }, {
        systemPrompt: "",
        model: { id: "unknown", name: "unknown", api: "unknown", provider: "unknown" },
        thinkingLevel: "off",
        tools: [],
        messages: [],
        isStreaming: false,
        streamingMessage: undefined,
        pendingToolCalls: [],
        errorMessage: undefined
      })
      const given = yield* (yield* Agent.make({
        systemPrompt: "s",
        model: { id: "m" },
        thinkingLevel: "xhigh",
        tools: [echo],
        messages: [Messages.user("u")]
      })).state
      assert.deepStrictEqual(
        [given.systemPrompt, given.model.id, given.thinkingLevel, names(given.tools), system(given.messages)],
        ["s", "m", "xhigh", ["echo"], "S U"]
      )
    }).pipe(withModel()))

  it.effect("H4, H3: a call is pending until its end is told, also when that waits for a listener", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const updating = tool("updating", ({ update }) => Effect.as(update("half"), "done"))
      const agent = yield* Agent.make({ tools: [updating, slow] })
      yield* agent.subscribe((event) => {
        if (!event.type.startsWith("tool_execution")) return
        const look = Effect.map(agent.state, ({ pendingToolCalls }) => {
          seen.push(`${line(event).slice("tool_execution_".length)}: ${[...pendingToolCalls].join()}`)
        })
        return event.type === "tool_execution_update" ? Effect.andThen(look, Effect.sleep(50)) : look
      })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(30)
      const waiting = yield* agent.state
      assert.deepStrictEqual([...waiting.pendingToolCalls], ["a", "b", "c"])
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(run)
      assert.deepStrictEqual(seen, [
        "start a: a",
        "start b: a,b",
        "start c: a,b,c",
        "update a half: a,b,c",
        "end b: a,c",
        "end c: a",
        "end a: "
      ])
    }).pipe(
      withModel(
        ScriptedModel.calls([["a", "updating", {}], ["b", "slow", { ms: 10 }], ["c", "slow", { ms: 20 }]]),
        fine
      )
    ))

  it.effect("H4: what it is while it works", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(15)
      const writing = yield* agent.state
      assert.strictEqual(Messages.text(writing.streamingMessage!), "ab")
      assert.deepInclude(writing.streamingMessage, { stopReason: "pending" })
      assert.deepStrictEqual([writing.isStreaming, [...writing.pendingToolCalls]], [true, []])
      yield* TestClock.adjust(100)
      const working = yield* agent.state
      assert.deepStrictEqual([working.streamingMessage, [...working.pendingToolCalls]], [undefined, ["a", "b"]])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual([...(yield* agent.state).pendingToolCalls], ["b"])
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(run)
      const idle = yield* agent.state
      assert.deepStrictEqual([idle.isStreaming, [...idle.pendingToolCalls]], [false, []])
      assert.strictEqual(Messages.text(writing.streamingMessage!), "ab", "a snapshot never changes")
      assert.deepStrictEqual([...working.pendingToolCalls], ["a", "b"])
    }).pipe(withModel(
      ScriptedModel.events([
        { type: "start" },
        { type: "text_start", contentIndex: 0 },
        { type: "text_delta", contentIndex: 0, delta: "ab" },
        { type: "text_delta", contentIndex: 0, delta: "cd", at: 20 },
        { type: "text_end", contentIndex: 0 },
        { type: "toolcall_start", contentIndex: 1, id: "a", name: "slow" },
        { type: "toolcall_end", contentIndex: 1, arguments: { ms: 150 } },
        { type: "toolcall_start", contentIndex: 2, id: "b", name: "slow" },
        { type: "toolcall_end", contentIndex: 2, arguments: { ms: 250 } },
        { type: "done", stopReason: "toolUse" }
      ]),
      fine
    )))

  it.effect("H4: the error is that of the last run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.prompt("one")
      assert.strictEqual((yield* agent.state).errorMessage, "down")
      yield* agent.prompt("two")
      assert.isUndefined((yield* agent.state).errorMessage)
    }).pipe(withModel(ScriptedModel.error("down"), fine)))

  it.effect("H4: what is set while idle shows at once and counts from the next run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({
        sessionId: "s1",
        headers: { h: "1" },
        metadata: { m: 1 },
        thinkingBudgets: { low: 5 }
      })
      yield* agent.setModel({ id: "m" })
      yield* agent.setThinkingLevel("low")
      yield* agent.setTools([echo])
      yield* agent.setSessionId("s2")
      const { model, thinkingLevel, tools } = yield* agent.state
      assert.deepStrictEqual([model, thinkingLevel, names(tools)], [{ id: "m" }, "low", ["echo"]])
      yield* agent.prompt("go")
      yield* agent.setSessionId(undefined)
      yield* agent.prompt("go")
      const [first, second] = yield* ScriptedModel.requests
      assert.deepInclude(first, {
        model: { id: "m" },
        thinkingLevel: "low",
        sessionId: "s2",
        headers: { h: "1" },
        metadata: { m: 1 },
        thinkingBudgets: { low: 5 }
      })
      assert.deepStrictEqual(names(first!.tools), ["echo"])
      assert.isUndefined(second!.sessionId)
      assert.deepInclude((yield* agent.messages).find(({ role }) => role === "assistant"), {
        model: "m",
        thinkingLevel: "low"
      })
    }).pipe(withModel(fine, fine)))
})

describe("Lists that are changed from outside", () => {
  it.effect("H4 (shared-mutation): the list of tools that was given", () =>
    Effect.gen(function*() {
      const given: Array<Tools.Tool> = [echo]
      const agent = yield* Agent.make({ tools: given })
      given.push(slow)
      assert.deepStrictEqual(names((yield* agent.state).tools), ["echo"])
      yield* agent.prompt("go")
      assert.deepStrictEqual(names((yield* ScriptedModel.requests)[0]!.tools), ["echo"])
    }).pipe(withModel(fine)))

  it.effect("H4 (shared-mutation): the list of messages that was given, and those that are given out", () =>
    Effect.gen(function*() {
      const given = [Messages.user("u")]
      const agent = yield* Agent.make({ messages: given })
      given.push(Messages.user("v"))
      for (const list of [yield* agent.messages, (yield* agent.state).messages, (yield* agent.queued).steering]) {
        untyped<Array<Messages.AgentMessage>>(list).push(Messages.user("w"))
      }
      const run = yield* agent.continue
      untyped<Array<Messages.AgentMessage>>(run.messages).push(Messages.user("x"))
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A")
      assert.strictEqual(Transcript.print((yield* ScriptedModel.requests)[0]!.messages), "U")
    }).pipe(withModel(fine)))
})

describe("Changes during a run", () => {
  it.effect("H4 (change-during-run): model, thinking level and tools count from the next request, the session id from the next run", () =>
    Effect.gen(function*() {
      const { holder, tool } = acting("change", (agent) =>
        Effect.all([
          agent.setModel({ id: "new" }),
          agent.setThinkingLevel("high"),
          agent.setTools([echo]),
          agent.setSessionId("s2")
        ]))
      const agent = holder.agent = yield* Agent.make({ model: { id: "old" }, tools: [tool], sessionId: "s1" })
      yield* agent.prompt("go")
      yield* agent.prompt("again")
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(
        requests.map((
          { model, sessionId, thinkingLevel, tools }
        ) => [model.id, thinkingLevel, names(tools), sessionId]),
        [["old", "off", ["change"], "s1"], ["new", "high", ["echo"], "s1"], ["new", "high", ["echo"], "s2"]]
      )
      yield* assertDeclared
    }).pipe(withModel(calls("change"), fine, fine)))

  it.effect("H4 S3 B110: a tool that was added during a run is declared to the next request, and runs", () =>
    Effect.gen(function*() {
      const { holder, tool } = acting("add", (agent) => agent.setTools([echo, tool2]))
      const tool2: Tools.Tool = { ...tool, name: "add" }
      const agent = holder.agent = yield* Agent.make({ tools: [tool] })
      const events = yield* record(agent)
      const run = yield* agent.prompt("go")
      assert.strictEqual(system(run.messages), "U A[a] R(a) S A[a] R(a) A")
      assert.deepStrictEqual(changes(run.messages), ["+echo"])
      assert.deepStrictEqual(answerTexts(run.messages), [["a", "acted"], ["a", ""]])
      assert.deepStrictEqual(names((yield* ScriptedModel.requests)[1]!.tools).toSorted(), ["add", "echo"])
      assert.include(events.map(line), "message_end S", "the declaration has events like any message")
      yield* assertDeclared
    }).pipe(withModel(calls("add"), calls("echo"), fine)))

  it.effect("H4 S3 B110: a tool that was removed during a run is unknown from the next request on; its running call goes on", () =>
    Effect.gen(function*() {
      const { holder, tool: removing } = acting("remove", (agent) => agent.setTools([echo]))
      const lasting = tool("lasting", () => Effect.as(Effect.sleep(50), "lasted"))
      const agent = holder.agent = yield* Agent.make({ tools: [removing, lasting] })
      const run = yield* settled(agent.prompt("go"))
      const [first, second, third] = answerTexts(run.messages)
      assert.deepStrictEqual([first, second], [["a", "acted"], ["b", "lasted"]])
      assert.match(third![1], /^! Tool lasting not found/)
      assert.deepStrictEqual(changes(run.messages), ["-remove -lasting +echo"])
      yield* assertDeclared
    }).pipe(withModel(calls("remove", "lasting"), calls("lasting"), fine)))

  for (const role of ["system", "user"] as const) {
    it.effect(`H4 S3: tools that are set at the end of a ${role} message before a request count from the one after`, () =>
      Effect.gen(function*() {
        const { holder, tool } = acting("switch", (agent) => agent.setTools([slow]))
        const agent = holder.agent = yield* Agent.make({ tools: [tool] })
        yield* agent.subscribe((event) => {
          if (event.type === "tool_execution_end") return agent.steer("on")
          if (event.type !== "message_end") return undefined
          const { message } = event
          const late = message.role === "system"
            ? role === "system" && message.toolsAdded?.[0]?.name === "slow"
            : role === "user" && Messages.text(message) === "on"
          return late ? agent.setTools([echo]) : undefined
        })
        const run = yield* settled(agent.prompt("go"))
        const executable = (yield* ScriptedModel.requests).map(({ tools }) => names(tools))
        assert.deepStrictEqual(executable, [["switch"], ["slow"], ["echo"]])
        assert.deepStrictEqual(answerTexts(run.messages).map(([, text]) => text.split(/[.:]/)[0]), [
          "acted",
          "! Tool echo not found"
        ])
        yield* assertDeclared
      }).pipe(withModel(calls("switch"), calls("echo"), fine)))
  }

  it.effect("H4: a batch uses the tools and the mode that were set when its request was made", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const ends: Array<number> = []
      yield* agent.subscribe((event) =>
        event.type === "message_start" && event.message.role === "assistant"
          ? Effect.all([agent.setToolExecution("sequential"), agent.setTools([])])
          : undefined
      )
      const run = yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(answerTexts(run.messages), [["a", "slept 40"], ["b", "slept 30"]])
      for (const { at } of yield* ScriptedModel.requests) ends.push(at)
      assert.deepStrictEqual(ends, [0, 40], "the first batch was parallel")
    }).pipe(withModel(
      ScriptedModel.calls([["a", "slow", { ms: 40 }], ["b", "slow", { ms: 30 }]]),
      fine
    )))

  for (const [before, after, time] of [["parallel", "sequential", 70], ["sequential", "parallel", 40]] as const) {
    it.effect(`H4 T2: tool execution changed to ${after} during a run counts from the next request`, () =>
      Effect.gen(function*() {
        const { holder, tool } = acting("switch", (agent) => agent.setToolExecution(after))
        const agent = holder.agent = yield* Agent.make({ tools: [slow, tool], toolExecution: before })
        yield* settled(agent.prompt("go"))
        assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ at }) => at), [0, 0, time])
      }).pipe(withModel(
        calls("switch"),
        ScriptedModel.calls([["a", "slow", { ms: 40 }], ["b", "slow", { ms: 30 }]]),
        fine
      )))
  }

  it.effect("L6 H4: a change by the host after a hook's replacement wins", () =>
    Effect.gen(function*() {
      const { holder, tool } = acting("change", (agent) =>
        Effect.all([agent.setModel({ id: "host" }), agent.setThinkingLevel("low")]))
      const agent = holder.agent = yield* Agent.make({ tools: [tool] })
      yield* agent.prompt("go")
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(
        requests.map(({ model, thinkingLevel }) => [model.id, thinkingLevel]),
        [["hook", "high"], ["host", "low"]]
      )
    }).pipe(
      withModel(calls("change"), fine),
      Effect.provide(Hooks.layer(Hooks.prepareRequest(({ model }) =>
        model.id === "unknown" ? { model: { id: "hook" }, thinkingLevel: "high" } : undefined
      )))
    ))

  it.effect("L6 H4: a hook's replacement after a change by the host wins, and does not touch the host's state", () =>
    Effect.gen(function*() {
      const { holder, tool } = acting("change", (agent) => agent.setModel({ id: "host" }))
      const agent = holder.agent = yield* Agent.make({ tools: [tool] })
      yield* agent.prompt("go")
      assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ model }) => model.id), ["unknown", "hook"])
      assert.strictEqual((yield* agent.state).model.id, "host")
    }).pipe(
      withModel(calls("change"), fine),
      Effect.provide(
        Hooks.layer(Hooks.prepareRequest(({ model }) => model.id === "host" ? { model: { id: "hook" } } : undefined))
      )
    ))

  it.effect("L6 H4 S3: tools set by the host after a hook's replacement win, and every request declares what it has", () =>
    Effect.gen(function*() {
      const { holder, tool: hooked } = acting("hooked", (agent) => agent.setTools([echo]))
      let times = 0
      const hooks = Hooks.layer(
        Hooks.prepareRequest(() => times++ === 0 ? { context: { tools: [hooked] } } : undefined)
      )
      const agent = holder.agent = yield* Agent.make({ tools: [slow] }).pipe(Effect.provide(hooks))
      yield* agent.prompt("go")
      yield* agent.prompt("again")
      assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ tools }) => names(tools)), [["hooked"], ["echo"], [
        "echo"
      ]])
      yield* assertDeclared
    }).pipe(withModel(calls("hooked"), fine, fine)))
})

describe("System messages", () => {
  it.effect("S1: prompt and tools are the first system message", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ systemPrompt: "Be brief.", tools: [echo, slow] })
      const [first, ...more] = yield* agent.messages
      assert.deepStrictEqual(more, [])
      assert(first?.role === "system")
      assert.strictEqual(Messages.text(first), "Be brief.")
      assert.deepStrictEqual(names(first.toolsAdded ?? []), ["echo", "slow"])
      assert.isUndefined(first.toolsRemoved)
      yield* agent.prompt("go")
      assert.strictEqual(system(yield* agent.messages), "S U A")
      yield* assertDeclared
    }).pipe(withModel(fine)))

  it.effect("S1: they come before a given transcript that does not begin with a system message", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ systemPrompt: "p", messages: [Messages.user("u"), Messages.assistant("a")] })
      assert.strictEqual(system(yield* agent.messages), "S U A")
      assert.strictEqual((yield* agent.state).systemPrompt, "p")
    }).pipe(withModel()))

  it.effect("S1 S2: a given transcript that begins with a system message counts; the tools it lacks are declared later", () =>
    Effect.gen(function*() {
      const stored = Messages.system("stored", {
        toolsAdded: [{ name: "gone", description: "d", parameters: {} }],
        timestamp: 5
      })
      const agent = yield* Agent.make({ systemPrompt: "option", tools: [echo], messages: [stored, Messages.user("u")] })
      assert.strictEqual((yield* agent.state).systemPrompt, "stored")
      assert.deepStrictEqual((yield* agent.messages)[0], stored)
      assert.deepStrictEqual(names(Messages.declaredTools(yield* agent.messages)), ["gone"], "two lists")
      assert.deepStrictEqual(names((yield* agent.state).tools), ["echo"])
      yield* agent.prompt("go")
      assert.strictEqual(system(yield* agent.messages), "S U S U A")
      assert.deepStrictEqual(changes(yield* agent.messages), ["+gone", "-gone +echo"])
      yield* assertDeclared
    }).pipe(withModel(fine)))

  it.effect("S1: the system prompt is what the transcript says", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ systemPrompt: "one" })
      yield* agent.appendMessages([Messages.system("two")])
      const { messages, systemPrompt } = yield* agent.state
      assert.strictEqual(systemPrompt, Messages.systemPrompt(messages))
      assert.include(systemPrompt, "two")
    }).pipe(withModel()))

  it.effect("S3: tools set between runs are declared before the next prompt", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ systemPrompt: "p", tools: [echo] })
      yield* agent.prompt("one")
      yield* agent.setTools([slow])
      assert.strictEqual(system(yield* agent.messages), "S U A", "not before a run")
      yield* agent.prompt("two")
      assert.strictEqual(system(yield* agent.messages), "S U A S U A")
      assert.deepStrictEqual(changes(yield* agent.messages), ["+echo", "-echo +slow"])
      assert.strictEqual((yield* agent.state).systemPrompt, "p")
      yield* assertDeclared
    }).pipe(withModel(fine, fine)))

  it.effect("S3: the declaration is carried by the last system message of the prompt, whose own tool fields it replaces", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      yield* agent.prompt("one")
      yield* agent.setTools([echo, slow])
      const run = yield* agent.prompt([
        Messages.system("a"),
        Messages.system("b", { toolsAdded: [{ name: "nonsense", description: "", parameters: {} }] }),
        Messages.user("u")
      ])
      assert.strictEqual(system(run.messages), "S S U A")
      assert.deepStrictEqual(changes(run.messages), ["", "+slow"])
      assert.deepStrictEqual(run.messages.slice(0, 2).map(Messages.text), ["a", "b"])
      yield* assertDeclared
    }).pipe(withModel(fine, fine)))

  it.effect("S3: with nothing pending it is appended", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ messages: [Messages.system("s"), Messages.user("u")], tools: [echo] })
      const run = yield* agent.continue
      assert.strictEqual(system(run.messages), "S A")
      assert.deepStrictEqual(changes(run.messages), ["+echo"])
      yield* assertDeclared
    }).pipe(withModel(fine)))

  it.effect("S3: a changed definition is a removal and an addition; one that only changed its keys' order is none", () =>
    Effect.gen(function*() {
      const version = (description: string, parameters: Messages.JsonObject) =>
        Tools.dynamic("t", { description, parameters, execute: () => Effect.succeed("") })
      const agent = yield* Agent.make({
        tools: [version("one", { type: "object", properties: { a: { type: "string" }, b: { type: "string" } } })]
      })
      yield* agent.prompt("one")
      yield* agent.setTools([
        version("one", { properties: { b: { type: "string" }, a: { type: "string" } }, type: "object" })
      ])
      const same = yield* agent.prompt("two")
      assert.deepStrictEqual(changes(same.messages), [], "key-order")
      yield* agent.setTools([version("two", { type: "object" })])
      const changed = yield* agent.prompt("three")
      assert.deepStrictEqual(changes(changed.messages), ["-t +t"])
      yield* assertDeclared
    }).pipe(withModel(fine, fine, fine)))

  it.effect("S3: tools may have the names of what every object has", () =>
    Effect.gen(function*() {
      const odd = ["__proto__", "constructor", "toString", "hasOwnProperty"]
      const agent = yield* Agent.make({ tools: odd.map((name) => tool(name, () => Effect.succeed(`I am ${name}`))) })
      const run = yield* agent.prompt("go")
      assert.deepStrictEqual(answerTexts(run.messages).map(([, text]) => text), odd.map((name) => `I am ${name}`))
      yield* agent.setTools([tool("__proto__", () => Effect.succeed(""))])
      yield* agent.prompt("again")
      assert.deepStrictEqual(changes(yield* agent.messages).slice(1), ["-constructor -toString -hasOwnProperty"])
      yield* assertDeclared
    }).pipe(withModel(calls("__proto__", "constructor", "toString", "hasOwnProperty"), fine, fine)))

  it.effect("S3: a list of tools that was changed after it was used is read again", () =>
    Effect.gen(function*() {
      const list: Array<Tools.Tool> = [echo]
      const agent = yield* Agent.make({ tools: list })
      yield* agent.prompt("one")
      list.push(slow)
      yield* agent.setTools(list)
      yield* agent.prompt("two")
      assert.deepStrictEqual(changes(yield* agent.messages), ["+echo", "+slow"])
      yield* assertDeclared
      list.push(echo)
      assert.strictEqual((yield* Effect.flip(agent.setTools(list))).reason, "DuplicateTool")
    }).pipe(withModel(fine, fine)))

  it.effect("S3: setting the tools there are declares nothing", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo, slow] })
      yield* agent.prompt("one")
      yield* agent.setTools([slow, echo])
      yield* agent.prompt("two")
      assert.deepStrictEqual(changes(yield* agent.messages), ["+echo +slow"])
    }).pipe(withModel(fine, fine)))

  it.effect("S3: a declaration stands before a steering message, not between a call and its result", () =>
    Effect.gen(function*() {
      const { holder, tool } = acting("change", (agent) => Effect.andThen(agent.setTools([echo]), agent.steer("S")))
      const agent = holder.agent = yield* Agent.make({ tools: [tool] })
      const events = yield* record(agent)
      const run = yield* agent.prompt("go")
      assert.strictEqual(system(run.messages), "U A[a] R(a) S U A")
      assert.deepStrictEqual(ofType(events, "agent_end")[0]!.messages, run.messages)
      yield* assertDeclared
    }).pipe(withModel(calls("change"), fine)))
})

describe("Configuration", () => {
  const tools = (list: ReadonlyArray<unknown>): Agent.Options => ({ tools: untyped<ReadonlyArray<Tools.Tool>>(list) })
  const unusable = (name: string, parameters: Schema.Codec<unknown, unknown>) =>
    Tools.make(name, { description: "d", parameters, execute: () => Effect.succeed("") })
  const wrong: ReadonlyArray<[string, Agent.Options, string, RegExp]> = [
    ["B82: two tools of one name", tools([echo, slow, { ...slow, name: "echo" }]), "DuplicateTool", /echo/],
    ["a tool without a name", tools([{ ...echo, name: "" }]), "InvalidTool", /name/],
    ["something that is no tool", tools([5]), "InvalidTool", /tool/i],
    ["nothing where a tool should be", tools([undefined]), "InvalidTool", /tool/i],
    ["parameters that are no object", tools([unusable("odd_one", Schema.String)]), "InvalidToolParameters", /odd_one/],
    [
      "parameters that are a list",
      tools([unusable("odd_one", Schema.Array(Schema.String))]),
      "InvalidToolParameters",
      /odd_one/
    ],
    [
      "a JSON Schema that is none",
      tools([Tools.dynamic("odd_one", { description: "", parameters: untyped(5), execute: () => Effect.succeed("") })]),
      "InvalidToolParameters",
      /odd_one/
    ],
    ["no concurrency", { toolConcurrency: 0 }, "InvalidConcurrency", /toolConcurrency.*0/],
    ["a negative concurrency", { toolConcurrency: -1 }, "InvalidConcurrency", /toolConcurrency.*-1/],
    ["half a concurrency", { toolConcurrency: 1.5 }, "InvalidConcurrency", /toolConcurrency.*1\.5/],
    ["a concurrency that is no number", { toolConcurrency: Number.NaN }, "InvalidConcurrency", /toolConcurrency/],
    ["a negative grace period", { gracePeriod: -1 }, "InvalidGracePeriod", /gracePeriod/],
    ["an endless grace period", { gracePeriod: Infinity }, "InvalidGracePeriod", /gracePeriod/],
    ["a grace period that is no duration", { gracePeriod: untyped("soon") }, "InvalidGracePeriod", /gracePeriod/],
    [
      "a transcript that does not decode",
      { messages: [Messages.user("u"), untyped({ role: "user", content: 5, timestamp: 0 })] },
      "InvalidTranscript",
      /\[1\].*content/s
    ],
    ["a transcript that is no list", { messages: untyped(5) }, "InvalidTranscript", /./],
    ["tools that are no list", { tools: untyped(echo) }, "InvalidTool", /tools.*array/],
    ["a retry that is no schedule", { toolRetry: untyped(3) }, "InvalidOption", /toolRetry is 3.*Schedule/],
    ["a retry of a tool that is no schedule", tools([{ ...echo, retry: 3 }]), "InvalidOption", /echo.*Schedule/],
    ["an unknown mode of a tool", tools([{ ...echo, executionMode: "serial" }]), "InvalidOption", /echo.*"sequential"/],
    ["an unknown tool execution", { toolExecution: untyped("serial") }, "InvalidOption", /serial.*"sequential"/],
    ["an unknown thinking level", { thinkingLevel: untyped("huge") }, "InvalidOption", /thinkingLevel.*"xhigh"/],
    ["an unknown steering mode", { steeringMode: untyped("one") }, "InvalidOption", /steeringMode.*"one-at-a-time"/],
    ["an unknown follow-up mode", { followUpMode: untyped("one") }, "InvalidOption", /followUpMode.*"one-at-a-time"/],
    ["an unknown way with transcripts", { transcript: untyped("x") }, "InvalidOption", /transcript.*"repair"/],
    ["a limit that there is not", { limits: untyped({ turn: 3 }) }, "InvalidLimit", /limits\.turn .*turns/]
  ]
  for (const [what, options, reason, text] of wrong) {
    it.effect(`H4: ${what}: AgentConfigError that names the thing and the way out`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Agent.make(options))
        assert.deepStrictEqual<unknown>([error._tag, error.reason], ["AgentConfigError", reason])
        assert.match(error.message, text)
        assert.isAtLeast(error.message.split(/\s+/).length, 5, "a sentence, not a word")
        assert.isAtMost(error.message.length, 2048)
      }).pipe(withModel()))
  }

  it.effect("H4: a grace period of 0 and a concurrency of 1 are fine", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ gracePeriod: 0, toolConcurrency: 1 })
      assert.strictEqual((yield* agent.prompt("go")).outcome._tag, "Completed")
    }).pipe(withModel(fine)))

  it.effect("H4 B82: after a refused setTools the agent has the tools it had, and works", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      for (const list of [[slow, slow], [unusable("odd_one", Schema.String)], [{ ...slow, name: "" }]]) {
        const error = yield* Effect.flip(agent.setTools(list))
        assert.strictEqual(error._tag, "AgentConfigError")
        assert.deepStrictEqual(names((yield* agent.state).tools), ["echo"])
      }
      const run = yield* agent.prompt("go")
      assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) A")
      assert.deepStrictEqual(names((yield* ScriptedModel.requests)[0]!.tools), ["echo"])
    }).pipe(withModel(calls("echo"), fine)))

  it.effect("H4: after a refused setMessages or appendMessages the agent has the transcript it had, and works", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ systemPrompt: "s" })
      yield* agent.prompt("one")
      const before = yield* agent.messages
      const odd = [
        Messages.user("fine"),
        untyped<Messages.AgentMessage>({ role: "assistant", content: [{ type: "text" }] })
      ]
      for (const refused of [agent.setMessages(odd), agent.appendMessages(odd)]) {
        const error = yield* Effect.flip(refused)
        assert(error._tag === "AgentConfigError")
        assert.strictEqual(error.reason, "InvalidTranscript")
        assert.match(error.message, /\[1\]/)
        assert.deepStrictEqual(yield* agent.messages, before)
      }
      assert.strictEqual(system((yield* agent.prompt("two")).messages), "U A")
      assert.strictEqual((yield* agent.state).systemPrompt, "s")
    }).pipe(withModel(fine, fine)))
})
