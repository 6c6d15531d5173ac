/** Section C of the public faults: arguments as they are streamed, cut off or mixed up. */
import { assert, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Hooks, Messages, type StreamFn, Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { ofType } from "../utils/events.ts"
import { lie } from "../utils/hostile.ts"
import { finish } from "../utils/play.ts"
import { counting } from "../utils/sampleTools.ts"
import { assertRefusal, listen, modes, play, withStage } from "./scene.ts"

const { calls, events, text } = ScriptedModel

const fine = text("fine")

describe("Streamed arguments", () => {
  // --- arguments that are no JSON, or may not be all of them ---

  const malformed = [
    "{\"path\":\"/data\",\"recursive\":tru",
    "{\"path\":\"/data\"",
    "{\"path\":\"/da",
    "{\"path\":\"/data\",",
    "{\"path\":",
    "{",
    "{\"path\":\"/data\"}}",
    "{\"path\":\"/data\"}{\"path\":\"/etc\"}",
    "{\"path\":\"/data\"} done",
    "```json\n{\"path\":\"/data\"}\n```",
    "{'path':'/data'}",
    "{\"path\":\"/data\",}",
    "{path:\"/data\"}",
    "{\"path\":\"/data\",\"n\":NaN}",
    "undefined",
    "{\"path\":\"\\ud83\"}",
    "{\"path\":\"a\nb\"}"
  ]
  for (const mode of modes) {
    for (const args of malformed) {
      it.effect(`B47: malformed arguments never run, whatever they begin with: ${JSON.stringify(args)}, ${mode}`, () =>
        Effect.gen(function*() {
          const { ran, tool } = counting()
          const asked: Array<string> = []
          const scene = yield* play({
            responses: [calls([["a", "write", args], ["b", "write", { path: "ok" }]], { chunks: 3 }), fine],
            tools: [tool],
            hooks: [
              Hooks.beforeToolCall(({ toolCall }) => void asked.push(toolCall.id)),
              Hooks.afterToolCall(({ toolCall }) => void asked.push(toolCall.id))
            ],
            options: { toolExecution: mode }
          })
          assert.deepStrictEqual([ran, asked], [[{ path: "ok" }], ["b", "b"]])
          assertRefusal(scene.answer("a"), args.slice(0, 10).split("\n")[0]!)
          assert.strictEqual(scene.shape, "U A[a,b] R(a!) R(b) A")
          const [call] = Messages.toolCalls(scene.messages.find(({ role }) => role === "assistant")!)
          assert.deepStrictEqual([call?.arguments, call?.argumentsText], [{}, args])
        }))
    }
  }

  it.effect("B47: the snippet of huge malformed arguments is bounded, and cut between characters", () =>
    Effect.gen(function*() {
      for (const filling of ["x", "😀", "\\n", "\n"]) {
        const { ran, tool } = counting()
        const scene = yield* play({
          responses: [calls([["a", "write", `{"path":"${filling.repeat(200_000)}`]]), fine],
          tools: [tool]
        })
        assert.deepStrictEqual(ran, [])
        assertRefusal(scene.answer("a"), "{\"path\":\"")
      }
    }))

  it.effect("B47: preparation does not get to see what is no JSON", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const tool = Tools.dynamic("write", {
        description: "Repairs.",
        parameters: { type: "object" },
        prepareArguments: (args) => {
          seen.push(args)
          return args
        },
        execute: () => Effect.succeed("ran")
      })
      const scene = yield* play({ responses: [calls([["a", "write", "{\"path\":\"/da"]]), fine], tools: [tool] })
      assertRefusal(scene.answer("a"))
      assert.deepStrictEqual(seen, [])
    }))

  for (const mode of modes) {
    it.effect(`B50: no call of a response that hit the output limit runs, complete or not; history stays valid, ${mode}`, () =>
      Effect.gen(function*() {
        const { ran, tool } = counting()
        const scene = yield* play({
          responses: [
            calls([["a", "write", "{\"n\":1}"], ["b", "write", "{\"n\":"], ["c", "nope", {}]], {
              stopReason: "length"
            }),
            calls([["d", "write", { n: 2 }]]),
            fine,
            text("and again")
          ],
          tools: [tool],
          prompts: ["go", "again"],
          options: { toolExecution: mode }
        })
        assert.deepStrictEqual(ran, [{ n: 2 }])
        for (const id of ["a", "b", "c"]) assertRefusal(scene.answer(id), "not executed", "output token limit")
        assert.strictEqual(scene.shape, "U A[a,b,c] R(a!) R(b!) R(c!) A[d] R(d) A U A")
        assert.deepStrictEqual(ofType(scene.events, "tool_execution_end").map(({ toolCallId }) => toolCallId), [
          "a",
          "b",
          "c",
          "d"
        ])
      }))
  }

  it.effect("B50: a limit hit again and again keeps every call answered and every request valid", () =>
    Effect.gen(function*() {
      const { ran, tool } = counting()
      const cut = (id: string) => calls([[id, "write", { n: 1 }]], { stopReason: "length", text: "so" })
      const scene = yield* play({
        responses: [cut("a"), cut("b"), cut("c"), text("cut off", { stopReason: "length" }), fine],
        tools: [tool],
        prompts: ["go", "again"]
      })
      assert.deepStrictEqual(ran, [])
      assert.strictEqual(scene.shape, "U A[a] R(a!) A[b] R(b!) A[c] R(c!) A U A")
      const [first] = scene.runs
      assert.deepInclude(first!.outcome, { _tag: "Completed", stopReason: "length" })
    }))

  // --- streamed arguments ---

  /** How many characters are parsed as JSON or looked through for surrogates while an effect runs, up to a limit. */
  const countingWork = <A, E, R>(limit: number, effect: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => {
      const work = { parsed: 0, scanned: 0 }
      const parseJson = JSON.parse
      const parse = vi.spyOn(JSON, "parse").mockImplementation((text: string): unknown => {
        // What was given is not remembered.
        parse.mockClear()
        work.parsed += text.length
        if (work.parsed > limit) throw new Error("too much is parsed")
        return parseJson(text)
      })
      const scan = vi.spyOn(String.prototype, "isWellFormed").mockImplementation(function(this: string) {
        scan.mockClear()
        work.scanned += this.length
        return work.scanned > limit || !/\p{Surrogate}/u.test(this)
      })
      const restore = Effect.sync(() => {
        parse.mockRestore()
        scan.mockRestore()
      })
      return Effect.ensuring(Effect.map(effect, (value) => [value, work] as const), restore)
    })

  it.effect("B55: 2 MB of arguments in 20 000 deltas arrive whole and are read once; snapshots show {}", () =>
    Effect.gen(function*() {
      const deltas = 20_000
      const chunk = "0123456789".repeat(10)
      const { ran, tool } = counting()
      const list: ReadonlyArray<StreamFn.StreamEvent> = [
        { type: "start" },
        { type: "toolcall_start", contentIndex: 0, id: "a", name: "write" },
        { type: "toolcall_delta", contentIndex: 0, delta: "{\"text\":\"" },
        ...Array.from({ length: deltas }, () => ({ type: "toolcall_delta", contentIndex: 0, delta: chunk }) as const),
        { type: "toolcall_delta", contentIndex: 0, delta: "\"}" },
        { type: "toolcall_end", contentIndex: 0 },
        { type: "done", stopReason: "toolUse" }
      ]
      const shown = new Set<string>()
      let updates = 0
      const streaming = Effect.gen(function*() {
        const agent = yield* Agent.make({ tools: [tool] })
        yield* listen(agent, (event) => {
          if (event.type !== "message_update" || event.assistantMessageEvent.type !== "toolcall_delta") return
          updates++
          for (const call of Messages.toolCalls(event.message)) shown.add(JSON.stringify(call.arguments))
        })
        return yield* finish(agent.prompt("go"))
      })
      const total = deltas * chunk.length
      const limit = 20 * total
      const [, work] = yield* countingWork(limit, streaming.pipe(withStage({ responses: [events(list), fine] })))
      assert.deepStrictEqual([updates, shown], [deltas + 2, new Set(["{}"])])
      assert.isTrue(JSON.stringify(ran) === JSON.stringify([{ text: chunk.repeat(deltas) }]))
      assert.isAtMost(work.parsed, 2 * total)
      assert.isAtMost(work.scanned, limit)
    }))

  it.effect("B55: what is kept of a response grows with its length, not with its length times its deltas", () =>
    Effect.gen(function*() {
      // Snapshots of one response share the blocks that are closed; each holds one new block.
      const blocks = 50
      const list: ReadonlyArray<StreamFn.StreamEvent> = [
        { type: "start" },
        ...Array.from({ length: blocks }, (_, contentIndex): ReadonlyArray<StreamFn.StreamEvent> => [
          { type: "toolcall_start", contentIndex, id: `a${contentIndex}`, name: "write" },
          ...Array.from({ length: 10 }, (_, n) => ({
            type: "toolcall_delta",
            contentIndex,
            delta: n === 0 ? "{\"x\":[0" : n === 9 ? "]}" : ",1"
          } as const)),
          { type: "toolcall_end", contentIndex }
        ]).flat(),
        { type: "done", stopReason: "toolUse" }
      ]
      const { tool } = counting()
      const scene = yield* play({ responses: [events(list), fine], tools: [tool] })
      const kept = new Set(
        ofType(scene.events, "message_update").flatMap(({ message }) =>
          message.content.filter(({ type }) => type === "toolCall")
        )
      )
      assert.isAtMost(kept.size, list.length)
    }))

  const interleaved = (
    middle: ReadonlyArray<unknown>
  ): ReadonlyArray<StreamFn.StreamEvent> => [
    { type: "start" },
    { type: "toolcall_start", contentIndex: 0, id: "a", name: "write" },
    { type: "toolcall_start", contentIndex: 1, id: "b", name: "write" },
    { type: "toolcall_delta", contentIndex: 0, delta: "{\"n\":" },
    { type: "toolcall_delta", contentIndex: 1, delta: "{\"n\"" },
    ...middle.map(lie<StreamFn.StreamEvent>),
    { type: "toolcall_delta", contentIndex: 1, delta: ":2}" },
    { type: "toolcall_delta", contentIndex: 0, delta: "1}" },
    { type: "toolcall_end", contentIndex: 1 },
    { type: "toolcall_end", contentIndex: 0 },
    { type: "done", stopReason: "toolUse" }
  ]

  for (const mode of modes) {
    it.effect(`B56: calls whose deltas interleave are two clean calls, ${mode}`, () =>
      Effect.gen(function*() {
        const { ran, tool } = counting()
        const scene = yield* play({
          responses: [events(interleaved([])), fine],
          tools: [tool],
          options: { toolExecution: mode }
        })
        assert.deepStrictEqual([scene.shape, ran], ["U A[a,b] R(a) R(b) A", [{ n: 1 }, { n: 2 }]])
      }))
  }

  const broken: ReadonlyArray<[name: string, middle: ReadonlyArray<unknown>]> = [
    ["a block that opens again under another id", [{
      type: "toolcall_start",
      contentIndex: 0,
      id: "c",
      name: "write"
    }]],
    ["a delta without an index", [{ type: "toolcall_delta", delta: "9" }]],
    ["a delta with the index null", [{ type: "toolcall_delta", contentIndex: null, delta: "9" }]],
    ["a delta with the index -1", [{ type: "toolcall_delta", contentIndex: -1, delta: "9" }]],
    ["a delta with the index NaN", [{ type: "toolcall_delta", contentIndex: NaN, delta: "9" }]],
    ["a delta with the index of nobody", [{ type: "toolcall_delta", contentIndex: 2, delta: "9" }]],
    ["a delta with a name as index", [{ type: "toolcall_delta", contentIndex: "length", delta: "9" }]],
    ["a start without an index", [{ type: "toolcall_start", id: "c", name: "write" }]]
  ]
  for (const [name, middle] of broken) {
    it.effect(`B56: ${name} is a typed error of the stream, and nothing runs`, () =>
      Effect.gen(function*() {
        const { ran, tool } = counting()
        const scene = yield* play({
          responses: [events(interleaved(middle)), fine],
          tools: [tool],
          prompts: ["go", "again"]
        })
        const { outcome } = scene.runs[0]!
        assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
        assert.strictEqual(outcome.error.reason, "ProtocolViolation")
        assert.deepStrictEqual([scene.shape, ran], ["U A[a,b]{error} U A", []])
        assert.deepStrictEqual(
          scene.messages.flatMap(Messages.toolCalls).map(({ argumentsText }) => argumentsText),
          ["{\"n\":", "{\"n\""]
        )
      }))
  }

  it.effect("B56: an id is fixed when the block opens: parsed arguments of one call are not those of another", () =>
    Effect.gen(function*() {
      const { ran, tool } = counting()
      const scene = yield* play({
        responses: [
          events([
            { type: "start" },
            { type: "toolcall_start", contentIndex: 0, id: "a", name: "write" },
            { type: "toolcall_start", contentIndex: 1, id: "b", name: "write" },
            { type: "toolcall_delta", contentIndex: 0, delta: "{\"n\":7" },
            { type: "toolcall_end", contentIndex: 1, arguments: { n: 2 } },
            { type: "toolcall_end", contentIndex: 0, arguments: { n: 1 } },
            { type: "done", stopReason: "toolUse" }
          ]),
          fine
        ],
        tools: [tool]
      })
      assert.deepStrictEqual([scene.shape, ran], ["U A[a,b] R(a) R(b) A", [{ n: 1 }, { n: 2 }]])
    }))
})
