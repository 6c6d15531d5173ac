import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Budget, ConvertToLlm, Hooks, Loop, Messages, StreamFn, Tools } from "../src/index.ts"
import { CurrentRun } from "../src/internal/currentRun.ts"
import type { RunResult } from "../src/RunResult.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { settled, withModel } from "./utils/agents.ts"

const { calls, text } = ScriptedModel

/** Acquires and, when its scope closes, releases. */
const resource = (log: Array<string>, name: string) =>
  Effect.acquireRelease(
    Effect.sync(() => log.push(`open ${name}`)),
    () => Effect.sync(() => log.push(`close ${name}`))
  )

const dynamic = <E, R>(name: string, execute: (call: Tools.CallContext) => Effect.Effect<Tools.ToolOutput, E, R>) =>
  Tools.dynamic(name, { description: name, parameters: { type: "object" }, execute: (_, call) => execute(call) })

/** How many runs are around the code that asks. */
const depth = Effect.withFiber((fiber) => {
  let count = 0
  for (let scope = fiber.getRef(CurrentRun); scope !== undefined; scope = scope.parent) count++
  return Effect.succeed(count)
})

class Place extends Context.Service<Place, string>()("test/Place") {}

describe("The services of a call", () => {
  type Run = (tools: ReadonlyArray<Tools.Tool<Place>>) => Effect.Effect<
    RunResult,
    unknown,
    StreamFn.StreamFn | Scope.Scope | Place
  >
  const runs: Record<string, Run> = {
    agent: (tools) => Effect.flatMap(Agent.make({ tools }), (agent) => agent.prompt("go")),
    "agent that was given its tools later": (tools) =>
      Effect.gen(function*() {
        const agent = yield* Agent.make()
        yield* agent.setTools(tools)
        return yield* agent.prompt("go").pipe(Effect.provideService(Place, "prompt"))
      }),
    loop: (tools) => Loop.run([Messages.user("go")], { messages: [], tools })
  }
  for (const [name, run] of Object.entries(runs)) {
    it.effect(`T7: are those its tools were given with, whatever the tool that makes the call provides (${name})`, () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const note = (what: string) => Effect.map(Place, (place) => void log.push(`${what}: ${place}`))
        const inner = Tools.dynamic("inner", {
          description: "inner",
          parameters: { type: "object" },
          prepareArguments: (args) => Effect.as(note("preparation"), args),
          execute: () => Effect.as(note("inner"), "x")
        })
        const outer = dynamic("outer", ({ runToolCall }) =>
          Effect.gen(function*() {
            yield* note("outer")
            yield* Effect.provideService(runToolCall({ id: "n", name: "inner" }), Place, "elsewhere")
            const { isError } = yield* Effect.provideService(
              runToolCall({ id: "m", name: "other" }, { tools: [{ ...inner, name: "other" }] }),
              Place,
              "elsewhere"
            )
            return isError ? "an error" : "x"
          }))
        const { outcome } = yield* settled(run([outer, inner]))
        assert.strictEqual(outcome._tag, "Completed")
        assert.deepStrictEqual(log, [
          "outer: home",
          "preparation: home",
          "inner: home",
          "preparation: elsewhere",
          "inner: elsewhere"
        ])
      }).pipe(Effect.provideService(Place, "home"), withModel(calls([["a", "outer", {}]]), text("fine"))))
  }
})

describe("The scope of a call", () => {
  type Run = (
    tools: ReadonlyArray<Tools.Tool<Scope.Scope>>
  ) => Effect.Effect<RunResult, unknown, StreamFn.StreamFn | Scope.Scope>
  const runs: Record<string, Run> = {
    agent: (tools) => Effect.flatMap(Agent.make({ tools }), (agent) => agent.prompt("go")),
    loop: (tools) => Loop.run([Messages.user("go")], { messages: [], tools })
  }
  for (const [name, run] of Object.entries(runs)) {
    it.effect(`T1: what a tool acquires is released when its call is over (${name})`, () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const inner = dynamic("inner", () => Effect.as(resource(log, "inner"), "x"))
        const outer = dynamic("outer", (call) =>
          Effect.gen(function*() {
            yield* resource(log, "outer")
            const { isError } = yield* call.runToolCall({ id: "n", name: "inner" })
            log.push(`inner is ${isError ? "an error" : "done"}`)
            return "x"
          }))
        const after = dynamic("after", () => Effect.sync(() => (log.push("after"), "x")))
        const { outcome } = yield* settled(run([outer, inner, after]))
        assert.strictEqual(outcome._tag, "Completed")
        assert.deepStrictEqual(log, [
          "open outer",
          "open inner",
          "close inner",
          "inner is done",
          "close outer",
          "after"
        ])
      }).pipe(withModel(calls([["a", "outer", {}]]), calls([["b", "after", {}]]), text("fine"))))
  }

  it.effect("A2: it is released when the call is aborted, and once when the call is tried again", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const hangs = dynamic("hangs", () => Effect.andThen(resource(log, "a"), Effect.never))
      const agent = yield* Agent.make({ tools: [hangs] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(log, ["open a"])
      yield* agent.abort
      yield* Fiber.join(run)
      assert.deepStrictEqual(log, ["open a", "close a"])
    }).pipe(withModel(calls([["a", "hangs", {}]]))))

  it.effect("an agent's layer with such a tool asks for no scope", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const opening = dynamic("opening", () => Effect.as(resource(log, "a"), "x"))
      const layer: Layer.Layer<Agent.Agent, unknown, StreamFn.StreamFn> = Agent.layer({ tools: [opening] })
      const { outcome } = yield* Effect.flatMap(Agent.Agent, (agent) => agent.prompt("go")).pipe(Effect.provide(layer))
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(log, ["open a", "close a"])
    }).pipe(withModel(calls([["a", "opening", {}]]), text("fine"))))

  it.effect("what a hook or a conversion acquires is released when it has answered", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const layer = Layer.mergeAll(
        Hooks.layer(Hooks.finishTurn(() => Effect.asVoid(resource(log, "hook")))),
        ConvertToLlm.layer((messages) => Effect.as(resource(log, "convert"), messages.filter(Messages.isMessage)))
      )
      yield* Effect.gen(function*() {
        const agent = yield* Agent.make()
        yield* agent.prompt("go")
        assert.deepStrictEqual(log, ["open convert", "close convert", "open hook", "close hook"])
      }).pipe(Effect.provide(layer))
    }).pipe(withModel(text("fine"))))
})

describe("The run that code belongs to", () => {
  // Where code is given: outside of any run, or inside of a tool of another agent.
  const code = {
    hook: (seen: Effect.Effect<void>) => ({ layer: Hooks.layer(Hooks.finishTurn(() => seen)), tools: [] }),
    conversion: (seen: Effect.Effect<void>) => ({
      layer: ConvertToLlm.layer((messages) => Effect.as(seen, messages.filter(Messages.isMessage))),
      tools: []
    }),
    tool: (seen: Effect.Effect<void>) => ({ layer: Layer.empty, tools: [dynamic("look", () => Effect.as(seen, "x"))] })
  }
  for (const [name, make] of Object.entries(code)) {
    it.effect(`L7, A1: a ${name} that is given inside of a tool counts against its own run, and is inside of it`, () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const look = Effect.gen(function*() {
          const budget = yield* Budget.Budget
          seen.push([yield* depth, budget?.limits.turns, budget?.around[0]?.limits.turns])
        })
        const { layer, tools } = make(look)
        const model = yield* ScriptedModel.make([calls([["c", "look", {}]]), text("child")])
        const child = Effect.gen(function*() {
          const agent = yield* Agent.make({ tools, limits: { turns: 7 } })
          const { outcome } = yield* agent.prompt("child")
          return outcome._tag
        }).pipe(
          Effect.scoped,
          Effect.provide(Layer.merge(layer, Layer.succeed(StreamFn.StreamFn, { stream: model.stream })))
        )
        const parent = yield* Agent.make({ tools: [dynamic("ask", () => child)], limits: { turns: 9 } })
        yield* parent.prompt("go")
        assert.isAbove(seen.length, 0)
        for (const one of seen) assert.deepStrictEqual(one, [2, 7, 9])
      }).pipe(
        Effect.provide(Layer.orDie(Budget.layer({ turns: 50 }))),
        withModel(calls([["a", "ask", {}]]), text("fine"))
      ))
  }

  /** A child that never stops by itself, and how many requests it made. */
  const stubborn = Effect.gen(function*() {
    const model = yield* ScriptedModel.make([], { otherwise: calls([["c", "look", {}]]) })
    return {
      layer: Layer.succeed(StreamFn.StreamFn, { stream: model.stream }),
      requests: Effect.map(model.requests, ({ length }) => length)
    }
  })

  for (
    const [name, around, turns] of [["no limits", {}, 3], ["wider limits", { turns: 40 }, 3], ["narrower limits", {
      turns: 2
    }, 1]] as const
  ) {
    it.effect(`L7: an agent's own budget holds where it is prompted inside a run of ${name}`, () =>
      Effect.gen(function*() {
        const { layer, requests } = yield* stubborn
        const child = yield* Agent.make({ tools: [dynamic("look", () => Effect.succeed("x"))] }).pipe(
          Effect.provide(Layer.merge(layer, Layer.orDie(Budget.layer({ turns: 3 }))))
        )
        const ask = dynamic("ask", () => Effect.map(child.prompt("child"), ({ outcome }) => outcome._tag))
        const parent = yield* Agent.make({ tools: [ask], limits: around })
        const { messages } = yield* parent.prompt("go")
        assert.strictEqual(Messages.text(messages[2]!), "Limited")
        assert.strictEqual(yield* requests, turns)
      }).pipe(withModel(calls([["a", "ask", {}]]), text("fine"))))
  }

  it.effect("L7: budgets that have one around them in common spend of it once", () =>
    Effect.gen(function*() {
      const { layer, requests } = yield* stubborn
      const child = yield* Agent.make({ tools: [dynamic("look", () => Effect.succeed("x"))] }).pipe(
        Effect.provide(Layer.merge(layer, Layer.orDie(Budget.layer({ turns: 30 }))))
      )
      const ask = dynamic("ask", () => Effect.as(child.prompt("child"), "x"))
      const parent = yield* Agent.make({ tools: [ask], limits: { turns: 40 } })
      yield* parent.prompt("go")
      assert.strictEqual(yield* requests, 9)
      assert.strictEqual((yield* Budget.spent)?.turns, 10)
    }).pipe(
      Effect.provide(Layer.orDie(Budget.layer({ turns: 10 }))),
      withModel(calls([["a", "ask", {}]]), text("fine"))
    ))

  it.effect("L7: an agent that is made in a tool and kept does not count against the run that is over", () =>
    Effect.gen(function*() {
      const kept: Array<Agent.AgentService> = []
      const scope = yield* Effect.scope
      const make = dynamic(
        "make",
        () => Effect.as(Scope.provide(Effect.map(Agent.make(), (agent) => void kept.push(agent)), scope), "x")
      )
      const inner = dynamic(
        "inner",
        () => Effect.flatMap(Agent.make({ tools: [make] }), (agent) => Effect.as(agent.prompt("inner"), "x"))
      )
      const parent = yield* Agent.make({ tools: [inner], limits: { turns: 2, duration: "1 minute" } })
      yield* parent.prompt("go")
      yield* TestClock.adjust("5 minutes")
      const { outcome } = yield* kept[0]!.prompt("later")
      assert.strictEqual(outcome._tag, "Completed")
    }).pipe(
      withModel(calls([["a", "inner", {}]]), calls([["b", "make", {}]]), text("fine"), text("fine"), text("fine"))
    ))

  it.effect("L1: runs inside of runs are no matter of the stack", () =>
    Effect.gen(function*() {
      let left = 1000
      const outcomes = new Map<string, number>()
      const dive: Effect.Effect<void, unknown, StreamFn.StreamFn> = Effect.scoped(Effect.gen(function*() {
        const agent = yield* Agent.make({
          tools: [dynamic("dive", () => Effect.as(left-- > 0 ? dive : Effect.void, "x"))]
        })
        const { outcome } = yield* agent.prompt("go")
        outcomes.set(outcome._tag, (outcomes.get(outcome._tag) ?? 0) + 1)
      }))
      yield* settled(dive)
      assert.deepStrictEqual([...outcomes], [["Completed", 1001]])
    }).pipe(Effect.provide(StreamFn.layer(({ messages }) =>
      Stream.fromIterable<StreamFn.StreamEvent>([
        { type: "start" },
        ...(messages.at(-1)?.role === "toolResult" ? [] : [
          { type: "toolcall_start", contentIndex: 0, id: "a", name: "dive" },
          { type: "toolcall_end", contentIndex: 0, arguments: {} }
        ] as const),
        { type: "done" }
      ])
    ))))

  it.effect("Q5: runs that follow each other stand beside each other", () =>
    Effect.gen(function*() {
      const depths: Array<number> = []
      const agent = yield* Agent.make()
      yield* agent.subscribe((event) =>
        event.type !== "agent_end"
          ? undefined
          : Effect.andThen(
            Effect.map(depth, (count) => void depths.push(count)),
            depths.length < 50 ? Effect.asVoid(agent.followUp("on")) : Effect.void
          )
      )
      yield* agent.prompt("go")
      assert.deepStrictEqual(depths, Array.from({ length: 51 }, () => 1))
    }).pipe(withModel(...Array.from({ length: 60 }, () => text("fine")))))
})
