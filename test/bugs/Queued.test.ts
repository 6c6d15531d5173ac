/** B26, B30, B38, B40: what is queued at the end of a run, noted without a question, taken back, or prompted twice. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Queue, Stream } from "effect"
import { Agent, type Errors, type Events, Hooks, Messages, Queues } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { unanswered } from "../utils/invariants.ts"
import { pass, rest, subscribe, test } from "../utils/leaks.ts"
import { deaf, quick, slow, terminator, tool } from "../utils/timedTools.ts"
import { makeTrial, modes, type Setting, settings, type Trial } from "../utils/trial.ts"

const fine = ScriptedModel.text("fine")

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

const kinds = ["steer", "followUp"] as const

/** The texts of the users' messages, in order. */
const said = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> =>
  messages.filter(({ role }) => role === "user").map(Messages.text)

/** Does something the first few times an event of this type comes. */
const onFirst = (type: Events.AgentEventType, times: number, act: Effect.Effect<unknown>): Agent.Listener => {
  let left = times
  return (event) => event.type === type && left-- > 0 ? act : undefined
}

describe("B26 a follow-up that a listener of the end queues runs before the agent is idle", () => {
  type Offer = (trial: Trial, text: string) => Effect.Effect<unknown>
  const offers: ReadonlyArray<readonly [name: string, offer: Offer]> = [
    ["followUp", (trial, text) => trial.followUp(text)],
    ["Queue.offer", (trial, text) => {
      trial.accepted.push(text)
      return Queue.offer(trial.agent.followUps, Messages.user(text))
    }]
  ]
  for (const [name, setting] of settings) {
    for (const [how, offer] of offers) {
      test(`B26 (Q5) by ${how}, ${name}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ ...setting, otherwise: fine })
          const { agent } = trial
          const busy: Array<boolean> = []
          yield* subscribe(agent, onFirst("agent_end", 1, Effect.suspend(() => offer(trial, "F"))))
          yield* subscribe(agent, (event) =>
            event.type === "agent_start"
              ? Effect.map(agent.state, ({ isStreaming }) => void busy.push(isStreaming))
              : undefined)
          const run = yield* trial.start("p")
          const idle = yield* Effect.forkChild(agent.awaitIdle, { startImmediately: true })
          yield* rest
          assert.isDefined(idle.pollUnsafe())
          const [{ messages, outcome }] = yield* Fiber.join(run)
          assert.strictEqual(yield* trial.shape, "U A U A")
          assert.deepStrictEqual(said(messages), ["p", "F"])
          assert.strictEqual(outcome._tag, "Completed")
          assert.deepStrictEqual([busy, yield* trial.queued], [[true, true], []])
          if (trial.watched) assert.lengthOf(trial.heard("agent_end"), 2)
        }))
    }

    test(`B26 (Q5) again and again, one run each, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, otherwise: fine })
        let count = 0
        yield* subscribe(
          trial.agent,
          onFirst("agent_end", 5, Effect.suspend(() => trial.followUp(`F${++count}`)))
        )
        const { messages } = yield* trial.run("p")
        assert.deepStrictEqual(said(messages), ["p", "F1", "F2", "F3", "F4", "F5"])
        yield* trial.shape
        if (trial.watched) assert.lengthOf(trial.heard("agent_start"), 6)
      }))

    test(`B26 (Q5) two at once: the second one in the same further run, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, otherwise: fine })
        const both = Effect.suspend(() => Effect.andThen(trial.followUp("F"), trial.followUp("G")))
        yield* subscribe(trial.agent, onFirst("agent_end", 1, both))
        const { messages } = yield* trial.run("p")
        assert.deepStrictEqual(said(messages), ["p", "F", "G"])
        yield* trial.shape
        if (trial.watched) assert.lengthOf(trial.heard("agent_start"), 2)
      }))

    test(`B26 (Q5) a steering message waits for the next run, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, otherwise: fine })
        const receipts: Array<Queues.Receipt> = []
        const steering = Effect.suspend(() => Effect.map(trial.steer("S"), (receipt) => void receipts.push(receipt)))
        yield* subscribe(trial.agent, onFirst("agent_end", 1, steering))
        yield* trial.run("p")
        assert.deepStrictEqual([yield* trial.shape, yield* trial.queued], ["U A", ["S"]])
        yield* trial.run("again")
        assert.strictEqual(yield* trial.shape, "U A U U A")
        assert.deepStrictEqual(yield* receipts[0]!.delivered, Queues.Delivery.Delivered({ turn: 1 }))
      }))
  }

  /** Ends after which it stays queued. */
  const ends: ReadonlyArray<readonly [name: string, Setting, because: "aborted" | "limited" | "failed" | undefined]> = [
    ["the finishTurn hook ended the run", { hooks: [Hooks.finishTurn(() => "end")] }, undefined],
    ["the run failed", { responses: [ScriptedModel.error("down")] }, "failed"],
    ["the run was limited", { limits: { turns: 1 }, tools: [quick("a")], responses: [calling("a")] }, "limited"],
    ["the run took too long", { hooks: [Hooks.apiKey(() => Effect.never)], limits: { duration: 10 } }, "limited"]
  ]
  for (const [name, setting, because] of ends) {
    test(`B26 (Q5) ${name}: it stays queued, and nothing runs`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine, ...setting })
        const receipts: Array<Queues.Receipt> = []
        const queueing = Effect.suspend(() => Effect.map(trial.followUp("F"), (receipt) => void receipts.push(receipt)))
        yield* subscribe(trial.agent, onFirst("agent_end", 1, queueing))
        yield* trial.run("p")
        yield* trial.shape
        assert.deepStrictEqual(yield* trial.queued, ["F"])
        assert.lengthOf(trial.heard("agent_end"), 1)
        if (because === undefined) return assert.isTrue(yield* trial.agent.withdraw(receipts[0]!.id))
        assert.deepStrictEqual(yield* receipts[0]!.delivered, Queues.Delivery.Returned({ because }))
      }))
  }

  test("B26 (Q5) the run was aborted: it stays queued, and nothing runs", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ responses: [ScriptedModel.hang()], otherwise: fine })
      yield* subscribe(trial.agent, onFirst("agent_end", 1, Effect.suspend(() => trial.followUp("F"))))
      const run = yield* trial.start("p")
      yield* pass(10)
      yield* trial.abort(run)
      assert.deepStrictEqual([yield* trial.shape, yield* trial.queued], ["U A{aborted}", ["F"]])
      yield* trial.nothingFollows
    }))

  test("B26 (Q5) all tools asked to stop: it runs", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ tools: [terminator("a")], responses: [calling("a")], otherwise: fine })
      yield* subscribe(trial.agent, onFirst("agent_end", 1, Effect.suspend(() => trial.followUp("F"))))
      yield* trial.run("p")
      assert.strictEqual(yield* trial.shape, "U A[a] R(a) U A")
    }))

  test("B26 (A1, Q5) an abort in the further run ends it, and what is queued stays", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ responses: [fine], otherwise: ScriptedModel.text("more", { after: 100 }) })
      const both = Effect.suspend(() => Effect.andThen(trial.followUp("F"), trial.followUp("G")))
      yield* subscribe(trial.agent, onFirst("agent_end", 1, both))
      const run = yield* trial.start("p")
      yield* pass(50)
      const { messages } = yield* trial.abort(run)
      assert.strictEqual(yield* trial.shape, "U A U A{aborted}")
      assert.deepStrictEqual(said(messages), ["p", "F"])
      assert.deepStrictEqual(yield* trial.queued, ["G"])
      yield* trial.nothingFollows
    }))

  test("B26 (A1, Q5) an abort by the listener that queues it: it stays queued, and nothing runs", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine })
      const act = Effect.suspend(() => Effect.andThen(trial.followUp("F"), trial.agent.abort))
      yield* subscribe(trial.agent, onFirst("agent_end", 1, act))
      assert.strictEqual((yield* trial.run("p")).outcome._tag, "Completed")
      assert.deepStrictEqual([yield* trial.shape, yield* trial.queued], ["U A", ["F"]])
    }))

  test("B26 (A1, Q5) an abort between the run and the further one: it stays queued, and nothing runs", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine, audience: "plain" })
      let over = false
      const aborting: Effect.Effect<void> = Effect.suspend(() =>
        over ? trial.agent.abort : Effect.andThen(Effect.yieldNow, aborting)
      )
      const act = Effect.suspend(() => Effect.map(trial.followUp("F"), () => over = true))
      yield* subscribe(trial.agent, onFirst("agent_end", 1, act))
      const abort = yield* Effect.forkChild(aborting)
      assert.strictEqual((yield* trial.run("p")).outcome._tag, "Completed")
      yield* Fiber.join(abort)
      assert.deepStrictEqual([yield* trial.shape, yield* trial.queued], ["U A", ["F"]])
    }))

  test("B26 (H3) an observer that does not hold up the run learns from the receipt what became of it", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine })
      const receipts: Array<Queues.Receipt> = []
      const observing = yield* Effect.forkChild(
        trial.agent.events.pipe(
          Stream.takeUntil(({ type }) => type === "agent_end"),
          Stream.runDrain,
          Effect.andThen(trial.followUp("F")),
          Effect.map((receipt) => void receipts.push(receipt))
        ),
        { startImmediately: true }
      )
      yield* trial.run("p")
      yield* Fiber.join(observing)
      const ran = (yield* trial.queued).length === 0
      assert.strictEqual(yield* trial.shape, ran ? "U A U A" : "U A")
      assert.strictEqual(receipts[0]!.whileIdle, !ran)
    }))
})

describe("B30 a note asks for no answer", () => {
  const shapeOf = (trial: Trial) =>
    Effect.map(trial.agent.messages, (messages) => {
      assert.deepStrictEqual(unanswered(messages), [])
      return Transcript.print(messages)
    })

  for (const [name, setting] of settings) {
    test(`B30 during the last response: it is in the transcript, for the next run, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, responses: [ScriptedModel.text("done", { after: 10 }), fine] })
        const run = yield* trial.start("p")
        yield* pass(5)
        yield* trial.agent.note("hint")
        yield* pass(5)
        yield* Fiber.join(run)
        yield* pass("1 hour")
        assert.deepStrictEqual([yield* shapeOf(trial), yield* trial.requests], ["U A U", 1])
        yield* trial.run("next")
        assert.deepStrictEqual(said(yield* trial.request(1)), ["p", "hint", "next"])
        assert.strictEqual(yield* shapeOf(trial), "U A U U A")
      }))

    test(`B30 with further turns to come: it is in the next request, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...setting,
          tools: [slow("a", 100)],
          responses: [calling("a"), calling("a"), fine]
        })
        const run = yield* trial.start("p")
        yield* pass(50)
        yield* trial.agent.note("1")
        yield* trial.agent.note("2")
        yield* trial.steer("S")
        yield* pass(100)
        yield* trial.agent.note("3")
        yield* pass("1 hour")
        yield* Fiber.join(run)
        assert.strictEqual(yield* trial.shape, "U A[a] R(a) U U U A[a] R(a) U A")
        assert.deepStrictEqual(said(yield* trial.request(1)), ["p", "1", "2", "S"])
        assert.deepStrictEqual(said(yield* trial.request(2)), ["p", "1", "2", "S", "3"])
      }))

    test(`B30 while idle: it is in the transcript at once, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, responses: [fine] })
        yield* trial.agent.note("1")
        assert.deepStrictEqual([yield* shapeOf(trial), yield* trial.requests], ["U", 0])
        yield* pass("1 hour")
        yield* trial.agent.note(Messages.user("2"))
        const timestamps = (yield* trial.agent.messages).map((message) => "timestamp" in message && message.timestamp)
        assert.deepStrictEqual(timestamps, [0, 3_600_000])
        yield* trial.run("p")
        assert.deepStrictEqual(said(yield* trial.request(0)), ["1", "2", "p"])
      }))
  }

  const ends: ReadonlyArray<readonly [name: string, Setting, abort: boolean, shape: string]> = [
    ["is aborted", {}, true, "U A[a] R(a!) U"],
    ["fails", { hooks: [Hooks.finishTurn(() => Effect.fail("broke"))] }, false, "U A[a] R(a) A{error} U"],
    ["is limited", { limits: { turns: 1 } }, false, "U A[a] R(a) U"],
    ["is ended by finishTurn", { hooks: [Hooks.finishTurn(() => "end")] }, false, "U A[a] R(a) U"]
  ]
  for (const mode of modes) {
    for (const [name, setting, abort, shape] of ends) {
      test(`B30 (I4) in a run that ${name}, it is in the transcript once the run is over, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            toolExecution: mode,
            tools: [slow("a", 100)],
            responses: [calling("a")],
            otherwise: fine,
            ...setting
          })
          const run = yield* trial.start("p")
          yield* pass(50)
          yield* trial.agent.note("hint")
          if (abort) yield* trial.abort(run)
          else yield* pass(50)
          yield* Fiber.join(run)
          assert.strictEqual(yield* shapeOf(trial), shape)
          yield* trial.nothingFollows
        }))
    }
  }

  test("B30 a listener of the end notes something: nothing wakes up", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine })
      yield* subscribe(trial.agent, onFirst("agent_end", 3, Effect.suspend(() => trial.agent.note("hint"))))
      yield* trial.run("p")
      assert.deepStrictEqual([yield* shapeOf(trial), yield* trial.requests], ["U A U", 1])
    }))
})

describe("B38 taking back what was queued", () => {
  for (const kind of kinds) {
    for (const running of [false, true]) {
      test(`B38 ${kind} ${running ? "during a run" : "while idle"}: withdraw takes one, once; clear gives the others`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ tools: [slow("a", 100)], responses: [calling("a")], otherwise: fine })
          const run = running ? yield* trial.start() : undefined
          yield* pass(50)
          const texts = ["1", "2", "3"]
          const receipts = yield* Effect.forEach(texts, (text) => trial.agent[kind](text))
          const [one, two, three] = receipts
          assert.strictEqual(yield* trial.agent.withdraw("unknown"), false)
          assert.strictEqual(yield* trial.agent.withdraw(two!.id), true)
          assert.strictEqual(yield* trial.agent.withdraw(two!.id), false)
          assert.deepStrictEqual(yield* trial.queued, ["1", "3"])
          assert.deepStrictEqual(yield* two!.delivered, Queues.Delivery.Withdrawn())
          const clear = kind === "steer" ? trial.agent.clearSteering : trial.agent.clearFollowUps
          const other = kind === "steer" ? trial.agent.clearFollowUps : trial.agent.clearSteering
          assert.deepStrictEqual((yield* other).map(Messages.text), [])
          assert.deepStrictEqual((yield* clear).map(Messages.text), ["1", "3"])
          assert.deepStrictEqual((yield* trial.agent.clearQueues).map(Messages.text), [])
          assert.deepStrictEqual(yield* one!.delivered, Queues.Delivery.Withdrawn())
          assert.deepStrictEqual(yield* three!.delivered, Queues.Delivery.Withdrawn())
          assert.deepStrictEqual(
            yield* Effect.forEach(receipts, ({ id }) => trial.agent.withdraw(id)),
            [false, false, false]
          )
          yield* pass(50)
          if (run !== undefined) yield* Fiber.join(run)
          else yield* trial.run()
          yield* trial.shape
          assert.deepStrictEqual(said(yield* trial.agent.messages), ["go"])
        }))
    }

    test(`B38 ${kind}: what was delivered cannot be withdrawn`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine })
        const receipt = yield* trial[kind]("S")
        yield* trial.run()
        assert.strictEqual(yield* trial.agent.withdraw(receipt.id), false)
        yield* trial.shape
        assert.deepStrictEqual(said(yield* trial.agent.messages), ["go", "S"])
      }))

    test(`B38 (Q3) ${kind}: what the run holds cannot be withdrawn until it goes back`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          responses: [ScriptedModel.text("1", { after: 10 })],
          otherwise: fine,
          hooks: [Hooks.prepareNextTurn(() => Effect.sleep(100))]
        })
        const run = yield* trial.start()
        yield* pass(5)
        const held = yield* trial[kind]("1")
        const waiting = yield* trial[kind]("2")
        yield* pass(55)
        assert.strictEqual(yield* trial.agent.withdraw(held.id), false)
        assert.deepStrictEqual((yield* trial.agent.peek).map(Messages.text), ["2"])
        yield* trial.abort(run)
        assert.deepStrictEqual(yield* trial.queued, ["1", "2"])
        assert.strictEqual(yield* trial.agent.withdraw(held.id), true)
        assert.deepStrictEqual(yield* trial.queued, ["2"])
        assert.strictEqual(yield* trial.agent.withdraw(waiting.id), true)
      }))
  }
})

describe("B40 two prompts at once", () => {
  for (const [name, setting] of settings) {
    for (const count of [2, 5]) {
      test(`B40 (H1) ${count} in one tick: one runs, the others are busy and nowhere, ${name}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ ...setting, responses: [ScriptedModel.text("fine", { after: 10 })] })
          const texts = Array.from({ length: count }, (_, index) => `p${index}`)
          const prompting = yield* Effect.forkChild(
            Effect.forEach(texts, (text) => Effect.exit(trial.agent.prompt(text)), { concurrency: "unbounded" })
          )
          yield* pass(10)
          const exits = yield* Fiber.join(prompting)
          assert.deepStrictEqual(
            exits.map(({ _tag }) => _tag),
            texts.map((_, index) => index === 0 ? "Success" : "Failure")
          )
          for (const exit of exits.slice(1)) {
            const error = yield* Effect.flip(exit)
            assert.strictEqual(error._tag, "AgentBusy")
            assert.match(error.message, /^Agent is already processing a prompt/)
          }
          trial.accepted.push("p0")
          assert.strictEqual(yield* trial.shape, "U A")
          assert.deepStrictEqual(yield* trial.queued, [])
        }))
    }
  }

  type Ask = (
    agent: Agent.AgentService
  ) => Effect.Effect<unknown, Errors.AgentBusy | Errors.InvalidPrompt | Errors.CannotContinue>
  const asks: ReadonlyArray<readonly [name: string, ask: Ask]> = [
    ["prompt", (agent) => agent.prompt("b")],
    ["continue", (agent) => agent.continue],
    ["a stream of events", (agent) => Stream.runDrain(Agent.stream(agent, "b"))]
  ]
  for (const mode of modes) {
    for (const [name, ask] of asks) {
      test(`B40 (H1) ${name} at every moment of a run and of its end, ${mode}`, () =>
        Effect.gen(function*() {
          const tags: Array<string> = []
          const trial = yield* makeTrial({
            toolExecution: mode,
            tools: [deaf("a", 5000)],
            responses: [ScriptedModel.calls([["a", "a", {}]], { after: 10 }), fine],
            hooks: [Hooks.beforeToolCall(() => Effect.sleep(10))]
          })
          const tag = Effect.map(Effect.exit(Effect.flip(ask(trial.agent))), (exit) =>
            tags.push(exit._tag === "Success" ? exit.value._tag : exit._tag))
          yield* subscribe(trial.agent, (event) =>
            event.type === "agent_end" ? tag : undefined)
          const run = yield* trial.start()
          for (const millis of [5, 10, 10]) {
            yield* pass(millis)
            yield* tag
          }
          const aborting = yield* Effect.forkChild(trial.agent.abort)
          yield* pass(500)
          yield* tag
          yield* pass(500)
          yield* Fiber.join(aborting)
          yield* Fiber.join(run)
          assert.deepStrictEqual(tags, Array.from({ length: 5 }, () => "AgentBusy"))
          assert.strictEqual(yield* trial.shape, "U A[a] R(a!)")
          yield* pass(5000)
          yield* trial.run("again")
        }))
    }

    for (const options of [{}, { whileRunning: "steer" }, { whileRunning: "followUp" }] as const) {
      const how = "whileRunning" in options ? `, whileRunning: ${options.whileRunning}` : ""
      test(`B40 (H1) from inside of the run, which would wait for itself${how}, ${mode}`, () =>
        Effect.gen(function*() {
          const tags = new Map<string, string>()
          const inside: { ask: (place: string) => Effect.Effect<void> } = { ask: () => Effect.void }
          const asks = (place: string) => Effect.suspend(() => inside.ask(place))
          const trial = yield* makeTrial({
            toolExecution: mode,
            tools: [tool("a", () => Effect.as(asks("tool"), "done"))],
            responses: [calling("a"), fine],
            hooks: [
              Hooks.beforeToolCall(() => asks("beforeToolCall")),
              Hooks.finishTurn(() => asks("finishTurn")),
              Hooks.transformContext((messages) => Effect.as(asks("transformContext"), messages))
            ]
          })
          inside.ask = (place) =>
            Effect.map(
              Effect.flip(trial.agent.prompt("b", options)),
              (error) => void tags.set(place, error._tag)
            ).pipe(Effect.orDie)
          yield* subscribe(trial.agent, (event) => asks(event.type))
          yield* trial.run()
          assert.strictEqual(yield* trial.shape, "U A[a] R(a) A")
          assert.deepStrictEqual(yield* trial.queued, [])
          assert.deepStrictEqual(new Set(tags.values()), new Set(["AgentBusy"]))
          assert.includeMembers([...tags.keys()], [
            "tool",
            "beforeToolCall",
            "finishTurn",
            "transformContext",
            "agent_start",
            "agent_end"
          ])
        }))
    }

    for (const whileRunning of kinds) {
      test(`B40 (H2) from outside, whileRunning: ${whileRunning}, it is queued and waits for the end, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            toolExecution: mode,
            tools: [slow("a", 100)],
            responses: [calling("a")],
            otherwise: fine
          })
          const run = yield* trial.start()
          yield* pass(50)
          const second = yield* Effect.forkChild(trial.agent.prompt("b", { whileRunning }))
          yield* rest
          trial.accepted.push("b")
          assert.deepStrictEqual(yield* trial.queued, ["b"])
          yield* pass(50)
          const [first] = yield* Fiber.join(run)
          assert.deepStrictEqual((yield* Fiber.join(second)).messages, first.messages)
          assert.strictEqual(
            yield* trial.shape,
            whileRunning === "steer" ? "U A[a] R(a) U A" : "U A[a] R(a) A U A"
          )
        }))
    }
  }
})
