import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Hooks, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { answerTexts, answerTo, callTool, ofType, record, settled, toolLines, withModel } from "./utils/agents.ts"
import { counting, echo, tool, untyped } from "./utils/sampleTools.ts"

const integer = Tools.make("integer", {
  description: "Takes a whole number.",
  parameters: Schema.Struct({ n: Schema.Int }),
  execute: ({ n }) => Effect.succeed(`${typeof n} ${n}`)
})

describe("Tools, gate 1: the tool exists", () => {
  it.effect("T1 B58: an unknown tool is an error result that names the tools there are, and its sibling runs", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo, integer] })
      const events = yield* record(agent)
      const run = yield* agent.prompt("go")
      assert.strictEqual(Transcript.print(run.messages), "U A[a,b] R(a!) R(b) A")
      const text = Messages.text(answerTo(run.messages, "a"))
      assert.match(text, /^Tool nope not found/)
      assert.include(text, "echo")
      assert.include(text, "integer")
      assert.sameMembers([...toolLines(events)], ["start a", "end a!", "start b", "end b"])
      assert.strictEqual(answerTo(run.messages, "a").toolName, "nope")
    }).pipe(withModel(
      ScriptedModel.calls([["a", "nope", {}], ["b", "echo", { x: "hi" }]]),
      ScriptedModel.text("fine")
    )))

  it.effect("T1 B58: the list of names is shortened", () =>
    Effect.gen(function*() {
      const tools = Array.from(
        { length: 500 },
        (_, index) => tool(`tool_with_a_long_name_${index}`, () => Effect.succeed(""))
      )
      const agent = yield* Agent.make({ tools })
      const run = yield* agent.prompt("go")
      const text = Messages.text(answerTo(run.messages, "a"))
      assert.match(text, /^Tool nope not found/)
      assert.include(text, "tool_with_a_long_name_0")
      assert.isAtMost(text.length, 2048)
    }).pipe(withModel(ScriptedModel.calls([["a", "nope", {}]]), ScriptedModel.text("fine"))))

  it.effect("T1: an unknown tool with a name of any length and kind gives a bounded text", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      const run = yield* agent.prompt("go")
      assert.strictEqual(Transcript.print(run.messages), "U A[a,b,c] R(a!) R(b!) R(c!) A")
      for (const [id, text] of answerTexts(run.messages)) {
        assert.match(text, /^! Tool /, id)
        assert.isAtMost(text.length, 2048, id)
      }
    }).pipe(withModel(
      ScriptedModel.calls([["a", "", {}], ["b", "toString", {}], ["c", "n".repeat(100_000), {}]]),
      ScriptedModel.text("fine")
    )))

  it.effect("T1: with no tools at all every call is an error result", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const run = yield* agent.prompt("go")
      assert.match(Messages.text(answerTo(run.messages, "a")), /^Tool __proto__ not found/)
      assert.strictEqual(run.outcome._tag, "Completed")
    }).pipe(withModel(ScriptedModel.calls([["a", "__proto__", {}]]), ScriptedModel.text("fine"))))
})

describe("Tools, gate 2: the arguments", () => {
  it.effect("section 6: an argument called `__proto__` is a field, not a prototype, parsed by whomever", () =>
    Effect.gen(function*() {
      const json = "{\"__proto__\":{\"polluted\":true},\"o\":{\"__proto__\":1}}"
      const parsed: Messages.JsonObject = JSON.parse(json)
      const odd = Tools.dynamic("odd", {
        description: "Writes its arguments down.",
        parameters: { type: "object" },
        execute: (args, { toolCall }) =>
          Effect.sync(() => {
            assert.strictEqual(Object.getPrototypeOf(args), Object.prototype)
            return [JSON.stringify(args), JSON.stringify(toolCall.arguments)].join(" ")
          })
      })
      for (const args of [json, parsed]) {
        const { text } = yield* callTool(odd, args)
        assert.strictEqual(text, `${json} ${json}`)
      }
    }))

  it.effect("T1 B79: arguments that do not decode are an error result and the tool does not run", () =>
    Effect.gen(function*() {
      let ran = 0
      const strict = Tools.make("strict", {
        description: "d",
        parameters: Schema.Struct({ n: Schema.Int, s: Schema.String }),
        execute: () => Effect.sync(() => String(++ran))
      })
      const { end, text } = yield* callTool(strict, { n: "x" })
      assert.isTrue(end.isError)
      assert.match(text, /^Validation failed for tool "strict"/)
      assert.match(text, /\bn\b/)
      assert.match(text, /\bs\b/)
      assert.strictEqual(ran, 0)
    }))

  it.effect("T1: prepareArguments repairs the raw arguments before they are decoded", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const repaired = Tools.make("repaired", {
        description: "d",
        parameters: Schema.Struct({ n: Schema.Int }),
        prepareArguments: (args) => {
          seen.push(args)
          return { n: "41" }
        },
        execute: ({ n }) => Effect.succeed(String(n + 1))
      })
      const { events, text } = yield* callTool(repaired, { number: 41 })
      assert.strictEqual(text, "42")
      assert.deepStrictEqual(seen, [{ number: 41 }])
      assert.deepStrictEqual(ofType(events, "tool_execution_start")[0]?.args, { number: 41 })
      const assistant = ofType(events, "turn_end")[0]!.message
      assert.deepStrictEqual(Messages.toolCalls(assistant)[0]?.arguments, { number: 41 })
    }))

  it.effect("T1: prepareArguments may return an effect of the new arguments", () =>
    Effect.gen(function*() {
      const repaired = Tools.make("repaired", {
        description: "d",
        parameters: Schema.Struct({ n: Schema.Int }),
        prepareArguments: () => Effect.as(Effect.sleep("1 second"), { n: 41 }),
        execute: ({ n }) => Effect.succeed(String(n + 1))
      })
      assert.strictEqual((yield* callTool(repaired, {})).text, "42")
    }))

  for (
    const [how, prepareArguments] of [
      ["throws an Error", () => {
        throw new Error("cannot repair")
      }],
      ["throws a string", () => {
        // oxlint-disable-next-line typescript/only-throw-error -- anything can be thrown
        throw "cannot repair"
      }],
      ["fails", () => Effect.fail("cannot repair")],
      ["dies", () => Effect.die(new Error("cannot repair"))]
    ] as ReadonlyArray<[string, () => unknown]>
  ) {
    it.effect(`T1: prepareArguments that ${how} is an error result of that call`, () =>
      Effect.gen(function*() {
        const { ran, tool } = counting()
        const { end, text } = yield* callTool({ ...tool, prepareArguments }, {})
        assert.isTrue(end.isError)
        assert.include(text, "cannot repair")
        assert.deepStrictEqual(ran, [])
      }))
  }

  it.effect("T1: prepareArguments that interrupts itself is an error result of that call", () =>
    Effect.gen(function*() {
      const { ran, tool } = counting()
      const { end } = yield* callTool({ ...tool, prepareArguments: () => Effect.interrupt }, {})
      assert.isTrue(end.isError)
      assert.deepStrictEqual(ran, [])
    }))

  it.effect("T1: what prepareArguments returns is decoded like any other arguments", () =>
    Effect.gen(function*() {
      const broken = Tools.make("broken", {
        description: "d",
        parameters: Schema.Struct({ n: Schema.Int }),
        prepareArguments: () => ({ n: "many" }),
        execute: () => Effect.succeed("ran")
      })
      const { end, text } = yield* callTool(broken, { n: 1 })
      assert.isTrue(end.isError)
      assert.match(text, /^Validation failed for tool "broken"/)
    }))

  it.effect("T1: prepareArguments that changes the given arguments does not change the transcript", () =>
    Effect.gen(function*() {
      const { ran, tool } = counting()
      const { events } = yield* callTool({
        ...tool,
        prepareArguments: (args) => {
          try {
            untyped<Record<string, unknown>>(args)["x"] = "changed"
          } catch {
            // handed in read-only
          }
          return { x: "prepared" }
        }
      }, { x: "original" })
      assert.deepStrictEqual(ran, [{ x: "prepared" }])
      assert.deepStrictEqual(Messages.toolCalls(ofType(events, "turn_end")[0]!.message)[0]?.arguments, {
        x: "original"
      })
    }))

  it.effect("T1 (shared-mutation): what a tool does to its arguments does not show in the transcript or in events", () =>
    Effect.gen(function*() {
      const changing = Tools.dynamic("changing", {
        description: "d",
        parameters: { type: "object" },
        execute: (args) =>
          Effect.sync(() => {
            untyped<{ list: Array<number> }>(args).list.push(2)
            return JSON.stringify(args)
          })
      })
      const { events, text } = yield* callTool(changing, { list: [1] })
      assert.strictEqual(text, "{\"list\":[1,2]}")
      assert.deepStrictEqual(ofType(events, "tool_execution_start")[0]?.args, { list: [1] })
      assert.deepStrictEqual(Messages.toolCalls(ofType(events, "turn_end")[0]!.message)[0]?.arguments, { list: [1] })
    }))
})

describe("Tools, gate 3: beforeToolCall", () => {
  const blocked = (decision: Hooks.ToolCallDecision) =>
    Effect.gen(function*() {
      const { ran, tool } = counting()
      const after: Array<string> = []
      const called = yield* callTool(tool).pipe(Effect.provide(Hooks.layer(
        Hooks.beforeToolCall(() => decision),
        Hooks.afterToolCall(({ toolCall }) => {
          after.push(toolCall.id)
        })
      )))
      assert.isTrue(called.end.isError)
      assert.deepStrictEqual(ran, [])
      assert.deepStrictEqual(after, [], "afterToolCall sees tools that ran")
      return called
    })

  it.effect("T1: a blocked call is an error result with the reason", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* blocked(Hooks.block("not on Sundays"))).text, "not on Sundays")
    }))

  for (
    const [how, decision] of [["without a reason", Hooks.block()], ["with an empty reason", Hooks.block("")]] as const
  ) {
    it.effect(`T1: a call blocked ${how} says so`, () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* blocked(decision)).text, "Tool execution was blocked")
      }))
  }

  it.effect("T1 L4: blocking with terminate ends the run when the whole batch asks for it", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      const run = yield* agent.prompt("go")
      assert.strictEqual(Transcript.print(run.messages), "U A[a,b] R(a!) R(b!)")
      assert.deepInclude(run.outcome, { _tag: "Completed", by: "Terminate" })
    }).pipe(
      withModel(ScriptedModel.calls([["a", "echo", {}], ["b", "echo", {}]])),
      Effect.provide(Hooks.layer(Hooks.beforeToolCall(() => Hooks.block("enough", { terminate: true }))))
    ))

  it.effect("T1 L4: one call that does not ask to terminate lets the run go on", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      const run = yield* agent.prompt("go")
      assert.strictEqual(Transcript.print(run.messages), "U A[a,b] R(a!) R(b) A")
      assert.deepInclude(run.outcome, { _tag: "Completed", by: "Stop" })
    }).pipe(
      withModel(ScriptedModel.calls([["a", "echo", {}], ["b", "echo", {}]]), ScriptedModel.text("fine")),
      Effect.provide(Hooks.layer(
        Hooks.beforeToolCall(({ toolCall }) =>
          toolCall.id === "a" ? Hooks.block("enough", { terminate: true }) : Hooks.allow
        )
      ))
    ))

  it.effect("T1: allowed with other arguments, the tool gets those as they are and nobody else sees them", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const typed = Tools.make("typed", {
        description: "d",
        parameters: Schema.Struct({ n: Schema.Int }),
        execute: (args) =>
          Effect.sync(() => {
            seen.push(args)
            return "ran"
          })
      })
      const { end, events, message } = yield* callTool(typed, { n: 1 }).pipe(
        Effect.provide(Hooks.layer(Hooks.beforeToolCall(() => Hooks.allowWith({ n: "not a number" }))))
      )
      assert.isFalse(end.isError)
      assert.deepStrictEqual(seen, [{ n: "not a number" }])
      assert.deepStrictEqual(ofType(events, "tool_execution_start")[0]?.args, { n: 1 })
      assert.deepStrictEqual(Messages.toolCalls(ofType(events, "turn_end")[0]!.message)[0]?.arguments, { n: 1 })
      assert.notInclude(JSON.stringify([events, message]), "not a number")
    }))

  it.effect("T1: the hook sees the decoded arguments, the call as the model made it, and the conversation so far", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      yield* callTool(integer, { n: "42" }).pipe(Effect.provide(Hooks.layer(
        Hooks.beforeToolCall(({ args, assistantMessage, context, toolCall }) => {
          seen.push([
            args,
            toolCall.arguments,
            Messages.toolCalls(assistantMessage).map(({ id }) => id),
            Transcript.print(context.messages),
            context.tools.map(({ name }) => name)
          ])
        })
      )))
      assert.deepStrictEqual(seen, [[{ n: 42 }, { n: "42" }, ["a"], "U A[a]", ["integer"]]])
    }))

  it.effect("T1: neither hook is asked about an unknown tool or arguments that do not decode", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const hooks = Hooks.layer(
        Hooks.beforeToolCall(() => {
          asked.push("before")
        }),
        Hooks.afterToolCall(() => {
          asked.push("after")
        })
      )
      yield* callTool(integer, { n: "x" }).pipe(Effect.provide(hooks))
      yield* callTool(integer, {}, { name: "nope" }).pipe(Effect.provide(hooks))
      assert.deepStrictEqual(asked, [])
    }))

  for (
    const [how, answer] of [
      ["fails", () => Effect.fail("the policy server is down")],
      ["dies", () => Effect.die(new Error("the policy server is down"))],
      ["throws", () => {
        throw new Error("the policy server is down")
      }],
      ["throws a string", () => {
        // oxlint-disable-next-line typescript/only-throw-error -- anything can be thrown
        throw "the policy server is down"
      }]
    ] as ReadonlyArray<[string, () => Effect.Effect<never, string>]>
  ) {
    it.effect(`T1 B104: beforeToolCall that ${how} is an error result of that call only`, () =>
      Effect.gen(function*() {
        const { ran, tool } = counting()
        const agent = yield* Agent.make({ tools: [tool] })
        const events = yield* record(agent)
        const run = yield* agent.prompt("go").pipe()
        assert.strictEqual(Transcript.print(run.messages), "U A[a,b] R(a!) R(b) A")
        assert.include(Messages.text(answerTo(run.messages, "a")), "the policy server is down")
        assert.deepStrictEqual(ran, [{ n: 2 }])
        assert.sameMembers([...toolLines(events)], ["start a", "end a!", "start b", "end b"])
        assert.strictEqual(run.outcome._tag, "Completed")
      }).pipe(
        withModel(
          ScriptedModel.calls([["a", "write", { n: 1 }], ["b", "write", { n: 2 }]]),
          ScriptedModel.text("fine")
        ),
        Effect.provide(Hooks.layer(
          Hooks.beforeToolCall(({ toolCall }) => toolCall.id === "a" ? answer() : Hooks.allow)
        ))
      ))
  }

  it.effect("T1: beforeToolCall that interrupts itself is an error result, not an abort", () =>
    Effect.gen(function*() {
      const { ran, tool } = counting()
      const { end } = yield* callTool(tool).pipe(
        Effect.provide(Hooks.layer(Hooks.beforeToolCall(() => Effect.interrupt)))
      )
      assert.isTrue(end.isError)
      assert.deepStrictEqual(ran, [])
    }))

  for (const odd of [null, 5, "yes", {}, { _tag: "Perhaps" }, []]) {
    it.effect(`T1: the answer ${JSON.stringify(odd)} of beforeToolCall costs at most that call`, () =>
      Effect.gen(function*() {
        yield* callTool(echo).pipe(
          Effect.provide(Hooks.layer(Hooks.beforeToolCall(() => untyped<Hooks.ToolCallDecision>(odd))))
        )
      }))
  }
})

describe("Tools, afterToolCall", () => {
  const usage = { ...Messages.emptyUsage, input: 7, totalTokens: 7 }
  const full = tool(
    "full",
    () => Effect.succeed(Tools.result({ text: "original", details: { d: 1 }, structuredContent: { s: 1 }, usage }))
  )
  const patched = (patch: Tools.ToolResult, of: Tools.Tool = full) =>
    callTool(of).pipe(Effect.provide(Hooks.layer(Hooks.afterToolCall(() => patch))))
  const changed: Tools.Content = [{ type: "text", text: "changed" }]

  it.effect("T5: without an answer everything stays", () =>
    Effect.gen(function*() {
      const { end, message } = yield* callTool(full).pipe(
        Effect.provide(Hooks.layer(Hooks.afterToolCall(() => {})))
      )
      assert.deepStrictEqual(end.result, {
        content: [{ type: "text", text: "original" }],
        details: { d: 1 },
        structuredContent: { s: 1 },
        usage
      })
      assert.deepInclude(message, { details: { d: 1 }, usage, isError: false })
      assert.notProperty(message, "structuredContent", "structured content is in events only")
    }))

  it.effect("T5: content is replaced alone, and drops the structured content", () =>
    Effect.gen(function*() {
      const { end, message } = yield* patched({ content: changed })
      assert.deepStrictEqual(end.result, { content: changed, details: { d: 1 }, usage })
      assert.deepStrictEqual(message.content, changed)
      assert.deepStrictEqual(message.details, { d: 1 })
    }))

  it.effect("T5: content replaced with structured content keeps the latter", () =>
    Effect.gen(function*() {
      const { end } = yield* patched({ content: changed, structuredContent: { s: 2 } })
      assert.deepStrictEqual([end.result.content, end.result.structuredContent], [changed, { s: 2 }])
    }))

  it.effect("T5: structured content is replaced alone", () =>
    Effect.gen(function*() {
      const { end, text } = yield* patched({ structuredContent: [1] })
      assert.deepStrictEqual([text, end.result.structuredContent], ["original", [1]])
    }))

  it.effect("T5: details and usage are replaced alone", () =>
    Effect.gen(function*() {
      const other = { ...usage, output: 3 }
      const { message, text } = yield* patched({ details: [2], usage: other })
      assert.deepStrictEqual([text, message.details, message.usage], ["original", [2], other])
    }))

  it.effect("T5: absent or undefined details stay, null replaces them", () =>
    Effect.gen(function*() {
      const kept = yield* patched({ details: undefined, usage: undefined, content: undefined })
      assert.deepStrictEqual([kept.text, kept.message.details], ["original", { d: 1 }])
      const replaced = yield* patched({ details: null })
      assert.isNull(replaced.message.details)
      assert.isNull(replaced.end.result.details)
    }))

  it.effect("T5: isError is set on a result that was none, and shows in the event's result only if the tool had it", () =>
    Effect.gen(function*() {
      const { end, message } = yield* patched({ isError: true })
      assert.deepStrictEqual([end.isError, message.isError], [true, true])
      assert.notProperty(end.result, "isError")
    }))

  it.effect("T5: a tool's own isError shows in the event with its final value", () =>
    Effect.gen(function*() {
      const failing = tool("failing", () => Effect.succeed(Tools.result({ text: "bad", isError: true })))
      const kept = yield* patched({}, failing)
      assert.deepStrictEqual([kept.end.isError, kept.end.result.isError, kept.message.isError], [true, true, true])
      const cleared = yield* patched({ isError: false }, failing)
      assert.deepStrictEqual([cleared.end.isError, cleared.end.result.isError], [false, false])
      const raised = yield* patched(
        { isError: true },
        tool("fine", () => Effect.succeed(Tools.result({ isError: false })))
      )
      assert.deepStrictEqual([raised.end.isError, raised.end.result.isError], [true, true])
    }))

  it.effect("T5 B77: a failed call is seen and can be turned into a good one", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const { end, message, text } = yield* callTool(tool("boom", () => Effect.fail("broke"))).pipe(
        Effect.provide(Hooks.layer(Hooks.afterToolCall(({ args, isError, result, toolCall }) => {
          seen.push([toolCall.id, args, isError, result.content])
          return { isError: false, details: { recovered: true } }
        })))
      )
      assert.deepStrictEqual(seen, [["a", {}, true, [{ type: "text", text: "broke" }]]])
      assert.deepStrictEqual([end.isError, message.isError, text], [false, false, "broke"])
      assert.deepStrictEqual(message.details, { recovered: true })
    }))

  for (const terminate of [true, false]) {
    it.effect(`T5 L4: terminate is replaced with ${terminate}`, () =>
      Effect.gen(function*() {
        const asking = tool("asking", () => Effect.succeed(Tools.result({ text: "x", terminate: !terminate })))
        const agent = yield* Agent.make({ tools: [asking] })
        const run = yield* agent.prompt("go")
        assert.strictEqual(Transcript.print(run.messages), terminate ? "U A[a] R(a)" : "U A[a] R(a) A")
      }).pipe(
        withModel(ScriptedModel.calls([["a", "asking", {}]]), ScriptedModel.text("fine")),
        Effect.provide(Hooks.layer(Hooks.afterToolCall(() => ({ terminate }))))
      ))
  }

  for (
    const [how, answer] of [
      ["fails", () => Effect.fail("the redactor is down")],
      ["dies", () => Effect.die("the redactor is down")],
      ["throws", () => {
        throw new Error("the redactor is down")
      }]
    ] as ReadonlyArray<[string, () => Effect.Effect<never, string>]>
  ) {
    it.effect(`T5 B77 B104: afterToolCall that ${how} is an error result of that call only`, () =>
      Effect.gen(function*() {
        const { ran, tool } = counting()
        const agent = yield* Agent.make({ tools: [tool] })
        const events = yield* record(agent)
        const run = yield* settled(agent.prompt("go"))
        assert.strictEqual(Transcript.print(run.messages), "U A[a,b] R(a!) R(b) A")
        assert.include(Messages.text(answerTo(run.messages, "a")), "the redactor is down")
        assert.notInclude(Messages.text(answerTo(run.messages, "a")), "ran 1", "an unredacted result stays hidden")
        assert.lengthOf(ran, 2)
        assert.sameMembers([...toolLines(events)], ["start a", "end a!", "start b", "end b"])
      }).pipe(
        withModel(
          ScriptedModel.calls([["a", "write", {}], ["b", "write", {}]]),
          ScriptedModel.text("fine")
        ),
        Effect.provide(Hooks.layer(
          Hooks.afterToolCall(({ toolCall }) => toolCall.id === "a" ? answer() : {})
        ))
      ))
  }

  for (
    const [what, patch] of [
      ["content that is no content", { content: 5 }],
      ["content with null in it", { content: [null] }],
      ["details that do not encode", { details: 1n }],
      ["structured content that does not encode", { structuredContent: 1n }],
      ["a text", "changed"],
      ["null", null]
    ] as ReadonlyArray<[string, unknown]>
  ) {
    it.effect(`T5 T9: a patch with ${what} costs at most that call, and the transcript stays JSON`, () =>
      Effect.gen(function*() {
        const { message } = yield* patched(untyped<Tools.ToolResult>(patch))
        const codec = Schema.fromJsonString(Messages.Transcript)
        const json = yield* Effect.orDie(Schema.encodeEffect(codec)([message]))
        assert.deepStrictEqual(yield* Effect.orDie(Schema.decodeUnknownEffect(codec)(json)), [message])
      }))
  }
})
