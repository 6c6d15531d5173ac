import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Messages, StreamFn } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import {
  answerTexts,
  assertBalanced,
  logged,
  ofType,
  record,
  said,
  settled,
  waiting,
  withEndlessModel,
  withModel
} from "./utils/agents.ts"
import { echo, slow } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")

const call = (id: string): Messages.ToolCall => ({ type: "toolCall", id, name: "echo", arguments: {} })
const note: Messages.AgentMessage = { role: "typetest-note", note: "n", timestamp: 1 }
const answered = [Messages.user("u"), Messages.assistant([call("a")]), Messages.toolResult(call("a"), "r")]

describe("Continue", () => {
  const tails: ReadonlyArray<[string, ReadonlyArray<Messages.AgentMessage>]> = [
    ["a user message", [Messages.user("u")]],
    ["a tool result", answered],
    ["a custom message", [Messages.user("u"), Messages.assistant("x"), note]],
    ["a system message after others", [Messages.user("u"), Messages.system("more")]]
  ]
  for (const [tail, messages] of tails) {
    it.effect(`Q4: from ${tail} it just goes on`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ messages })
        const events = yield* record(agent)
        const run = yield* agent.continue
        assert.strictEqual(Transcript.print(run.messages), "A")
        assert.deepStrictEqual(
          (yield* agent.messages).filter(({ role }) => role !== "system").slice(0, -1),
          messages.filter(({ role }) => role !== "system")
        )
        assertBalanced(events)
        assert.deepStrictEqual(ofType(events, "agent_end")[0]?.messages, run.messages)
      }).pipe(withModel(fine)))
  }

  const twins: Record<string, ReadonlyArray<string>> = {
    "all open": [],
    "the first answered": ["c"],
    "two answered": ["c", "c"]
  }
  for (const [what, results] of Object.entries(twins)) {
    for (const ids of [["c", "c"], ["c", "c", "d"], ["d", "c", "c", "c"]]) {
      it.effect(`Q4, I1: stored calls ${ids.join()} of one id, ${what}, are answered in call order`, () =>
        Effect.gen(function*() {
          const stored = [
            Messages.user("u"),
            Messages.assistant(ids.map(call), { stopReason: "toolUse" }),
            ...results.map((id) => Messages.toolResult(call(id), "x"))
          ]
          const agent = yield* Agent.make({ tools: [echo], messages: stored })
          yield* agent.prompt("go")
          assert.deepStrictEqual(Messages.check(yield* agent.messages), [])
          assert.lengthOf((yield* agent.messages).filter(({ role }) => role === "toolResult"), ids.length)
        }).pipe(logged, withModel(ScriptedModel.text("fine"))))
    }
  }

  it.effect("Q4: from a user message it does not take a queue for its beginning, and reads steering as usual", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ messages: [Messages.user("u")] })
      yield* agent.steer("S")
      yield* agent.followUp("F")
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "U A U A")
      assert.deepStrictEqual(said(run.messages), ["S", "F"])
    }).pipe(withModel(fine, fine)))

  for (
    const [what, messages, options] of [
      ["nothing", [], {}],
      ["only a system message", [Messages.system("s")], {}],
      ["a system prompt and tools", [], { systemPrompt: "s", tools: [echo] }]
    ] as const
  ) {
    it.effect(`Q4: from ${what} there is nothing to continue from, and nothing is consumed`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ messages, ...options })
        yield* agent.steer("S")
        const events = yield* record(agent)
        const error = yield* Effect.flip(agent.continue)
        assert(error._tag === "CannotContinue")
        assert.strictEqual(error.reason, "EmptyTranscript")
        assert.strictEqual(error.message, "No messages to continue from")
        assert.deepStrictEqual(yield* waiting(agent), [["S"], []])
        assert.deepStrictEqual(events, [])
        assert.isFalse((yield* agent.state).isStreaming)
      }).pipe(withModel()))
  }

  for (
    const [what, tail] of [
      ["stopped", Messages.assistant("x")],
      ["was cut", Messages.assistant("x", { stopReason: "length" })],
      ["failed", Messages.assistant("x", { stopReason: "error", errorMessage: "e" })],
      ["was aborted", Messages.assistant("x", { stopReason: "aborted" })],
      ["failed with a call in it", Messages.assistant([call("a")], { stopReason: "error" })],
      ["was aborted with a call in it", Messages.assistant([call("a")], { stopReason: "aborted" })]
    ] as const
  ) {
    it.effect(`Q4: from an assistant message that ${what} there is nothing to continue from when the queues are empty`, () =>
      Effect.gen(function*() {
        const messages = [Messages.user("u"), tail]
        const agent = yield* Agent.make({ messages, tools: [echo] })
        const error = yield* Effect.flip(agent.continue)
        assert(error._tag === "CannotContinue")
        assert.strictEqual(error.reason, "AssistantTail")
        assert.strictEqual(error.message, "Cannot continue from message role: assistant")
        assert.strictEqual(Transcript.print(yield* agent.messages), Transcript.print(messages))
      }).pipe(withModel()))

    it.effect(`Q4: from an assistant message that ${what} it takes a steering batch`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ messages: [Messages.user("u"), tail], tools: [echo] })
        yield* agent.steer("S")
        const run = yield* agent.continue
        assert.strictEqual(Transcript.print(run.messages), "U A")
      }).pipe(withModel(fine)))
  }

  const idle = (options: Agent.Options = {}) =>
    Agent.make({ messages: [Messages.user("u"), Messages.assistant("x")], ...options })

  it.effect("Q4: a run started by a steering batch skips the initial steering read", () =>
    Effect.gen(function*() {
      const agent = yield* idle()
      yield* agent.steer("1")
      yield* agent.steer("2")
      yield* agent.followUp("F")
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "U A U A U A")
      assert.deepStrictEqual(said(run.messages), ["1", "2", "F"])
    }).pipe(withModel(fine, fine, fine)))

  it.effect("Q4: a steer that comes while such a run starts waits for the next turn", () =>
    Effect.gen(function*() {
      const agent = yield* idle()
      yield* agent.steer("1")
      yield* agent.subscribe((event) => event.type === "agent_start" ? agent.steer("2") : undefined)
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "U A U A")
    }).pipe(withModel(fine, fine)))

  it.effect("Q4: with the mode all the whole batch starts the run", () =>
    Effect.gen(function*() {
      const agent = yield* idle({ steeringMode: "all" })
      yield* agent.steer("1")
      yield* agent.steer("2")
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "U U A")
    }).pipe(withModel(fine)))

  it.effect("Q4: without steering messages it takes a follow-up batch, and reads steering before the first turn", () =>
    Effect.gen(function*() {
      const agent = yield* idle()
      yield* agent.followUp("F")
      yield* agent.followUp("G")
      yield* agent.subscribe((event) => event.type === "agent_start" ? agent.steer("S") : undefined)
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "U U A U A")
      assert.deepStrictEqual(said(run.messages), ["F", "S", "G"])
    }).pipe(withModel(fine, fine)))

  it.effect("Q4: with the mode all the whole follow-up batch starts the run", () =>
    Effect.gen(function*() {
      const agent = yield* idle({ followUpMode: "all" })
      yield* agent.followUp("F")
      yield* agent.followUp("G")
      assert.strictEqual(Transcript.print((yield* agent.continue).messages), "U U A")
    }).pipe(withModel(fine)))

  it.effect("Q4: calls that were never answered get an error result, and the run goes on", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({
        messages: [Messages.user("u"), Messages.assistant([call("a"), call("b")])],
        tools: [echo]
      })
      const events = yield* record(agent)
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "R(a!) R(b!) A")
      for (const [, text] of answerTexts(run.messages)) assert.match(text, /^! Operation aborted/)
      assert.strictEqual(Transcript.print((yield* ScriptedModel.requests)[0]!.messages), "U A[a,b] R(a!) R(b!)")
      assertBalanced(events)
    }).pipe(withModel(fine)))

  it.effect("Q4: calls that were answered keep their results", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({
        messages: [
          Messages.user("u"),
          Messages.assistant([call("a"), call("b"), call("c")]),
          Messages.toolResult(call("a"), "r")
        ],
        tools: [echo]
      })
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A[a,b,c] R(a) R(b!) R(c!) A")
      assert.strictEqual(Transcript.print(run.messages), "R(b!) R(c!) A")
    }).pipe(withModel(fine)))

  it.effect("Q4, T8: of two calls of one id the one without a result gets one", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      yield* agent.appendMessages([
        Messages.user("u"),
        Messages.assistant([call("a"), call("a")]),
        Messages.toolResult(call("a"), "r")
      ])
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "A")
      assert.strictEqual(Transcript.print((yield* ScriptedModel.requests)[0]!.messages), "U A[a,a_2] R(a) R(a_2!)")
    }).pipe(withModel(fine)))

  it.effect("Q4: answering open calls takes nothing from the queues but the usual steering read", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({
        messages: [Messages.user("u"), Messages.assistant([call("a")])],
        tools: [echo]
      })
      yield* agent.steer("S")
      yield* agent.followUp("F")
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "R(a!) U A U A")
    }).pipe(withModel(fine, fine)))

  it.effect("Q4: continue during a run is refused and consumes nothing", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* agent.followUp("F")
      const error = yield* Effect.flip(agent.continue)
      assert.strictEqual(error._tag, "AgentBusy")
      assert.deepStrictEqual(yield* waiting(agent), [[], ["F"]])
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(Transcript.print((yield* Fiber.join(run)).messages), "U A[a] R(a) A U A")
    }).pipe(withModel(ScriptedModel.calls([["a", "slow", { ms: 100 }]]), fine, fine)))

  it.effect("Q4: after a failed run, continue goes on with what waits", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.followUp("F")
      assert.strictEqual((yield* agent.prompt("go")).outcome._tag, "Failed")
      const run = yield* agent.continue
      assert.deepStrictEqual([said(run.messages), run.outcome._tag], [["F"], "Completed"])
      assert.strictEqual(
        Transcript.print((yield* ScriptedModel.requests)[1]!.messages),
        "U U",
        "empty messages are left out"
      )
    }).pipe(withModel(ScriptedModel.error("down"), fine)))
})

describe("A follow-up queued by a listener of agent_end", () => {
  const following = (agent: Agent.AgentService, texts: Array<string>, queue: "followUp" | "steer" = "followUp") =>
    agent.subscribe((event) => {
      if (event.type !== "agent_end") return
      const text = texts.shift()
      return text === undefined ? undefined : agent[queue](text)
    })

  it.effect("Q5 B26: starts a further run before the agent is idle, and prompt waits for it", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* following(agent, ["F"])
      const events = yield* record(agent)
      const streaming: Array<boolean> = []
      yield* agent.subscribe(() => Effect.map(agent.state, ({ isStreaming }) => streaming.push(isStreaming)))
      const run = yield* settled(agent.prompt("p"))
      assert.strictEqual(Transcript.print(run.messages), "U A U A", "the result has all messages")
      assert.strictEqual(run.outcome._tag, "Completed")
      const ends = ofType(events, "agent_end")
      assert.deepStrictEqual(ends.map(({ messages }) => Transcript.print(messages)), ["U A", "U A"])
      const second = events.findIndex((event, index) => event.type === "agent_start" && index > 0)
      assertBalanced(events.slice(0, second))
      assertBalanced(events.slice(second))
      assert.notInclude(streaming, false, "not idle between the runs")
      assert.isFalse((yield* agent.state).isStreaming)
    }).pipe(withModel(ScriptedModel.text("1", { after: 10 }), ScriptedModel.text("2", { after: 10 }))))

  it.effect("Q5: awaitIdle waits for the further run too", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* following(agent, ["F"])
      const run = yield* Effect.forkChild(agent.prompt("p"))
      yield* TestClock.adjust(15)
      const idle = yield* Effect.forkChild(agent.awaitIdle)
      yield* TestClock.adjust(10)
      assert.isUndefined(idle.pollUnsafe())
      yield* TestClock.adjust(10)
      yield* Fiber.join(idle)
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A U A")
      yield* Fiber.join(run)
    }).pipe(withModel(ScriptedModel.text("1", { after: 10 }), ScriptedModel.text("2", { after: 20 }))))

  it.effect("Q5: the result has the last outcome", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* following(agent, ["F", "G"])
      const run = yield* agent.prompt("p")
      assert.strictEqual(run.outcome._tag, "Failed")
      assert.strictEqual(Transcript.print(run.messages), "U A U A{error}")
      assert.deepStrictEqual(yield* waiting(agent), [[], ["G"]], "after a failed run it waits")
    }).pipe(withModel(fine, ScriptedModel.error("down"))))

  it.effect("Q5: the queue is read once after each run, in its mode", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ followUpMode: "all" })
      let times = 0
      yield* agent.subscribe((event) =>
        event.type === "agent_end" && times++ === 0
          ? Effect.andThen(agent.followUp("F"), agent.followUp("G"))
          : undefined
      )
      const run = yield* agent.prompt("p")
      assert.strictEqual(Transcript.print(run.messages), "U A U U A")
    }).pipe(withModel(fine, fine)))

  it.effect("Q5: a steer queued there waits for the next run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* following(agent, ["S"], "steer")
      const run = yield* agent.prompt("p")
      assert.strictEqual(Transcript.print(run.messages), "U A")
      assert.deepStrictEqual(yield* waiting(agent), [["S"], []])
      assert.deepStrictEqual(said((yield* agent.prompt("q")).messages), ["q", "S"])
    }).pipe(withModel(fine, fine)))

  it.effect("Q5: a steer queued there is read by the further run a follow-up starts", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      let times = 0
      yield* agent.subscribe((event) =>
        event.type === "agent_end" && times++ === 0
          ? Effect.andThen(agent.steer("S"), agent.followUp("F"))
          : undefined
      )
      const run = yield* agent.prompt("p")
      assert.strictEqual(Transcript.print(run.messages), "U A U U A")
      assert.deepStrictEqual(said(run.messages), ["p", "F", "S"])
    }).pipe(withModel(fine, fine)))

  it.effect("Q5: after an abort it waits", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* following(agent, ["F"])
      const fiber = yield* Effect.forkChild(agent.prompt("p"))
      yield* TestClock.adjust(10)
      yield* agent.abort
      const run = yield* Fiber.join(fiber)
      assert.strictEqual(Transcript.print(run.messages), "U A{aborted}")
      assert.deepStrictEqual(yield* waiting(agent), [[], ["F"]])
    }).pipe(withModel(ScriptedModel.hang())))

  it.effect("Q5: after a run that finishTurn ended it waits", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* following(agent, ["F"])
      const run = yield* agent.prompt("p")
      assert.strictEqual(Transcript.print(run.messages), "U A")
      assert.deepStrictEqual(yield* waiting(agent), [[], ["F"]])
    }).pipe(withModel(fine), Effect.provide(Hooks.layer(Hooks.finishTurn(() => "end")))))

  it.effect("Q5: continue waits for the further run as prompt does", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ messages: [Messages.user("u")] })
      yield* following(agent, ["F"])
      const run = yield* agent.continue
      assert.strictEqual(Transcript.print(run.messages), "A U A")
    }).pipe(withModel(fine, fine)))

  it.effect("Q5: an abort during the further run ends it, and the result has both", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* following(agent, ["F"])
      const fiber = yield* Effect.forkChild(agent.prompt("p"))
      yield* TestClock.adjust(10)
      yield* agent.abort
      const run = yield* Fiber.join(fiber)
      assert.strictEqual(run.outcome._tag, "Aborted")
      assert.strictEqual(Transcript.print(run.messages), "U A U A{aborted}")
    }).pipe(withModel(fine, ScriptedModel.hang())))

  it.effect(
    "Q5: three thousand times in a row neither blows the stack nor loses a message",
    () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({})
        const texts = Array.from({ length: 3000 }, (_, index) => String(index))
        yield* following(agent, [...texts])
        const run = yield* agent.prompt("p")
        assert.deepStrictEqual(said(run.messages), ["p", ...texts])
        assert.strictEqual(run.outcome._tag, "Completed")
        assert.deepStrictEqual(said(yield* agent.messages), ["p", ...texts])
      }).pipe(
        Effect.scoped,
        Effect.provide(StreamFn.layer(() => Stream.fromArray([{ type: "start" }, { type: "done" }])))
      ),
    60_000
  )

  it.effect("Q5 B100: a prompt from there is refused, as the agent is not idle yet", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const seen: Array<string> = []
      yield* agent.subscribe((event) =>
        event.type === "agent_end"
          ? agent.prompt("again").pipe(
            Effect.matchEffect({
              onFailure: (error) => Effect.sync(() => seen.push(error._tag)),
              onSuccess: () => Effect.sync(() => seen.push("ran"))
            })
          )
          : undefined
      )
      yield* settled(agent.prompt("p"))
      assert.deepStrictEqual(seen, ["AgentBusy"])
      assert.deepStrictEqual(said(yield* agent.messages), ["p"])
    }).pipe(withEndlessModel(fine)))
})
