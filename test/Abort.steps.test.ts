/** An abort at every step a run takes, when nothing in it takes time: between any two of them, not only where it waits. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Schedule, Scheduler, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Loop, Messages, type StreamFn } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { Recorder } from "./utils/events.ts"
import { violations } from "./utils/invariants.ts"
import { ended, timed } from "./utils/journey.ts"
import { makeAgent, test } from "./utils/leaks.ts"
import { scene, type World } from "./utils/scene.ts"
import { quick, tool } from "./utils/timedTools.ts"

/** Gives up the processor once, as a quick query does. */
const step = Effect.yieldNow

const stepping = tool("stepping", ({ update }) =>
  Effect.gen(function*() {
    yield* step
    yield* update("half")
    yield* step
    return "done"
  }))

const setting = (): Parameters<typeof scene>[0] => ({
  responses: [
    ScriptedModel.calls([["a", "stepping", {}], ["b", "quick", {}], ["c", "stepping", {}]], { chunks: 2 }),
    ScriptedModel.text("fine, fine", { chunks: 3 }),
    ...Array.from({ length: 5 }, () => ScriptedModel.text("more"))
  ],
  tools: [stepping, quick("quick")]
})

/** A listener that takes a step for every event, and how often it was called and came to its end. */
const counting = () => {
  const counts = { called: 0, ended: 0 }
  const listener = () => {
    counts.called++
    return Effect.andThen(step, Effect.sync(() => void counts.ended++))
  }
  return { counts, listener }
}

/** Lets everybody do what needs no time: the clock would not wait for them. */
const rest = (fiber: Fiber.Fiber<unknown, unknown>) =>
  Effect.repeat(step, { until: () => ended(fiber), schedule: Schedule.recurs(5000) })

type Stop = (agent: Agent.AgentService, run: Fiber.Fiber<unknown, unknown>) => Effect.Effect<void>

/** The run gives up the processor after so many operations of Effect's runtime, so that an abort can come between any two. */
const opsBeforeYield = (ops: number) => Effect.provideService(Scheduler.MaxOpsBeforeYield, ops)

/** Lets a run take some steps, stops it, and tells what is wrong: everybody must be told everything, at once. */
const stopAfter = (steps: number, ops: number, { agent, before, recorder }: World, stop: Stop) =>
  Effect.gen(function*() {
    const { counts, listener } = counting()
    const last = new Recorder()
    yield* agent.subscribe(listener)
    yield* agent.subscribe(last.record)
    const told = () => {
      const { length } = recorder.events
      return [
        ...(counts.called === length && counts.ended === length ? [] : [
          `H3: a listener was called ${counts.called} and ended ${counts.ended} times for ${length} events`
        ]),
        ...(last.events.length === length
          ? []
          : [`H3: the last listener was told ${last.events.length} of ${length} events`])
      ]
    }
    const check = (...prompts: ReadonlyArray<string>) =>
      Effect.gen(function*() {
        const { followUps, steering } = yield* agent.queued
        const queued = [...steering, ...followUps]
        const accepted = ["S1", "S2", "F", ...prompts]
        const transcript = yield* agent.messages
        return [...told(), ...violations({ events: recorder.events, before, transcript, accepted, queued })]
      })

    yield* agent.setSteeringMode("all")
    yield* agent.steer("S1")
    yield* agent.steer("S2")
    yield* agent.followUp("F")

    const run = yield* Effect.forkChild(opsBeforeYield(ops)(agent.prompt("go")), { startImmediately: true })
    yield* Effect.repeat(step, { times: steps })
    const start = yield* Clock.currentTimeMillis
    const stopping = yield* Effect.forkChild(timed(stop(agent, run)), { startImmediately: true })
    yield* rest(stopping)
    if (!ended(stopping)) yield* TestClock.adjust("1 minute")
    const [, at] = yield* Fiber.join(stopping)
    yield* rest(run)
    assert.isTrue(ended(run))
    const found = [...(at === start ? [] : [`A1: it took ${at - start} ms`]), ...(yield* check("go"))]
    yield* agent.prompt("again")
    return [...found, ...(yield* check("go", "again")).map((problem) => `next run: ${problem}`)]
  })

/** Stops one run after no step, one after some, and so on, with more steps than a run has. */
const stopEverywhere = (
  given: Parameters<typeof scene>[0],
  stop: Stop,
  { count = 80, ops = 2048, stride = 1 }: { count?: number; ops?: number; stride?: number } = {}
) =>
  Effect.gen(function*() {
    const problems: Array<string> = []
    for (let steps = 0; steps < count; steps += stride) {
      yield* scene(given, (world) =>
        Effect.map(stopAfter(steps, ops, world, stop), (found) => {
          for (const problem of found) problems.push(`after ${steps} steps: ${problem}`)
        }))
    }
    assert.deepStrictEqual(problems, [])
  })

/** These are many runs each. */
const timeout = 60_000

describe("Abort at every step", () => {
  it.effect("A1, A3: by agent.abort", () => stopEverywhere(setting(), (agent) => agent.abort), timeout)

  it.effect(
    "A1, A3: by interrupting prompt's fiber",
    () => stopEverywhere(setting(), (_, run) => Fiber.interrupt(run)),
    timeout
  )

  for (const toolExecution of ["parallel", "sequential"] as const) {
    const hooks = [
      Hooks.transformContext((messages) => Effect.as(step, messages)),
      Hooks.beforeToolCall(() => Effect.as(step, Hooks.allow)),
      Hooks.afterToolCall(() => Effect.as(step, { details: "seen" })),
      Hooks.prepareNextTurn(() => step),
      Hooks.finishTurn(() => step)
    ]
    const given = { ...setting(), hooks, options: { toolExecution } }
    it.effect(
      `A1, A3: with hooks that take steps, ${toolExecution}`,
      () => stopEverywhere(given, (agent) => agent.abort, { count: 120 }),
      timeout
    )
  }

  // With the default of 2048 such a pause is rare, and can be anywhere.
  for (const [ops, count, stride] of [[3, 1500, 7], [4, 760, 5], [5, 540, 3], [7, 340, 2]] as const) {
    it.effect(
      `A1, A3, I4: where the runtime pauses after ${ops} operations`,
      () => stopEverywhere(setting(), (agent) => agent.abort, { count, ops, stride }),
      timeout
    )
  }
})

describe("A consumer that goes at every step", () => {
  const consumers: Record<string, (agent: Agent.AgentService) => Effect.Effect<unknown, unknown, StreamFn.StreamFn>> = {
    "Agent.stream": (agent) => Stream.runDrain(Agent.stream(agent, "go")),
    "Loop.stream": () => Stream.runDrain(Loop.stream([Messages.user("go")], { messages: [], tools: [] })),
    "agent.events": (agent) => Stream.runDrain(agent.events)
  }
  for (const [name, consume] of Object.entries(consumers)) {
    for (const ops of [3, 4, 5]) {
      test(
        `A1, I5: of ${name} leaves no run and no listener behind, with a pause after ${ops} operations`,
        () =>
          Effect.gen(function*() {
            const agent = yield* makeAgent({ gracePeriod: 10 })
            for (let steps = 0; steps < 100; steps++) {
              const consumer = yield* Effect.forkChild(opsBeforeYield(ops)(consume(agent)), { startImmediately: true })
              for (let n = 0; n < steps; n++) yield* step
              consumer.interruptUnsafe()
              yield* rest(consumer)
              assert.isTrue(ended(consumer), `after ${steps} steps`)
              assert.isFalse((yield* agent.state).isStreaming, `after ${steps} steps`)
            }
          }).pipe(Effect.provide(ScriptedModel.layer([], { otherwise: ScriptedModel.hang() }))),
        timeout
      )
    }
  }
})

describe("An abort before the first step", () => {
  for (const gracePeriod of [0, 1000]) {
    for (const ops of [3, 5, 7, 11]) {
      it.effect(
        `A4, I4: a grace period of ${gracePeriod} and a pause after ${ops} operations: the prompt is in the transcript`,
        () =>
          scene({ ...setting(), options: { gracePeriod } }, ({ agent, before, recorder }) =>
            Effect.gen(function*() {
              const run = yield* Effect.forkChild(opsBeforeYield(ops)(agent.prompt("go")), { startImmediately: true })
              const abort = yield* Effect.forkChild(agent.abort, { startImmediately: true })
              yield* rest(run)
              yield* rest(abort)
              const { messages, outcome } = yield* Fiber.join(run)
              if (outcome._tag === "Completed") return
              assert.strictEqual(Messages.text(messages[0]!), "go")
              assert.deepStrictEqual(
                violations({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] }),
                []
              )
            })),
        timeout
      )
    }
  }
})
