/** Tests of one agent with a scripted model: what it did, and an abort after some time. */
import { assert } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Agent } from "../../src/index.ts"
import * as Messages from "../../src/Messages.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import type { Recorder } from "./events.ts"
import { violations } from "./invariants.ts"
import { ended, timed } from "./journey.ts"
import { type Setting, stage, watched } from "./play.ts"

/** An agent at work, and everything there is to know about it. */
export interface World {
  readonly agent: Agent.AgentService
  readonly recorder: Recorder
  readonly before: ReadonlyArray<Messages.AgentMessage>
}

/** A test of an agent with a scripted model. */
export const scene = <E>(
  setting: Setting & { readonly options?: Omit<Agent.Options, "tools"> },
  use: (world: World) => Effect.Effect<void, E, ScriptedModel.ScriptedModel | Scope.Scope>
): Effect.Effect<void, unknown> =>
  watched({ ...setting.options, tools: setting.tools ?? [] }).pipe(
    Effect.flatMap(use),
    Effect.scoped,
    Effect.provide(stage(setting))
  )

/** Checks the invariants and gives the shape of the transcript. */
export const shape = ({ agent, before, recorder }: World, accepted: ReadonlyArray<string> = ["go"]) =>
  Effect.gen(function*() {
    const transcript = yield* agent.messages
    const { followUps, steering } = yield* agent.queued
    const requests = yield* ScriptedModel.requests
    const queued = [...steering, ...followUps]
    assert.deepStrictEqual(
      violations({ events: recorder.events, before, transcript, requests, accepted, queued }),
      []
    )
    assert.deepStrictEqual(recorder.changed, [])
    return Transcript.print(transcript)
  })

/** The texts of the tool results. */
export const answers = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> =>
  messages.filter(({ role }) => role === "toolResult").map(Messages.text)

/** Starts and ends of tool executions: `start a`, `end a!`. */
export const executions = (recorder: Recorder): ReadonlyArray<string> =>
  recorder.outline.filter((event) => event.startsWith("tool_execution")).map((event) =>
    event.replace("tool_execution_", "")
  )

/** Starts a prompt, lets some time pass, aborts, and gives the result and when it came. */
export const abortAfter = ({ agent }: World, millis: number, grace = 0) =>
  Effect.gen(function*() {
    const run = yield* Effect.forkChild(timed(agent.prompt("go")))
    yield* TestClock.adjust(millis)
    const abort = yield* Effect.forkChild(agent.abort, { startImmediately: true })
    yield* TestClock.adjust(grace)
    assert.isTrue(ended(abort))
    yield* Fiber.join(abort)
    const [result, at] = yield* Fiber.join(run)
    return { result, at, outcome: result.outcome._tag }
  })
