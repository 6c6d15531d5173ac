/** B112: conversations that another program wrote, or a crash cut short. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Loop, Messages, StreamFn } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { logged } from "../utils/agents.ts"
import { violations } from "../utils/invariants.ts"
import { makeAgent, pass, test } from "../utils/leaks.ts"
import { makeTrial } from "../utils/trial.ts"

const fine = ScriptedModel.text("fine")

const call = (id: string): Messages.ToolCall => ({ type: "toolCall", id, name: "a", arguments: {} })
const calls = (...ids: ReadonlyArray<string>) => Messages.assistant(ids.map(call))
const result = (id: string, text = "done") => Messages.toolResult(call(id), text)
const { assistant, user } = Messages

/** Broken histories, what is wrong with them, and what they are mended to. */
const histories: ReadonlyArray<
  readonly [name: string, broken: Messages.Transcript, defects: ReadonlyArray<Messages.Defect["_tag"]>, mended: string]
> = [
  ["an open call", [user("1"), calls("a"), user("2")], ["OpenCall"], "U A[a] R(a!) U"],
  [
    "one of two calls open",
    [user("1"), calls("a", "b"), result("b"), user("2")],
    ["OpenCall"],
    "U A[a,b] R(a!) R(b) U"
  ],
  ["an orphan result", [user("1"), result("x"), assistant("ok")], ["OrphanResult"], "U A"],
  [
    "two results",
    [user("1"), calls("a"), result("a"), result("a", "again"), user("2")],
    ["DoubledResult"],
    "U A[a] R(a) U"
  ],
  [
    "a message between a call and its result",
    [user("1"), calls("a"), user("2"), result("a"), assistant("ok")],
    ["LateResult"],
    "U A[a] R(a) U A"
  ],
  ["a result before its call", [user("1"), result("a"), calls("a"), user("2")], ["EarlyResult"], "U A[a] R(a) U"],
  [
    "results in another order",
    [user("1"), calls("a", "b"), result("b"), result("a"), user("2")],
    ["UnorderedResult"],
    "U A[a,b] R(a) R(b) U"
  ],
  ["an empty answer", [user("1"), assistant([]), user("2")], ["EmptyAssistant"], "U U"],
  [
    "one id twice",
    [user("1"), calls("a", "a"), result("a"), result("a"), user("2")],
    ["DuplicateCallId"],
    "U A[a,a_2] R(a) R(a_2) U"
  ],
  [
    "a response that was never finished",
    [user("1"), assistant("wor", { stopReason: "pending" }), user("2")],
    ["PendingAssistant"],
    "U A{aborted} U"
  ],
  [
    "everything at once",
    [user("1"), result("x"), calls("a", "b"), user("2"), result("b"), assistant([]), calls("c"), user("3")],
    ["OrphanResult", "OpenCall", "LateResult", "EmptyAssistant", "OpenCall"],
    "U A[a,b] R(a!) R(b) U A[c] R(c!) U"
  ]
]

/** Open calls at the end: the next run answers them. */
const openEnds: ReadonlyArray<readonly [name: string, history: Messages.Transcript, next: string]> = [
  ["a call", [user("1"), calls("a")], "U A[a] R(a!)"],
  ["two calls, one answered", [user("1"), calls("a", "b"), result("a")], "U A[a,b] R(a) R(b!)"]
]

const valid = (requests: ReadonlyArray<ScriptedModel.RecordedRequest>) =>
  assert.deepStrictEqual(violations({ events: [], requests }), [])

describe("B112 broken histories", () => {
  for (const [name, broken, defects, mended] of histories) {
    test(`B112 ${name}: the defects are listed`, () =>
      Effect.sync(() => {
        assert.deepStrictEqual(Messages.check(broken).map(({ _tag }) => _tag), defects)
        assert.deepStrictEqual(Messages.check(Messages.repair(broken).messages), [])
      }))

    test(`B112 ${name}: repaired the same way every time, and only once`, () =>
      Effect.gen(function*() {
        const first = Messages.repair(broken)
        yield* pass("1 hour")
        assert.deepStrictEqual(Messages.repair(structuredClone(broken)), first)
        const twice = Messages.repair(first.messages)
        assert.strictEqual(twice.messages, first.messages)
        assert.deepStrictEqual(twice.repairs, [])
        assert.strictEqual(Transcript.print(first.messages), mended)
      }))

    test(`B112 (I1) ${name}: an agent repairs it when it is made, and says so`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ messages: broken, otherwise: fine })
        assert.strictEqual(yield* trial.shape, mended)
        assert.deepStrictEqual(yield* trial.agent.messages, Messages.repair(broken).messages)
        yield* trial.run("next")
        assert.strictEqual(yield* trial.shape, `${mended} U A`)
      }).pipe(
        logged,
        Effect.map(([, log]) => assert.lengthOf(log.filter((entry) => entry.includes("The transcript was mended")), 1))
      ))

    test(`B112 ${name}: an agent that is to refuse it, refuses it`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(makeAgent({ messages: broken, transcript: "refuse" }))
        assert.deepStrictEqual([error._tag, error.reason], ["AgentConfigError", "InvalidTranscript"])
        for (const { message } of Messages.check(broken)) assert.include(error.message, message)
      }).pipe(Effect.provide(ScriptedModel.layer([]))))

    for (const transcript of ["repair", "refuse"] as const) {
      test(`B112 ${name}: replaced messages are treated alike, ${transcript}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ audience: "nobody", transcript, messages: [user("0")], otherwise: fine })
          const exit = yield* Effect.exit(trial.agent.setMessages(broken))
          assert.strictEqual(exit._tag, transcript === "repair" ? "Success" : "Failure")
          const shape = transcript === "repair" ? mended : "U"
          assert.strictEqual(yield* trial.shape, shape)
          yield* trial.run("next")
          assert.strictEqual(yield* trial.shape, `${shape} U A`)
        }))
    }

    // A request may hold the results of one response in any order.
    if (defects[0] === "UnorderedResult") continue
    test(`B112 (M1) ${name}: the loop alone sends no broken request`, () =>
      Effect.gen(function*() {
        const model = yield* ScriptedModel.make([], { otherwise: fine })
        const running = yield* Effect.forkChild(
          Loop.run([user("next")], { messages: broken, tools: [] }).pipe(
            Effect.provideService(StreamFn.StreamFn, { stream: model.stream })
          )
        )
        yield* pass("1 hour")
        assert.strictEqual((yield* Fiber.join(running)).outcome._tag, "Completed")
        const requests = yield* model.requests
        assert.lengthOf(requests, 1)
        valid(requests)
      }))

    test(`B112 (M1) ${name}: appended messages lead to no broken request`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ audience: "nobody", otherwise: fine })
        yield* trial.agent.appendMessages(broken)
        const { outcome } = yield* trial.run("next")
        assert.strictEqual(outcome._tag, "Completed")
        valid(yield* trial.model.requests)
      }))
  }

  for (const [name, history, next] of openEnds) {
    for (const transcript of ["repair", "refuse"] as const) {
      test(`B112 (Q4) ${name} open at the end: a prompt answers, ${transcript}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ audience: "nobody", transcript, messages: history, otherwise: fine })
          yield* trial.run("next")
          assert.strictEqual(yield* trial.shape, `${next} U A`)
          assert.match(
            Messages.text((yield* trial.agent.messages).findLast(({ role }) => role === "toolResult")!),
            /^Operation aborted/
          )
        }))

      test(`B112 (Q4) ${name} open at the end: continue answers and goes on, ${transcript}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ audience: "nobody", transcript, messages: history, otherwise: fine })
          const run = yield* trial.agent.continue
          assert.strictEqual(run.outcome._tag, "Completed")
          assert.strictEqual(yield* trial.shape, `${next} A`)
        }))
    }
  }

  test("B112 a sound history stays the list it is", () =>
    Effect.gen(function*() {
      const sound = [user("1"), calls("a", "b"), result("a"), result("b"), assistant("ok"), user("2")]
      assert.deepStrictEqual(Messages.check(sound), [])
      assert.strictEqual(Messages.repair(sound).messages, sound)
      const trial = yield* makeTrial({ messages: sound, transcript: "refuse" })
      assert.deepStrictEqual(yield* trial.agent.messages, sound)
    }))
})
