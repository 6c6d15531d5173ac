import { assert, describe, it } from "@effect/vitest"
import { getField, isJsonObject, isRecord, setField } from "../../src/internal/record.ts"

describe("record", () => {
  it("isRecord takes objects, not null, arrays or primitives", () => {
    assert.deepStrictEqual([{}, Object.create(null), null, [], "x", 1, undefined].map(isRecord), [
      true,
      true,
      false,
      false,
      false,
      false,
      false
    ])
    assert.strictEqual(isJsonObject({}), true)
    assert.strictEqual(isJsonObject([]), false)
  })

  it("getField finds own fields only", () => {
    assert.strictEqual(getField({ a: 1 }, "a"), 1)
    assert.strictEqual(getField({}, "constructor"), undefined)
    assert.strictEqual(getField({}, "__proto__"), undefined)
  })

  it("setField makes `__proto__` a field and leaves the prototype alone", () => {
    const target: Record<string, unknown> = {}
    setField(target, "__proto__", { polluted: true })
    setField(target, "a", 1)
    assert.strictEqual(Object.getPrototypeOf(target), Object.prototype)
    assert.deepStrictEqual(Object.keys(target), ["__proto__", "a"])
    assert.strictEqual(JSON.stringify(target), "{\"__proto__\":{\"polluted\":true},\"a\":1}")
  })
})
