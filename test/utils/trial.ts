/** An agent on a script, watched and checked against the invariants, in the settings a fault can depend on. */
import { assert } from "@effect/vitest"
import { Clock, Effect, type Exit, Fiber, type Stream } from "effect"
import {
  type Agent,
  type Errors,
  type Events,
  Hooks,
  Messages,
  type Queues,
  StreamFn,
  type Tools
} from "../../src/index.ts"
import type { RunResult } from "../../src/RunResult.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { Recorder } from "./events.ts"
import { violations } from "./invariants.ts"
import { makeAgent, pass, rest, subscribe } from "./leaks.ts"

/** Who listens: nobody, one that answers at once, one that lets others run first. */
export type Audience = "nobody" | "plain" | "waiting"

type ModelStream = Stream.Stream<StreamFn.StreamEvent, Errors.ModelError>

/** What a test supplies. */
export interface Setting extends Omit<Agent.Options, "tools"> {
  readonly responses?: ReadonlyArray<ScriptedModel.Response | ScriptedModel.Responder>
  /** Answers the requests beyond them. */
  readonly otherwise?: ScriptedModel.Response | ScriptedModel.Responder
  /** Stands between the agent and the scripted model. */
  readonly wrap?: (stream: ModelStream, request: StreamFn.StreamRequest) => ModelStream
  readonly tools?: ReadonlyArray<Tools.Tool>
  readonly hooks?: ReadonlyArray<Hooks.Hook>
  /** Default: `waiting`. */
  readonly audience?: Audience
}

const listenerOf = (recorder: Recorder, audience: Audience, clock: Clock.Clock): Agent.Listener =>
  audience === "plain"
    ? (event) => {
      Effect.runSync(Effect.provideService(recorder.record(event), Clock.Clock, clock))
    }
    : (event) => Effect.andThen(recorder.record(event), Effect.yieldNow)

/** The trial of one agent. */
export class Trial {
  readonly agent: Agent.AgentService
  readonly model: ScriptedModel.ScriptedModel["Service"]
  readonly recorder: Recorder
  /** What the recorder has heard. */
  readonly watched: boolean
  readonly before: ReadonlyArray<Messages.AgentMessage>
  /** The texts that were prompted and queued. */
  readonly accepted: Array<string> = []

  constructor(fields: Pick<Trial, "agent" | "model" | "recorder" | "watched" | "before">) {
    this.agent = fields.agent
    this.model = fields.model
    this.recorder = fields.recorder
    this.watched = fields.watched
    this.before = fields.before
  }

  prompt(text = "go"): Effect.Effect<RunResult, Errors.AgentBusy | Errors.InvalidPrompt> {
    return Effect.suspend(() => {
      this.accepted.push(text)
      return this.agent.prompt(text)
    })
  }

  steer(text: string, options?: Agent.QueueOptions): Effect.Effect<Queues.Receipt> {
    return Effect.tap(this.agent.steer(text, options), () => Effect.sync(() => this.accepted.push(text)))
  }

  followUp(text: string, options?: Agent.QueueOptions): Effect.Effect<Queues.Receipt> {
    return Effect.tap(this.agent.followUp(text, options), () => Effect.sync(() => this.accepted.push(text)))
  }

  /** Begins a run and gives the fiber that waits for its result and the time it came at. */
  start(text?: string) {
    return Effect.forkChild(Effect.zip(this.prompt(text), Clock.currentTimeMillis), { startImmediately: true })
  }

  /** A whole run, at most a day long. */
  run(text?: string): Effect.Effect<RunResult, Errors.AgentBusy | Errors.InvalidPrompt> {
    return Effect.gen({ self: this }, function*() {
      const fiber = yield* this.start(text)
      yield* pass("1 day")
      const [result] = yield* Fiber.join(fiber)
      return result
    })
  }

  /** Aborts the run of a fiber of {@link start} now, checks that it is settled after `grace`, and gives its result. */
  abort<E>(fiber: Fiber.Fiber<readonly [RunResult, number], E>, grace = 0): Effect.Effect<RunResult, E> {
    return Effect.gen({ self: this }, function*() {
      const requests = yield* this.requests
      const now = yield* Clock.currentTimeMillis
      const aborting = yield* Effect.forkChild(this.agent.abort, { startImmediately: true })
      if (grace > 0) {
        yield* pass(grace - 1)
        assert.isUndefined(fiber.pollUnsafe(), "settled before the grace was over")
        yield* pass(1)
      } else yield* rest
      assert.isDefined(fiber.pollUnsafe(), "settled when the grace was over")
      assert.isDefined(aborting.pollUnsafe())
      const [result, at] = yield* Fiber.join(fiber)
      assert.deepStrictEqual([result.outcome._tag, at], ["Aborted", now + grace])
      assert.strictEqual(yield* this.requests, requests, "I2: no request after the abort")
      return result
    })
  }

  /** How many requests were made. */
  get requests(): Effect.Effect<number> {
    return Effect.map(this.model.requests, ({ length }) => length)
  }

  /** The messages of a request, counted from 0; system messages left out. */
  request(index: number): Effect.Effect<ReadonlyArray<Messages.Message>> {
    return Effect.map(this.model.requests, (requests) => {
      assert(requests[index] !== undefined, `request ${index} of ${requests.length}`)
      return requests[index].messages.filter(({ role }) => role !== "system")
    })
  }

  /** The texts that wait, steering messages first. */
  get queued(): Effect.Effect<ReadonlyArray<string>> {
    return Effect.map(this.agent.queued, ({ followUps, steering }) => [...steering, ...followUps].map(Messages.text))
  }

  /** Checks I1, I3, I4, I6 and that nothing handed out has changed, and gives the shape of the transcript. */
  get shape(): Effect.Effect<string> {
    return Effect.gen({ self: this }, function*() {
      const transcript = yield* this.agent.messages
      const { followUps, steering } = yield* this.agent.queued
      const found = violations({
        events: this.recorder.events,
        before: this.watched ? this.before : transcript,
        transcript,
        requests: yield* this.model.requests,
        accepted: this.accepted,
        queued: [...steering, ...followUps]
      })
      assert.deepStrictEqual([...found, ...this.recorder.changed], [], Transcript.show(transcript))
      return Transcript.print(transcript)
    })
  }

  /** The events of one kind. */
  heard<T extends Events.AgentEventType>(type: T): ReadonlyArray<Extract<Events.AgentEvent, { readonly type: T }>> {
    return this.recorder.events.filter((event): event is Extract<Events.AgentEvent, { readonly type: T }> =>
      event.type === type
    )
  }

  /** Lets a day pass: transcript, events and requests stay as they are. */
  get nothingFollows(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const now = Effect.all([this.agent.messages, this.requests, this.queued, Effect.sync(() => this.recorder.bytes)])
      const then = yield* now
      yield* pass("1 day")
      assert.deepStrictEqual(yield* now, then)
    })
  }
}

/** An agent that is ready. */
export const makeTrial = Effect.fnUntraced(function*(setting: Setting) {
  const { audience = "waiting", hooks = [], otherwise, responses = [], tools = [], wrap, ...options } = setting
  const model = yield* ScriptedModel.make(responses, { otherwise })
  const stream = (request: StreamFn.StreamRequest): ModelStream => {
    const scripted = model.stream(request)
    return wrap === undefined ? scripted : wrap(scripted, request)
  }
  const agent = yield* makeAgent({ ...options, tools }).pipe(
    Effect.provideService(StreamFn.StreamFn, { stream }),
    Effect.provide(Hooks.layer(...hooks)),
    Effect.orDie
  )
  const recorder = new Recorder()
  if (audience !== "nobody") yield* subscribe(agent, listenerOf(recorder, audience, yield* Clock.Clock))
  return new Trial({ agent, model, recorder, watched: audience !== "nobody", before: yield* agent.messages })
})

/** Hooks of every kind that change nothing and let others run first. */
export const passiveHooks: ReadonlyArray<Hooks.Hook> = [
  Hooks.transformContext((messages) => Effect.as(Effect.yieldNow, messages)),
  Hooks.beforeToolCall(() => Effect.as(Effect.yieldNow, Hooks.allow)),
  Hooks.afterToolCall(() => Effect.yieldNow),
  Hooks.finishTurn(() => Effect.yieldNow),
  Hooks.prepareNextTurn(() => Effect.yieldNow),
  Hooks.prepareRequest(() => Effect.yieldNow),
  Hooks.apiKey(() => Effect.as(Effect.yieldNow, "key"))
]

/** The settings in which a rule must hold alike: both modes, with and without listeners and hooks. */
export const settings: ReadonlyArray<readonly [name: string, setting: Setting]> = (["parallel", "sequential"] as const)
  .flatMap((toolExecution) =>
    ([
      ["nobody listens", { audience: "nobody" }],
      ["a plain listener", { audience: "plain" }],
      ["a waiting listener", { audience: "waiting" }],
      ["a waiting listener and hooks", { audience: "waiting", hooks: passiveHooks }]
    ] as const).map(([name, setting]) => [`${toolExecution}, ${name}`, { ...setting, toolExecution }] as const)
  )

/** Both modes, watched. */
export const modes: ReadonlyArray<Tools.ExecutionMode> = ["parallel", "sequential"]

/** Results as `a: text`, errors as `a! text`. */
export const results = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> =>
  messages.flatMap((message) =>
    message.role === "toolResult"
      ? [`${message.toolCallId}${message.isError ? "!" : ":"} ${Messages.text(message)}`]
      : []
  )

/** The last assistant message. */
export const lastResponse = (messages: ReadonlyArray<Messages.AgentMessage>): Messages.AssistantMessage => {
  const found = messages.findLast((message) => message.role === "assistant")
  assert(found !== undefined, Transcript.show(messages))
  return found
}

/** How a fiber ended, `undefined` while it works. */
export const exitOf = <A, E>(fiber: Fiber.Fiber<A, E>): Exit.Exit<A, E> | undefined => fiber.pollUnsafe()
