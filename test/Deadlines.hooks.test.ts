/** How long hooks may take, every kind of them. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ConvertToLlm, type Errors, Hooks, Messages } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { nothingLives, pass, test } from "./utils/leaks.ts"
import { quick } from "./utils/timedTools.ts"
import { lastResponse, makeTrial, modes, results, type Setting } from "./utils/trial.ts"

const fine = ScriptedModel.text("fine")

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

const deafFor = (millis: number) => Effect.uninterruptible(Effect.sleep(millis))

interface Kind {
  readonly name: Errors.HookName
  /** Hooks that wait the first time they are asked. */
  readonly hooks: (waits: Effect.Effect<void>) => ReadonlyArray<Hooks.Hook>
  readonly conversion?: boolean
  /** The transcript when it takes too long, and when it is aborted. */
  readonly missed: string
  readonly aborted: string
  readonly result?: boolean
}

const kinds: ReadonlyArray<Kind> = [
  {
    name: "transformContext",
    hooks: (waits) => [Hooks.transformContext((messages) => Effect.as(waits, messages))],
    missed: "U A{error}",
    aborted: "U A{aborted}"
  },
  { name: "convertToLlm", hooks: () => [], conversion: true, missed: "U A{error}", aborted: "U A{aborted}" },
  {
    name: "apiKey",
    hooks: (waits) => [Hooks.apiKey(() => Effect.as(waits, "key"))],
    missed: "U A{error}",
    aborted: "U A{aborted}"
  },
  {
    name: "prepareRequest",
    hooks: (waits) => [Hooks.prepareRequest(() => waits)],
    missed: "U A{error}",
    aborted: "U A{aborted}"
  },
  {
    name: "beforeToolCall",
    hooks: (waits) => [Hooks.beforeToolCall(() => waits)],
    missed: "U A[a,b] R(a!) R(b) A",
    aborted: "U A[a,b] R(a!) R(b!)",
    result: true
  },
  {
    name: "afterToolCall",
    hooks: (waits) => [Hooks.afterToolCall(({ toolCall }) => toolCall.id === "a" ? waits : undefined)],
    missed: "U A[a,b] R(a!) R(b) A",
    aborted: "U A[a,b] R(a!) R(b)",
    result: true
  },
  {
    name: "finishTurn",
    hooks: (waits) => [Hooks.finishTurn(() => waits)],
    missed: "U A[a,b] R(a) R(b) A{error}",
    aborted: "U A[a,b] R(a) R(b)"
  },
  {
    name: "prepareNextTurn",
    hooks: (waits) => [Hooks.prepareNextTurn(() => waits)],
    missed: "U A[a,b] R(a) R(b) A{error}",
    aborted: "U A[a,b] R(a) R(b)"
  }
]

/** Waits the first time. */
const once = (wait: Effect.Effect<void>) => {
  let times = 0
  return Effect.suspend(() => ++times === 1 ? wait : Effect.void)
}

const make = ({ conversion, hooks }: Kind, wait: Effect.Effect<void>, setting: Setting) => {
  const waits = once(wait)
  const making = makeTrial({
    tools: [quick("a"), quick("b")],
    responses: [],
    otherwise: ({ messages }) => messages.some(({ role }) => role === "toolResult") ? fine : calling("a", "b"),
    hooks: hooks(waits),
    ...setting
  })
  return conversion === true
    ? Effect.provide(making, ConvertToLlm.layer((messages) => Effect.as(waits, messages.filter(Messages.isMessage))))
    : making
}

describe("A hook's time", () => {
  const works: ReadonlyArray<readonly [name: string, work: Effect.Effect<void>, stops: boolean]> = [
    ["that can be interrupted", Effect.never, true],
    ["that is deaf", deafFor(60_000), false]
  ]
  for (const mode of modes) {
    for (const kind of kinds) {
      const { missed, name, result } = kind
      const message = `The ${name} hook timed out after 30 ms`
      for (const [which, work, stops] of works) {
        test(`B104, H5: ${name} ${which}: it ends at its deadline, ${mode}`, () =>
          Effect.gen(function*() {
            const trial = yield* make(kind, work, { toolExecution: mode, hookTimeout: 30 })
            const run = yield* trial.start()
            yield* pass(29)
            assert.isUndefined(run.pollUnsafe())
            yield* pass(1)
            // What is left of deaf work is awaited at the end of the run, within the grace.
            if (!stops) yield* pass(1000)
            const [{ messages, outcome }, settledAt] = yield* Fiber.join(run)
            if (stops) yield* nothingLives
            assert.strictEqual(settledAt, stops ? 30 : 1030)
            assert.strictEqual(yield* trial.shape, missed)
            if (result === true) {
              assert.strictEqual(outcome._tag, "Completed")
              assert.deepStrictEqual(results(messages), [`a! ${message}`, "b: done"])
            } else {
              assert(outcome._tag === "Failed" && outcome.error._tag === "HookError")
              assert.deepStrictEqual([outcome.error.hook, outcome.error.message], [name, message])
              assert.strictEqual(lastResponse(messages).errorMessage, message)
              assert.strictEqual(trial.recorder.shown.at(-1), "agent_end Failed")
            }
            yield* trial.nothingFollows
            assert.strictEqual((yield* trial.run("again")).outcome._tag, "Completed")
            yield* trial.shape
          }))
      }

      test(`B104: ${name} in time, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* make(kind, Effect.sleep(29), { toolExecution: mode, hookTimeout: 30 })
          assert.strictEqual((yield* trial.run()).outcome._tag, "Completed")
          assert.strictEqual(yield* trial.shape, "U A[a,b] R(a) R(b) A")
        }))

      test(`B104: two ${name} hooks have the time each, ${mode}`, () =>
        Effect.gen(function*() {
          const more = kind.hooks(Effect.sleep(20))
          const trial = yield* make(kind, Effect.sleep(20), { toolExecution: mode, hookTimeout: 30 }).pipe(
            Effect.provide(Hooks.layer(...more))
          )
          assert.strictEqual((yield* trial.run()).outcome._tag, "Completed")
          assert.strictEqual(yield* trial.shape, "U A[a,b] R(a) R(b) A")
        }))

      test(`B104, A2: an abort of ${name} before its deadline is an abort, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* make(kind, Effect.never, { toolExecution: mode, hookTimeout: 30 })
          const run = yield* trial.start()
          yield* pass(20)
          const { messages } = yield* trial.abort(run)
          const { aborted } = kind
          const shape = mode === "sequential" && name === "afterToolCall" ? "U A[a,b] R(a!) R(b!)" : aborted
          assert.strictEqual(yield* trial.shape, shape)
          assert.notInclude(JSON.stringify(messages), "timed out")
          yield* trial.nothingFollows
        }))

      test(`B104, I3: an abort after the deadline of a deaf ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* make(kind, deafFor(5000), {
            toolExecution: mode,
            hookTimeout: 30,
            otherwise: ({ messages }) =>
              messages.some(({ role }) => role === "toolResult")
                ? ScriptedModel.text("fine", { after: 100 })
                : calling("a", "b")
          })
          const run = yield* trial.start()
          yield* pass(40)
          const abort = yield* Effect.forkChild(trial.agent.abort)
          yield* pass(1000)
          yield* Fiber.join(abort)
          const [{ outcome }] = yield* Fiber.join(run)
          assert.strictEqual(outcome._tag, result === true ? "Aborted" : "Failed")
          assert.lengthOf(trial.heard("agent_end"), 1)
          yield* trial.shape
          yield* trial.nothingFollows
        }))
    }
  }

  for (const [which, work, stops] of works) {
    test(`B104, H5: finishTurn ${which}, asked about a turn that failed: it ends at its deadline`, () =>
      Effect.gen(function*() {
        const wait = once(work)
        const trial = yield* makeTrial({
          responses: [ScriptedModel.error("overloaded"), fine],
          hooks: [Hooks.finishTurn(() => wait)],
          hookTimeout: 30
        })
        const run = yield* trial.start()
        yield* pass(stops ? 30 : 1030)
        const [{ outcome }, settledAt] = yield* Fiber.join(run)
        assert.strictEqual(settledAt, stops ? 30 : 1030)
        assert(outcome._tag === "Failed" && outcome.error._tag === "HookError")
        assert.deepStrictEqual(
          [outcome.error.hook, outcome.error.message],
          ["finishTurn", "The finishTurn hook timed out after 30 ms"]
        )
        assert.strictEqual(yield* trial.shape, "U A{error} A{error}")
        yield* trial.nothingFollows
        assert.strictEqual((yield* trial.run("again")).outcome._tag, "Completed")
      }))
  }
})
