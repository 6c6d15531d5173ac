/** The last request of a run that reached a limit (L7): tools are declared, and none may be called. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ConvertToLlm, Errors, Hooks, Messages, Queues } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { pass, test } from "./utils/leaks.ts"
import { noting, quick, slow } from "./utils/timedTools.ts"
import { makeTrial, modes, results, type Setting } from "./utils/trial.ts"

const usage = { input: 10, cost: { total: 1 } }

const stubborn: ScriptedModel.Responder = (_, index) => ScriptedModel.calls([[`c${index}`, "a", {}]], { usage })

const words = ScriptedModel.text("In short", { usage })

const sealed = "Tool call was not executed: the run has reached a limit and ends."

const limited = (limit: Errors.Limit) => Errors.RunOutcome.Limited({ limit })

/** Limits that are reached in the second turn. */
const limits: ReadonlyArray<readonly [limit: Errors.Limit, Setting]> = [
  ["turns", { limits: { turns: 2 } }],
  ["toolCalls", { limits: { toolCalls: 2 } }],
  ["tokens", { limits: { tokens: 15 } }],
  ["cost", { limits: { cost: 2 } }],
  ["repeatedCalls", { repeatedCalls: 2 }]
]

const before = "U A[c0] R(c0) A[c1] R(c1)"

describe("wrapUp", () => {
  for (const mode of modes) {
    for (const [limit, setting] of limits) {
      test(`L7: one request more, with the tools and no choice of one: ${limit}, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            ...setting,
            wrapUp: true,
            toolExecution: mode,
            tools: [quick("a"), quick("b")],
            responses: [stubborn, stubborn, words]
          })
          const { outcome, usage: spent } = yield* trial.run()
          assert.deepStrictEqual(outcome, limited(limit))
          assert.strictEqual(yield* trial.shape, `${before} A`)
          const requests = yield* trial.model.requests
          assert.deepStrictEqual(
            requests.map(({ toolChoice, tools }) => [toolChoice, tools.map(({ name }) => name)]),
            [["auto", ["a", "b"]], ["auto", ["a", "b"]], ["none", ["a", "b"]]]
          )
          assert.strictEqual(Transcript.print(requests[2]!.messages), before)
          assert.strictEqual(spent.totalTokens, 30)
          assert.deepStrictEqual(trial.recorder.outline.slice(-4), [
            "turn_start",
            "A",
            "turn_end A",
            "agent_end Limited"
          ])
          yield* trial.nothingFollows
        }))

      test(`L7: calls that come all the same are answered and do not run: ${limit}, ${mode}`, () =>
        Effect.gen(function*() {
          const ran: Array<string> = []
          const asked: Array<string> = []
          const trial = yield* makeTrial({
            ...setting,
            wrapUp: true,
            toolExecution: mode,
            tools: [noting("a", ran)],
            hooks: [
              Hooks.beforeToolCall(({ toolCall }) => {
                asked.push(toolCall.id)
              })
            ],
            responses: [
              stubborn,
              stubborn,
              ScriptedModel.calls([["x", "a", {}], ["y", "nope", {}], ["z", "a", "{\"br"]], { text: "Well" })
            ]
          })
          const { messages, outcome } = yield* trial.run()
          assert.deepStrictEqual(outcome, limited(limit))
          assert.strictEqual(yield* trial.shape, `${before} A[x,y,z] R(x!) R(y!) R(z!)`)
          assert.deepStrictEqual(results(messages).slice(-3), [`x! ${sealed}`, `y! ${sealed}`, `z! ${sealed}`])
          assert.deepStrictEqual([ran, asked], [["c0", "c1"], ["c0", "c1"]])
        }))
    }

    test(`L7: calls beyond the limit of tool calls, and a last request, ${mode}`, () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const trial = yield* makeTrial({
          limits: { toolCalls: 1 },
          wrapUp: true,
          toolExecution: mode,
          tools: [noting("a", ran)],
          responses: [ScriptedModel.calls([["a", "a", {}], ["b", "a", {}]]), words]
        })
        assert.deepStrictEqual((yield* trial.run()).outcome, limited("toolCalls"))
        assert.strictEqual(yield* trial.shape, "U A[a,b] R(a) R(b!) A")
        assert.deepStrictEqual(ran, ["a"])
      }))

    test(`L7: no queue is read; notes and new tools are told, ${mode}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          limits: { turns: 1 },
          wrapUp: true,
          toolExecution: mode,
          tools: [slow("a", 100)],
          responses: [stubborn, ScriptedModel.text("In short", { after: 100 })],
          otherwise: words
        })
        const { agent } = trial
        const run = yield* trial.start()
        yield* pass(50)
        const receipts = [yield* trial.steer("S"), yield* trial.followUp("F")]
        yield* agent.note("hint")
        yield* agent.setTools([slow("a", 100), quick("b")])
        yield* pass(100)
        receipts.push(yield* trial.steer("T"))
        yield* pass(100)
        const [{ outcome }] = yield* Fiber.join(run)
        assert.deepStrictEqual(outcome, limited("turns"))
        assert.strictEqual(yield* trial.shape, "U A[c0] R(c0) U A")
        assert.deepStrictEqual(yield* trial.queued, ["S", "T", "F"])
        for (const { delivered } of receipts) {
          assert.deepStrictEqual(yield* delivered, Queues.Delivery.Returned({ because: "limited" }))
        }
        const [, last] = yield* trial.model.requests
        assert.deepStrictEqual(last!.tools.map(({ name }) => name), ["a", "b"])
        assert.strictEqual(Messages.text(last!.messages.at(-1)!), "hint")
      }))
  }

  test("L7, M1: the request is made like any other, and finishTurn is called, its answer ignored", () =>
    Effect.gen(function*() {
      const called: Array<string> = []
      const note = (name: string) => Effect.sync(() => void called.push(name))
      const trial = yield* Effect.provide(
        makeTrial({
          limits: { turns: 1 },
          wrapUp: true,
          tools: [quick("a")],
          responses: [stubborn, words],
          hooks: [
            Hooks.transformContext((messages) => Effect.as(note("transformContext"), messages)),
            Hooks.apiKey(() => Effect.as(note("apiKey"), "key")),
            Hooks.prepareNextTurn(() => note("prepareNextTurn")),
            Hooks.finishTurn(({ message }) => Effect.as(note(`finishTurn ${Messages.text(message)}`), "continue"))
          ]
        }),
        ConvertToLlm.layer((messages) => Effect.as(note("convertToLlm"), messages.filter(Messages.isMessage)))
      )
      assert.deepStrictEqual((yield* trial.run()).outcome, limited("turns"))
      const request = ["transformContext", "convertToLlm", "apiKey"]
      assert.deepStrictEqual(called, [...request, "finishTurn ", ...request, "finishTurn In short"])
      assert.strictEqual(yield* trial.requests, 2)
      assert.strictEqual(yield* trial.shape, "U A[c0] R(c0) A")
    }))

  const without: ReadonlyArray<readonly [name: string, Setting, outcome: object, requests: number]> = [
    ["a run that completes", { limits: { turns: 5 }, otherwise: words }, { _tag: "Completed" }, 1],
    ["a run that fails", { limits: { turns: 5 }, otherwise: ScriptedModel.error("down") }, { _tag: "Failed" }, 1],
    [
      "a run that took too long",
      { limits: { duration: 10 }, otherwise: ScriptedModel.hang() },
      { _tag: "Limited", limit: "duration" },
      1
    ],
    [
      "a run that finishTurn ends",
      {
        limits: { turns: 1 },
        otherwise: stubborn,
        hooks: [Hooks.finishTurn(() => "end")]
      },
      { _tag: "Completed", by: "FinishTurn" },
      1
    ]
  ]
  for (const [name, setting, expected, requests] of without) {
    test(`L7: not for ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, wrapUp: true, tools: [quick("a")] })
        assert.deepInclude((yield* trial.run()).outcome, expected)
        assert.strictEqual(yield* trial.requests, requests)
        yield* trial.shape
      }))
  }

  test("L7, A1: an abort in the last request is an abort", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        limits: { turns: 1 },
        wrapUp: true,
        tools: [quick("a")],
        responses: [stubborn, ScriptedModel.hang({ partial: "In" })]
      })
      const run = yield* trial.start()
      yield* pass(10)
      yield* trial.abort(run)
      assert.strictEqual(yield* trial.shape, "U A[c0] R(c0) A{aborted}")
    }))

  test("L7: the time ends in the last request: it is limited all the same", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        limits: { turns: 1, duration: 50 },
        wrapUp: true,
        tools: [quick("a")],
        responses: [stubborn, ScriptedModel.hang({ partial: "In" })]
      })
      const { outcome } = yield* trial.run()
      assert.strictEqual(outcome._tag, "Limited")
      assert.strictEqual(yield* trial.shape, "U A[c0] R(c0) A{aborted}")
    }))
})
