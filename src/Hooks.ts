/**
 * Hooks change what an agent does at seven places of its loop. A hook is a value; `Hooks.layer` supplies a list of them.
 *
 * Hooks of one kind run in the order given: every `beforeToolCall` is asked until one blocks, each `afterToolCall` sees
 * what the one before made of the result, `transformContext` chains, every `finishTurn` is asked and `end` beats
 * `continue`, `prepareNextTurn` and `prepareRequest` each see what the one before made, the first `apiKey` that answers
 * wins.
 *
 * A failing `beforeToolCall` or `afterToolCall` makes an error result of that call. Any other failing hook ends the run
 * as `Failed` with a `HookError` that names it. An abort interrupts a hook.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { withoutAmbient } from "./internal/currentRun.ts"
import type {
  AgentMessage,
  AssistantMessage,
  Json,
  ThinkingLevel,
  ToolCall,
  ToolResultMessage,
  Usage
} from "./Messages.ts"
import type { Model } from "./StreamFn.ts"
import type { Any as AnyTool, Content, Services, ToolResult } from "./Tools.ts"

/**
 * The working context of a run: what the model sees and the tools that can be executed.
 *
 * **Gotchas**
 *
 * `messages` is a read-only view that grows while the run goes on; its messages never change.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunContext {
  readonly messages: ReadonlyArray<AgentMessage>
  readonly tools: ReadonlyArray<AnyTool>
}

/**
 * A replacement of the working context; what is absent stays. It lasts for the rest of the run and does not touch the
 * agent's transcript.
 *
 * @category models
 * @since 0.1.0
 */
export interface ContextUpdate<T extends AnyTool = never> {
  readonly messages?: ReadonlyArray<AgentMessage> | undefined
  readonly tools?: ReadonlyArray<T> | undefined
}

/**
 * What `beforeToolCall` is asked about.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolCallRequest {
  readonly toolCall: ToolCall
  /** The decoded arguments, as the tool will get them. */
  readonly args: unknown
  readonly assistantMessage: AssistantMessage
  readonly context: RunContext
}

/**
 * The answer of `beforeToolCall`; made by {@link allow}, {@link allowWith} and {@link block}.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolCallDecision =
  | { readonly _tag: "Allow" }
  | { readonly _tag: "AllowWith"; readonly args: unknown }
  | { readonly _tag: "Block"; readonly reason: string | undefined; readonly terminate: boolean }

/**
 * What `afterToolCall` sees.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolCallOutcome extends ToolCallRequest {
  readonly result: ToolResult
  readonly isError: boolean
}

/**
 * A change of a tool's result, field by field: an absent field keeps its value, `details: null` replaces it. Content
 * replaced without `structuredContent` drops the latter.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolResultPatch {
  readonly content?: Content | undefined
  readonly details?: unknown
  readonly structuredContent?: Json | undefined
  readonly usage?: Usage | undefined
  readonly isError?: boolean | undefined
  readonly terminate?: boolean | undefined
}

/**
 * A finished turn.
 *
 * @category models
 * @since 0.1.0
 */
export interface FinishedTurn {
  readonly message: AssistantMessage
  readonly toolResults: ReadonlyArray<ToolResultMessage>
  readonly context: RunContext
  /** What the run has added so far. */
  readonly newMessages: ReadonlyArray<AgentMessage>
}

/**
 * The answer of `finishTurn`: `end` ends the run without reading a queue, `continue` makes sure that at least one more
 * request follows.
 *
 * @category models
 * @since 0.1.0
 */
export type TurnDecision = "end" | "continue"

/**
 * What `prepareRequest` sees.
 *
 * @category models
 * @since 0.1.0
 */
export interface PreparedRequest {
  readonly context: RunContext
  readonly model: Model
  readonly thinkingLevel: ThinkingLevel
}

/**
 * The answer of `prepareRequest`; what is absent stays.
 *
 * @category models
 * @since 0.1.0
 */
export interface RequestUpdate<T extends AnyTool = never> {
  readonly context?: ContextUpdate<T> | undefined
  readonly model?: Model | undefined
  readonly thinkingLevel?: ThinkingLevel | undefined
}

/**
 * The answer of `prepareNextTurn`; `messages` are appended before the next request.
 *
 * @category models
 * @since 0.1.0
 */
export interface TurnUpdate<T extends AnyTool = never> extends RequestUpdate<T> {
  readonly messages?: ReadonlyArray<AgentMessage> | undefined
}

/** A value, or an effect of one. */
type Answer<A, E, R> = A | Effect.Effect<A, E, R>

/** A hook whose requirements are met. */
type Bound<Input, A> = (input: Input) => Answer<A, unknown, never>

/**
 * A bound hook that may bring tools along, with the services those tools ask for.
 *
 * @category models
 * @since 0.1.0
 */
export interface BoundUpdate<Input, A> {
  readonly run: Bound<Input, A | void>
  readonly services: Context.Context<never>
}

/**
 * The hooks in use, by kind, with all requirements met.
 *
 * @category models
 * @since 0.1.0
 */
export interface HookSet {
  readonly transformContext: ReadonlyArray<Bound<ReadonlyArray<AgentMessage>, ReadonlyArray<AgentMessage>>>
  readonly beforeToolCall: ReadonlyArray<Bound<ToolCallRequest, ToolCallDecision | void>>
  readonly afterToolCall: ReadonlyArray<Bound<ToolCallOutcome, ToolResultPatch | void>>
  readonly finishTurn: ReadonlyArray<Bound<FinishedTurn, TurnDecision | void>>
  readonly prepareNextTurn: ReadonlyArray<BoundUpdate<FinishedTurn, TurnUpdate<AnyTool>>>
  readonly prepareRequest: ReadonlyArray<BoundUpdate<PreparedRequest, RequestUpdate<AnyTool>>>
  readonly apiKey: ReadonlyArray<Bound<Model, Redacted.Redacted | string | undefined | void>>
}

const emptyHooks: HookSet = {
  transformContext: [],
  beforeToolCall: [],
  afterToolCall: [],
  finishTurn: [],
  prepareNextTurn: [],
  prepareRequest: [],
  apiKey: []
}

/**
 * The hooks in use; empty by default. Supply it with {@link layer}.
 *
 * @category services
 * @since 0.1.0
 */
export const Hooks: Context.Reference<HookSet> = Context.Reference("effect-pi/Hooks", {
  defaultValue: () => emptyHooks
})

/**
 * A hook that asks for the services `R`; it adds itself to a set once they are there.
 *
 * @category models
 * @since 0.1.0
 */
export interface Hook<out R = never> {
  readonly addTo: (hooks: HookSet, services: Context.Context<R>) => HookSet
}

/** What a hook answers with an effect has a scope of its own, which closes with the answer. */
const bind = <Input, A, E, R>(
  run: (input: Input) => Answer<A, E, R>,
  services: Context.Context<R>
): Bound<Input, A> =>
(input) => {
  const answer = run(input)
  return Effect.isEffect(answer) ? Effect.provideContext(Effect.scoped(answer), services) : answer
}

/**
 * Allows a tool call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const allow: ToolCallDecision = { _tag: "Allow" }

/**
 * Allows a tool call with other arguments. They are not validated again and show neither in events nor in the transcript.
 *
 * @category constructors
 * @since 0.1.0
 */
export const allowWith = (args: unknown): ToolCallDecision => ({ _tag: "AllowWith", args })

/**
 * Refuses a tool call; the model reads the reason in the call's error result. With `terminate` the call counts as one
 * that asks the run to stop.
 *
 * @category constructors
 * @since 0.1.0
 */
export const block = (reason?: string, options?: { readonly terminate?: boolean }): ToolCallDecision => ({
  _tag: "Block",
  reason,
  terminate: options?.terminate === true
})

/**
 * Changes what the model sees of the conversation, for one request; the transcript stays.
 *
 * **Gotchas**
 *
 * Sees every request of the run and the whole conversation each time. A call that is cut from its result is left out of
 * the request; `Messages.keepLast` never cuts one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const transformContext = <E = never, R = never>(
  run: (messages: ReadonlyArray<AgentMessage>) => Answer<ReadonlyArray<AgentMessage>, E, R>
): Hook<R> => ({
  addTo: (hooks, services) => ({ ...hooks, transformContext: [...hooks.transformContext, bind(run, services)] })
})

/**
 * Decides about a tool call whose arguments are valid, before it runs.
 *
 * **Example** (A policy)
 *
 * ```ts
 * import { Hooks } from "effect-pi"
 *
 * const noDeletes = Hooks.beforeToolCall(({ toolCall }) =>
 *   toolCall.name === "delete_file" ? Hooks.block("deleting is not allowed here") : Hooks.allow
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const beforeToolCall = <E = never, R = never>(
  run: (request: ToolCallRequest) => Answer<ToolCallDecision | void, E, R>
): Hook<R> => ({
  addTo: (hooks, services) => ({ ...hooks, beforeToolCall: [...hooks.beforeToolCall, bind(run, services)] })
})

/**
 * Changes the result of a tool that ran, before anybody sees it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const afterToolCall = <E = never, R = never>(
  run: (outcome: ToolCallOutcome) => Answer<ToolResultPatch | void, E, R>
): Hook<R> => ({
  addTo: (hooks, services) => ({ ...hooks, afterToolCall: [...hooks.afterToolCall, bind(run, services)] })
})

/**
 * Runs at the end of every turn, after the tool results and before `turn_end`; decides whether the run goes on.
 *
 * **Gotchas**
 *
 * On a turn that ended in `error` or `aborted` the answer is ignored.
 *
 * @category constructors
 * @since 0.1.0
 */
export const finishTurn = <E = never, R = never>(
  run: (turn: FinishedTurn) => Answer<TurnDecision | void, E, R>
): Hook<R> => ({
  addTo: (hooks, services) => ({ ...hooks, finishTurn: [...hooks.finishTurn, bind(run, services)] })
})

/**
 * Runs before every turn but the first: replaces context, model or thinking level for the rest of the run, or appends
 * messages.
 *
 * @category constructors
 * @since 0.1.0
 */
export const prepareNextTurn = <E = never, R = never, T extends AnyTool = never>(
  run: (turn: FinishedTurn) => Answer<TurnUpdate<T> | void, E, R>
): Hook<R | Services<T>> => ({
  addTo: (hooks, services) => ({
    ...hooks,
    prepareNextTurn: [...hooks.prepareNextTurn, { run: bind(run, services), services }]
  })
})

/**
 * Runs before every request: replaces context, model or thinking level for the rest of the run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const prepareRequest = <E = never, R = never, T extends AnyTool = never>(
  run: (request: PreparedRequest) => Answer<RequestUpdate<T> | void, E, R>
): Hook<R | Services<T>> => ({
  addTo: (hooks, services) => ({
    ...hooks,
    prepareRequest: [...hooks.prepareRequest, { run: bind(run, services), services }]
  })
})

/**
 * Supplies the key for a request, freshly each time.
 *
 * @category constructors
 * @since 0.1.0
 */
export const apiKey = <E = never, R = never>(
  run: (model: Model) => Answer<Redacted.Redacted | string | undefined | void, E, R>
): Hook<R> => ({
  addTo: (hooks, services) => ({ ...hooks, apiKey: [...hooks.apiKey, bind(run, services)] })
})

/**
 * Adds hooks to those of the context the layer is built in, so that an application's policy stays when a session adds
 * its own.
 *
 * **Gotchas**
 *
 * `Layer.mergeAll` of two hook layers keeps only the last, as with any service: put hooks that belong together into one
 * `Hooks.layer`, or nest them with `Layer.provideMerge`. An agent reads its hooks when it is made.
 *
 * **Example** (A policy and a window)
 *
 * ```ts
 * import { Hooks, Messages } from "effect-pi"
 *
 * const Policy = Hooks.layer(
 *   Hooks.beforeToolCall(({ toolCall }) => toolCall.name === "rm" ? Hooks.block("not here") : Hooks.allow),
 *   Hooks.transformContext((messages) => Messages.keepLast(messages, 50))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <const H extends ReadonlyArray<Hook<any>>>(
  ...hooks: H
): Layer.Layer<never, never, ServicesOf<H[number]>> =>
  Layer.fresh(Layer.effect(
    Hooks,
    Effect.contextWith((services: Context.Context<ServicesOf<H[number]>>) =>
      Effect.succeed(
        hooks.reduce<HookSet>((set, hook) => hook.addTo(set, withoutAmbient(services)), Context.get(services, Hooks))
      )
    )
  ))

type ServicesOf<H> = H extends Hook<infer R> ? R : never
