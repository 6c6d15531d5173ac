/** The same answer however the network splits it, and calls in all the ways in which servers stream them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { StreamFn } from "../../src/index.ts"
import { calls, delta, done, finish, piece, sse, text, usage } from "../utils/completionsServer.ts"
import { ask, fakeLayer, type Given } from "./ask.ts"

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

const askReads = (reads: ReadonlyArray<Uint8Array>): Effect.Effect<Given> => Effect.provide(ask(), fakeLayer(reads))

/** One read for each value. */
const askChunks = (...values: ReadonlyArray<unknown>): Effect.Effect<Given> =>
  askReads([sse(...values), done].map(bytesOf))

/** Deltas that follow each other in a block, joined. */
const joined = (events: ReadonlyArray<StreamFn.StreamEvent>): ReadonlyArray<string> => {
  const texts: Array<string> = []
  for (const event of events) {
    if ("delta" in event) texts[event.contentIndex] = `${texts[event.contentIndex] ?? ""}${event.delta}`
  }
  return texts
}

describe("An answer split by the network", () => {
  const whole = bytesOf(
    ": hello\r\n\r\n" +
      sse(
        delta({ reasoning: "hm 🤔" }),
        text("grün 🙈 "),
        text("日本"),
        calls(piece(0, "{\"a\":", { id: "c", name: "t" }))
      ) +
      sse(calls(piece(0, "\"é\"}")), finish("tool_calls"), usage({ prompt_tokens: 3, completion_tokens: 4 })) + done
  )

  it.effect("into single bytes, or pieces of any length, or not at all, is the same", () =>
    Effect.gen(function*() {
      const expected = yield* askReads([whole])
      assert.strictEqual(expected.lists.length, 1)
      assert.deepStrictEqual(joined(expected.events), ["hm 🤔", "grün 🙈 日本", "{\"a\":\"é\"}"])
      for (const size of [1, 2, 3, 7, 50, 333]) {
        const reads = Array.from(
          { length: Math.ceil(whole.length / size) },
          (_, n) => whole.slice(n * size, (n + 1) * size)
        )
        const given = yield* askReads(reads)
        assert.isUndefined(given.error)
        assert.deepStrictEqual(given.events, expected.events)
      }
    }))

  it.effect("gives one list for each read that brought something", () =>
    Effect.gen(function*() {
      const { lists } = yield* askReads([
        bytesOf(sse(text("a"), text("b"))),
        bytesOf(": nothing\n\n"),
        bytesOf(sse(text("c"))),
        bytesOf(sse(finish("stop")) + done)
      ])
      assert.deepStrictEqual(lists.map((list) => list.map(({ type }) => type).join(" ")), [
        "start text_start text_delta text_delta",
        "text_delta",
        "text_end done"
      ])
    }))
})

/** What calls came out, `id name arguments`, and how often each got a piece. */
const callsOf = ({ events }: Given): ReadonlyArray<string> => {
  const found: Array<string> = []
  const texts = joined(events)
  for (const event of events) {
    if (event.type === "toolcall_start") found.push(`${event.id} ${event.name} ${texts[event.contentIndex] ?? ""}`)
  }
  return found
}

describe("Calls", () => {
  const both = ["a one {\"x\":1}", "b two {\"y\":2}"]

  const ways: ReadonlyArray<readonly [name: string, chunks: ReadonlyArray<unknown>, expected: ReadonlyArray<string>]> =
    [
      ["one after the other", [
        calls(piece(0, "", { id: "a", name: "one" })),
        calls(piece(0, "{\"x\"")),
        calls(piece(0, ":1}")),
        calls(piece(1, "", { id: "b", name: "two" })),
        calls(piece(1, "{\"y\":2}"))
      ], both],
      ["interleaved", [
        calls(piece(0, "{", { id: "a", name: "one" }), piece(1, "{\"y", { id: "b", name: "two" })),
        calls(piece(1, "\":"), piece(0, "\"x\"")),
        calls(piece(0, ":1}")),
        calls(piece(1, "2}"))
      ], both],
      ["interleaved with text", [
        text("let "),
        calls(piece(0, "{", { id: "a", name: "one" })),
        text("me see"),
        calls(piece(0, "\"x\":1}"))
      ], [both[0]!]],
      ["whole", [
        calls(piece(0, "{\"x\":1}", { id: "a", name: "one" }), piece(1, "{\"y\":2}", { id: "b", name: "two" }))
      ], both],
      ["whole, without an index", [
        calls(
          piece(undefined, "{\"x\":1}", { id: "a", name: "one" }),
          piece(undefined, "{\"y\":2}", { id: "b", name: "two" })
        )
      ], both],
      ["whole, without an index and an id", [
        calls(piece(undefined, "{\"x\":1}", { name: "one" }), piece(undefined, "{\"y\":2}", { name: "two" }))
      ], [" one {\"x\":1}", " two {\"y\":2}"]],
      ["whole, with arguments that are no text", [calls(piece(0, { x: 1 }, { id: "a", name: "one" }))], [both[0]!]],
      ["whole, all with the index 0", [
        calls(piece(0, "{\"x\":1}", { id: "a", name: "one" })),
        calls(piece(0, "{\"y\":2}", { id: "b", name: "two" }))
      ], both],
      ["without an index, in pieces", [
        calls(piece(undefined, "{\"x\"", { id: "a", name: "one" })),
        calls(piece(undefined, ":1}")),
        calls(piece(undefined, "{\"y\"", { id: "b", name: "two" })),
        calls(piece(undefined, ":2}", { id: "b" }))
      ], both],
      ["with a new id for every piece", [
        calls(piece(0, "{\"x\"", { id: "a", name: "one" })),
        calls(piece(0, ":1", { id: "z" })),
        calls(piece(0, "}", { id: "y", name: "" }))
      ], [both[0]!]],
      ["with the name and id in every piece", [
        calls(piece(0, "{\"x\"", { id: "a", name: "one" })),
        calls(piece(0, ":1}", { id: "a", name: "one" }))
      ], [both[0]!]],
      ["with the same id twice", [
        calls(piece(0, "{\"x\":1}", { id: "a", name: "one" }), piece(1, "{\"y\":2}", { id: "a", name: "two" }))
      ], ["a one {\"x\":1}", "a two {\"y\":2}"]],
      ["with the name behind the arguments", [
        calls(piece(0, "{\"x\"")),
        calls(piece(0, ":1", { id: "a", name: "one" })),
        calls(piece(0, "}"))
      ], [both[0]!]],
      ["without a name", [calls(piece(0, "{}", { id: "a" }))], ["a  {}"]],
      ["with nothing in them", [calls({}, { index: 0 }, { index: 0, id: null, function: null })], []]
    ]
  for (const [name, chunks, expected] of ways) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const given = yield* askChunks(...chunks, finish("tool_calls"))
        assert.isUndefined(given.error)
        assert.deepStrictEqual(callsOf(given), expected)
        const ends = given.events.filter(({ type }) => type === "toolcall_end")
        assert.strictEqual(ends.length, expected.length)
      }))
  }
})
