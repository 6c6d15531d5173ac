/** Section D of the public faults: how many calls at once, for how long, and how often the same one. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Schedule, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Errors, Hooks, Loop, Messages, Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { ofType } from "../utils/events.ts"
import { lie } from "../utils/hostile.ts"
import { finish, watched } from "../utils/play.ts"
import { echo, resultText, tool } from "../utils/sampleTools.ts"
import { deaf, quick, slow } from "../utils/timedTools.ts"
import { modes, play, withStage } from "./scene.ts"

const { calls, text } = ScriptedModel

const fine = text("fine")

describe("Limits of calls", () => {
  // --- B69 ---

  /** Fifty calls of a tool that notes how many of it are at work. */
  const crowd = () => {
    const seen = { now: 0, most: 0, began: 0 }
    const worker = tool("work", () =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          seen.began++
          seen.most = Math.max(seen.most, ++seen.now)
        }),
        () => Effect.as(Effect.sleep(10), "done"),
        () => Effect.sync(() => seen.now--)
      ))
    return { seen, worker, response: calls(Array.from({ length: 50 }, (_, index) => [`c${index}`, "work", {}])) }
  }

  for (
    const [how, run] of [
      ["Agent.prompt", (agent: Agent.AgentService) => Effect.asVoid(agent.prompt("go"))],
      ["Agent.stream", (agent: Agent.AgentService) => Stream.runDrain(Agent.stream(agent, "go"))]
    ] as const
  ) {
    for (const [limit, most] of [[5, 5], [1, 1], ["unbounded", 50], [undefined, 50]] as const) {
      it.effect(`B69: with ${limit} never more than ${most} of 50 calls work at once, by ${how}`, () =>
        Effect.gen(function*() {
          const { response, seen, worker } = crowd()
          yield* Effect.gen(function*() {
            const agent = yield* Agent.make({ tools: [worker], toolConcurrency: limit })
            yield* finish(run(agent))
            assert.lengthOf((yield* agent.messages).filter(({ role }) => role === "toolResult"), 50)
          }).pipe(withStage({ responses: [response, fine] }))
          assert.deepStrictEqual(seen, { now: 0, most, began: 50 })
        }))
    }
  }

  for (const how of ["Loop.run", "Loop.stream"] as const) {
    it.effect(`B69: the loop alone keeps to the limit as well, by ${how}`, () =>
      Effect.gen(function*() {
        const { response, seen, worker } = crowd()
        const context = { messages: [], tools: [worker] }
        const prompts = [Messages.user("go")]
        const options = { toolConcurrency: 5 }
        yield* finish(
          how === "Loop.run"
            ? Effect.asVoid(Loop.run(prompts, context, options))
            : Stream.runDrain(Loop.stream(prompts, context, options))
        ).pipe(withStage({ responses: [response, fine] }))
        assert.deepStrictEqual(seen, { now: 0, most: 5, began: 50 })
      }))
  }

  it.effect("B69: calls that wait for their turn do not begin after an abort, and are answered", () =>
    Effect.gen(function*() {
      const { response, seen, worker } = crowd()
      yield* Effect.gen(function*() {
        const { agent, recorder } = yield* watched({ tools: [worker], toolConcurrency: 5 })
        const fiber = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(15)
        yield* agent.abort
        const { messages, outcome } = yield* Fiber.join(fiber)
        assert.strictEqual(outcome._tag, "Aborted")
        assert.deepStrictEqual(seen, { now: 0, most: 5, began: 10 })
        assert.lengthOf(messages.filter((message) => message.role === "toolResult" && !message.isError), 5)
        assert.lengthOf(ofType(recorder.events, "tool_execution_end"), 50)
      }).pipe(withStage({ responses: [response] }))
    }))

  // --- B71 ---

  const never = { description: "", parameters: Schema.Struct({}) }
  const asleep = Effect.uninterruptible(Effect.as(Effect.sleep(60_000), "late"))

  const sleepers: ReadonlyArray<[name: string, tool: Tools.Tool, options: Omit<Agent.Options, "tools">]> = [
    ["its own", Tools.make("a", { ...never, timeout: 30, execute: () => Effect.never }), {}],
    ["its own, ignoring interruption", Tools.make("a", { ...never, timeout: 30, execute: () => asleep }), {}],
    ["the agent's", deaf("a", 60_000), { toolTimeout: 30 }],
    ["its own before the agent's", Tools.make("a", { ...never, timeout: 30, execute: () => asleep }), {
      toolTimeout: 5000
    }],
    [
      "retries included",
      Tools.make("a", {
        ...never,
        timeout: 30,
        retry: Schedule.spaced(7),
        execute: () => Effect.andThen(Effect.sleep(7), Effect.fail("again"))
      }),
      {}
    ],
    [
      "finalizer included",
      Tools.make("a", {
        ...never,
        timeout: 30,
        execute: () => Effect.onInterrupt(Effect.never, () => Effect.sleep(60_000))
      }),
      {}
    ]
  ]
  for (const mode of modes) {
    for (const [name, sleeper, options] of sleepers) {
      it.effect(`B71: a call is answered when its time is over (${name}), its sibling keeps its result, the loop goes on, ${mode}`, () =>
        Effect.gen(function*() {
          const scene = yield* play({
            responses: [calls([["a", "a", {}], ["b", "b", {}]]), fine],
            tools: [sleeper, slow("b", 10, "real")],
            options: { ...options, toolExecution: mode }
          })
          assert.deepStrictEqual([scene.answer("a"), scene.answer("b")], ["! Tool \"a\" timed out after 30 ms", "real"])
          const { recorder } = scene
          const start = recorder.timeOf("agent_start")!
          assert.strictEqual(recorder.timeOf("tool_execution_end a!"), start + 30)
          assert.strictEqual(scene.requests[1]?.at, start + (mode === "parallel" ? 30 : 40))
          assert.strictEqual(scene.shape, "U A[a,b] R(a!) R(b) A")
          assert.strictEqual(scene.run.outcome._tag, "Completed")
        }))
    }
  }

  it.effect("B71 (T6, A4): what missed its deadline is awaited at the end within the grace; its late result goes nowhere", () =>
    Effect.gen(function*() {
      for (const [ms, endsAt] of [[500, 500], [60_000, 1030]] as const) {
        const log: Array<string> = []
        const tardy = Tools.make("a", {
          ...never,
          timeout: 30,
          execute: () =>
            Effect.uninterruptible(Effect.andThen(
              Effect.sleep(ms),
              Effect.sync(() => {
                log.push("late")
                return "late"
              })
            ))
        })
        const scene = yield* play({ responses: [calls([["a", "a", {}]]), fine], tools: [tardy] })
        const { recorder } = scene
        assert.strictEqual(recorder.timeOf("agent_end Completed"), recorder.timeOf("agent_start")! + endsAt)
        assert.deepStrictEqual(log, ["late"])
        assert.notInclude(JSON.stringify(scene.messages), "late")
        assert.isTrue(scene.logs.some((entry) => entry.includes("ended after its deadline")))
      }
    }))

  it.effect("B71 (T6, T7): the time of a tool holds for calls that other tools make to it", () =>
    Effect.gen(function*() {
      const inner = Tools.make("inner", { ...never, timeout: 30, execute: () => asleep })
      const outer = tool("outer", ({ runToolCall }) =>
        Effect.gen(function*() {
          const { isError, result } = yield* runToolCall({ id: "n", name: "inner" })
          return `${isError} ${resultText(result)} at ${yield* Clock.currentTimeMillis}`
        }))
      const scene = yield* play({ responses: [calls([["a", "outer", {}]]), fine], tools: [outer, inner] })
      assert.match(scene.answer("a"), /^true Tool "inner" timed out after 30 ms at \d+$/)
      assert.strictEqual(scene.requests[1]!.at - scene.requests[0]!.at, 30)
    }))

  it.effect("B71: a call that is in time is not touched, also at the last moment", () =>
    Effect.gen(function*() {
      const scene = yield* play({
        responses: [calls([["a", "a", {}], ["b", "b", {}]]), fine],
        tools: [slow("a", 29, "just"), quick("b", "now")],
        options: { toolTimeout: 30 }
      })
      assert.deepStrictEqual([scene.answer("a"), scene.answer("b")], ["just", "now"])
    }))

  it.effect("B71: a time that makes no sense is refused when the agent is made", () =>
    Effect.gen(function*() {
      for (const timeout of [0, -1, NaN, Infinity, lie<"1 second">("soon")]) {
        const timed = Tools.make("a", { ...never, timeout, execute: () => Effect.succeed("x") })
        for (const options of [{ tools: [timed] }, { toolTimeout: timeout }]) {
          const error = yield* Effect.flip(Agent.make(options))
          assert(error._tag === "AgentConfigError")
          assert.strictEqual(error.reason, "InvalidTimeout")
        }
      }
    }).pipe(withStage({ responses: [] })))

  // --- B78 ---

  const noisy = (id: string, args: Messages.JsonObject | string = { x: "1" }) => calls([[id, "echo", args]])
  const ids = ["a", "b", "c", "d", "e", "f"]

  for (const mode of modes) {
    for (
      const [name, hooks, args] of [
        ["is blocked", [Hooks.beforeToolCall(() => Hooks.block("no"))], { x: "1" }],
        ["succeeds", [], { x: "1" }],
        ["does not decode", [], { x: [1] }],
        ["is no JSON", [], "{\"x\":"]
      ] as ReadonlyArray<[string, ReadonlyArray<Hooks.Hook>, Messages.JsonObject | string]>
    ) {
      it.effect(`B78: the same call for the third time in a row, one that ${name}, ends the run as Limited, all answered, ${mode}`, () =>
        Effect.gen(function*() {
          const scene = yield* play({
            responses: [...ids.slice(0, 3).map((id) => noisy(id, args)), fine],
            tools: [echo],
            hooks,
            prompts: ["go", "again"],
            options: { repeatedCalls: 3, toolExecution: mode }
          })
          assert.deepStrictEqual(scene.runs.map(({ outcome }) => outcome), [
            Errors.RunOutcome.Limited({ limit: "repeatedCalls" }),
            Errors.RunOutcome.Completed({ by: "Stop", stopReason: "stop" })
          ])
          assert.lengthOf(scene.runs[0]!.messages, 7)
          assert.strictEqual(scene.requests.length, 4)
        }))
    }
  }

  it.effect("B78: several in one message count one by one; an unknown tool counts as well", () =>
    Effect.gen(function*() {
      const scene = yield* play({
        responses: [calls(ids.slice(0, 3).map((id) => [id, "nope", { n: 1 }]))],
        options: { repeatedCalls: 3 }
      })
      assert.deepInclude(scene.run.outcome, { _tag: "Limited", limit: "repeatedCalls" })
      assert.strictEqual(scene.shape, "U A[a,b,c] R(a!) R(b!) R(c!)")
    }))

  it.effect("B78: other arguments, another tool, or another run in between begin a new count", () =>
    Effect.gen(function*() {
      const same = noisy("a")
      for (const between of [noisy("b", { x: "2" }), calls([["b", "other", { x: "1" }]])]) {
        const scene = yield* play({
          responses: [same, same, between, same, same, fine],
          tools: [echo, quick("other")],
          options: { repeatedCalls: 3 }
        })
        assert.strictEqual(scene.run.outcome._tag, "Completed")
      }
      const scene = yield* play({
        responses: [same, same, fine, same, same, fine],
        tools: [echo],
        prompts: ["go", "again"],
        options: { repeatedCalls: 3 }
      })
      assert.deepStrictEqual(scene.runs.map(({ outcome }) => outcome._tag), ["Completed", "Completed"])
    }))

  it.effect("B78: the order of the keys makes no other call", () =>
    Effect.gen(function*() {
      const scene = yield* play({
        responses: [
          noisy("a", "{\"x\":\"1\",\"y\":{\"b\":1,\"c\":2}}"),
          noisy("b", "{\"y\":{\"c\":2,\"b\":1},\"x\":\"1\"}"),
          noisy("c", "{ \"x\": \"1\", \"y\": { \"b\": 1, \"c\": 2 } }")
        ],
        tools: [echo],
        options: { repeatedCalls: 3 }
      })
      assert.deepInclude(scene.run.outcome, { _tag: "Limited", limit: "repeatedCalls" })
    }))
})
