/** What a run used, without and with the runs inside it (L8). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Budget, Loop, Messages, StreamFn } from "../src/index.ts"
import { RunResult } from "../src/RunResult.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { settled } from "./utils/agents.ts"
import { slow, tool } from "./utils/timedTools.ts"

const { calls, error, events, text } = ScriptedModel

/** `n` tokens and as many dollars. */
const costs = (n: number) => ({ input: n, cost: { input: n, total: n } })

/** An agent with a script of its own. */
const scripted = (responses: ReadonlyArray<ScriptedModel.Response>, options: Agent.Options = {}) =>
  Effect.provide(Agent.make(options), Layer.fresh(ScriptedModel.layer(responses)))

/** A tool that prompts an agent of its own. */
const asking = (name: string, responses: ReadonlyArray<ScriptedModel.Response>, options: Agent.Options = {}) =>
  tool(name, () =>
    Effect.gen(function*() {
      const child = yield* scripted(responses, options)
      const { outcome } = yield* child.prompt("?")
      return outcome._tag
    }).pipe(Effect.scoped, Effect.orDie))

const tokens = (result: RunResult) => ({
  own: result.usage.totalTokens,
  children: result.childUsage.totalTokens,
  total: result.totalUsage.totalTokens,
  dollars: result.totalUsage.cost.total
})

describe("L8: the usage of a run", () => {
  it.effect("is its own, when there is nobody inside", () =>
    Effect.gen(function*() {
      const agent = yield* scripted([text("one", { usage: costs(1) })])
      const result = yield* agent.prompt("go")
      assert.deepStrictEqual(tokens(result), { own: 1, children: 0, total: 1, dollars: 1 })
      assert.deepStrictEqual(result.totalUsage, result.usage)
    }).pipe(Effect.scoped))

  it.effect("has that of the runs inside, and of those inside them", () =>
    Effect.gen(function*() {
      const grandchild = asking("deeper", [text("deepest", { usage: costs(100) })])
      const child = asking(
        "ask",
        [calls([["b", "deeper", {}]], { usage: costs(10) }), text("child", { usage: costs(20) })],
        { tools: [grandchild] }
      )
      const agent = yield* scripted(
        [calls([["a", "ask", {}]], { usage: costs(1) }), text("fine", { usage: costs(2) })],
        { tools: [child], limits: { tokens: 1000 } }
      )
      assert.deepStrictEqual(tokens(yield* agent.prompt("go")), { own: 3, children: 130, total: 133, dollars: 133 })
    }).pipe(Effect.scoped))

  it.effect("is what its budget counts", () =>
    Effect.gen(function*() {
      const child = asking("ask", [text("child", { usage: costs(10) })])
      const agent = yield* scripted(
        [calls([["a", "ask", {}]], { usage: costs(1) }), text("fine", { usage: costs(2) })],
        { tools: [child] }
      )
      const result = yield* agent.prompt("go")
      const spent = yield* Budget.spent
      assert.deepStrictEqual([spent?.tokens, spent?.cost], [13, 13])
      assert.deepStrictEqual(tokens(result), { own: 3, children: 10, total: 13, dollars: 13 })
    }).pipe(Effect.scoped, Effect.provide(Budget.layer({ tokens: 1000 }))))

  it.effect("has that of runs that work at the same time", () =>
    Effect.gen(function*() {
      const child = (name: string, n: number) => asking(name, [text(name, { after: n, usage: costs(n) })])
      const agent = yield* scripted(
        [calls([["a", "x", {}], ["b", "y", {}], ["c", "x", {}]], { usage: costs(1) }), text("fine")],
        { tools: [child("x", 10), child("y", 100)] }
      )
      assert.deepStrictEqual(tokens(yield* settled(agent.prompt("go"))), {
        own: 1,
        children: 120,
        total: 121,
        dollars: 121
      })
    }).pipe(Effect.scoped))

  it.effect("has that of a run that fails", () =>
    Effect.gen(function*() {
      const child = asking("ask", [calls([["b", "none", {}]], { usage: costs(10) }), error("no")])
      const agent = yield* scripted([calls([["a", "ask", {}]], { usage: costs(1) }), text("fine")], { tools: [child] })
      const result = yield* agent.prompt("go")
      assert.deepStrictEqual(tokens(result), { own: 1, children: 10, total: 11, dollars: 11 })
      assert.strictEqual(Messages.text(result.messages[2]!), "Failed")
    }).pipe(Effect.scoped))

  it.effect("has that of a run that is aborted with it, as far as it is known", () =>
    Effect.gen(function*() {
      const child = asking(
        "ask",
        [
          calls([["b", "slow", {}]], { usage: costs(10) }),
          events([
            { type: "start", usage: { ...Messages.emptyUsage, input: 5, totalTokens: 5 } },
            { type: "text_start", contentIndex: 0 }
          ], { open: true })
        ],
        { tools: [slow("slow", 1000)] }
      )
      const agent = yield* scripted([calls([["a", "ask", {}]], { usage: costs(1) })], { tools: [child] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(5000)
      yield* agent.abort
      const result = yield* Fiber.join(run)
      assert.strictEqual(result.outcome._tag, "Aborted")
      assert.deepStrictEqual(tokens(result), { own: 1, children: 15, total: 16, dollars: 11 })
    }).pipe(Effect.scoped))

  it.effect("stays what it was when a run that was left behind goes on", () =>
    Effect.gen(function*() {
      const child = tool("ask", () =>
        Effect.uninterruptible(
          Effect.gen(function*() {
            yield* Effect.sleep(10_000)
            const agent = yield* scripted([text("late", { usage: costs(10) })])
            yield* agent.prompt("?")
            return "late"
          }).pipe(Effect.scoped, Effect.orDie)
        ))
      const agent = yield* scripted([calls([["a", "ask", {}]], { usage: costs(1) })], {
        tools: [child],
        gracePeriod: 0
      })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* agent.abort
      const result = yield* Fiber.join(run)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(tokens(result), { own: 1, children: 0, total: 1, dollars: 1 })
    }).pipe(Effect.scoped))

  it.effect("is that of all runs of a prompt that others follow", () =>
    Effect.gen(function*() {
      const child = asking("ask", [text("child", { usage: costs(10) })])
      const round = [calls([["a", "ask", {}]], { usage: costs(1) }), text("fine", { usage: costs(2) })]
      const agent = yield* scripted([...round, ...round], { tools: [child] })
      let again = true
      yield* agent.subscribe((event) => {
        if (event.type !== "agent_end" || !again) return undefined
        again = false
        return agent.followUp("again")
      })
      assert.deepStrictEqual(tokens(yield* agent.prompt("go")), { own: 6, children: 20, total: 26, dollars: 26 })
    }).pipe(Effect.scoped))

  it.effect("is there where the loop is run alone", () =>
    Effect.gen(function*() {
      const child = asking("ask", [text("child", { usage: costs(10) })])
      const { stream } = yield* ScriptedModel.make([
        calls([["a", "ask", {}]], { usage: costs(1) }),
        text("fine", { usage: costs(2) })
      ])
      const result = yield* Effect.provideService(
        Loop.run([Messages.user("hi")], { messages: [], tools: [child] }),
        StreamFn.StreamFn,
        { stream }
      )
      assert.deepStrictEqual(tokens(result), { own: 3, children: 10, total: 13, dollars: 13 })
    }))

  it("is none for a result that is made without it", () => {
    const result = new RunResult({ _tag: "Aborted" }, [Messages.assistant("hi")])
    assert.deepStrictEqual(result.totalUsage, Messages.emptyUsage)
  })
})
