/** Whole runs of an agent on a script, watched, logged and checked against the invariants. */
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { type Agent, type Events, type Hooks, Messages, type StreamFn, type Tools } from "../../src/index.ts"
import type { RunResult } from "../../src/RunResult.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { logged } from "../utils/agents.ts"
import { ofType, type Recorder } from "../utils/events.ts"
import { assertInvariants } from "../utils/invariants.ts"
import { leakFree } from "../utils/leaks.ts"
import { finish, stage, watched } from "../utils/play.ts"

/** What a test supplies. */
export interface Setting {
  readonly responses: ReadonlyArray<ScriptedModel.Response | ScriptedModel.Responder>
  readonly tools?: ReadonlyArray<Tools.Tool>
  readonly hooks?: ReadonlyArray<Hooks.Hook>
  readonly options?: Omit<Agent.Options, "tools">
  /** One run each; default: `go`. */
  readonly prompts?: ReadonlyArray<string>
}

/** What came of it. */
export interface Scene {
  /** The last run. */
  readonly run: RunResult
  readonly runs: ReadonlyArray<RunResult>
  /** The whole transcript. */
  readonly messages: ReadonlyArray<Messages.AgentMessage>
  /** Its shape. */
  readonly shape: string
  readonly requests: ReadonlyArray<ScriptedModel.RecordedRequest>
  readonly recorder: Recorder
  readonly events: ReadonlyArray<Events.AgentEvent>
  readonly logs: ReadonlyArray<string>
  /** What the model was told about a call, `! ` before an error. */
  readonly answer: (id: string) => string
}

/** The text of the result of a call, `! ` before an error; fails unless there is exactly one. */
export const answerOf = (messages: ReadonlyArray<Messages.AgentMessage>, id: string): string => {
  const texts = messages.flatMap((message) =>
    message.role === "toolResult" && message.toolCallId === id
      ? [`${message.isError ? "! " : ""}${Messages.text(message)}`]
      : []
  )
  assert.lengthOf(texts, 1, `results of ${id} in:\n${Transcript.show(messages)}`)
  return texts[0]!
}

/** Every call's `tool_execution_end`, its hook-visible and its recorded form agree. */
const assertResultsAgree = (
  events: ReadonlyArray<Events.AgentEvent>,
  messages: ReadonlyArray<Messages.AgentMessage>
): void => {
  const results = messages.filter((message) => message.role === "toolResult")
  const flags = ofType(events, "tool_execution_end").map(({ isError, toolCallId }) => `${toolCallId} ${isError}`)
  assert.deepStrictEqual(
    results.map(({ isError, toolCallId }) => `${toolCallId} ${isError}`).toSorted(),
    flags.toSorted()
  )
}

/** Runs an agent, one run a prompt, at most an hour each; every response has to be asked for, and nothing may be left. */
export const play = (setting: Setting): Effect.Effect<Scene> => {
  const { hooks = [], options = {}, prompts = ["go"], responses, tools = [] } = setting
  const playing = Effect.gen(function*() {
    const { agent, before, recorder } = yield* watched({ ...options, tools })
    const runs: Array<RunResult> = []
    for (const prompt of prompts) runs.push(yield* finish(agent.prompt(prompt)))
    const messages = yield* agent.messages
    const requests = yield* ScriptedModel.requests
    const { events } = recorder
    assertInvariants({ events, before, transcript: messages, requests, accepted: prompts })
    assertResultsAgree(events, messages.slice(before.length))
    assert.deepStrictEqual(recorder.changed, [])
    assert.strictEqual((yield* agent.state).pendingToolCalls.size, 0)
    yield* ScriptedModel.assertComplete
    return { runs, messages, requests, recorder, events }
  })
  return logged(Effect.orDie(leakFree(Effect.provide(playing, stage({ responses, hooks }))))).pipe(
    Effect.map(([played, logs]): Scene => ({
      ...played,
      logs,
      run: played.runs.at(-1)!,
      shape: Transcript.print(played.messages),
      answer: (id) => answerOf(played.messages, id)
    }))
  )
}

/** A scope and a scripted model for tests that drive an agent themselves. */
export const withStage = (setting: Setting) =>
<A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<Exclude<R, Scope.Scope>, StreamFn.StreamFn | ScriptedModel.ScriptedModel>> =>
  Effect.provide(Effect.scoped(effect), stage(setting))

/** Subscribes a listener that returns nothing. */
export const listen = (
  agent: Agent.AgentService,
  listener: (event: Events.AgentEvent) => void
): Effect.Effect<void> => Effect.asVoid(agent.subscribe(listener))

/** Bytes of a text as UTF-8. */
export const bytes = (text: string): number => Buffer.byteLength(text)

/** An error result of at most 2 KB of well-formed text that holds the words. */
export const assertRefusal = (answer: string, ...words: ReadonlyArray<string>): void => {
  assert.match(answer, /^! /)
  assert.isTrue(answer.isWellFormed())
  assert.isAtMost(bytes(answer) - 2, 2048)
  for (const word of words) assert.include(answer, word)
}

/** Both ways to run the calls of a response. */
export const modes: ReadonlyArray<Tools.ExecutionMode> = ["parallel", "sequential"]
