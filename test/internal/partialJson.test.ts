import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { parsePartial } from "../../src/internal/partialJson.ts"

const prefixes = (text: string): ReadonlyArray<string> =>
  Array.from({ length: text.length }, (_, index) => text.slice(0, index + 1))

const isJson = Schema.is(Schema.Json)

describe("parsePartial", () => {
  const table: ReadonlyArray<readonly [text: string, value: unknown]> = [
    ["", undefined],
    [" \n", undefined],
    ["nul", undefined],
    ["-", undefined],
    ["x", undefined],
    ["}", undefined],
    ["{", {}],
    ["[", []],
    ["\"", ""],
    ["null", null],
    ["-0", -0],
    ["{\"a", {}],
    ["{\"a\"", {}],
    ["{\"a\":", {}],
    ["{\"a\": t", {}],
    ["{\"a\":tru", {}],
    ["{\"a\":true", { a: true }],
    ["{\"a\":true,", { a: true }],
    ["{\"a\":true,\"b", { a: true }],
    ["{\"a\":1", { a: 1 }],
    ["{\"a\":1.", { a: 1 }],
    ["{\"a\":1e", { a: 1 }],
    ["{\"a\":-", {}],
    ["{\"path\":\"x\",\"conte", { path: "x" }],
    ["{\"path\":\"x\",\"content\":\"li\\nne", { path: "x", content: "li\nne" }],
    ["[1,[2,{\"b\":[3", [1, [2, { b: [3] }]]],
    ["[[],{}", [[], {}]],
    ["\"a\\", "a"],
    ["\"a\\u00e", "a"],
    ["\"a\\u00e9", "aé"],
    ["\"a\\ud83d", "a"],
    ["\"a\\ud83d\\ude0", "a"],
    ["\"a\\ud83d\\ude00", "a😀"],
    ["\"a\ud83d", "a"],
    ["{\"a\":{\"b\":1}}", { a: { b: 1 } }],
    // what follows a complete value, or is no JSON, is not looked at
    ["{\"a\":1} x", { a: 1 }],
    ["[1,]", [1]],
    ["[1 2]", [1]],
    ["{\"a\":1]", { a: 1 }],
    ["{a:1}", {}],
    ["{\"a\" 1}", {}],
    ["[\"\\x\", 2]", [""]],
    ["[01]", [0]],
    ["[1}", [1]],
    ["{,", {}]
  ]
  for (const [text, value] of table) {
    it(`M8, B47: ${JSON.stringify(text)} shows ${JSON.stringify(value)}`, () => {
      assert.deepStrictEqual(parsePartial(text), value)
    })
  }

  it("a key without a value does not take the next one's", () => {
    assert.deepStrictEqual(parsePartial("{\"a\":1,\"b\":2,\"c\""), { a: 1, b: 2 })
  })

  it("section 6: `__proto__` is a field", () => {
    const value = parsePartial("{\"__proto__\":{\"x\":1},\"b\":[{\"__proto__\":2")
    assert.strictEqual(JSON.stringify(value), "{\"__proto__\":{\"x\":1},\"b\":[{\"__proto__\":2}]}")
    assert.strictEqual(Object.getPrototypeOf(value), Object.prototype)
  })

  it.prop("of a whole text is what JSON.parse says", [Schema.Json], ([json]) => {
    for (const text of [JSON.stringify(json), JSON.stringify(json, null, 2)]) {
      assert.deepStrictEqual(parsePartial(text), JSON.parse(text))
    }
  })

  it.prop("of every prefix is something, and more and more of it", [Schema.JsonObject], ([json]) => {
    let fields = 0
    for (const prefix of prefixes(JSON.stringify(json))) {
      const value = parsePartial(prefix)
      if (typeof value !== "object" || value === null) return false
      const count = Object.keys(value).length
      if (count < fields) return false
      fields = count
    }
    return fields === Object.keys(json).length
  })

  it.prop("of any text does not throw and is JSON", [Schema.String], ([text]) => {
    for (const candidate of [text, `{"a":${text}`, `["${text}`]) {
      const value = parsePartial(candidate)
      if (value !== undefined) assert.isTrue(isJson(value), candidate)
    }
  })

  it("no nesting is too deep", () => {
    const depth = 200_000
    let value = parsePartial("[".repeat(depth))
    let levels = 0
    while (Array.isArray(value)) {
      levels++
      value = value[0]
    }
    assert.strictEqual(levels, depth)
  })

  it("B55: takes linear time", () => {
    // Quadratic work on this text would take minutes.
    const text = `{"content":"${"line \\\"quoted\\\"\\n".repeat(200_000)}","list":[${
      "{\"a\":[1,2,\"x\"]},".repeat(50_000)
    }`
    const value = parsePartial(text)
    assert.isTrue(typeof value === "object" && value !== null && "list" in value)
    assert.lengthOf(Reflect.get(Object(value), "list"), 50_000)
  })
})
