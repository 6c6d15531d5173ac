/**
 * One run that passes everything an abort can hit: every hook, the key, the stream, two tools, every event, a steer and
 * a follow-up. Each place has a label, and something can be made to happen at one of them.
 */
import { Clock, Effect, type Fiber, Layer, Stream } from "effect"
import { Agent, ConvertToLlm, type Events, Hooks, Messages, StreamFn, type Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { Recorder } from "./events.ts"
import { tool } from "./timedTools.ts"

/** What an action can look at. */
export interface Scene {
  readonly agent: Agent.AgentService
  /** The labels that were passed, in order. */
  readonly visits: ReadonlyArray<string>
  /** How many requests were made. */
  readonly requests: Effect.Effect<number>
}

/** What happens at a label. */
export type Action = (scene: Scene) => Effect.Effect<void>

export interface Options {
  /** Where something happens, such as `transformContext 1` for the first call of that hook. */
  readonly at?: string
  readonly action?: Action
  readonly toolExecution?: Tools.ExecutionMode
  readonly gracePeriod?: number
  /** Hooks and tools cannot be interrupted, and finish what they do whenever that is. */
  readonly deaf?: boolean
}

const every = (millis: number, list: ReadonlyArray<StreamFn.StreamEvent>): ScriptedModel.Response =>
  ScriptedModel.events(list.map((event, index) => ({ ...event, at: index * millis })))

const firstResponse = every(1, [
  { type: "start" },
  { type: "thinking_start", contentIndex: 0 },
  { type: "thinking_delta", contentIndex: 0, delta: "hm" },
  { type: "thinking_end", contentIndex: 0 },
  { type: "text_start", contentIndex: 1 },
  { type: "text_delta", contentIndex: 1, delta: "so " },
  { type: "text_delta", contentIndex: 1, delta: "far" },
  { type: "text_end", contentIndex: 1 },
  { type: "toolcall_start", contentIndex: 2, id: "a", name: "a" },
  { type: "toolcall_delta", contentIndex: 2, delta: "{" },
  { type: "toolcall_delta", contentIndex: 2, delta: "}" },
  { type: "toolcall_end", contentIndex: 2 },
  { type: "toolcall_start", contentIndex: 3, id: "b", name: "b" },
  { type: "toolcall_end", contentIndex: 3 },
  { type: "done", stopReason: "toolUse" }
])

const text = (delta: string) =>
  every(1, [
    { type: "start" },
    { type: "text_start", contentIndex: 0 },
    { type: "text_delta", contentIndex: 0, delta },
    { type: "text_end", contentIndex: 0 },
    { type: "done" }
  ])

const eventName = (event: Events.AgentEvent): string => {
  switch (event.type) {
    case "message_start":
    case "message_end":
      return `on ${event.type} ${event.message.role}`
    case "message_update":
      return `on ${event.assistantMessageEvent.type}`
    default:
      return `on ${event.type}`
  }
}

/** An agent that is about to make the journey. */
export const make = Effect.fnUntraced(function*(options: Options) {
  const visits: Array<string> = []
  const accepted: Array<string> = []
  const counts = new Map<string, number>()
  const recorder = new Recorder()
  const model = yield* ScriptedModel.make([firstResponse, text("2"), text("3")], { otherwise: text("more") })
  const { action = () => Effect.void, at } = options
  const requests = Effect.map(model.requests, (requests) => requests.length)
  // Known to every place that can be visited: nothing is before the agent is made.
  const host: { agent?: Agent.AgentService } = {}

  const visit = (name: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const count = (counts.get(name) ?? 0) + 1
      counts.set(name, count)
      const label = `${name} ${count}`
      visits.push(label)
      return label === at ? action({ agent: host.agent!, requests, visits }) : Effect.void
    })

  const all = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    options.deaf === true ? Effect.uninterruptible(effect) : effect
  const pass = <A>(name: string, answer: A): Effect.Effect<A> => all(Effect.as(visit(name), answer))

  const place = (name: "a" | "b", millis: number) =>
    tool(name, ({ update }) =>
      all(Effect.gen(function*() {
        yield* visit(`tool ${name}`)
        yield* Effect.sleep(millis)
        yield* update("progress")
        yield* Effect.sleep(millis)
        return "done"
      })))

  const hooks = Hooks.layer(
    Hooks.transformContext((messages) => pass("transformContext", messages)),
    Hooks.apiKey(() => pass("apiKey", "key")),
    Hooks.prepareRequest(() => pass("prepareRequest", { thinkingLevel: "low" as const })),
    Hooks.prepareNextTurn(() => pass("prepareNextTurn", { messages: [Messages.system("Be brief.")] })),
    Hooks.beforeToolCall(() => pass("beforeToolCall", Hooks.allow)),
    Hooks.afterToolCall(() => pass("afterToolCall", { details: "seen" })),
    Hooks.finishTurn(({ message }) =>
      pass("finishTurn", Messages.toolCalls(message).length > 0 ? "continue" : undefined)
    )
  )
  const conversion = ConvertToLlm.layer((messages) => pass("convertToLlm", messages.filter(Messages.isMessage)))
  const stream = (request: StreamFn.StreamRequest) =>
    Stream.unwrap(Effect.as(
      visit("connect"),
      model.stream(request).pipe(Stream.tap((event) => visit(`stream ${event.type}`)))
    ))

  const agent = yield* Agent.make({
    tools: [place("a", 5), place("b", 10)],
    toolExecution: options.toolExecution,
    gracePeriod: options.gracePeriod
  }).pipe(
    Effect.provideService(StreamFn.StreamFn, { stream }),
    Effect.provide(Layer.mergeAll(hooks, conversion))
  )
  host.agent = agent
  const before = yield* agent.messages

  /** Queued while the first response is streamed: the steer is delivered in the second turn, the follow-up in the third. */
  const queue = Effect.andThen(agent.steer("S"), agent.followUp("F")).pipe(
    Effect.tap(() => Effect.sync(() => accepted.push("S", "F")))
  )
  yield* agent.subscribe((event) =>
    Effect.andThen(
      recorder.record(event),
      event.type === "message_start" && event.message.role === "assistant" && accepted.length === 1
        ? queue
        : Effect.void
    )
  )
  yield* agent.subscribe((event) => visit(eventName(event)))
  // Told after the one that may be busy.
  const last = new Recorder()
  yield* agent.subscribe(last.record)

  const prompt = (text: string) =>
    Effect.suspend(() => {
      accepted.push(text)
      return agent.prompt(text)
    })
  return { accepted, agent, before, last, model, prompt, recorder, requests, visits }
})

/** When the effect ended, beside its result. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.zip(effect, Clock.currentTimeMillis)

/** Whether a fiber has ended. */
export const ended = <A, E>(fiber: Fiber.Fiber<A, E>): boolean => fiber.pollUnsafe() !== undefined
