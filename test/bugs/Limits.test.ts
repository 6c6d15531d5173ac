/** B106, B107, B109: a model that never stops, the last word of a limited run, and runs inside of runs. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Layer, type Scope, Stream } from "effect"
import { Budget, Errors, Loop, Messages, StreamFn, type Tools } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { assertBalanced } from "../utils/agents.ts"
import { Recorder } from "../utils/events.ts"
import { assertInvariants } from "../utils/invariants.ts"
import { makeAgent, pass, subscribe, test } from "../utils/leaks.ts"
import { deaf, noting, slow, tool } from "../utils/timedTools.ts"
import { makeTrial, modes, results, type Setting, settings } from "../utils/trial.ts"

const usage = { input: 10, cost: { total: 0.25 } }

/** A model that always asks for the same call, under another id. */
const stubborn: ScriptedModel.Responder = (_, index) =>
  ScriptedModel.calls([[`c${index}`, "a", { again: true }]], { usage, after: "1 second" })

const limited = (limit: Errors.Limit) => Errors.RunOutcome.Limited({ limit })

const turn = (index: number, mark = "") => `A[c${index}] R(c${index}${mark})`

const turns = (count: number, from = 0) => Array.from({ length: count }, (_, index) => turn(from + index)).join(" ")

describe("B106 a model that always calls a tool is stopped by a limit", () => {
  /** Each stops the run in its fifth turn; `cut` is the mark of the last result. */
  const limits: ReadonlyArray<readonly [limit: Errors.Limit, Setting, cut: string]> = [
    ["turns", { limits: { turns: 5 } }, ""],
    ["toolCalls", { limits: { toolCalls: 5 } }, ""],
    ["tokens", { limits: { tokens: 41 } }, ""],
    ["cost", { limits: { cost: 1.25 } }, ""],
    ["duration", { limits: { duration: "9.5 seconds" } }, "!"],
    ["repeatedCalls", { repeatedCalls: 5 }, ""]
  ]
  const a = slow("a", 1000)
  for (const [limit, options, cut] of limits) {
    for (const [name, setting] of settings) {
      test(`B106 (L7) ${limit}, ${name}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ ...setting, ...options, tools: [a], otherwise: stubborn })
          const { outcome } = yield* trial.run()
          assert.deepStrictEqual(outcome, limited(limit))
          assert.strictEqual(yield* trial.requests, 5)
          const first = `U ${turns(4)} ${turn(4, cut)}`
          assert.strictEqual(yield* trial.shape, first)
          yield* trial.nothingFollows
          // A prompt goes on, with a budget of its own.
          assert.deepStrictEqual((yield* trial.run("again")).outcome, limited(limit))
          assert.strictEqual(yield* trial.requests, 10)
          assert.strictEqual(yield* trial.shape, `${first} U ${turns(4, 5)} ${turn(9, cut)}`)
          // So does continue.
          const going = yield* Effect.forkChild(trial.agent.continue)
          yield* pass("1 hour")
          assert.deepStrictEqual((yield* Fiber.join(going)).outcome, limited(limit))
          assert.strictEqual(yield* trial.requests, 15)
          yield* trial.shape
        }))
    }

    test(`B106 (L7) ${limit}, the loop alone`, () =>
      Effect.gen(function*() {
        const model = yield* ScriptedModel.make([], { otherwise: stubborn })
        const recorder = new Recorder()
        const running = yield* Effect.forkChild(
          Loop.run([Messages.user("go")], { messages: [], tools: [a] }, { ...options, emit: recorder.record }).pipe(
            Effect.provideService(StreamFn.StreamFn, { stream: model.stream })
          )
        )
        yield* pass("1 hour")
        const { messages, outcome } = yield* Fiber.join(running)
        assert.deepStrictEqual(outcome, limited(limit))
        assertInvariants({ events: recorder.events, requests: yield* model.requests })
        assert.strictEqual(Transcript.print(messages), `U ${turns(4)} ${turn(4, cut)}`)
        assert.lengthOf(yield* model.requests, 5)
      }))

    if (options.limits === undefined) continue
    for (const [name, setting] of settings.slice(0, 4)) {
      test(`B106 (L7) ${limit}, of a budget around the agent: it is spent for the next run, too, ${name}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ ...setting, tools: [a], otherwise: stubborn })
          assert.deepStrictEqual((yield* trial.run()).outcome, limited(limit))
          assert.strictEqual(yield* trial.requests, 5)
          const first = `U ${turns(4)} ${turn(4, cut)}`
          assert.strictEqual(yield* trial.shape, first)
          const { messages, outcome } = yield* trial.run("again")
          assert.deepStrictEqual(outcome, limited(limit))
          assert.strictEqual(yield* trial.requests, 5)
          // No turn begins: the prompt is recorded, and that is all.
          assert.strictEqual(Transcript.print(messages), "U")
          assert.strictEqual(Transcript.print(yield* trial.agent.messages), `${first} U`)
          const second = trial.recorder.shown.indexOf("agent_end Limited") + 1
          if (trial.watched) assertBalanced(trial.recorder.events.slice(second))
        }).pipe(Effect.provide(Budget.layer(options.limits!))))
    }
  }
})

describe("B107 the last request of a limited run", () => {
  const words = ScriptedModel.text("In short: x.")
  /** What the model says in the last request, and what follows its message in the transcript. */
  const lasts: ReadonlyArray<readonly [name: string, response: ScriptedModel.Response, shape: string, text: string]> = [
    ["a text", words, "A", "In short: x."],
    ["a call", ScriptedModel.calls([["x", "a", {}]]), "A[x] R(x!)", ""],
    ["a text and a call", ScriptedModel.calls([["x", "a", {}]], { text: "Well:" }), "A[x] R(x!)", "Well:"],
    [
      "calls of all kinds",
      ScriptedModel.calls([["x", "a", {}], ["y", "nope", {}], ["z", "a", "{\"br"]]),
      "A[x,y,z] R(x!) R(y!) R(z!)",
      ""
    ],
    [
      "a call that was cut off",
      ScriptedModel.calls([["x", "a", {}]], { stopReason: "length" }),
      "A[x] R(x!)",
      ""
    ],
    ["nothing", ScriptedModel.events([{ type: "start" }, { type: "done" }]), "A", ""]
  ]
  for (const [setting, of] of settings) {
    for (const [name, response, shape, text] of lasts) {
      test(`B107 (L7) the model gives ${name}, ${setting}`, () =>
        Effect.gen(function*() {
          const ran: Array<string> = []
          const trial = yield* makeTrial({
            ...of,
            limits: { turns: 2 },
            wrapUp: true,
            tools: [noting("a", ran)],
            responses: [stubborn, stubborn, response]
          })
          const { messages, outcome } = yield* trial.run()
          assert.deepStrictEqual(outcome, limited("turns"))
          assert.strictEqual(yield* trial.shape, `U ${turns(2)} ${shape}`)
          const requests = yield* trial.model.requests
          assert.deepStrictEqual(requests.map(({ toolChoice }) => toolChoice), ["auto", "auto", "none"])
          assert.deepStrictEqual(requests.map(({ tools }) => tools.map((tool) => tool.name)), [["a"], ["a"], ["a"]])
          assert.strictEqual(Transcript.print(requests[2]!.messages), `U ${turns(2)}`)
          assert.deepStrictEqual(ran, ["c0", "c1"])
          const last = messages.findLast(({ role }) => role === "assistant")!
          assert.strictEqual(Messages.text(last), text)
          yield* trial.nothingFollows
        }))
    }
  }
})

describe("B109 a run inside of a tool obeys the limits and the abort of the run around it", () => {
  type Model = ScriptedModel.ScriptedModel["Service"]
  /** Makes what runs the child when the tool does. */
  type Make = (
    model: Model,
    recorder: Recorder,
    tools: ReadonlyArray<Tools.Tool>
  ) => Effect.Effect<Effect.Effect<unknown>, never, Scope.Scope>
  const modelOf = (model: Model) => Effect.provideService(StreamFn.StreamFn, { stream: model.stream })
  const ways: ReadonlyArray<readonly [name: string, make: Make]> = [
    ["an agent made in the tool", (model, recorder, tools) =>
      Effect.succeed(
        Effect.gen(function*() {
          const agent = yield* makeAgent({ tools })
          yield* subscribe(agent, recorder.record)
          yield* agent.prompt("sub")
        }).pipe(Effect.scoped, modelOf(model), Effect.orDie)
      )],
    ["an agent that was there before", (model, recorder, tools) =>
      Effect.gen(function*() {
        const agent = yield* makeAgent({ tools })
        yield* subscribe(agent, recorder.record)
        return Effect.orDie(agent.prompt("sub"))
      }).pipe(modelOf(model), Effect.orDie)],
    ["the loop alone", (model, recorder, tools) =>
      Effect.succeed(
        Loop.run([Messages.user("sub")], { messages: [], tools }, { emit: recorder.record }).pipe(
          modelOf(model),
          Effect.orDie
        )
      )],
    ["a stream of events", (model, recorder, tools) =>
      Effect.succeed(
        Loop.stream([Messages.user("sub")], { messages: [], tools }, { emit: recorder.record }).pipe(
          Stream.runDrain,
          modelOf(model),
          Effect.orDie
        )
      )]
  ]
  const last = (recorder: Recorder) => recorder.shown.at(-1)
  const told = (recorder: Recorder) =>
    Transcript.print(recorder.events.flatMap((event) => event.type === "message_end" ? [event.message] : []))
  const parent = ScriptedModel.calls([["p", "p", {}]], { usage })

  /** A parent whose tools `p` and `q` run a child each. */
  const family = Effect.fnUntraced(function*(make: Make, setting: Setting, tools: ReadonlyArray<Tools.Tool>) {
    const model = yield* ScriptedModel.make([], { otherwise: stubborn })
    const recorders = [new Recorder(), new Recorder()] as const
    const p = yield* make(model, recorders[0], tools)
    const q = yield* make(model, recorders[1], tools)
    const trial = yield* makeTrial({
      responses: [parent],
      otherwise: ScriptedModel.text("fine", { usage }),
      ...setting,
      tools: [tool("p", () => Effect.as(p, "done")), tool("q", () => Effect.as(q, "done"))]
    })
    const requests = Effect.map(model.requests, ({ length }) => length)
    return { trial, recorders, requests }
  })

  for (const [way, make] of ways) {
    const limits: ReadonlyArray<readonly [limit: Errors.Limit, limits: Budget.Limits, calls: number, spent: string]> = [
      ["turns", { turns: 3 }, 2, "U A[c0] R(c0) A[c1] R(c1)"],
      // The parent's own call was one of them, and the third of the child is beyond.
      ["toolCalls", { toolCalls: 3 }, 2, "U A[c0] R(c0) A[c1] R(c1)"],
      ["tokens", { tokens: 25 }, 2, "U A[c0] R(c0) A[c1] R(c1)"],
      ["cost", { cost: 0.75 }, 2, "U A[c0] R(c0) A[c1] R(c1)"],
      ["duration", { duration: 3500 }, 2, "U A[c0] R(c0) A[c1] R(c1!)"]
    ]
    for (const [limit, of, calls, spent] of limits) {
      test(`B109 (L7) ${way}: the limit of ${limit} holds for both together`, () =>
        Effect.gen(function*() {
          const { recorders: [recorder], requests, trial } = yield* family(make, { limits: of }, [
            slow("a", limit === "duration" ? 1000 : 0)
          ])
          const { outcome } = yield* trial.run()
          assert.deepStrictEqual(outcome, limited(limit))
          assert.strictEqual(yield* requests, calls)
          assert.strictEqual(yield* trial.requests, 1)
          assert.strictEqual(told(recorder), spent)
          // The child of a run that took too long is interrupted with the tool that runs it.
          assert.strictEqual(last(recorder), limit === "duration" ? "agent_end Aborted" : "agent_end Limited")
          assertInvariants({ events: recorder.events })
          assert.strictEqual(yield* trial.shape, limit === "duration" ? "U A[p] R(p!)" : "U A[p] R(p)")
          yield* trial.nothingFollows
        }))
    }

    test(`B109 (L7) ${way}: a child of its own budget, spent first, does not end the parent`, () =>
      Effect.gen(function*() {
        const { recorders: [recorder], requests, trial } = yield* family(
          (model, recorder, tools) =>
            Effect.map(
              make(model, recorder, tools),
              (child) => Effect.scoped(Effect.provide(child, Layer.orDie(Budget.layer({ turns: 2 }))))
            ),
          { limits: { turns: 10 } },
          [slow("a", 0)]
        )
        const { outcome } = yield* trial.run()
        assert.deepInclude(outcome, { _tag: "Completed" })
        assert.deepStrictEqual([yield* requests, last(recorder)], [2, "agent_end Limited"])
        assert.strictEqual(yield* trial.shape, "U A[p] R(p) A")
      }))

    for (const mode of modes) {
      test(`B109 (L7) ${way}: two at the same time share what is left, ${mode}`, () =>
        Effect.gen(function*() {
          const { recorders, requests, trial } = yield* family(
            make,
            {
              toolExecution: mode,
              limits: { turns: 6 },
              responses: [ScriptedModel.calls([["p", "p", {}], ["q", "q", {}]])]
            },
            [slow("a", 0)]
          )
          const { outcome } = yield* trial.run()
          assert.deepStrictEqual(outcome, limited("turns"))
          assert.strictEqual((yield* requests) + (yield* trial.requests), 6)
          assert.deepStrictEqual(recorders.map(last), ["agent_end Limited", "agent_end Limited"])
          for (const { events } of recorders) if (mode === "parallel") assertInvariants({ events })
          assert.strictEqual(yield* trial.shape, "U A[p,q] R(p) R(q)")
        }))

      const moments: ReadonlyArray<
        readonly [name: string, at: number, tools: ReadonlyArray<Tools.Tool>, settles: number, told: string]
      > = [
        ["the child asks its model", 500, [slow("a", 1000)], 0, "U A{aborted}"],
        ["a tool of the child works", 1500, [slow("a", 1000)], 0, "U A[c0] R(c0!)"],
        ["a later tool of the child works", 3500, [slow("a", 1000)], 0, "U A[c0] R(c0) A[c1] R(c1!)"],
        ["a deaf tool of the child works", 1500, [deaf("a", 10_000)], 1000, "U A[c0] R(c0!)"]
      ]
      for (const [name, at, tools, settles, expected] of moments) {
        test(`B109 (A1) ${way}: the parent is aborted while ${name}, ${mode}`, () =>
          Effect.gen(function*() {
            const { recorders: [recorder], requests, trial } = yield* family(
              make,
              { toolExecution: mode, gracePeriod: 1500 },
              tools
            )
            const run = yield* trial.start()
            yield* pass(at)
            const before = yield* requests
            const { messages } = yield* trial.abort(run, settles)
            assert.deepStrictEqual(results(messages), ["p! Operation aborted"])
            assert.strictEqual(told(recorder), expected)
            assert.strictEqual(last(recorder), "agent_end Aborted")
            assertInvariants({ events: recorder.events, requestsAtAbort: before, requestsAtEnd: yield* requests })
            const { bytes } = recorder
            yield* trial.nothingFollows
            assert.strictEqual(recorder.bytes, bytes)
          }))
      }
    }
  }
})
