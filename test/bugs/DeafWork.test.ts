/** B04, B06, B12, B14: work that does not stop when it is told to, and what it does later. */
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule, Stream } from "effect"
import { Errors, type Events, Hooks, Messages, type StreamFn, Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { logged } from "../utils/agents.ts"
import { pass, subscribe, test, testEnd } from "../utils/leaks.ts"
import { deaf, quick, slow, tool } from "../utils/timedTools.ts"
import { lastResponse, makeTrial, modes, results, type Setting, settings } from "../utils/trial.ts"

const minute = 60_000

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

const fine = ScriptedModel.text("fine")

const uninterruptedMinute = Effect.uninterruptible(Effect.as(Effect.sleep(minute), "late"))

/** Tools that work for a minute, whatever they are told. */
const deafTools: ReadonlyArray<readonly [name: string, tool: Tools.Tool, others?: ReadonlyArray<Tools.Tool>]> = [
  ["uninterruptible work", tool("a", () => uninterruptedMinute)],
  ["a slow finalizer", tool("a", () => Effect.onInterrupt(Effect.never, () => Effect.sleep(minute)))],
  [
    "a slow release",
    tool("a", () => Effect.acquireUseRelease(Effect.void, () => Effect.never, () => Effect.sleep(minute)))
  ],
  ["deaf work with a timeout of its own", tool("a", () => Effect.timeout(uninterruptedMinute, 5))],
  ["a deaf nested call", tool("a", ({ runToolCall }) => Effect.as(runToolCall({ id: "n", name: "nested" }), "done")), [
    deaf("nested", minute)
  ]],
  [
    "deaf work under a tool timeout",
    Tools.dynamic("a", {
      description: "Deaf.",
      parameters: { type: "object" },
      timeout: "1 hour",
      execute: () => uninterruptedMinute
    })
  ],
  [
    "deaf work that is tried again",
    Tools.dynamic("a", {
      description: "Deaf.",
      parameters: { type: "object" },
      retry: Schedule.recurs(3),
      execute: () => Effect.andThen(uninterruptedMinute, Effect.fail("again"))
    })
  ]
]

describe("B04 a tool that ignores the abort does not hold it up", () => {
  for (const mode of modes) {
    for (const gracePeriod of [0, 1000] as const) {
      for (const [name, deafTool, others = []] of deafTools) {
        test(`B04 (A4) ${name}, ${mode}, a grace of ${gracePeriod}`, () =>
          Effect.gen(function*() {
            const trial = yield* makeTrial({
              toolExecution: mode,
              gracePeriod,
              tools: [deafTool, ...others, slow("b", 100)],
              responses: [calling("a", "b"), fine]
            })
            const run = yield* trial.start()
            yield* pass(10)
            const { messages } = yield* trial.abort(run, gracePeriod)
            assert.strictEqual(yield* trial.shape, "U A[a,b] R(a!) R(b!)")
            const [a, b] = results(messages)
            assert.match(a!, /^a! Operation aborted\b.*outcome is unknown/)
            assert.strictEqual(b, "b! Operation aborted")
            yield* trial.nothingFollows
            yield* trial.run("again")
            assert.strictEqual(yield* trial.shape, "U A[a,b] R(a!) R(b!) U A")
          }))
      }
    }
  }

  for (const [name, setting] of settings) {
    test(`B04 (A4) finished calls keep their results, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...setting,
          tools: [quick("a"), deaf("b", minute)],
          responses: [calling("a", "b"), fine]
        })
        const run = yield* trial.start()
        yield* pass(10)
        const { messages } = yield* trial.abort(run, 1000)
        assert.strictEqual(yield* trial.shape, "U A[a,b] R(a) R(b!)")
        assert.match(results(messages)[1]!, /^b! Operation aborted\b.*outcome is unknown/)
        yield* trial.nothingFollows
      }))
  }

  for (const mode of modes) {
    test(`B04 (A4) a promise that ignores its signal is no reason to wait, ${mode}`, () =>
      Effect.gen(function*() {
        const signals: Array<AbortSignal> = []
        const trial = yield* makeTrial({
          toolExecution: mode,
          tools: [tool("a", () =>
            Effect.promise((signal) => {
              signals.push(signal)
              return new Promise<string>(() => {})
            }))],
          responses: [calling("a"), fine]
        })
        const run = yield* trial.start()
        yield* pass(10)
        const { messages } = yield* trial.abort(run, 0)
        assert.deepStrictEqual(results(messages), ["a! Operation aborted"])
        assert.deepStrictEqual(signals.map(({ aborted }) => aborted), [true])
        yield* trial.nothingFollows
      }))

    test(`B04 (A4) a finalizer that needs a part of the grace is awaited, ${mode}`, () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const trial = yield* makeTrial({
          toolExecution: mode,
          tools: [tool("a", () =>
            Effect.onInterrupt(Effect.never, () =>
              Effect.andThen(
                Effect.sleep(600),
                Effect.sync(() => void log.push("closed"))
              )))],
          responses: [calling("a"), fine]
        })
        const run = yield* trial.start()
        yield* pass(10)
        const { messages } = yield* trial.abort(run, 600)
        assert.deepStrictEqual(log, ["closed"])
        assert.deepStrictEqual(results(messages), ["a! Operation aborted"])
      }))
  }
})

describe("B04 a listener that takes long does not hold up the abort", () => {
  const types: ReadonlyArray<Events.AgentEventType> = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_end",
    "turn_end"
  ]
  for (const mode of modes) {
    for (const gracePeriod of [0, 1000]) {
      for (const type of types) {
        test(`B04 (A4, H3) on ${type}, ${mode}, a grace of ${gracePeriod}: it gets the rest when it is done`, () =>
          Effect.gen(function*() {
            const trial = yield* makeTrial({
              toolExecution: mode,
              gracePeriod,
              tools: [quick("a")],
              responses: [ScriptedModel.calls([["a", "a", {}]], { text: "Now:" })],
              otherwise: fine
            })
            const heard: Array<Events.AgentEvent> = []
            yield* subscribe(trial.agent, (event) =>
              Effect.suspend(() => {
                const first = event.type === type && !heard.some((one) => one.type === type)
                heard.push(event)
                return first ? Effect.sleep(minute) : Effect.void
              }))
            const run = yield* trial.start()
            yield* pass(10)
            yield* trial.abort(run, gracePeriod)
            yield* trial.shape
            // One event at a time: the others wait behind the one it has.
            assert.strictEqual(heard.at(-1)?.type, type)
            yield* trial.nothingFollows
            assert.deepStrictEqual(heard, trial.recorder.events)
          }))
      }
    }
  }
})

describe("B06 a stream that never ends does not hold up the abort", () => {
  const start: ReadonlyArray<StreamFn.StreamEvent> = [
    { type: "start" },
    { type: "text_start", contentIndex: 0 },
    { type: "text_delta", contentIndex: 0, delta: "hel" }
  ]
  /** Streams, what arrives of them, and whether they hear that they are to stop. */
  const streams: ReadonlyArray<
    readonly [name: string, stream: NonNullable<Setting["wrap"]>, shape: string, text: string, hears: boolean]
  > = [
    [
      "silence that can be interrupted",
      () => Stream.concat(Stream.fromArray(start), Stream.never),
      "A{aborted}",
      "hel",
      true
    ],
    [
      "deaf silence",
      () => Stream.concat(Stream.fromArray(start), Stream.fromEffectDrain(uninterruptedMinute)),
      "A{aborted}",
      "hel",
      false
    ],
    ["a deaf connection", () => Stream.fromEffectDrain(uninterruptedMinute), "A{aborted}", "", false],
    [
      "a slow end of the connection",
      () => Stream.ensuring(Stream.concat(Stream.fromArray(start), Stream.never), Effect.sleep(minute)),
      "A{aborted}",
      "hel",
      false
    ],
    [
      "a retry that catches everything",
      () =>
        Stream.concat(
          Stream.fromArray(start),
          Stream.fromEffectDrain(Effect.forever(Effect.exit(uninterruptedMinute)))
        ),
      "A{aborted}",
      "hel",
      false
    ]
  ]
  for (const gracePeriod of [0, 1000] as const) {
    for (const audience of ["nobody", "waiting"] as const) {
      for (const [name, wrap, shape, text, hears] of streams) {
        test(`B06 (A4) ${name}, a grace of ${gracePeriod}, ${audience === "nobody" ? "nobody listens" : "watched"}`, () =>
          Effect.gen(function*() {
            let closed = 0
            const trial = yield* makeTrial({
              gracePeriod,
              audience,
              wrap: (scripted, request) =>
                request.messages.some(({ role }) => role === "assistant") || closed > 0
                  ? scripted
                  : Stream.onExit(wrap(scripted, request), () => Effect.sync(() => void closed++)),
              responses: [fine]
            })
            const run = yield* trial.start()
            yield* pass(50)
            const { messages } = yield* trial.abort(run, hears ? 0 : gracePeriod)
            assert.strictEqual(yield* trial.shape, `U ${shape}`)
            assert.deepStrictEqual(
              lastResponse(messages).content,
              text === "" ? [] : [{ type: "text", text }]
            )
            yield* trial.nothingFollows
            assert.strictEqual(closed, 1)
            yield* trial.run("again")
            assert.strictEqual(yield* trial.shape, `U ${shape} U A`)
            assert.strictEqual(closed, 1)
          }))
      }
    }
  }

  for (const pulling of [true, false]) {
    test(`B06 (A4) an async iterator is told to return once, while it ${pulling ? "reads" : "waits to be read"}`, () =>
      Effect.gen(function*() {
        const end = yield* Deferred.make<void>()
        yield* Effect.forkChild(Effect.andThen(testEnd, Deferred.succeed(end, undefined)))
        const ended = Effect.runPromise(Deferred.await(end))
        let returns = 0
        const events = start[Symbol.iterator]()
        const iterable: AsyncIterable<StreamFn.StreamEvent> = {
          [Symbol.asyncIterator]: () => ({
            next: () => {
              const next = events.next()
              return next.done === true
                ? ended.then(() => ({ done: true, value: undefined }))
                : Promise.resolve({ done: false, value: next.value })
            },
            return: () => {
              returns++
              return ended.then(() => ({ done: true, value: undefined }))
            }
          })
        }
        const trial = yield* makeTrial({
          gracePeriod: 1000,
          wrap: () =>
            Stream.fromAsyncIterable(iterable, () => new Errors.ModelError({ reason: "Unknown", message: "broke" })),
          hooks: []
        })
        const unsubscribe = yield* trial.agent.subscribe((event) =>
          !pulling && event.type === "message_update" && event.assistantMessageEvent.type === "text_delta"
            ? Effect.sleep(200)
            : undefined
        )
        const run = yield* trial.start()
        // Promises move on in real turns of the event loop.
        yield* Effect.promise(() => new Promise<void>((resolve) => void setImmediate(resolve)))
        yield* pass(50)
        yield* trial.abort(run, pulling ? 0 : 1000)
        assert.strictEqual(yield* trial.shape, "U A{aborted}")
        assert.deepStrictEqual(lastResponse(yield* trial.agent.messages).content, [{ type: "text", text: "hel" }])
        assert.strictEqual(returns, 1)
        yield* trial.nothingFollows
        assert.strictEqual(returns, 1)
        yield* unsubscribe
      }))
  }
})
describe("B12 what comes late never enters the transcript", () => {
  /** What a tool that was left behind does at the end. */
  const endings: ReadonlyArray<
    readonly [name: string, end: (call: Tools.CallContext) => Effect.Effect<Tools.ToolOutput, string>, logs: RegExp]
  > = [
    ["gives a result", () => Effect.succeed("late"), /was left behind/],
    ["fails", () => Effect.fail("late"), /was left behind .* late/],
    ["dies", () => Effect.die(new Error("late")), /was left behind .* late/],
    ["interrupts itself", () => Effect.interrupt, /was left behind/],
    [
      "tells its progress first",
      ({ update }) => Effect.as(update("late"), "late"),
      /was left behind/
    ],
    [
      "asks to stop the run",
      () => Effect.succeed(Tools.result({ text: "late", terminate: true })),
      /was left behind/
    ]
  ]
  for (const mode of modes) {
    for (const [name, end, logs] of endings) {
      test(`B12 a tool of the last run ${name} in the middle of the next one, ${mode}`, () =>
        Effect.gen(function*() {
          let calls = 0
          const later = tool("a", (call) =>
            Effect.suspend((): Effect.Effect<Tools.ToolOutput, string> =>
              ++calls === 1
                ? Effect.uninterruptible(Effect.andThen(Effect.sleep(100), end(call)))
                : Effect.as(Effect.sleep(300), "second")
            ))
          const trial = yield* makeTrial({
            toolExecution: mode,
            gracePeriod: 0,
            tools: [later],
            responses: [calling("a"), calling("a"), fine]
          })
          const first = yield* trial.start()
          yield* pass(10)
          yield* trial.abort(first)
          const { messages } = yield* trial.run("again")
          assert.strictEqual(yield* trial.shape, "U A[a] R(a!) U A[a] R(a) A")
          assert.deepStrictEqual(results(messages), ["a: second"])
          assert.lengthOf(trial.heard("tool_execution_end"), 2)
          assert.deepStrictEqual(trial.heard("tool_execution_update"), [])
          assert.match(results(yield* trial.request(1))[0]!, /^a! Operation aborted/)
          yield* trial.nothingFollows
        }).pipe(
          logged,
          Effect.map(([, log]) => assert.lengthOf(log.filter((entry) => logs.test(entry)), 1, log.join("\n")))
        ))
    }

    test(`B12 (A3) a tool that was left behind can call no other tool, ${mode}`, () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const outcomes: Array<boolean> = []
        const trial = yield* makeTrial({
          toolExecution: mode,
          gracePeriod: 0,
          tools: [
            tool("a", ({ runToolCall }) =>
              Effect.uninterruptible(Effect.gen(function*() {
                yield* Effect.sleep(100)
                const { isError } = yield* runToolCall({ id: "n", name: "b" })
                outcomes.push(isError)
                return "late"
              }))),
            tool("b", () => Effect.sync(() => `ran ${ran.push("b")}`))
          ],
          responses: [calling("a"), ScriptedModel.text("fine", { after: 500 })]
        })
        const first = yield* trial.start()
        yield* pass(10)
        yield* trial.abort(first)
        yield* trial.run("again")
        assert.deepStrictEqual([ran, outcomes], [[], [true]])
        assert.strictEqual(yield* trial.shape, "U A[a] R(a!) U A")
      }))
  }

  const lateUser = Messages.user("late")
  /** Hooks whose answer comes at 100, and what the abort at 10 leaves of the run. */
  const answers: ReadonlyArray<
    readonly [kind: string, hook: (wait: Effect.Effect<void>) => Hooks.Hook, shape: string]
  > = [
    ["transformContext", (wait) => Hooks.transformContext(() => Effect.as(wait, [lateUser])), "U A{aborted}"],
    ["apiKey", (wait) => Hooks.apiKey(() => Effect.as(wait, "late")), "U A{aborted}"],
    [
      "prepareRequest",
      (wait) => Hooks.prepareRequest(() => Effect.as(wait, { context: { messages: [lateUser] } })),
      "U A{aborted}"
    ],
    [
      "beforeToolCall",
      (wait) => Hooks.beforeToolCall(() => Effect.as(wait, Hooks.block("late", { terminate: true }))),
      "U A[a] R(a!)"
    ],
    [
      "afterToolCall",
      (wait) => Hooks.afterToolCall(() => Effect.as(wait, { content: [{ type: "text", text: "late" }] })),
      "U A[a] R(a!)"
    ],
    ["finishTurn", (wait) => Hooks.finishTurn(() => Effect.as(wait, "continue")), "U A[a] R(a)"],
    [
      "prepareNextTurn",
      (wait) => Hooks.prepareNextTurn(() => Effect.as(wait, { messages: [lateUser] })),
      "U A[a] R(a)"
    ]
  ]
  for (const mode of modes) {
    for (const [kind, hook, shape] of answers) {
      test(`B12 ${kind} of the last run answers in the middle of the next one, ${mode}`, () =>
        Effect.gen(function*() {
          let waits = 0
          const wait = Effect.suspend(() => {
            waits++
            return Effect.uninterruptible(Effect.sleep(100))
          })
          const trial = yield* makeTrial({
            toolExecution: mode,
            gracePeriod: 0,
            tools: [quick("a")],
            responses: shape === "U A{aborted}" ? [] : [calling("a")],
            otherwise: ScriptedModel.text("fine", { after: 500 }),
            hooks: [hook(wait)]
          })
          const first = yield* trial.start()
          yield* pass(10)
          yield* trial.abort(first)
          assert.strictEqual(yield* trial.shape, shape)
          yield* trial.nothingFollows
          assert.strictEqual(waits, 1)
        }))
    }
  }

  test("B12 a stream of the last run goes on in the middle of the next one", () =>
    Effect.gen(function*() {
      let streams = 0
      const trial = yield* makeTrial({
        gracePeriod: 0,
        responses: [fine],
        wrap: (scripted) =>
          ++streams > 1 ? scripted : Stream.concat(
            Stream.fromArray<StreamFn.StreamEvent>([{ type: "start" }]),
            Stream.fromEffect(Effect.uninterruptible(Effect.as(Effect.sleep(100), { type: "done" })))
          )
      })
      const first = yield* trial.start()
      yield* pass(10)
      yield* trial.abort(first)
      yield* trial.run("again")
      assert.strictEqual(yield* trial.shape, "U A{aborted} U A")
      yield* trial.nothingFollows
    }))
})

describe("B14 progress that comes late is ignored", () => {
  /** What the run does at 50, when the progress of the call that ended at 10 comes. */
  const moments: ReadonlyArray<
    readonly [name: string, responses: ReadonlyArray<ScriptedModel.Response>, next: boolean, shape: string]
  > = [
    ["the run is over", [calling("a"), fine], false, "U A[a] R(a) A"],
    ["the run goes on", [calling("a"), ScriptedModel.text("fine", { after: 100 })], false, "U A[a] R(a) A"],
    [
      "a call with the same id works in the same run",
      [calling("a"), calling("a"), fine],
      false,
      "U A[a] R(a) A[a] R(a) A"
    ],
    [
      "a call with the same id works in the next run",
      [calling("a"), fine, calling("a"), fine],
      true,
      "U A[a] R(a) A U A[a] R(a) A"
    ]
  ]
  for (const [setting, of] of settings) {
    for (const [name, responses, next, shape] of moments) {
      test(`B14 ${name}, ${setting}`, () =>
        Effect.gen(function*() {
          const exits: Array<string> = []
          let calls = 0
          const chatty = tool("a", ({ update }) =>
            Effect.gen(function*() {
              if (++calls > 1) return yield* Effect.as(Effect.sleep(200), "second")
              yield* Effect.forkDetach(
                Effect.delay(Effect.exit(update("late")), 50).pipe(
                  Effect.map((exit) => exits.push(exit._tag))
                )
              )
              yield* Effect.sleep(10)
              return "first"
            }))
          const trial = yield* makeTrial({ ...of, tools: [chatty], responses })
          const first = yield* trial.start()
          yield* pass(20)
          if (next) yield* trial.run("again")
          else yield* pass("1 hour")
          yield* Fiber.join(first)
          assert.strictEqual(yield* trial.shape, shape)
          assert.deepStrictEqual(exits, ["Success"])
          assert.deepStrictEqual(trial.heard("tool_execution_update"), [])
        }))
    }

    test(`B14 of a call that an abort has answered, ${setting}`, () =>
      Effect.gen(function*() {
        const exits: Array<string> = []
        const trial = yield* makeTrial({
          ...of,
          gracePeriod: 0,
          tools: [
            tool("a", ({ update }) =>
              Effect.uninterruptible(Effect.gen(function*() {
                yield* update("in time")
                yield* Effect.sleep(50)
                exits.push((yield* Effect.exit(update("late")))._tag)
                return "late"
              })))
          ],
          responses: [calling("a")]
        })
        const run = yield* trial.start()
        yield* pass(10)
        yield* trial.abort(run)
        yield* trial.nothingFollows
        assert.deepStrictEqual(exits, ["Success"])
        assert.lengthOf(trial.heard("tool_execution_update"), trial.watched ? 1 : 0)
      }))
  }
})
