import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "../../src/internal/json.ts"
import { acceptedTypes, expectation, isOfType, listedValues, resolveRef } from "../../src/internal/jsonSchema.ts"

describe("jsonSchema", () => {
  it("resolve follows references through own fields", () => {
    const document: JsonObject = { $defs: { L: [1, { a: 2 }] } }
    assert.strictEqual(resolveRef(document, "#/$defs/L/1/a"), 2)
    for (const ref of ["#/constructor", "#/__proto__", "#/$defs/L/length", "#/$defs/M", "x", "#%", 1]) {
      assert.isUndefined(resolveRef(document, ref), String(ref))
    }
  })

  it("expectation says in a few words what is asked for", () => {
    const document: JsonObject = { $defs: { N: { type: "number" } } }
    const words = (schema: unknown): string => expectation(document, schema)
    assert.strictEqual(words({ type: ["string", "null"] }), "string or null")
    assert.strictEqual(words({ enum: ["a", "b"] }), "\"a\" or \"b\"")
    assert.strictEqual(words({ anyOf: [{ $ref: "#/$defs/N" }, { type: "null" }] }), "number or null")
    const many = Array.from({ length: 20 }, (_, index) => index)
    assert.strictEqual(words({ enum: many }), "0, 1, 2, 3, 4, 5, 6, 7 or 12 more")
    const keyed = { type: "object", required: ["a", "b"] }
    assert.strictEqual(words(keyed), "object")
    assert.strictEqual(words({ anyOf: [keyed, { type: "null" }] }), "object with a, b or null")
    assert.strictEqual(words({}), "a value")
    assert.strictEqual(words(undefined), "a value")
  })

  it("types are those of JSON", () => {
    assert.deepStrictEqual(acceptedTypes({ enum: ["a", 1, null] }), ["string", "number", "null"])
    assert.deepStrictEqual(acceptedTypes({ const: [1] }), ["array"])
    assert.strictEqual(acceptedTypes({ properties: {} }), undefined)
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.isFalse(isOfType(value, "number"))
      assert.isFalse(isOfType(value, "integer"))
    }
  })

  it("listed values are those of const, else of enum", () => {
    assert.deepStrictEqual(listedValues({ const: null, enum: [1] }), [null])
    assert.deepStrictEqual(listedValues({ enum: [1] }), [1])
    assert.isUndefined(listedValues({ enum: 1 }))
  })
})
