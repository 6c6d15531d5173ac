/** Values that code of a user may give, throw or fail with, by name. */
import { Tools } from "../../src/index.ts"

class Stubborn extends Error {
  override get message(): string {
    throw new Error("no message")
  }
}

const cyclic = (): unknown => {
  const value: { self?: unknown; text: string } = { text: "round" }
  value.self = value
  return value
}

const deep = (): unknown => {
  let value: unknown = "bottom"
  for (let level = 0; level < 200; level++) value = { value }
  return value
}

const throwing = (): never => {
  throw new Error("do not look")
}

const details = (details: unknown) => ({ content: [{ type: "text", text: "with details" }], details })

const revoked = (): unknown => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const values = {
  // What a tool should give.
  text: () => "done",
  emptyText: () => "",
  blocks: () => [{ type: "text", text: "one" }, { type: "image", data: "AA==", mimeType: "image/png" }],
  result: () => Tools.result({ text: "a result", details: { hits: [1, 2] }, structuredContent: { n: 1 } }),
  usage: () =>
    Tools.result({
      text: "used tokens",
      usage: {
        input: 1,
        output: 1,
        cacheRead: 0,
        cacheWrite: 0,
        totalTokens: 2,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
      }
    }),
  error: () => Tools.result({ text: "no luck", isError: true, details: { code: 1 } }),
  terminate: () => Tools.result({ text: "bye", terminate: true }),
  noContent: () => ({ details: { only: "details" } }),
  long: () => "0123456789".repeat(60),
  surrogate: () => "half \ud83d a pair",
  surrogateDetails: () => details({ "\udc00": ["\ud800"] }),
  // What it should not.
  undefined: () => undefined,
  null: () => null,
  number: () => 42,
  nan: () => Number.NaN,
  bigint: () => 1n,
  symbol: () => Symbol("s"),
  function: () => () => "f",
  object: () => ({ some: "thing" }),
  emptyObject: () => ({}),
  cyclic,
  cyclicDetails: () => details(cyclic()),
  bigintDetails: () => details({ big: 1n }),
  mapDetails: () => details({ map: new Map([[1, 2]]), at: new Date(0), gone: undefined, minus: -0, not: Number.NaN }),
  deepDetails: () => details(deep()),
  protoDetails: () => details(JSON.parse("{\"__proto__\":{\"polluted\":true},\"constructor\":1}")),
  getterDetails: () =>
    details({
      get broken() {
        return throwing()
      }
    }),
  toJsonDetails: () => details({ toJSON: throwing }),
  getterContent: () => ({
    get content() {
      return throwing()
    }
  }),
  getterBlock: () => [{
    type: "text",
    get text() {
      return throwing()
    }
  }],
  badBlocks: () => [{ type: "text" }, null, 3],
  badUsage: () => ({ content: [], usage: { input: "many" } }),
  proxy: () => new Proxy({}, { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing }),
  revoked,
  // What fails.
  message: () => new Error("it broke"),
  emptyMessage: () => new Error(""),
  stubborn: () => new Stubborn(),
  surrogateMessage: () => new Error("half \udc00 a pair"),
  longMessage: () => new Error("x".repeat(20_000)),
  toStringThrows: () => ({ toString: throwing, [Symbol.toPrimitive]: throwing }),
  caused: () => new Error("outer", { cause: new Error("inner") })
} satisfies Record<string, () => unknown>

/** The name of a value. */
export type Oddity = keyof typeof values

/** A fresh value of that name. */
export const odd = (name: Oddity): unknown => values[name]()

/** Outputs that are results. */
export const goodOutputs: ReadonlyArray<Oddity> = [
  "text",
  "emptyText",
  "blocks",
  "result",
  "usage",
  "error",
  "noContent",
  "long",
  "surrogate",
  "surrogateDetails",
  "emptyObject"
]

/** Outputs that are none, or hard to read. */
export const badOutputs: ReadonlyArray<Oddity> = [
  "undefined",
  "null",
  "number",
  "nan",
  "bigint",
  "symbol",
  "function",
  "object",
  "cyclic",
  "cyclicDetails",
  "bigintDetails",
  "mapDetails",
  "deepDetails",
  "protoDetails",
  "getterDetails",
  "toJsonDetails",
  "getterContent",
  "getterBlock",
  "badBlocks",
  "badUsage",
  "proxy",
  "revoked"
]

/** What is thrown. */
export const failures: ReadonlyArray<Oddity> = [
  "message",
  "emptyMessage",
  "stubborn",
  "surrogateMessage",
  "longMessage",
  "toStringThrows",
  "caused",
  "undefined",
  "null",
  "text",
  "surrogate",
  "number",
  "bigint",
  "symbol",
  "cyclic",
  "proxy",
  "revoked",
  "function"
]
