/** Section C of the public faults: what becomes of the arguments a model writes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Messages, type StreamFn, Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { ofType } from "../utils/events.ts"
import { assertRefusal, play } from "./scene.ts"

const { calls, events, text } = ScriptedModel

const fine = text("fine")

// --- one field, described by an Effect schema and by a JSON Schema ---

interface Field {
  readonly schema: Schema.Codec<unknown, unknown>
  readonly json: Messages.JsonObject
  readonly optional?: boolean
}

const strings: Messages.JsonObject = { type: "array", items: { type: "string" } }

const fields = {
  n: { schema: Schema.Int, json: { type: "integer" } },
  q: { schema: Schema.Array(Schema.String), json: strings },
  s: { schema: Schema.String, json: { type: "string" } },
  o: {
    schema: Schema.Struct({ k: Schema.Finite }),
    json: { type: "object", properties: { k: { type: "number" } }, required: ["k"], additionalProperties: false }
  },
  opt: { schema: Schema.Finite, json: { type: "number" }, optional: true },
  v: { schema: Schema.NullOr(Schema.String), json: { type: ["string", "null"] } },
  // The same kinds in the company of others.
  x: { schema: Schema.Finite, json: { type: "number" } },
  b: { schema: Schema.Boolean, json: { type: "boolean" } },
  nv: { schema: Schema.NullOr(Schema.Finite), json: { anyOf: [{ type: "number" }, { type: "null" }] } },
  sq: {
    schema: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
    json: { anyOf: [{ type: "string" }, strings] }
  },
  qv: { schema: Schema.NullOr(Schema.Array(Schema.String)), json: { anyOf: [strings, { type: "null" }] } },
  qq: {
    schema: Schema.Array(Schema.Array(Schema.Int)),
    json: { type: "array", items: { type: "array", items: { type: "integer" } } }
  },
  oq: {
    schema: Schema.Struct({ q: Schema.Array(Schema.String) }),
    json: { type: "object", properties: { q: strings }, required: ["q"] }
  }
} satisfies Record<string, Field>

type FieldName = keyof typeof fields

const flavours = ["Effect schema", "JSON Schema"] as const

/** A tool `take` with one field, and what it got. */
const taker = (flavour: (typeof flavours)[number], name: FieldName) => {
  const { json, optional = false, schema }: Field = fields[name]
  const got: Array<unknown> = []
  const execute = (args: unknown) =>
    Effect.sync(() => {
      got.push(args)
      return "taken"
    })
  const description = "Takes what it gets."
  return {
    got,
    tool: flavour === "Effect schema"
      ? Tools.make("take", {
        description,
        parameters: Schema.Struct({ [name]: optional ? Schema.optionalKey(schema) : schema }),
        execute
      })
      : Tools.dynamic("take", {
        description,
        parameters: { type: "object", properties: { [name]: json }, required: optional ? [] : [name] },
        execute
      })
  }
}

const refused = Symbol("refused")

/** Plays one call with one field; the value the tool got, or `refused`. */
const give = (flavour: (typeof flavours)[number], name: FieldName, args: Messages.JsonObject) =>
  Effect.gen(function*() {
    const { got, tool } = taker(flavour, name)
    const scene = yield* play({ responses: [calls([["a", "take", args]]), fine], tools: [tool] })
    assert.strictEqual(scene.run.outcome._tag, "Completed")
    // What the model wrote stays as it was, for itself and for the listeners.
    const [call] = scene.messages.flatMap(Messages.toolCalls)
    assert.deepStrictEqual(call?.arguments, args)
    assert.deepStrictEqual(ofType(scene.events, "tool_execution_start").map(({ args }) => args), [args])
    const answer = scene.answer("a")
    if (got.length === 0) {
      assertRefusal(answer, "Validation failed for tool \"take\"", name)
      return refused
    }
    assert.deepStrictEqual([answer, got.length], ["taken", 1])
    return got[0]
  })

type Case = readonly [name: FieldName, value: Messages.Json, becomes: unknown]

const checkAll = (cases: ReadonlyArray<Case>) =>
  Effect.gen(function*() {
    for (const flavour of flavours) {
      for (const [name, value, becomes] of cases) {
        const got = yield* give(flavour, name, { [name]: value })
        const expected = becomes === refused ? refused : becomes === undefined ? {} : { [name]: becomes }
        assert.deepStrictEqual(got, expected, `${flavour}, ${name} = ${JSON.stringify(value)}`)
      }
    }
  })

describe("Tool arguments", () => {
  it.effect("B41: an array or object sent as JSON text becomes one, where no text is accepted", () =>
    checkAll([
      ["q", "[\"a\",\"b\"]", ["a", "b"]],
      ["q", "[]", []],
      ["q", " [ \"a\" ]\n", ["a"]],
      ["q", "[\"[1]\"]", ["[1]"]],
      ["o", "{\"k\":1}", { k: 1 }],
      ["oq", { q: "[\"a\"]" }, { q: ["a"] }],
      ["oq", "{\"q\":\"[\\\"a\\\"]\"}", { q: ["a"] }],
      ["qq", ["[1,2]", "[]"], [[1, 2], []]],
      ["qv", "[\"a\"]", ["a"]]
    ]))

  it.effect("B41: a text that is no JSON of the right kind is refused, and never becomes an array of one", () =>
    checkAll([
      ["q", "a", refused],
      ["q", "a,b", refused],
      ["q", "", refused],
      ["q", "\"a\"", refused],
      ["q", "[\"a\",", refused],
      ["q", "{\"0\":\"a\"}", refused],
      ["q", "null", refused],
      ["q", "[{}]", refused],
      ["q", { 0: "a" }, refused],
      ["o", "[1]", refused],
      ["o", "{\"k\":}", refused],
      ["o", "{\"k\":\"x\"}", refused],
      ["oq", { q: "a" }, refused],
      ["qv", "null", refused]
    ]))

  it.effect("B41: a text that only looks like JSON stays a text where the schema accepts one", () =>
    checkAll([
      ["s", "[\"a\",\"b\"]", "[\"a\",\"b\"]"],
      ["s", "{\"k\":1}", "{\"k\":1}"],
      ["s", "42", "42"],
      ["s", "null", "null"],
      ["v", "[]", "[]"],
      ["sq", "[\"a\"]", "[\"a\"]"],
      ["sq", ["[\"a\"]"], ["[\"a\"]"]],
      ["q", ["[\"a\"]", "{}"], ["[\"a\"]", "{}"]]
    ]))

  it.effect("B43: a text is a number only if it is one digit for digit; nothing is rounded", () =>
    checkAll([
      ["n", "42", 42],
      ["n", "-7", -7],
      ["n", "0", 0],
      ["n", "9007199254740991", 9007199254740991],
      ["n", "4.5", refused],
      ["n", "", refused],
      ["n", "abc", refused],
      ["n", "42abc", refused],
      ["n", "9007199254740993", refused],
      ["n", 4.5, refused],
      ["n", true, refused],
      ["n", false, refused],
      ["n", ["42"], refused],
      ["n", { n: 42 }, refused],
      ["x", "4.5", 4.5],
      ["x", "-0.25", -0.25],
      ["x", "", refused],
      ["x", "NaN", refused],
      ["x", "Infinity", refused],
      ["x", true, refused],
      ["nv", "42", 42],
      ["nv", "", refused],
      ["b", "true", true],
      ["b", "false", false],
      ["b", "yes", refused],
      ["b", 1, refused],
      ["b", "", refused]
    ]))

  it.effect("B43 (section 6, coerce): spaces, plus, exponents, hexadecimal and leading zeros are no number", () =>
    checkAll([
      ["n", " 42 ", refused],
      ["n", "+42", refused],
      ["n", "0x10", refused],
      ["n", "1e3", refused],
      ["n", "007", refused],
      ["n", "1_000", refused],
      ["n", "1,000", refused],
      ["x", " 4.5", refused],
      ["x", "1e3", refused],
      ["x", ".5", refused],
      ["x", "5.", refused],
      ["x", "0.1234567890123456789", refused]
    ]))

  it.effect("B43: a number for a text is its text, unless it may have lost digits", () =>
    checkAll([
      ["s", 42, "42"],
      ["s", 4.5, "4.5"],
      ["s", true, refused],
      ["s", ["x"], refused],
      ["s", { s: "x" }, refused],
      ["s", 9007199254740992, refused],
      ["sq", 42, "42"]
    ]))

  it.effect("B44: null is nothing where the field is optional, itself where the schema has it, else refused", () =>
    checkAll([
      ["opt", null, undefined],
      ["opt", "4", 4],
      ["s", null, refused],
      ["n", null, refused],
      ["b", null, refused],
      ["q", null, refused],
      ["q", [null], refused],
      ["o", null, refused],
      ["o", { k: null }, refused],
      ["v", null, null],
      ["v", "null", "null"],
      ["v", "", ""],
      ["nv", null, null],
      ["nv", 0, 0],
      ["nv", "null", refused],
      ["sq", null, refused]
    ]))

  for (const flavour of flavours) {
    it.effect(`B44: a field that is missing is refused unless it is optional (${flavour})`, () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* give(flavour, "s", {}), refused)
        assert.strictEqual(yield* give(flavour, "v", {}), refused)
        assert.deepStrictEqual(yield* give(flavour, "opt", {}), {})
      }))
  }

  // --- arguments as a whole ---

  /** A tool with a needed field and one without any; each call's arguments as a stream that may carry parsed ones. */
  const whole = (args: string | { readonly parsed: unknown }) =>
    Effect.gen(function*() {
      const { got, tool } = taker("Effect schema", "n")
      const bare: Array<unknown> = []
      const ping = Tools.make("ping", {
        description: "Needs nothing.",
        parameters: Schema.Struct({}),
        execute: (args) =>
          Effect.sync(() => {
            bare.push(args)
            return "pong"
          })
      })
      const block = (contentIndex: number, id: string, name: string): ReadonlyArray<StreamFn.StreamEvent> => [
        { type: "toolcall_start", contentIndex, id, name },
        ...(typeof args === "string"
          ? [
            { type: "toolcall_delta", contentIndex, delta: args } as const,
            { type: "toolcall_end", contentIndex } as const
          ]
          : [{ type: "toolcall_end", contentIndex, arguments: args.parsed } as const])
      ]
      const scene = yield* play({
        responses: [
          events([{ type: "start" }, ...block(0, "a", "take"), ...block(1, "b", "ping"), {
            type: "done",
            stopReason: "toolUse"
          }]),
          fine
        ],
        tools: [tool, ping]
      })
      assert.deepStrictEqual([scene.run.outcome._tag, scene.requests.length], ["Completed", 2])
      return { got, bare, a: scene.answer("a"), b: scene.answer("b") }
    })

  const nothing: ReadonlyArray<[name: string, args: string | { readonly parsed: unknown }]> = [
    ["no text", ""],
    ["spaces", "  \n"],
    ["the text null", "null"],
    ["the JSON text of an empty text", "\"\""],
    ["null", { parsed: null }],
    ["undefined", { parsed: undefined }],
    ["an empty text", { parsed: "" }],
    ["an empty object", { parsed: {} }]
  ]
  for (const [name, args] of nothing) {
    it.effect(`B46: ${name} counts as {}: a tool without fields runs, a missing field is named`, () =>
      Effect.gen(function*() {
        const { a, b, bare, got } = yield* whole(args)
        assert.deepStrictEqual([b, bare, got], ["pong", [{}], []])
        assertRefusal(a, "n: Missing key", "integer")
      }))
  }

  for (
    const [name, args] of [
      ["text in the stream", "\"{\\\"n\\\":1}\""],
      ["parsed text", { parsed: "{\"n\":1}" }],
      ["text with spaces", { parsed: " {\"n\": 1}\n" }],
      ["text of an object with a text", "\"{\\\"n\\\":\\\"1\\\"}\""]
    ] as const
  ) {
    it.effect(`B46: the JSON text of an object is that object (${name})`, () =>
      Effect.gen(function*() {
        const { a, bare, got } = yield* whole(args)
        assert.deepStrictEqual([a, got, bare], ["taken", [{ n: 1 }], [{}]])
      }))
  }

  for (
    const [name, args] of [
      ["an empty array", "[]"],
      ["an array", { parsed: [1] }],
      ["a text", "\"x\""],
      ["a parsed text", { parsed: "x" }],
      ["a number", "5"],
      ["a parsed number", { parsed: 5 }],
      ["a boolean", "true"],
      ["the JSON text of an array", { parsed: "[1]" }],
      ["the JSON text of a text", "\"\\\"{}\\\"\""],
      ["a bigint", { parsed: 5n }],
      ["a function", { parsed: () => 1 }]
    ] as ReadonlyArray<[string, string | { readonly parsed: unknown }]>
  ) {
    it.effect(`B46: ${name} is no object: both calls get an error result, the run goes on`, () =>
      Effect.gen(function*() {
        const { a, b, bare, got } = yield* whole(args)
        assert.deepStrictEqual([got, bare], [[], []])
        assertRefusal(a)
        assertRefusal(b)
      }))
  }

  // --- what the model is told ---

  it.effect("B51: a refusal has path and expectation in at most 2 KB, however large the arguments", () =>
    Effect.gen(function*() {
      for (const flavour of flavours) {
        for (
          const value of ["x".repeat(200_000), "😀".repeat(100_000), "\uD83D".repeat(100_000), "\n".repeat(200_000)]
        ) {
          const { got, tool } = taker(flavour, "n")
          const scene = yield* play({ responses: [calls([["a", "take", { n: value }]]), fine], tools: [tool] })
          // Effect says `number` of its own integers.
          assertRefusal(scene.answer("a"), `n: Expected ${flavour === "JSON Schema" ? "integer" : "number"}`)
          assert.deepStrictEqual(got, [])
        }
      }
    }))

  it.effect("B51: many problems, long paths and long names do not make it longer", () =>
    Effect.gen(function*() {
      const long = "k".repeat(50_000)
      const deep = (levels: number): Messages.Json => levels === 0 ? "x" : { inner: deep(levels - 1) }
      const deepSchema = (levels: number): Messages.JsonObject =>
        levels === 0
          ? { type: "integer" }
          : { type: "object", properties: { inner: deepSchema(levels - 1) }, required: ["inner"] }
      const cases: ReadonlyArray<[parameters: Messages.JsonObject, args: Messages.JsonObject, word: string]> = [
        [
          { type: "object", properties: { q: { type: "array", items: { type: "integer" } } } },
          { q: Array.from({ length: 10_000 }, () => "x") },
          "q[0]: Expected integer"
        ],
        [{ type: "object", properties: { [long]: { type: "integer" } } }, { [long]: "x" }, "Expected integer"],
        [deepSchema(300), { inner: deep(299) }, "Expected integer"],
        [
          { type: "object", properties: {}, additionalProperties: false },
          Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`key${index}`, index])),
          "key0"
        ],
        [
          { type: "object", properties: { n: { enum: Array.from({ length: 5000 }, (_, n) => `v${n}`) } } },
          { n: "x" },
          "n"
        ]
      ]
      for (const [parameters, args, word] of cases) {
        const tool = Tools.dynamic("take", { description: "", parameters, execute: () => Effect.succeed("taken") })
        const scene = yield* play({ responses: [calls([["a", "take", args]]), fine], tools: [tool] })
        assertRefusal(scene.answer("a"), word)
      }
    }))

  // --- defaults ---

  it.effect("B53: a default of the Effect schema's decoding is what the tool gets; it counts for null as well", () =>
    Effect.gen(function*() {
      for (
        const n of [
          Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(5))),
          Schema.Int.pipe(Schema.withDecodingDefault(Effect.succeed(5))),
          Schema.Int.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(5)))
        ]
      ) {
        const got: Array<unknown> = []
        const tool = Tools.make("take", {
          description: "",
          parameters: Schema.Struct({ n }),
          execute: (args) =>
            Effect.sync(() => {
              got.push(args)
              return "taken"
            })
        })
        const scene = yield* play({
          responses: [
            calls([["a", "take", {}], ["b", "take", { n: 7 }], ["c", "take", { n: null }], ["d", "take", { n: "8" }], [
              "e",
              "take",
              { n: "x" }
            ]]),
            fine
          ],
          tools: [tool]
        })
        assert.deepStrictEqual(got, [{ n: 5 }, { n: 7 }, { n: 5 }, { n: 8 }])
        assertRefusal(scene.answer("e"), "n")
        const [call] = scene.messages.flatMap(Messages.toolCalls)
        assert.deepStrictEqual(call?.arguments, {}, "the model's original stays")
      }
    }))

  it.effect("B53: the default of a JSON Schema is not applied, needed or not", () =>
    Effect.gen(function*() {
      const got: Array<unknown> = []
      const take = (name: string, required: ReadonlyArray<string>) =>
        Tools.dynamic(name, {
          description: "",
          parameters: { type: "object", properties: { n: { type: "integer", default: 5 } }, required },
          execute: (args) =>
            Effect.sync(() => {
              got.push(args)
              return "taken"
            })
        })
      const scene = yield* play({
        responses: [
          calls([["a", "take", {}], ["b", "take", { n: 7 }], ["c", "take", { n: null }], ["d", "need", {}]]),
          fine
        ],
        tools: [take("take", []), take("need", ["n"])]
      })
      assert.deepStrictEqual(got, [{}, { n: 7 }, {}])
      assertRefusal(scene.answer("d"), "n", "integer")
    }))
})
