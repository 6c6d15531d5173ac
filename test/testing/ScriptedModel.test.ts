import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ModelError } from "../../src/Errors.ts"
import * as Messages from "../../src/Messages.ts"
import { type StreamEvent, StreamFn, type StreamRequest, unknownModel } from "../../src/StreamFn.ts"
import { ScriptedModel } from "../../src/testing/index.ts"

const request = (overrides?: Partial<StreamRequest>): StreamRequest => ({
  model: unknownModel,
  messages: [Messages.user("hi")],
  tools: [],
  thinkingLevel: "off",
  toolChoice: "auto",
  apiKey: undefined,
  sessionId: undefined,
  headers: undefined,
  thinkingBudgets: undefined,
  metadata: undefined,
  ...overrides
})

const ask = (overrides?: Partial<StreamRequest>): Stream.Stream<StreamEvent, ModelError, StreamFn> =>
  Stream.unwrap(StreamFn.use((model) => Effect.succeed(model.stream(request(overrides)))))

type Arrival = readonly [at: number, events: ReadonlyArray<StreamEvent>]

/** Reads a stream and notes when each array of events came. */
const read = <R>(
  stream: Stream.Stream<StreamEvent, ModelError, R>,
  arrivals: Array<Arrival>,
  each: Effect.Effect<void> = Effect.void
): Effect.Effect<void, ModelError, R> =>
  Stream.runForEachArray(stream, (events) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      arrivals.push([now, events])
      return each
    }))

/** Plays one response to its end, with an hour to do so. */
const play = (response: ScriptedModel.Response) =>
  Effect.gen(function*() {
    const arrivals: Array<Arrival> = []
    const fiber = yield* Effect.forkChild(Effect.exit(read(ask(), arrivals)))
    yield* TestClock.adjust("1 hour")
    const exit = yield* Fiber.join(fiber)
    const [record] = yield* ScriptedModel.requests
    return { arrivals, exit, record: record! }
  }).pipe(Effect.provide(ScriptedModel.layer([response])))

const flat = (arrivals: ReadonlyArray<Arrival>): ReadonlyArray<StreamEvent> => arrivals.flatMap(([, events]) => events)

const deltas = (arrivals: ReadonlyArray<Arrival>): ReadonlyArray<readonly [number, string]> =>
  arrivals.flatMap(([at, events]) => events.flatMap((event) => "delta" in event ? [[at, event.delta] as const] : []))

/** Which events came together. */
const types = (arrivals: ReadonlyArray<Arrival>): ReadonlyArray<readonly [number, string]> =>
  arrivals.map(([at, events]) => [at, events.map(({ type }) => type).join(" ")])

const defect = <A, E>(exit: Exit.Exit<A, E>): unknown =>
  Exit.isFailure(exit) ? exit.cause.reasons.find(Cause.isDieReason)?.defect : undefined

const failure = <A, E>(exit: Exit.Exit<A, E>): E | undefined =>
  Exit.isFailure(exit) ? exit.cause.reasons.find(Cause.isFailReason)?.error : undefined

describe("ScriptedModel", () => {
  describe("text", () => {
    it.effect("comes as one array when nothing takes time", () =>
      Effect.gen(function*() {
        const { arrivals, exit, record } = yield* play(ScriptedModel.text("fine"))
        assert.deepStrictEqual(arrivals, [[0, [
          { type: "start" },
          { type: "text_start", contentIndex: 0 },
          { type: "text_delta", contentIndex: 0, delta: "fine" },
          { type: "text_end", contentIndex: 0 },
          { type: "done", stopReason: "stop" }
        ]]])
        assert.isTrue(Exit.isSuccess(exit))
        assert.strictEqual(record.outcome, "ended")
      }))

    it.effect("has exact times", () =>
      Effect.gen(function*() {
        const { arrivals, record } = yield* play(
          ScriptedModel.text("fine", { after: "200 millis", chunks: 3, every: "50 millis" })
        )
        assert.deepStrictEqual(arrivals, [
          [200, [
            { type: "start" },
            { type: "text_start", contentIndex: 0 },
            { type: "text_delta", contentIndex: 0, delta: "f" }
          ]],
          [250, [{ type: "text_delta", contentIndex: 0, delta: "i" }]],
          [300, [
            { type: "text_delta", contentIndex: 0, delta: "ne" },
            { type: "text_end", contentIndex: 0 },
            { type: "done", stopReason: "stop" }
          ]]
        ])
        assert.strictEqual(record.endedAt, 300)
      }))

    it.effect("thinks first", () =>
      Effect.gen(function*() {
        const { arrivals } = yield* play(ScriptedModel.text("ok", { thinking: "hm, well", chunks: 2, every: 10 }))
        assert.deepStrictEqual(deltas(arrivals), [[0, "hm, well"], [10, "o"], [20, "k"]])
        assert.deepStrictEqual(flat(arrivals).map(({ type }) => type), [
          "start",
          "thinking_start",
          "thinking_delta",
          "thinking_end",
          "text_start",
          "text_delta",
          "text_delta",
          "text_end",
          "done"
        ])
        assert.deepStrictEqual(
          flat(arrivals).flatMap((event) => "contentIndex" in event ? [event.contentIndex] : []),
          [0, 0, 0, 1, 1, 1, 1]
        )
      }))

    it.effect("is never cut inside a character, nor in more pieces than it has characters", () =>
      Effect.gen(function*() {
        const { arrivals } = yield* play(ScriptedModel.text("a😀b", { chunks: 9, every: 10 }))
        assert.deepStrictEqual(deltas(arrivals), [[0, "a"], [10, "😀"], [20, "b"]])
      }))

    it.effect("may be empty", () =>
      Effect.gen(function*() {
        const { arrivals } = yield* play(ScriptedModel.text("", { after: 5, every: 0, chunks: 2 }))
        assert.deepStrictEqual(types(arrivals), [[5, "start text_start text_end done"]])
      }))

    it.effect("ends with the stop reason and usage it was given, totals added up", () =>
      Effect.gen(function*() {
        const { arrivals } = yield* play(ScriptedModel.text("cut", {
          stopReason: "length",
          usage: { input: 10, output: 4, cacheRead: 1, cacheWrite: 2, reasoning: 3, cost: { input: 0.5, output: 0.25 } }
        }))
        assert.deepStrictEqual(flat(arrivals).at(-1), {
          type: "done",
          stopReason: "length",
          usage: {
            input: 10,
            output: 4,
            cacheRead: 1,
            cacheWrite: 2,
            reasoning: 3,
            totalTokens: 17,
            cost: { input: 0.5, output: 0.25, cacheRead: 0, cacheWrite: 0, total: 0.75 }
          }
        })
      }))

    it.effect("keeps totals that were given", () =>
      Effect.gen(function*() {
        const { arrivals } = yield* play(
          ScriptedModel.text("x", { usage: { input: 1, cacheWrite1h: 2, totalTokens: 100, cost: { total: 7 } } })
        )
        const end = flat(arrivals).at(-1)
        assert(end?.type === "done")
        assert.deepStrictEqual([end.usage?.totalTokens, end.usage?.cost.total, end.usage?.cacheWrite1h], [100, 7, 2])
      }))

    it.effect("reports `error` and `aborted` with an `error` event", () =>
      Effect.gen(function*() {
        for (const stopReason of ["error", "aborted"] as const) {
          const { arrivals, exit } = yield* play(ScriptedModel.text("so f", { stopReason }))
          assert.deepStrictEqual(flat(arrivals).at(-1), { type: "error", stopReason })
          assert.isTrue(Exit.isSuccess(exit))
        }
      }))
  })

  describe("calls", () => {
    it.effect("streams the arguments as JSON text", () =>
      Effect.gen(function*() {
        const { arrivals } = yield* play(
          ScriptedModel.calls([["a", "read", { path: "x" }], ["b", "list", {}]], { after: "200 millis" })
        )
        assert.deepStrictEqual(arrivals, [[200, [
          { type: "start" },
          { type: "toolcall_start", contentIndex: 0, id: "a", name: "read" },
          { type: "toolcall_delta", contentIndex: 0, delta: "{\"path\":\"x\"}" },
          { type: "toolcall_end", contentIndex: 0 },
          { type: "toolcall_start", contentIndex: 1, id: "b", name: "list" },
          { type: "toolcall_delta", contentIndex: 1, delta: "{}" },
          { type: "toolcall_end", contentIndex: 1 },
          { type: "done", stopReason: "toolUse" }
        ]]])
      }))

    it.effect("streams call after call, one delta a step, after thinking and text", () =>
      Effect.gen(function*() {
        const { arrivals } = yield* play(ScriptedModel.calls([["a", "t", { n: 1 }], ["b", "t", {}]], {
          thinking: "hm",
          text: "Let me look",
          chunks: 2,
          every: "1 second",
          stopReason: "length"
        }))
        assert.deepStrictEqual(deltas(arrivals), [
          [0, "hm"],
          [1000, "Let me look"],
          [2000, "{\"n"],
          [3000, "\":1}"],
          [4000, "{"],
          [5000, "}"]
        ])
        assert.deepStrictEqual(flat(arrivals).at(-1), { type: "done", stopReason: "length" })
      }))

    it.effect("streams a string as it is, an empty one without a delta", () =>
      Effect.gen(function*() {
        const { arrivals } = yield* play(
          ScriptedModel.calls([["a", "t", "{\"n\": "], ["b", "t", ""], ["c", "t", "[]"]], {
            every: 10
          })
        )
        assert.deepStrictEqual(deltas(arrivals), [[0, "{\"n\": "], [20, "[]"]])
        assert.deepStrictEqual(types(arrivals)[1], [10, "toolcall_start toolcall_end"])
      }))
  })

  describe("error", () => {
    it.effect("fails the stream when its time has come", () =>
      Effect.gen(function*() {
        const { arrivals, exit, record } = yield* play(ScriptedModel.error("slow down", {
          after: "3 seconds",
          reason: "RateLimited",
          retryAfter: "30 seconds"
        }))
        assert.deepStrictEqual(arrivals, [])
        const error = failure(exit)
        assert.instanceOf(error, ModelError)
        assert.deepStrictEqual([error.reason, error.message, error.retryAfter], ["RateLimited", "slow down", 30_000])
        assert.deepStrictEqual([record.outcome, record.endedAt], ["failed", 3000])
      }))

    it.effect("keeps the text that came before it open, and comes one step after it", () =>
      Effect.gen(function*() {
        const { arrivals, exit, record } = yield* play(
          ScriptedModel.error("reset", { partial: "so far", after: 100, chunks: 2, every: 10 })
        )
        assert.deepStrictEqual(arrivals, [
          [100, [
            { type: "start" },
            { type: "text_start", contentIndex: 0 },
            { type: "text_delta", contentIndex: 0, delta: "so " }
          ]],
          [110, [{ type: "text_delta", contentIndex: 0, delta: "far" }]]
        ])
        assert.strictEqual(failure(exit)?.reason, "Unknown")
        assert.strictEqual(record.endedAt, 120)
      }))
  })

  describe("hang", () => {
    it.effect("never ends, and records that it was interrupted", () =>
      Effect.gen(function*() {
        const arrivals: Array<Arrival> = []
        const fiber = yield* Effect.forkChild(read(ask(), arrivals))
        yield* TestClock.adjust("1 day")
        assert.deepStrictEqual(deltas(arrivals), [[20, "Let me"]])
        assert.isUndefined(fiber.pollUnsafe())
        const [before] = yield* ScriptedModel.requests
        assert.deepStrictEqual([before!.outcome, before!.endedAt], ["open", undefined])
        yield* Fiber.interrupt(fiber)
        const [after] = yield* ScriptedModel.requests
        assert.deepStrictEqual([after!.outcome, after!.endedAt], ["interrupted", 86_400_000])
        assert.strictEqual(before!.outcome, "open")
      }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.hang({ partial: "Let me", after: 20 })]))))

    it.effect("may say nothing", () =>
      Effect.gen(function*() {
        const arrivals: Array<Arrival> = []
        const fiber = yield* Effect.forkChild(read(ask(), arrivals))
        yield* TestClock.adjust("1 day")
        assert.deepStrictEqual(arrivals, [])
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.hang()]))))
  })

  describe("events", () => {
    it.effect("plays any events and ends after the last one", () =>
      Effect.gen(function*() {
        const { arrivals, exit, record } = yield* play(ScriptedModel.events([
          { type: "start", responseId: "r1" },
          { type: "start" },
          { at: "10 millis", type: "text_delta", contentIndex: 7, delta: "x" },
          { type: "toolcall_end", contentIndex: 3, arguments: [1] },
          { at: 30, type: "text_start", contentIndex: 0 }
        ]))
        assert.deepStrictEqual(arrivals, [
          [0, [{ type: "start", responseId: "r1" }, { type: "start" }]],
          [10, [
            { type: "text_delta", contentIndex: 7, delta: "x" },
            { type: "toolcall_end", contentIndex: 3, arguments: [1] }
          ]],
          [30, [{ type: "text_start", contentIndex: 0 }]]
        ])
        assert.isTrue(Exit.isSuccess(exit))
        assert.deepStrictEqual([record.outcome, record.endedAt], ["ended", 30])
      }))

    it.effect("ends at once without events", () =>
      Effect.gen(function*() {
        const { arrivals, exit } = yield* play(ScriptedModel.events([]))
        assert.deepStrictEqual(arrivals, [])
        assert.isTrue(Exit.isSuccess(exit))
      }))

    it.effect("stays open or fails if told so", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(read(ask(), []))
        yield* TestClock.adjust("1 hour")
        assert.isUndefined(fiber.pollUnsafe())
        yield* Fiber.interrupt(fiber)
        const error = new ModelError({ reason: "Network", message: "reset" })
        const { arrivals, exit, record } = yield* play(
          ScriptedModel.events([{ type: "start" }, { at: 10, type: "text_start", contentIndex: 0 }], { error })
        )
        assert.lengthOf(arrivals, 2)
        assert.strictEqual(failure(exit), error)
        assert.deepStrictEqual([record.outcome, record.endedAt! - record.at], ["failed", 10])
      }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.events([{ type: "start" }], { open: true })]))))
  })

  it.effect("does not wait for a slow reader", () =>
    Effect.gen(function*() {
      const arrivals: Array<Arrival> = []
      const fiber = yield* Effect.forkChild(read(ask(), arrivals, Effect.sleep("25 millis")))
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(deltas(arrivals), [[0, "a"], [25, "b"], [25, "c"], [50, "d"], [50, "e"], [50, "f"]])
      assert.deepStrictEqual(arrivals.map(([at]) => at), [0, 25, 50])
    }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.text("abcdef", { chunks: 6, every: "10 millis" })]))))

  describe("layer", () => {
    const first = ScriptedModel.text("first")
    const second = ScriptedModel.text("second")

    const answers = (n: number) =>
      Effect.forEach(
        Array.from({ length: n }),
        () => Effect.map(Stream.runCollect(ask()), (events) => deltas([[0, events]]).map(([, delta]) => delta).join(""))
      )

    it.effect("answers in order, from the first response in every build", () =>
      Effect.gen(function*() {
        const layer = ScriptedModel.layer([first, second, first])
        assert.deepStrictEqual(yield* Effect.provide(answers(3), layer), ["first", "second", "first"])
        assert.deepStrictEqual(yield* Effect.provide(answers(2), layer), ["first", "second"])
      }))

    it.effect("is not changed by what happens to the given list", () =>
      Effect.gen(function*() {
        const script = [first]
        const layer = ScriptedModel.layer(script)
        const [answer] = yield* Effect.provide(
          Effect.suspend(() => {
            script.length = 0
            return answers(1)
          }),
          layer
        )
        assert.strictEqual(answer, "first")
      }))

    it.effect("takes a response when a stream is run, not when it is made", () =>
      Effect.gen(function*() {
        const model = yield* StreamFn
        assert.isTrue(Stream.isStream(model.stream(request())))
        const stream = model.stream(request())
        const run = Effect.map(Stream.runCollect(stream), (events) => deltas([[0, events]]))
        assert.deepStrictEqual(yield* run, [[0, "first"]])
        assert.deepStrictEqual(yield* run, [[0, "second"]])
        yield* ScriptedModel.assertComplete
      }).pipe(Effect.provide(ScriptedModel.layer([first, second]))))

    it.effect("plays concurrent responses side by side", () =>
      Effect.gen(function*() {
        const one: Array<Arrival> = []
        const two: Array<Arrival> = []
        yield* Effect.forkChild(read(ask(), one))
        yield* TestClock.adjust("5 millis")
        yield* Effect.forkChild(read(ask(), two))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(deltas(one), [[0, "a"], [10, "b"]])
        assert.deepStrictEqual(deltas(two), [[5, "c"], [15, "d"]])
      }).pipe(Effect.provide(ScriptedModel.layer([
        ScriptedModel.text("ab", { chunks: 2, every: 10 }),
        ScriptedModel.text("cd", { chunks: 2, every: 10 })
      ]))))
  })

  describe("responder", () => {
    it.effect("makes the response of its place from the request", () =>
      Effect.gen(function*() {
        yield* Stream.runDrain(ask())
        const events = yield* Stream.runCollect(ask({ messages: [Messages.user("echo"), Messages.user("this")] }))
        assert.deepStrictEqual(deltas([[0, events]]), [[0, "1: echo this"]])
        yield* ScriptedModel.assertComplete
      }).pipe(Effect.provide(ScriptedModel.layer([
        ScriptedModel.text("first"),
        ({ messages }, index) => ScriptedModel.text(`${index}: ${messages.map(Messages.text).join(" ")}`)
      ]))))

    it.effect("may take its time: the response begins afterwards", () =>
      Effect.gen(function*() {
        const arrivals: Array<Arrival> = []
        const fiber = yield* Effect.forkChild(read(ask(), arrivals))
        yield* TestClock.adjust("1 hour")
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(deltas(arrivals), [[1020, "a"], [1030, "b"]])
        assert.strictEqual((yield* ScriptedModel.requests)[0]!.at, 0)
      }).pipe(Effect.provide(ScriptedModel.layer([
        () => Effect.as(Effect.sleep("1 second"), ScriptedModel.text("ab", { after: 20, chunks: 2, every: 10 }))
      ]))))

    it.effect("is interrupted with its request", () =>
      Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(read(ask(), []))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        assert.strictEqual((yield* ScriptedModel.requests)[0]!.outcome, "interrupted")
      }).pipe(Effect.provide(ScriptedModel.layer([() => Effect.never]))))

    it.effect("fails or dies with the stream", () =>
      Effect.gen(function*() {
        const error = new ModelError({ reason: "Overloaded", message: "busy" })
        const play = (responder: ScriptedModel.Responder) =>
          Effect.gen(function*() {
            const exit = yield* Effect.exit(Stream.runDrain(ask()))
            const [record] = yield* ScriptedModel.requests
            return [exit, record!.outcome] as const
          }).pipe(Effect.provide(ScriptedModel.layer([responder])))
        const [failed, outcome] = yield* play(() => Effect.fail(error))
        assert.strictEqual(failure(failed), error)
        assert.strictEqual(outcome, "failed")
        const bug = new Error("bug")
        const [died, outcomeOfBug] = yield* play(() => {
          throw bug
        })
        assert.strictEqual(defect(died), bug)
        assert.strictEqual(outcomeOfBug, "failed")
      }))

    it.effect("may answer everything beyond the script", () =>
      Effect.gen(function*() {
        const texts: Array<string> = []
        for (let n = 0; n < 3; n++) {
          texts.push(...deltas([[0, yield* Stream.runCollect(ask())]]).map(([, delta]) => delta))
        }
        assert.deepStrictEqual(texts, ["scripted", "number 1", "number 2"])
        yield* ScriptedModel.assertComplete
      }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.text("scripted")], {
        otherwise: (_, index) => ScriptedModel.text(`number ${index}`)
      }))))
  })

  describe("assertComplete", () => {
    it.effect("dies with the first request that was not expected", () =>
      Effect.gen(function*() {
        yield* Stream.runDrain(ask())
        yield* ScriptedModel.assertComplete
        const messages = [Messages.user("hi"), Messages.toolResult({ id: "a", name: "read" }, "line one\nline two")]
        const exit = yield* Effect.exit(Stream.runDrain(ask({ messages })))
        yield* Effect.exit(Stream.runDrain(ask({ messages: [] })))
        const message =
          "Request 2 was not expected: 1 response was scripted; its last message: R(a) \"line one\\nline two\""
        const error = failure(exit)
        assert.instanceOf(error, ModelError)
        assert.deepStrictEqual([error.reason, error.message], ["InvalidRequest", message])
        const unexpected = defect(yield* Effect.exit(ScriptedModel.assertComplete))
        assert.instanceOf(unexpected, ScriptedModel.UnexpectedRequest)
        assert.strictEqual(unexpected, error.cause)
        assert.deepStrictEqual([unexpected.index, unexpected.scripted, unexpected.message], [1, 1, message])
        assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ outcome }) => outcome), [
          "ended",
          "failed",
          "failed"
        ])
      }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.text("fine")]))))

    it.effect("says so when the request has no messages and the script no responses", () =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(Stream.runDrain(ask({ messages: [] })))
        assert.strictEqual(
          failure(exit)?.message,
          "Request 1 was not expected: 0 responses were scripted; it has no messages"
        )
      }).pipe(Effect.provide(ScriptedModel.layer([]))))

    it.effect("dies with the responses that were not asked for", () =>
      Effect.gen(function*() {
        yield* Stream.runDrain(ask())
        const unused = defect(yield* Effect.exit(ScriptedModel.assertComplete))
        assert.instanceOf(unused, ScriptedModel.UnusedResponses)
        assert.strictEqual(
          unused.message,
          "7 of 8 scripted responses were not asked for: 2. text(\"a\\nb\"), 3. calls(x: read, y: write), " +
            "4. error(\"boom\"), 5. hang(), 6. events(start, done) and 2 more"
        )
        assert.deepStrictEqual(unused.unused.slice(5), ["responder", "hang(\"so far\")"])
      }).pipe(Effect.provide(ScriptedModel.layer([
        ScriptedModel.text("used"),
        ScriptedModel.text("a\nb"),
        ScriptedModel.calls([["x", "read", {}], ["y", "write", {}]]),
        ScriptedModel.error("boom"),
        ScriptedModel.hang(),
        ScriptedModel.events([{ type: "start" }, { type: "done" }]),
        () => ScriptedModel.text("never"),
        ScriptedModel.hang({ partial: "so far" })
      ]))))

    it.effect("speaks of one response in the singular, and cuts long texts", () =>
      Effect.gen(function*() {
        const unused = defect(yield* Effect.exit(ScriptedModel.assertComplete))
        assert.instanceOf(unused, ScriptedModel.UnusedResponses)
        assert.strictEqual(
          unused.message,
          `1 of 1 scripted responses was not asked for: 1. text("${"x".repeat(40)}…")`
        )
      }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.text("x".repeat(1000))]))))
  })

  describe("requests", () => {
    it.effect("are copies of what was asked", () =>
      Effect.gen(function*() {
        const messages = [Messages.user("one")]
        const tools = [{ name: "read", description: "", parameters: {} }]
        const asked = request({
          messages,
          tools,
          model: { id: "m1" },
          thinkingLevel: "high",
          sessionId: "s",
          headers: { a: "b" }
        })
        const model = yield* StreamFn
        yield* TestClock.adjust("3 seconds")
        yield* Stream.runDrain(model.stream(asked))
        messages.push(Messages.user("two"))
        tools.length = 0
        const [record, ...others] = yield* ScriptedModel.requests
        assert.lengthOf(others, 0)
        assert.deepStrictEqual(record, {
          ...asked,
          index: 0,
          at: 3000,
          messages: [Messages.user("one")],
          tools: [{ name: "read", description: "", parameters: {} }],
          outcome: "ended",
          endedAt: 3000
        })
        assert.isTrue(Object.isFrozen(record) && Object.isFrozen(record!.messages) && Object.isFrozen(record!.tools))
      }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.text("fine")]))))

    it.effect("tell an abort in the middle from one after the end", () =>
      Effect.gen(function*() {
        for (const reader of [Effect.void, Effect.never]) {
          const fiber = yield* Effect.forkChild(read(ask(), [], reader))
          yield* TestClock.adjust("15 millis")
          yield* Fiber.interrupt(fiber)
        }
        const late = yield* Effect.forkChild(read(ask(), [], Effect.never))
        yield* TestClock.adjust("15 millis")
        yield* Fiber.interrupt(late)
        assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ endedAt, outcome }) => [outcome, endedAt]), [
          ["interrupted", 15],
          ["interrupted", 30],
          ["ended", 45]
        ])
      }).pipe(Effect.provide(ScriptedModel.layer([
        ScriptedModel.text("abc", { chunks: 3, every: "10 millis" }),
        ScriptedModel.text("abc", { chunks: 3, every: "10 millis" }),
        ScriptedModel.text("abc")
      ]))))

    it.effect("call it an end when the reader stops early", () =>
      Effect.gen(function*() {
        yield* Stream.runDrain(Stream.take(ask(), 1))
        assert.strictEqual((yield* ScriptedModel.requests)[0]!.outcome, "ended")
      }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.text("abc", { chunks: 3, every: "10 millis" })]))))
  })

  it.effect("can be made without a layer", () =>
    Effect.gen(function*() {
      const model = yield* ScriptedModel.make([ScriptedModel.text("fine")])
      const events = yield* Stream.runCollect(model.stream(request()))
      assert.lengthOf(events, 5)
      yield* model.assertComplete
      assert.lengthOf(yield* model.requests, 1)
    }))

  describe("refuses", () => {
    const invalid = (make: () => unknown): string => {
      try {
        make()
      } catch (error) {
        assert.instanceOf(error, ScriptedModel.InvalidScript)
        return error.message
      }
      throw new Error("was accepted")
    }

    it("no calls", () => {
      assert.strictEqual(
        invalid(() => ScriptedModel.calls([])),
        "ScriptedModel.calls: there are no calls; a response without calls is a `text`"
      )
    })

    it("numbers of chunks that are none", () => {
      for (const chunks of [0, -1, 1.5, NaN, Infinity]) {
        const message = `: \`chunks\` is ${chunks}; it must be a whole number of at least 1`
        assert.strictEqual(invalid(() => ScriptedModel.text("x", { chunks })), `ScriptedModel.text${message}`)
        assert.strictEqual(
          invalid(() => ScriptedModel.calls([["a", "t", {}]], { chunks })),
          `ScriptedModel.calls${message}`
        )
        assert.strictEqual(invalid(() => ScriptedModel.error("x", { chunks })), `ScriptedModel.error${message}`)
        assert.strictEqual(invalid(() => ScriptedModel.hang({ chunks })), `ScriptedModel.hang${message}`)
      }
    })

    it("times that are none", () => {
      for (const time of [-1, NaN, Infinity, "-1 seconds", "Infinity"] as const) {
        assert.include(invalid(() => ScriptedModel.text("x", { after: time })), "ScriptedModel.text: `after` is ")
        assert.include(invalid(() => ScriptedModel.text("x", { every: time })), "ScriptedModel.text: `every` is ")
        assert.include(
          invalid(() => ScriptedModel.error("x", { retryAfter: time })),
          "ScriptedModel.error: `retryAfter` is "
        )
        assert.include(
          invalid(() => ScriptedModel.events([{ type: "start" }, { type: "done", at: time }])),
          "ScriptedModel.events: `events[1].at` is "
        )
      }
      assert.strictEqual(
        invalid(() => ScriptedModel.hang({ after: "-1 seconds" })),
        "ScriptedModel.hang: `after` is \"-1 seconds\"; it must be a finite duration of at least 0"
      )
      // @ts-expect-error not a duration
      assert.include(invalid(() => ScriptedModel.hang({ after: "soon" })), "`after` is \"soon\"")
    })

    it("time that runs backwards", () => {
      assert.strictEqual(
        invalid(() => ScriptedModel.events([{ type: "start", at: 20 }, { type: "done", at: "10 millis" }])),
        "ScriptedModel.events: event 1 (done) is due at 10 ms, the one before it at 20 ms"
      )
    })

    it("a stream that stays open and fails", () => {
      const error = new ModelError({ reason: "Network", message: "reset" })
      assert.include(invalid(() => ScriptedModel.events([], { open: true, error })), "cannot stay `open`")
    })

    it("usages that are none", () => {
      const bad: ReadonlyArray<readonly [string, ScriptedModel.ScriptedUsage]> = [
        ["usage.input", { input: -1 }],
        ["usage.output", { output: NaN }],
        ["usage.reasoning", { reasoning: Infinity }],
        ["usage.cacheWrite1h", { cacheWrite1h: -1 }],
        ["usage.totalTokens", { totalTokens: -1 }],
        ["usage.cost.cacheRead", { cost: { cacheRead: -1 } }],
        ["usage.cost.total", { cost: { total: NaN } }]
      ]
      for (const [path, usage] of bad) {
        assert.include(invalid(() => ScriptedModel.text("x", { usage })), `ScriptedModel.text: \`${path}\` is `)
      }
    })

    it.effect("the response of a responder, as a defect", () =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(Stream.runDrain(ask()))
        assert.instanceOf(defect(exit), ScriptedModel.InvalidScript)
      }).pipe(Effect.provide(ScriptedModel.layer([() => ScriptedModel.calls([])]))))
  })
})
