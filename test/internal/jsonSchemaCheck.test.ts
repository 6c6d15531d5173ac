import { validateToolArguments } from "@earendil-works/pi-ai"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { maxIssues } from "../../src/internal/issues.ts"
import type { Json, JsonObject } from "../../src/internal/json.ts"
import { compile } from "../../src/internal/jsonSchemaCheck.ts"

const issues = (schema: JsonObject, value: unknown): ReadonlyArray<string> => compile(schema).issues(schema, value)
const fits = (schema: JsonObject, value: unknown): boolean => compile(schema).fits(schema, value)

/** One schema, values that fit, and values that do not with the line that says so. */
interface Case {
  readonly schema: JsonObject
  readonly good: ReadonlyArray<Json>
  readonly bad: ReadonlyArray<readonly [value: Json, line: string]>
}

const cases: { readonly [name: string]: Case } = {
  "type string": { schema: { type: "string" }, good: ["", "x"], bad: [[1, "arguments: Expected string, got 1"]] },
  "type number": { schema: { type: "number" }, good: [1, 1.5], bad: [["1", "arguments: Expected number, got \"1\""]] },
  "type integer": {
    schema: { type: "integer" },
    good: [1, -7, 0],
    bad: [[1.5, "arguments: Expected integer, got 1.5"]]
  },
  "type boolean": {
    schema: { type: "boolean" },
    good: [true],
    bad: [["true", "arguments: Expected boolean, got \"true\""]]
  },
  "type null": { schema: { type: "null" }, good: [null], bad: [[0, "arguments: Expected null, got 0"]] },
  "type array": { schema: { type: "array" }, good: [[], [1]], bad: [[{}, "arguments: Expected array, got an object"]] },
  "type object": { schema: { type: "object" }, good: [{}], bad: [[[], "arguments: Expected object, got an array"]] },
  "several types": {
    schema: { type: ["string", "null"] },
    good: ["x", null],
    bad: [[1, "arguments: Expected string or null, got 1"]]
  },
  enum: {
    schema: { enum: ["a", 1, null, { b: [1, 2] }] },
    good: ["a", 1, null, { b: [1, 2] }],
    bad: [
      ["b", "arguments: Expected \"a\" or 1 or null or {\"b\":[1,2]}, got \"b\""],
      [{ b: [2, 1] }, "arguments: Expected \"a\" or 1 or null or {\"b\":[1,2]}, got an object"],
      ["{\"b\":[1,2]}", "arguments: Expected \"a\" or 1 or null or {\"b\":[1,2]}, got \"{\\\"b\\\":[1,2]}\""]
    ]
  },
  const: { schema: { const: "x" }, good: ["x"], bad: [["y", "arguments: Expected \"x\", got \"y\""]] },
  bounds: {
    schema: { minimum: 1, maximum: 3 },
    good: [1, 3, "not a number"],
    bad: [[0, "arguments: Expected at least 1, got 0"], [4, "arguments: Expected at most 3, got 4"]]
  },
  "exclusive bounds": {
    schema: { exclusiveMinimum: 1, exclusiveMaximum: 3 },
    good: [2],
    bad: [[1, "arguments: Expected more than 1, got 1"], [3, "arguments: Expected less than 3, got 3"]]
  },
  multipleOf: {
    schema: { multipleOf: 0.1 },
    good: [0.3, 1],
    bad: [[0.35, "arguments: Expected a multiple of 0.1, got 0.35"]]
  },
  "length in code points": {
    schema: { minLength: 2, maxLength: 3 },
    good: ["ab", "😀😀😀"],
    bad: [
      ["😀", "arguments: Expected at least 2 characters, got 1"],
      ["abcd", "arguments: Expected at most 3 characters, got 4"]
    ]
  },
  pattern: {
    schema: { pattern: "^\\p{Lu}" },
    good: ["Éa"],
    bad: [["a", "arguments: Expected text that matches ^\\p{Lu}, got \"a\""]]
  },
  items: {
    schema: { items: { type: "number" }, minItems: 1, maxItems: 2 },
    good: [[1], [1, 2], "no array"],
    bad: [
      [[], "arguments: Expected at least 1 items, got 0"],
      [[1, "x"], "[1]: Expected number, got \"x\""],
      [[1, 2, 3], "arguments: Expected at most 2 items, got 3"]
    ]
  },
  "prefixItems and no others": {
    schema: { prefixItems: [{ type: "string" }, { type: "number" }], items: false },
    good: [[], ["a"], ["a", 1]],
    bad: [[["a", 1, 2], "[2]: Expected nothing here"], [[1], "[0]: Expected string, got 1"]]
  },
  "items of earlier drafts": {
    schema: { items: [{ type: "string" }], additionalItems: { type: "number" } },
    good: [["a", 1, 2]],
    bad: [[["a", "b"], "[1]: Expected number, got \"b\""]]
  },
  uniqueItems: {
    schema: { uniqueItems: true },
    good: [[1, "1", { a: 1 }, { a: 2 }]],
    bad: [[[{ a: 1, b: 2 }, { b: 2, a: 1 }], "arguments: Expected items that differ"]]
  },
  "required and properties": {
    schema: { properties: { a: { type: "string" }, b: { properties: { c: { type: "integer" } } } }, required: ["a"] },
    good: [{ a: "x" }, { a: "x", b: { c: 1 }, z: 1 }, "no object"],
    bad: [
      [{}, "a: Missing key, expected string"],
      [{ a: "x", b: { c: "1" } }, "b.c: Expected integer, got \"1\""]
    ]
  },
  "required without a description": {
    schema: { required: ["constructor"] },
    good: [{ constructor: 1 }],
    bad: [[{}, "constructor: Missing key, expected a value"]]
  },
  "additionalProperties false, at any depth": {
    schema: { properties: { a: { properties: { b: {} }, additionalProperties: false } }, additionalProperties: false },
    good: [{}, { a: {} }, { a: { b: 1 } }],
    bad: [
      [{ z: 1 }, "z: Unexpected key"],
      [{ a: { z: 1 } }, "a.z: Unexpected key"],
      [JSON.parse("{\"__proto__\":1}"), "__proto__: Unexpected key"],
      [{ constructor: 1 }, "constructor: Unexpected key"]
    ]
  },
  "additionalProperties and patternProperties": {
    schema: { patternProperties: { "^n": { type: "number" } }, additionalProperties: { type: "string" } },
    good: [{ n1: 1, a: "x" }],
    bad: [
      [{ n1: "x" }, "n1: Expected number, got \"x\""],
      [{ a: 1 }, "a: Expected string, got 1"]
    ]
  },
  "number of properties and their names": {
    schema: { minProperties: 1, maxProperties: 2, propertyNames: { pattern: "^[a-z]+$" } },
    good: [{ a: 1 }],
    bad: [
      [{}, "arguments: Expected at least 1 fields, got 0"],
      [{ A: 1 }, "A: Expected text that matches ^[a-z]+$, got \"A\""]
    ]
  },
  allOf: {
    schema: { allOf: [{ required: ["a"] }, { properties: { a: { type: "number" } } }] },
    good: [{ a: 1 }],
    bad: [[{}, "a: Missing key, expected a value"], [{ a: "x" }, "a: Expected number, got \"x\""]]
  },
  anyOf: {
    schema: { anyOf: [{ type: "number" }, { type: "boolean" }] },
    good: [1, true],
    bad: [["x", "arguments: Expected number or boolean, got \"x\""]]
  },
  "anyOf where one member takes the type": {
    schema: { anyOf: [{ type: "object", properties: { k: { type: "number" } } }, { type: "null" }] },
    good: [null, { k: 1 }],
    bad: [[{ k: "x" }, "k: Expected number, got \"x\""]]
  },
  "anyOf with one kind of object": {
    schema: { anyOf: [{ type: "object", properties: { t: { const: "a" } }, required: ["t"] }, { type: "null" }] },
    good: [{ t: "a" }, null],
    bad: [[{}, "t: Missing key, expected \"a\""], [
      { t: "b" },
      "arguments: Expected object with t or null, got an object"
    ]]
  },
  "anyOf of objects told apart by a field": {
    schema: {
      anyOf: [
        { type: "object", properties: { t: { const: "a" }, x: { type: "number" } }, required: ["t", "x"] },
        { $ref: "#/$defs/B" }
      ],
      $defs: { B: { type: "object", properties: { t: { enum: ["b", "c"] }, y: { type: "number" } }, required: ["t"] } }
    },
    good: [{ t: "a", x: 1 }, { t: "c" }],
    bad: [
      [{ t: "b", y: "1" }, "y: Expected number, got \"1\""],
      [{ t: "a" }, "x: Missing key, expected number"],
      [{ t: "d" }, "arguments: Expected object with t, x or object with t, got an object"],
      [{}, "arguments: Expected object with t, x or object with t, got an object"],
      [1, "arguments: Expected object with t, x or object with t, got 1"]
    ]
  },
  oneOf: {
    schema: { oneOf: [{ type: "number" }, { minimum: 5, type: "number" }] },
    good: [1],
    bad: [[6, "arguments: Expected exactly one of the alternatives to match, not 2"]]
  },
  $ref: {
    schema: {
      $ref: "#/$defs/a~1b%20c",
      $defs: { "a/b c": { type: "array", items: { $ref: "#/$defs/n" } }, n: { type: "number" } }
    },
    good: [[1]],
    bad: [[["x"], "[0]: Expected number, got \"x\""]]
  },
  "$ref to a definition of an earlier draft": {
    schema: { properties: { a: { $ref: "#/definitions/N" } }, definitions: { N: { type: "number" } } },
    good: [{ a: 1 }],
    bad: [[{ a: "x" }, "a: Expected number, got \"x\""]]
  },
  "a schema that contains itself": {
    schema: { properties: { v: { type: "number" }, kids: { type: "array", items: { $ref: "#" } } }, required: ["v"] },
    good: [{ v: 1, kids: [{ v: 2, kids: [] }] }],
    bad: [[{ v: 1, kids: [{ v: 2, kids: [{}] }] }, "kids[0].kids[0].v: Missing key, expected number"]]
  },
  "false accepts nothing": {
    schema: { properties: { a: false, b: true } },
    good: [{}, { b: 1 }],
    bad: [[{ a: 1 }, "a: Expected nothing here"]]
  }
}

describe("jsonSchemaCheck", () => {
  for (const [name, { bad, good, schema }] of Object.entries(cases)) {
    it(`section 6: ${name}`, () => {
      for (const value of good) {
        assert.deepStrictEqual(issues(schema, value), [], JSON.stringify(value))
        assert.isTrue(fits(schema, value), JSON.stringify(value))
      }
      for (const [value, line] of bad) {
        assert.deepStrictEqual(issues(schema, value), [`  - ${line}`])
        assert.isFalse(fits(schema, value), JSON.stringify(value))
      }
    })
  }

  it("section 6: agrees with pi about what fits, where no repair is in play", () => {
    for (const [name, { bad, good, schema }] of Object.entries(cases)) {
      if (/earlier drafts|code points|multipleOf/.test(name)) continue
      for (const value of [...good, ...bad.map(([value]) => value)]) {
        // A wrapped value, so that it can be anything; texts and numbers are left out, pi would convert them.
        if (typeof value !== "object" || value === null || /"[\d{[]|true/.test(JSON.stringify(value))) continue
        const parameters = { type: "object", properties: { v: schema }, $defs: schema["$defs"] ?? {} }
        if (JSON.stringify(schema).includes("\"#\"") || JSON.stringify(schema).includes("definitions")) continue
        const call = { type: "toolCall" as const, id: "1", name: "t", arguments: { v: value } }
        const pi = Result.try(() => validateToolArguments({ name: "t", description: "", parameters }, call))
        assert.strictEqual(Result.isSuccess(pi), fits(parameters, { v: value }), `${name}: ${JSON.stringify(value)}`)
      }
    }
  })

  it("section 6: keywords that are not understood are not checked, the others are", () => {
    const unknown: ReadonlyArray<JsonObject> = [
      { not: {} },
      JSON.parse("{\"if\":{},\"then\":false}"),
      { contains: false },
      { dependentRequired: { a: ["b"] } },
      { unevaluatedProperties: false },
      { format: "email" },
      { $ref: "https://example.com/schema" },
      { $ref: "#/nowhere" },
      { $ref: "#no-anchor" },
      { $dynamicRef: "#x" },
      { pattern: "(" },
      { type: "uuid" },
      { minimum: "1" },
      { $ref: "#/properties/x" }
    ]
    for (const keyword of unknown) {
      const schema = { properties: { x: keyword, n: { type: "integer" } } }
      assert.deepStrictEqual(issues(schema, { x: { a: 1 }, n: 1 }), [], JSON.stringify(keyword))
      assert.deepStrictEqual(issues(schema, { x: "a", n: "1" }), ["  - n: Expected integer, got \"1\""])
    }
  })

  it("a schema that refers to itself for the same value asks for nothing by that", () => {
    assert.isTrue(fits({ $ref: "#" }, 1))
    assert.isTrue(fits({ allOf: [{ $ref: "#" }], anyOf: [{ $ref: "#" }] }, 1))
    assert.isFalse(fits({ type: "string", allOf: [{ $ref: "#" }] }, 1))
  })

  it("a field that is undefined does not exist, as in JSON", () => {
    const schema = { properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false }
    assert.isTrue(fits(schema, { a: "x", b: undefined }))
    assert.deepStrictEqual(issues(schema, { a: undefined }), ["  - a: Missing key, expected string"])
  })

  it("every problem has a line, up to a limit", () => {
    const schema = { items: { type: "number" } }
    assert.lengthOf(issues(schema, ["a", 1, "b"]), 2)
    const lines = issues(schema, Array.from({ length: 50 }, () => "x"))
    assert.lengthOf(lines, maxIssues + 1)
    assert.strictEqual(lines.at(-1), "  - … and 40 more")
  })

  it("an ambiguous recursive union ends in time, and the next value has its own budget", () => {
    const node = { type: "object", properties: { next: { $ref: "#/$defs/node" } } }
    const schema = {
      $ref: "#/$defs/node",
      $defs: { node: { anyOf: [node, { ...node, title: "b" }, { ...node, title: "c" }, { type: "null" }] } }
    }
    let value: Json = "wrong"
    for (let depth = 0; depth < 60; depth++) value = { next: value }
    const schemas = compile(schema)
    assert.isFalse(schemas.fits(schema, value))
    assert.deepStrictEqual(schemas.issues(schema, { next: null }), ["  - arguments: Too tangled to be checked"])
    schemas.start()
    assert.isTrue(schemas.fits(schema, { next: { next: null } }))
  })

  it("a schema made to be expensive ends in time", () => {
    const twice = (name: string): JsonObject => ({ allOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] })
    const steps = Array.from({ length: 60 }, (_, index) => [`d${index}`, twice(`d${index + 1}`)] as const)
    const schema = { ...twice("d0"), $defs: { ...Object.fromEntries(steps), d60: { type: "string" } } }
    assert.isBoolean(fits(schema, 1))
    assert.isBoolean(fits(schema, "x"))
  })

  it("large arguments are no reason to refuse them", () => {
    const schema = { items: { anyOf: [{ type: "number" }, { $ref: "#/$defs/T" }] }, $defs: { T: { type: "string" } } }
    assert.isTrue(fits(schema, Array.from({ length: 500_000 }, () => "x")))
  })
})
