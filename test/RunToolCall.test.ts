import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Result, Schedule, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Budget, Hooks, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { answers, assertBalanced, ofType, record, settled, toolLines, withModel } from "./utils/agents.ts"
import { echo, resultText, tool, untyped } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")

const double = Tools.make("double", {
  description: "Doubles a number.",
  parameters: Schema.Struct({ n: Schema.Int }),
  execute: ({ n }, { toolCall }) =>
    Effect.succeed(Tools.result({ text: String(n * 2), details: { by: toolCall.id }, structuredContent: n * 2 }))
})

/** Takes whatever it gets. */
const any = Tools.dynamic("any", {
  description: "Takes anything.",
  parameters: { type: "object" },
  execute: () => Effect.succeed("ran")
})

const cycle: Array<unknown> = []
cycle.push(cycle)

/** A tool that makes one call and keeps what became of it. */
const caller = (call: Tools.NestedCall) => {
  const outcomes: Array<Tools.ToolCallOutcome> = []
  return {
    outcomes,
    tool: tool("caller", ({ runToolCall }) =>
      Effect.map(runToolCall(call), (outcome) => {
        outcomes.push(outcome)
        return `got ${resultText(outcome.result)}`
      }))
  }
}

/** What becomes of one nested call; the call around it is a good one whatever happens. */
const nested = (call: Tools.NestedCall, tools: ReadonlyArray<Tools.Tool> = []) =>
  Effect.gen(function*() {
    const { outcomes, tool } = caller(call)
    const agent = yield* Agent.make({ tools: [tool, double, echo, ...tools] })
    const events = yield* record(agent)
    const run = yield* settled(agent.prompt("go"))
    assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) A")
    assert.deepStrictEqual(toolLines(events), ["start a", "end a"], "a nested call has no events")
    assertBalanced(events)
    assert.lengthOf(outcomes, 1)
    return outcomes[0]!
  }).pipe(withModel(ScriptedModel.calls([["a", "caller", {}]]), fine))

describe("runToolCall", () => {
  it.effect("T7: gives the result of another tool, without events and messages", () =>
    Effect.gen(function*() {
      const { isError, result, toolCall } = yield* nested({ id: "n1", name: "double", arguments: { n: 21 } })
      assert.isFalse(isError)
      assert.deepStrictEqual(result, {
        content: [{ type: "text", text: "42" }],
        details: { by: "n1" },
        structuredContent: 42
      })
      assert.deepInclude(toolCall, { id: "n1", name: "double", arguments: { n: 21 } })
    }))

  it.effect("T7: arguments are decoded as leniently as those of a model", () =>
    Effect.gen(function*() {
      for (const args of [{ n: "21" }, "{\"n\":21}"]) {
        const outcome = yield* nested({ id: "n1", name: "double", arguments: args })
        assert.strictEqual(resultText(outcome.result), "42")
      }
    }))

  it.effect("T7: no arguments are none", () =>
    Effect.gen(function*() {
      const outcome = yield* nested({ id: "n1", name: "echo" })
      assert.deepStrictEqual([outcome.isError, resultText(outcome.result)], [false, ""])
    }))

  it.effect("T7: prepareArguments of the other tool is asked", () =>
    Effect.gen(function*() {
      const outcome = yield* nested({ id: "n1", name: "lazy", arguments: { n: 1 } }, [
        { ...double, name: "lazy", prepareArguments: () => ({ n: 50 }) }
      ])
      assert.strictEqual(resultText(outcome.result), "100")
    }))

  const failures: ReadonlyArray<[string, Tools.NestedCall, RegExp, ReadonlyArray<Tools.Tool>]> = [
    ["an unknown tool", { id: "n1", name: "nope" }, /^Tool nope not found/, []],
    [
      "wrong arguments",
      { id: "n1", name: "double", arguments: { n: "x" } },
      /^Validation failed for tool "double"/,
      []
    ],
    ["arguments that are no object", { id: "n1", name: "double", arguments: 5 }, /double/, []],
    ["arguments with a bigint in them", { id: "n1", name: "any", arguments: { n: 1n } }, /any/, [any]],
    ["arguments with a cycle in them", { id: "n1", name: "any", arguments: { cycle } }, /any/, [any]],
    ["arguments with a function in them", { id: "n1", name: "any", arguments: { f: () => 1 } }, /any/, [any]],
    ["a failing tool", { id: "n1", name: "bad" }, /broke/, [tool("bad", () => Effect.fail("broke"))]],
    ["a dying tool", { id: "n1", name: "bad" }, /broke/, [tool("bad", () => Effect.die(new Error("broke")))]],
    ["a throwing tool", { id: "n1", name: "bad" }, /broke/, [
      tool("bad", () => {
        throw new Error("broke")
      })
    ]],
    ["a tool that interrupts itself", { id: "n1", name: "bad" }, /./, [tool("bad", () => Effect.interrupt)]],
    ["a wrong result", { id: "n1", name: "bad" }, /bad/, [tool("bad", () => Effect.succeed(untyped<string>(5)))]],
    ["a result with isError", { id: "n1", name: "bad" }, /broke/, [
      tool("bad", () => Effect.succeed(Tools.result({ text: "broke", isError: true })))
    ]],
    ["prepareArguments that throws", { id: "n1", name: "bad" }, /broke/, [{
      ...echo,
      name: "bad",
      prepareArguments: () => {
        throw new Error("broke")
      }
    }]]
  ]
  for (const [what, call, text, tools] of failures) {
    it.effect(`T7${what.includes("with a ") ? " T9" : ""}: ${what}: an outcome with isError, not a failure`, () =>
      Effect.gen(function*() {
        const outcome = yield* nested(call, tools)
        assert.isTrue(outcome.isError)
        assert.match(resultText(outcome.result), text)
        assert.strictEqual(outcome.toolCall.id, "n1")
      }))
  }

  it.effect("T7: the hooks see a nested call like any other", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const outcome = yield* nested({ id: "n1", name: "double", arguments: { n: "21" } }).pipe(
        Effect.provide(Hooks.layer(
          Hooks.beforeToolCall(({ args, assistantMessage, toolCall }) => {
            const called = Messages.toolCalls(assistantMessage).map(({ id }) => id)
            seen.push(`before ${toolCall.id} ${JSON.stringify(args)} ${called.join()}`)
          }),
          Hooks.afterToolCall(({ result, toolCall }) => {
            seen.push(`after ${toolCall.id} ${resultText(result)}`)
            return toolCall.id === "n1" ? { content: [{ type: "text", text: "patched" }] } : undefined
          })
        ))
      )
      assert.deepStrictEqual(seen, [
        "before a {} a",
        "before n1 {\"n\":21} a",
        "after n1 42",
        "after a got patched"
      ])
      assert.deepStrictEqual(outcome.result, { content: [{ type: "text", text: "patched" }], details: { by: "n1" } })
    }))

  it.effect("T7: a blocked nested call is an outcome with isError", () =>
    Effect.gen(function*() {
      const outcome = yield* nested({ id: "n1", name: "double", arguments: { n: 1 } }).pipe(
        Effect.provide(Hooks.layer(
          Hooks.beforeToolCall(({ toolCall }) => toolCall.id === "n1" ? Hooks.block("not nested") : Hooks.allow)
        ))
      )
      assert.deepStrictEqual([outcome.isError, resultText(outcome.result)], [true, "not nested"])
    }))

  it.effect("T7: failing hooks are outcomes with isError", () =>
    Effect.gen(function*() {
      const ofNested = <A>(hook: Effect.Effect<A, string>) => ({ toolCall }: Hooks.ToolCallRequest) =>
        toolCall.id === "n1" ? hook : undefined
      for (
        const hook of [
          Hooks.beforeToolCall(ofNested(Effect.fail("hook broke"))),
          Hooks.beforeToolCall(ofNested(Effect.die(new Error("hook broke")))),
          Hooks.afterToolCall(ofNested(Effect.fail("hook broke"))),
          Hooks.afterToolCall(ofNested(Effect.die(new Error("hook broke"))))
        ]
      ) {
        const outcome = yield* nested({ id: "n1", name: "double", arguments: { n: 1 } }).pipe(
          Effect.provide(Hooks.layer(hook))
        )
        assert.isTrue(outcome.isError)
        assert.include(resultText(outcome.result), "hook broke")
      }
    }))

  it.effect("T7: a hook that interrupts itself is an outcome with isError", () =>
    Effect.gen(function*() {
      for (
        const hook of [
          Hooks.beforeToolCall(({ toolCall }) => toolCall.id === "n1" ? Effect.interrupt : undefined),
          Hooks.afterToolCall(({ toolCall }) => toolCall.id === "n1" ? Effect.interrupt : undefined)
        ]
      ) {
        const outcome = yield* nested({ id: "n1", name: "double", arguments: { n: 1 } }).pipe(
          Effect.provide(Hooks.layer(hook))
        )
        assert.isTrue(outcome.isError)
      }
    }))

  it.effect("T7: code that interrupts the fiber it works in does not interrupt the tool that made the call", () =>
    Effect.gen(function*() {
      const stopHere = Effect.withFiber((fiber) => {
        fiber.interruptUnsafe()
        return Effect.yieldNow
      })
      const seen: Array<string> = []
      const watch = Hooks.afterToolCall(({ result, toolCall }) =>
        void seen.push(`${toolCall.id} ${resultText(result)}`)
      )
      const bad = tool("bad", () => Effect.as(stopHere, "done"))
      const stopped = yield* nested({ id: "n1", name: "bad" }, [bad]).pipe(Effect.provide(Hooks.layer(watch)))
      assert.deepStrictEqual([stopped.isError, resultText(stopped.result)], [true, "Tool \"bad\" was interrupted"])
      assert.deepStrictEqual(seen, ["n1 Tool \"bad\" was interrupted", "a got Tool \"bad\" was interrupted"])
      const hook = Hooks.beforeToolCall(({ toolCall }) => toolCall.id === "n1" ? stopHere : undefined)
      const refused = yield* nested({ id: "n1", name: "double", arguments: { n: 1 } }).pipe(
        Effect.provide(Hooks.layer(hook))
      )
      assert.isTrue(refused.isError)
    }))

  it.effect("T7: calls nest thousands deep", () =>
    Effect.gen(function*() {
      const deep: Tools.Tool = Tools.make("deep", {
        description: "Calls itself.",
        parameters: Schema.Struct({ n: Schema.Int }),
        execute: ({ n }, { runToolCall }) =>
          n === 0
            ? Effect.succeed("bottom")
            : Effect.map(runToolCall({ id: `${n}`, name: "deep", arguments: { n: n - 1 } }), ({ result }) => result)
      })
      const outcome = yield* nested({ id: "n1", name: "deep", arguments: { n: 5000 } }, [deep])
      assert.deepStrictEqual([outcome.isError, resultText(outcome.result)], [false, "bottom"])
    }))

  it.effect("T7: a nested terminate does not stop the run", () =>
    Effect.gen(function*() {
      const outcome = yield* nested({ id: "n1", name: "stop" }, [
        tool("stop", () => Effect.succeed(Tools.result({ text: "x", terminate: true })))
      ])
      assert.isTrue(outcome.result.terminate)
    }))

  it.effect("T7 T3: progress of a nested call is not seen", () =>
    Effect.gen(function*() {
      const outcome = yield* nested({ id: "n1", name: "working" }, [
        tool("working", ({ update }) => Effect.as(update("half"), "done"))
      ])
      assert.strictEqual(resultText(outcome.result), "done")
    }))

  it.effect("T7 T3: progress of a nested call goes where the calling tool wants it, its own progress for instance", () =>
    Effect.gen(function*() {
      const working = tool("working", ({ update }) => Effect.as(update("half"), "done"))
      const passing = tool(
        "passing",
        ({ runToolCall, update }) =>
          Effect.map(
            runToolCall({ id: "n1", name: "working" }, { onUpdate: update }),
            ({ result }) => resultText(result)
          )
      )
      const agent = yield* Agent.make({ tools: [working, passing] })
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(toolLines(events), ["start a", "update a half", "end a"])
    }).pipe(withModel(ScriptedModel.calls([["a", "passing", {}]]), fine)))

  it.effect("T7: nested calls nest, and each tool sees its own call and the message it all began with", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const countdown: Tools.Tool = Tools.make("countdown", {
        description: "Calls itself.",
        parameters: Schema.Struct({ n: Schema.Int }),
        execute: ({ n }, call) => {
          seen.push(`${call.toolCall.id} in ${Messages.toolCalls(call.assistantMessage).map(({ id }) => id).join()}`)
          if (n === 0) return Effect.succeed("bottom")
          return Effect.map(
            call.runToolCall({ id: `${call.toolCall.id}.${n}`, name: "countdown", arguments: { n: n - 1 } }),
            ({ result }) => `${n} ${resultText(result)}`
          )
        }
      })
      const agent = yield* Agent.make({ tools: [countdown] })
      const run = yield* settled(agent.prompt("go"))
      assert.strictEqual(Messages.text(answers(run.messages)[0]!), "2 1 bottom")
      assert.deepStrictEqual(seen, ["a in a", "a.2 in a", "a.2.1 in a"])
    }).pipe(withModel(ScriptedModel.calls([["a", "countdown", { n: 2 }]]), fine)))

  it.effect("T7: several nested calls run concurrently when the tool runs them so", () =>
    Effect.gen(function*() {
      const sleepy = tool("sleepy", () => Effect.as(Effect.sleep(10), "x"))
      const both = tool("both", ({ runToolCall }) =>
        Effect.map(
          Effect.all([runToolCall({ id: "n1", name: "sleepy" }), runToolCall({ id: "n2", name: "sleepy" })], {
            concurrency: "unbounded"
          }),
          (outcomes) => outcomes.map(({ result, toolCall }) => toolCall.id + resultText(result)).join()
        ))
      const agent = yield* Agent.make({ tools: [sleepy, both] })
      const run = yield* settled(agent.prompt("go"))
      assert.strictEqual(Messages.text(answers(run.messages)[0]!), "n1x,n2x")
      assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ at }) => at), [0, 10])
    }).pipe(withModel(ScriptedModel.calls([["a", "both", {}]]), fine)))

  it.effect("T7 T2: a nested call does not wait for the place of the call it is made from", () =>
    Effect.gen(function*() {
      const { tool } = caller({ id: "n1", name: "double", arguments: { n: 1 } })
      const agent = yield* Agent.make({ tools: [tool, double], toolConcurrency: 1 })
      const run = yield* settled(agent.prompt("go"))
      assert.strictEqual(Transcript.print(run.messages), "U A[a,b] R(a) R(b) A")
    }).pipe(withModel(ScriptedModel.calls([["a", "caller", {}], ["b", "caller", {}]]), fine)))

  class Store extends Context.Service<Store, { readonly read: Effect.Effect<string> }>()("test/Store") {}

  it.effect("T7: a tool that is not one of the run asks for services of its own", () =>
    Effect.gen(function*() {
      const reading = tool("reading", () => Store.use((store) => store.read))
      const offers = tool("offers", ({ runToolCall }) =>
        Effect.map(runToolCall({ id: "n1", name: "reading" }, { tools: [reading] }), ({ result }) =>
          resultText(result)))
      const agent = yield* Agent.make({ tools: [offers] })
      const run = yield* settled(agent.prompt("go"))
      assert.strictEqual(Messages.text(answers(run.messages)[0]!), "from the store")
      for (const request of yield* ScriptedModel.requests) {
        assert.deepStrictEqual(
          request.tools.map(({ name }) =>
            name
          ),
          ["offers"],
          "the model does not see it"
        )
      }
    }).pipe(
      withModel(ScriptedModel.calls([["a", "offers", {}]]), fine),
      Effect.provide(Layer.succeed(Store, { read: Effect.succeed("from the store") }))
    ))

  it.effect("T7: the services of a nested tool can be provided where it is called", () =>
    Effect.gen(function*() {
      const reading = tool("reading", () => Store.use((store) => store.read))
      const offers = tool("offers", ({ runToolCall }) =>
        runToolCall({ id: "n1", name: "reading" }, { tools: [reading] }).pipe(
          Effect.provideService(Store, { read: Effect.succeed("from the tool") }),
          Effect.map(({ result }) =>
            resultText(result)
          )
        ))
      const agent = yield* Agent.make({ tools: [offers] })
      const run = yield* settled(agent.prompt("go"))
      assert.strictEqual(Messages.text(answers(run.messages)[0]!), "from the tool")
    }).pipe(withModel(ScriptedModel.calls([["a", "offers", {}]]), fine)))

  it.effect("T7 A2: an abort interrupts a nested call with the call around it", () =>
    Effect.gen(function*() {
      const finalized: Array<string> = []
      const waiting = tool("waiting", () =>
        Effect.never.pipe(Effect.ensuring(Effect.sync(() => {
          finalized.push("nested")
        }))))
      const { outcomes, tool: calling } = caller({ id: "n1", name: "waiting" })
      const agent = yield* Agent.make({ tools: [calling, waiting] })
      const events = yield* record(agent)
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("1 second")
      yield* agent.abort
      const run = yield* Fiber.join(fiber)
      assert.deepStrictEqual([finalized, outcomes], [["nested"], []])
      assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a!)")
      assert.match(Messages.text(answers(run.messages)[0]!), /^Operation aborted/)
      assert.deepStrictEqual(toolLines(events), ["start a", "end a!"])
      assert.strictEqual(ofType(events, "agent_end")[0]?.outcome._tag, "Aborted")
    }).pipe(withModel(ScriptedModel.calls([["a", "caller", {}]]))))

  it.effect("T7 A3: after an abort no nested call starts and no hook is asked about one", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const noting = tool("noting", ({ toolCall }) =>
        Effect.sync(() => {
          ran.push(`run ${toolCall.id}`)
          return "x"
        }))
      const deaf = tool("deaf", ({ runToolCall }) =>
        Effect.sleep(100).pipe(
          Effect.andThen(runToolCall({ id: "n1", name: "noting" })),
          Effect.as("done"),
          Effect.uninterruptible
        ))
      const hooks = Hooks.layer(
        Hooks.beforeToolCall(({ toolCall }) => {
          ran.push(`before ${toolCall.id}`)
        }),
        Hooks.afterToolCall(({ toolCall }) => {
          ran.push(`after ${toolCall.id}`)
        })
      )
      const agent = yield* Agent.make({ tools: [noting, deaf] }).pipe(Effect.provide(hooks))
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(50)
      yield* Effect.forkChild(agent.abort)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(ran, ["before a"])
    }).pipe(withModel(ScriptedModel.calls([["a", "deaf", {}]]))))

  const overLimit = "Tool call was not executed: the limit of tool calls for this run is reached."

  /** A tool that makes calls of another until it was made `count` times; what ran, and what the calls gave. */
  const many = (count: number, concurrency: number | "unbounded", name: string) => {
    const ran: Array<string> = []
    const gave: Array<string> = []
    const noting = tool("noting", ({ toolCall }) =>
      Effect.sync(() => {
        ran.push(toolCall.id)
        return "ran"
      }))
    const passing = tool(
      "passing",
      ({ runToolCall, toolCall }) =>
        Effect.map(runToolCall({ id: `${toolCall.id}.0`, name: "noting" }), ({ result }) => resultText(result))
    )
    const making = tool("many", ({ runToolCall, toolCall }) =>
      Effect.as(
        Effect.forEach(
          Array.from({ length: count }).keys(),
          (index) =>
            Effect.map(runToolCall({ id: `${toolCall.id}.${index}`, name }), ({ isError, result }) => {
              gave.push((isError ? "! " : "") + resultText(result))
            }),
          { concurrency, discard: true }
        ),
        "made them"
      ))
    return { ran, gave, tools: [making, noting, passing] }
  }

  for (const concurrency of [1, "unbounded"] as const) {
    it.effect(`T7 L7: nested calls count against the limit of tool calls, ${concurrency} at a time`, () =>
      Effect.gen(function*() {
        const { gave, ran, tools } = many(50, concurrency, "noting")
        const agent = yield* Agent.make({ tools, limits: { toolCalls: 3 } })
        const { outcome } = yield* settled(agent.prompt("go"))
        assert.deepStrictEqual(ran, ["a.0", "a.1"])
        assert.deepStrictEqual(gave, ["ran", "ran", ...Array.from({ length: 48 }, () => `! ${overLimit}`)])
        assert.deepInclude(outcome, { _tag: "Limited", limit: "toolCalls" })
      }).pipe(withModel(ScriptedModel.calls([["a", "many", {}]]), fine)))
  }

  it.effect("T7 L7: calls of nested calls count, too, in the budget around the run", () =>
    Effect.gen(function*() {
      const { gave, ran, tools } = many(3, 1, "passing")
      const agent = yield* Agent.make({ tools })
      const { outcome } = yield* settled(agent.prompt("go"))
      assert.deepStrictEqual([ran, gave], [["a.0.0"], ["ran", overLimit, `! ${overLimit}`]])
      assert.deepInclude(outcome, { _tag: "Limited", limit: "toolCalls" })
      assert.deepInclude(yield* Budget.spent, { toolCalls: 4 })
    }).pipe(
      withModel(ScriptedModel.calls([["a", "many", {}]]), fine),
      Effect.provide(Budget.layer({ toolCalls: 4 }))
    ))

  it.effect("T7 L7: nested calls that do not run do not count; those of a tool that is tried again count once", () =>
    Effect.gen(function*() {
      let tries = 0
      const flaky: Tools.Tool = {
        ...tool("flaky", () => Effect.suspend(() => ++tries < 3 ? Effect.fail("not yet") : Effect.succeed("x"))),
        retry: Schedule.recurs(5)
      }
      const outcomes: Array<boolean> = []
      const asking = tool("asking", ({ runToolCall }) =>
        Effect.as(
          Effect.forEach(["nope", "double", "blocked", "flaky", "echo"], (name) =>
            Effect.map(runToolCall({ id: name, name }), ({ isError }) => outcomes.push(isError))),
          "x"
        ))
      const agent = yield* Agent.make({
        tools: [asking, double, echo, flaky, tool("blocked", () => Effect.succeed("x"))],
        limits: { toolCalls: 3 }
      }).pipe(
        Effect.provide(Hooks.layer(
          Hooks.beforeToolCall(({ toolCall }) => toolCall.name === "blocked" ? Hooks.block() : Hooks.allow)
        ))
      )
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(outcomes, [true, true, true, false, false])
    }).pipe(withModel(ScriptedModel.calls([["a", "asking", {}]]), fine)))

  const ended = "! Operation aborted. The call that made this one has ended."

  /** A tool that leaves something running, which calls `noting` every second; what ran or was asked, and what it gave. */
  const haunted = (rest: Effect.Effect<string, string>, preparation?: Effect.Effect<unknown>) => {
    const seen: Array<string> = []
    const gave: Array<string> = []
    const noting = tool("noting", () =>
      Effect.sync(() => {
        seen.push("run")
        return "ran"
      }), preparation === undefined ? {} : { prepareArguments: () => preparation })
    const haunting = tool("haunting", ({ runToolCall }) => {
      const late = Effect.map(runToolCall({ id: "n1", name: "noting" }), ({ isError, result }) => {
        gave.push((isError ? "! " : "") + resultText(result))
      })
      return Effect.andThen(Effect.forkDetach(Effect.repeat(Effect.delay(late, 1000), { times: 2 })), rest)
    })
    const hooks = Hooks.layer(
      Hooks.beforeToolCall(({ toolCall }) => toolCall.id === "n1" ? void seen.push("before") : undefined),
      Hooks.afterToolCall(({ toolCall }) => toolCall.id === "n1" ? void seen.push("after") : undefined)
    )
    return { seen, gave, hooks, tools: [haunting, noting] }
  }

  const done = Effect.succeed("done")
  const slowly = Effect.delay(done, 1500)

  /** What the call around it does, and what the calls of what it left running give. */
  const ends: Record<string, readonly [rest: Effect.Effect<string, string>, gave: ReadonlyArray<string>]> = {
    "it has ended, and the run": [done, [ended, ended, ended]],
    "it has ended after the first": [slowly, ["ran", ended, ended]],
    "it has failed": [Effect.fail("broke"), [ended, ended, ended]],
    "it was interrupted at its deadline": [Effect.delay(done, 60_000), ["ran", ended, ended]]
  }
  for (const [what, [rest, expected]] of Object.entries(ends)) {
    for (const name of ["haunting", "outer"]) {
      it.effect(`T7: a call makes no calls any more when ${what}${name === "outer" ? ", a nested one" : ""}`, () =>
        Effect.gen(function*() {
          const { gave, hooks, seen, tools: [haunting, noting] } = haunted(rest)
          const timed = { ...haunting!, timeout: Result.succeed(1800) }
          // It outlives the call it makes.
          const outer = tool(
            "outer",
            ({ runToolCall }) => Effect.andThen(runToolCall({ id: "h", name: "haunting" }), Effect.delay(done, 60_000))
          )
          const agent = yield* Agent.make({ tools: [timed, noting!, outer] }).pipe(Effect.provide(hooks))
          yield* settled(agent.prompt("go"))
          assert.deepStrictEqual(gave, expected)
          assert.deepStrictEqual(seen, expected.includes("ran") ? ["before", "run", "after"] : [])
        }).pipe(withModel(ScriptedModel.calls([["a", name, {}]]), fine)))
    }
  }

  it.effect("T7 A3: what an aborted call left running makes no calls", () =>
    Effect.gen(function*() {
      const { gave, hooks, seen, tools } = haunted(Effect.never)
      const agent = yield* Agent.make({ tools }).pipe(Effect.provide(hooks))
      yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(500)
      yield* agent.abort
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([gave, seen], [[ended, ended, ended], []])
    }).pipe(withModel(ScriptedModel.calls([["a", "haunting", {}]]))))

  it.effect("T7: a nested call whose gates take longer than the call that made it does not run", () =>
    Effect.gen(function*() {
      const { gave, hooks, seen, tools } = haunted(slowly, Effect.as(Effect.sleep(1000), {}))
      const agent = yield* Agent.make({ tools }).pipe(Effect.provide(hooks))
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual([gave, seen], [[ended, ended, ended], []])
    }).pipe(withModel(ScriptedModel.calls([["a", "haunting", {}]]), fine)))

  it.effect("T7: of a nested call that outlives the run no hook is asked", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const gave: Array<string> = []
      const sleepy = tool("sleepy", () => Effect.as(Effect.sleep(1000), "slept"))
      const leaving = tool("leaving", ({ runToolCall }) => {
        const call = Effect.map(
          runToolCall({ id: "n1", name: "sleepy" }),
          ({ result }) => gave.push(resultText(result))
        )
        return Effect.as(Effect.forkDetach(call, { startImmediately: true }), "left")
      })
      const agent = yield* Agent.make({ tools: [sleepy, leaving] }).pipe(
        Effect.provide(Hooks.layer(Hooks.afterToolCall(({ toolCall }) => void seen.push(toolCall.id))))
      )
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual([seen, gave], [["a"], ["slept"]])
    }).pipe(withModel(ScriptedModel.calls([["a", "leaving", {}]]), fine)))

  it.effect("T7 A3: after an abort a nested call whose arguments are still prepared does not run", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const prepared: Tools.Tool = {
        ...tool("prepared", () => Effect.sync(() => `ran ${ran.push("ran")} times`)),
        prepareArguments: () => Effect.as(Effect.sleep(100), {})
      }
      const deaf = tool("deaf", ({ runToolCall }) =>
        runToolCall({ id: "n1", name: "prepared" }).pipe(
          Effect.map(({ result }) => {
            ran.push(resultText(result))
            return "done"
          }),
          Effect.uninterruptible
        ))
      const agent = yield* Agent.make({ tools: [prepared, deaf] })
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(50)
      yield* Effect.forkChild(agent.abort)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(ran, ["Operation aborted"])
    }).pipe(withModel(ScriptedModel.calls([["a", "deaf", {}]]))))

  it.effect("T7 A3: after an abort no hook is asked about a nested call that ends", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const slow = tool("slow", () => Effect.as(Effect.sleep(100), "done"))
      const deaf = tool("deaf", ({ runToolCall }) =>
        runToolCall({ id: "n1", name: "slow" }).pipe(
          Effect.map(({ result }) => {
            asked.push(resultText(result))
            return "done"
          }),
          Effect.uninterruptible
        ))
      const hook = Hooks.afterToolCall(({ toolCall }) => void asked.push(`after ${toolCall.id}`))
      const agent = yield* Agent.make({ tools: [slow, deaf] }).pipe(Effect.provide(Hooks.layer(hook)))
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(50)
      yield* Effect.forkChild(agent.abort)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(asked, ["done"])
    }).pipe(withModel(ScriptedModel.calls([["a", "deaf", {}]]))))
})
