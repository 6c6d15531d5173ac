import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Fiber, Logger, Queue, References, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Messages, type StreamFn, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { ofType } from "./utils/events.ts"
import { answers, lie, on, play, trap } from "./utils/hostile.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { finish, stage, watched } from "./utils/play.ts"
import { counting, echo, resultText, returning, tool } from "./utils/sampleTools.ts"

const { calls, events, text } = ScriptedModel

const fine = text("fine")

const nested = (levels: number): string => `{"x":${"[".repeat(levels)}1${"]".repeat(levels)}}`

const nestedValue = (levels: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

interface Tree {
  readonly x: unknown
}

describe("Too much", () => {
  for (const levels of [100, 900, 1000, 1100, 5000, 100_000]) {
    it.effect(`arguments of ${levels} levels are used or refused, in text or parsed, for every kind of tool`, () =>
      Effect.gen(function*() {
        const { ran, tool: write } = counting()
        const deep = Tools.make("deep", {
          description: "",
          parameters: Schema.Struct({ x: Schema.Unknown }),
          execute: (args: Tree) => Effect.sync(() => `ran ${ran.push(args)}`)
        })
        const block = (contentIndex: number, name: string): ReadonlyArray<StreamFn.StreamEvent> => [
          { type: "toolcall_start", contentIndex, id: `c${contentIndex}`, name },
          { type: "toolcall_end", contentIndex, arguments: { x: nestedValue(levels) } }
        ]
        const { messages, outcome, shape } = yield* play(
          [
            calls([["a", "write", nested(levels)], ["b", "deep", nested(levels)], ["c", "nope", nested(levels)]]),
            events([{ type: "start" }, ...block(0, "write"), ...block(1, "deep"), ...block(2, "nope"), {
              type: "done",
              stopReason: "toolUse"
            }]),
            fine
          ],
          [write, deep]
        )
        assert.strictEqual(outcome._tag, "Completed")
        assert.match(shape, /^U A\[a,b,c\] R\(a!?\) R\(b!?\) R\(c!\) A\[c0,c1,c2\] R\(c0!?\) R\(c1!?\) R\(c2!\) A$/)
        if (levels < 1000) assert.lengthOf(ran, 4)

        for (const answer of answers(messages)) assert.isAtMost(Buffer.byteLength(answer), 2100)
      }))
  }

  it.effect("a million brackets in a text are a text", () =>
    Effect.gen(function*() {
      const { messages, outcome } = yield* play([text("[".repeat(1_000_000))], [])
      assert.deepStrictEqual([outcome._tag, Messages.text(messages[1]!).length], ["Completed", 1_000_000])
    }))

  /** So many calls in one message, every tenth of a tool there is not; what came of them. */
  const many = (count: number, same: boolean, toolExecution: Tools.ExecutionMode) =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo], toolExecution })
      let ends = 0
      yield* agent.subscribe((event) => event.type === "tool_execution_end" ? Effect.sync(() => ends++) : Effect.void)
      const { messages, outcome } = yield* finish(agent.prompt("go"))
      return { messages, outcome, ends }
    }).pipe(on(
      events([
        { type: "start" },
        ...Array.from({ length: count }, (_, contentIndex): ReadonlyArray<StreamFn.StreamEvent> => [
          {
            type: "toolcall_start",
            contentIndex,
            id: same ? "a" : `c${contentIndex}`,
            name: contentIndex % 10 === 9 ? "nope" : "echo"
          },
          { type: "toolcall_end", contentIndex, arguments: { x: `${contentIndex}` } }
        ]).flat(),
        { type: "done", stopReason: "toolUse" }
      ]),
      fine
    ))

  for (const mode of ["parallel", "sequential"] as const) {
    for (const same of [false, true]) {
      it.effect(`10 000 calls in one message${same ? " under one id" : ""} are all answered in order, ${mode}`, () =>
        Effect.gen(function*() {
          const count = 10_000
          const { ends, messages, outcome } = yield* many(count, same, mode)
          assert.strictEqual(outcome._tag, "Completed")
          const results = messages.filter((message) => message.role === "toolResult")
          const ids = results.map(({ toolCallId }) => toolCallId)
          assert.deepStrictEqual([results.length, ends, new Set(ids).size], [count, count, count])
          assert.deepStrictEqual(Messages.toolCalls(messages[1]!).map(({ id }) => id), ids)
          assert.deepStrictEqual(
            results.filter(({ isError }) => !isError).map(Messages.text),
            ids.map((_, index) => `${index}`).filter((_, index) => index % 10 !== 9)
          )
        }))
    }
  }

  it.effect("many calls under one id cost work in proportion: four times the calls, about four times the look-ups", () =>
    Effect.gen(function*() {
      const lookUps = (count: number) =>
        Effect.suspend(() => {
          const spies = [vi.spyOn(Set.prototype, "has"), vi.spyOn(Map.prototype, "has"), vi.spyOn(Map.prototype, "get")]
          return Effect.map(many(count, true, "parallel"), () => {
            const total = spies.reduce((sum, { mock }) => sum + mock.calls.length, 0)
            for (const spy of spies) spy.mockRestore()
            return total
          })
        })
      const few = yield* lookUps(400)
      const more = yield* lookUps(1600)
      assert.isAtMost(more, 6 * few)
    }))

  it.effect("20 MB from a tool: the transcript has the cap and a marker, the event the whole, the request what the transcript has", () =>
    Effect.gen(function*() {
      const size = 20_000_000
      const { events, messages, requests } = yield* play([calls([["a", "big", {}]]), fine], [
        tool("big", () => Effect.succeed(Tools.result({ text: "x".repeat(size), details: { size } })))
      ])
      const [answer] = answers(messages)
      assert.strictEqual(answer!.length, 1_000_000 + 1 + `[${size - 1_000_000} of ${size} characters left out]`.length)
      assert.isTrue(answer!.endsWith(`[${size - 1_000_000} of ${size} characters left out]`))
      const [end] = ofType(events, "tool_execution_end")
      assert.strictEqual(resultText(end!.result).length, size)
      assert.deepStrictEqual(end!.result.details, { size })
      assert.strictEqual(Messages.text(requests[1]!.messages.at(-1)!), answer)
    }))

  it.effect("a tool that calls itself many levels deep gets an answer, however deep", () =>
    Effect.gen(function*() {
      const self: Tools.Tool = Tools.make("self", {
        description: "",
        parameters: Schema.Struct({ n: Schema.Finite }),
        execute: ({ n }, { runToolCall }) =>
          n === 0 ? Effect.succeed("bottom") : Effect.map(
            runToolCall({ id: `n${n}`, name: "self", arguments: { n: n - 1 } }),
            ({ result }) => resultText(result)
          )
      })
      const { messages } = yield* play([calls([["a", "self", { n: 100 }], ["b", "self", { n: 20_000 }]]), fine], [self])
      const [shallow, deep] = answers(messages)
      assert.strictEqual(shallow, "bottom")
      assert.isNotEmpty(deep)
    }))

  it.effect("a hundred listeners, ten thousand steers and ten thousand notes are all served", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ steeringMode: "all" })
      const before = yield* agent.messages
      let heard = 0
      for (let n = 0; n < 100; n++) {
        yield* agent.subscribe((event) => event.type === "agent_end" ? Effect.sync(() => heard++) : undefined)
      }
      for (let n = 0; n < 10_000; n++) yield* agent.steer(`s${n}`)
      for (let n = 0; n < 10_000; n++) yield* agent.note(`n${n}`)
      const run = yield* finish(agent.prompt("go"))
      assert.strictEqual(run.outcome._tag, "Completed")
      assert.deepStrictEqual([heard, (yield* agent.messages).length], [100, before.length + 20_002])
    }).pipe(on(fine)))
})

const frozen = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const key of Reflect.ownKeys(value)) frozen(Reflect.get(value, key))
  return value
}

describe("Frozen inputs", () => {
  it.effect("whatever is handed in may be frozen, and is not changed", () =>
    Effect.gen(function*() {
      const call = { type: "toolCall", id: "a", name: "take", arguments: { x: { y: ["1", "{}"] } } } as const
      const got: Array<unknown> = []
      const take = Tools.dynamic("take", {
        description: "",
        parameters: frozen({
          type: "object",
          properties: { x: { type: "object", properties: { y: { type: "array", items: { type: "integer" } } } } }
        }),
        prepareArguments: () => frozen({ x: "{\"y\":[\"1\",2]}" }),
        execute: (args) =>
          Effect.sync(() => {
            got.push(args)
            return frozen({
              content: [{ type: "text" as const, text: "x\uD83D" }],
              details: { list: [{ n: -0 }] },
              usage: undefined
            })
          })
      })
      const stored = frozen([
        Messages.system("be"),
        Messages.user("hi\uD83D"),
        Messages.assistant([{ type: "text", text: "yes" }, { type: "toolCall", id: "o", name: "take", arguments: {} }])
      ])
      const hooks = [
        Hooks.transformContext((messages) => frozen([...messages, Messages.user("ctx")])),
        Hooks.beforeToolCall(() => frozen(Hooks.allowWith({ x: { y: [7] } }))),
        Hooks.afterToolCall(() => frozen({ content: [{ type: "text" as const, text: "after" }], details: { n: [1] } })),
        Hooks.prepareNextTurn(() => frozen({ messages: [Messages.user("prepared")], model: { id: "m2" } })),
        Hooks.prepareRequest(() => frozen({ thinkingLevel: "high" as const }))
      ]
      yield* Effect.gen(function*() {
        const { agent, recorder } = yield* watched(
          frozen({
            messages: stored,
            tools: [take],
            model: { id: "m", cost: { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 } },
            metadata: { a: [1] }
          })
        )
        yield* agent.steer(frozen(Messages.user([{ type: "text", text: "steer" }])))
        const run = yield* finish(agent.prompt(frozen([Messages.user([{ type: "text", text: "go" }])])))
        assert.strictEqual(
          run.outcome._tag,
          "Completed",
          run.outcome._tag === "Failed" ? run.outcome.error.message : ""
        )
        assert.deepStrictEqual(got, [{ x: { y: [7] } }])
        assert.deepStrictEqual(recorder.changed, [])
        yield* agent.appendMessages(frozen([Messages.user("more")]))
        yield* agent.setMessages(frozen([Messages.user("other")]))
        assert.strictEqual(Transcript.print(yield* agent.messages), "U")
        yield* agent.setTools(frozen([take, echo]))
      }).pipe(
        Effect.provide(stage({
          responses: [
            events(
              frozen([{ type: "start" }, {
                type: "done",
                stopReason: "toolUse",
                content: [call],
                usage: { ...noUsage }
              }])
            ),
            fine
          ],
          hooks
        })),
        Effect.scoped
      )
    }))

  it.effect("what is changed after it was handed in changes nothing", () =>
    Effect.gen(function*() {
      // Fields and roles that this version does not know are kept (I6), and are nobody else's either.
      const message = (text: string) => ({
        role: "user" as const,
        content: [{ type: "text" as const, text, extra: { list: ["kept"] } }],
        timestamp: 1,
        meta: { list: ["kept"] }
      })
      const [prompt, steer, note, old, more] = ["go", "steer", "note", "old", "more"].map(message)
      const own = { role: "own", data: { list: ["kept"] }, timestamp: 1 }
      const result = { content: [{ type: "text" as const, text: "result" }], details: { n: ["kept"] } }
      const stored = [old!, lie<Messages.AgentMessage>(own)]
      const tools = [returning(result, "take")]
      const spoil = () => {
        for (const { content, meta } of [prompt!, steer!, note!, old!, more!]) {
          content[0]!.text = "spoiled"
          content[0]!.extra.list[0] = "spoiled"
          meta.list[0] = "spoiled"
          content.push({ type: "text", text: "spoiled", extra: { list: [] } })
        }
        own.data.list[0] = "spoiled"
        tools.length = 0
        stored.length = 0
      }
      yield* Effect.gen(function*() {
        const { agent, recorder } = yield* watched({ messages: stored, tools })
        yield* agent.appendMessages([more!])
        const run = yield* Effect.forkChild(agent.prompt([prompt!]))
        yield* TestClock.adjust(1)
        yield* agent.steer(steer!)
        yield* agent.note(note!)
        yield* TestClock.adjust(4)
        spoil()
        yield* TestClock.adjust("1 hour")
        assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Completed")
        result.content[0]!.text = "spoiled"
        result.details.n[0] = "spoiled"
        assert.deepStrictEqual(recorder.changed, [])
        const { events } = recorder
        assert.notInclude(JSON.stringify([yield* agent.messages, yield* ScriptedModel.requests, events]), "spoiled")
        assert.strictEqual(Transcript.print(yield* agent.messages), "U C(own) U U A[a] R(a) U U A")
        assert.lengthOf((yield* agent.state).tools, 1)
      }).pipe(on(calls([["a", "take", {}]], { after: 10 }), fine))
    }))
})

const noUsage: Messages.Usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
}

describe("A logger that throws", () => {
  const broken = Logger.layer([
    Logger.make<unknown, void>(() => {
      throw new Error("logger broke")
    })
  ])

  it.effect("costs no result, no message and no run, whatever there is to log", () =>
    Effect.gen(function*() {
      const tools = [
        tool("dies", () => Effect.die(new Error("defect"))),
        tool("fails", () => Effect.fail("failure")),
        tool("updates", ({ update }) => Effect.as(update({ details: 5n }), "done")),
        Tools.make("late", {
          description: "",
          parameters: Schema.Struct({}),
          timeout: 10,
          execute: () => Effect.uninterruptible(Effect.as(Effect.sleep(100), "late"))
        })
      ]
      const { agent, before, recorder } = yield* watched({ tools })
      yield* agent.subscribe(() => Effect.fail("listener broke"))
      yield* agent.subscribe((event) => event.type === "agent_end" ? Effect.die("writer broke") : Effect.void, {
        required: true
      })
      const run = yield* finish(agent.prompt("go"))
      assert.strictEqual(run.outcome._tag, "Completed")
      assert.strictEqual(Transcript.print(run.messages), "U A[a,b,c,d] R(a!) R(b!) R(c) R(d!) A")
      assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
    }).pipe(
      on(calls([["a", "dies", {}], ["b", "fails", {}], ["c", "updates", {}], ["d", "late", {}]]), fine),
      Effect.provide(broken),
      Effect.provideService(References.MinimumLogLevel, "All")
    ))

  it.effect("costs no abort that leaves something behind", () =>
    Effect.gen(function*() {
      const { agent, before, recorder } = yield* watched({
        gracePeriod: 0,
        tools: [tool("deaf", () => Effect.uninterruptible(Effect.as(Effect.sleep(100), "late")))]
      })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* agent.abort
      yield* TestClock.adjust("1 hour")
      assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
      assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
    }).pipe(
      on(calls([["a", "deaf", {}]])),
      Effect.provide(broken),
      Effect.provideService(References.MinimumLogLevel, "All")
    ))
})

describe("Queues in other hands", () => {
  const garbage: ReadonlyArray<[name: string, value: unknown]> = [
    ["null", null],
    ["a number", 5],
    ["an object without a role", {}],
    ["content with a bigint", { role: "user", content: 5n, timestamp: 0 }],
    ["a message without a time", { role: "user", content: "x" }],
    ["a message of its own kind with a function", { role: "note", run: () => 1, timestamp: 0 }],
    ["a proxy that throws", trap]
  ]
  for (const [name, value] of garbage) {
    it.effect(`what is no message (${name}), offered to the queue itself, breaks neither the run nor the transcript`, () =>
      Effect.gen(function*() {
        for (const which of ["steering", "followUps"] as const) {
          const scope = yield* Scope.make()
          yield* Effect.gen(function*() {
            const { agent, before, recorder } = yield* watched({})
            yield* Queue.offer(agent[which], lie<Messages.AgentMessage>(value))
            const run = yield* Effect.forkDetach(agent.prompt("go"))
            yield* TestClock.adjust("1 hour")
            assert.isDefined(run.pollUnsafe(), "the run has not settled")
            assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
          }).pipe(Effect.provide(stage({ responses: [fine, fine] })), Scope.provide(scope), logged)
        }
      }))
  }
})
