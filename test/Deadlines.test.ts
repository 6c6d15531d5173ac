/** How long tools may take, and when they are tried again (T6). */
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Fiber, Schedule } from "effect"
import { Errors, Hooks, Tools } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { makeAgent, nothingLives, pass, test } from "./utils/leaks.ts"
import { quick, slow, tool } from "./utils/timedTools.ts"
import { makeTrial, modes, results, type Setting, settings, type Trial } from "./utils/trial.ts"

const fine = ScriptedModel.text("fine")

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

type Timing = Pick<Parameters<typeof Tools.dynamic>[1], "timeout" | "retry">

/** A tool without parameters that has a time limit or a schedule. */
const timed = (
  name: string,
  timing: Timing,
  execute: (call: Tools.CallContext) => Effect.Effect<Tools.ToolOutput, string>
): Tools.Tool =>
  Tools.dynamic(name, {
    description: name,
    parameters: { type: "object" },
    execute: (_, call) => execute(call),
    ...timing
  })

const deafFor = (millis: number) => Effect.uninterruptible(Effect.as(Effect.sleep(millis), "late"))

const timedOut = (name: string, millis: number) => `Tool "${name}" timed out after ${millis} ms`

/** When the event came that looks like this. */
const at = (trial: Trial, text: string) => trial.recorder.timeOf(text)

describe("A tool's time", () => {
  /** Work that takes a minute; whether it stops when it is interrupted. */
  const works: ReadonlyArray<readonly [name: string, work: Effect.Effect<string>, stops: boolean]> = [
    ["work that can be interrupted", Effect.as(Effect.sleep(60_000), "late"), true],
    ["work that never ends", Effect.never, true],
    ["a promise that ignores its signal", Effect.promise(() => new Promise<string>(() => {})), true],
    ["deaf work", deafFor(60_000), false],
    ["a slow finalizer", Effect.onInterrupt(Effect.never, () => Effect.sleep(60_000)), false]
  ]
  for (const [setting, of] of settings) {
    for (const [name, work, stops] of works) {
      test(`T6, B71: ${name} is answered at its deadline, and its siblings go on, ${setting}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            ...of,
            tools: [timed("a", { timeout: 30 }, () => work), slow("b", 10)],
            responses: [calling("a", "b"), fine]
          })
          const run = yield* trial.start()
          const parallel = of.toolExecution === "parallel"
          const next = parallel ? 30 : 40
          yield* pass(next - 1)
          assert.strictEqual(yield* trial.requests, 1)
          yield* pass(1)
          assert.deepStrictEqual((yield* trial.model.requests).map((request) => request.at), [0, next])
          // What is left of deaf work is awaited at the end of the run, within the grace.
          yield* pass(1000)
          const [{ messages, outcome }, settledAt] = yield* Fiber.join(run)
          if (stops) yield* nothingLives
          assert.strictEqual(outcome._tag, "Completed")
          assert.strictEqual(settledAt, stops ? next : next + 1000)
          assert.deepStrictEqual(results(messages), [`a! ${timedOut("a", 30)}`, "b: done"])
          assert.strictEqual(yield* trial.shape, "U A[a,b] R(a!) R(b) A")
          if (trial.watched) {
            assert.deepStrictEqual(
              [at(trial, "tool_execution_end a!"), at(trial, "tool_execution_end b")],
              [30, parallel ? 10 : 40]
            )
          }
          yield* trial.nothingFollows
        }))
    }
  }

  for (const mode of modes) {
    for (
      const [gracePeriod, left, waits] of [[1000, 500, 470], [1000, 5000, 1000], [0, 500, 0], [200, 500, 200]] as const
    ) {
      test(`T6: what is left of it takes ${left} more, with a grace of ${gracePeriod} at the end of the run, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            toolExecution: mode,
            gracePeriod,
            tools: [timed("a", { timeout: 30 }, () => deafFor(left))],
            responses: [calling("a"), fine]
          })
          const run = yield* trial.start()
          yield* pass(30 + waits)
          const [{ outcome }, settledAt] = yield* Fiber.join(run)
          assert.deepStrictEqual([outcome._tag, settledAt], ["Completed", 30 + waits])
          assert.strictEqual(at(trial, "agent_end Completed"), 30 + waits)
          yield* trial.nothingFollows
        }))
    }

    test(`T6: its late end is only in the log, ${mode}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          toolExecution: mode,
          gracePeriod: 0,
          tools: [
            timed("a", { timeout: 30 }, ({ update }) =>
              Effect.uninterruptible(Effect.gen(function*() {
                yield* update("in time")
                yield* Effect.sleep(100)
                yield* update("late")
                return "late"
              })))
          ],
          responses: [calling("a"), ScriptedModel.text("fine", { after: 500 })]
        })
        const { messages } = yield* trial.run()
        assert.deepStrictEqual(results(messages), [`a! ${timedOut("a", 30)}`])
        assert.lengthOf(trial.heard("tool_execution_update"), 1)
        assert.lengthOf(trial.heard("tool_execution_end"), 1)
        yield* trial.shape
      }).pipe(
        logged,
        Effect.map(([, log]) =>
          assert.lengthOf(
            log.filter((entry) => /Tool "a" \(call a\) ended after its deadline/.test(entry)),
            1,
            log.join("\n")
          )
        )
      ))

    test(`T6: it is interrupted at its deadline, its finalizers run, ${mode}`, () =>
      Effect.gen(function*() {
        const closed: Array<number> = []
        const noting = Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => void closed.push(now)))
        const trial = yield* makeTrial({
          toolExecution: mode,
          tools: [timed("a", { timeout: 30 }, () => Effect.onInterrupt(Effect.never, () => noting))],
          responses: [calling("a"), fine]
        })
        yield* trial.run()
        assert.deepStrictEqual(closed, [30])
      }))

    test(`T6, T5: afterToolCall sees the error and may replace it, ${mode}`, () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const trial = yield* makeTrial({
          toolExecution: mode,
          tools: [timed("a", { timeout: 30 }, () => Effect.never)],
          responses: [calling("a"), fine],
          hooks: [
            Hooks.afterToolCall(({ isError, result }) => {
              seen.push(isError, result.content)
              return { isError: false, content: [{ type: "text", text: "so what" }] }
            })
          ]
        })
        const { messages } = yield* trial.run()
        assert.deepStrictEqual(seen, [true, [{ type: "text", text: timedOut("a", 30) }]])
        assert.deepStrictEqual(results(messages), ["a: so what"])
      }))

    test(`T6: what ends in time gives its result, ${mode}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          toolExecution: mode,
          toolTimeout: 30,
          tools: [
            slow("a", 29),
            tool("b", () => Effect.fail("broke")),
            tool("c", () => Effect.die("died")),
            quick("d")
          ],
          responses: [calling("a", "b", "c", "d"), fine]
        })
        const { messages } = yield* trial.run()
        assert.deepStrictEqual(results(messages), ["a: done", "b! broke", "c! died", "d: done"])
      }))

    const defaults: ReadonlyArray<
      readonly [name: string, own: number | undefined, all: number | undefined, at: number]
    > = [
      ["its own", 30, undefined, 30],
      ["that for all tools", undefined, 40, 40],
      ["its own, shorter than that for all", 30, 40, 30],
      ["its own, longer than that for all", 50, 40, 50]
    ]
    for (const [name, timeout, toolTimeout, millis] of defaults) {
      test(`T6: ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            toolExecution: mode,
            toolTimeout,
            tools: [timed("a", { timeout }, () => Effect.never)],
            responses: [calling("a"), fine]
          })
          const { messages } = yield* trial.run()
          assert.deepStrictEqual(results(messages), [`a! ${timedOut("a", millis)}`])
          assert.strictEqual(at(trial, "tool_execution_end a!"), millis)
        }))

      test(`T6, T7: ${name}, of a nested call, ${mode}`, () =>
        Effect.gen(function*() {
          const outcomes: Array<unknown> = []
          const trial = yield* makeTrial({
            toolExecution: mode,
            toolTimeout,
            tools: [
              timed("outer", { timeout: "1 hour" }, ({ runToolCall }) =>
                Effect.gen(function*() {
                  const { isError, result } = yield* runToolCall({ id: "n", name: "a" })
                  outcomes.push(isError, result.content, yield* Clock.currentTimeMillis)
                  return "done"
                })),
              timed("a", { timeout }, () => Effect.never)
            ],
            responses: [calling("outer"), fine]
          })
          const { messages } = yield* trial.run()
          assert.deepStrictEqual(outcomes, [true, [{ type: "text", text: timedOut("a", millis) }], millis])
          assert.deepStrictEqual(results(messages), ["outer: done"])
        }))
    }

    const aborts: ReadonlyArray<
      readonly [name: string, work: Effect.Effect<string>, at: number, settles: number, result: RegExp]
    > = [
      ["an abort before the deadline", Effect.never, 20, 0, /^a! Operation aborted$/],
      ["an abort before the deadline of deaf work", deafFor(5000), 20, 1000, /^a! Operation aborted\b.*unknown/],
      ["an abort after the deadline", Effect.never, 40, 0, /^a! Tool "a" timed out after 30 ms$/],
      ["an abort after the deadline of deaf work", deafFor(5000), 40, 1000, /^a! Tool "a" timed out after 30 ms$/]
    ]
    for (const [name, work, when, settles, expected] of aborts) {
      test(`T6, A2: ${name} is told apart from it, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            toolExecution: mode,
            tools: [timed("a", { timeout: 30 }, () => work)],
            responses: [calling("a"), ScriptedModel.text("fine", { after: 100 })]
          })
          const run = yield* trial.start()
          yield* pass(when)
          const { messages } = yield* trial.abort(run, settles)
          assert.match(results(messages)[0]!, expected)
          assert.strictEqual(yield* trial.shape, when < 30 ? "U A[a] R(a!)" : "U A[a] R(a!) A{aborted}")
          yield* trial.nothingFollows
        }))
    }

    test(`T6, L7: the end of the run's time is told apart from it, ${mode}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          toolExecution: mode,
          limits: { duration: 20 },
          tools: [timed("a", { timeout: 30 }, () => Effect.never)],
          responses: [calling("a")]
        })
        const { messages, outcome } = yield* trial.run()
        assert.deepStrictEqual(outcome, Errors.RunOutcome.Limited({ limit: "duration" }))
        assert.deepStrictEqual(results(messages), ["a! Operation aborted"])
      }))
  }
})

describe("Another try", () => {
  /** A tool that fails a number of times, and when it was tried. */
  const failing = (
    times: number,
    timing: Timing,
    how: (attempt: number) => Effect.Effect<never, string> = (attempt) => Effect.fail(`failure ${attempt}`)
  ) => {
    const tries: Array<number> = []
    return {
      tries,
      tool: timed("a", timing, () =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const attempt = tries.push(now)
          return attempt <= times ? how(attempt) : Effect.succeed("ok")
        }))
    }
  }
  const thrice = Schedule.exponential(100).pipe(Schedule.upTo({ times: 3 }))
  const never = Number.POSITIVE_INFINITY

  for (const [setting, of] of settings) {
    test(`T6: until it succeeds, ${setting}`, () =>
      Effect.gen(function*() {
        const { tool, tries } = failing(2, { retry: thrice })
        const trial = yield* makeTrial({ ...of, tools: [tool], responses: [calling("a"), fine] })
        const { messages } = yield* trial.run()
        assert.deepStrictEqual([tries, results(messages)], [[0, 100, 300], ["a: ok"]])
        if (trial.watched) assert.lengthOf(trial.heard("tool_execution_start"), 1)
        yield* trial.shape
      }))

    test(`T6: until the schedule ends: the last failure is the result, ${setting}`, () =>
      Effect.gen(function*() {
        const { tool, tries } = failing(never, { retry: thrice })
        const trial = yield* makeTrial({ ...of, tools: [tool], responses: [calling("a"), fine] })
        const { messages } = yield* trial.run()
        assert.deepStrictEqual([tries, results(messages)], [[0, 100, 300, 700], ["a! failure 4"]])
        yield* trial.shape
      }))
  }

  for (const mode of modes) {
    const once = Schedule.recurs(1)
    const cases: ReadonlyArray<readonly [name: string, own: Timing, all: Setting, tries: number]> = [
      ["no schedule", {}, {}, 1],
      ["the schedule for all tools", {}, { toolRetry: thrice }, 4],
      ["its own schedule instead of that for all", { retry: once }, { toolRetry: thrice }, 2]
    ]
    for (const [name, own, all, expected] of cases) {
      test(`T6: ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const { tool, tries } = failing(never, own)
          const trial = yield* makeTrial({
            ...all,
            toolExecution: mode,
            tools: [tool],
            responses: [calling("a"), fine]
          })
          yield* trial.run()
          assert.lengthOf(tries, expected)
        }))

      test(`T6, T7: ${name}, of a nested call, ${mode}`, () =>
        Effect.gen(function*() {
          const { tool: inner, tries } = failing(never, own)
          const trial = yield* makeTrial({
            ...all,
            toolExecution: mode,
            tools: [
              inner,
              timed("outer", { retry: Schedule.recurs(0) }, ({ runToolCall }) =>
                Effect.map(runToolCall({ id: "n", name: "a" }), ({ isError }) =>
                  `failed: ${isError}`))
            ],
            responses: [calling("outer"), fine]
          })
          const { messages } = yield* trial.run()
          assert.deepStrictEqual(results(messages), ["outer: failed: true"])
          assert.lengthOf(tries, expected)
        }))
    }

    const others: ReadonlyArray<readonly [name: string, how: () => Effect.Effect<never, string>]> = [
      ["a defect", () => Effect.die("died")],
      ["an interruption of its own", () => Effect.interrupt]
    ]
    for (const [name, how] of others) {
      test(`T6: not after ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const { tool, tries } = failing(never, { retry: thrice }, how)
          const trial = yield* makeTrial({ toolExecution: mode, tools: [tool], responses: [calling("a"), fine] })
          yield* trial.run()
          assert.lengthOf(tries, 1)
          assert.strictEqual(yield* trial.shape, "U A[a] R(a!) A")
        }))
    }

    test(`T6: not after a result that says it is an error, ${mode}`, () =>
      Effect.gen(function*() {
        let tries = 0
        const tool = timed("a", { retry: thrice }, () =>
          Effect.sync(() =>
            Tools.result({ text: `${++tries}`, isError: true })
          ))
        const trial = yield* makeTrial({ toolExecution: mode, tools: [tool], responses: [calling("a"), fine] })
        const { messages } = yield* trial.run()
        assert.deepStrictEqual(results(messages), ["a! 1"])
      }))

    test(`T6: the time limit is that of all tries together, ${mode}`, () =>
      Effect.gen(function*() {
        const { tool, tries } = failing(never, { timeout: 350, retry: thrice })
        const trial = yield* makeTrial({ toolExecution: mode, tools: [tool], responses: [calling("a"), fine] })
        const { messages } = yield* trial.run()
        assert.deepStrictEqual([tries, results(messages)], [[0, 100, 300], [`a! ${timedOut("a", 350)}`]])
        assert.strictEqual(at(trial, "tool_execution_end a!"), 350)
        yield* trial.nothingFollows
        assert.lengthOf(tries, 3)
      }))

    test(`T6, L7: all tries are one tool call, ${mode}`, () =>
      Effect.gen(function*() {
        const { tool, tries } = failing(never, { retry: thrice })
        const trial = yield* makeTrial({
          toolExecution: mode,
          limits: { toolCalls: 2 },
          tools: [tool],
          responses: [calling("a"), fine]
        })
        assert.strictEqual((yield* trial.run()).outcome._tag, "Completed")
        assert.lengthOf(tries, 4)
      }))

    test(`T6, T3: each try may tell its progress, ${mode}`, () =>
      Effect.gen(function*() {
        let tries = 0
        const tool = timed("a", { retry: thrice }, ({ update }) =>
          Effect.suspend(() =>
            Effect.andThen(update(`try ${++tries}`), tries < 3 ? Effect.fail("again") : Effect.succeed("ok"))
          ))
        const trial = yield* makeTrial({ toolExecution: mode, tools: [tool], responses: [calling("a"), fine] })
        yield* trial.run()
        assert.lengthOf(trial.heard("tool_execution_update"), 3)
        yield* trial.shape
      }))
  }
})

describe("Times that make no sense", () => {
  const durations = [0, -5, Number.NaN, Number.POSITIVE_INFINITY, "0 millis"] as const
  const fields = ["toolTimeout", "hookTimeout", "firstEventTimeout", "eventTimeout"] as const
  const model = ScriptedModel.layer([])
  for (const duration of durations) {
    for (const field of fields) {
      test(`T6: ${field}: ${duration}`, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(makeAgent({ [field]: duration }))
          assert.deepStrictEqual([error._tag, error.reason], ["AgentConfigError", "InvalidTimeout"])
          assert.include(error.message, field)
        }).pipe(Effect.provide(model)))
    }

    test(`T6: a tool's timeout: ${duration}`, () =>
      Effect.gen(function*() {
        const tools = [timed("a", { timeout: duration }, () => Effect.succeed("x"))]
        const error = yield* Effect.flip(makeAgent({ tools }))
        assert.strictEqual(error._tag, "AgentConfigError")
        assert.match(error.message, /"a"/)
      }).pipe(Effect.provide(model)))
  }
})
