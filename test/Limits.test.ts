/** What a run may spend (L7): turns, tool calls, tokens, cost, time, the same call again. */
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Fiber, Schema } from "effect"
import { Budget, Errors, Hooks, Loop, Messages, Queues, Tools } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { makeAgent, nothingLives, pass, subscribe, test } from "./utils/leaks.ts"
import { deaf, noting, quick, slow, terminator, tool } from "./utils/timedTools.ts"
import { lastResponse, makeTrial, modes, results, type Setting, type Trial } from "./utils/trial.ts"

const fine = ScriptedModel.text("fine")

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

const limited = (limit: Errors.Limit) => Errors.RunOutcome.Limited({ limit })

const overLimit = "Tool call was not executed: the limit of tool calls for this run is reached."

/** A model that always calls `a`, under another id. */
const stubborn: ScriptedModel.Responder = (_, index) => ScriptedModel.calls([[`c${index}`, "a", {}]])

describe("Turns", () => {
  test("L7: a run that stops by itself in its last turn is completed", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ limits: { turns: 2 }, tools: [quick("a")], responses: [calling("a"), fine] })
      const { outcome } = yield* trial.run()
      assert.deepInclude(outcome, { _tag: "Completed", by: "Stop" })
      assert.strictEqual(yield* trial.shape, "U A[a] R(a) A")
    }))

  const bySelf: ReadonlyArray<readonly [name: string, Setting, outcome: object]> = [
    ["all tools ask to stop", { tools: [terminator("a")] }, { _tag: "Completed", by: "Terminate" }],
    ["finishTurn ends it", { hooks: [Hooks.finishTurn(() => "end")] }, { _tag: "Completed", by: "FinishTurn" }],
    ["the model fails", { responses: [ScriptedModel.error("down")] }, { _tag: "Failed" }]
  ]
  for (const [name, setting, outcome] of bySelf) {
    test(`L7: ${name} in its last turn: that is the outcome`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          limits: { turns: 1 },
          tools: [quick("a")],
          responses: [calling("a")],
          ...setting
        })
        assert.deepInclude((yield* trial.run()).outcome, outcome)
        yield* trial.shape
      }))
  }

  test("L7, L5: finishTurn asks for one more turn than there is", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        limits: { turns: 1 },
        responses: [fine],
        hooks: [Hooks.finishTurn(() => "continue")]
      })
      assert.deepStrictEqual((yield* trial.run()).outcome, limited("turns"))
      assert.strictEqual(yield* trial.shape, "U A")
    }))

  for (const kind of ["steer", "followUp"] as const) {
    test(`L7: ${kind} for one more turn than there is: it stays queued`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ limits: { turns: 1 }, responses: [ScriptedModel.text("1", { after: 10 })] })
        const run = yield* trial.start()
        yield* pass(5)
        const receipt = yield* trial[kind]("S")
        yield* pass(5)
        const [{ outcome }] = yield* Fiber.join(run)
        assert.deepStrictEqual(outcome, limited("turns"))
        assert.deepStrictEqual([yield* trial.shape, yield* trial.queued], ["U A", ["S"]])
        assert.deepStrictEqual(yield* receipt.delivered, Queues.Delivery.Returned({ because: "limited" }))
      }))
  }

  test("L7: no hook of a further turn is called, and no queue is read", () =>
    Effect.gen(function*() {
      const called: Array<string> = []
      const note = (name: string) => Effect.sync(() => void called.push(name))
      const trial = yield* makeTrial({
        limits: { turns: 1 },
        steeringMode: "all",
        tools: [slow("a", 10)],
        responses: [calling("a")],
        hooks: [
          Hooks.prepareNextTurn(() => note("prepareNextTurn")),
          Hooks.prepareRequest(() => note("prepareRequest")),
          Hooks.finishTurn(() => note("finishTurn"))
        ]
      })
      const run = yield* trial.start()
      yield* pass(5)
      yield* trial.steer("S")
      yield* pass(5)
      yield* Fiber.join(run)
      assert.deepStrictEqual(called, ["prepareRequest", "finishTurn"])
      assert.deepStrictEqual(trial.recorder.outline.slice(-2), ["turn_end A[a] R(a)", "agent_end Limited"])
      assert.deepStrictEqual(yield* trial.queued, ["S"])
    }))

  test("L7, Q5: a further run has a budget of its own", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ limits: { turns: 1 }, otherwise: fine })
      let left = 2
      yield* subscribe(trial.agent, (event) =>
        event.type === "agent_end" && left-- > 0 ? trial.followUp(`F${left}`) : undefined)
      assert.deepInclude((yield* trial.run()).outcome, { _tag: "Completed" })
      assert.strictEqual(yield* trial.shape, "U A U A U A")
    }))

  test("L7: run.orFail tells the limit", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ limits: { turns: 1 }, tools: [quick("a")], otherwise: stubborn })
      const error = yield* Effect.flip((yield* trial.run()).orFail)
      assert(error._tag === "RunLimited")
      assert.strictEqual(error.limit, "turns")
    }))
})

describe("Tool calls", () => {
  const hooked: ReadonlyArray<readonly [name: string, hooks: ReadonlyArray<Hooks.Hook>]> = [
    ["", []],
    [", with hooks", [Hooks.beforeToolCall(() => Effect.yieldNow), Hooks.afterToolCall(() => Effect.yieldNow)]]
  ]
  for (
    const [name, setting] of [
      ...modes.map((mode) => [mode, { toolExecution: mode }] as const),
      ["one at a time", { toolConcurrency: 1 }] as const
    ]
  ) {
    for (const [withHooks, hooks] of hooked) {
      for (const left of [1, 2, 3, 4]) {
        test(`L7: ${left} of the 4 calls of a response run, ${name}${withHooks}`, () =>
          Effect.gen(function*() {
            const ran: Array<string> = []
            const trial = yield* makeTrial({
              ...setting,
              hooks,
              limits: { toolCalls: left },
              tools: [noting("a", ran)],
              responses: [ScriptedModel.calls(["a", "b", "c", "d"].map((id) => [id, "a", {}]))]
            })
            const { messages, outcome } = yield* trial.run()
            assert.deepStrictEqual(outcome, limited("toolCalls"))
            assert.deepStrictEqual(ran, ["a", "b", "c", "d"].slice(0, left))
            assert.deepStrictEqual(
              results(messages),
              ["a", "b", "c", "d"].map((id, index) => index < left ? `${id}: done` : `${id}! ${overLimit}`)
            )
            yield* trial.shape
          }))
      }
    }

    test(`L7: calls that do not run do not count, ${name}`, () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const picky = Tools.make("picky", {
          description: "Wants a number.",
          parameters: Schema.Struct({ n: Schema.Finite }),
          execute: () => Effect.succeed("never")
        })
        const trial = yield* makeTrial({
          ...setting,
          limits: { toolCalls: 2 },
          tools: [noting("a", ran), picky, quick("no")],
          hooks: [Hooks.beforeToolCall(({ toolCall }) => toolCall.name === "no" ? Hooks.block() : Hooks.allow)],
          responses: [
            ScriptedModel.calls([
              ["a", "unknown", {}],
              ["b", "picky", {}],
              ["c", "no", {}],
              ["d", "a", "{\"br"],
              ["e", "a", {}],
              ["f", "a", {}]
            ]),
            fine
          ]
        })
        const { outcome } = yield* trial.run()
        assert.deepStrictEqual(outcome, limited("toolCalls"))
        assert.deepStrictEqual(ran, ["e", "f"])
        assert.strictEqual(yield* trial.shape, "U A[a,b,c,d,e,f] R(a!) R(b!) R(c!) R(d!) R(e) R(f)")
      }))
  }

  test("L7: a run that stops by itself with its last call is completed", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ limits: { toolCalls: 1 }, tools: [terminator("a")], responses: [calling("a")] })
      assert.deepInclude((yield* trial.run()).outcome, { _tag: "Completed" })
    }))
})

describe("Tokens and cost", () => {
  const spending = (tokens: number, cost: number, index: number) =>
    ScriptedModel.calls([[`c${index}`, "a", {}]], { usage: { output: tokens, cost: { output: cost } } })
  const cases: ReadonlyArray<readonly [name: string, limits: Budget.Limits, limit: Errors.Limit, requests: number]> = [
    ["exactly reached", { tokens: 20 }, "tokens", 2],
    ["passed", { tokens: 11 }, "tokens", 2],
    ["passed by the first response", { tokens: 1 }, "tokens", 1],
    ["exactly reached", { cost: 0.5 }, "cost", 2],
    ["passed", { cost: 0.3 }, "cost", 2],
    ["passed by the first response", { cost: 0.001 }, "cost", 1],
    ["the first of several", { tokens: 1000, cost: 0.5, turns: 10 }, "cost", 2]
  ]
  for (const [name, limits, limit, requests] of cases) {
    test(`L7: the limit of ${limit}, ${name}: the calls of the last turn run`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          limits,
          tools: [quick("a")],
          otherwise: (_, index) => spending(10, 0.25, index)
        })
        const { messages, outcome } = yield* trial.run()
        assert.deepStrictEqual(outcome, limited(limit))
        assert.strictEqual(yield* trial.requests, requests)
        assert.isTrue(results(messages).every((text) => text.endsWith(": done")))
        yield* trial.shape
      }))
  }

  test("L7: what tools spend is not what the model's responses cost", () =>
    Effect.gen(function*() {
      const usage = { ...Messages.assistant("").usage, totalTokens: 1000 }
      const trial = yield* makeTrial({
        limits: { tokens: 25 },
        tools: [quick("a", Tools.result({ text: "done", usage }))],
        otherwise: (_, index) => spending(10, 0, index)
      })
      assert.deepStrictEqual((yield* trial.run()).outcome, limited("tokens"))
      assert.strictEqual(yield* trial.requests, 3)
    }))

  test("L7: a run that stops by itself beyond the limit is completed", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        limits: { tokens: 1 },
        responses: [ScriptedModel.text("long", { usage: { output: 10 } })]
      })
      assert.deepInclude((yield* trial.run()).outcome, { _tag: "Completed" })
    }))
})

describe("Time", () => {
  const duration = 50
  /** What the run does when its time is over, what it leaves, and how long it takes to settle. */
  const moments: ReadonlyArray<readonly [name: string, Setting, shape: string, settles: number, result?: RegExp]> = [
    ["the model answers", { responses: [ScriptedModel.text("x", { after: 100 })] }, "U A{aborted}", 0],
    ["a tool works", { tools: [slow("a", 100)] }, "U A[a] R(a!)", 0, /^a! Operation aborted$/],
    ["a deaf tool works", { tools: [deaf("a", 5000)] }, "U A[a] R(a!)", 1000, /^a! Operation aborted\b.*unknown/],
    [
      "a hook works",
      {
        tools: [quick("a")],
        hooks: [Hooks.afterToolCall(() => Effect.sleep(100))]
      },
      "U A[a] R(a!)",
      0,
      /^a! Operation aborted$/
    ],
    ["finishTurn works", { tools: [quick("a")], hooks: [Hooks.finishTurn(() => Effect.sleep(100))] }, "U A[a] R(a)", 0],
    [
      "a context hook works",
      {
        hooks: [Hooks.transformContext((messages) => Effect.as(Effect.sleep(100), messages))]
      },
      "U A{aborted}",
      0
    ]
  ]
  for (const mode of modes) {
    for (const [name, setting, shape, settles, result] of moments) {
      test(`L7: interrupts like an abort while ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            toolExecution: mode,
            limits: { duration },
            responses: [calling("a")],
            otherwise: fine,
            ...setting
          })
          const run = yield* trial.start()
          yield* pass(duration - 1)
          assert.isUndefined(run.pollUnsafe())
          yield* pass(1 + settles)
          const [{ messages, outcome }, at] = yield* Fiber.join(run)
          assert.deepStrictEqual([outcome, at], [limited("duration"), duration + settles])
          if (settles === 0) yield* nothingLives
          assert.strictEqual(yield* trial.shape, shape)
          assert.deepStrictEqual(trial.heard("agent_end").map((event) => event.outcome), [limited("duration")])
          if (result !== undefined) assert.match(results(messages)[0]!, result)
          if (shape.endsWith("{aborted}")) {
            assert.strictEqual(lastResponse(messages).errorMessage, "Request was aborted")
          }
          yield* trial.nothingFollows
        }))
    }

    test(`L7, H3: a listener finishes the event it has, ${mode}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          toolExecution: mode,
          limits: { duration },
          tools: [quick("a")],
          otherwise: stubborn
        })
        yield* subscribe(trial.agent, (event) => event.type === "tool_execution_end" ? Effect.sleep(200) : undefined)
        const run = yield* trial.start()
        yield* pass(200)
        const [{ outcome }, at] = yield* Fiber.join(run)
        assert.deepStrictEqual([outcome, at], [limited("duration"), 200])
        assert.strictEqual(yield* trial.shape, "U A[c0] R(c0)")
      }))

    const firsts: ReadonlyArray<readonly [name: string, abortAt: number, outcome: Errors.RunOutcome]> = [
      ["the abort comes first, the end of the time while it waits", 40, Errors.RunOutcome.Aborted()],
      ["the end of the time comes first, the abort while it waits", 60, limited("duration")]
    ]
    for (const [name, abortAt, expected] of firsts) {
      test(`L7, A1: ${name}: the first one is the outcome, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            toolExecution: mode,
            limits: { duration },
            tools: [deaf("a", 5000)],
            responses: [calling("a")]
          })
          const run = yield* trial.start()
          yield* pass(abortAt)
          const abort = yield* Effect.forkChild(trial.agent.abort)
          yield* pass(1000)
          const [{ outcome }, at] = yield* Fiber.join(run)
          yield* Fiber.join(abort)
          assert.deepStrictEqual([outcome, at], [expected, Math.min(abortAt, duration) + 1000])
          yield* trial.nothingFollows
        }))
    }
  }

  test("L7: a run that ends before leaves no timer", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ limits: { duration: "1 day" }, responses: [fine] })
      const [{ outcome }] = yield* Effect.flatMap(trial.start(), Fiber.join)
      assert.strictEqual(outcome._tag, "Completed")
    }))

  test("L7: each run has the time", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ limits: { duration }, otherwise: ScriptedModel.text("x", { after: 40 }) })
      for (const prompt of ["1", "2", "3"]) {
        assert.strictEqual((yield* trial.run(prompt)).outcome._tag, "Completed")
      }
    }))
})

describe("A budget around", () => {
  const others: ReadonlyArray<readonly [limit: "turns" | "toolCalls", limits: Budget.Limits]> = [
    ["turns", { turns: 7 }],
    ["toolCalls", { toolCalls: 7 }]
  ]
  for (const [limit, limits] of others) {
    for (const mode of modes) {
      test(`L7: three agents at the same time share ${limit} exactly, ${mode}`, () =>
        Effect.gen(function*() {
          const ran: Array<string> = []
          const trials: Array<Trial> = []
          for (let index = 0; index < 3; index++) {
            trials.push(yield* makeTrial({ toolExecution: mode, tools: [noting("a", ran)], otherwise: stubborn }))
          }
          const outcomes = yield* Effect.forEach(
            trials,
            (trial) => Effect.map(trial.prompt(), ({ outcome }) => outcome),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(outcomes, trials.map(() => limited(limit)))
          const requests = yield* Effect.forEach(trials, (trial) => trial.requests)
          const total = requests.reduce((sum, count) => sum + count, 0)
          assert.strictEqual(limit === "turns" ? total : ran.length, 7)
          for (const trial of trials) yield* trial.shape
          const spent = yield* Budget.spent
          assert.strictEqual(limit === "turns" ? spent?.turns : spent?.toolCalls, 7)
        }).pipe(Effect.provide(Budget.layer(limits))))
    }
  }

  test("L7: the agent's own limits and those around it hold both", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ limits: { turns: 2 }, tools: [quick("a")], otherwise: stubborn })
      assert.deepStrictEqual((yield* trial.run("1")).outcome, limited("turns"))
      assert.deepStrictEqual((yield* trial.run("2")).outcome, limited("turns"))
      assert.strictEqual(yield* trial.requests, 3)
    }).pipe(Effect.provide(Budget.layer({ turns: 3 }))))

  for (const [limit, around] of [["tokens", { tokens: 25 }], ["cost", { cost: 0.6 }]] as const) {
    test(`L7: an agent with limits of its own spends the ${limit} around it, too`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          limits: { tokens: 1000, cost: 1000 },
          tools: [quick("a")],
          otherwise: (_, index) =>
            ScriptedModel.calls([[`c${index}`, "a", {}]], { usage: { input: 10, cost: { total: 0.25 } } })
        })
        assert.deepStrictEqual((yield* trial.run()).outcome, limited(limit))
        assert.strictEqual(yield* trial.requests, 3)
        const spent = yield* Budget.spent
        assert.deepStrictEqual([spent?.tokens, spent?.cost], [30, 0.75])
      }).pipe(Effect.provide(Budget.layer(around))))
  }

  test("L7: an agent with limits of its own has the time that is left around it", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        limits: { turns: 1000, duration: "1 hour" },
        otherwise: ScriptedModel.text("x", { after: 40 })
      })
      const first = yield* trial.start("1")
      yield* pass(40)
      assert.strictEqual((yield* Fiber.join(first))[0].outcome._tag, "Completed")
      const run = yield* trial.start("2")
      yield* pass(20)
      const [{ outcome }, at] = yield* Fiber.join(run)
      assert.deepStrictEqual([outcome, at], [limited("duration"), 60])
      assert.strictEqual(yield* trial.shape, "U A U A{aborted}")
    }).pipe(Effect.provide(Budget.layer({ duration: 60 }))))

  test("L7: a run in a tool counts against the limits of the agent, whatever is around", () =>
    Effect.gen(function*() {
      const child = yield* makeTrial({ tools: [quick("a")], otherwise: stubborn })
      const ask = tool("a", () => Effect.as(Effect.orDie(child.prompt()), "done"))
      const trial = yield* makeTrial({ limits: { turns: 3 }, tools: [ask], otherwise: stubborn })
      assert.deepStrictEqual((yield* trial.run()).outcome, limited("turns"))
      assert.deepStrictEqual([yield* trial.requests, yield* child.requests], [1, 2])
      assert.strictEqual((yield* Budget.spent)?.turns, 3)
    }).pipe(Effect.provide(Budget.layer({ turns: 100 }))))

  test("L7: a budget inside of a budget", () =>
    Effect.gen(function*() {
      const inner = Effect.gen(function*() {
        const trial = yield* makeTrial({ tools: [quick("a")], otherwise: stubborn })
        assert.deepStrictEqual((yield* trial.run()).outcome, limited("turns"))
        return yield* trial.requests
      })
      const spent = yield* Effect.forEach([2, 2, 2], (turns) => Effect.provide(inner, Budget.layer({ turns })))
      assert.deepStrictEqual(spent, [2, 2, 1])
    }).pipe(Effect.provide(Budget.layer({ turns: 5 }))))

  for (const mode of modes) {
    test(`L7: the calls of one response, within a budget inside of a budget, ${mode}`, () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const trial = yield* makeTrial({
          toolExecution: mode,
          limits: { toolCalls: 10 },
          tools: [noting("a", ran)],
          responses: [ScriptedModel.calls(["a", "b", "c", "d"].map((id) => [id, "a", {}]))]
        })
        assert.deepStrictEqual((yield* trial.run()).outcome, limited("toolCalls"))
        assert.deepStrictEqual(ran, ["a", "b", "c"])
        assert.strictEqual(yield* trial.shape, "U A[a,b,c,d] R(a) R(b) R(c) R(d!)")
      }).pipe(Effect.provide(Budget.layer({ toolCalls: 3 }))))
  }

  test("L7: it counts where the prompt is made, too", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ tools: [quick("a")], otherwise: stubborn })
      const { outcome } = yield* Effect.provide(trial.prompt(), Budget.layer({ turns: 2 }))
      assert.deepStrictEqual(outcome, limited("turns"))
      assert.strictEqual(yield* trial.requests, 2)
    }))

  test("L7: each layer that is built has a budget of its own", () =>
    Effect.gen(function*() {
      const layer = Budget.layer({ turns: 2 })
      const run = Effect.gen(function*() {
        const trial = yield* makeTrial({ tools: [quick("a")], otherwise: stubborn })
        yield* trial.run()
        return yield* trial.requests
      })
      assert.deepStrictEqual([yield* Effect.provide(run, layer), yield* Effect.provide(run, layer)], [2, 2])
    }))

  const twoTurns = Budget.layer({ turns: 2 })
  for (const kind of ["steer", "followUp"] as const) {
    test(`L7, Q3: spent before the run begins: ${kind} is not read and stays queued`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ audience: "nobody", tools: [quick("a")], otherwise: stubborn })
        yield* trial.run()
        const receipt = yield* trial[kind]("S")
        assert.deepStrictEqual((yield* trial.run("again")).outcome, limited("turns"))
        assert.deepStrictEqual([yield* trial.queued, yield* trial.requests], [["S"], 2])
        assert.deepStrictEqual(yield* receipt.delivered, Queues.Delivery.Returned({ because: "limited" }))
        yield* trial.shape
      }).pipe(Effect.provide(twoTurns)))

    test(`L7, Q3, Q4: spent before continue takes it: ${kind} is not read and stays queued`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ audience: "nobody", otherwise: fine })
        yield* trial.run("1")
        yield* trial.run("2")
        const receipt = yield* trial[kind]("S")
        assert.deepStrictEqual((yield* trial.agent.continue).outcome, limited("turns"))
        assert.deepStrictEqual([yield* trial.queued, yield* trial.requests], [["S"], 2])
        assert.deepStrictEqual(yield* receipt.delivered, Queues.Delivery.Returned({ because: "limited" }))
        yield* trial.shape
      }).pipe(Effect.provide(twoTurns)))
  }

  test("L7, A4: its time is spent before a run begins: a listener that does not come back is left behind", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ audience: "nobody", otherwise: ScriptedModel.text("1", { after: 60 }) })
      assert.deepStrictEqual((yield* trial.run("1")).outcome, limited("duration"))
      yield* subscribe(trial.agent, (event) => event.type === "message_end" ? Effect.sleep("1 hour") : undefined)
      const before = yield* Clock.currentTimeMillis
      const run = yield* trial.start("2")
      yield* pass("1 day")
      const [{ outcome }, at] = yield* Fiber.join(run)
      assert.deepStrictEqual([outcome, at - before], [limited("duration"), 1000])
      assert.strictEqual(yield* trial.requests, 1)
      assert.strictEqual(yield* trial.shape, "U A{aborted} U")
    }).pipe(Effect.provide(Budget.layer({ duration: 50 }))))

  test("L7: looking at what is left does not start the time", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine })
      const expected = { turns: 0, toolCalls: 0, tokens: 0, cost: 0, millisLeft: 50 }
      assert.deepStrictEqual(yield* Budget.spent, expected)
      yield* Effect.flip(trial.agent.continue)
      yield* pass("1 minute")
      assert.deepStrictEqual(yield* Budget.spent, expected)
      assert.deepInclude((yield* trial.run()).outcome, { _tag: "Completed" })
    }).pipe(Effect.provide(Budget.layer({ duration: 50 }))))

  test("L7, Q3, Q5: spent before a further run begins: the follow-up is not read and stays queued", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ otherwise: fine })
      yield* trial.run("1")
      const receipts: Array<Queues.Receipt> = []
      yield* subscribe(trial.agent, (event) =>
        event.type === "agent_end" && receipts.length === 0
          ? Effect.map(trial.followUp("F"), (receipt) => void receipts.push(receipt))
          : undefined)
      yield* trial.run("2")
      assert.deepStrictEqual([yield* trial.queued, yield* trial.requests], [["F"], 2])
      assert.strictEqual(yield* trial.shape, "U A U A")
      assert.isTrue(yield* trial.agent.withdraw(receipts[0]!.id))
    }).pipe(Effect.provide(twoTurns)))

  test("L7: what was spent can be asked for", () =>
    Effect.gen(function*() {
      assert.isUndefined(yield* Budget.spent)
      const inside = Effect.gen(function*() {
        const usage = { input: 3, cost: { total: 0.5 } }
        const trial = yield* makeTrial({
          tools: [slow("a", 100)],
          responses: [ScriptedModel.calls([["a", "a", {}]], { usage }), ScriptedModel.text("fine", { usage })]
        })
        const run = yield* trial.start()
        yield* pass(40)
        assert.deepStrictEqual(yield* Budget.spent, { turns: 1, toolCalls: 1, tokens: 3, cost: 0.5, millisLeft: 960 })
        yield* pass(60)
        yield* Fiber.join(run)
        assert.deepStrictEqual(yield* Budget.spent, { turns: 2, toolCalls: 1, tokens: 6, cost: 1, millisLeft: 900 })
      })
      yield* Effect.provide(inside, Budget.layer({ duration: "1 second" }))
    }))
})
describe("The same call again", () => {
  type Call = readonly [name: string, args: Messages.JsonObject | string]
  const x: Call = ["a", { x: 1, y: { p: 1, q: [1, 2] } }]
  /** The calls of each response, and after how many responses the run ends; without a number it completes. */
  const cases: ReadonlyArray<readonly [name: string, responses: ReadonlyArray<ReadonlyArray<Call>>, after?: number]> = [
    ["three responses", [[x], [x], [x], [x]], 3],
    ["three calls of one response", [[x, x, x], [x]], 1],
    ["across responses", [[x], [x, x], [x]], 2],
    ["other arguments between them", [[x], [x], [["a", { x: 2 }]], [x], [x]]],
    ["another tool between them", [[x], [x], [["b", {}]], [x], [x]]],
    ["another tool with the same arguments", [[["a", {}]], [["b", {}]], [["a", {}]], [["b", {}]]]],
    ["the keys in another order", [[x], [["a", { y: { q: [1, 2], p: 1 }, x: 1 }]], [x], [x]], 3],
    ["a list in another order", [[x], [["a", { x: 1, y: { p: 1, q: [2, 1] } }]], [x], [x]]],
    ["an unknown tool", [[["nope", {}]], [["nope", {}]], [["nope", {}]], [x]], 3],
    ["arguments that do not parse", [[["a", "{\"br"]], [["a", "{\"br"]], [["a", "{\"br"]], [x]], 3],
    ["different arguments that do not parse", [[["a", "{\"br"]], [["a", "{\"b"]], [["a", "{\"br"]]]],
    ["in the end of a response", [[["b", {}], x], [x, x], [x]], 2]
  ]
  for (const mode of modes) {
    for (const [name, responses, after] of cases) {
      test(`L7: ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const any = (name: string) =>
            Tools.dynamic(name, {
              description: name,
              parameters: { type: "object" },
              execute: () => Effect.succeed("ok")
            })
          let id = 0
          const trial = yield* makeTrial({
            toolExecution: mode,
            repeatedCalls: 3,
            tools: [any("a"), any("b")],
            responses: responses.map((calls) => ScriptedModel.calls(calls.map((call) => [`c${id++}`, ...call]))),
            otherwise: fine
          })
          const { outcome } = yield* trial.run()
          if (after === undefined) assert.strictEqual(outcome._tag, "Completed")
          else {
            assert.deepStrictEqual(outcome, limited("repeatedCalls"))
            assert.strictEqual(yield* trial.requests, after)
          }
          yield* trial.shape
        }))
    }

    test(`L7, B78: a call that is blocked again and again, ${mode}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          toolExecution: mode,
          repeatedCalls: 4,
          tools: [quick("a")],
          hooks: [Hooks.beforeToolCall(() => Hooks.block("no"))],
          otherwise: stubborn
        })
        const { messages, outcome } = yield* trial.run()
        assert.deepStrictEqual(outcome, limited("repeatedCalls"))
        assert.deepStrictEqual(results(messages), ["c0! no", "c1! no", "c2! no", "c3! no"])
        yield* trial.shape
      }))
  }

  test("L7: a run that stops with the last of them is completed", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({ repeatedCalls: 1, tools: [terminator("a")], responses: [calling("a")] })
      assert.deepInclude((yield* trial.run()).outcome, { _tag: "Completed", by: "Terminate" })
    }))

  test("L7: each run counts anew", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        repeatedCalls: 2,
        tools: [quick("a")],
        responses: [calling("a"), fine, calling("a"), fine]
      })
      assert.strictEqual((yield* trial.run("1")).outcome._tag, "Completed")
      assert.strictEqual((yield* trial.run("2")).outcome._tag, "Completed")
    }))
})

describe("Limits that make no sense", () => {
  const counts = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]
  const amounts = [0, -1, Number.NaN]
  const durations = [0, -5, Number.NaN, Number.POSITIVE_INFINITY, "0 millis"] as const
  const wrong: ReadonlyArray<readonly [name: string, Pick<Setting, "limits" | "repeatedCalls">]> = [
    ...counts.map((turns) => [`turns: ${turns}`, { limits: { turns } }] as const),
    ...counts.map((toolCalls) => [`toolCalls: ${toolCalls}`, { limits: { toolCalls } }] as const),
    ...amounts.map((tokens) => [`tokens: ${tokens}`, { limits: { tokens } }] as const),
    ...amounts.map((cost) => [`cost: ${cost}`, { limits: { cost } }] as const),
    ...durations.map((duration) => [`duration: ${duration}`, { limits: { duration } }] as const),
    ...counts.map((repeatedCalls) => [`repeatedCalls: ${repeatedCalls}`, { repeatedCalls }] as const)
  ]
  const model = ScriptedModel.layer([])
  for (const [name, options] of wrong) {
    const field = name.slice(0, name.indexOf(":"))
    test(`L7: an agent refuses ${name}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(makeAgent(options))
        assert.deepStrictEqual([error._tag, error.reason], ["AgentConfigError", "InvalidLimit"])
        assert.include(error.message, field)
      }).pipe(Effect.provide(model)))

    const { limits } = options
    if (limits !== undefined) {
      test(`L7: a budget refuses ${name}`, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(Effect.provide(Effect.void, Budget.layer(limits)))
          assert.deepStrictEqual([error._tag, error.reason], ["AgentConfigError", "InvalidLimit"])
          assert.include(error.message, field)
        }))
    }

    test(`L7: a loop refuses ${name}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Loop.run([Messages.user("go")], { messages: [], tools: [] }, options))
        assert.deepStrictEqual([error._tag, error.reason], ["CannotContinue", "InvalidContext"])
        assert.include(error.message, field)
      }).pipe(Effect.provide(model)))
  }
})
