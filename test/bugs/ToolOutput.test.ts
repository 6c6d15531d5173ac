/** Section D of the public faults, what tools give back: failures, odd shapes, what is no JSON, too much, broken text. */
import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Schema } from "effect"
import { type Agent, Hooks, Messages, type Tools } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { ofType } from "../utils/events.ts"
import { lie } from "../utils/hostile.ts"
import { resultText, returning, tool } from "../utils/sampleTools.ts"
import { assertRefusal, modes, play, type Scene } from "./scene.ts"

const { calls, text } = ScriptedModel

const fine = text("fine")

/** What an `afterToolCall` hook saw. */
const watching = () => {
  const seen: Array<Hooks.ToolCallOutcome> = []
  return { seen, hook: Hooks.afterToolCall((outcome) => void seen.push(outcome)) }
}

const endOf = (scene: Scene, id: string) => {
  const [end, ...more] = ofType(scene.events, "tool_execution_end").filter(({ toolCallId }) => toolCallId === id)
  assert(end !== undefined && more.length === 0)
  return end
}

const contentOf = (scene: Scene, id: string): Messages.ToolResultMessage["content"] => {
  const answer = scene.messages.find((message) => message.role === "toolResult" && message.toolCallId === id)
  assert(answer?.role === "toolResult")
  return answer.content
}

/** Calls `odd` as `a`, then the tool `b`, whose result must be there whatever `odd` does. */
const callOdd = (odd: Tools.Tool, hooks: ReadonlyArray<Hooks.Hook> = [], options: Omit<Agent.Options, "tools"> = {}) =>
  Effect.gen(function*() {
    const scene = yield* play({
      responses: [calls([["a", odd.name, {}], ["b", "b", {}]]), fine],
      tools: [odd, tool("b", () => Effect.succeed("of b"))],
      hooks,
      options
    })
    assert.deepStrictEqual([scene.run.outcome._tag, scene.answer("b")], ["Completed", "of b"])
    assert.match(scene.shape, /^U A\[a,b\] R\(a!?\) R\(b\) A$/)
    return scene
  })

// --- B63 ---

const unreadable = new Error("hidden")
Object.defineProperty(unreadable, "message", {
  get: () => {
    throw new Error("getter")
  }
})

const nobody = (): never => {
  throw new Error("nobody may look")
}
const trap = new Proxy({}, {
  get: nobody,
  has: nobody,
  ownKeys: nobody,
  getPrototypeOf: nobody,
  getOwnPropertyDescriptor: nobody
})
const revoked = Proxy.revocable({}, {})
revoked.revoke()

class Weird {
  get name() {
    return "weird"
  }
}

const cycle: { self?: unknown; code: number } = { code: 42 }
cycle.self = cycle

const unjust = { toJSON: nobody }

/** Values that throw at a logger that looks at them. */
const shy: ReadonlySet<unknown> = new Set([trap, revoked.proxy, unreadable, unjust])

const thrown: ReadonlyArray<[name: string, value: unknown, word: string]> = [
  ["a text", "it broke", "it broke"],
  ["an empty text", "", ""],
  ["an Error", new Error("it broke"), "it broke"],
  ["an Error without a message", new Error(""), "Error"],
  ["a TypeError without a message", new TypeError(""), "TypeError"],
  ["an Error with a message of spaces", new Error("  "), "Error"],
  ["an Error whose message is no text", Object.assign(new Error("x"), { message: { code: 42 } }), "Error"],
  ["an Error whose message cannot be read", unreadable, ""],
  ["an AggregateError", new AggregateError([new Error("first")], "both"), "both"],
  ["an AggregateError without a message", new AggregateError([new Error("first"), "second"], ""), "first; second"],
  ["an empty AggregateError", new AggregateError([], ""), "AggregateError"],
  ["a plain object", { code: 42 }, "{\"code\":42}"],
  ["an object with a message", { message: "it broke", code: 42 }, "it broke"],
  ["an empty object", {}, "{}"],
  ["a nested object", { a: { b: [1, { c: 2 }] } }, "\"c\":2"],
  ["an array", ["it", "broke"], "[\"it\",\"broke\"]"],
  ["undefined", undefined, ""],
  ["null", null, ""],
  ["a number", 42, "42"],
  ["a boolean", false, "false"],
  ["a bigint", 42n, "42"],
  ["a symbol", Symbol("it broke"), "it broke"],
  ["a function", () => "it broke", "function"],
  ["an object with a cycle", cycle, "42"],
  ["an object with a bigint", { big: 42n }, "42"],
  ["a Map", new Map([["a", 1]]), "Map"],
  ["a class instance without fields", new Weird(), "Weird"],
  ["an object without a prototype", Object.assign(Object.create(null), { code: 42 }), "42"],
  ["an object whose toJSON throws", unjust, ""],
  ["an object whose toString throws", Object.assign(Object.create({ toString: nobody }), { code: 42 }), "42"],
  ["a proxy that throws", trap, ""],
  ["a revoked proxy", revoked.proxy, ""],
  ["a long text", "😀".repeat(100_000), "😀"],
  ["half a character", "x\uD83D", "x\uFFFD"]
]

/** A tool for each way to fail. */
const failing = (value: unknown): ReadonlyArray<Tools.Tool> => [
  tool("fails", () => Effect.fail(value)),
  tool("dies", () => Effect.die(value)),
  tool("throws", () => {
    throw value
  }),
  tool("throws-later", () =>
    Effect.map(Effect.sleep(10), () => {
      throw value
    })),
  // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- promises reject with anything
  tool("rejects", () => Effect.promise(() => Promise.reject(value)))
]

describe("What tools give back", () => {
  for (const [name, value, word] of thrown) {
    for (const mode of modes) {
      it.effect(`B63 (T4): a tool that fails with ${name} gives a readable, bounded error result, ${mode}; the log has the cause`, () =>
        Effect.gen(function*() {
          const tools = failing(value)
          const { hook, seen } = watching()
          const scene = yield* play({
            responses: [calls(tools.map(({ name }) => [name, name, {}])), fine],
            tools,
            hooks: [hook],
            options: { toolExecution: mode }
          })
          assert.strictEqual(scene.run.outcome._tag, "Completed")
          for (const { name } of tools) {
            const answer = scene.answer(name)
            assertRefusal(answer, word)
            assert.notInclude(answer, "[object ")
            assert.notMatch(answer, /^! *(undefined|null|Error: *|)$/)
            assert.strictEqual(`! ${resultText(endOf(scene, name).result)}`, answer)
            const outcome = seen.find(({ toolCall }) => toolCall.id === name)
            assert.deepStrictEqual([outcome?.isError, `! ${resultText(outcome!.result)}`], [true, answer])
            // What cannot even be looked at cannot be logged by a logger that looks.
            if (!shy.has(value)) {
              assert.isTrue(
                scene.logs.some((entry) => entry.startsWith(`Tool "${name}" failed`)),
                scene.logs.join("\n")
              )
            }
          }
        }))
    }
  }

  // --- B64 ---

  const shapes: ReadonlyArray<[name: string, value: unknown, content: Tools.Content]> = [
    ["a text", "str", [{ type: "text", text: "str" }]],
    ["an empty object", {}, []],
    ["content that is a text", { content: "str" }, [{ type: "text", text: "str" }]],
    ["content that is undefined", { content: undefined }, []],
    ["content that is null", { content: null }, []],
    ["an empty list", [], []],
    ["a list of blocks", [{ type: "text", text: "str" }], [{ type: "text", text: "str" }]],
    ["details alone", { details: { n: 1 } }, []]
  ]
  for (const [name, value, content] of shapes) {
    it.effect(`B64 (T4): ${name} is a result, the same for event, hook and transcript`, () =>
      Effect.gen(function*() {
        const { hook, seen } = watching()
        const scene = yield* callOdd(returning(value), [hook])
        const end = endOf(scene, "a")
        assert.isFalse(end.isError)
        assert.deepStrictEqual(contentOf(scene, "a"), content)
        assert.deepStrictEqual(end.result.content ?? [], content)
        assert.deepStrictEqual(seen[0]?.result.content ?? [], content)
      }))
  }

  const wrong: ReadonlyArray<[name: string, value: unknown, kind: string]> = [
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["a number", 5, "number"],
    ["a boolean", true, "boolean"],
    ["a bigint", 5n, "bigint"],
    ["a symbol", Symbol("x"), "symbol"],
    ["a function", () => "str", "function"],
    ["an object of another kind", { rows: [1, 2] }, "rows"],
    ["a list of texts", ["str"], "[0]"],
    ["a list with a hole", [{ type: "text", text: "x" }, null], "[1]"],
    ["content with null", { content: [null] }, "content[0]"],
    ["content with a text", { content: ["str"] }, "content[0]"],
    [
      "content with a block of another kind",
      { content: [{ type: "text", text: "x" }, { type: "audio" }] },
      "content[1]"
    ],
    ["a text block without text", { content: [{ type: "text" }] }, "content[0]"],
    ["a text block whose text is a number", { content: [{ type: "text", text: 5 }] }, "content[0]"],
    ["an image without data", { content: [{ type: "image", mimeType: "image/png" }] }, "content[0]"],
    ["content that is a number", { content: 5 }, "number"],
    ["content that is one block", { content: { type: "text", text: "x" } }, "object"],
    ["a single block", { type: "text", text: "x" }, "type, text"],
    ["bytes", new Uint8Array([1, 2, 3]), "object"],
    ["a promise", Promise.resolve("str"), ""],
    ["a Date", new Date(0), ""],
    ["a Map", new Map([["a", 1]]), ""],
    ["a Set", new Set([1]), ""],
    ["an Error", new Error("not thrown"), ""],
    ["a regular expression", /x/, ""],
    ["a boxed text", Object("str"), ""],
    ["a boxed number", Object(5), ""],
    ["an effect", Effect.succeed("str"), ""],
    [
      "a class instance without own fields",
      new (class Rows {
        readonly #rows = [1, 2]
        get size() {
          return this.#rows.length
        }
      })(),
      ""
    ]
  ]
  for (const [name, value, kind] of wrong) {
    it.effect(`B64 (T4): ${name} is an error that names the tool and what came, for event, hook and transcript`, () =>
      Effect.gen(function*() {
        const { hook, seen } = watching()
        const scene = yield* callOdd(returning(value), [hook])
        const answer = scene.answer("a")
        assertRefusal(answer, "\"odd\"", kind)
        assert.notMatch(answer, /Cannot read|is not a function|is not iterable|\(reading/)
        assert.strictEqual(`! ${resultText(endOf(scene, "a").result)}`, answer)
        assert.deepStrictEqual([seen[0]?.isError, `! ${resultText(seen[0]!.result)}`], [true, answer])
      }))
  }

  it.effect("B64: content that a hook replaces is read in the same way", () =>
    Effect.gen(function*() {
      for (const content of ["str", 5, [null], { type: "text", text: "x" }] as ReadonlyArray<unknown>) {
        const hook = Hooks.afterToolCall(({ toolCall }) =>
          toolCall.id === "a" ? { content: lie<Tools.Content>(content) } : undefined
        )
        const scene = yield* callOdd(returning("str"), [hook])
        if (content === "str") assert.strictEqual(scene.answer("a"), "str")
        else assertRefusal(scene.answer("a"), "\"odd\"")
      }
    }))

  // --- B65 ---

  const deep = (levels: number): unknown => levels === 0 ? 1 : { in: deep(levels - 1) }

  const unwritable: ReadonlyArray<[name: string, value: unknown]> = [
    ["a bigint", 42n],
    ["a cycle", cycle],
    ["a Map", new Map([["a", 1]])],
    ["a Set", new Set([1])],
    ["a WeakMap", new WeakMap()],
    ["a promise", Promise.resolve(1)],
    ["a function", () => 1],
    ["NaN", NaN],
    ["Infinity", -Infinity],
    ["a symbol", Symbol("x")],
    ["a hole in a list", [1, undefined]],
    ["a getter that throws", Object.defineProperty({}, "x", { enumerable: true, get: nobody })],
    ["a toJSON that throws", { toJSON: nobody }],
    ["a proxy that throws", trap],
    ["endless nesting", deep(5000)]
  ]
  const places: ReadonlyArray<[name: string, path: string, result: (value: unknown) => unknown]> = [
    ["details", "details", (value) => ({ content: "done", details: value })],
    ["a field deep in details", "details: hits[0].id", (value) => ({ details: { hits: [{ id: value }] } })],
    ["structured content", "structuredContent", (value) => ({ content: "done", structuredContent: value })]
  ]
  for (const [name, value] of unwritable) {
    it.effect(`B65 (T9): ${name} anywhere in a result is an error result that says the tool ran and where it is`, () =>
      Effect.gen(function*() {
        for (const [, path, result] of places) {
          let ran = 0
          const odd = tool("odd", () =>
            Effect.sync(() => {
              ran++
              return lie<Tools.ToolResult>(result(value))
            }))
          const scene = yield* callOdd(odd)
          assertRefusal(scene.answer("a"), "\"odd\" ran", "could not be serialised", path)
          assert.strictEqual(ran, 1)
        }
        const patched = yield* callOdd(returning("done"), [
          Hooks.afterToolCall(({ toolCall }) => toolCall.id === "a" ? { details: { x: value } } : undefined)
        ])
        assertRefusal(patched.answer("a"), "\"odd\" ran", "could not be serialised", "details: x")
      }))
  }

  const written: ReadonlyArray<[name: string, value: unknown, json: Messages.Json]> = [
    ["a Date is its ISO text", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["a field that is undefined is left out", { x: undefined, y: 1 }, { y: 1 }],
    ["-0 is 0", -0, 0],
    [
      "an instance is its fields",
      new (class Point {
        readonly x = 1
        readonly y = 2
      })(),
      { x: 1, y: 2 }
    ],
    ["toJSON decides", { toJSON: () => [1] }, [1]],
    ["an object without a prototype is one", Object.assign(Object.create(null), { x: 1 }), { x: 1 }],
    ["a shared part is written twice", ((part) => [part, part])({ x: 1 }), [{ x: 1 }, { x: 1 }]],
    ["half a character is U+FFFD, in keys as well", { "k\uD83D": "\uDC00" }, { "k\uFFFD": "\uFFFD" }]
  ]
  for (const [name, value, json] of written) {
    it.effect(`B65 (T9): ${name}, in the event and in the transcript`, () =>
      Effect.gen(function*() {
        const scene = yield* callOdd(returning({ content: "done", details: { value } }))
        const message = scene.messages.find((message) => message.role === "toolResult")
        assert(message?.role === "toolResult" && !message.isError)
        assert.deepStrictEqual(message.details, { value: json })
        assert.deepStrictEqual(endOf(scene, "a").result.details, { value: json })
      }))
  }

  it.effect("B65: progress that cannot be written is ignored with a word in the log", () =>
    Effect.gen(function*() {
      const scene = yield* callOdd(
        tool("odd", ({ update }) =>
          Effect.gen(function*() {
            yield* update({ details: 42n })
            yield* update(lie({ content: 5 }))
            yield* update("half")
            return "done"
          }))
      )
      assert.strictEqual(scene.answer("a"), "done")
      assert.deepStrictEqual(
        ofType(scene.events, "tool_execution_update").map(({ partialResult }) => resultText(partialResult)),
        ["half"]
      )
      assert.lengthOf(scene.logs.filter((entry) => entry.includes("Progress was ignored")), 2)
    }))

  // --- B72 ---

  for (const mode of modes) {
    it.effect(`B72 (T4): the transcript keeps a million characters of 20 MB and says what is missing; the event has them all, ${mode}`, () =>
      Effect.gen(function*() {
        const size = 20_000_000
        const { hook, seen } = watching()
        const scene = yield* callOdd(tool("odd", () => Effect.succeed("x".repeat(size))), [hook], {
          toolExecution: mode
        })
        const answer = scene.answer("a")
        const marker = `[${size - 1_000_000} of ${size} characters left out]`
        assert.isTrue(answer === `${"x".repeat(1_000_000)}\n${marker}`, answer.slice(-100))
        assert.strictEqual(resultText(endOf(scene, "a").result).length, size)
        // The hook that budgets sees it before the next request does.
        assert.strictEqual(resultText(seen[0]!.result).length, size)
        assert.strictEqual(Messages.text(scene.requests[1]!.messages.at(-2)!).length, answer.length)
      }))
  }

  it.effect("B72: a hook may shorten it first; a limit of one's own counts all blocks and cuts between characters", () =>
    Effect.gen(function*() {
      const shortened = yield* callOdd(tool("odd", () => Effect.succeed("x".repeat(20_000_000))), [
        Hooks.afterToolCall(({ result, toolCall }) =>
          toolCall.id === "a"
            ? { content: [{ type: "text" as const, text: resultText(result).slice(0, 3) }] }
            : undefined
        )
      ])
      assert.strictEqual(shortened.answer("a"), "xxx")
      const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const
      const blocks: ReadonlyArray<[content: Tools.Content, kept: Tools.Content]> = [
        [[{ type: "text", text: "12345" }], [{ type: "text", text: "12345" }]],
        [[{ type: "text", text: "123456" }], [{ type: "text", text: "12345" }, {
          type: "text",
          text: "[1 of 6 characters left out]"
        }]],
        [[{ type: "text", text: "123" }, image, { type: "text", text: "456" }, { type: "text", text: "7" }], [
          { type: "text", text: "123" },
          image,
          { type: "text", text: "45" },
          { type: "text", text: "[2 of 7 characters left out]" }
        ]]
      ]
      for (const [content, kept] of blocks) {
        const scene = yield* callOdd(returning({ content, details: content.length }), [], { maxResultLength: 5 })
        assert.deepStrictEqual(contentOf(scene, "a"), kept)
        assert.deepStrictEqual(endOf(scene, "a").result, { content, details: content.length })
      }
      const cut = yield* callOdd(returning("1234😀"), [], { maxResultLength: 5 })
      assert.isTrue(cut.answer("a").startsWith("1234\n["), cut.answer("a"))
    }))

  // --- B75 ---

  for (const [name, value] of [["an empty text", ""], ["an empty list", []], ["no content", {}]] as const) {
    it.effect(`B75: ${name} is one good result in transcript and request`, () =>
      Effect.gen(function*() {
        const scene = yield* callOdd(returning(value))
        assert.strictEqual(scene.answer("a"), "")
        const content: Tools.Content = value === "" ? [{ type: "text", text: "" }] : []
        assert.deepStrictEqual(contentOf(scene, "a"), content)
        assert.strictEqual(Transcript.print(scene.requests[1]!.messages), "U A[a,b] R(a) R(b)")
      }))
  }

  // --- B81 ---

  class Failed extends Data.TaggedError("Failed")<{ readonly secret: string; readonly message: string }> {}
  class Silent extends Data.TaggedError("Silent")<{ readonly secret: string }> {}
  class Known extends Schema.TaggedError<Known>()("Known", { secret: Schema.String }) {
    override get message(): string {
      return "it broke"
    }
  }
  const secret = "sk-secret /home/me/.config"
  const leaky: ReadonlyArray<[name: string, error: unknown, text: string]> = [
    ["an Error with a cause", new Error("it broke", { cause: new Error(secret) }), "it broke"],
    ["an Error with fields", Object.assign(new Error("it broke"), { secret, path: secret }), "it broke"],
    [
      "an Error with a stack",
      Object.assign(new Error("it broke"), { stack: `Error: it broke\n    at ${secret}` }),
      "it broke"
    ],
    ["an Error with a name", Object.assign(new Error("it broke"), { name: secret }), "it broke"],
    ["a tagged error", new Failed({ message: "it broke", secret }), "it broke"],
    ["a tagged error without a message", new Silent({ secret }), "Silent"],
    ["a tagged error of Schema", new Known({ secret }), "it broke"],
    ["an Error in a list", new AggregateError([new Error("it broke", { cause: secret })], ""), "it broke"]
  ]
  for (const [name, error, expected] of leaky) {
    it.effect(`B81: of ${name} the model reads the message, the log has the rest`, () =>
      Effect.gen(function*() {
        const tools = failing(error)
        const scene = yield* play({ responses: [calls(tools.map(({ name }) => [name, name, {}])), fine], tools })
        for (const { name } of tools) assert.strictEqual(scene.answer(name), `! ${expected}`)
        assert.notInclude(JSON.stringify(scene.messages), "secret")
        const hooked = yield* callOdd(returning("str"), [
          Hooks.beforeToolCall(({ toolCall }) => toolCall.id === "a" ? Effect.fail(error) : undefined)
        ])
        assert.strictEqual(hooked.answer("a"), `! ${expected}`)
        const traced = scene.logs.filter((entry) => entry.includes("failed") && entry.includes("\n"))
        assert.isNotEmpty(traced, "a cause with its stack")
      }))
  }
})
