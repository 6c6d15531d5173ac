/** What becomes of a response whose connection does not close: the final event was read, so the answer is complete. */
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Fiber, Stream } from "effect"
import { Errors, type StreamFn } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { pass, subscribe, test, testEnd } from "./utils/leaks.ts"
import { noting, quick } from "./utils/timedTools.ts"
import { lastResponse, makeTrial, results, type Setting, settings } from "./utils/trial.ts"

const fine = ScriptedModel.text("fine")

const calling = ScriptedModel.calls([["a", "a", {}], ["b", "a", {}]])

const times: ReadonlyArray<readonly [name: string, Setting]> = [
  ["", {}],
  [", with deadlines", { firstEventTimeout: "2 seconds", eventTimeout: "2 seconds" }]
]

/** A model whose connections end like this. */
const closing = (end: Effect.Effect<unknown>): Setting => ({ wrap: (scripted) => Stream.ensuring(scripted, end) })

describe("Closing the model's stream", () => {
  for (const [setting, of] of settings) {
    for (const [time, options] of times) {
      test(`M2: a finalizer that hangs is left behind at the end of the run, within the grace, ${setting}${time}`, () =>
        Effect.gen(function*() {
          const ran: Array<string> = []
          const trial = yield* makeTrial({
            ...of,
            ...options,
            ...closing(testEnd),
            tools: [noting("a", ran)],
            responses: [calling, fine]
          })
          const run = yield* trial.start()
          yield* pass(0)
          assert.deepStrictEqual([ran, yield* trial.requests], [["a", "b"], 2], "nothing waits for the closing")
          yield* pass(999)
          assert.isUndefined(run.pollUnsafe())
          yield* pass(1)
          const [{ outcome }, at] = yield* Fiber.join(run)
          assert.deepStrictEqual([outcome._tag, at], ["Completed", 1000])
          assert.strictEqual(yield* trial.shape, "U A[a,b] R(a) R(b) A")
          yield* trial.nothingFollows
        }))
    }

    test(`M2, I5: a finalizer that takes its time is not interrupted, and has ended when the run ends, ${setting}`, () =>
      Effect.gen(function*() {
        const ended: Array<number> = []
        const end = Effect.andThen(Effect.sleep(400), Effect.map(Clock.currentTimeMillis, (now) => ended.push(now)))
        const trial = yield* makeTrial({ ...of, ...closing(end), tools: [quick("a")], responses: [calling, fine] })
        const run = yield* trial.start()
        yield* pass(400)
        const [{ outcome }, at] = yield* Fiber.join(run)
        assert.deepStrictEqual([outcome._tag, at, ended], ["Completed", 400, [400, 400]])
        assert.strictEqual(yield* trial.shape, "U A[a,b] R(a) R(b) A")
      }))

    test(`M2, A2: an abort while it closes: the message is complete and its calls are answered, ${setting}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...of,
          ...closing(testEnd),
          tools: [{ ...quick("a"), prepareArguments: () => Effect.never }],
          responses: [calling]
        })
        const run = yield* trial.start()
        yield* pass(10)
        const { messages } = yield* trial.abort(run, 1000)
        assert.strictEqual(yield* trial.shape, "U A[a,b] R(a!) R(b!)")
        assert.strictEqual(lastResponse(messages).stopReason, "toolUse")
        assert.deepStrictEqual(results(messages), ["a! Operation aborted", "b! Operation aborted"])
      }))

    test(`M2, A2: an abort by what closes it: the message is complete and its calls are answered, ${setting}`, () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        let abort: Effect.Effect<void> = Effect.void
        const trial = yield* makeTrial({
          ...of,
          ...closing(Effect.suspend(() => abort)),
          tools: [noting("a", ran)],
          responses: [calling, fine]
        })
        abort = trial.agent.abort
        const { messages, outcome } = yield* trial.run()
        assert.deepStrictEqual([outcome._tag, ran], ["Aborted", []])
        assert.strictEqual(yield* trial.shape, "U A[a,b] R(a!) R(b!)")
        assert.strictEqual(lastResponse(messages).stopReason, "toolUse")
        assert.deepStrictEqual(results(messages), ["a! Operation aborted", "b! Operation aborted"])
        assert.strictEqual(yield* trial.requests, 1)
      }))

    test(`M2, A4: an abort while what closes it is awaited changes nothing but the outcome, ${setting}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...of, ...closing(testEnd), responses: [fine] })
        const run = yield* trial.start()
        yield* pass(500)
        const abort = yield* Effect.forkChild(trial.agent.abort)
        yield* pass(1000)
        yield* Fiber.join(abort)
        yield* Fiber.join(run)
        assert.strictEqual(yield* trial.shape, "U A")
        if (trial.watched) assert.lengthOf(trial.heard("agent_end"), 1)
      }))
  }

  const failing: ReadonlyArray<readonly [name: string, end: Effect.Effect<unknown>]> = [
    ["dies", Effect.die(new Error("cannot close"))],
    ["dies later", Effect.delay(Effect.die(new Error("cannot close")), 10)],
    [
      "throws",
      Effect.sync(() => {
        throw new Error("cannot close")
      })
    ]
  ]
  for (const [name, end] of failing) {
    test(`M2: a finalizer that ${name} is logged and costs nothing`, () =>
      Effect.gen(function*() {
        const [{ shape, tag }, lines] = yield* logged(Effect.gen(function*() {
          const trial = yield* makeTrial({ ...closing(end), tools: [quick("a")], responses: [calling, fine] })
          const { outcome } = yield* trial.run()
          return { shape: yield* trial.shape, tag: outcome._tag }
        }))
        assert.deepStrictEqual([tag, shape], ["Completed", "U A[a,b] R(a) R(b) A"])
        const told = lines.filter((line) => line.includes("The model's stream could not be closed"))
        assert.lengthOf(told, 2)
        assert.include(told[0], "cannot close")
      }))
  }

  test("M2, A4: what closes after the run has ended is logged", () =>
    Effect.gen(function*() {
      const [, lines] = yield* logged(Effect.gen(function*() {
        const trial = yield* makeTrial({ ...closing(Effect.sleep(5000)), responses: [fine] })
        yield* trial.run()
      }))
      assert.lengthOf(lines.filter((line) => line.includes("The model's stream was closed after its run had ended")), 1)
    }))

  test("M4: a stream that broke the protocol is not waited for either", () =>
    Effect.gen(function*() {
      const wrong: ReadonlyArray<StreamFn.StreamEvent> = [{ type: "start" }, { type: "start" }]
      const trial = yield* makeTrial({ ...closing(testEnd), responses: [ScriptedModel.events(wrong)] })
      const run = yield* trial.start()
      yield* pass(1000)
      const [{ outcome }, at] = yield* Fiber.join(run)
      assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
      assert.deepStrictEqual([outcome.error.reason, at], ["ProtocolViolation", 1000])
      assert.strictEqual(yield* trial.shape, "U A{error}")
    }))

  test("M4: without a final event what closes the stream counts: its failure is that of the response", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        ...closing(Effect.die(new Error("cannot close"))),
        responses: [ScriptedModel.events([{ type: "start" }])]
      })
      const { outcome } = yield* trial.run()
      assert(outcome._tag === "Failed" && outcome.error instanceof Errors.ModelError)
      assert.deepStrictEqual([outcome.error.reason, outcome.error.message], ["Unknown", "cannot close"])
      assert.strictEqual(yield* trial.shape, "U A{error}")
    }))

  test("M2, M3: a listener of message_start that aborts does not make a complete message incomplete", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        responses: [ScriptedModel.events([{ type: "done", content: [{ type: "text", text: "whole" }] }])]
      })
      yield* subscribe(
        trial.agent,
        (event) => event.type === "message_start" && event.message.role === "assistant" ? trial.agent.abort : undefined
      )
      const { messages, outcome } = yield* trial.run()
      assert.strictEqual(outcome._tag, "Aborted")
      const { content, errorMessage, stopReason } = lastResponse(messages)
      assert.deepStrictEqual([content, stopReason, errorMessage], [
        [{ type: "text", text: "whole" }],
        "stop",
        undefined
      ])
      assert.strictEqual(yield* trial.shape, "U A")
    }))
})
