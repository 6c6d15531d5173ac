import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import {
  answers,
  assertBalanced,
  line,
  ofType,
  record,
  said,
  settled,
  withEndlessModel,
  withModel
} from "./utils/agents.ts"
import { lie } from "./utils/hostile.ts"
import { echo, gated, slow, tool, untyped } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")
const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" } as const
const calling = ScriptedModel.calls([["a", "slow", { ms: 100 }]])

/** A run that is under way: its tool sleeps for an hour. */
const running = Effect.gen(function*() {
  const agent = yield* Agent.make({ tools: [slow], systemPrompt: "s" })
  const run = yield* Effect.forkChild(agent.prompt("go"))
  yield* TestClock.adjust("1 second")
  assert.isTrue((yield* agent.state).isStreaming)
  return { agent, run }
})
const long = ScriptedModel.calls([["a", "slow", { ms: 1_800_000 }]])

describe("One run at a time", () => {
  const messages = "Agent is already processing. Wait for completion before changing messages."
  const refusals: ReadonlyArray<
    [string, (agent: Agent.AgentService) => Effect.Effect<unknown, { _tag: string; message: string }>, string]
  > = [
    [
      "prompt",
      (agent) => agent.prompt("x"),
      "Agent is already processing a prompt. Use steer() or followUp() to queue messages, or wait for completion."
    ],
    [
      "continue",
      (agent) => agent.continue,
      "Agent is already processing. Wait for completion before continuing."
    ],
    ["reset", (agent) => agent.reset, "Agent is already processing. Wait for completion before resetting."],
    ["setMessages", (agent) => agent.setMessages([]), messages],
    ["appendMessages", (agent) => agent.appendMessages([Messages.user("x")]), messages]
  ]
  for (const [what, refused, text] of refusals) {
    it.effect(`H1 B18 B40: ${what} during a run fails with AgentBusy and changes nothing`, () =>
      Effect.gen(function*() {
        const { agent, run } = yield* running
        yield* agent.followUp("f")
        const before = [yield* agent.messages, yield* agent.queued]
        const events = yield* record(agent)
        const error = yield* Effect.flip(refused(agent))
        assert.deepInclude(error, { _tag: "AgentBusy", message: text })
        assert.deepStrictEqual([yield* agent.messages, yield* agent.queued], before)
        assert.deepStrictEqual(events, [])
        yield* TestClock.adjust("1 hour")
        const { messages } = yield* Fiber.join(run)
        assert.strictEqual(Transcript.print(messages), "U A[a] R(a) A U A")
      }).pipe(withModel(long, fine, fine)))

    it.effect(`H1 B100: ${what} from a listener and from a tool of the run is refused, too`, () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const holder: { agent?: Agent.AgentService } = {}
        const trying = Effect.suspend(() =>
          Effect.matchEffect(refused(holder.agent!), {
            onFailure: (error) => Effect.sync(() => seen.push(error._tag)),
            onSuccess: () => Effect.sync(() => seen.push("done"))
          })
        )
        const agent = yield* Agent.make({ tools: [tool("try", () => Effect.as(trying, "tried"))] })
        holder.agent = agent
        yield* agent.subscribe(() => trying)
        const events = yield* record(agent)
        const run = yield* settled(agent.prompt("go"))
        assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) A")
        assert.deepStrictEqual(seen, Array.from({ length: events.length + 1 }, () => "AgentBusy"))
      }).pipe(withModel(ScriptedModel.calls([["a", "try", {}]]), fine)))
  }

  it.effect("H1 B40: of two prompts at one moment exactly one runs, and the other's message is nowhere", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const exits = yield* settled(
        Effect.all([Effect.exit(agent.prompt("a")), Effect.exit(agent.prompt("b"))], { concurrency: "unbounded" })
      )
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false])
      assert.deepStrictEqual(said(yield* agent.messages), ["a"])
    }).pipe(withEndlessModel(ScriptedModel.text("x", { after: 10 }))))

  it.effect("H1: after a run the agent can be prompted, reset and changed again", () =>
    Effect.gen(function*() {
      const { agent, run } = yield* running
      yield* agent.abort
      yield* Fiber.join(run)
      yield* agent.appendMessages([Messages.user("more")])
      assert.strictEqual((yield* agent.prompt("again")).outcome._tag, "Completed")
      yield* agent.setMessages([Messages.user("other")])
      assert.strictEqual(Transcript.print((yield* agent.continue).messages), "A")
      yield* agent.reset
      assert.strictEqual(Transcript.print(yield* agent.messages), "")
    }).pipe(withModel(long, fine, fine)))

  it.effect("A1: awaitIdle inside the run fails with AgentBusy instead of waiting for itself", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const holder: { agent?: Agent.AgentService } = {}
      const trying = Effect.suspend(() =>
        Effect.match(holder.agent!.awaitIdle, {
          onFailure: (error) => seen.push(error._tag),
          onSuccess: () => seen.push("idle")
        })
      )
      const agent = yield* Agent.make({ tools: [tool("try", () => Effect.as(trying, "tried"))] })
      holder.agent = agent
      yield* agent.subscribe((event) => event.type === "agent_end" ? trying : undefined)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(seen, ["AgentBusy", "AgentBusy"])
    }).pipe(withModel(ScriptedModel.calls([["a", "try", {}]]), fine)))
})

describe("Prompts", () => {
  it.effect("H1: a prompt of very many messages takes them one after the other", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const prompts = Array.from({ length: 40_000 }, (_, n) => Messages.user(String(n)))
      const { messages } = yield* agent.prompt(prompts)
      assert.lengthOf(messages, 40_001)
      assert.strictEqual(Messages.text(messages[39_999]!), "39999")
    }).pipe(withModel(ScriptedModel.text("fine"))))

  it.effect("H2: a text", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* TestClock.adjust(5)
      const { messages } = yield* agent.prompt("hi")
      assert.strictEqual(Transcript.print(messages), "U A")
      assert.deepInclude(messages[0], { role: "user", timestamp: 5 })
      assert.strictEqual(Messages.text(messages[0]!), "hi")
      assert.deepStrictEqual(yield* agent.messages, messages)
    }).pipe(withModel(fine)))

  it.effect("H2: a text with images", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const { messages } = yield* agent.prompt("look", { images: [image, image] })
      assert.deepStrictEqual(messages[0], {
        role: "user",
        content: [{ type: "text", text: "look" }, image, image],
        timestamp: 0
      })
    }).pipe(withModel(fine)))

  it.effect("H2 B28: an image without a text leaves no empty text block", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const { messages } = yield* agent.prompt("", { images: [image] })
      assert.deepStrictEqual(messages[0], { role: "user", content: [image], timestamp: 0 })
    }).pipe(withModel(fine)))

  it.effect("H2: one message or several, of any role, are recorded as they are", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const own = Messages.user([{ type: "text", text: "x" }, image], { timestamp: 3 })
      assert.deepStrictEqual((yield* agent.prompt(own)).messages[0], own)
      const several = [
        Messages.system("more", { timestamp: 4 }),
        Messages.user("y", { timestamp: 5 }),
        { role: "typetest-note", note: "z", timestamp: 6 } as const
      ]
      const { messages } = yield* agent.prompt(several)
      assert.deepStrictEqual(messages.slice(0, 3), several)
      assert.strictEqual(Transcript.print(messages, { system: true }), "S U C(typetest-note) A")
    }).pipe(withModel(fine, fine)))

  it.effect("H2: none at all is allowed", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ messages: [Messages.user("u")] })
      const events = yield* record(agent)
      const { messages } = yield* agent.prompt([])
      assert.strictEqual(Transcript.print(messages), "A")
      assertBalanced(events)
    }).pipe(withModel(fine)))

  it.effect("H2: messages given in are not changed, even when they are frozen", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      const message = Object.freeze(Messages.user(Object.freeze([Object.freeze({ type: "text", text: "x" } as const)])))
      const system = Object.freeze(Messages.system("s"))
      const list = Object.freeze([system, message])
      const before = JSON.stringify(list)
      yield* agent.prompt(list)
      yield* agent.steer(message)
      yield* agent.appendMessages(list)
      assert.strictEqual(JSON.stringify(list), before)
    }).pipe(withModel(fine)))

  it.effect("H2 (shared-mutation): a message changed after it was handed in does not change the transcript", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const content = [{ type: "text" as const, text: "before" }]
      const list = [Messages.user(content)]
      yield* agent.prompt(list)
      list.push(Messages.user("another"))
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A")
    }).pipe(withModel(fine)))

  const invalid: ReadonlyArray<[string, unknown, "Empty" | "InvalidMessage", Agent.PromptOptions]> = [
    ["an empty text", "", "Empty", {}],
    ["an empty text with an empty list of images", "", "Empty", { images: [] }],
    ["a number", 5, "InvalidMessage", {}],
    ["null", null, "InvalidMessage", {}],
    ["a message without a role", { content: "x" }, "InvalidMessage", {}],
    ["a message whose content is a number", { role: "user", content: 5, timestamp: 0 }, "InvalidMessage", {}],
    ["a message without a timestamp", { role: "user", content: "x" }, "InvalidMessage", {}],
    ["a list with something that is no message", [Messages.user("x"), 5], "InvalidMessage", {}],
    ["an image that is none", "x", "InvalidMessage", { images: [untyped({ type: "image" })] }]
  ]
  for (const [what, input, reason, options] of invalid) {
    it.effect(`H2: ${what} is refused with InvalidPrompt and changes nothing`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({})
        const events = yield* record(agent)
        const error = yield* Effect.flip(agent.prompt(untyped<string>(input), options))
        assert.deepInclude(error, { _tag: "InvalidPrompt", reason })
        assert.isNotEmpty(error.message)
        assert.deepStrictEqual([yield* agent.messages, events], [[], []])
        assert.isFalse((yield* agent.state).isStreaming)
        assert.strictEqual((yield* agent.prompt("fine")).outcome._tag, "Completed")
      }).pipe(withModel(fine)))
  }

  it.effect("H2: prompt and awaitIdle return when every listener of agent_end has finished", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const done: Array<string> = []
      const note = (text: string) => Effect.map(Clock.currentTimeMillis, (now) => done.push(`${now} ${text}`))
      for (const name of ["one", "two"]) {
        yield* agent.subscribe((event) =>
          event.type === "agent_end" ? Effect.andThen(Effect.sleep("1 second"), note(name)) : undefined
        )
      }
      const prompt = yield* Effect.forkChild(Effect.andThen(agent.prompt("go"), note("prompt")))
      yield* TestClock.adjust(10)
      const idle = yield* Effect.forkChild(Effect.andThen(agent.awaitIdle, note("idle")))
      yield* TestClock.adjust("1 hour")
      yield* Fiber.joinAll([prompt, idle])
      assert.deepStrictEqual(done.slice(0, 2), ["1000 one", "2000 two"])
      assert.sameMembers(done.slice(2), ["2000 prompt", "2000 idle"])
    }).pipe(withModel(fine)))

  it.effect("H2: awaitIdle returns at once when nothing runs", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.awaitIdle
      yield* agent.prompt("go")
      yield* agent.awaitIdle
    }).pipe(withModel(fine)))

  it.effect("H2: methods that are taken off the agent work", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      const { prompt, setModel, setThinkingLevel, setTools, steer, subscribe } = agent
      const lines: Array<string> = []
      yield* subscribe((event) => {
        lines.push(line(event))
      })
      yield* setModel({ id: "m" })
      yield* setThinkingLevel("low")
      yield* setTools([slow])
      yield* steer("s")
      const run = yield* prompt("go")
      assert.deepStrictEqual(said(run.messages), ["go", "s"])
      assert.isNotEmpty(lines)
    }).pipe(withModel(fine)))
})

describe("whileRunning", () => {
  it.effect("H2: an unknown word is refused, busy or not", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const queue = () => Effect.flip(agent.prompt("q", { whileRunning: lie<"steer">("queue") }))
      const idle = yield* queue()
      const run = yield* Effect.forkChild(agent.prompt("go"), { startImmediately: true })
      for (const error of [idle, yield* queue()]) {
        assert.deepInclude(error, { _tag: "InvalidPrompt", reason: "InvalidOption" })
        assert.match(error.message, /whileRunning is queue.*"steer", "followUp"/)
      }
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(Transcript.print((yield* Fiber.join(run)).messages), "U A")
    }).pipe(withModel(ScriptedModel.text("fine", { after: 10 }))))

  for (const [how, shape] of [["steer", "U A[a] R(a) U A U A"], ["followUp", "U A[a] R(a) A U A"]] as const) {
    it.effect(`H2: with ${how} a prompt during a run is queued, and waits for the end of that run`, () =>
      Effect.gen(function*() {
        const { agent, run } = yield* running
        const queued = yield* Effect.forkChild(agent.prompt("more", { whileRunning: how }))
        yield* TestClock.adjust("1 second")
        assert.isUndefined(queued.pollUnsafe())
        const { followUps, steering } = yield* agent.queued
        assert.deepStrictEqual(said([...steering, ...followUps]), ["more"])
        if (how === "steer") yield* agent.steer("again")
        yield* TestClock.adjust("1 hour")
        const first = yield* Fiber.join(run)
        const second = yield* Fiber.join(queued)
        assert.strictEqual(Transcript.print(first.messages), shape)
        assert.strictEqual(second.outcome._tag, "Completed")
        assert.include(said(second.messages), "more")
      }).pipe(withModel(long, fine, fine)))

    it.effect(`H2: with ${how} a prompt while idle just runs`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({})
        assert.strictEqual(Transcript.print((yield* agent.prompt("go", { whileRunning: how })).messages), "U A")
      }).pipe(withModel(fine)))

    it.effect(`H2: with ${how} several messages and images are queued in order`, () =>
      Effect.gen(function*() {
        const { agent, run } = yield* running
        yield* Effect.forkChild(agent.prompt([Messages.user("1"), Messages.user("2")], { whileRunning: how }))
        yield* TestClock.adjust(1)
        yield* Effect.forkChild(agent.prompt("3", { whileRunning: how, images: [image] }))
        yield* TestClock.adjust("1 hour")
        const { messages } = yield* Fiber.join(run)
        assert.deepStrictEqual(said(messages), ["go", "1", "2", "3"])
        assert.include(Transcript.show(messages), "<image/png>")
      }).pipe(withModel(long, fine, fine, fine, fine)))

    it.effect(`H2: with ${how} an unusable prompt is refused all the same`, () =>
      Effect.gen(function*() {
        const { agent } = yield* running
        const error = yield* Effect.flip(agent.prompt("", { whileRunning: how }))
        assert.strictEqual(error._tag, "InvalidPrompt")
        const { followUps, steering } = yield* agent.queued
        assert.deepStrictEqual([followUps, steering], [[], []])
        yield* agent.abort
      }).pipe(withModel(long)))

    it.effect(`H2 Q3: with ${how} and an abort the message stays queued, and the waiting prompt is told`, () =>
      Effect.gen(function*() {
        const { agent } = yield* running
        const queued = yield* Effect.forkChild(agent.prompt("more", { whileRunning: how }))
        yield* TestClock.adjust(1)
        yield* agent.abort
        const { outcome } = yield* Fiber.join(queued)
        assert.strictEqual(outcome._tag, "Aborted")
        const { followUps, steering } = yield* agent.queued
        assert.deepStrictEqual(said([...steering, ...followUps]), ["more"])
      }).pipe(withModel(long)))

    it.effect(`H2 A1: with ${how} a prompt inside the run does not wait for itself`, () =>
      Effect.gen(function*() {
        const holder: { agent?: Agent.AgentService } = {}
        const prompting = tool("prompting", () =>
          Effect.exit(holder.agent!.prompt("more", { whileRunning: how })).pipe(Effect.as("prompted")))
        const agent = yield* Agent.make({ tools: [prompting] })
        holder.agent = agent
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust("1 hour")
        assert.isDefined(run.pollUnsafe(), "waits for itself")
        yield* agent.abort
      }).pipe(withEndlessModel((_, index) =>
        index === 0 ? ScriptedModel.calls([["a", "prompting", {}]]) : fine
      )))
  }
})

describe("Reset and replaced messages", () => {
  it.effect("H6: reset clears the conversation and both queues and keeps the system prompt and the tools", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({
        systemPrompt: "Be brief.",
        tools: [echo],
        model: { id: "m" },
        thinkingLevel: "low"
      })
      yield* agent.prompt("one")
      yield* agent.setTools([slow])
      yield* agent.prompt("two")
      yield* agent.steer("s")
      yield* agent.followUp("f")
      yield* agent.reset
      const { errorMessage, messages, model, systemPrompt, thinkingLevel, tools } = yield* agent.state
      assert.strictEqual(Transcript.print(messages, { system: true }), "S")
      assert.strictEqual(systemPrompt, "Be brief.")
      assert.deepStrictEqual(tools.map(({ name }) => name), ["slow"])
      assert.deepStrictEqual([model.id, thinkingLevel, errorMessage], ["m", "low", undefined])
      assert.deepStrictEqual(yield* agent.queued, { steering: [], followUps: [] })
      yield* agent.prompt("three")
      const request = (yield* ScriptedModel.requests).at(-1)!
      assert.strictEqual(Transcript.print(request.messages, { system: true }), "S U")
      assert.deepStrictEqual(request.tools.map(({ name }) => name), ["slow"])
      assert.deepStrictEqual(Messages.declaredTools(request.messages), request.tools)
    }).pipe(withModel(fine, ScriptedModel.error("down"), fine)))

  it.effect("H6: reset of an agent without prompt and tools leaves nothing", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.prompt("one")
      yield* agent.reset
      assert.deepStrictEqual(yield* agent.messages, [])
      assert.strictEqual((yield* Effect.flip(agent.continue))._tag, "CannotContinue")
    }).pipe(withModel(fine)))

  it.effect("H4: setMessages replaces the transcript, appendMessages adds to it, without a run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ systemPrompt: "old" })
      const events = yield* record(agent)
      yield* agent.setMessages([Messages.system("new"), Messages.user("u")])
      assert.strictEqual((yield* agent.state).systemPrompt, "new")
      yield* agent.appendMessages([Messages.assistant("a"), Messages.user("v")])
      assert.strictEqual(Transcript.print(yield* agent.messages, { system: true }), "S U A U")
      assert.deepStrictEqual(events, [])
      yield* agent.continue
      assert.strictEqual(Transcript.print((yield* ScriptedModel.requests)[0]!.messages, { system: true }), "S U A U")
    }).pipe(withModel(fine)))

  it.effect("H4: a list of messages that was given out never changes", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.prompt("one")
      const messages = yield* agent.messages
      const state = yield* agent.state
      const copy = [...messages]
      yield* agent.prompt("two")
      yield* agent.reset
      assert.deepStrictEqual([...messages], copy)
      assert.deepStrictEqual([...state.messages], copy)
    }).pipe(withModel(fine, fine)))
})

describe("The end of an agent", () => {
  it.effect("B18: closing the scope aborts the run and waits until it is settled", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const agent = yield* Agent.make({ tools: [slow] }).pipe(Scope.provide(scope))
      const events = yield* record(agent)
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(events.slice(-1).map(line), ["agent_end Aborted"], "the listeners saw the end")
      assertBalanced(events)
      const run = yield* Fiber.join(fiber)
      assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a!)")
      assert.strictEqual(Messages.text(answers(run.messages)[0]!), "Operation aborted")
      assert.isFalse((yield* agent.state).isStreaming)
    }).pipe(withModel(calling)))

  it.effect("B18: closing the scope of an idle agent does nothing", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const agent = yield* Agent.make({}).pipe(Scope.provide(scope))
      yield* agent.prompt("go")
      const events = yield* record(agent)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(events, [])
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A")
    }).pipe(withModel(fine)))

  it.effect("B18: a run does not end with the fiber that made the agent, but with its scope", () =>
    Effect.gen(function*() {
      const { begun, open, tool } = yield* gated()
      const made = yield* Effect.forkChild(Agent.make({ tools: [tool] }))
      const agent = yield* Fiber.join(made)
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* begun
      yield* open()
      assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Completed")
    }).pipe(withModel(ScriptedModel.calls([["a", "gated", {}]]), fine)))
})

describe("Agent.layer", () => {
  it.effect("H2: is one agent for everybody who asks", () =>
    Effect.gen(function*() {
      yield* Agent.Agent.use((agent) => agent.prompt("one"))
      const messages = yield* Agent.Agent.use((agent) => agent.messages)
      assert.strictEqual(Transcript.print(messages), "U A")
    }).pipe(
      Effect.provide(Agent.layer({ systemPrompt: "s" }).pipe(Layer.provide(ScriptedModel.layer([fine]))))
    ))

  it.effect("H2: a wrong configuration is a failure of the layer", () =>
    Effect.gen(function*() {
      const error = yield* Agent.Agent.use((agent) => agent.prompt("one")).pipe(
        Effect.provide(Agent.layer({ tools: [echo, echo] })),
        Effect.flip
      )
      assert.deepInclude(error, { _tag: "AgentConfigError", reason: "DuplicateTool" })
    }).pipe(withModel()))

  it.effect("B18: the run ends with the layer's scope", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Agent.layer({ tools: [slow] }), scope)
      const agent = yield* Effect.provide(Agent.Agent, context)
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Aborted")
    }).pipe(withModel(calling)))
})

describe("The result of a run", () => {
  it.effect("H2: usage is the sum over the responses of this run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      const first = yield* agent.prompt("go")
      const { cost, ...tokens } = first.usage
      assert.deepInclude(tokens, { input: 30, output: 12, totalTokens: 42 })
      assert.deepInclude(cost, { total: 3 })
      const second = yield* agent.prompt("again")
      assert.deepInclude(second.usage, { input: 1, output: 0, totalTokens: 1 })
      const third = yield* agent.prompt("once more")
      assert.deepStrictEqual(third.usage, Messages.emptyUsage)
    }).pipe(withModel(
      ScriptedModel.calls([["a", "echo", {}]], { usage: { input: 10, output: 5, cost: { total: 1 } } }),
      ScriptedModel.text("fine", { usage: { input: 20, output: 7, cost: { total: 2 } } }),
      ScriptedModel.text("fine", { usage: { input: 1 } }),
      ScriptedModel.error("down")
    )))

  it.effect("H2: orFail gives a completed run, and fails with an aborted or failed one", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const completed = yield* agent.prompt("go")
      assert.strictEqual(yield* completed.orFail, completed)
      const failed = yield* agent.prompt("go")
      const failure = yield* Effect.flip(failed.orFail)
      assert(failure._tag === "RunFailed" && failure.error._tag === "ModelError")
      assert.deepStrictEqual([failure.error.reason, failure.error.message], ["Overloaded", "down"])
      assert.include(failure.message, "down")
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* agent.abort
      const aborted = yield* Fiber.join(fiber)
      assert.strictEqual((yield* Effect.flip(aborted.orFail))._tag, "RunAborted")
    }).pipe(withModel(fine, ScriptedModel.error("down", { reason: "Overloaded" }), ScriptedModel.hang())))

  it.effect("H2: the messages of the result are those of agent_end", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo], systemPrompt: "s" })
      const events = yield* record(agent)
      const run = yield* agent.prompt("go")
      assert.deepStrictEqual(ofType(events, "agent_end").map(({ messages }) => messages), [run.messages])
      assert.deepStrictEqual((yield* agent.messages).slice(1), run.messages)
      const end = ofType(events, "agent_end")[0]!
      assert.deepStrictEqual(end.outcome, run.outcome)
      assert.deepInclude(run.outcome, { _tag: "Completed", by: "Stop", stopReason: "stop" })
    }).pipe(withModel(ScriptedModel.calls([["a", "echo", {}]]), fine)))

  it.effect("L4: the result says that the tools ended the run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({
        tools: [tool("stop", () => Effect.succeed(Tools.result({ text: "x", terminate: true })))]
      })
      const run = yield* agent.prompt("go")
      assert.deepInclude(run.outcome, { _tag: "Completed", by: "Terminate", stopReason: "toolUse" })
    }).pipe(withModel(ScriptedModel.calls([["a", "stop", {}]]))))
})
