/** Section A of the reported faults, B01 to B04: an abort while the calls of a response are under way. */
import { assert, describe } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type Events, Hooks, Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { logged } from "../utils/agents.ts"
import { test } from "../utils/leaks.ts"
import { tool } from "../utils/timedTools.ts"
import { makeTrial, modes, passiveHooks, results, type Setting, settings } from "../utils/trial.ts"

const stopped = "Operation aborted"

/** Tools that work for some time and note the calls they began. */
const working = (millis: Readonly<Record<string, number>>, executionMode?: Tools.ExecutionMode) => {
  const began: Array<string> = []
  const tools = Object.entries(millis).map(([name, ms]) =>
    tool(
      name,
      ({ toolCall }) =>
        Effect.suspend(() => {
          began.push(toolCall.id)
          return Effect.as(Effect.sleep(ms), "done")
        }),
      executionMode === undefined ? {} : { executionMode }
    )
  )
  return { began, tools }
}

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

describe("B01 an abort between the calls of a batch leaves none of them open", () => {
  const oneByOne = { a: 50, b: 50, c: 50 }
  const together = { a: 50, b: 100, c: 150 }
  /** How the calls run, how long they take, and which of them have begun when the 1st, 2nd, 3rd one works. */
  const ways: ReadonlyArray<
    readonly [string, Setting, Readonly<Record<string, number>>, Tools.ExecutionMode | undefined, ReadonlyArray<string>]
  > = [
    ["a sequential run", { toolExecution: "sequential" }, oneByOne, undefined, ["a", "ab", "abc"]],
    ["sequential tools", { toolExecution: "parallel" }, oneByOne, "sequential", ["a", "ab", "abc"]],
    ["one at a time", { toolConcurrency: 1 }, oneByOne, undefined, ["a", "ab", "abc"]],
    ["two at a time", { toolConcurrency: 2 }, together, undefined, ["ab", "abc", "abc"]],
    ["all at once", {}, together, undefined, ["abc", "abc", "abc"]]
  ]
  for (const [way, how, millis, executionMode, begun] of ways) {
    for (const [name, { audience, hooks }] of settings.slice(0, 4)) {
      for (const [index, began] of begun.entries()) {
        test(`B01 ${way}, while call ${index + 1} of 3 works, ${name.replace("parallel, ", "")}`, () =>
          Effect.gen(function*() {
            const work = working(millis, executionMode)
            const trial = yield* makeTrial({
              ...how,
              audience: audience!,
              hooks: hooks ?? [],
              tools: work.tools,
              responses: [calling("a", "b", "c"), ScriptedModel.text("fine")]
            })
            const run = yield* trial.start()
            yield* TestClock.adjust(20 + 50 * index)
            const { messages } = yield* trial.abort(run)
            const marks = ["a", "b", "c"].map((id, at) => at < index ? `R(${id})` : `R(${id}!)`)
            assert.strictEqual(yield* trial.shape, `U A[a,b,c] ${marks.join(" ")}`)
            assert.deepStrictEqual(
              results(messages),
              ["a", "b", "c"].map((id, at) => at < index ? `${id}: done` : `${id}! ${stopped}`)
            )
            assert.strictEqual(work.began.join(""), began)
            assert.strictEqual(yield* trial.requests, 1)
            yield* trial.nothingFollows
            assert.strictEqual(work.began.join(""), began)
            assert.strictEqual((yield* trial.run("again")).outcome._tag, "Completed")
            assert.strictEqual(yield* trial.shape, `U A[a,b,c] ${marks.join(" ")} U A`)
          }))
      }
    }
  }

  const picky = Tools.make("picky", {
    description: "Wants a number.",
    parameters: Schema.Struct({ n: Schema.Finite }),
    execute: () => Effect.succeed("never")
  })
  const mixed = ScriptedModel.calls([
    ["a", "a", {}],
    ["b", "nope", {}],
    ["c", "picky", { n: "x" }],
    ["d", "blocked", {}],
    ["e", "picky", "{\"n\":"],
    ["f", "f", {}]
  ])
  const guard = Hooks.beforeToolCall(({ toolCall }) => toolCall.name === "blocked" ? Hooks.block("no") : Hooks.allow)

  for (const mode of modes) {
    test(`B01 calls that would never have run are answered, too, ${mode}`, () =>
      Effect.gen(function*() {
        const { began, tools } = working({ a: 50, blocked: 1, f: 50 })
        const trial = yield* makeTrial({
          toolExecution: mode,
          tools: [...tools, picky],
          hooks: [guard],
          responses: [mixed]
        })
        const run = yield* trial.start()
        yield* TestClock.adjust(20)
        const { messages } = yield* trial.abort(run)
        assert.strictEqual(yield* trial.shape, "U A[a,b,c,d,e,f] R(a!) R(b!) R(c!) R(d!) R(e!) R(f!)")
        const answers = results(messages)
        if (mode === "sequential") {
          assert.deepStrictEqual(answers, ["a", "b", "c", "d", "e", "f"].map((id) => `${id}! ${stopped}`))
          assert.deepStrictEqual(began, ["a"])
        } else {
          // The gates were passed before: those calls had ended with their own errors.
          assert.deepStrictEqual([answers[0], answers[3], answers[5]], [`a! ${stopped}`, "d! no", `f! ${stopped}`])
          assert.match(answers[1]!, /^b! Tool nope not found/)
          assert.match(answers[2]!, /^c! Validation failed for tool "picky"/)
          assert.match(answers[4]!, /^e! .*not valid JSON/)
          assert.deepStrictEqual(began, ["a", "f"])
        }
        yield* trial.nothingFollows
      }))
  }
})

describe("B02 the model is not asked again after an abort", () => {
  /** Something happens at the place, once. */
  type Place = (happens: Effect.Effect<void>) => Setting
  const once = (happens: Effect.Effect<void>): Effect.Effect<void> => {
    let done = false
    return Effect.suspend(() => {
      if (done) return Effect.void
      done = true
      return happens
    })
  }
  const quick = tool("a", () => Effect.succeed("done"))
  const on = (type: Events.AgentEventType, nth = 1) => ({ type, nth })

  const hooks: ReadonlyArray<readonly [name: string, place: Place, shape: string]> = [
    ["the tool", (happens) => ({ tools: [tool("a", () => Effect.as(once(happens), "done"))] }), "U A[a] R(a!)"],
    ["beforeToolCall", (happens) => ({ hooks: [Hooks.beforeToolCall(() => once(happens))] }), "U A[a] R(a!)"],
    ["afterToolCall", (happens) => ({ hooks: [Hooks.afterToolCall(() => once(happens))] }), "U A[a] R(a!)"],
    ["finishTurn", (happens) => ({ hooks: [Hooks.finishTurn(() => once(happens))] }), "U A[a] R(a)"],
    ["prepareNextTurn", (happens) => ({ hooks: [Hooks.prepareNextTurn(() => once(happens))] }), "U A[a] R(a)"]
  ]
  for (const mode of modes) {
    for (const [name, place, shape] of hooks) {
      for (const way of ["from outside", "from inside"] as const) {
        test(`B02 aborted in ${name} ${way}, ${mode}`, () =>
          Effect.gen(function*() {
            const inside: { abort: Effect.Effect<void> } = { abort: Effect.void }
            const happens = way === "from outside" ? Effect.sleep(100) : Effect.suspend(() => inside.abort)
            const trial = yield* makeTrial({
              toolExecution: mode,
              tools: [quick],
              responses: [calling("a"), ScriptedModel.text("done")],
              otherwise: ScriptedModel.text("more"),
              ...place(happens)
            })
            inside.abort = trial.agent.abort
            yield* trial.steer("S")
            yield* trial.followUp("F")
            yield* trial.agent.clearSteering
            trial.accepted.splice(0)
            const run = yield* trial.start()
            yield* trial.steer("S")
            trial.accepted.push("F")
            yield* TestClock.adjust(50)
            if (way === "from outside") yield* trial.abort(run)
            assert.strictEqual(yield* trial.shape, shape)
            assert.strictEqual(yield* trial.requests, 1)
            assert.deepStrictEqual(trial.heard("agent_end").map(({ outcome }) => outcome._tag), ["Aborted"])
            assert.deepStrictEqual(yield* trial.queued, ["S", "F"])
            yield* trial.nothingFollows
          }))
      }
    }
  }
  void on
  void Stream
  void passiveHooks
  void logged
})
