import { assert, describe, it } from "@effect/vitest"
import * as Data from "effect/Data"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../../src/internal/json.ts"

const bytes = (text: string): number => new TextEncoder().encode(text).length

const encoded = (value: unknown): unknown =>
  Result.getOrElse(Json.encode(value), (problem) => assert.fail(`not encoded: ${problem}`))

const problem = (value: unknown): string =>
  Result.match(Json.encode(value), {
    onFailure: (text) => text,
    onSuccess: (json) => assert.fail(`encoded: ${JSON.stringify(json)}`)
  })

const nest = (levels: number, wrap: (inner: unknown) => unknown): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = wrap(value)
  return value
}

describe("wellFormed", () => {
  it("B74, T9: replaces lone surrogates and nothing else", () => {
    assert.strictEqual(Json.wellFormed("x\uD83D"), "x\uFFFD")
    assert.strictEqual(Json.wellFormed("\uDE00x"), "\uFFFDx")
    assert.strictEqual(Json.wellFormed("\uD83D\uDE00"), "😀")
    assert.strictEqual(Json.wellFormed("plain"), "plain")
  })
})

describe("excerpt", () => {
  it("keeps what fits", () => {
    assert.strictEqual(Json.excerpt("abc", 3), "abc")
    assert.strictEqual(Json.excerpt("äöü", 6), "äöü")
  })

  it("says how much was cut", () => {
    assert.strictEqual(Json.excerpt("x".repeat(100), 40), `${"x".repeat(20)}… [80 more bytes]`)
  })

  it("B51: cuts between code points", () => {
    assert.strictEqual(Json.excerpt("é".repeat(100), 40), `${"é".repeat(10)}… [180 more bytes]`)
    assert.strictEqual(Json.excerpt("😀".repeat(100), 7), "😀")
  })

  it("B74: the result is well formed", () => {
    assert.strictEqual(Json.excerpt("ab\uD83Dcd", 100), "ab\uFFFDcd")
    assert.strictEqual(Json.excerpt("\uD83D".repeat(30), 9), "\uFFFD\uFFFD\uFFFD")
  })

  it.prop(
    "B51: never exceeds the bound, is well formed, begins like the text",
    [Schema.String, Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 80 }))],
    ([text, bound]) => {
      const long = `${text}é😀${text}`
      const out = Json.excerpt(long, bound)
      assert.isAtMost(bytes(out), bound)
      assert.isTrue(out.isWellFormed())
      const kept = out.replace(/… \[\d+ more bytes\]$/, "")
      assert.isTrue(long.toWellFormed().startsWith(kept))
      if (bytes(long.toWellFormed()) <= bound) assert.strictEqual(out, long.toWellFormed())
    }
  )
})

describe("byteLength", () => {
  it.prop("is the length of the UTF-8 form", [Schema.String], ([text]) => Json.byteLength(text) === bytes(text))
})

describe("formatPath", () => {
  it("writes paths as people do, and bounds them", () => {
    assert.strictEqual(Json.formatPath(["details", "hits", 0, "id"]), "details.hits[0].id")
    assert.strictEqual(Json.formatPath(["a b", "content-type", ""]), "[\"a b\"].content-type[\"\"]")
    assert.strictEqual(Json.formatPath([]), "")
    assert.isAtMost(bytes(Json.formatPath(Array.from({ length: 5000 }, () => "é".repeat(50)))), 200)
  })
})

describe("encode", () => {
  it("a plain value is given back as it is", () => {
    const plain = { a: [1, "x", null, true, { b: [] }], c: {}, "": "😀", n: 0 }
    const frozen = Object.freeze({ list: Object.freeze([Object.freeze({ x: 1 })]) })
    assert.strictEqual(encoded(plain), plain)
    assert.strictEqual(encoded(frozen), frozen)
    for (const value of ["x", 1, true, null]) assert.strictEqual(encoded(value), value)
  })

  it.prop("what JSON.parse made is given back as it is, unless a lone surrogate is in it", [Schema.Json], ([json]) => {
    const text = JSON.stringify(json)
    const plain: unknown = JSON.parse(text)
    // JSON.stringify writes lone surrogates, and only those, as escapes.
    if (/\\ud[89a-f]/i.test(text)) assert.notStrictEqual(encoded(plain), plain)
    else assert.strictEqual(encoded(plain), plain)
  })

  it.prop("encoding twice is encoding once, and equals JSON.parse(JSON.stringify(…))", [Schema.Json], ([json]) => {
    const once = encoded({ json, at: new Date(0), gone: undefined })
    assert.strictEqual(encoded(once), once)
    assert.deepStrictEqual(JSON.parse(JSON.stringify(once)), once)
  })

  it("B65: honours toJSON, drops undefined fields, makes plain objects", () => {
    class Point {
      readonly x = 1
      readonly y = undefined
      readonly #hidden = 2
      get sum(): number {
        return this.x + this.#hidden
      }
    }
    const values = {
      date: new Date(0),
      point: new Point(),
      option: Option.some(1),
      bare: Object.assign(Object.create(null), { a: 1 }),
      text: new String("s"),
      list: new (class List extends Array<number> {})(1, 2, 3),
      none: undefined,
      gone: { toJSON: () => undefined },
      late: { toJSON: (key: string) => ({ key }) },
      items: [new Date(0), { a: undefined, b: 1 }],
      zero: -0
    }
    const json = encoded(values)
    assert.deepStrictEqual(json, JSON.parse(JSON.stringify(values)))
    assert.strictEqual(JSON.stringify(json), JSON.stringify(values))
    assert.isTrue("none" in values, "the input is not changed")
    assert.strictEqual(Object.getPrototypeOf(Reflect.get(Object(json), "bare")), Object.prototype)
    assert.strictEqual(Object.getPrototypeOf(Reflect.get(Object(json), "list")), Array.prototype)
  })

  it("copies only what differs", () => {
    const kept = { deep: [1, 2] }
    const json = encoded({ kept, list: [kept, new Date(0)] })
    assert.strictEqual(Reflect.get(Object(json), "kept"), kept)
    assert.strictEqual(Reflect.get(Object(json), "list")[0], kept)
  })

  it("B74, T9: makes texts and keys well formed", () => {
    assert.deepStrictEqual(encoded({ a: ["x\uD83D"], "k\uD99C": 1 }), { a: ["x\uFFFD"], "k\uFFFD": 1 })
  })

  it("`__proto__` stays a field", () => {
    const value: unknown = JSON.parse("{\"__proto__\":{\"a\":1},\"b\":\"\\ud800\"}")
    const json = encoded(value)
    assert.strictEqual(JSON.stringify(json), "{\"__proto__\":{\"a\":1},\"b\":\"\uFFFD\"}")
    assert.strictEqual(Object.getPrototypeOf(json), Object.prototype)
  })

  const cycle: Record<string, unknown> = { list: [{}] }
  cycle["list"] = [{ up: cycle }]
  const endless = (): unknown => ({ toJSON: () => ({ next: endless() }) })
  const failures: ReadonlyArray<readonly [what: string, value: unknown, text: string]> = [
    ["bigint", { details: { hits: [{ id: 1n }] } }, "details.hits[0].id is a bigint"],
    ["bigint alone", 1n, "the value is a bigint"],
    ["function", { f: () => 1 }, "f is a function"],
    ["symbol", [Symbol("x")], "[0] is a symbol"],
    ["undefined alone", undefined, "the value is undefined"],
    ["undefined in an array", { a: [1, undefined] }, "a[1] is undefined"],
    // oxlint-disable-next-line no-sparse-arrays
    ["hole", [, 1], "[0] is undefined"],
    ["NaN", { a: Number.NaN }, "a is NaN"],
    ["infinity", { a: -Infinity }, "a is -Infinity"],
    ["Map", { a: new Map() }, "a is a Map"],
    ["Set", new Set([1]), "the value is a Set"],
    ["Promise", { a: Promise.resolve(1) }, "a is a Promise"],
    ["cycle", { a: cycle }, "a.list[0].up is a cycle: it contains itself"],
    ["getter that throws", {
      a: {
        get b() {
          throw new Error("nope")
        }
      }
    }, "a.b could not be read: nope"],
    ["toJSON that throws", {
      a: {
        toJSON: () => {
          throw new Error("nope")
        }
      }
    }, "a could not be read: nope"],
    ["toJSON to a bigint", { a: { toJSON: () => 1n } }, "a is a bigint"]
  ]
  for (const [what, value, text] of failures) {
    it(`B65: ${what}: ${text}`, () => {
      assert.strictEqual(problem(value), text)
    })
  }

  it("B65: a proxy that refuses everything is a failure", () => {
    assert.match(
      problem(
        new Proxy({}, {
          ownKeys: () => {
            throw new Error("closed")
          }
        })
      ),
      /could not be read: closed/
    )
  })

  it("B65: nesting up to 1000 levels is encoded, beyond it is refused politely", () => {
    const fine = nest(1000, (inner) => ({ x: inner }))
    assert.strictEqual(encoded(fine), fine)
    assert.match(problem(nest(1001, (inner) => ({ x: inner }))), /is nested more than 1000 levels deep$/)
    for (const wrap of [(inner: unknown) => [inner], (inner: unknown) => ({ x: inner, at: new Date(0) })]) {
      const text = problem(nest(100_000, wrap))
      assert.match(text, /is nested more than 1000 levels deep$/)
      assert.isBelow(bytes(text), 400)
    }
    assert.match(problem(endless()), /is nested more than 1000 levels deep$/)
  })
})

describe("parse", () => {
  it("M7, B47: gives the value, or says why there is none", () => {
    assert.deepStrictEqual(Json.parse("{\"a\":[1]}"), Result.succeed({ a: [1] }))
    for (const text of ["", "{\"path\":\"/data\",\"recursive\":tru", "{'a':1}", `{"a":"${"x".repeat(100_000)}`]) {
      const result = Json.parse(text)
      assert.isTrue(Result.isFailure(result))
      assert.isAtMost(bytes(Result.isFailure(result) ? result.failure : ""), 200)
      assert.isAbove(bytes(Result.isFailure(result) ? result.failure : ""), 10)
    }
  })

  it("section 6: `__proto__` is a field", () => {
    const value = Result.getOrThrow(Json.parse("{\"__proto__\":{\"x\":1}}"))
    assert.strictEqual(Object.getPrototypeOf(value), Object.prototype)
    assert.deepStrictEqual(Object.keys(Object(value)), ["__proto__"])
  })
})

describe("show", () => {
  class NotFound extends Data.TaggedError("NotFound")<{ readonly path: string }> {}
  class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}
  class Handle {
    close(): void {}
  }
  const cycle: Record<string, unknown> = {}
  cycle["self"] = cycle
  const table: ReadonlyArray<readonly [what: string, value: unknown, text: string]> = [
    ["text", "s", "s"],
    ["empty text", "", "an empty text"],
    ["plain object", { code: 42 }, "{\"code\":42}"],
    ["array", [1, "a"], "[1,\"a\"]"],
    ["nothing", undefined, "no value"],
    ["null", null, "no value (null)"],
    ["number", 1, "1"],
    ["bigint", 12n, "12"],
    ["boolean", false, "false"],
    ["symbol", Symbol("a"), "symbol a"],
    ["symbol without a name", Symbol(), "a symbol"],
    ["function", function work() {}, "function work"],
    ["function without a name", (() => () => {})(), "a function"],
    ["error", new Error("broken"), "broken"],
    ["error without a message", new TypeError(""), "TypeError"],
    ["aggregate", new AggregateError([new Error("a"), "b", { c: 1 }]), "a; b; {\"c\":1}"],
    ["aggregate with a message", new AggregateError([new Error("a")], "all"), "all"],
    ["aggregate of nothing", new AggregateError([]), "AggregateError"],
    ["tagged error", new NotFound({ path: "/x" }), "NotFound"],
    ["tagged error with a message", new Refused({ message: "no" }), "no"],
    ["error with a cause", new Error("outer", { cause: new Error("secret") }), "outer"],
    ["Map", new Map([[1, 2]]), "\"[Map]\""],
    ["object with a bigint and a cycle", { id: 1n, cycle }, "{\"id\":\"1\",\"cycle\":{\"self\":\"[shown above]\"}}"],
    ["object with an error", { error: new Error("inner") }, "{\"error\":\"inner\"}"],
    ["object that shows nothing", new Handle(), "an object of type Handle"],
    ["object without a prototype", Object.create(null), "an object"],
    ["getter that throws", {
      get a() {
        throw new Error("x")
      }
    }, "an object"],
    [
      "error whose message throws",
      Object.defineProperty(new RangeError("x"), "message", {
        get: () => {
          throw new Error("y")
        }
      }),
      "RangeError"
    ],
    [
      "proxy that throws",
      new Proxy({}, {
        getPrototypeOf: () => {
          throw new Error("x")
        }
      }),
      "a value that cannot be read"
    ],
    ["lone surrogate", new Error("x\uD83D"), "x\uFFFD"]
  ]
  for (const [what, value, text] of table) {
    it(`B63, T4: ${what} is shown as ${text}`, () => {
      assert.strictEqual(Json.show(value), text)
    })
  }

  it("B63: is at most 2 KB, whatever is shown", () => {
    const loop = new AggregateError([], "")
    loop.errors = [loop, loop]
    for (const value of ["é".repeat(5000), new Error("x".repeat(1_000_000)), { a: "😀".repeat(2000) }, loop]) {
      assert.isAtMost(bytes(Json.show(value)), 2048)
    }
    assert.match(Json.show("x".repeat(5000)), /… \[\d+ more bytes\]$/)
    assert.isAtMost(bytes(Json.show("x".repeat(5000), 100)), 100)
  })

  it("B63: never a stack, never [object Object], never undefined", () => {
    for (const value of [new Error("m"), {}, undefined, { a: undefined }, new NotFound({ path: "x" }), [undefined]]) {
      assert.notMatch(Json.show(value), /\[object|undefined|\n\s+at /)
      assert.notStrictEqual(Json.show(value), "")
    }
  })
})
