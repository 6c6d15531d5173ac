import { Type, validateToolArguments } from "@earendil-works/pi-ai"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { type ArgumentsCodec, fromJsonSchema, fromSchema, validationMessage } from "../../src/internal/arguments.ts"
import type { JsonObject } from "../../src/internal/json.ts"

const bytes = (text: string): number => new TextEncoder().encode(text).length

const made = (codec: Result.Result<ArgumentsCodec, string>): ArgumentsCodec =>
  Result.getOrElse(codec, (why) => assert.fail(`no codec: ${why}`))

const why = (codec: Result.Result<ArgumentsCodec, string>): string =>
  Result.match(codec, {
    onFailure: (text) => text,
    onSuccess: ({ jsonSchema }) => assert.fail(`a codec: ${JSON.stringify(jsonSchema)}`)
  })

const decoded = (codec: ArgumentsCodec, raw: unknown): unknown =>
  Result.getOrElse(codec.decode(raw), (lines) => assert.fail(`refused:\n${lines}`))

const refusal = (codec: ArgumentsCodec, raw: unknown): string =>
  Result.match(codec.decode(raw), {
    onFailure: (lines) => lines,
    onSuccess: (value) => assert.fail(`accepted: ${JSON.stringify(value)}`)
  })

/** The schema of B41–B55, in both forms. */
const effectSchema = Schema.Struct({
  n: Schema.Int,
  q: Schema.Array(Schema.String),
  s: Schema.String,
  o: Schema.Struct({ k: Schema.Finite }),
  opt: Schema.optionalKey(Schema.Int),
  v: Schema.NullOr(Schema.String),
  u: Schema.optionalKey(Schema.Union([Schema.Finite, Schema.Null])),
  ns: Schema.optionalKey(Schema.Union([Schema.Finite, Schema.String])),
  b: Schema.optionalKey(Schema.Boolean)
})
const jsonSchema: JsonObject = {
  type: "object",
  properties: {
    n: { type: "integer" },
    q: { type: "array", items: { type: "string" } },
    s: { type: "string" },
    o: { type: "object", properties: { k: { type: "number" } }, required: ["k"] },
    opt: { type: "integer" },
    v: { type: ["string", "null"] },
    u: { anyOf: [{ type: "number" }, { type: "null" }] },
    ns: { anyOf: [{ type: "number" }, { type: "string" }] },
    b: { type: "boolean" }
  },
  required: ["n", "q", "s", "o", "v"]
}
const codecs: ReadonlyArray<readonly [name: string, codec: ArgumentsCodec]> = [
  ["Effect schema", made(fromSchema(effectSchema))],
  ["JSON Schema", made(fromJsonSchema(jsonSchema))],
  ["JSON Schema of the Effect schema", made(fromJsonSchema(made(fromSchema(effectSchema)).jsonSchema))]
]
const fine = { n: 1, q: ["a"], s: "x", o: { k: 1 }, v: null }

for (const [name, codec] of codecs) {
  describe(`arguments: ${name}`, () => {
    const accepted: ReadonlyArray<readonly [what: string, raw: object, value: object]> = [
      ["what fits", fine, fine],
      ["B41: JSON text of an array", { q: "[\"a\",\"b\"]" }, { q: ["a", "b"] }],
      ["B41: JSON text of an object", { o: "{\"k\":1}" }, { o: { k: 1 } }],
      ["B41: JSON text whose content is repaired too", { o: "{\"k\":\"1\"}" }, { o: { k: 1 } }],
      ["B43: an integer as text", { n: "42" }, { n: 42 }],
      ["B43: the largest safe integer as text", { n: "9007199254740991" }, { n: 9007199254740991 }],
      ["B43: a number as text", { o: { k: "4.5" } }, { o: { k: 4.5 } }],
      ["B44: null for an optional field", { opt: null }, {}],
      ["B44: null where null is allowed", { v: null, u: null }, { v: null, u: null }],
      ["B44: text where text is allowed", { v: "null" }, { v: "null" }],
      ["a boolean as text", { b: "true" }, { b: true }],
      ["a number for text", { s: 5, v: 4.5 }, { s: "5", v: "4.5" }],
      ["a value that fits a member of a union", { ns: "42", u: 0 }, { ns: "42", u: 0 }],
      ["the first member of a union that fits when repaired", { u: "42" }, { u: 42 }],
      ["text that looks like JSON where text is asked for", { s: "[1]", v: "{\"a\":1}" }, { s: "[1]", v: "{\"a\":1}" }],
      ["undefined beside what has to be repaired", { opt: undefined, n: "1" }, {}]
    ]
    for (const [what, raw, value] of accepted) {
      it(`section 6, ${what}`, () => {
        const given = { ...fine, ...raw }
        const before = structuredClone(given)
        assert.deepStrictEqual(decoded(codec, given), { ...fine, ...value })
        assert.deepStrictEqual(given, before, "the input is not changed")
      })
    }

    const refused: ReadonlyArray<readonly [what: string, raw: object, line: RegExp]> = [
      ...[" 42 ", "4.5", "", "0x10", "1e3", "abc", "9007199254740993", "-0"].map((n) =>
        [`B43: ${JSON.stringify(n)} for an integer`, { n }, /^ {2}- n: Expected \w+, got "/] as const
      ),
      ["B43: 4.5 for an integer", { n: 4.5 }, /^ {2}- n: Expected (an )?integer, got 4\.5$/],
      ["B43: true for an integer", { n: true }, /^ {2}- n: Expected \w+, got true$/],
      ["B43: 1 for a boolean", { b: 1 }, /^ {2}- b: Expected boolean, got 1$/],
      ["B44: null for a required text", { s: null }, /^ {2}- s: Expected string, got null$/],
      ["B44: null for a required integer", { n: null }, /^ {2}- n: Expected \w+, got null$/],
      ["B41: text for an array", { q: "a" }, /^ {2}- q: Expected array, got "a"$/],
      ["B41: JSON text of something else", { q: "{}", o: "[]" }, /q: Expected array.*\n.*o: Expected object/],
      ["a boolean for text", { s: true }, /^ {2}- s: Expected string, got true$/],
      ["a path into the value", { o: { k: "x" } }, /^ {2}- o\.k: Expected number, got "x"$/],
      ["an index into the value", { q: ["a", null] }, /^ {2}- q\[1\]: Expected string, got null$/],
      ["a missing key", { o: {} }, /^ {2}- o\.k: Missing key, expected number$/]
    ]
    for (const [what, raw, line] of refused) {
      it(`section 6, ${what} is refused`, () => {
        assert.match(refusal(codec, { ...fine, ...raw }), line)
      })
    }

    it("section 6, B46: the JSON text of an object is decoded", () => {
      assert.deepStrictEqual(decoded(codec, JSON.stringify(fine)), fine)
      assert.deepStrictEqual(decoded(codec, ` ${JSON.stringify({ ...fine, n: "1" })}\n`), fine)
      const cut = JSON.stringify({ ...fine, s: "\ud800" })
      assert.deepStrictEqual(decoded(codec, cut), { ...fine, s: "\ufffd" })
    })

    it("section 6, B46: nothing, null and empty text count as {}", () => {
      for (const raw of [undefined, null, "", " \n"]) {
        const lines = refusal(codec, raw).split("\n")
        assert.lengthOf(lines, 5)
        assert.strictEqual(lines[0], "  - n: Missing key, expected integer")
        assert.strictEqual(lines[4], "  - v: Missing key, expected string or null")
      }
    })

    it("section 6, B46: anything else says that an object was expected, and with which keys", () => {
      const table: ReadonlyArray<readonly [raw: unknown, got: string]> = [
        [[], "an array"],
        ["x", "\"x\""],
        [5, "5"],
        [true, "true"],
        ["[1]", "\"[1]\""],
        ["null", "\"null\""],
        ["{\"n\":", "\"{\\\"n\\\":\""],
        ["{\"n\":1e400}", "\"{\\\"n\\\":1e400}\""]
      ]
      for (const [raw, got] of table) {
        assert.strictEqual(
          refusal(codec, raw),
          `  - arguments: Expected an object with the keys n, q, s, o, opt, v, u, ns, b, got ${got}`
        )
      }
    })

    it("section 6, B51: the lines stay short, whatever was received", () => {
      const long = "é".repeat(200_000)
      for (
        const raw of [{ ...fine, n: long }, { ...fine, q: long, o: long, s: null, v: [] }, { [long]: 1 }, long, [long]]
      ) {
        const lines = refusal(codec, raw)
        assert.isAtMost(bytes(lines), 1024)
        assert.isTrue(lines.isWellFormed())
      }
      const wrong = refusal(codec, { ...fine, q: Array.from({ length: 5000 }, () => null) })
      assert.isAtMost(bytes(wrong), 1024)
      assert.match(wrong, /- q\[0\]: Expected string, got null\n(.*\n)+ {2}- … and 4990 more$/)
    })

    it("section 6: getters, proxies and endless nesting are refusals, not exceptions", () => {
      const throwing = Object.defineProperty({ ...fine }, "n", { enumerable: true, get: () => assert.fail("boom") })
      assert.match(refusal(codec, throwing), /^ {2}- arguments: cannot be (read|decoded): boom$/)
    })

    it("T9, B74: a lone surrogate in the arguments does not get into the lines", () => {
      assert.strictEqual(refusal(codec, { ...fine, n: "\uD99C" }).split("got")[1], " \"\uFFFD\"")
    })

    it("section 6: keys that are in every object's prototype are missing when they are missing", () => {
      for (const raw of [{}, Object.create(null)]) assert.match(refusal(codec, raw), /Missing key/)
    })
  })
}

describe("arguments: keys the schema does not know", () => {
  const polluted: unknown = JSON.parse("{\"a\":\"1\",\"z\":{\"y\":1},\"__proto__\":{\"x\":1},\"constructor\":2}")

  it("section 6: an Effect struct drops them, at any depth", () => {
    const codec = made(
      fromSchema(Schema.Struct({ a: Schema.Int, o: Schema.optionalKey(Schema.Struct({ b: Schema.Int })) }))
    )
    assert.deepStrictEqual(decoded(codec, { a: 1, o: { b: 1, c: 2 }, z: 1 }), { a: 1, o: { b: 1 } })
    const value = decoded(codec, polluted)
    assert.deepStrictEqual(value, { a: 1 })
    assert.strictEqual(Object.getPrototypeOf(value), Object.prototype)
  })

  it("section 6: an Effect record keeps `__proto__` as a field", () => {
    const codec = made(fromSchema(Schema.Record(Schema.String, Schema.Int)))
    const value = decoded(codec, JSON.parse("{\"__proto__\":\"1\",\"constructor\":2}"))
    assert.strictEqual(JSON.stringify(value), "{\"__proto__\":1,\"constructor\":2}")
    assert.strictEqual(Object.getPrototypeOf(value), Object.prototype)
  })

  it("section 6: a JSON Schema keeps them, `__proto__` as a field", () => {
    const codec = made(fromJsonSchema({ type: "object", properties: { a: { type: "integer" } } }))
    const value = decoded(codec, polluted)
    assert.strictEqual(
      JSON.stringify(value),
      "{\"a\":1,\"z\":{\"y\":1},\"__proto__\":{\"x\":1},\"constructor\":2}"
    )
    assert.strictEqual(Object.getPrototypeOf(value), Object.prototype)
    assert.isUndefined(Reflect.get(Object(value), "x"))
  })

  it("section 6: a JSON Schema with additionalProperties false refuses them, at any depth", () => {
    const closed = { type: "object", properties: { b: { type: "integer" } }, additionalProperties: false }
    const codec = made(fromJsonSchema({ ...closed, properties: { b: closed, l: { type: "array", items: closed } } }))
    assert.deepStrictEqual(decoded(codec, { b: { b: "1" }, l: "[{\"b\":2}]" }), { b: { b: 1 }, l: [{ b: 2 }] })
    assert.strictEqual(refusal(codec, { z: 1 }), "  - z: Unexpected key")
    assert.strictEqual(
      refusal(codec, { b: { z: 1 }, l: [{ y: 1 }] }),
      "  - b.z: Unexpected key\n  - l[0].y: Unexpected key"
    )
    assert.strictEqual(refusal(codec, JSON.parse("{\"__proto__\":{}}")), "  - __proto__: Unexpected key")
    assert.strictEqual(refusal(codec, { constructor: 1 }), "  - constructor: Unexpected key")
  })

  it("section 6: a parameter called like a method of objects is missing when it is missing", () => {
    const fields = { constructor: Schema.optionalKey(Schema.String), toString: Schema.String, any: Schema.Unknown }
    for (
      const codec of [made(fromSchema(Schema.Struct(fields)))].flatMap((
        one
      ) => [one, made(fromJsonSchema(one.jsonSchema))])
    ) {
      assert.match(refusal(codec, { any: 1 }), /^ {2}- toString: Missing key, expected string$/)
      assert.deepStrictEqual(decoded(codec, { toString: "x", any: 1 }), { toString: "x", any: 1 })
      assert.strictEqual(
        JSON.stringify(decoded(codec, { toString: 1, any: { a: [{}] } })),
        "{\"toString\":\"1\",\"any\":{\"a\":[{}]}}"
      )
    }
  })
})

describe("arguments: defaults", () => {
  const five = Effect.succeed(5)

  it("B53: a decoding default applies when the field is missing, null or undefined", () => {
    for (
      const field of [
        Schema.Int.pipe(Schema.withDecodingDefault(five)),
        Schema.Int.pipe(Schema.withDecodingDefaultKey(five))
      ]
    ) {
      const codec = made(fromSchema(Schema.Struct({ n: field })))
      for (const raw of [{}, undefined, "", "{}", { n: null }, { n: undefined }]) {
        assert.deepStrictEqual(decoded(codec, raw), { n: 5 })
      }
      assert.deepStrictEqual(decoded(codec, { n: 7 }), { n: 7 })
      assert.deepStrictEqual(decoded(codec, { n: "7" }), { n: 7 })
      assert.match(refusal(codec, { n: "x" }), /^ {2}- n: /)
    }
  })

  it("B53: a default is not computed when the tool is made", () => {
    let computed = 0
    const counting = Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.sync(() => ++computed)))
    const codec = made(fromSchema(Schema.Struct({ n: counting })))
    assert.strictEqual(computed, 0)
    assert.deepStrictEqual(decoded(codec, {}), { n: 1 })
  })

  it("B53: the default of a JSON Schema is not applied", () => {
    const codec = made(fromJsonSchema({ type: "object", properties: { n: { type: "integer", default: 5 } } }))
    for (const raw of [{}, undefined, { n: null }]) assert.deepStrictEqual(decoded(codec, raw), {})
  })
})

describe("arguments: Effect schemas", () => {
  it("T1: a value that fits is decoded by Effect alone", () => {
    const codec = made(fromSchema(Schema.Struct({ at: Schema.Date, big: Schema.BigInt, t: Schema.FiniteFromString })))
    const at = new Date(0)
    const value = { at, big: 5n, t: 1 }
    assert.deepStrictEqual(decoded(codec, { at: at.toISOString(), big: "5", t: "1" }), value)
    assert.deepStrictEqual(decoded(codec, { at: at.toISOString(), big: 5, t: 1 }), value, "numbers for texts")
    assert.strictEqual(refusal(codec, { at: "never", big: "x", t: "1" }).split("\n").length, 2)
  })

  it("T1: a struct without fields is an object without properties", () => {
    const codec = made(fromSchema(Schema.Struct({})))
    assert.deepStrictEqual(codec.jsonSchema, { type: "object", properties: {} })
    for (const raw of [{}, undefined, null, "", "{}", { a: 1 }, "{\"a\":1}"]) {
      assert.deepStrictEqual(decoded(codec, raw), {})
    }
    for (const raw of [[], "x", 1]) assert.match(refusal(codec, raw), /Expected an object, got/)
  })

  it("T1: a class is shown as an object and decoded to an instance", () => {
    class Point extends Schema.Class<Point>("Point")({ x: Schema.Number }) {}
    const codec = made(fromSchema(Point))
    assert.deepStrictEqual(codec.jsonSchema, { type: "object", properties: { x: { type: "number" } }, required: ["x"] })
    const point = decoded(codec, { x: "1" })
    assert.instanceOf(point, Point)
    assert.deepStrictEqual(point, new Point({ x: 1 }))
  })

  it("T1: a record and a union of structs are objects", () => {
    assert.deepStrictEqual(made(fromSchema(Schema.Record(Schema.String, Schema.Int))).jsonSchema, {
      type: "object",
      properties: {},
      additionalProperties: { type: "integer" }
    })
    const union = made(fromSchema(Schema.Union([
      Schema.Struct({ do: Schema.Literal("move"), by: Schema.Int }),
      Schema.Struct({ do: Schema.Literal("stop") })
    ])))
    assert.strictEqual(union.jsonSchema["type"], "object")
    assert.deepStrictEqual(decoded(union, { do: "move", by: "2" }), { do: "move", by: 2 })
    assert.deepStrictEqual(decoded(union, { do: "stop", by: "2" }), { do: "stop" })
    assert.match(refusal(union, { do: "turn" }), /Expected/)
  })

  it("T1: a check of the whole and a message of one's own are kept", () => {
    const range = Schema.Struct({ from: Schema.Int, to: Schema.Int }).check(
      Schema.makeFilter(({ from, to }) => from < to || "from must be below to")
    )
    const codec = made(fromSchema(range))
    assert.deepStrictEqual(decoded(codec, { from: "1", to: 2 }), { from: 1, to: 2 })
    assert.strictEqual(refusal(codec, { from: 3, to: "2" }), "  - arguments: from must be below to")
  })

  it("T1: a recursive schema is repaired at any depth", () => {
    interface Tree {
      readonly v: number
      readonly kids: ReadonlyArray<Tree>
    }
    const Tree = Schema.Struct({ v: Schema.Number, kids: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree)) })
    const codec = made(fromSchema(Tree))
    assert.deepStrictEqual(decoded(codec, { v: "1", kids: [{ v: 2, kids: "[{\"v\":\"3\",\"kids\":[]}]" }] }), {
      v: 1,
      kids: [{ v: 2, kids: [{ v: 3, kids: [] }] }]
    })
    assert.strictEqual(refusal(codec, { v: 1, kids: [{ v: 2 }] }), "  - kids[0].kids: Missing key, expected array")
    let deep: unknown = { v: 1, kids: [] }
    for (let level = 0; level < 100_000; level++) deep = { v: 1, kids: [deep] }
    assert.match(refusal(codec, deep), /^ {2}- arguments: cannot be (read|decoded): /)
  })

  class Names extends Context.Service<Names, { readonly of: (text: string) => string }>()("test/Names") {}
  const served = Schema.String.pipe(Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transformEffect((text: string) => Effect.map(Names, (names) => names.of(text))),
    encode: SchemaGetter.passthrough()
  }))
  const lateFrom = <S extends Schema.Codec<unknown>>(from: S) =>
    from.pipe(Schema.decodeTo(Schema.Unknown, {
      decode: SchemaGetter.transformEffect((value: unknown) => Effect.as(Effect.sleep(1), value)),
      encode: SchemaGetter.forbiddenEncoding
    }))
  const late = lateFrom(Schema.String)
  const throwing = Schema.String.pipe(Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transform((text: string) => assert.fail(`cannot decode ${text}`)),
    encode: SchemaGetter.passthrough()
  }))

  it("T1: a schema that cannot be shown to a model says why", () => {
    const key = Symbol.for("test/key")
    // Services are refused by the type already; a schema from elsewhere may have lost it.
    const untyped = (schema: Schema.Constraint) => Schema.make<Schema.Codec<unknown>>(schema.ast)
    const table: ReadonlyArray<readonly [codec: Result.Result<ArgumentsCodec, string>, text: RegExp]> = [
      [fromSchema(Schema.String), /^parameters must describe an object, this schema describes string$/],
      [fromSchema(Schema.Array(Schema.Int)), /^parameters must describe an object, this schema describes array$/],
      [fromSchema(Schema.Unknown), /^parameters must describe an object/],
      [fromSchema(Schema.NullOr(Schema.Struct({}))), /^parameters must describe an object/],
      [fromSchema(Schema.fromJsonString(Schema.Struct({}))), /^parameters must describe an object/],
      [
        fromSchema(Schema.Struct({ [key]: Schema.String })),
        /^the schema cannot be shown as JSON Schema: .*must be strings/
      ],
      [fromSchema(untyped(Schema.Struct({ a: Schema.optionalKey(served) }))), /must need no services: .*test\/Names/],
      [fromSchema(Schema.Struct({ a: Schema.Array(late) })), /must be synchronous/]
    ]
    for (const [codec, text] of table) assert.match(why(codec), text)
    // @ts-expect-error -- decoding needs the service Names
    assert.isTrue(Result.isFailure(fromSchema(Schema.Struct({ a: served }))))
  })

  it("T1: asynchronous decoding is found in every kind of field", () => {
    class Late extends Schema.Class<Late>("Late")({ late }) {}
    const fields: ReadonlyArray<Schema.ConstraintDecoder<unknown>> = [
      late,
      lateFrom(Schema.NonEmptyString),
      lateFrom(Schema.Int.check(Schema.isGreaterThanOrEqualTo(5))),
      lateFrom(Schema.Finite.check(Schema.isLessThanOrEqualTo(-5))),
      lateFrom(Schema.Boolean),
      lateFrom(Schema.Null),
      lateFrom(Schema.Literals(["a", "b"])),
      lateFrom(Schema.Tuple([Schema.String, Schema.Finite])),
      lateFrom(Schema.Array(Schema.String)),
      lateFrom(Schema.Struct({ a: Schema.Finite })),
      Schema.Array(late),
      Schema.Tuple([Schema.Finite, late]),
      Schema.NullOr(late),
      Schema.optional(late),
      Schema.optionalKey(Schema.Struct({ deep: Schema.Array(late) })),
      Late
    ]
    for (const field of fields) {
      assert.match(why(fromSchema(Schema.Struct({ n: Schema.Int, field }))), /must be synchronous/)
    }
  })

  it("T1: decoding that breaks is a refusal with a readable line", () => {
    const codec = made(fromSchema(Schema.Struct({ a: throwing })))
    assert.strictEqual(refusal(codec, { a: "x" }), "  - arguments: cannot be decoded: cannot decode x")
    const hidden = made(fromSchema(Schema.Struct({ a: Schema.Union([Schema.Finite, late]) })))
    assert.deepStrictEqual(decoded(hidden, { a: 1 }), { a: 1 })
    assert.match(refusal(hidden, { a: "x" }), /decodes asynchronously$/)
  })

  it.prop("section 6: what Effect encodes is decoded to an equal value", [effectSchema], ([value]) => {
    const codec = made(fromSchema(effectSchema))
    assert.deepStrictEqual(decoded(codec, JSON.parse(JSON.stringify(value))), JSON.parse(JSON.stringify(value)))
  })
})

describe("arguments: JSON Schemas", () => {
  it.prop("section 6: a value that fits is given back as it is", [effectSchema], ([value]) => {
    const json: unknown = JSON.parse(JSON.stringify(value))
    assert.strictEqual(decoded(made(fromJsonSchema(jsonSchema)), json), json)
  })

  it("T1: the model is shown a copy of the schema, as it is given", () => {
    const given: JsonObject = {
      properties: { a: { default: 1 } },
      type: "object",
      $schema: "x",
      additionalProperties: true
    }
    const codec = made(fromJsonSchema(given))
    assert.strictEqual(JSON.stringify(codec.jsonSchema), JSON.stringify(given))
    assert.notStrictEqual(codec.jsonSchema["properties"], given["properties"])
  })

  it("T1: a schema made with TypeBox is a JSON Schema", () => {
    const codec = made(fromJsonSchema(Type.Object({ n: Type.Integer(), o: Type.Optional(Type.String()) })))
    assert.strictEqual(
      JSON.stringify(codec.jsonSchema),
      JSON.stringify(Type.Object({ n: Type.Integer(), o: Type.Optional(Type.String()) }))
    )
    assert.deepStrictEqual(decoded(codec, { n: "1", o: null }), { n: 1 })
  })

  it("T1: a reference at the top is resolved, a missing type is filled in", () => {
    const A = { type: "object", properties: { n: { $ref: "#/$defs/N" } }, required: ["n"] }
    const codec = made(fromJsonSchema({ $ref: "#/$defs/A", $defs: { A, N: { type: "integer" } } }))
    assert.deepStrictEqual(codec.jsonSchema, { ...A, $defs: { N: { type: "integer" } } })
    assert.deepStrictEqual(decoded(codec, { n: "1" }), { n: 1 })
    assert.deepStrictEqual(made(fromJsonSchema({})).jsonSchema, { type: "object" })
  })

  it("T1: what is no JSON Schema of an object says why", () => {
    const cycle: Record<string, unknown> = { type: "object" }
    cycle["properties"] = { self: cycle }
    const table: ReadonlyArray<readonly [schema: unknown, text: RegExp]> = [
      [undefined, /undefined/],
      [null, /a JSON Schema for parameters is an object, not null/],
      ["{}", /is an object, not "\{\}"/],
      [true, /is an object, not true/],
      [[], /is an object, not an array/],
      [{ type: "string" }, /parameters must describe an object, this schema describes string/],
      [{ anyOf: [{ type: "object" }, { type: "array" }] }, /this schema describes object or array/],
      [{ type: "object", properties: { f: () => 1 } }, /properties\.f is a function/],
      [{ type: "object", properties: { n: { minimum: 1n } } }, /properties\.n\.minimum is a bigint/],
      [cycle, /is a cycle/]
    ]
    for (const [schema, text] of table) assert.match(why(fromJsonSchema(schema)), text)
  })

  it("section 6: a keyword that is not understood is left to the tool's server", () => {
    const codec = made(
      fromJsonSchema({ type: "object", properties: { a: { not: { type: "string" } }, n: { type: "integer" } } })
    )
    assert.deepStrictEqual(decoded(codec, { a: "x", n: "1" }), { a: "x", n: 1 })
    assert.strictEqual(refusal(codec, { a: "x", n: "x" }), "  - n: Expected integer, got \"x\"")
  })

  it("section 6: arguments that a tangled schema cannot decide on in time are refused, the next ones are not", () => {
    const node = { type: "object", properties: { next: { $ref: "#/$defs/node" }, n: { type: "integer" } } }
    const codec = made(fromJsonSchema({
      type: "object",
      properties: { node: { $ref: "#/$defs/node" } },
      $defs: { node: { anyOf: [node, { ...node, title: "b" }, { ...node, title: "c" }, { type: "null" }] } }
    }))
    let deep: unknown = { n: "x" }
    for (let level = 0; level < 40; level++) deep = { next: deep }
    assert.match(refusal(codec, { node: deep }), /^ {2}- /)
    assert.deepStrictEqual(decoded(codec, { node: { next: { n: "1" } } }), { node: { next: { n: 1 } } })
  })
})

describe("arguments: beside pi", () => {
  const pi = (raw: JsonObject): Result.Result<unknown, unknown> =>
    Result.try(() =>
      validateToolArguments({ name: "t", description: "", parameters: jsonSchema }, {
        type: "toolCall",
        id: "1",
        name: "t",
        arguments: raw
      })
    )
  const codec = made(fromJsonSchema(jsonSchema))

  const agreed: ReadonlyArray<JsonObject> = [
    {},
    { n: "42" },
    { n: "4.5" },
    { n: "" },
    { n: "abc" },
    { n: 4.5 },
    { n: "x" },
    { opt: null },
    { opt: "7" },
    { u: null },
    { u: "1" },
    { ns: "42" },
    { b: "true" },
    { b: "false" },
    { b: "yes" },
    { s: 5 },
    { o: {} },
    { o: { k: "1" } },
    { o: { k: 1, z: 1 } },
    { q: "a" },
    { q: [1] },
    { q: null },
    { extra: 1 }
  ]
  for (const raw of agreed) {
    it(`section 6: ${JSON.stringify(raw)} ends as in pi`, () => {
      const theirs = pi({ ...fine, ...raw })
      const ours = codec.decode({ ...fine, ...raw })
      assert.strictEqual(Result.isSuccess(ours), Result.isSuccess(theirs))
      if (Result.isSuccess(ours) && Result.isSuccess(theirs)) assert.deepStrictEqual(ours.success, theirs.success)
    })
  }

  it("section 6, class lenient-validation: where pi guesses, the call is refused", () => {
    for (const raw of [{ s: null }, { n: null }, { n: true }, { b: 1 }, { s: true }, { n: "1e3" }, { n: " 42 " }]) {
      assert.isTrue(Result.isSuccess(pi({ ...fine, ...raw })), JSON.stringify(raw))
      assert.isTrue(Result.isFailure(codec.decode({ ...fine, ...raw })), JSON.stringify(raw))
    }
  })
})

describe("validationMessage", () => {
  it("T1, M7: names the tool, the lines and what was received", () => {
    assert.strictEqual(
      validationMessage("read", "  - path: Missing key, expected string", { limit: 1 }),
      "Validation failed for tool \"read\":\n  - path: Missing key, expected string\n\nReceived arguments:\n{\"limit\":1}"
    )
    assert.match(validationMessage("read", "x", "{\"path\": "), /Received arguments:\n\{"path": $/)
    assert.match(validationMessage("read", "x", undefined), /Received arguments:\nno value$/)
  })

  it("B51, T9: is at most 2 KB and well formed, whatever it is given", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    for (
      const raw of [
        { n: "é".repeat(200_000) },
        "😀".repeat(200_000),
        { a: 1n },
        cycle,
        "\uD83D".repeat(5000),
        undefined
      ]
    ) {
      for (const [name, issues] of [["t", "  - n: x"], ["n\uD83D".repeat(5000), "é".repeat(5000)]] as const) {
        const message = validationMessage(name, issues, raw)
        assert.isTrue(message.startsWith("Validation failed for tool \""))
        assert.isTrue(message.includes("\n\nReceived arguments:\n"))
        assert.isAtMost(bytes(message), 2048)
        assert.isTrue(message.isWellFormed())
      }
    }
    assert.match(validationMessage("t", "  - n: x", { n: "x".repeat(200_000) }), /… \[198\d{3} more bytes\]$/)
  })
})
