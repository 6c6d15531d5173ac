/** How long the model's stream may keep silent: to its first event, and between events. */
import { assert, describe } from "@effect/vitest"
import { Channel, Effect, Fiber, Scope, Stream } from "effect"
import { Errors, type StreamFn } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { nothingLives, pass, subscribe, test } from "./utils/leaks.ts"
import { lastResponse, makeTrial, type Setting, settings } from "./utils/trial.ts"

const fine = ScriptedModel.text("fine")

const deafFor = (millis: number) => Effect.uninterruptible(Effect.sleep(millis))

const start: ReadonlyArray<StreamFn.StreamEvent> = [
  { type: "start" },
  { type: "text_start", contentIndex: 0 },
  { type: "text_delta", contentIndex: 0, delta: "hel" }
]

const first = { firstEventTimeout: "30 seconds" } as const

const pause = { eventTimeout: "60 seconds" } as const

type Streaming = NonNullable<Setting["wrap"]>

/** Only the first request is answered in another way. */
const firstTime = (streaming: Streaming): Streaming => {
  let requests = 0
  return (scripted, request) => ++requests === 1 ? streaming(scripted, request) : scripted
}

const half: Stream.Stream<StreamFn.StreamEvent> = Stream.fromArray(start)

describe("The model's silence", () => {
  interface Case {
    readonly name: string
    readonly options: Setting
    readonly stream: Streaming
    /** Milliseconds. */
    readonly at: number
    readonly text: string
    readonly message: string
    /** Whether it stops when it is interrupted. */
    readonly stops: boolean
  }
  const noEvent = "The model's stream gave no event within 30000 ms"
  const paused = "The model's stream paused for more than 60000 ms"
  const silent = { options: first, at: 30_000, text: "", message: noEvent } as const
  const stuck = { options: pause, at: 60_000, text: "hel", message: paused } as const
  const cases: ReadonlyArray<Case> = [
    { ...silent, name: "silence from the start", stream: () => Stream.never, stops: true },
    { ...silent, name: "a connection that never stands", stops: true, stream: () => Stream.unwrap(Effect.never) },
    {
      ...silent,
      name: "silence behind a connection that took a part of the time",
      stops: true,
      stream: () => Stream.fromPull(Effect.as(Effect.sleep(20_000), Effect.never))
    },
    {
      ...silent,
      name: "a deaf connection",
      stops: false,
      stream: (scripted) => Stream.unwrap(Effect.as(deafFor(600_000), scripted))
    },
    {
      ...silent,
      name: "deaf silence from the start",
      stops: false,
      stream: () => Stream.fromEffectDrain(deafFor(600_000))
    },
    {
      ...silent,
      name: "silence with a slow end of the connection",
      stops: false,
      stream: () => Stream.ensuring(Stream.never, Effect.sleep(600_000))
    },
    {
      ...silent,
      name: "silence with a slow end of its scope",
      stops: false,
      stream: () =>
        Stream.fromChannel(
          Channel.fromTransform((_, scope) => Effect.as(Scope.addFinalizer(scope, Effect.sleep(600_000)), Effect.never))
        )
    },
    { ...stuck, name: "silence in the middle", stops: true, stream: () => Stream.concat(half, Stream.never) },
    {
      ...stuck,
      name: "deaf silence in the middle",
      stops: false,
      stream: () => Stream.concat(half, Stream.fromEffectDrain(deafFor(600_000)))
    },
    {
      ...stuck,
      name: "silence in the middle with a slow end of the connection",
      stops: false,
      stream: () => Stream.ensuring(Stream.concat(half, Stream.never), Effect.sleep(600_000))
    },
    {
      ...stuck,
      name: "silence in the middle, both times given",
      options: { ...first, ...pause },
      stops: true,
      stream: () => Stream.concat(half, Stream.never)
    }
  ]
  for (const [setting, of] of settings.slice(0, 4)) {
    for (const { at, message, name, options, stops, stream, text } of cases) {
      test(`B92, M4: ${name}, ${setting}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ ...of, ...options, wrap: firstTime(stream), otherwise: fine })
          const run = yield* trial.start()
          yield* pass(at - 1)
          assert.isUndefined(run.pollUnsafe())
          yield* pass(1)
          // What is left of a deaf stream is awaited at the end of the run, within the grace.
          if (!stops) yield* pass(1000)
          const [{ messages, outcome }, settledAt] = yield* Fiber.join(run)
          if (stops) yield* nothingLives
          assert.strictEqual(settledAt, stops ? at : at + 1000)
          assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
          const { error } = outcome
          assert.deepStrictEqual([error.reason, error.message, error.isRetryable], ["Timeout", message, true])
          assert.strictEqual(yield* trial.shape, "U A{error}")
          const { content, errorMessage } = lastResponse(messages)
          assert.deepStrictEqual([content, errorMessage], [text === "" ? [] : [{ type: "text", text }], message])
          yield* trial.nothingFollows
          assert.strictEqual((yield* trial.run("again")).outcome._tag, "Completed")
          assert.strictEqual(yield* trial.shape, "U A{error} U A")
        }))

      test(`B92, A2: an abort before that is an abort: ${name}, ${setting}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ ...of, ...options, wrap: firstTime(stream), otherwise: fine })
          const run = yield* trial.start()
          yield* pass(at - 1)
          const { messages } = yield* trial.abort(run, stops ? 0 : 1000)
          assert.strictEqual(yield* trial.shape, "U A{aborted}")
          assert.strictEqual(lastResponse(messages).errorMessage, "Request was aborted")
          yield* trial.nothingFollows
        }))

      if (stops) continue
      test(`B92, I3: an abort while what is left is awaited changes nothing: ${name}, ${setting}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({ ...of, ...options, wrap: firstTime(stream), otherwise: fine })
          const run = yield* trial.start()
          yield* pass(at + 500)
          const abort = yield* Effect.forkChild(trial.agent.abort)
          yield* pass(1000)
          yield* Fiber.join(abort)
          const [{ outcome }] = yield* Fiber.join(run)
          assert.strictEqual(yield* trial.shape, "U A{error}")
          if (trial.watched) assert.lengthOf(trial.heard("agent_end"), 1)
          assert.include(["Failed", "Aborted"], outcome._tag)
          yield* trial.nothingFollows
        }))
    }

    test(`B92: a slow but steady stream is not cut, ${setting}`, () =>
      Effect.gen(function*() {
        const chunks = 61
        const trial = yield* makeTrial({
          ...of,
          ...first,
          ...pause,
          responses: [ScriptedModel.text("x".repeat(chunks), { after: "29 seconds", chunks, every: "59 seconds" })]
        })
        const run = yield* trial.start()
        yield* pass("2 hours")
        const [{ messages, outcome }, at] = yield* Fiber.join(run)
        assert.deepStrictEqual([outcome._tag, at], ["Completed", 29_000 + 60 * 59_000])
        assert.deepStrictEqual(lastResponse(messages).content, [{ type: "text", text: "x".repeat(chunks) }])
      }))

    test(`B92: the first event may take its own time, the others theirs, ${setting}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...of,
          firstEventTimeout: "10 minutes",
          eventTimeout: "1 second",
          responses: [
            ScriptedModel.text("ab", { after: "9 minutes", chunks: 2, every: "900 millis" }),
            ScriptedModel.text("ab", { after: "9 minutes", chunks: 2, every: "1100 millis" })
          ]
        })
        assert.strictEqual((yield* trial.run("1")).outcome._tag, "Completed")
        const { messages, outcome } = yield* trial.run("2")
        assert.strictEqual(outcome._tag, "Failed")
        assert.deepStrictEqual(lastResponse(messages).content, [{ type: "text", text: "a" }])
      }))

    test(`B92: only a time between events: the first one may take for ever, ${setting}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...of, ...pause, responses: [ScriptedModel.text("x", { after: "10 hours" })] })
        assert.strictEqual((yield* trial.run()).outcome._tag, "Completed")
      }))

    test(`B92: what a listener takes is no silence of the model, ${setting}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...of,
          ...first,
          ...pause,
          responses: [ScriptedModel.text("abc", { chunks: 3, every: "10 seconds" })]
        })
        yield* subscribe(
          trial.agent,
          (event) => event.type === "message_update" ? Effect.sleep("5 minutes") : undefined
        )
        const { outcome } = yield* trial.run()
        assert.strictEqual(outcome._tag, "Completed")
        assert.strictEqual(yield* trial.shape, "U A")
      }))
  }

  test("B92, L7: the end of the run's time is told apart from it", () =>
    Effect.gen(function*() {
      const trial = yield* makeTrial({
        ...first,
        limits: { duration: "29 seconds" },
        responses: [ScriptedModel.hang()]
      })
      const { outcome } = yield* trial.run()
      assert.deepStrictEqual(outcome, Errors.RunOutcome.Limited({ limit: "duration" }))
      assert.strictEqual(yield* trial.shape, "U A{aborted}")
    }))
})
