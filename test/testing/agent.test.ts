import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Tools } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"

const slow = Tools.make("slow", {
  description: "Takes ten seconds.",
  parameters: Schema.Struct({}),
  execute: () => Effect.as(Effect.sleep("10 seconds"), "done")
})

describe("an agent with a scripted model", () => {
  it.effect("a steer waits for the running tool", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("1 second")
      yield* agent.steer("enough")
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(run)
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A[a] R(a) U A")
      yield* ScriptedModel.assertComplete
    }).pipe(
      Effect.scoped,
      Effect.provide(ScriptedModel.layer([
        ScriptedModel.calls([["a", "slow", {}]], { after: "200 millis" }),
        ScriptedModel.text("fine", { chunks: 3, every: "50 millis" })
      ]))
    ))

  it.effect("shows what it was asked, and when", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow], systemPrompt: "Be slow." })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(run)
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(
        requests.map(({ at, endedAt, messages, outcome, tools }) => [
          at,
          endedAt,
          outcome,
          Transcript.print(messages, { system: true }),
          tools.map(({ name }) => name)
        ]),
        [
          [0, 200, "ended", "S U", ["slow"]],
          [10_200, 10_300, "ended", "S U A[a] R(a)", ["slow"]]
        ]
      )
      assert.deepStrictEqual(Transcript.show(yield* agent.messages).split("\n"), [
        "S \"Be slow.\" +slow",
        "U \"go\"",
        "A[a] a: slow({})",
        "R(a) \"done\"",
        "A \"fine\""
      ])
    }).pipe(
      Effect.scoped,
      Effect.provide(ScriptedModel.layer([
        ScriptedModel.calls([["a", "slow", {}]], { after: "200 millis" }),
        ScriptedModel.text("fine", { chunks: 3, every: "50 millis" })
      ]))
    ))

  it.effect("aborts in the middle of a response", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("1 second")
      yield* agent.abort
      yield* Fiber.join(run)
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A{aborted}")
      assert.include(Transcript.show(yield* agent.messages), "A{aborted} \"so far\" -- aborted")
      const [request] = yield* ScriptedModel.requests
      assert.deepStrictEqual([request!.outcome, request!.endedAt], ["interrupted", 1000])
    }).pipe(Effect.scoped, Effect.provide(ScriptedModel.layer([ScriptedModel.hang({ partial: "so far" })]))))

  it.effect("fails with the model's error, keeping what had arrived", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("1 second")
      const { outcome } = yield* Fiber.join(run)
      assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
      assert.deepStrictEqual([outcome.error.reason, outcome.error.message], ["Overloaded", "busy"])
      assert.include(Transcript.show(yield* agent.messages), "A{error} \"so far\" -- error \"busy\"")
      yield* ScriptedModel.assertComplete
    }).pipe(
      Effect.scoped,
      Effect.provide(ScriptedModel.layer([
        ScriptedModel.error("busy", { reason: "Overloaded", partial: "so far", chunks: 3, every: "50 millis" })
      ]))
    ))

  it.effect("does not hide a request nobody thought of", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.prompt("one")
      const { outcome } = yield* agent.prompt("two")
      assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
      assert.strictEqual(outcome.error.reason, "InvalidRequest")
      assert.strictEqual(
        outcome.error.message,
        "Request 2 was not expected: 1 response was scripted; its last message: U \"two\""
      )
      assert.instanceOf(outcome.error.cause, ScriptedModel.UnexpectedRequest)
    }).pipe(Effect.scoped, Effect.provide(ScriptedModel.layer([ScriptedModel.text("fine")]))))

  it.effect("adds up the usage that was scripted, and reads streamed arguments", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const note = Tools.make("note", {
        description: "Notes a text.",
        parameters: Schema.Struct({ text: Schema.String }),
        execute: ({ text }) =>
          Effect.sync(() => {
            seen.push(text)
            return "noted"
          })
      })
      const agent = yield* Agent.make({ tools: [note] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("1 minute")
      const { usage } = yield* Fiber.join(run)
      assert.deepStrictEqual(seen, ["größer 😀"])
      assert.deepStrictEqual([usage.input, usage.output, usage.totalTokens], [30, 12, 42])
    }).pipe(
      Effect.scoped,
      Effect.provide(ScriptedModel.layer([
        ScriptedModel.calls([["a", "note", { text: "größer 😀" }]], {
          chunks: 7,
          every: "10 millis",
          usage: { input: 10, output: 5 }
        }),
        ScriptedModel.text("fine", { usage: { input: 20, output: 7 } })
      ]))
    ))
})
