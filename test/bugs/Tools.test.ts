/** Section D of the public faults, the calls: who runs, when, how often, and what each is answered. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, SchemaGetter, SchemaIssue } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Loop, Messages, Tools } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { ofType } from "../utils/events.ts"
import { finish, watched } from "../utils/play.ts"
import { counting, echo, resultText, tool } from "../utils/sampleTools.ts"
import { quick, slow } from "../utils/timedTools.ts"
import { assertRefusal, modes, play, withStage } from "./scene.ts"

const { calls, events, text } = ScriptedModel

const fine = text("fine")

const ends = (events: Parameters<typeof ofType>[0]): ReadonlyArray<string> =>
  ofType(events, "tool_execution_end").map(({ isError, toolCallId }) => `${toolCallId}${isError ? "!" : ""}`)

describe("Calls", () => {
  for (const mode of modes) {
    it.effect(`B58: a tool there is not is an error result with the names there are; its siblings run, ${mode}`, () =>
      Effect.gen(function*() {
        for (
          const name of [
            "nope",
            "Echo",
            "echo ",
            "__proto__",
            "constructor",
            "toString",
            "",
            "x".repeat(10_000),
            "\uD83D"
          ]
        ) {
          const scene = yield* play({
            responses: [calls([["a", name, { x: "1" }], ["b", "echo", { x: "2" }], ["c", name, {}]]), fine],
            tools: [echo, quick("other")],
            options: { toolExecution: mode }
          })
          assert.strictEqual(scene.shape, "U A[a,b,c] R(a!) R(b) R(c!) A")
          for (const id of ["a", "c"]) assertRefusal(scene.answer(id), "not found", "echo, other")
          assert.strictEqual(scene.answer("b"), "2")
        }
      }))
  }

  it.effect("B58: a list of many names is shortened; without tools it says so", () =>
    Effect.gen(function*() {
      const many = Array.from({ length: 2000 }, (_, index) => quick(`tool_${index}`))
      const scene = yield* play({ responses: [calls([["a", "nope", {}]]), fine], tools: many })
      assertRefusal(scene.answer("a"), "nope", "tool_0")
      const bare = yield* play({ responses: [calls([["a", "nope", {}]]), fine] })
      assertRefusal(bare.answer("a"), "There are no tools")
    }))

  // --- ids ---

  const write = (n: number, id: string) => [id, "write", { n }] as const

  const repeated: ReadonlyArray<[name: string, ids: ReadonlyArray<string>, fresh: ReadonlyArray<string>]> = [
    ["twice", ["a", "a"], ["a", "a_2"]],
    ["three times", ["a", "a", "a"], ["a", "a_2", "a_3"]],
    ["beside one that looks fresh", ["a", "a_2", "a"], ["a", "a_2", "a_3"]],
    ["before one that looks fresh", ["a", "a", "a_2"], ["a", "a_2", "a_2_2"]],
    ["as an empty text", ["", "", "call"], ["call", "call_2", "call_3"]],
    ["beside another", ["a", "b", "a", "b"], ["a", "b", "a_2", "b_2"]]
  ]
  for (const mode of modes) {
    for (const [name, ids, fresh] of repeated) {
      it.effect(`B60 (T8): one id ${name} in a message: every call has an id of its own and runs, ${mode}`, () =>
        Effect.gen(function*() {
          for (const same of [false, true]) {
            const { ran, tool } = counting()
            const asked: Array<string> = []
            const scene = yield* play({
              responses: [calls(ids.map((id, index) => write(same ? 1 : index, id))), fine],
              tools: [tool],
              hooks: [Hooks.afterToolCall(({ toolCall }) => void asked.push(toolCall.id))],
              options: { toolExecution: mode }
            })
            assert.lengthOf(ran, ids.length)
            assert.strictEqual(scene.shape, `U A[${fresh.join()}] ${fresh.map((id) => `R(${id})`).join(" ")} A`)
            assert.deepStrictEqual([ends(scene.events), asked], [fresh, fresh])
            assert.deepStrictEqual(
              ofType(scene.events, "tool_execution_start").map(({ toolCallId }) => toolCallId),
              fresh
            )
            assert.strictEqual(Transcript.print(scene.requests[1]!.messages), scene.shape.slice(0, -2))
          }
        }))
    }
  }

  it.effect("B60 (T8): the id is fresh in every snapshot, and in content that done brings", () =>
    Effect.gen(function*() {
      const { ran, tool } = counting()
      const call = (n: number) => ({ type: "toolCall", id: "a", name: "write", arguments: { n } }) as const
      const scene = yield* play({
        responses: [
          calls([write(1, "a"), write(2, "a")], { chunks: 3 }),
          events([{ type: "start" }, { type: "done", stopReason: "toolUse", content: [call(3), call(4)] }]),
          events([
            { type: "start" },
            { type: "toolcall_start", contentIndex: 0, id: "a", name: "write" },
            { type: "toolcall_end", contentIndex: 0, arguments: { n: 0 } },
            // What stood there is replaced, its id is free again.
            { type: "done", stopReason: "toolUse", content: [call(5)] }
          ]),
          fine
        ],
        tools: [tool]
      })
      assert.strictEqual(scene.shape, "U A[a,a_2] R(a) R(a_2) A[a,a_2] R(a) R(a_2) A[a] R(a) A")
      assert.deepStrictEqual(ran, [1, 2, 3, 4, 5].map((n) => ({ n })))
      for (const { message } of ofType(scene.events, "message_update")) {
        const ids = Messages.toolCalls(message).map(({ id }) => id)
        assert.deepStrictEqual(ids, ["a", "a_2"].slice(0, ids.length))
      }
    }))

  for (const mode of modes) {
    it.effect(`B61: an id that every turn uses: all calls run, every request pairs call and result, ${mode}`, () =>
      Effect.gen(function*() {
        const turns = 30
        const { ran, tool } = counting()
        const scene = yield* play({
          responses: [
            ...Array.from({ length: turns }, (_, n) => calls([write(n, "x")])),
            fine,
            calls([write(99, "x")]),
            fine
          ],
          tools: [tool],
          prompts: ["go", "again"],
          options: { toolExecution: mode }
        })
        assert.deepStrictEqual(ran, [...Array.from({ length: turns }, (_, n) => ({ n })), { n: 99 }])
        for (const [index, { messages }] of scene.requests.entries()) {
          if (index > turns) continue
          assert.strictEqual(Transcript.print(messages), `U${" A[x] R(x)".repeat(index)}`)
          const results = messages.filter((message) => message.role === "toolResult").map(Messages.text)
          assert.deepStrictEqual(results, Array.from({ length: index }, (_, n) => `ran ${n + 1}`))
        }
      }))
  }

  it.effect("B61: an id of every turn survives a window over the conversation and an abort", () =>
    Effect.gen(function*() {
      const { agent, before, recorder } = yield* watched({ tools: [slow("slow", 100)], gracePeriod: 0 })
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(350)
      yield* agent.abort
      yield* Fiber.join(fiber)
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A[x] R(x) A[x] R(x) A[x] R(x) A[x] R(x!)")
      yield* finish(agent.prompt("again"))
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(requests.map(({ messages }) => Transcript.print(messages)), [
        "U",
        "U A[x] R(x)",
        "A[x] R(x)",
        "A[x] R(x)",
        "A[x] R(x!) U"
      ])
      assert.deepStrictEqual((yield* agent.messages).slice(0, before.length), before)
      assert.deepStrictEqual(recorder.changed, [])
    }).pipe(withStage({
      responses: [...Array.from({ length: 4 }, () => calls([["x", "slow", {}]])), fine],
      hooks: [Hooks.transformContext((messages) => Messages.keepLast(messages, 3))]
    })))

  // --- siblings and order ---

  for (const mode of modes) {
    for (
      const [how, dying] of [
        ["dies", tool("dying", () => Effect.die(new Error("defect 42")))],
        ["dies later", tool("dying", () => Effect.andThen(Effect.sleep(5), Effect.die(new Error("defect 42"))))],
        [
          "throws",
          tool("dying", () => {
            throw new Error("defect 42")
          })
        ],
        [
          "dies in a call of its own",
          tool(
            "dying",
            ({ runToolCall }) =>
              Effect.map(runToolCall({ id: "n", name: "inner" }), ({ isError, result }) => {
                if (isError) {
                  throw new Error(resultText(result))
                }
                return "fine"
              })
          )
        ]
      ] as const
    ) {
      it.effect(`B67: a tool that ${how} beside a slow one: an error result, the cause in the log, the other goes on, ${mode}`, () =>
        Effect.gen(function*() {
          const scene = yield* play({
            responses: [calls([["b", "slow", {}], ["a", "dying", {}], ["c", "slow", {}]]), fine],
            tools: [dying, slow("slow", 100), tool("inner", () => Effect.die(new Error("defect 42")))],
            options: { toolExecution: mode }
          })
          assert.strictEqual(scene.shape, "U A[b,a,c] R(b) R(a!) R(c) A")
          assert.strictEqual(scene.answer("a"), "! defect 42")
          assert.isTrue(
            scene.logs.some((entry) => entry.includes("\"dying\" failed: defect 42") && entry.includes("\n"))
          )
          assert.deepStrictEqual(ends(scene.events), mode === "parallel" ? ["a!", "b", "c"] : ["b", "a!", "c"])
        }))
    }
  }

  it.effect("B67: a defect as long as a book is bounded", () =>
    Effect.gen(function*() {
      const scene = yield* play({
        responses: [calls([["a", "dying", {}]]), fine],
        tools: [tool("dying", () => Effect.die(new Error("x".repeat(1_000_000))))]
      })
      assertRefusal(scene.answer("a"), "xxx")
    }))

  it.effect("B68: results stand in call order whatever the order of completion, which the end events tell", () =>
    Effect.gen(function*() {
      const waits = [40, 1, 30, 0, 20, 0]
      const ids = waits.map((_, index) => `c${index}`)
      const scene = yield* play({
        responses: [calls(ids.map((id, index) => [id, `w${index}`, {}])), fine],
        tools: waits.map((ms, index) => ms === 0 ? quick(`w${index}`) : slow(`w${index}`, ms))
      })
      assert.strictEqual(scene.shape, `U A[${ids.join()}] ${ids.map((id) => `R(${id})`).join(" ")} A`)
      assert.deepStrictEqual(ends(scene.events), ["c3", "c5", "c1", "c4", "c2", "c0"])
      assert.strictEqual(Transcript.print(scene.requests[1]!.messages), scene.shape.slice(0, -2))
    }))

  // --- B77 ---

  for (const mode of modes) {
    it.effect(`B77: afterToolCall that fails for one call leaves the others alone; its overrides count, ${mode}`, () =>
      Effect.gen(function*() {
        const boom = tool("boom", () => Effect.fail("it broke"))
        const scene = yield* play({
          responses: [
            calls([["a", "echo", { x: "1" }], ["b", "echo", { x: "2" }], ["c", "boom", {}], ["d", "echo", { x: "4" }]]),
            fine
          ],
          tools: [echo, boom],
          hooks: [Hooks.afterToolCall(({ toolCall }) => {
            if (toolCall.id === "a") throw new Error("hook broke")
            if (toolCall.id === "c") return { isError: false, details: { was: "broken" } }
            if (toolCall.id === "d") return { isError: true }
            return undefined
          })],
          options: { toolExecution: mode }
        })
        assert.strictEqual(scene.shape, "U A[a,b,c,d] R(a!) R(b) R(c) R(d!) A")
        assert.deepStrictEqual(["a", "b", "c", "d"].map(scene.answer), ["! hook broke", "2", "it broke", "! 4"])
        const c = scene.messages.find((message) => message.role === "toolResult" && message.toolCallId === "c")
        assert.deepInclude(c, { isError: false, details: { was: "broken" } })
      }))
  }

  // --- B79 ---

  /** A text whose decoding goes wrong, but not when it is tried out with a made-up value. */
  const broken = (how: "fails" | "dies" | "throws") =>
    Schema.String.pipe(Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transformEffect((value: string) => {
        if (value !== "x") return Effect.succeed(value)
        if (how === "throws") throw new Error("decoder broke")
        return how === "dies"
          ? Effect.die(new Error("decoder broke"))
          : Effect.fail(new SchemaIssue.InvalidValue({ message: "decoder broke" }))
      }),
      encode: SchemaGetter.passthrough()
    }))

  for (const mode of modes) {
    it.effect(`B79: arguments that do not decode are an error result and the turn goes on, whatever decodes, ${mode}`, () =>
      Effect.gen(function*() {
        const ran: Array<unknown> = []
        const execute = (args: unknown) => Effect.sync(() => `ran ${ran.push(args)}`)
        const description = ""
        const tools = [
          Tools.make("schema", { description, parameters: Schema.Struct({ n: Schema.Int }), execute }),
          Tools.dynamic("json", {
            description,
            parameters: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
            execute
          }),
          Tools.make("refined", {
            description,
            parameters: Schema.Struct({ n: Schema.String.check(Schema.isMinLength(100)) }),
            execute
          }),
          ...(["fails", "dies", "throws"] as const).map((how) =>
            Tools.make(how, { description, parameters: Schema.Struct({ n: broken(how) }), execute })
          ),
          Tools.make("prepared", {
            description,
            parameters: Schema.Struct({ n: Schema.Int }),
            prepareArguments: () => ({ n: "y" }),
            execute
          })
        ]
        const scene = yield* play({
          responses: [
            calls([...tools.map(({ name }) => [name, name, { n: "x" }] as const), ["ok", "schema", { n: 1 }]]),
            fine
          ],
          tools,
          options: { toolExecution: mode }
        })
        assert.strictEqual(scene.run.outcome._tag, "Completed")
        for (const { name } of tools) assertRefusal(scene.answer(name), `Validation failed for tool "${name}"`)
        assert.deepStrictEqual([scene.answer("ok"), ran], ["ran 1", [{ n: 1 }]])
      }))
  }

  // --- B82 ---

  it.effect("B82: two tools with one name are a typed error where the tools are given, and change nothing", () =>
    Effect.gen(function*() {
      const twins = [quick("a", "first"), quick("b"), quick("a", "second")]
      const error = yield* Effect.flip(Agent.make({ tools: twins }))
      assert(error._tag === "AgentConfigError")
      assert.strictEqual(error.reason, "DuplicateTool")
      assert.include(error.message, "\"a\"")

      const agent = yield* Agent.make({ tools: [quick("a", "first")] })
      const before = yield* agent.messages
      const later = yield* Effect.flip(agent.setTools(twins))
      assert.strictEqual(later.reason, "DuplicateTool")
      assert.deepStrictEqual([(yield* agent.state).tools.length, yield* agent.messages], [1, before])

      const loop = yield* Effect.flip(Loop.run([Messages.user("go")], { messages: [], tools: twins }))
      assert.deepStrictEqual([loop._tag, loop.reason], ["CannotContinue", "InvalidContext"])
      assert.lengthOf(yield* ScriptedModel.requests, 0)
    }).pipe(withStage({ responses: [] })))

  it.effect("B82: tools that a hook or a call brings along are looked at as well", () =>
    Effect.gen(function*() {
      const twins = [quick("a"), quick("a")]
      const nested = tool("nested", ({ runToolCall }) =>
        Effect.map(runToolCall({ id: "n", name: "a" }, { tools: twins }), ({ isError, result }) =>
          `${isError} ${resultText(result)}`))
      const inside = yield* play({ responses: [calls([["x", "nested", {}]]), fine], tools: [nested] })
      assert.match(inside.answer("x"), /^true .*"a"/)
      for (
        const [name, hook] of [
          ["prepareRequest", Hooks.prepareRequest(() => ({ context: { tools: twins } }))],
          ["prepareNextTurn", Hooks.prepareNextTurn(() => ({ context: { tools: twins } }))]
        ] as const
      ) {
        const responses = name === "prepareRequest" ? [] : [calls([["x", "echo", {}]])]
        const { outcome } = (yield* play({ responses, tools: [echo], hooks: [hook] })).run
        assert(outcome._tag === "Failed" && outcome.error._tag === "HookError")
        assert.strictEqual(outcome.error.hook, name)
        assert.include(outcome.error.message, "\"a\"")
      }
    }))
})
