/** The driver actions of SCENARIO.md, section 8, against an agent. */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Agent from "../../src/Agent.ts"
import * as Loop from "../../src/Loop.ts"
import type { AgentMessage, ImageContent } from "../../src/Messages.ts"
import type * as StreamFn from "../../src/StreamFn.ts"
import { normMessage, normMessages, roles, showTool } from "./normalize.mjs"
import type { Draft, Outcome, Perform, ScriptedFailure, Stage } from "./stage.ts"
import type { TraceListener } from "./trace.ts"
import type { InnerAction, ListenerRule, LowLevelAction } from "./types.ts"
import { compact, contentIn, modelIn } from "./values.mjs"

/** What everything outside a run lives in: time, model, hooks, and the scope of the agent. */
export type Root = Context.Context<StreamFn.StreamFn | Scope.Scope>

type AnyAgent = Agent.Agent["Service"]

export const errorText = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

export const stateOf = Effect.fnUntraced(function*(agent: AnyAgent) {
  const state = yield* agent.state
  return {
    ...compact({
      isStreaming: state.isStreaming,
      streamingMessage: state.streamingMessage && normMessage(state.streamingMessage),
      pendingToolCalls: [...state.pendingToolCalls],
      errorMessage: state.errorMessage,
      model: state.model.id,
      thinkingLevel: state.thinkingLevel,
      systemPrompt: state.systemPrompt,
      tools: state.tools.map(showTool)
    }),
    messages: state.messages
  }
})

class Driver {
  readonly #stage: Stage
  readonly #agent: AnyAgent
  readonly #root: Root
  readonly #unsubscribe = new Map<string, Effect.Effect<void>>()
  readonly #listened = new Map<ListenerRule, number>()

  constructor(stage: Stage, agent: AnyAgent, root: Root) {
    this.#stage = stage
    this.#agent = agent
    this.#root = root
  }

  /** Forks what settles later, outside of any run, and writes down how it settles. */
  #fork<A, E>(outcome: Outcome, effect: Effect.Effect<A, E, StreamFn.StreamFn | Scope.Scope>): Effect.Effect<void> {
    return Effect.sync(() => {
      outcome.outcome = "pending"
      const fiber: Fiber.Fiber<A, E> = Effect.runForkWith(this.#root)(effect)
      fiber.addObserver((exit) => {
        outcome.outcome = Exit.isSuccess(exit) ? "resolved" : "rejected"
        outcome.t = this.#stage.now()
        if (Exit.isFailure(exit)) outcome.error = errorText(exit.cause)
      })
    })
  }

  /** The scenario does not wait until an abort is settled; inside a run the agent itself does not. */
  #abort(outcome: Outcome): Effect.Effect<void> {
    if (outcome.from === undefined) return Effect.sync(() => void Effect.runForkWith(this.#root)(this.#agent.abort))
    outcome.outcome = "ok"
    return this.#agent.abort
  }

  listen(name: string): Effect.Effect<void> {
    const listener = this.#stage.scenario.listeners?.find((listener) => listener.name === name)
    if (listener === undefined) throw new Error(`no listener ${name}`)
    if (this.#unsubscribe.has(name)) return Effect.void
    const subscribed = this.#agent.subscribe((event): Effect.Effect<void, ScriptedFailure> | undefined => {
      const call = "toolCallId" in event ? event.toolCallId : undefined
      const role = "message" in event ? event.message.role : undefined
      for (const rule of listener.rules) {
        if (rule.on !== event.type) continue
        if (rule.role !== undefined && rule.role !== role) continue
        if (rule.call !== undefined && rule.call !== call) continue
        const nth = (this.#listened.get(rule) ?? 0) + 1
        this.#listened.set(rule, nth)
        if (rule.nth !== undefined && rule.nth !== nth) continue
        const entry: Draft<TraceListener> = compact({
          t: this.#stage.now(),
          listener: name,
          on: event.type,
          call,
          role
        })
        this.#stage.recording.listeners.push(entry)
        return Effect.map(this.#stage.apply(rule, `listener:${name}`), () => {
          entry.done = this.#stage.now()
        })
      }
      return undefined
    })
    return Effect.map(subscribed, (unsubscribe) => {
      this.#unsubscribe.set(name, unsubscribe)
    })
  }

  #unlisten(name: string): Effect.Effect<void> {
    const unsubscribe = this.#unsubscribe.get(name)
    this.#unsubscribe.delete(name)
    return unsubscribe ?? Effect.void
  }

  #lowLevel(action: LowLevelAction, outcome: Outcome): Effect.Effect<void> {
    const stage = this.#stage
    const { model, thinkingLevel, toolExecution } = stage.scenario.agent
    const context = {
      messages: stage.messages(action.context.messages),
      tools: (action.context.tools ?? []).map(stage.tool)
    }
    const options = { ...compact({ thinkingLevel, toolExecution }), model: modelIn(model ?? "m1") }
    const prompts = action.do === "loopContinue" ? [] : stage.messages(action.prompts)
    const returned: Effect.Effect<ReadonlyArray<AgentMessage>, unknown, StreamFn.StreamFn> = action.do === "loopStream"
      ? Effect.suspend(() => {
        let messages: ReadonlyArray<AgentMessage> = []
        return Effect.map(
          Stream.runForEach(Loop.stream(prompts, context, options), (event) =>
            Effect.sync(() => {
              if (event.type === "agent_end") messages = event.messages
              stage.record(event)
            })),
          () => messages
        )
      })
      : Effect.map(
        action.do === "loop"
          ? Loop.run(prompts, context, { ...options, emit: stage.record })
          : Loop.continue_(context, { ...options, emit: stage.record }),
        (result) => result.messages
      )
    return this.#fork(
      outcome,
      Effect.map(returned, (messages) => {
        outcome.value = { returned: normMessages(messages), callerContext: roles(context.messages) }
      })
    )
  }

  #prompt(action: InnerAction & { readonly do: "prompt" }, outcome: Outcome): Effect.Effect<void> {
    const { images, input } = action
    if (typeof input === "string") {
      return this.#fork(
        outcome,
        this.#agent.prompt(input, images && { images: contentIn<ImageContent>(images) })
      )
    }
    const messages = "role" in input ? this.#stage.message(input) : this.#stage.messages(input)
    return this.#fork(outcome, this.#agent.prompt(messages))
  }

  #start(action: InnerAction, outcome: Outcome): Effect.Effect<unknown, unknown> {
    const agent = this.#agent
    const stage = this.#stage
    switch (action.do) {
      case "prompt":
        return this.#prompt(action, outcome)
      case "continue":
        return this.#fork(outcome, agent.continue)
      case "waitIdle":
        return this.#fork(outcome, agent.awaitIdle)
      case "steer":
        return agent.steer(stage.message(action.message))
      case "followUp":
        return agent.followUp(stage.message(action.message))
      case "abort":
        return this.#abort(outcome)
      case "reset":
        return agent.reset
      case "clearSteering":
        return agent.clearSteering
      case "clearFollowUp":
        return agent.clearFollowUps
      case "clearAll":
        return agent.clearQueues
      case "setTools":
        return agent.setTools(action.tools.map(stage.tool))
      case "setModel":
        return agent.setModel(modelIn(action.model))
      case "setThinkingLevel":
        return agent.setThinkingLevel(action.level)
      case "setMessages":
        return agent.setMessages(stage.messages(action.messages))
      case "pushMessage":
        return agent.appendMessages([stage.message(action.message)])
      case "setSteeringMode":
        return agent.setSteeringMode(action.mode)
      case "setFollowUpMode":
        return agent.setFollowUpMode(action.mode)
      case "setToolExecution":
        return agent.setToolExecution(action.mode)
      case "setSessionId":
        return agent.setSessionId(action.id)
      case "subscribe":
        return this.listen(action.listener)
      case "unsubscribe":
        return this.#unlisten(action.listener)
      case "peek":
        return Effect.gen(function*() {
          const messages = normMessages(yield* agent.peek)
          const { followUps, steering } = yield* agent.queued
          outcome.value = { messages, hasQueued: steering.length + followUps.length > 0 }
        })
      case "snapshot":
        return Effect.map(stateOf(agent), ({ messages, ...state }) => {
          outcome.value = { ...state, roles: roles(messages) }
        })
      case "loop":
      case "loopContinue":
      case "loopStream":
        return this.#lowLevel(action, outcome)
    }
  }

  readonly perform: Perform = (action, outcome) =>
    Effect.matchCause(Effect.suspend(() => this.#start(action, outcome)), {
      onSuccess: () => {
        outcome.outcome ??= "ok"
      },
      onFailure: (cause) => {
        outcome.outcome = "rejected"
        outcome.t = this.#stage.now()
        outcome.error = errorText(cause)
      }
    })
}

/** Subscribes the recorder and the listeners of the scenario; the way to perform actions from then on. */
export const direct = Effect.fnUntraced(function*(stage: Stage, agent: AnyAgent, root: Root) {
  const driver = new Driver(stage, agent, root)
  yield* Effect.asVoid(agent.subscribe(stage.record))
  for (const { initially, name } of stage.scenario.listeners ?? []) if (initially !== false) yield* driver.listen(name)
  return driver.perform
})
