// @effect-diagnostics globalErrorInEffectFailure:off -- tools may fail with anything
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Errors, Hooks, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { answerTo, callTool, logged, ofType, record, withModel } from "./utils/agents.ts"
import { echo, returning, tool, untyped } from "./utils/sampleTools.ts"

const codec = Schema.fromJsonString(Messages.Transcript)

/** I6: the transcript encodes to JSON and decodes to an equal value. */
const assertJson = (messages: ReadonlyArray<Messages.AgentMessage>) =>
  Effect.gen(function*() {
    const json = yield* Effect.orDie(Schema.encodeEffect(codec)(messages))
    assert.deepStrictEqual(yield* Effect.orDie(Schema.decodeUnknownEffect(codec)(json)), messages)
  })

const note = (text: string): Messages.AgentMessage =>
  ({ role: "typetest-note", note: text, timestamp: 0 }) satisfies Messages.AgentMessage

const strings = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (typeof value !== "object" || value === null) return []
  return [...Object.keys(value), ...Object.values(value).flatMap(strings)]
}

const assertWellFormed = (value: unknown): void => {
  for (const text of strings(value)) assert.isTrue(text.isWellFormed(), JSON.stringify(text))
}

const throwing = (value: unknown) =>
  tool("odd", () => {
    throw value
  })

class Custom extends Schema.TaggedError<Custom>()("Custom", { path: Schema.String }) {
  override get message(): string {
    return `no file ${this.path}`
  }
}

const hostile = new Error("hidden")
Object.defineProperty(hostile, "message", {
  get: () => {
    throw new Error("getter")
  }
})

describe("Tools that fail", () => {
  const values: ReadonlyArray<[name: string, value: unknown, contains: string | undefined]> = [
    ["a string", "it broke", "it broke"],
    ["an Error", new Error("it broke"), "it broke"],
    ["a tagged error", new Custom({ path: "notes.txt" }), "no file notes.txt"],
    ["a plain object", { code: 42 }, "42"],
    ["a number", 42, "42"],
    ["an array", ["it", "broke"], "broke"],
    ["an error with an empty message", new Error(""), undefined],
    ["an empty string", "", undefined],
    ["undefined", undefined, undefined],
    ["null", null, undefined],
    ["an error whose message cannot be read", hostile, undefined],
    ["an AggregateError", new AggregateError([new Error("first"), new Error("second")], "both broke"), "both broke"],
    ["a symbol", Symbol("it broke"), undefined],
    ["a bigint", 42n, undefined],
    ["a function", () => "it broke", undefined],
    ["an object without a prototype", Object.assign(Object.create(null), { code: 42 }), undefined]
  ]

  for (const [name, value, contains] of values) {
    for (
      const [how, failing] of [
        ["failing", tool("odd", () => Effect.fail(value))],
        ["dying", tool("odd", () => Effect.die(value))],
        ["throwing", throwing(value)],
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- promises reject with anything
        ["rejecting", tool("odd", () => Effect.promise(() => Promise.reject(value)))]
      ] as const
    ) {
      it.effect(`T4 B63: a tool ${how} with ${name} gives a readable error result`, () =>
        Effect.gen(function*() {
          const { end, message, text } = yield* callTool(failing)
          assert.isTrue(end.isError)
          assert.isNotEmpty(text.trim())
          assert.notInclude(text, "[object ")
          assert.notMatch(text, /^(undefined|null|function|\s*)$/)
          if (contains !== undefined) assert.include(text, contains)
          assert.notProperty(end.result, "isError", "the tool's result did not say it")
          yield* assertJson([message])
        }))
    }
  }

  for (
    const [how, value] of [
      ["a promise", Promise.resolve("x")],
      ["undefined", undefined],
      ["a text", "done"],
      ["a plain object", { content: [] }]
    ] as ReadonlyArray<[string, unknown]>
  ) {
    it.effect(`T4: an execute that returns ${how} instead of an effect is an error result, not a defect of the run`, () =>
      Effect.gen(function*() {
        const { end } = yield* callTool(tool("odd", () => untyped<Effect.Effect<string>>(value)))
        assert.isTrue(end.isError)
      }))
  }

  it.effect("T4: a tool that interrupts itself is an error result, not an abort of the run", () =>
    Effect.gen(function*() {
      const { end, text } = yield* callTool(tool("odd", () => Effect.interrupt))
      assert.isTrue(end.isError)
      assert.strictEqual(text, "Tool \"odd\" was interrupted")
    }))

  it.effect("T4: the text of a failure is bounded, and cut between code points", () =>
    Effect.gen(function*() {
      for (const value of ["x".repeat(1_000_000), new Error("😀".repeat(500_000)), { big: "x".repeat(1_000_000) }]) {
        const { text } = yield* callTool(tool("odd", () => Effect.fail(value)))
        assert.isAtMost(text.length, 10_000)
        assert.isAtLeast(text.length, 100)
        assert.isTrue(text.isWellFormed())
      }
    }))

  it.effect("T4 B81: the model reads the message, the log has the cause", () =>
    Effect.gen(function*() {
      const cause = new Error("password is hunter2")
      for (
        const failing of [
          tool("odd", () => Effect.fail(new Error("connection failed", { cause }))),
          tool("odd", () => Effect.die(new Error("connection failed", { cause })))
        ]
      ) {
        const [{ text }, log] = yield* logged(callTool(failing))
        assert.include(text, "connection failed")
        assert.notInclude(text, "hunter2")
        assert.notMatch(text, /\n\s+at .*\.ts/, "no stack")
        const entries = log.join("\n")
        assert.include(entries, "connection failed")
        assert.include(entries, "hunter2")
      }
    }))

  it.effect("T4: a result with isError keeps its details", () =>
    Effect.gen(function*() {
      const { end, message, text } = yield* callTool(
        tool("odd", () => Effect.succeed(Tools.result({ text: "exit 1", details: { exitCode: 1 }, isError: true })))
      )
      assert.deepStrictEqual([end.isError, message.isError, text], [true, true, "exit 1"])
      assert.deepStrictEqual(message.details, { exitCode: 1 })
      assert.deepStrictEqual(end.result.details, { exitCode: 1 })
    }))
})

const unreadable: unknown = new Proxy({}, {
  get: () => {
    throw new Error("unreadable")
  },
  ownKeys: () => {
    throw new Error("unreadable")
  }
})

describe("What tools may return", () => {
  const block = { type: "text", text: "hi" } as const
  const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" } as const

  it.effect("T4: a text", () =>
    Effect.gen(function*() {
      const { end, message } = yield* callTool(returning("hi"))
      assert.deepStrictEqual([end.isError, message.content], [false, [block]])
      assert.deepStrictEqual(end.result.content, [block])
    }))

  it.effect("T4: an array of content", () =>
    Effect.gen(function*() {
      const { end, message } = yield* callTool(returning([block, image]))
      assert.deepStrictEqual([end.isError, message.content], [false, [block, image]])
      assert.deepStrictEqual(end.result.content, [block, image])
    }))

  it.effect("T4: a whole result, whose details and usage are in the message, structured content in the event only", () =>
    Effect.gen(function*() {
      const usage = { ...Messages.emptyUsage, output: 3, totalTokens: 3 }
      const result = { content: [image], details: { a: [1] }, structuredContent: { b: true }, usage }
      const { end, message } = yield* callTool(returning(result))
      assert.deepStrictEqual(end.result, result)
      assert.deepInclude(message, { content: [image], details: { a: [1] }, usage, isError: false })
      assert.notProperty(message, "structuredContent")
    }))

  it.effect("T4: Tools.result puts the text before other content", () =>
    Effect.gen(function*() {
      const { message } = yield* callTool(returning(Tools.result({ text: "hi", content: [image] })))
      assert.deepStrictEqual(message.content, [block, image])
    }))

  it.effect("T4: a result without content is an empty list in the message, and what the tool gave in the event", () =>
    Effect.gen(function*() {
      for (const value of [{}, { content: undefined }, { details: 1 }]) {
        const { end, message } = yield* callTool(returning(value))
        assert.deepStrictEqual([end.isError, message.isError, message.content], [false, false, []])
        assert.deepStrictEqual(end.result, value)
      }
    }))

  it.effect("B75: an empty text and an empty list are results", () =>
    Effect.gen(function*() {
      for (const value of ["", []]) {
        const { end, message } = yield* callTool(returning(value))
        assert.isFalse(end.isError)
        assert.strictEqual(Messages.text(message), "")
      }
    }))

  it.effect("T4: details that are null are null in the message, absent ones are absent", () =>
    Effect.gen(function*() {
      const given = yield* callTool(returning({ content: [], details: null }))
      assert.isNull(given.message.details)
      const absent = yield* callTool(returning({ content: [], details: undefined }))
      assert.notProperty(absent.message, "details")
    }))

  const wrong: ReadonlyArray<[string, unknown]> = [
    ["undefined", undefined],
    ["null", null],
    ["a number", 5],
    ["a boolean", true],
    ["a symbol", Symbol("x")],
    ["a function", () => "x"],
    ["a list with null", [null]],
    ["a list with a text", ["x"]],
    ["a list with an object that is no content", [{ text: "x" }]],
    ["a list with a text block without text", [{ type: "text" }]],
    ["a list with a text block whose text is a number", [{ type: "text", text: 5 }]],
    ["a list with an image without data", [{ type: "image", mimeType: "image/png" }]],
    ["content that is a number", { content: 5 }],
    ["content with null in it", { content: [null] }],
    ["an object that throws when it is read", unreadable],
    ["content that throws when it is read", { content: [unreadable] }],
    ["a usage that is none", { content: [], usage: { input: "many" } }]
  ]
  for (const [name, value] of wrong) {
    it.effect(`T4 B64: ${name} is an error that names the tool, with everybody seeing the same`, () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const { end, message, text } = yield* callTool(returning(value, "odd_one")).pipe(
          Effect.provide(Hooks.layer(Hooks.afterToolCall(({ isError, result }) => {
            seen.push([isError, result.content])
          })))
        )
        assert.isTrue(end.isError)
        assert.include(text, "odd_one")
        assert.notMatch(text, /Cannot read|is not iterable|is not a function/)
        assert.deepStrictEqual(end.result.content, message.content)
        assert.deepStrictEqual(seen, [[true, message.content]])
      }))
  }

  it.effect("T4 B64: content that is a text is not lost without a word", () =>
    Effect.gen(function*() {
      const { end, text } = yield* callTool(returning({ content: "str" }, "odd_one"))
      if (end.isError) assert.include(text, "odd_one")
      else assert.strictEqual(text, "str")
    }))
})

describe("What does not encode as JSON", () => {
  const cycle: Record<string, unknown> = {}
  cycle["self"] = cycle
  const never: ReadonlyArray<[string, unknown]> = [
    ["a bigint", 1n],
    ["a cycle", cycle],
    ["a toJSON that throws", {
      toJSON: () => {
        throw new Error("no")
      }
    }],
    ["a getter that throws", {
      get x(): number {
        throw new Error("no")
      }
    }],
    ["a bigint deep inside", { a: [{ b: 1n }] }]
  ]
  for (const [name, value] of never) {
    it.effect(`T9 B65: details with ${name} are an error result that says so`, () =>
      Effect.gen(function*() {
        const { end, message, text } = yield* callTool(
          returning(Tools.result({ text: "done", details: value }), "odd_one")
        )
        assert.isTrue(end.isError)
        assert.match(text, /json|seriali[sz]ed|encoded/i)
        assert.include(text, "odd_one")
        yield* assertJson([message])
      }))
  }

  for (const field of ["structuredContent", "usage"] as const) {
    it.effect(`T9 B65: a bigint in ${field} is an error result`, () =>
      Effect.gen(function*() {
        const { end, message } = yield* callTool(
          returning({ content: [], [field]: { ...Messages.emptyUsage, input: 1n } })
        )
        assert.isTrue(end.isError)
        yield* assertJson([message])
      }))
  }

  const lossy: ReadonlyArray<[string, unknown]> = [
    ["a Date", new Date(0)],
    ["a Map", new Map([["a", 1]])],
    ["NaN", Number.NaN],
    ["an infinity", { a: Infinity }],
    ["a symbol", Symbol("x")],
    ["a function", () => 1],
    ["an undefined inside", { a: undefined, b: [undefined] }],
    ["a key named __proto__", JSON.parse("{\"__proto__\":{\"x\":1}}")],
    ["a sparse array", Object.assign([1], { 3: 2 })],
    ["an array with more keys", Object.assign([1], { more: 2 })],
    ["an instance of a class", new Custom({ path: "p" })],
    ["a typed array", new Uint8Array(2)]
  ]
  for (const [name, value] of lossy) {
    it.effect(`T9 I6 B65: with ${name} in the details the transcript is still what its JSON says`, () =>
      Effect.gen(function*() {
        const { message } = yield* callTool(returning(Tools.result({ text: "done", details: value })))
        yield* assertJson([message])
        assert.isTrue(message.isError || "details" in message, "the details are kept or it is an error")
      }))
  }

  it.effect("T9 B65: details that are nested too deeply to encode cost at most that call", () =>
    Effect.gen(function*() {
      let details: unknown = []
      for (let depth = 0; depth < 200_000; depth++) details = [details]
      const { message, text } = yield* callTool(returning(Tools.result({ text: "done", details }), "odd_one"))
      assert.isTrue(message.isError)
      assert.include(text, "odd_one")
      yield* assertJson([message])
    }))

  it.effect("T9 I6: details the tool changes afterwards do not change in the transcript", () =>
    Effect.gen(function*() {
      const details = { count: 1, list: [1] }
      const content = [{ type: "text" as const, text: "before" }]
      const { end, message } = yield* callTool(returning({ content, details }))
      details.count = 2
      details.list.push(2)
      content.push({ type: "text", text: "after" })
      assert.deepStrictEqual(message.details, { count: 1, list: [1] })
      assert.strictEqual(Messages.text(message), "before")
      assert.deepStrictEqual(end.result.details, { count: 1, list: [1] })
    }))
})

describe("Unicode", () => {
  it.effect("T9 B74: half a surrogate pair from a tool does not reach the transcript", () =>
    Effect.gen(function*() {
      for (
        const odd of [
          returning("x\uD83D"),
          returning([{ type: "text", text: "\uDE00x" }]),
          returning({ content: [], details: { "k\uD83D": ["v\uDE00"] } }),
          tool("odd", () => Effect.fail("x\uD83D")),
          tool("odd", () => Effect.die(new Error("x\uD83D")))
        ]
      ) {
        const { message } = yield* callTool(odd)
        assertWellFormed(message)
        assert.match(JSON.stringify(message), /\uFFFD/)
      }
    }))

  it.effect("T9: whole pairs and other text stay", () =>
    Effect.gen(function*() {
      const text = "größer 😀 \u0000 \uFFFD é \u2028"
      const called = yield* callTool(returning(Tools.result({ text, details: { [text]: text } })))
      assert.strictEqual(called.text, text)
      assert.deepStrictEqual(called.message.details, { [text]: text })
    }))

  it.effect("T9 B74: half a pair from a hook does not reach the transcript", () =>
    Effect.gen(function*() {
      for (
        const hook of [
          Hooks.beforeToolCall(() => Hooks.block("x\uD83D")),
          Hooks.beforeToolCall(() => Effect.fail("x\uD83D")),
          Hooks.afterToolCall(() => ({ content: [{ type: "text", text: "x\uD83D" }] })),
          Hooks.afterToolCall(() => ({ details: "x\uD83D" })),
          Hooks.afterToolCall(() => Effect.fail("x\uD83D"))
        ]
      ) {
        const { message } = yield* callTool(echo).pipe(Effect.provide(Hooks.layer(hook)))
        assertWellFormed(message)
        assert.match(JSON.stringify(message), /x\uFFFD/)
      }
    }))

  it.effect("T1 T9 B74: half a pair in the name of an unknown tool or in refused arguments does not reach the transcript", () =>
    Effect.gen(function*() {
      const unknown = yield* callTool(echo, {}, { name: "x\uD83D" })
      assertWellFormed(unknown.message)
      const refused = yield* callTool(echo, "{\"x\":[\"y\\ud83d\"]}")
      assert.isTrue(refused.end.isError)
      assertWellFormed(refused.message)
    }))

  const half = "x\uD83D"
  const fine = ScriptedModel.text("fine")
  const calling = (args: string) => ScriptedModel.calls([["a", "echo", args]])
  const sources: ReadonlyArray<
    [
      string,
      ReadonlyArray<ScriptedModel.Response>,
      Agent.Options,
      (agent: Agent.AgentService) => Effect.Effect<unknown>
    ]
  > = [
    ["the system prompt", [fine], { systemPrompt: half }, () => Effect.void],
    ["a stored message", [fine], { messages: [Messages.user(half), Messages.assistant("x")] }, () => Effect.void],
    ["a steering text", [fine], {}, (agent) => agent.steer(half)],
    ["a steering message", [fine], {}, (agent) => agent.steer(Messages.user([{ type: "text", text: half }]))],
    ["a follow-up", [fine, fine], {}, (agent) => agent.followUp(half)],
    ["a custom message", [fine], {}, (agent) => agent.appendMessages([note(half)]).pipe(Effect.orDie)],
    ["a description of a tool", [fine], { tools: [{ ...echo, description: half }] }, () => Effect.void],
    ["a text of the model", [ScriptedModel.text(half)], {}, () => Effect.void],
    ["a thought of the model", [ScriptedModel.text("fine", { thinking: half })], {}, () => Effect.void],
    ["streamed arguments", [calling("{\"x\":\"x\uD83D\"}"), fine], {}, () => Effect.void],
    ["escaped arguments", [calling("{\"x\":\"x\\ud83d\"}"), fine], {}, () => Effect.void],
    ["keys of arguments", [calling("{\"x\\ud83d\":1}"), fine], {}, () => Effect.void],
    [
      "parsed arguments and replaced content",
      [
        ScriptedModel.events([
          { type: "start" },
          { type: "toolcall_start", contentIndex: 0, id: "a", name: "echo" },
          { type: "toolcall_end", contentIndex: 0, arguments: { x: half } },
          { type: "done", stopReason: "toolUse" }
        ]),
        ScriptedModel.events([{ type: "done", content: [{ type: "text", text: half }] }])
      ],
      {},
      () => Effect.void
    ],
    ["the name of a called tool", [ScriptedModel.calls([["a", half, {}]]), fine], {}, () => Effect.void],
    ["a failure of the model", [ScriptedModel.error(half)], {}, () => Effect.void],
    ["an error event", [ScriptedModel.events([{ type: "error", errorMessage: half }])], {}, () => Effect.void]
  ]
  for (const [source, responses, options, before] of sources) {
    it.effect(`T9 B74: half a pair in ${source} reaches neither the transcript nor a request nor a listener`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ tools: [echo], ...options })
        const events = yield* record(agent)
        yield* before(agent)
        yield* agent.prompt("go")
        const messages = yield* agent.messages
        assertWellFormed(messages)
        assert.match(JSON.stringify(messages), /x\uFFFD/)
        assertWellFormed((yield* agent.state).systemPrompt)
        for (const { message } of ofType(events, "message_end")) assertWellFormed(message)
        for (const request of yield* ScriptedModel.requests) assertWellFormed([request.messages, request.tools])
        yield* assertJson(messages)
      }).pipe(withModel(...responses)))
  }

  it.effect("T9 B74: half a pair in a prompt reaches neither the transcript nor a request", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.prompt(half)
      yield* agent.prompt(half, { images: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }] })
      yield* agent.prompt([Messages.user(half), Messages.user([{ type: "text", text: half }])])
      assertWellFormed(yield* agent.messages)
      for (const request of yield* ScriptedModel.requests) assertWellFormed(request.messages)
    }).pipe(withModel(fine, fine, fine)))

  it.effect("T9: a pair that is cut between two deltas is whole in the transcript", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      const run = yield* agent.prompt("go")
      assert.include(Transcript.show(run.messages), "A \"a😀b\"")
      assert.strictEqual(Messages.text(answerTo(run.messages, "c")), "c😀")
    }).pipe(withModel(
      ScriptedModel.events([
        { type: "start" },
        { type: "toolcall_start", contentIndex: 0, id: "c", name: "echo" },
        { type: "toolcall_delta", contentIndex: 0, delta: "{\"x\":\"c\uD83D" },
        { type: "toolcall_delta", contentIndex: 0, delta: "\uDE00\"}" },
        { type: "toolcall_end", contentIndex: 0 },
        { type: "done", stopReason: "toolUse" }
      ]),
      ScriptedModel.events([
        { type: "start" },
        { type: "text_start", contentIndex: 0 },
        { type: "text_delta", contentIndex: 0, delta: "a\uD83D" },
        { type: "text_delta", contentIndex: 0, delta: "\uDE00b" },
        { type: "text_end", contentIndex: 0 },
        { type: "done", stopReason: "stop" }
      ])
    )))

  it.effect("T9 B74: the text of a ModelError is well-formed, and the outcome has the error itself", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const { outcome } = yield* agent.prompt("go")
      assert(outcome._tag === "Failed")
      assert.instanceOf(outcome.error, Errors.ModelError)
      assertWellFormed(yield* agent.messages)
      assertWellFormed((yield* agent.state).errorMessage)
    }).pipe(withModel(ScriptedModel.error("bad\uD83D"))))
})
