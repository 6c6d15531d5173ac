/** Calls and results in messages that an agent, a loop or a hook is given go together in the transcript (I1). */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Queue } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Errors, Hooks, Loop, Messages, Queues } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { Random } from "./properties/random.ts"
import { logged, withEndlessModel } from "./utils/agents.ts"
import { lie } from "./utils/hostile.ts"
import { finish } from "./utils/play.ts"

const call = (id: string): Messages.ToolCall => ({ type: "toolCall", id, name: "t", arguments: {} })
const user = Messages.user("u")
const calling = (...ids: ReadonlyArray<string>) => Messages.assistant(ids.map(call))
const result = (id: string) => Messages.toolResult(call(id), "r")

const fine = withEndlessModel(ScriptedModel.text("fine"))

/** The shape of an agent's transcript, which has to be valid but for open calls at its end. */
const shapeOf = (agent: Agent.AgentService) =>
  Effect.map(agent.messages, (messages) => {
    const found = Messages.check(messages).filter(({ _tag }) => _tag !== "OpenCall")
    assert.deepStrictEqual(found, [], Transcript.show(messages))
    return Transcript.print(messages)
  })

interface Case {
  readonly name: string
  readonly before?: ReadonlyArray<Messages.AgentMessage>
  readonly given: ReadonlyArray<Messages.AgentMessage>
  /** Behind `appendMessages`. */
  readonly appended: string
  /** Behind `prompt`. */
  readonly prompted: string
  /** What the log says, or the error of an agent that is to refuse: of both, or of each. */
  readonly report?: RegExp
  readonly reports?: readonly [append: RegExp | undefined, prompt: RegExp | undefined]
}

const cases: ReadonlyArray<Case> = [
  {
    name: "a call and its result",
    given: [calling("a"), result("a"), user],
    appended: "A[a] R(a) U",
    prompted: "A[a] R(a) U A"
  },
  {
    name: "a call that is open before another message",
    given: [calling("a"), user],
    appended: "A[a] R(a!) U",
    prompted: "A[a] R(a!) U A",
    report: /Message 0: call "a" of "t" has no result/
  },
  {
    name: "a call that is open at the end",
    given: [user, calling("a", "b"), result("a")],
    appended: "U A[a,b] R(a)",
    prompted: "U A[a,b] R(a) R(b!) A",
    reports: [undefined, /Message 1: call "b" of "t" has no result/]
  },
  {
    name: "an orphan result",
    given: [result("z"), user],
    appended: "U",
    prompted: "U A",
    report: /Message 0: no call that ran has the id of call "z"/
  },
  {
    name: "nothing but an orphan result",
    before: [user],
    given: [result("z")],
    appended: "U",
    prompted: "U A",
    report: /Message 0: no call that ran has the id of call "z"/
  },
  {
    name: "one id twice",
    given: [calling("a", "a"), result("a"), result("a")],
    appended: "A[a,a_2] R(a) R(a_2)",
    prompted: "A[a,a_2] R(a) R(a_2) A",
    report: /Message 0: another call has the id of call "a"/
  },
  {
    name: "results in another order, behind another message",
    given: [calling("a", "b"), result("b"), user, result("a")],
    appended: "A[a,b] R(a) R(b) U",
    prompted: "A[a,b] R(a) R(b) U A",
    report: /Message 3: other messages stand before the result of call "a"/
  },
  {
    name: "a response that was still streamed",
    given: [Messages.assistant("x", { stopReason: "pending" }), user],
    appended: "A{aborted} U",
    prompted: "A{aborted} U A",
    report: /Message 0: the response never ended/
  },
  {
    name: "the result of a call that is open in the transcript",
    before: [calling("a")],
    given: [result("a"), user],
    appended: "A[a] R(a) U",
    prompted: "A[a] R(a) U A"
  },
  {
    name: "the first of two results of open calls",
    before: [calling("a", "b")],
    given: [result("a")],
    appended: "A[a,b] R(a)",
    prompted: "A[a,b] R(a) R(b!) A"
  },
  {
    name: "the result of the second of two open calls, one of which is answered",
    before: [calling("a", "b"), result("a")],
    given: [result("b")],
    appended: "A[a,b] R(a) R(b)",
    prompted: "A[a,b] R(a) R(b) A"
  },
  {
    name: "only the second of two results of open calls",
    before: [calling("a", "b")],
    given: [result("b")],
    appended: "A[a,b] R(a!) R(b)",
    prompted: "A[a,b] R(a!) R(b) A",
    reports: [/Message 0: the result of call "b" of "t" is not in call order/, undefined]
  },
  {
    name: "another message behind open calls, and their results",
    before: [calling("a", "b")],
    given: [user, result("b")],
    appended: "A[a,b] R(a!) R(b) U",
    prompted: "A[a,b] R(a!) R(b) U A",
    report: /Message 1: other messages stand before the result of call "b"/
  },
  {
    name: "something without calls behind open calls",
    before: [calling("a", "b")],
    given: [Messages.assistant("x"), user],
    appended: "A[a,b] R(a!) R(b!) A U",
    prompted: "A[a,b] R(a!) R(b!) A U A"
  },
  {
    name: "a second result of a call",
    before: [calling("a"), result("a"), user],
    given: [result("a"), user],
    appended: "A[a] R(a) U U",
    prompted: "A[a] R(a) U U A",
    report: /Message 0: call "a" of "t" has another result/
  },
  {
    name: "a second result of a call, before another call of the same id",
    before: [calling("a"), result("a"), user],
    given: [result("a"), calling("a"), user],
    appended: "A[a] R(a) U A[a] R(a!) U",
    prompted: "A[a] R(a) U A[a] R(a!) U A",
    report: /Message 0: call "a" of "t" has another result/
  },
  {
    name: "a result before its call",
    before: [calling("a"), result("a"), user],
    given: [result("b"), calling("b"), user],
    appended: "A[a] R(a) U A[b] R(b) U",
    prompted: "A[a] R(a) U A[b] R(b) U A",
    report: /Message 0: the result stands before call "b" of "t"/
  },
  {
    name: "the result of a call that never ran",
    before: [Messages.assistant([call("a")], { stopReason: "aborted" })],
    given: [result("a"), user],
    appended: "A[a]{aborted} U",
    prompted: "A[a]{aborted} U A",
    report: /Message 0: no call that ran has the id of call "a"/
  }
]

describe("Messages that are appended or prompted", () => {
  for (const { appended, before = [], given, name, prompted, report, reports = [report, report] } of cases) {
    const ways = [
      [
        "appendMessages",
        appended,
        reports[0],
        (agent: Agent.AgentService): Effect.Effect<unknown, unknown> => agent.appendMessages(given)
      ],
      [
        "prompt",
        prompted,
        reports[1],
        (agent: Agent.AgentService): Effect.Effect<unknown, unknown> => agent.prompt(given)
      ]
    ] as const
    for (const [way, expected, problem, give] of ways) {
      it.effect(`I1 (${way}): ${name}`, () =>
        Effect.gen(function*() {
          const agent = yield* Agent.make({ messages: before })
          const [, log] = yield* logged(give(agent))
          assert.strictEqual(yield* shapeOf(agent), expected)
          if (problem === undefined) assert.deepStrictEqual(log, [])
          else {
            assert.lengthOf(log, 1)
            assert.match(log[0]!, problem)
          }
          yield* agent.prompt("next")
          assert.deepStrictEqual(Messages.check(yield* agent.messages), [])
        }).pipe(fine))

      it.effect(`I1 (${way}, refuse): ${name}`, () =>
        Effect.gen(function*() {
          const agent = yield* Agent.make({ messages: before, transcript: "refuse" })
          const then = yield* agent.messages
          const exit = yield* Effect.exit(give(agent))
          if (problem === undefined) {
            assert.isTrue(Exit.isSuccess(exit))
            assert.strictEqual(yield* shapeOf(agent), expected)
            return
          }
          assert(Exit.isFailure(exit))
          const error = Cause.squash(exit.cause)
          if (way === "prompt") {
            assert(error instanceof Errors.InvalidPrompt)
            assert.strictEqual(error.reason, "InvalidMessage")
            assert.match(error.message, problem)
          } else {
            assert(error instanceof Errors.AgentConfigError)
            assert.strictEqual(error.reason, "InvalidTranscript")
            assert.match(error.message, problem)
          }
          assert.strictEqual(yield* agent.messages, then)
          assert.isFalse((yield* agent.state).isStreaming)
        }).pipe(fine))
    }
  }

  /** Messages that may go together or not. */
  const draw = (random: Random): ReadonlyArray<Messages.AgentMessage> =>
    Array.from({ length: random.int(0, 6) }, () => {
      const id = () => random.pick(["a", "b", "c"])
      return random.weighted<() => Messages.AgentMessage>([
        [2, () => user],
        [1, () => Messages.assistant("x")],
        [1, () => Messages.assistant([call(id())], { stopReason: "aborted" })],
        [4, () => calling(...Array.from({ length: random.int(1, 3) }, id))],
        [6, () => result(random.chance(0.1) ? "z" : id())]
      ])()
    })

  const timeless = (messages: ReadonlyArray<Messages.AgentMessage>) =>
    messages.map((message) => ({ ...message, timestamp: 0 }))

  it.effect("I1: appended, a list pairs as it does at the end of the whole transcript; prompted, nothing stays open", () =>
    Effect.gen(function*() {
      for (let seed = 1; seed <= 500; seed++) {
        const random = new Random(seed)
        const given = draw(random)
        const [agent, whole, prompted] = [yield* Agent.make({}), yield* Agent.make({}), yield* Agent.make({})]
        yield* agent.setMessages(draw(random))
        const before = yield* agent.messages
        yield* agent.appendMessages(given)
        yield* whole.setMessages([...before, ...given])
        assert.deepStrictEqual(timeless(yield* agent.messages), timeless(yield* whole.messages), `seed ${seed}`)
        yield* prompted.setMessages(before)
        yield* prompted.prompt(given)
        assert.deepStrictEqual(Messages.check(yield* prompted.messages), [], `seed ${seed}`)
        assert.deepStrictEqual((yield* prompted.messages).slice(0, before.length), before, `seed ${seed}`)
      }
    }).pipe(logged, fine))

  it.effect("I1: appending costs in proportion to what is added, however long the transcript is", () =>
    Effect.gen(function*() {
      const turns = (count: number) => Array.from({ length: count }, () => [calling("a"), result("a")]).flat()
      const agent = yield* Agent.make({ messages: turns(10_000) })
      // Pairing the whole transcript for each would take minutes.
      for (let n = 0; n < 2000; n++) yield* agent.appendMessages(turns(1))
      assert.lengthOf(yield* agent.messages, 24_000)
    }).pipe(fine))
})

describe("Messages that stand alone", () => {
  const needy = { "a tool result": result("a"), "a message with a call": calling("a") }
  for (const [name, message] of Object.entries(needy)) {
    for (const method of ["steer", "followUp", "note"] as const) {
      it.effect(`I1: ${method} refuses ${name}, idle and in a run`, () =>
        Effect.gen(function*() {
          const agent = yield* Agent.make({})
          const refuses = Effect.gen(function*() {
            const exit = yield* Effect.exit<unknown, never, never>(agent[method](message))
            assert(Exit.isFailure(exit))
            const error = Cause.squash(exit.cause)
            assert(error instanceof Errors.InvalidPrompt)
            assert.strictEqual(error.reason, "InvalidMessage")
            assert.deepStrictEqual(yield* agent.queued, { steering: [], followUps: [] })
          })
          yield* refuses
          const problems: Array<unknown> = []
          yield* agent.subscribe((event) =>
            event.type === "turn_end"
              ? Effect.map(Effect.exit(refuses), (exit) => void (Exit.isFailure(exit) && problems.push(exit)))
              : undefined
          )
          yield* agent.prompt("go")
          assert.deepStrictEqual(problems, [])
          assert.strictEqual(yield* shapeOf(agent), "U A")
        }).pipe(fine))
    }

    for (const whileRunning of ["steer", "followUp"] as const) {
      it.effect(`I1 H2: a prompt with ${name} is not queued as ${whileRunning}, and is taken when no run is under way`, () =>
        Effect.gen(function*() {
          const agent = yield* Agent.make({})
          const run = yield* Effect.forkChild(agent.prompt("go"))
          yield* TestClock.adjust(50)
          const error = yield* Effect.flip(agent.prompt([user, message], { whileRunning }))
          assert.deepInclude(error, { _tag: "InvalidPrompt", reason: "InvalidMessage" })
          assert.deepStrictEqual(yield* agent.queued, { steering: [], followUps: [] })
          yield* TestClock.adjust("1 hour")
          yield* Fiber.join(run)
          const list = [calling("a"), result("a"), user]
          const later = yield* Effect.forkChild(agent.prompt(list, { whileRunning }))
          yield* TestClock.adjust("1 hour")
          yield* Fiber.join(later)
          assert.strictEqual(yield* shapeOf(agent), "U A A[a] R(a) U A")
        }).pipe(withEndlessModel(ScriptedModel.text("fine", { after: 100 }))))
    }

    for (const which of ["steering", "followUps"] as const) {
      it.effect(`I1: ${name} that other code offers to ${which} is left out and logged, whatever takes it`, () =>
        Effect.gen(function*() {
          const agent = yield* Agent.make({})
          const offer = Effect.andThen(
            Queue.offer(agent[which], message),
            Queue.offer(agent[which], Messages.user("S"))
          )
          const [, log] = yield* logged(Effect.gen(function*() {
            yield* offer
            yield* agent.prompt("go")
            yield* offer
            yield* agent.continue
            let left = 1
            yield* agent.subscribe((event) => event.type === "agent_end" && left-- > 0 ? offer : undefined)
            yield* agent.prompt("go")
            if (which === "steering") yield* agent.continue
          }))
          assert.lengthOf(log, 3)
          assert.match(log.join(), /left out.*is a tool result or has tool calls/)
          const [first, second, third] = which === "steering"
            ? ["U U A", "U A", "U A U A"]
            : ["U A U A", "U A", "U A U A"]
          assert.strictEqual(yield* shapeOf(agent), `${first} ${second} ${third}`)
        }).pipe(fine))

      it.effect(`I1 Q4: ${name} alone in ${which} is nothing to continue from`, () =>
        Effect.gen(function*() {
          const agent = yield* Agent.make({ messages: [user, Messages.assistant("x")] })
          yield* Queue.offer(agent[which], message)
          const [error, log] = yield* logged(Effect.flip(agent.continue))
          assert.deepInclude(error, { _tag: "CannotContinue", reason: "AssistantTail" })
          assert.lengthOf(log, 1)
          yield* agent.followUp("F")
          yield* agent.continue
          assert.strictEqual(yield* shapeOf(agent), "U A U A")
        }).pipe(fine))
    }

    it.effect(`I1: a queue that a loop alone is given refuses ${name}, and what does not decode`, () =>
      Effect.gen(function*() {
        const queue = yield* Queues.make("all")
        for (const bad of [message, lie<Messages.AgentMessage>(null), lie<Messages.AgentMessage>({ role: "user" })]) {
          assert.throws(() => queue.post("x", bad, true), /The message (is a tool result|does not decode)/)
        }
        assert.strictEqual(queue.size, 0)
        queue.offer(message)
        queue.post("y", Messages.user("\ud800"), true)
        const [{ messages }, log] = yield* logged(
          Loop.run([user], { messages: [], tools: [] }, { steering: queue })
        )
        assert.lengthOf(log, 1)
        assert.deepStrictEqual(messages.map(Messages.text), ["u", "\ufffd", "fine"])
      }).pipe(fine))
  }
})

describe("A loop alone and hooks", () => {
  for (const { before = [], given, name, prompted, report, reports = [report, report] } of cases) {
    it.effect(`I1 (Loop.run): ${name}`, () =>
      Effect.gen(function*() {
        const [{ messages }, log] = yield* logged(finish(Loop.run(given, { messages: before, tools: [] })))
        assert.strictEqual(Transcript.print([...before, ...messages]), prompted)
        assert.deepStrictEqual(Messages.check([...before, ...messages]), [])
        if (reports[1] === undefined) assert.deepStrictEqual(log, [])
        else assert.match(log[0]!, reports[1])
      }).pipe(fine))

    it.effect(`I1 (prepareNextTurn): ${name}`, () =>
      Effect.gen(function*() {
        const messages = [...before, ...given]
        const agent = yield* Agent.make({}).pipe(Effect.provide(Hooks.layer(
          Hooks.prepareNextTurn(() => Effect.succeed({ messages }))
        )))
        yield* agent.followUp("next")
        yield* logged(agent.prompt("go"))
        assert.deepStrictEqual(Messages.check(yield* agent.messages), [])
        assert.include(yield* shapeOf(agent), `U A ${prompted.slice(0, -2)}`)
      }).pipe(fine))
  }
})
