import { assert, describe, it, vi } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Hooks, type Messages } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import type { Recorder } from "./utils/events.ts"
import * as Journey from "./utils/journey.ts"
import { stage, watched } from "./utils/play.ts"
import { deaf, slow, tool } from "./utils/timedTools.ts"

const { calls, error, hang, text } = ScriptedModel

/** Everything a scenario shows: events with their times, transcript, requests. */
interface Traces {
  readonly events: string
  readonly transcript: string
  readonly requests: string
}

const traces = (
  recorder: Recorder,
  transcript: ReadonlyArray<Messages.AgentMessage>,
  requests: ReadonlyArray<ScriptedModel.RecordedRequest>
): Traces => ({
  events: recorder.bytes,
  transcript: JSON.stringify(transcript),
  requests: JSON.stringify(requests)
})

/** Lets time pass, in steps. */
const pass = (total: Duration.Input, step: Duration.Input): Effect.Effect<void> =>
  Effect.gen(function*() {
    const millis = Duration.toMillis(step)
    for (let left = Duration.toMillis(total); left > 0; left -= millis) yield* TestClock.adjust(Math.min(left, millis))
  })

const names = ["a", "b", "c", "d", "e"] as const

/** Tools of the same and of different durations, an update each. */
const tools = names.map((name, index) =>
  tool(name, ({ update }) =>
    Effect.gen(function*() {
      yield* Effect.sleep(10 * (index % 2))
      yield* update(`half of ${name}`)
      yield* Effect.sleep(10 * (index % 3))
      return name
    }))
)

const batch = (turn: number) =>
  calls(names.map((name) => [`${name}${turn}`, name, {}] as const), { chunks: 3, every: 5 })

/** A busy conversation: two batches at a limit, steers, follow-ups, hooks that sleep, a failure, an abort, a next prompt. */
const busy = (step: Duration.Input) =>
  Effect.gen(function*() {
    const { agent, recorder } = yield* watched({
      tools: [...tools, slow("slow", 500), deaf("deaf", 5000)],
      toolConcurrency: 2,
      systemPrompt: "Be brief."
    })
    yield* agent.subscribe((event) => event.type === "message_end" ? Effect.sleep(3) : undefined)
    const prompt = (input: string, millis: Duration.Input) =>
      Effect.gen(function*() {
        const run = yield* Effect.forkChild(agent.prompt(input))
        yield* pass(millis, step)
        return run
      })
    const first = yield* prompt("one", 40)
    yield* agent.steer("S1")
    yield* agent.followUp("F1")
    yield* pass(80, step)
    yield* agent.steer("S2")
    yield* pass("1 minute", step)
    yield* Fiber.join(first)
    yield* prompt("two", "1 minute")
    // Both are aborted: the first while tools run, one of them deaf, the second in the middle of a text.
    for (const [input, millis] of [["three", 200], ["four", 150]] as const) {
      yield* prompt(input, millis)
      const abort = yield* Effect.forkChild(agent.abort, { startImmediately: true })
      yield* pass("1 minute", step)
      yield* Fiber.join(abort)
    }
    return traces(recorder, yield* agent.messages, yield* ScriptedModel.requests)
  }).pipe(
    Effect.scoped,
    Effect.provide(stage({
      responses: [
        batch(1),
        batch(2),
        text("3", { chunks: 4, every: 7 }),
        text("4"),
        error("reset", { reason: "Network", partial: "so far", chunks: 2, every: 10 }),
        calls([["s", "slow", {}], ["t", "deaf", {}], ["u", "slow", {}]]),
        hang({ partial: "so far", chunks: 3, every: 100 })
      ],
      hooks: [
        Hooks.transformContext((messages) => Effect.as(Effect.sleep(2), messages)),
        Hooks.beforeToolCall(({ toolCall }) =>
          Effect.as(Effect.sleep(1), toolCall.id === "c2" ? Hooks.block("not twice") : Hooks.allow)
        ),
        Hooks.afterToolCall(({ toolCall }) => Effect.as(Effect.sleep(2), { details: toolCall.id }))
      ]
    }))
  )

/** One journey, aborted or not, as its traces. */
const travel = (options: Journey.Options) =>
  Effect.gen(function*() {
    const { agent, model, prompt, recorder, visits } = yield* Journey.make(options)
    const run = yield* Effect.forkChild(prompt("go"))
    yield* TestClock.adjust("1 minute")
    yield* Effect.forkChild(agent.abort, { startImmediately: true })
    yield* TestClock.adjust("3 hours")
    yield* Fiber.join(run)
    return { ...traces(recorder, yield* agent.messages, yield* model.requests), visits: visits.join("\n") }
  }).pipe(Effect.scoped)

/** Runs an effect with a fresh test clock that begins at 0. */
const afresh = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, TestClock.layer(), { local: true })

describe("Determinism", () => {
  it.effect("I7: a busy conversation is the same, byte by byte, every time", () =>
    Effect.gen(function*() {
      const first = yield* afresh(busy("1 minute"))
      assert.strictEqual(
        Transcript.print(JSON.parse(first.transcript)),
        "U A[a1,b1,c1,d1,e1] R(a1) R(b1) R(c1) R(d1) R(e1) U A[a2,b2,c2,d2,e2] R(a2) R(b2) R(c2!) R(d2) R(e2) U A U A " +
          "U A{error} U A[s,t,u] R(s!) R(t!) R(u!) U A{aborted}"
      )
      for (let n = 0; n < 5; n++) assert.deepStrictEqual(yield* afresh(busy("1 minute")), first)
    }))

  it.effect("I7: it is the same however the time passes", () =>
    Effect.gen(function*() {
      const first = yield* afresh(busy("1 minute"))
      assert.deepStrictEqual(yield* afresh(busy(1000)), first)
      assert.deepStrictEqual(yield* afresh(busy(7)), first)
    }))

  it.effect("I7: it is the same whatever else the program does", () =>
    Effect.gen(function*() {
      const first = yield* afresh(busy("1 minute"))
      const tick = Effect.repeat(Effect.andThen(Effect.yieldNow, Effect.sleep(3)), { times: 200 })
      const other = Effect.gen(function*() {
        const { agent } = yield* watched({ tools })
        yield* Effect.forEach(Array.from({ length: 20 }, (_, n) => `go ${n}`), (input) => agent.prompt(input))
      }).pipe(
        Effect.scoped,
        Effect.provide(
          stage({ responses: Array.from({ length: 40 }, (_, n) => n % 2 === 0 ? batch(n) : text("fine")) })
        )
      )
      const noisy = Effect.gen(function*() {
        const others = yield* Effect.forEach([tick, other, other], (effect) => Effect.forkChild(effect))
        const result = yield* busy("1 minute")
        yield* Fiber.interruptAll(others)
        return result
      })
      assert.deepStrictEqual(yield* afresh(noisy), first)
    }))

  it.effect("I7: neither the time of day nor chance has a part in it", () =>
    Effect.gen(function*() {
      const first = yield* afresh(busy("1 minute"))
      const now = vi.spyOn(Date, "now").mockReturnValue(1e12)
      const random = vi.spyOn(Math, "random").mockReturnValue(0.25)
      const second = yield* Effect.ensuring(
        afresh(busy("1 minute")),
        Effect.sync(() => {
          now.mockRestore()
          random.mockRestore()
        })
      )
      assert.deepStrictEqual(second, first)
    }))

  const places = [
    undefined,
    "on message_end user 1",
    "transformContext 1",
    "connect 1",
    "stream text_delta 2",
    "beforeToolCall 2",
    "tool a 1",
    "afterToolCall 1",
    "on tool_execution_end 1",
    "finishTurn 1",
    "prepareNextTurn 1",
    "on turn_end 3"
  ]
  for (const at of places) {
    for (const toolExecution of ["parallel", "sequential"] as const) {
      it.effect(`I7: ${at === undefined ? "a whole run" : `an abort of the deaf at ${at}`}, ${toolExecution}`, () =>
        Effect.gen(function*() {
          const options: Journey.Options = {
            toolExecution,
            deaf: true,
            ...(at === undefined ? {} : { at, action: () => Effect.sleep("1 hour") })
          }
          const first = yield* afresh(travel(options))
          assert.deepStrictEqual(yield* afresh(travel(options)), first)
          assert.isAbove(first.events.length, 0)
        }))
    }
  }
})
