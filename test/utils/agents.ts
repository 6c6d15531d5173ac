/**
 * Agents with a scripted model, and what their listeners, their transcript and the log say.
 */
import { assert } from "@effect/vitest"
import { Cause, Effect, Fiber, Logger, References, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { Agent, type Events, Messages, type StreamFn, type Tools } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { type EventOf, ofType } from "./events.ts"
import { resultText } from "./sampleTools.ts"

export { ofType } from "./events.ts"

/** Runs a test with a scripted model, in a scope of its own. */
export const withModel = (...responses: ReadonlyArray<ScriptedModel.Response | ScriptedModel.Responder>) =>
<A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<Exclude<R, Scope.Scope>, StreamFn.StreamFn | ScriptedModel.ScriptedModel>> =>
  Effect.provide(Effect.scoped(effect), ScriptedModel.layer(responses))

/** The same with a model that answers every request. */
export const withEndlessModel = (otherwise: ScriptedModel.Response | ScriptedModel.Responder) =>
<A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<Exclude<R, Scope.Scope>, StreamFn.StreamFn | ScriptedModel.ScriptedModel>> =>
  Effect.provide(Effect.scoped(effect), ScriptedModel.layer([], { otherwise }))

/** Runs an effect to its end while the clock goes on, at most an hour. */
export const settled = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })

/** The events of an agent from now on. */
export const record = (agent: Agent.AgentService): Effect.Effect<Array<Events.AgentEvent>> => {
  const events: Array<Events.AgentEvent> = []
  return Effect.as(
    agent.subscribe((event) => {
      events.push(event)
    }),
    events
  )
}

/** An event in a word or two: `message_end A[a]`, `tool_execution_end a!`. */
export const line = (event: Events.AgentEvent): string => {
  switch (event.type) {
    case "message_start":
    case "message_end":
      return `${event.type} ${Transcript.print([event.message], { system: true })}`
    case "message_update":
      return `${event.type} ${event.assistantMessageEvent.type}`
    case "tool_execution_start":
      return `${event.type} ${event.toolCallId}`
    case "tool_execution_update":
      return `${event.type} ${event.toolCallId} ${resultText(event.partialResult)}`
    case "tool_execution_end":
      return `${event.type} ${event.toolCallId}${event.isError ? "!" : ""}`
    case "agent_end":
      return `${event.type} ${event.outcome._tag}`
    default:
      return event.type
  }
}

/** The events of tool executions, without the common prefix: `start a`, `update a 1`, `end a!`. */
export const toolLines = (events: ReadonlyArray<Events.AgentEvent>): ReadonlyArray<string> =>
  events.filter((event) => event.type.startsWith("tool_execution_")).map((event) =>
    line(event).slice("tool_execution_".length)
  )

/** The tool results of a transcript. */
export const answers = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<Messages.ToolResultMessage> =>
  messages.filter((message) => message.role === "toolResult")

/** Tool results as `[id, text]`, the text of an error result with `! ` before it. */
export const answerTexts = (
  messages: ReadonlyArray<Messages.AgentMessage>
): ReadonlyArray<readonly [id: string, text: string]> =>
  answers(messages).map((answer) => [answer.toolCallId, `${answer.isError ? "! " : ""}${Messages.text(answer)}`])

/** The result of a call with this id. */
export const answerTo = (messages: ReadonlyArray<Messages.AgentMessage>, id: string): Messages.ToolResultMessage => {
  const found = answers(messages).filter((answer) => answer.toolCallId === id)
  assert.lengthOf(found, 1, `results of ${id} in:\n${Transcript.show(messages)}`)
  return found[0]!
}

/** What users said, in the order of the transcript. */
export const said = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> =>
  messages.flatMap((message) => message.role === "user" ? [Messages.text(message)] : [])

/** The texts of the messages that wait: `[steering, followUps]`. */
export const waiting = (agent: Agent.AgentService): Effect.Effect<[Array<string>, Array<string>]> =>
  Effect.map(agent.queued, ({ followUps, steering }) => [steering.map(Messages.text), followUps.map(Messages.text)])

/** Starts and ends are balanced, `agent_start` is first, `agent_end` once and last (I3). */
export const assertBalanced = (events: ReadonlyArray<Events.AgentEvent>): void => {
  const shown = events.map(line).join("\n")
  const open: Array<string> = []
  const running = new Set<string>()
  const close = (type: string) => assert.strictEqual(open.pop(), type, shown)
  for (const event of events) {
    switch (event.type) {
      case "agent_start":
      case "turn_start":
      case "message_start":
        open.push(event.type.replace("_start", ""))
        break
      case "agent_end":
      case "turn_end":
      case "message_end":
        close(event.type.replace("_end", ""))
        break
      case "tool_execution_start":
        assert.isFalse(running.has(event.toolCallId), shown)
        running.add(event.toolCallId)
        break
      case "tool_execution_end":
        assert.isTrue(running.delete(event.toolCallId), shown)
        break
    }
  }
  assert.deepStrictEqual([open, [...running]], [[], []], shown)
  assert.deepStrictEqual(
    [events[0]?.type, events.at(-1)?.type, ofType(events, "agent_end").length],
    ["agent_start", "agent_end", 1],
    shown
  )
}

/** What was logged while an effect ran at any level, each entry with its cause, as text. */
export const logged = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<readonly [A, ReadonlyArray<string>], E, R> => {
  const entries: Array<string> = []
  const logger = Logger.make<unknown, void>(({ cause, message }) => {
    entries.push(`${String(message)} ${Cause.pretty(cause)}`)
  })
  return effect.pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "All"),
    Effect.map((value) => [value, entries] as const)
  )
}

/** What one call to one tool leads to: its end, its result message, all events. */
export interface Called {
  readonly end: EventOf<"tool_execution_end">
  readonly message: Messages.ToolResultMessage
  readonly text: string
  readonly events: ReadonlyArray<Events.AgentEvent>
}

/**
 * Lets a model call a tool once and then say something; asserts that whatever the tool does is one result and the run goes
 * on.
 */
export const callTool = <R>(
  tool: Tools.Tool<R>,
  args: Messages.JsonObject | string = {},
  options: { readonly name?: string } = {}
): Effect.Effect<Called, never, R> =>
  Effect.gen(function*() {
    const agent = yield* Effect.orDie(Agent.make({ tools: [tool] }))
    const events = yield* record(agent)
    const run = yield* settled(Effect.orDie(agent.prompt("go")))
    assertBalanced(events)
    const message = answerTo(run.messages, "a")
    assert.strictEqual(Transcript.print(run.messages), `U A[a] R(a${message.isError ? "!" : ""}) A`)
    assert.strictEqual(run.outcome._tag, "Completed")
    const [end, ...more] = ofType(events, "tool_execution_end")
    assert(end !== undefined && more.length === 0)
    assert.strictEqual(end.isError, message.isError)
    yield* ScriptedModel.assertComplete
    return { end, message, text: Messages.text(message), events }
  }).pipe(
    withModel(ScriptedModel.calls([["a", options.name ?? tool.name, args]]), ScriptedModel.text("fine"))
  ) as Effect.Effect<Called, never, R>
