/** B23, B24, B27, B28, B31, B32, B33: what a person says while the agent works, or before it does. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import { type Agent, Errors, type Events, Hooks, Messages, Queues } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { pass, rest, subscribe, test } from "../utils/leaks.ts"
import { quick, slow, tool } from "../utils/timedTools.ts"
import { makeTrial, modes, type Setting, settings, type Trial } from "../utils/trial.ts"

const fine = ScriptedModel.text("fine")

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

const kinds = ["steer", "followUp"] as const

const queueModes: ReadonlyArray<Queues.QueueMode> = ["one-at-a-time", "all"]

/** The texts of the users' messages, in order. */
const said = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> =>
  messages.filter(({ role }) => role === "user").map(Messages.text)

const delivery = (receipt: Queues.Receipt): Effect.Effect<Queues.Delivery | undefined> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(receipt.delivered)
    yield* rest
    const exit = fiber.pollUnsafe()
    yield* Fiber.interrupt(fiber)
    return exit?._tag === "Success" ? exit.value : undefined
  })

describe("B23 what was queued and not delivered is still queued when a run ends early", () => {
  type Place = (waits: Effect.Effect<void>) => Setting & { readonly listener?: Agent.Listener }
  const listening = (match: (event: Events.AgentEvent) => boolean): Place => (waits) => ({
    listener: (event) => match(event) ? waits : undefined
  })
  const isUser = (text: string) => (event: Events.AgentEvent) =>
    event.type === "message_start" && Messages.text(event.message) === text
  /** Where the run waits for an hour, and how many of the three messages are in the transcript then, by queue and mode. */
  const places: ReadonlyArray<readonly [name: string, Place, settles: number, steered: number, all: number]> = [
    ["in the tool", (waits) => ({ tools: [tool("a", () => Effect.as(waits, "done"))] }), 0, 0, 0],
    ["in finishTurn", (waits) => ({ hooks: [Hooks.finishTurn(() => waits)] }), 0, 0, 0],
    ["on turn_end", listening(({ type }) => type === "turn_end"), 10, 0, 0],
    ["in prepareNextTurn", (waits) => ({ hooks: [Hooks.prepareNextTurn(() => waits)] }), 0, 0, 0],
    ["on the next turn_start", listening(({ type }) => type === "turn_start"), 10, 0, 0],
    ["on the first of them", listening(isUser("1")), 10, 1, 1],
    ["on the second of them", listening(isUser("2")), 10, 2, 2],
    ["in the next prepareRequest", (waits) => ({ hooks: [Hooks.prepareRequest(() => waits)] }), 0, 1, 3],
    [
      "in the next transformContext",
      (waits) => ({
        hooks: [Hooks.transformContext((messages) => Effect.as(waits, messages))]
      }),
      0,
      1,
      3
    ]
  ]
  const ways: ReadonlyArray<
    readonly [
      name: string,
      because: "aborted" | "limited",
      end: (trial: Trial, run: Fiber.Fiber<unknown, unknown>) => Effect.Effect<void>
    ]
  > = [
    ["an abort", "aborted", ({ agent }) => agent.abort],
    ["an interruption", "aborted", (_, run) => Fiber.interrupt(run)],
    ["the limit of its duration", "limited", () => Effect.void]
  ]
  for (const kind of kinds) {
    for (const queueMode of queueModes) {
      for (const [way, because, end] of ways) {
        for (const [name, place, settles, one, all] of places) {
          if (kind === "followUp" && name === "in the tool") continue
          test(`B23 (Q3) ${kind}, ${way} ${name}, ${queueMode}`, () =>
            Effect.gen(function*() {
              let armed = false
              const waits = Effect.suspend(() => {
                if (!armed) return Effect.void
                armed = false
                return Effect.sleep(20)
              })
              const { listener, ...setting } = place(waits)
              // One at a time the second of them is delivered one turn later.
              const at = name === "on the second of them" && queueMode === "one-at-a-time" ? 120 : 20
              const trial = yield* makeTrial({
                [kind === "steer" ? "steeringMode" : "followUpMode"]: queueMode,
                tools: [quick("a")],
                responses: [
                  kind === "steer"
                    ? ScriptedModel.calls([["a", "a", {}]], { after: 10 })
                    : ScriptedModel.text("first", { after: 10 })
                ],
                otherwise: ScriptedModel.text("more", { after: 100 }),
                ...(because === "limited" && { limits: { duration: at } }),
                ...setting
              })
              if (listener !== undefined) yield* subscribe(trial.agent, listener)
              const run = yield* trial.start()
              yield* pass(5)
              armed = true
              const texts = ["1", "2", "3"]
              const receipts = yield* Effect.forEach(texts, (text) => trial[kind](text))
              yield* pass(at - 5)
              const ending = yield* Effect.forkChild(end(trial, run))
              yield* pass(settles)
              assert.isDefined(ending.pollUnsafe())
              assert.isDefined(run.pollUnsafe())
              const count = queueMode === "all" ? all : one
              yield* trial.shape
              assert.deepStrictEqual(said(yield* trial.agent.messages), ["go", ...texts.slice(0, count)])
              assert.deepStrictEqual(yield* trial.queued, texts.slice(count))
              const expected = texts.map((_, index) =>
                index < count
                  ? Queues.Delivery.Delivered({ turn: queueMode === "all" ? 2 : 2 + index })
                  : Queues.Delivery.Returned({ because })
              )
              assert.deepStrictEqual(yield* Effect.forEach(receipts, delivery), expected)
              if (because === "limited") return
              yield* trial.run("again")
              yield* trial.shape
              assert.deepStrictEqual(said(yield* trial.agent.messages), [
                "go",
                ...texts.slice(0, count),
                "again",
                ...texts.slice(count)
              ])
            }))
        }
      }
    }

    const failing = Effect.suspend(() => Effect.fail("broke"))
    const failures: ReadonlyArray<readonly [name: string, Setting, one: number]> = [
      ["finishTurn", { hooks: [Hooks.finishTurn(() => failing)] }, 0],
      ["prepareNextTurn", { hooks: [Hooks.prepareNextTurn(() => failing)] }, 0],
      ["the second request", { otherwise: ScriptedModel.error("down") }, 1]
    ]
    for (const [name, setting, count] of failures) {
      test(`B23 (Q3, H5) ${kind}, a failure of ${name}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            tools: [quick("a")],
            responses: [
              kind === "steer"
                ? ScriptedModel.calls([["a", "a", {}]], { after: 10 })
                : ScriptedModel.text("first", { after: 10 })
            ],
            otherwise: fine,
            ...setting
          })
          const run = yield* trial.start()
          yield* pass(5)
          const receipts = yield* Effect.forEach(["1", "2"], (text) => trial[kind](text))
          yield* pass(10)
          const [{ outcome }] = yield* Fiber.join(run)
          assert.strictEqual(outcome._tag, "Failed")
          yield* trial.shape
          assert.deepStrictEqual(yield* trial.queued, ["1", "2"].slice(count))
          assert.deepStrictEqual(
            yield* Effect.forEach(receipts, delivery),
            ["1", "2"].map((_, index) =>
              index < count
                ? Queues.Delivery.Delivered({ turn: 2 })
                : Queues.Delivery.Returned({ because: "failed" })
            )
          )
        }))
    }
  }
})

describe("B24 a message that comes in the last turn of a limited run", () => {
  const usage = { input: 10, cost: { total: 1 } }
  const limits: ReadonlyArray<readonly [name: string, Setting, limit: Errors.Limit]> = [
    ["turns", { limits: { turns: 1 } }, "turns"],
    ["tool calls", { limits: { toolCalls: 1 } }, "toolCalls"],
    ["tokens", { limits: { tokens: 10 } }, "tokens"],
    ["cost", { limits: { cost: 1 } }, "cost"],
    ["repeated calls", { repeatedCalls: 1 }, "repeatedCalls"]
  ]
  for (const kind of kinds) {
    for (const mode of modes) {
      for (const wrapUp of [false, true]) {
        for (const [name, setting, limit] of limits) {
          test(`B24 (L7) ${kind}, the limit of ${name}, ${mode}${wrapUp ? ", with a last request" : ""}`, () =>
            Effect.gen(function*() {
              const trial = yield* makeTrial({
                ...setting,
                wrapUp,
                toolExecution: mode,
                tools: [slow("a", 50)],
                responses: [
                  ScriptedModel.calls([["a", "a", {}]], { usage }),
                  ...(wrapUp ? [ScriptedModel.text("in short")] : [])
                ],
                otherwise: fine
              })
              const run = yield* trial.start()
              yield* pass(10)
              const receipt = yield* trial[kind]("S")
              yield* pass(100)
              const [{ outcome }] = yield* Fiber.join(run)
              assert.deepStrictEqual(outcome, Errors.RunOutcome.Limited({ limit }))
              const shape = wrapUp ? "U A[a] R(a) A" : "U A[a] R(a)"
              assert.strictEqual(yield* trial.shape, shape)
              assert.strictEqual(yield* trial.requests, wrapUp ? 2 : 1)
              assert.deepStrictEqual(yield* delivery(receipt), Queues.Delivery.Returned({ because: "limited" }))
              assert.deepStrictEqual(yield* trial.queued, ["S"])
              // Each run has a budget of its own.
              yield* trial.run("again")
              assert.include(["again", "S"], said(yield* trial.agent.messages).at(-1))
              assert.strictEqual(Transcript.print(yield* trial.request(wrapUp ? 2 : 1)).split(" ").at(-1), "U")
            }))
        }
      }
    }
  }
})

describe("B27 (Q1, Q3) a message to an agent that does not work waits for the next run and says so", () => {
  for (const kind of kinds) {
    for (const [name, setting] of settings) {
      test(`B27 (Q3) ${kind}, ${name}: behind the prompt of the next run`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ ...setting, responses: [fine, fine] })
          const receipt = yield* trial[kind]("S")
          assert.isTrue(receipt.whileIdle)
          yield* pass("1 hour")
          assert.deepStrictEqual([yield* trial.requests, yield* trial.queued, yield* delivery(receipt)], [
            0,
            ["S"],
            undefined
          ])
          yield* trial.run("p")
          assert.strictEqual(yield* trial.shape, kind === "steer" ? "U U A" : "U A U A")
          assert.deepStrictEqual(said(yield* trial.agent.messages), ["p", "S"])
          const turn = kind === "steer" ? 1 : 2
          assert.deepStrictEqual(yield* delivery(receipt), Queues.Delivery.Delivered({ turn }))
        }))
    }

    test(`B27 (Q4) ${kind}: continue begins with it`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ responses: [fine, fine] })
        yield* trial.run("p")
        const receipt = yield* trial[kind]("S")
        const run = yield* trial.agent.continue
        assert.deepStrictEqual(said(run.messages), ["S"])
        assert.strictEqual(yield* trial.shape, "U A U A")
        assert.deepStrictEqual(yield* delivery(receipt), Queues.Delivery.Delivered({ turn: 1 }))
      }))

    test(`B27 (Q3) ${kind} during a run says that it was`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ responses: [ScriptedModel.text("1", { after: 10 }), fine] })
        const run = yield* trial.start()
        yield* rest
        const receipt = yield* trial[kind]("S")
        assert.isFalse(receipt.whileIdle)
        yield* pass(10)
        yield* Fiber.join(run)
        assert.deepStrictEqual(yield* delivery(receipt), Queues.Delivery.Delivered({ turn: 2 }))
      }))
  }
})

describe("B28 a message of an image alone", () => {
  const image: Messages.ImageContent = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }
  type Send = (agent: Agent.AgentService) => Effect.Effect<unknown>
  const sends: ReadonlyArray<readonly [name: string, send: Send, shape: string]> = [
    ["steered", (agent) => agent.steer(Messages.user([image])), "U A[a] R(a) U A"],
    ["a follow-up", (agent) => agent.followUp(Messages.user([image])), "U A[a] R(a) A U A"],
    [
      "offered to the steering queue",
      (agent) => Queue.offer(agent.steering, Messages.user([image])),
      "U A[a] R(a) U A"
    ],
    ["offered to the follow-ups", (agent) => Queue.offer(agent.followUps, Messages.user([image])), "U A[a] R(a) A U A"],
    [
      "a prompt that steers",
      (agent) => Effect.forkDetach(agent.prompt("", { images: [image], whileRunning: "steer" })),
      "U A[a] R(a) U A"
    ]
  ]
  for (const [name, setting] of settings) {
    for (const [how, send, shape] of sends) {
      test(`B28 ${how}, ${name}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            ...setting,
            tools: [slow("a", 100)],
            responses: [calling("a")],
            otherwise: fine
          })
          const run = yield* trial.start()
          yield* pass(50)
          yield* send(trial.agent)
          yield* pass(50)
          yield* Fiber.join(run)
          assert.strictEqual(yield* trial.shape, shape)
          assert.deepStrictEqual(yield* trial.queued, [])
          const last = yield* trial.request((yield* trial.requests) - 1)
          assert.deepStrictEqual(last.findLast(({ role }) => role === "user")?.content, [image])
        }))
    }
  }
})

describe("B31 nothing comes between a call and its results", () => {
  const twoCalls = ScriptedModel.calls([["a", "a", {}], ["b", "b", {}]], { after: 10 })
  type Say = (agent: Agent.AgentService) => Effect.Effect<unknown, Errors.AgentBusy | Errors.AgentConfigError>
  /** What is tried while the calls work, what that gives, and the transcript it leads to. */
  const tries: ReadonlyArray<readonly [name: string, say: Say, shape: string]> = [
    ["steer", (agent) => agent.steer("X"), "U A[a,b] R(a) R(b) U A"],
    ["followUp", (agent) => agent.followUp("X"), "U A[a,b] R(a) R(b) A U A"],
    ["note", (agent) => agent.note("X"), "U A[a,b] R(a) R(b) U A"],
    ["Queue.offer", (agent) => Queue.offer(agent.steering, Messages.user("X")), "U A[a,b] R(a) R(b) U A"],
    ["appendMessages", (agent) => agent.appendMessages([Messages.user("X")]), "U A[a,b] R(a) R(b) A"],
    ["setMessages", (agent) => agent.setMessages([Messages.user("X")]), "U A[a,b] R(a) R(b) A"]
  ]
  const refused = new Set(["appendMessages", "setMessages"])
  const places: ReadonlyArray<readonly [name: string, place: (says: Effect.Effect<void>) => Setting]> = [
    ["from outside", () => ({})],
    ["in a tool", (says) => ({ tools: [tool("a", () => Effect.andThen(says, Effect.as(Effect.sleep(100), "done")))] })],
    ["in beforeToolCall", (says) => ({ hooks: [Hooks.beforeToolCall(() => says)] })],
    ["in afterToolCall", (says) => ({ hooks: [Hooks.afterToolCall(() => says)] })],
    ["in finishTurn", (says) => ({ hooks: [Hooks.finishTurn(() => says)] })]
  ]
  const events: ReadonlyArray<Events.AgentEventType> = ["tool_execution_start", "tool_execution_end", "message_end"]
  const during: typeof places = [...places, ...events.map((type) => [`on ${type}`, () => ({})] as const)]

  for (const mode of modes) {
    for (const [what, say, shape] of tries) {
      for (const [name, place] of during) {
        test(`B31 ${what} ${name}, ${mode}`, () =>
          Effect.gen(function*() {
            const inside: { says: Effect.Effect<void> } = { says: Effect.void }
            let times = 0
            const says = Effect.suspend(() => ++times === 1 ? inside.says : Effect.void)
            const { tools = [slow("a", 100)], ...setting } = place(says)
            const trial = yield* makeTrial({
              toolExecution: mode,
              responses: [twoCalls],
              otherwise: fine,
              ...setting,
              tools: [...tools, slow("b", 50)]
            })
            const exits: Array<string> = []
            inside.says = Effect.map(Effect.exit(say(trial.agent)), (exit) => void exits.push(exit._tag))
            yield* subscribe(trial.agent, (event) =>
              name === `on ${event.type}` && (event.type !== "message_end" || event.message.role === "toolResult")
                ? says
                : undefined)
            const run = yield* trial.start()
            yield* pass(60)
            if (name === "from outside") {
              yield* says
            }
            yield* pass("1 hour")
            yield* Fiber.join(run)
            assert.deepStrictEqual(exits, [refused.has(what) ? "Failure" : "Success"])
            assert.strictEqual(yield* trial.shape, shape)
            assert.strictEqual((yield* trial.queued).length, 0)
          }))
      }
    }
  }
})

describe("B32 a steering message goes before a follow-up", () => {
  const orders: ReadonlyArray<readonly [name: string, first: typeof kinds[number], second: typeof kinds[number]]> = [
    ["the follow-up came first", "followUp", "steer"],
    ["the steering message came first", "steer", "followUp"]
  ]
  const texts = { steer: "S", followUp: "F" }
  for (const [setting, of] of settings) {
    for (const [name, first, second] of orders) {
      test(`B32 ${name}, ${setting}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            ...of,
            responses: [ScriptedModel.text("1", { after: 10 })],
            otherwise: fine
          })
          const run = yield* trial.start("p")
          yield* pass(5)
          yield* trial[first](texts[first])
          yield* trial[second](texts[second])
          yield* pass(5)
          yield* Fiber.join(run)
          assert.strictEqual(yield* trial.shape, "U A U A U A")
          assert.deepStrictEqual(said(yield* trial.agent.messages), ["p", "S", "F"])
        }))

      test(`B32 ${name}, and the steering message leads to calls, ${setting}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            ...of,
            tools: [quick("a")],
            responses: [ScriptedModel.text("1", { after: 10 }), calling("a")],
            otherwise: fine
          })
          const run = yield* trial.start("p")
          yield* pass(5)
          yield* trial[first](texts[first])
          yield* trial[second](texts[second])
          yield* pass(5)
          yield* Fiber.join(run)
          assert.strictEqual(yield* trial.shape, "U A U A[a] R(a) A U A")
          assert.deepStrictEqual(said(yield* trial.agent.messages), ["p", "S", "F"])
        }))
    }
  }
})

describe("B33 one at a time, or all", () => {
  const texts = ["1", "2", "3"]
  for (const kind of kinds) {
    for (const [name, setting] of settings) {
      for (const queueMode of queueModes) {
        test(`B33 (Q2) ${kind} during a tool, ${queueMode}, ${name}`, () =>
          Effect.gen(function*() {
            const trial = yield* makeTrial({
              ...setting,
              [kind === "steer" ? "steeringMode" : "followUpMode"]: queueMode,
              tools: [slow("a", 100)],
              responses: [calling("a")],
              otherwise: fine
            })
            const run = yield* trial.start()
            yield* pass(50)
            yield* Effect.forEach(texts, (text) => trial[kind](text))
            yield* pass(50)
            yield* Fiber.join(run)
            const turns = queueMode === "all" ? "U U U A" : "U A U A U A"
            assert.strictEqual(yield* trial.shape, `U A[a] R(a) ${kind === "steer" ? "" : "A "}${turns}`)
            assert.deepStrictEqual(said(yield* trial.agent.messages), ["go", ...texts])
          }))
      }

      test(`B33 (Q2) ${kind}: a mode that changes during the run counts for the next drain, ${name}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            ...setting,
            tools: [slow("a", 100)],
            responses: [calling("a")],
            otherwise: ScriptedModel.text("fine", { after: 100 })
          })
          const { agent } = trial
          const set = kind === "steer" ? agent.setSteeringMode : agent.setFollowUpMode
          const run = yield* trial.start()
          yield* pass(50)
          yield* Effect.forEach([...texts, "4", "5"], (text) => trial[kind](text))
          // The first one is delivered in the second or third turn.
          yield* pass(kind === "steer" ? 100 : 200)
          yield* set("all")
          yield* pass(60)
          yield* set("one-at-a-time")
          yield* trial[kind]("6")
          yield* pass("1 hour")
          yield* Fiber.join(run)
          const turns = "U A U U U U A U A"
          assert.strictEqual(yield* trial.shape, `U A[a] R(a) ${kind === "steer" ? "" : "A "}${turns}`)
        }))
    }
  }
})
