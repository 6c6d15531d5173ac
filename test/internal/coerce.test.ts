import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { coerce } from "../../src/internal/coerce.ts"
import type { Json, JsonObject } from "../../src/internal/json.ts"
import { compile } from "../../src/internal/jsonSchemaCheck.ts"

const repair = (schema: JsonObject, value: unknown): unknown => coerce(compile(schema), schema, value)

const number: JsonObject = { type: "number" }
const integer: JsonObject = { type: "integer" }
const boolean: JsonObject = { type: "boolean" }
const text: JsonObject = { type: "string" }
const list: JsonObject = { type: "array", items: number }
const record: JsonObject = { type: "object", properties: { k: number, o: text }, required: ["k"] }

/** Values that are repaired, and what they become. */
const repaired: ReadonlyArray<readonly [schema: JsonObject, value: Json, out: Json]> = [
  [number, "42", 42],
  [number, "-42", -42],
  [number, "0", 0],
  [number, "4.5", 4.5],
  [number, "4.50", 4.5],
  [number, "0.000001", 0.000001],
  [number, "0.0000", 0],
  [number, `0.${"0".repeat(307)}225`, 2.25e-308],
  [number, "9007199254740991", 9007199254740991],
  [number, "123456789012.345", 123456789012.345],
  [integer, "42", 42],
  [integer, "4.0", 4],
  [boolean, "true", true],
  [boolean, "false", false],
  [text, 42, "42"],
  [text, 4.5, "4.5"],
  [text, -1, "-1"],
  [list, "[1,\"2\"]", [1, 2]],
  [list, " [1] ", [1]],
  [{ type: "array" }, "[\"\\ud800\",-0]", ["\ufffd", 0]],
  [{ type: "object" }, "{\"\\udc00\":1}", { "\ufffd": 1 }],
  [list, ["1", 2], [1, 2]],
  [record, "{\"k\":\"1\"}", { k: 1 }],
  [record, { k: "1", extra: "2" }, { k: 1, extra: "2" }],
  [record, { k: 1, o: null }, { k: 1 }],
  [{ type: ["integer", "null"] }, "7", 7],
  [{ type: ["boolean", "integer"] }, "true", true],
  [{ enum: [1, 2] }, "2", 2],
  [{ const: true }, "true", true],
  [{ enum: ["1", "2"] }, 2, "2"],
  [{ anyOf: [number, { type: "null" }] }, "42", 42],
  [{ anyOf: [list, { type: "null" }] }, "[1]", [1]],
  [{ anyOf: [{ type: "object", properties: { t: { const: "a" } }, required: ["t"] }, record] }, { k: "1" }, { k: 1 }],
  [{ oneOf: [boolean, integer] }, "3", 3],
  [{ anyOf: [integer, number] }, "4.5", 4.5],
  [
    { anyOf: [{ properties: { a: number, t: { const: "a" } } }, { properties: { a: number, b: number } }] },
    { a: "1", b: "2", t: "b" },
    { a: 1, b: 2, t: "b" }
  ],
  [{ allOf: [{ properties: { a: number } }, { properties: { b: boolean } }] }, { a: "1", b: "true" }, {
    a: 1,
    b: true
  }],
  [{ $ref: "#/$defs/N", $defs: { N: number } }, "1", 1],
  [{ items: { $ref: "#/$defs/N" }, $defs: { N: number } }, ["1"], [1]],
  [{ prefixItems: [number, text], items: boolean }, ["1", 2, "true"], [1, "2", true]],
  [{ items: [number], additionalItems: boolean }, ["1", "true"], [1, true]],
  [{ additionalProperties: number }, { a: "1" }, { a: 1 }],
  [{ properties: { a: text }, additionalProperties: number }, { a: "1", b: "1" }, { a: "1", b: 1 }],
  [{ patternProperties: { "^n": number } }, { n1: "1", m: "1" }, { n1: 1, m: "1" }],
  [{ properties: { n1: {} }, patternProperties: { "^n": number } }, { n1: "1" }, { n1: 1 }],
  [{ properties: { deep: record } }, { deep: "{\"k\":\"1\",\"o\":null}" }, { deep: { k: 1 } }],
  [{ properties: { v: { type: "array", items: record } } }, { v: [{ k: 1, o: null }] }, { v: [{ k: 1 }] }]
]

/** Values that stay as they are, because they fit or because a repair would lose or guess something. */
const untouched: ReadonlyArray<readonly [schema: JsonObject, value: Json]> = [
  ...[
    " 42",
    "42 ",
    "",
    " ",
    "+1",
    "007",
    "0x10",
    "1e3",
    "1E3",
    ".5",
    "5.",
    "abc",
    "1,000",
    "1_000",
    "NaN",
    "Infinity",
    "-0"
  ]
    .map((value) => [number, value] as const),
  [number, "9007199254740993"],
  [number, "-9007199254740993"],
  [number, "100000000000000000000"],
  [number, "0.12345678901234567"],
  [number, "1".repeat(400)],
  [number, `1${"0".repeat(400)}.0`],
  [number, `0.${"0".repeat(400)}1`],
  [number, `-0.${"0".repeat(400)}1`],
  [number, `0.${"0".repeat(320)}12345678`],
  [integer, `0.${"0".repeat(400)}1`],
  [integer, "4.5"],
  [integer, 4.5],
  [integer, true],
  [number, true],
  [number, null],
  [number, [1]],
  [boolean, "True"],
  [boolean, "1"],
  [boolean, 1],
  [boolean, 0],
  [boolean, null],
  [text, null],
  [text, true],
  [text, ["x"]],
  [text, { a: 1 }],
  [text, 9007199254740992],
  [text, "[1]"],
  [text, "{\"a\":1}"],
  [text, "42"],
  [list, "x"],
  [list, "[1"],
  [list, "[1e400]"],
  [{ type: "array" }, "[-1e400]"],
  [{ type: "object" }, "{\"a\":[1e400]}"],
  [list, "1"],
  [list, "{\"a\":1}"],
  [list, ""],
  [list, 1],
  [record, "[1]"],
  [record, "null"],
  [record, "\"{}\""],
  [record, { k: null }],
  [{ type: "null" }, ""],
  [{ type: "null" }, "null"],
  [{ type: ["number", "string"] }, "42"],
  [{ type: ["array", "string"] }, "[1]"],
  [{ anyOf: [number, text] }, "42"],
  [{ anyOf: [number, { type: "null" }] }, null],
  [{ anyOf: [list, text] }, "[1]"],
  [{ anyOf: [number, boolean] }, "x"],
  [{ properties: { a: { type: ["string", "null"] } } }, { a: null }],
  [{ properties: { a: {} } }, { a: null }],
  [{ properties: { a: { anyOf: [number, { type: "null" }] } } }, { a: null }],
  [{ properties: { a: { $ref: "#/$defs/N" } }, $defs: { N: { type: ["number", "null"] } } }, { a: null }],
  [{ additionalProperties: number }, { a: null }],
  [{ properties: { a: number }, required: ["a"] }, { a: null }],
  [{}, "42"],
  [{ properties: {} }, "{\"a\":1}"]
]

describe("coerce", () => {
  for (const [schema, value, out] of repaired) {
    it(`section 6: ${JSON.stringify(value).slice(0, 60)} for ${JSON.stringify(schema)} is ${JSON.stringify(out)}`, () => {
      const before = JSON.stringify(value)
      const result = repair(schema, value)
      assert.deepStrictEqual(result, out)
      assert.isTrue(compile(schema).fits(schema, result))
      assert.strictEqual(JSON.stringify(value), before, "the input is not changed")
    })
  }

  for (const [schema, value] of untouched) {
    it(`section 6: ${JSON.stringify(value).slice(0, 60)} for ${JSON.stringify(schema)} stays`, () => {
      assert.strictEqual(repair(schema, value), value)
    })
  }

  it("section 6: null for an optional field that refers to a type without null is left out", () => {
    const schema = { properties: { a: { $ref: "#/$defs/N" } }, $defs: { N: number } }
    assert.deepStrictEqual(repair(schema, { a: null }), {})
  })

  it("section 6: undefined fields are left out, whatever the schema says", () => {
    assert.deepStrictEqual(Object.keys(Object(repair({ type: "object" }, { a: undefined, b: 1 }))), ["b"])
  })

  it("section 6: copies only what differs", () => {
    const kept = { deep: [1] }
    const out = repair({ properties: { kept: {}, n: number } }, { kept, n: "1" })
    assert.strictEqual(Reflect.get(Object(out), "kept"), kept)
  })

  it("section 6: `__proto__` in a copy is a field, not a prototype", () => {
    const schema: JsonObject = { properties: { n: number, gone: text }, additionalProperties: { type: "object" } }
    const value: unknown = JSON.parse("{\"__proto__\":{\"isAdmin\":true},\"n\":\"1\",\"gone\":null}")
    const out = repair(schema, value)
    assert.strictEqual(JSON.stringify(out), "{\"__proto__\":{\"isAdmin\":true},\"n\":1}")
    assert.strictEqual(Object.getPrototypeOf(out), Object.prototype)
    assert.isUndefined(Reflect.get(Object(out), "isAdmin"))
    const named: JsonObject = { properties: JSON.parse("{\"__proto__\":{\"type\":\"number\"}}") }
    assert.strictEqual(JSON.stringify(repair(named, JSON.parse("{\"__proto__\":\"1\"}"))), "{\"__proto__\":1}")
  })

  it("a field named like a method of objects is described by its own schema only", () => {
    assert.deepStrictEqual(repair({ properties: { n: number } }, { constructor: "1" }), { constructor: "1" })
    assert.deepStrictEqual(repair({ properties: { toString: number } }, { toString: "1" }), { toString: 1 })
  })

  it("a schema that refers to itself for the same value ends", () => {
    assert.strictEqual(repair({ $ref: "#" }, "1"), "1")
    assert.deepStrictEqual(repair({ anyOf: [{ $ref: "#" }], properties: { n: number } }, { n: "1" }), { n: 1 })
  })

  it("an ambiguous recursive union ends in time", () => {
    const node = { type: "object", properties: { next: { $ref: "#/$defs/node" }, n: number } }
    const schema: JsonObject = {
      $ref: "#/$defs/node",
      $defs: { node: { anyOf: [node, { ...node, title: "b" }, { ...node, title: "c" }, { type: "null" }] } }
    }
    let value: Json = { n: "wrong" }
    for (let depth = 0; depth < 40; depth++) value = { next: value }
    assert.strictEqual(repair(schema, value), value)
  })

  it("a schema that branches without end is left after some time", () => {
    let looked = 0
    const $defs: Record<string, JsonObject> = { d23: number }
    for (let depth = 22; depth >= 0; depth--) {
      const ref = { $ref: `#/$defs/d${depth + 1}` }
      const twice = { ...ref, allOf: [ref] }
      $defs[`d${depth}`] = Object.defineProperty(twice, "allOf", { get: () => (looked++, [ref]) })
    }
    const schema: JsonObject = { $ref: "#/$defs/d0", $defs }
    coerce(compile({}), schema, "x")
    assert.isAbove(looked, 1000)
    assert.isBelow(looked, 4_000_000)
  })

  const fields = {
    n: Schema.Finite,
    i: Schema.optionalKey(Schema.Int),
    s: Schema.String,
    b: Schema.NullOr(Schema.Boolean),
    l: Schema.Array(Schema.Union([Schema.Finite, Schema.String])),
    o: Schema.optionalKey(Schema.Struct({ k: Schema.Finite, t: Schema.optional(Schema.String) })),
    r: Schema.Record(Schema.String, Schema.Union([Schema.Boolean, Schema.Array(Schema.Int), Schema.Null]))
  }

  it.prop(
    "section 6: a value that fits is given back as it is",
    [Schema.toEncoded(Schema.Struct(fields))],
    ([value]) => {
      const schema: JsonObject = JSON.parse(JSON.stringify(Schema.toJsonSchemaDocument(Schema.Struct(fields)).schema))
      const json: unknown = JSON.parse(JSON.stringify(value))
      assert.strictEqual(repair(schema, json), json)
    }
  )

  it.prop("section 6: a number written as text is that number or is left alone", [Schema.Finite], ([value]) => {
    const out = repair(number, String(value))
    assert.isTrue(out === String(value) || out === value)
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) assert.strictEqual(out, value)
  })

  it.prop("section 6: any text for a number or boolean is that text or what it says", [Schema.String], ([value]) => {
    for (const schema of [number, integer, boolean]) {
      const out = repair(schema, value)
      assert.isTrue(out === value || String(out) === value || Number(value) === out)
    }
  })
})
