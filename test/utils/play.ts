/** Runs agents and loops on scripts, with an hour of virtual time. */
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Loop } from "../../src/index.ts"
import * as Messages from "../../src/Messages.ts"
import type { RunResult } from "../../src/RunResult.ts"
import type { StreamFn } from "../../src/StreamFn.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import type { Tool } from "../../src/Tools.ts"
import { Recorder } from "./events.ts"
import { assertInvariants } from "./invariants.ts"

/** Forks an effect, lets an hour pass, and gives its result. */
export const finish = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })

/** What a test supplies. */
export interface Setting {
  readonly responses: ReadonlyArray<ScriptedModel.Response | ScriptedModel.Responder>
  readonly hooks?: ReadonlyArray<Hooks.Hook>
  readonly tools?: ReadonlyArray<Tool>
}

/** The scripted model and the hooks. */
export const stage = ({ hooks = [], responses }: Setting): Layer.Layer<StreamFn | ScriptedModel.ScriptedModel> =>
  Layer.mergeAll(ScriptedModel.layer(responses), Hooks.layer(...hooks))

/** A loop that has ended. */
export interface Played {
  readonly result: RunResult
  readonly recorder: Recorder
  readonly requests: ReadonlyArray<ScriptedModel.RecordedRequest>
}

/** What a loop starts from, beside the setting. */
export interface LoopSetting extends Setting {
  readonly prompts?: ReadonlyArray<Messages.AgentMessage>
  /** Without it, `continue_` is used. */
  readonly messages?: ReadonlyArray<Messages.AgentMessage>
  readonly options?: Omit<Loop.LoopOptions, "emit">
}

const atEnd = (recorder: Recorder) => (result: RunResult) =>
  Effect.gen(function*() {
    const requests = yield* ScriptedModel.requests
    assertInvariants({ events: recorder.events, requests })
    return { result, recorder, requests }
  })

/** Runs the loop alone; checks the invariants. */
export const loop = (setting: LoopSetting): Effect.Effect<Played, unknown> =>
  Effect.suspend(() => {
    const recorder = new Recorder()
    const { messages = [], options, prompts = [Messages.user("go")], tools = [] } = setting
    return finish(Loop.run(prompts, { messages, tools }, { ...options, emit: recorder.record })).pipe(
      Effect.flatMap(atEnd(recorder)),
      Effect.provide(stage(setting))
    )
  })

/** Continues a context with the loop alone; checks the invariants. */
export const continueLoop = (setting: LoopSetting): Effect.Effect<Played, unknown> =>
  Effect.suspend(() => {
    const recorder = new Recorder()
    const { messages = [], options, tools = [] } = setting
    return finish(Loop.continue_({ messages, tools }, { ...options, emit: recorder.record })).pipe(
      Effect.flatMap(atEnd(recorder)),
      Effect.provide(stage(setting))
    )
  })

/** An agent whose events are recorded. */
export const watched = <const T extends ReadonlyArray<Tool>>(options: Agent.Options<T>) =>
  Effect.gen(function*() {
    const recorder = new Recorder()
    const agent = yield* Agent.make(options)
    yield* agent.subscribe(recorder.record)
    return { agent, recorder, before: yield* agent.messages }
  })
