/** What becomes of queued messages, as their receipts tell (Q3). */
import { assert, describe } from "@effect/vitest"
import { type Cause, Effect, Exit, Fiber, Layer, Queue, Scope } from "effect"
import { Budget, type Errors, Hooks, Loop, Messages, Queues } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { lie } from "./utils/hostile.ts"
import { pass, rest, subscribe, test } from "./utils/leaks.ts"
import { deaf, slow, tool } from "./utils/timedTools.ts"
import { makeTrial, type Setting, settings, type Trial } from "./utils/trial.ts"

const { Delivered, Returned, Withdrawn } = Queues.Delivery

const fine = ScriptedModel.text("fine")

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

const kinds = ["steer", "followUp"] as const

/** What a receipt tells now, `undefined` when it is not known. */
const now = ({ delivered }: Queues.Receipt): Effect.Effect<Queues.Delivery | undefined> =>
  Effect.gen(function*() {
    const waiting = yield* Effect.forkChild(delivered)
    yield* rest
    const exit = waiting.pollUnsafe()
    yield* Fiber.interrupt(waiting)
    return exit !== undefined && Exit.isSuccess(exit) ? exit.value : undefined
  })

const users = (trial: Trial) =>
  Effect.map(trial.agent.messages, (messages) => messages.filter(({ role }) => role === "user").map(Messages.text))

describe("Delivered", () => {
  for (const [name, setting] of settings) {
    test(`Q3: the turn of the run whose request holds it first, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...setting,
          tools: [slow("a", 100)],
          responses: [calling("a"), calling("a")],
          otherwise: fine
        })
        const run = yield* trial.start()
        yield* pass(50)
        const steers = yield* Effect.forEach(["1", "2"], (text) => trial.steer(text))
        const followUps = yield* Effect.forEach(["3", "4"], (text) => trial.followUp(text))
        assert.deepStrictEqual(yield* Effect.forEach([...steers, ...followUps], now), [
          undefined,
          undefined,
          undefined,
          undefined
        ])
        yield* pass(51)
        assert.deepStrictEqual(yield* now(steers[0]!), Delivered({ turn: 2 }))
        assert.isUndefined(yield* now(steers[1]!))
        yield* pass("1 hour")
        yield* Fiber.join(run)
        assert.deepStrictEqual(yield* Effect.forEach([...steers, ...followUps], now), [
          Delivered({ turn: 2 }),
          Delivered({ turn: 3 }),
          Delivered({ turn: 4 }),
          Delivered({ turn: 5 })
        ])
        assert.deepStrictEqual(yield* users(trial), ["go", "1", "2", "3", "4"])
        yield* trial.shape
        const requests = yield* trial.model.requests
        for (const [text, turn] of [["1", 2], ["2", 3], ["3", 4], ["4", 5]] as const) {
          const first = requests.findIndex(({ messages }) =>
            messages.some((message) => Messages.text(message) === text)
          )
          assert.strictEqual(first + 1, turn, text)
        }
      }))

    test(`Q3: all at once, in one turn, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...setting,
          steeringMode: "all",
          followUpMode: "all",
          tools: [slow("a", 100)],
          responses: [calling("a")],
          otherwise: fine
        })
        const run = yield* trial.start()
        yield* pass(50)
        const steers = yield* Effect.forEach(["1", "2"], (text) => trial.steer(text))
        const followUps = yield* Effect.forEach(["3", "4"], (text) => trial.followUp(text))
        yield* pass("1 hour")
        yield* Fiber.join(run)
        assert.deepStrictEqual(yield* Effect.forEach([...steers, ...followUps], now), [
          Delivered({ turn: 2 }),
          Delivered({ turn: 2 }),
          Delivered({ turn: 3 }),
          Delivered({ turn: 3 })
        ])
        assert.strictEqual(yield* trial.shape, "U A[a] R(a) U U A U U A")
      }))
  }

  for (const kind of kinds) {
    test(`Q3: ${kind}: whoever waits goes on when it is delivered`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ responses: [ScriptedModel.text("1", { after: 100 })], otherwise: fine })
        const run = yield* trial.start()
        yield* pass(50)
        const receipt = yield* trial[kind]("S")
        const waiting = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(receipt.delivered))
        yield* pass(49)
        assert.isTrue(waiting.every((fiber) => fiber.pollUnsafe() === undefined))
        yield* pass(1)
        assert.deepStrictEqual(yield* Fiber.joinAll(waiting), Array.from({ length: 3 }, () => Delivered({ turn: 2 })))
        yield* Fiber.join(run)
      }))

    test(`Q3, Q5: ${kind} at the end of a run: the turn of the run that delivers it`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine })
        const receipts: Array<Queues.Receipt> = []
        yield* subscribe(trial.agent, (event) =>
          event.type === "agent_end" && receipts.length === 0
            ? Effect.map(trial[kind]("S"), (receipt) => void receipts.push(receipt))
            : undefined)
        yield* trial.run()
        if (kind === "steer") yield* trial.run("again")
        yield* trial.shape
        assert.isFalse(receipts[0]!.whileIdle)
        assert.deepStrictEqual(yield* now(receipts[0]!), Delivered({ turn: 1 }))
      }))

    test(`Q3, Q4: ${kind}, taken by continue`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine })
        yield* trial.run()
        const receipt = yield* trial[kind]("S")
        yield* trial.agent.continue
        assert.deepStrictEqual(yield* now(receipt), Delivered({ turn: 1 }))
        yield* trial.shape
      }))
  }
})

describe("whileIdle", () => {
  for (const kind of kinds) {
    test(`Q3: ${kind} before, during and after a run`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ tools: [deaf("a", 5000)], responses: [calling("a")], otherwise: fine })
        const before = yield* trial[kind]("1")
        const run = yield* trial.start()
        yield* pass(10)
        const during = yield* trial[kind]("2")
        const abort = yield* Effect.forkChild(trial.agent.abort)
        yield* pass(500)
        const stopping = yield* trial[kind]("3")
        yield* pass(500)
        yield* Fiber.join(abort)
        yield* Fiber.join(run)
        const after = yield* trial[kind]("4")
        assert.deepStrictEqual([before, during, stopping, after].map(({ whileIdle }) => whileIdle), [
          true,
          false,
          false,
          true
        ])
        yield* pass(5000)
        yield* trial.agent.clearQueues
      }))
  }
})

describe("Returned", () => {
  const ends: ReadonlyArray<
    readonly [because: "aborted" | "limited" | "failed" | "ended", Setting, abort: boolean]
  > = [
    ["aborted", {}, true],
    ["limited", { limits: { turns: 1 } }, false],
    ["limited", { limits: { duration: 60 } }, false],
    ["failed", { hooks: [Hooks.finishTurn(() => Effect.fail("broke"))] }, false],
    ["ended", { hooks: [Hooks.finishTurn(() => "end")] }, false]
  ]
  for (const kind of kinds) {
    for (const [because, setting, abort] of ends) {
      const how = because === "limited" ? `${because} by its ${Object.keys(setting.limits!).join()}` : because
      test(`Q3: ${kind} in a run that is ${how}: it waits for the next run and can be withdrawn`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            tools: [slow("a", 100)],
            responses: [calling("a")],
            otherwise: fine,
            ...setting
          })
          const run = yield* trial.start()
          yield* pass(50)
          const receipts = yield* Effect.forEach(["1", "2"], (text) => trial.agent[kind](text))
          if (abort) yield* trial.abort(run)
          else yield* pass(50)
          yield* Fiber.join(run)
          assert.deepStrictEqual(yield* Effect.forEach(receipts, now), [Returned({ because }), Returned({ because })])
          assert.deepStrictEqual(yield* trial.queued, ["1", "2"])
          assert.isTrue(yield* trial.agent.withdraw(receipts[0]!.id))
          assert.isFalse(yield* trial.agent.withdraw(receipts[0]!.id))
          assert.deepStrictEqual(yield* trial.queued, ["2"])
          // The first thing counts.
          assert.deepStrictEqual(yield* now(receipts[0]!), Returned({ because }))
          trial.accepted.push("2")
          yield* trial.shape
        }))
    }

    test(`Q3: ${kind}: what was returned is delivered by the next run, once`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ tools: [slow("a", 100)], responses: [calling("a")], otherwise: fine })
        const run = yield* trial.start()
        yield* pass(50)
        const receipt = yield* trial[kind]("S")
        yield* trial.abort(run)
        yield* trial.run("again")
        yield* trial.shape
        assert.deepStrictEqual(yield* users(trial), ["go", "again", "S"])
        assert.deepStrictEqual(yield* now(receipt), Returned({ because: "aborted" }))
        assert.isFalse(yield* trial.agent.withdraw(receipt.id))
      }))

    test(`Q3: ${kind} that came while idle, and the next run is aborted before it is delivered`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine, hooks: [Hooks.finishTurn(() => Effect.sleep(100))] })
        const receipts = yield* Effect.forEach(["1", "2"], (text) => trial[kind](text))
        const run = yield* trial.start()
        yield* pass(50)
        yield* trial.abort(run)
        const first = kind === "steer" ? Delivered({ turn: 1 }) : Returned({ because: "aborted" })
        assert.deepStrictEqual(yield* Effect.forEach(receipts, now), [first, Returned({ because: "aborted" })])
        assert.deepStrictEqual(yield* trial.queued, kind === "steer" ? ["2"] : ["1", "2"])
      }))

    test(`Q3 L5: ${kind} at the end of a run that finishTurn ended: it waits for the next run`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine, hooks: [Hooks.finishTurn(() => "end")] })
        const receipts: Array<Queues.Receipt> = []
        yield* subscribe(trial.agent, (event) =>
          event.type === "agent_end"
            ? Effect.map(trial[kind]("S"), (receipt) => void receipts.push(receipt))
            : undefined)
        yield* trial.run()
        assert.deepStrictEqual(yield* now(receipts[0]!), Returned({ because: "ended" }))
        assert.deepStrictEqual(yield* trial.queued, ["S"])
      }))

    for (const running of [false, true]) {
      test(`Q3: ${kind}, the agent's scope closes ${running ? "during a run" : "while idle"}`, () =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const trial = yield* Scope.provide(
            makeTrial({ audience: "nobody", tools: [slow("a", 100)], responses: [calling("a")] }),
            scope
          )
          const run = running ? yield* trial.start() : undefined
          yield* pass(50)
          const receipt = yield* trial[kind]("S")
          const waiting = yield* Effect.forkChild(receipt.delivered)
          yield* Scope.close(scope, Exit.void)
          const because = running ? "aborted" : "disposed"
          assert.deepStrictEqual(yield* Fiber.join(waiting), Returned({ because }))
          if (run !== undefined) yield* Fiber.join(run)
          assert.deepStrictEqual(yield* trial.queued, ["S"])
        }))
    }
  }
})

describe("A follow-up at the end of a run that stopped by itself", () => {
  for (const because of ["aborted", "limited"] as const) {
    test(`Q5: no further run begins for it, because the agent is ${because}: its receipt says so`, () =>
      Effect.gen(function*() {
        const budget = because === "limited" ? Budget.layer({ turns: 1 }) : Layer.empty
        const trial = yield* Effect.provide(makeTrial({ otherwise: fine }), budget)
        const receipts: Array<Queues.Receipt> = []
        yield* subscribe(trial.agent, (event) =>
          event.type === "agent_end"
            ? Effect.gen(function*() {
              receipts.push(yield* trial.followUp("F"))
              if (because === "aborted") yield* trial.agent.abort
            })
            : undefined)
        const { outcome } = yield* trial.run()
        assert.strictEqual(outcome._tag, "Completed")
        assert.deepStrictEqual(yield* Effect.forEach(receipts, now), [Returned({ because })])
        assert.deepStrictEqual(yield* trial.queued, ["F"])
      }))
  }
})

describe("A loop alone", () => {
  const ends = {
    aborted: {},
    limited: { limits: { turns: 1 } },
    failed: { hooks: [Hooks.finishTurn(() => Effect.fail("broke"))] },
    ended: { hooks: [Hooks.finishTurn(() => "end")] }
  } as const
  for (const which of ["steering", "followUps"] as const) {
    for (const because of ["aborted", "limited", "failed", "ended"] as const) {
      test(`Q3: ${which} of a run that is ${because}: the receipt says so, the message waits for the next run`, () =>
        Effect.gen(function*() {
          const queue = yield* Queues.make()
          const setting: { readonly limits?: Budget.Limits; readonly hooks?: ReadonlyArray<Hooks.Hook> } = ends[because]
          const model = ScriptedModel.layer([], { otherwise: ScriptedModel.text("fine", { after: 100 }) })
          const go = (options: Loop.LoopOptions) =>
            Effect.forkChild(
              Loop.run([Messages.user("go")], { messages: [], tools: [] }, { ...options, [which]: queue })
            )
          const run = yield* Effect.provide(
            go({ limits: setting.limits }),
            [model, Hooks.layer(...(setting.hooks ?? []))]
          )
          yield* pass(50)
          const [first, second] = [1, 2].map((n) => queue.post(`${n}`, Messages.user(`${n}`), false))
          assert.isUndefined(yield* now(first!))
          if (because === "aborted") yield* Fiber.interrupt(run)
          yield* pass(50)
          yield* Fiber.await(run)
          assert.deepStrictEqual(yield* now(first!), Returned({ because }))
          assert.isTrue(queue.withdraw(second!.id))
          const third = queue.post("3", Messages.user("3"), true)
          const again = yield* Effect.provide(go({}), model)
          yield* pass("1 hour")
          const { messages } = yield* Fiber.join(again)
          assert.deepStrictEqual(
            messages.filter(({ role }) => role === "user").map(Messages.text),
            ["go", "1", "3"]
          )
          assert.deepStrictEqual(yield* now(third), Delivered({ turn: which === "steering" ? 2 : 3 }))
        }))
    }
  }
})

describe("A queue that other code ended", () => {
  const ways = {
    ended: (queue: Queue.Enqueue<Messages.AgentMessage>) => Queue.end(lie<Queue.Enqueue<unknown, Cause.Done>>(queue)),
    "shut down": (queue: Queue.Enqueue<Messages.AgentMessage>) => Queue.shutdown(queue)
  }
  for (const kind of kinds) {
    const which = kind === "steer" ? "steering" : "followUps"
    for (const [way, end] of Object.entries(ways)) {
      test(`Q3 I4: ${which} ${way}: what is queued afterwards is delivered, others' offers are refused`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ responses: [ScriptedModel.text("1", { after: 100 })], otherwise: fine })
          yield* end(trial.agent[which])
          const first = yield* trial[kind]("1")
          const run = yield* trial.start()
          yield* pass(50)
          const second = yield* trial[kind]("2")
          const prompted = yield* Effect.forkChild(trial.agent.prompt("3", { whileRunning: kind }))
          yield* pass(0)
          trial.accepted.push("3")
          assert.isFalse(yield* Queue.offer(trial.agent[which], Messages.user("other")))
          assert.includeMembers([...(yield* trial.queued)], ["2", "3"])
          yield* pass("1 hour")
          yield* Fiber.joinAll([run, prompted])
          yield* trial.shape
          assert.deepStrictEqual(yield* users(trial), ["go", "1", "2", "3"])
          assert.deepStrictEqual((yield* Effect.forEach([first, second], now)).map((told) => told?._tag), [
            "Delivered",
            "Delivered"
          ])
        }))

      test(`Q3 I4: ${which} ${way} during a run that is aborted: what it held goes back, and is delivered by the next`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ otherwise: fine, steeringMode: "all", followUpMode: "all" })
          yield* subscribe(
            trial.agent,
            (event) =>
              event.type === "message_start" && Messages.text(event.message) === "1" ? Effect.sleep(100) : undefined
          )
          const receipts = yield* Effect.forEach(["1", "2", "3"], (text) => trial[kind](text))
          const run = yield* trial.start()
          yield* pass(50)
          yield* end(trial.agent[which])
          const abort = yield* Effect.forkChild(trial.agent.abort)
          yield* pass(50)
          yield* Fiber.joinAll([run, abort])
          assert.deepStrictEqual(yield* trial.queued, ["2", "3"])
          yield* trial.run("again")
          yield* trial.shape
          assert.deepStrictEqual(yield* users(trial), ["go", "1", "again", "2", "3"])
          assert.deepStrictEqual((yield* Effect.forEach(receipts, now)).map((told) => told?._tag), [
            "Delivered",
            "Returned",
            "Returned"
          ])
        }))
    }

    test(`Q3: ${which} shut down with messages in it: their receipts say so at once`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine })
        const receipts = yield* Effect.forEach(["1", "2"], (text) => trial.agent[kind](text))
        const waiting = yield* Effect.forkChild(receipts[0]!.delivered)
        yield* Queue.shutdown(trial.agent[which])
        assert.deepStrictEqual(yield* Fiber.join(waiting), Returned({ because: "disposed" }))
        const later = yield* trial[kind]("3")
        yield* trial.run()
        yield* trial.shape
        assert.deepStrictEqual((yield* Effect.forEach([...receipts, later], now)).map((told) => told?._tag), [
          "Returned",
          "Returned",
          "Delivered"
        ])
      }))
  }

  const full = { bounded: Queue.bounded<Messages.AgentMessage>(1), dropping: Queue.dropping<Messages.AgentMessage>(1) }
  for (const [strategy, make] of Object.entries(full)) {
    test(`Q3 I4: a full queue (${strategy}) of a loop alone: what is posted or offered by its owner is queued all the same`, () =>
      Effect.gen(function*() {
        const steering = new Queues.MessageQueue(yield* make, "all")
        const receipts = ["1", "2", "3"].map((text) => steering.post(text, Messages.user(text), true))
        steering.offer(Messages.user("4"))
        const { messages } = yield* Effect.provide(
          Loop.run([], { messages: [], tools: [] }, { steering }),
          ScriptedModel.layer([fine])
        )
        assert.deepStrictEqual(messages.map(Messages.text), ["1", "2", "3", "4", "fine"])
        assert.deepStrictEqual(
          yield* Effect.forEach(receipts, now),
          receipts.map(() => Delivered({ turn: 1 }))
        )
      }))
  }
})

describe("After the end of the scope", () => {
  for (const kind of kinds) {
    test(`Q3 A1: ${kind} in a run that closes the agent's scope: the run was aborted without it`, () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const receipts: Array<Queues.Receipt> = []
        const queue = (text: string) =>
          Effect.map(Effect.suspend(() => trial.agent[kind](text)), (receipt) => receipts.push(receipt))
        const close = Effect.andThen(queue("1"), Effect.andThen(Scope.close(scope, Exit.void), queue("2")))
        const closing = tool("close", () => Effect.as(close, "closed"))
        const trial: Trial = yield* Scope.provide(
          makeTrial({ audience: "nobody", tools: [closing], responses: [calling("close")] }),
          scope
        )
        const run = yield* trial.start()
        yield* pass(50)
        const [{ outcome }] = yield* Fiber.join(run)
        assert.strictEqual(outcome._tag, "Aborted")
        assert.deepStrictEqual(yield* Effect.forEach(receipts, now), [
          Returned({ because: "aborted" }),
          Returned({ because: "aborted" })
        ])
        assert.deepStrictEqual(yield* trial.queued, ["1", "2"])
      }))

    test(`Q3: ${kind}: nobody waits for ever for what will never be delivered`, () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const trial = yield* Scope.provide(makeTrial({ audience: "nobody" }), scope)
        yield* Scope.close(scope, Exit.void)
        const receipt = yield* trial.agent[kind]("S")
        assert.deepStrictEqual(yield* now(receipt), Returned({ because: "disposed" }))
      }))
  }
})

describe("Withdrawn", () => {
  for (const kind of kinds) {
    const clears: ReadonlyArray<
      readonly [name: string, clear: (trial: Trial) => Effect.Effect<unknown, Errors.AgentBusy>]
    > = [
      ["its queue is cleared", ({ agent }) => kind === "steer" ? agent.clearSteering : agent.clearFollowUps],
      ["both queues are cleared", ({ agent }) => agent.clearQueues],
      ["the agent is reset", ({ agent }) => agent.reset]
    ]
    for (const [name, clear] of clears) {
      test(`Q3: ${kind}: ${name}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ otherwise: fine })
          const receipts = yield* Effect.forEach(["1", "2"], (text) => trial.agent[kind](text))
          yield* clear(trial)
          assert.deepStrictEqual(yield* Effect.forEach(receipts, now), [Withdrawn(), Withdrawn()])
          yield* trial.run()
          assert.strictEqual(yield* trial.shape, "U A")
        }))
    }

    test(`Q3: ${kind}: withdrawn while the run works`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ responses: [ScriptedModel.text("1", { after: 100 })], otherwise: fine })
        const run = yield* trial.start()
        yield* pass(50)
        const receipt = yield* trial.agent[kind]("S")
        const waiting = yield* Effect.forkChild(receipt.delivered)
        assert.isTrue(yield* trial.agent.withdraw(receipt.id))
        assert.deepStrictEqual(yield* Fiber.join(waiting), Withdrawn())
        yield* pass(50)
        yield* Fiber.join(run)
        assert.strictEqual(yield* trial.shape, "U A")
      }))
  }
})

describe("Ids", () => {
  for (const kind of kinds) {
    test(`Q3: ${kind}: the same id twice is one message`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine })
        const first = yield* trial[kind]("S", { id: "x" })
        const second = yield* trial.agent[kind]("T", { id: "x" })
        assert.deepStrictEqual([first.id, second.id], ["x", "x"])
        assert.deepStrictEqual(yield* trial.queued, ["S"])
        yield* trial.run()
        yield* trial.shape
        // Delivered before, it is not delivered again.
        const third = yield* trial.agent[kind]("U", { id: "x" })
        assert.deepStrictEqual(yield* trial.queued, [])
        const turn = kind === "steer" ? 1 : 2
        assert.deepStrictEqual(yield* Effect.forEach([first, second, third], now), [
          Delivered({ turn }),
          Delivered({ turn }),
          Delivered({ turn })
        ])
        assert.deepStrictEqual(yield* users(trial), ["go", "S"])
      }))

    test(`Q3: ${kind}: without ids every message has a receipt of its own, also one that is sent twice`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine })
        const message = Messages.user("S")
        const receipts = yield* Effect.forEach([1, 2, 3], () => trial.agent[kind](message))
        assert.lengthOf(new Set(receipts.map(({ id }) => id)), 3)
        assert.isTrue(yield* trial.agent.withdraw(receipts[1]!.id))
        assert.lengthOf(yield* trial.queued, 2)
        yield* trial.run()
        assert.deepStrictEqual(yield* Effect.forEach(receipts, now), [
          Delivered({ turn: kind === "steer" ? 1 : 2 }),
          Withdrawn(),
          Delivered({ turn: kind === "steer" ? 2 : 3 })
        ])
        assert.deepStrictEqual(yield* users(trial), ["go", "S", "S"])
      }))
  }

  test("Q3: one id names one message in both queues", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine })
      const steered = yield* trial.steer("S", { id: "x" })
      const followed = yield* trial.agent.followUp("F", { id: "x" })
      assert.strictEqual(steered, followed)
      assert.deepStrictEqual(yield* trial.queued, ["S"])
    }))

  for (const given of ["before", "after"] as const) {
    test(`Q3: an id that looks like one of the agent's, chosen ${given} it: each receipt withdraws its own message`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ otherwise: fine })
        const chosen = () => trial.agent.steer("chosen", { id: "#1" })
        const first = given === "before" ? yield* chosen() : undefined
        const automatic = yield* Effect.forEach(["a", "b"], (text) => trial.agent.steer(text))
        const receipt = first ?? (yield* chosen())
        const last = yield* trial.agent.followUp("last")
        assert.strictEqual(yield* chosen(), receipt)
        const all = [...automatic, receipt, last]
        assert.lengthOf(new Set(all.map(({ id }) => id)), 4)
        assert.isTrue(yield* trial.agent.withdraw(receipt.id))
        assert.deepStrictEqual(yield* trial.queued, ["a", "b", "last"])
        assert.isTrue(yield* trial.agent.withdraw(automatic[0]!.id))
        assert.deepStrictEqual(yield* trial.queued, ["b", "last"])
        assert.isTrue(yield* trial.agent.withdraw(last.id))
        assert.deepStrictEqual(yield* trial.queued, ["b"])
        assert.deepStrictEqual(yield* Effect.forEach(all, now), [Withdrawn(), undefined, Withdrawn(), Withdrawn()])
      }))
  }

  test("Q3: an id that looks like one the agent gave takes nothing from another message", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine })
      const given = yield* trial.steer("S")
      const named = yield* trial.followUp("F", { id: given.id })
      assert.deepStrictEqual(yield* trial.queued, ["S", "F"])
      assert.notStrictEqual(named, given)
      yield* trial.run()
      yield* trial.shape
      assert.deepStrictEqual(yield* Effect.forEach([given, named], now), [
        Delivered({ turn: 1 }),
        Delivered({ turn: 2 })
      ])
    }))
})

describe("Notes", () => {
  for (const [name, setting] of settings) {
    test(`B30: a note of a run that goes on is in its next request, before what was queued, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...setting,
          tools: [slow("a", 100)],
          responses: [calling("a")],
          otherwise: fine
        })
        const run = yield* trial.start()
        yield* pass(50)
        yield* trial.steer("S")
        yield* trial.agent.note("N")
        yield* pass("1 hour")
        yield* Fiber.join(run)
        assert.deepStrictEqual(yield* users(trial), ["go", "N", "S"])
        assert.strictEqual(yield* trial.shape, "U A[a] R(a) U U A")
      }))

    test(`B30: a note of a run that stops is in the transcript, and asks for nothing, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...setting,
          responses: [ScriptedModel.text("1", { after: 100 })],
          otherwise: fine
        })
        const run = yield* trial.start()
        yield* pass(50)
        yield* trial.agent.note("N")
        yield* pass(50)
        yield* Fiber.join(run)
        yield* pass("1 hour")
        assert.deepStrictEqual([yield* users(trial), yield* trial.requests], [["go", "N"], 1])
        yield* trial.agent.prompt("again")
        assert.deepStrictEqual(yield* users(trial), ["go", "N", "again"])
      }))
  }

  test("B30: a note does not begin a further run, and is part of one that begins", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine })
      let left = 1
      yield* subscribe(trial.agent, (event) =>
        event.type === "agent_end" && left-- > 0
          ? Effect.andThen(trial.agent.note("N"), trial.followUp("F"))
          : undefined)
      yield* trial.run()
      assert.sameMembers([...(yield* users(trial))], ["go", "N", "F"])
      assert.strictEqual(yield* trial.requests, 2)
      const last = yield* trial.request(1)
      assert.includeMembers(last.map(Messages.text), ["go", "N", "F"])
      yield* trial.shape
    }))
})
