/**
 * The double loop, free of host state: ask the model, run the tools it asks for, feed the results back; the inner loop
 * goes on while there are results or steering messages to hand over, the outer one while there are follow-ups.
 *
 * `run` and `continue_` give the run's result and tell an `emit` function what happens; `stream` gives the events. Both
 * leave the given context as it is. An agent (`Agent.make`) adds a transcript, queues and listeners.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import type * as Stream from "effect/Stream"
import { Budget } from "./Budget.ts"
import { CannotContinue, HookError, type RunError, RunOutcome } from "./Errors.ts"
import type { AgentEvent } from "./Events.ts"
import type { FinishedTurn, RequestUpdate, TurnDecision, TurnUpdate } from "./Hooks.ts"
import { admit } from "./internal/admit.ts"
import { asEffect, inTurn, type OrEffect, whenAnswered } from "./internal/answer.ts"
import { openBatch, runBatch } from "./internal/batch.ts"
import { withoutAmbient, withoutRun } from "./internal/currentRun.ts"
import { type Pending, subscriber } from "./internal/emitter.ts"
import { eventStream } from "./internal/eventStream.ts"
import { show } from "./internal/json.ts"
import { abort, join, start } from "./internal/lifecycle.ts"
import { readConfig, readFunctions, readSettings, type RunOptions } from "./internal/options.ts"
import { logMended, pairUp } from "./internal/pairing.ts"
import { logRefused, takeDeliverable } from "./internal/queued.ts"
import { readContext, readMessages } from "./internal/readMessages.ts"
import { askHook, naming, respond } from "./internal/response.ts"
import { Run } from "./internal/run.ts"
import { Time } from "./internal/time.ts"
import { makeToolSet } from "./internal/toolSet.ts"
import { declareTools, Transcript } from "./internal/transcript.ts"
import { type AgentMessage, type AssistantMessage, toolCalls } from "./Messages.ts"
import { MessageQueue } from "./Queues.ts"
import type { RunResult } from "./RunResult.ts"
import type { StreamFn } from "./StreamFn.ts"
import type { Any, Services } from "./Tools.ts"

// -----------------------------------------------------------------------------
// The loop
// -----------------------------------------------------------------------------

/** How a run begins: with prompts, or from the context as it is; after results for calls that were left open. */
export type Beginning =
  & { readonly results: ReadonlyArray<AgentMessage> }
  & (
    | { readonly _tag: "Prompts"; readonly prompts: ReadonlyArray<AgentMessage>; readonly fromSteering: boolean }
    | { readonly _tag: "Continue" }
  )

const agentStart: AgentEvent = { type: "agent_start" }
const turnStart: AgentEvent = { type: "turn_start" }

/**
 * The double loop. It ends with an outcome, with the error that ended the run, or interrupted by an abort; what is open
 * then is closed by whoever runs it (`internal/closing.ts`).
 *
 * What `run.emit` and `run.record` return is yielded when there is any: it is what listeners have left to do, or, after
 * an abort, the interruption.
 */
export const doubleLoop = (run: Run, beginning: Beginning): Effect.Effect<RunOutcome, RunError> => {
  // At once: a run that is stopped before its first step records what it was given all the same.
  run.prompts = promptsOf(run, beginning)
  return loop(run, beginning._tag === "Continue" || !beginning.fromSteering)
}

/** `steered`: whether its first request hands over steering messages. */
const loop = Effect.fnUntraced(function*(run: Run, steered: boolean): Effect.fn.Return<RunOutcome, RunError> {
  const { hooks, inbox: { followUps, steering } } = run
  let pending: Pending
  let prepared: ReadonlyArray<AgentMessage> = noMessages
  let stopReason: AssistantMessage["stopReason"] = "stop"
  let firstTurn = true
  let terminated = false
  let oneMoreRequest = false

  if ((pending = run.emit(agentStart)) !== undefined) yield* pending
  if (run.isLimited(true)) return yield* recordOnly(run)
  if ((pending = run.emit(turnStart)) !== undefined) yield* pending
  for (let prompt = nextPrompt(run); prompt !== undefined; prompt = nextPrompt(run)) {
    if ((pending = run.record(prompt)) !== undefined) yield* pending
  }
  if (run.stopping) return yield* Effect.interrupt
  if (steered && (pending = hold(run, steering)) !== undefined) yield* pending

  do {
    let toolResults = true
    while (toolResults || run.held !== undefined) {
      if (firstTurn) firstTurn = false
      else {
        if (hooks.prepareNextTurn.length > 0) {
          const asked = prepareNextTurn(run)
          prepared = Effect.isEffect(asked) ? yield* asked : asked
        }
        if ((pending = hold(run, steering)) !== undefined) yield* pending
        if ((pending = run.emit(turnStart)) !== undefined) yield* pending
      }
      // The tools that are declared here are those of this request, whatever a listener sets meanwhile.
      let { tools } = run.settings
      if (needsInjection(run, prepared)) tools = yield* inject(run, prepared)
      if (hooks.prepareRequest.length > 0) {
        const asked = prepareRequest(run)
        if (Effect.isEffect(asked)) yield* asked
        tools = needsInjection(run, noMessages) ? yield* inject(run, noMessages) : run.settings.tools
      }

      const { model, thinkingLevel, toolExecution } = run.settings
      const message = yield* respond(run, { model, thinkingLevel, toolChoice: "auto" })
      stopReason = message.stopReason
      const calls = toolCalls(message)
      terminated = calls.length > 0 && (yield* runBatch(run, openBatch(run, message, calls, tools, toolExecution)))
      toolResults = calls.length > 0 && !terminated

      const asked = hooks.finishTurn.length > 0 ? finishTurn(run, message) : undefined
      const decision = Effect.isEffect(asked) ? yield* asked : asked
      if (hooks.prepareNextTurn.length > 0) run.lastTurn = run.finishedTurn(message)
      if ((pending = run.emit({ type: "turn_end", message, toolResults: run.turnResults })) !== undefined) {
        yield* pending
      }
      if (decision === "end") return RunOutcome.Completed({ by: "FinishTurn", stopReason })

      oneMoreRequest = decision === "continue"
      if (run.isLimited(toolResults || oneMoreRequest)) return yield* limited(run)
      if ((pending = hold(run, steering)) !== undefined) yield* pending
    }
    if ((pending = hold(run, followUps)) !== undefined) yield* pending
  } while (run.held !== undefined || oneMoreRequest)
  return RunOutcome.Completed({ by: terminated ? "Terminate" : "Stop", stopReason })
})

const noMessages: ReadonlyArray<AgentMessage> = []

/** The prompts, with the declaration of tools the model does not know of. A continued run declares before its request. */
const promptsOf = (run: Run, beginning: Beginning): ReadonlyArray<AgentMessage> => {
  const now = run.now()
  const results = beginning.results.map((message) => admit(message, now))
  if (beginning._tag === "Continue") return results
  const prompts = beginning.prompts.map((message) => admit(message, now))
  // Nothing stands between a call and its result.
  return results.concat(declareTools(run.context, run.settings.tools.declarations, prompts, now))
}

/** The prompt to record next; those of a run that is stopping are left to its end. */
const nextPrompt = (run: Run): AgentMessage | undefined => run.stopping ? undefined : run.takePrompt()

/** A run whose budget is spent before it begins: what it was given is recorded, and no turn begins. */
const recordOnly = Effect.fnUntraced(function*(run: Run) {
  for (let prompt = nextPrompt(run); prompt !== undefined; prompt = nextPrompt(run)) {
    const pending = run.record(prompt)
    if (pending !== undefined) yield* pending
  }
  return RunOutcome.Limited({ limit: run.limit! })
})

/** Ends a run that reached a limit, after one last request in which the model may not call a tool, if that is wanted. */
const limited = Effect.fnUntraced(function*(run: Run) {
  const outcome = RunOutcome.Limited({ limit: run.limit! })
  if (!run.config.wrapUp) return outcome
  let pending: Pending
  if ((pending = run.emit(turnStart)) !== undefined) yield* pending
  const tools = needsInjection(run, noMessages) ? yield* inject(run, noMessages) : run.settings.tools
  const { model, thinkingLevel, toolExecution } = run.settings
  const message = yield* respond(run, { model, thinkingLevel, toolChoice: "none" })
  const calls = toolCalls(message)
  if (calls.length > 0) yield* runBatch(run, openBatch(run, message, calls, tools, toolExecution))
  if (run.hooks.finishTurn.length > 0) yield* asEffect(finishTurn(run, message))
  if ((pending = run.emit({ type: "turn_end", message, toolResults: run.turnResults })) !== undefined) yield* pending
  return outcome
})

/** Takes the next batch of a queue into the run; what is not emitted by the run's end goes back to its front. */
const hold = (run: Run, queue: MessageQueue | undefined): Pending => {
  if (queue === undefined || run.held !== undefined || queue.size === 0) return undefined
  const { messages, refused } = takeDeliverable(queue)
  if (messages.length > 0) run.held = { queue, messages, next: 0 }
  return refused.length === 0 ? undefined : logRefused(refused)
}

const needsInjection = (run: Run, prepared: ReadonlyArray<AgentMessage>): boolean =>
  prepared.length > 0 || run.held !== undefined || run.inbox.notes.length > 0 ||
  !run.context.declares(run.settings.tools.declarations)

/**
 * Records what stands before the next request: a declaration of tools, prepared messages, notes, queued messages. What
 * comes from outside is taken out of its place when its turn has come, so that nothing is lost when the run stops here.
 * Gives the tools that are declared then.
 */
const inject = Effect.fnUntraced(function*(run: Run, prepared: ReadonlyArray<AgentMessage>) {
  const now = run.now()
  const { held } = run
  const { tools } = run.settings
  const { notes } = run.inbox
  const queued = held?.messages ?? noMessages
  const admitted = [...prepared, ...notes, ...queued].map((message) => admit(message, now))
  const messages = declareTools(run.context, tools.declarations, admitted, now)
  const queuedFrom = messages.length - queued.length
  const notesFrom = queuedFrom - notes.length
  for (const [index, message] of messages.entries()) {
    if (run.stopping) return yield* Effect.interrupt
    if (held !== undefined && index >= queuedFrom) {
      held.next++
      held.queue.delivered(queued[index - queuedFrom]!, run.turns)
    } else if (index >= notesFrom && index < queuedFrom) run.inbox.notes = run.inbox.notes.slice(1)
    const pending = run.record(message)
    if (pending !== undefined) yield* pending
  }
  run.held = undefined
  return tools
})

/** Applies what a hook answered, for the rest of the run. */
const update = (
  run: Run,
  hook: "prepareNextTurn" | "prepareRequest",
  { context, model, thinkingLevel }: RequestUpdate<Any>,
  services: Context.Context<never>
): Effect.Effect<void, HookError> => {
  const tools = context?.tools === undefined ? undefined : makeToolSet(context.tools, services)
  if (tools !== undefined && Result.isFailure(tools)) {
    return Effect.fail(new HookError({ hook, message: tools.failure.message, cause: tools.failure }))
  }
  const messages = context?.messages === undefined ? undefined : readContext(context.messages)
  if (messages !== undefined && Result.isFailure(messages)) {
    return Effect.fail(new HookError({ hook, message: messages.failure, cause: messages.failure }))
  }
  run.replaceContext(messages?.success, tools?.success)
  if (model !== undefined) run.settings.model = model
  if (thinkingLevel !== undefined) run.settings.thinkingLevel = thinkingLevel
  return Effect.void
}

/** Applies an answer of `prepareNextTurn` and gives the messages it adds. */
const applied = (
  run: Run,
  answer: TurnUpdate<Any>,
  services: Context.Context<never>
): Effect.Effect<ReadonlyArray<AgentMessage>, HookError> =>
  Effect.flatMap(
    naming(run, "prepareNextTurn")(Effect.suspend(() => update(run, "prepareNextTurn", answer, services))),
    () => {
      if (answer.messages === undefined) return Effect.succeed(noMessages)
      const read = readMessages(answer.messages)
      if (Result.isSuccess(read)) return Effect.succeed(read.success)
      const message = `Its messages do not decode: ${read.failure}`
      return Effect.fail(new HookError({ hook: "prepareNextTurn", message, cause: read.failure }))
    }
  )

/** The messages that the hooks add before the next request. */
const prepareNextTurn = (run: Run): OrEffect<ReadonlyArray<AgentMessage>, HookError> => {
  const lastTurn = run.lastTurn!
  const added = inTurn(
    run.hooks.prepareNextTurn,
    noMessages,
    (messages: ReadonlyArray<AgentMessage>, { run: hook, services }) => {
      const turn: FinishedTurn = { ...lastTurn, context: run.hookContext() }
      return whenAnswered(
        askHook(run, "prepareNextTurn", () => hook(turn)),
        (answer): OrEffect<ReadonlyArray<AgentMessage>, HookError> => {
          if (run.stopping) return Effect.interrupt
          if (answer === undefined) return messages
          return Effect.map(applied(run, answer, services), (more) => [...messages, ...more])
        }
      )
    }
  )
  return whenAnswered(added, (messages) => {
    if (messages.length === 0) return messages
    const paired = pairUp(run.transcript.messages, messages, true)
    return Effect.as(logMended("answer of prepareNextTurn", paired), [...paired.results, ...paired.messages])
  })
}

/** Replaced tools are declared at once, so that the request that can use them knows them. */
const prepareRequest = (run: Run): OrEffect<void, HookError> =>
  inTurn(run.hooks.prepareRequest, undefined, (_: void, { run: hook, services }) => {
    const { model, thinkingLevel } = run.settings
    const request = { context: run.hookContext(), model, thinkingLevel }
    return whenAnswered(
      askHook(run, "prepareRequest", () => hook(request)),
      (answer): OrEffect<void, HookError> => {
        if (run.stopping) return Effect.interrupt
        if (answer === undefined) return undefined
        return naming(run, "prepareRequest")(Effect.suspend(() => update(run, "prepareRequest", answer, services)))
      }
    )
  })

/** Every hook is asked; `end` beats `continue`. */
const finishTurn = (run: Run, message: AssistantMessage): OrEffect<TurnDecision | undefined, HookError> => {
  run.turnFinished = true
  return inTurn(run.hooks.finishTurn, undefined, (decision: TurnDecision | undefined, hook) => {
    const turn = run.finishedTurn(message)
    return whenAnswered(
      askHook(run, "finishTurn", () => hook(turn)),
      (answer): OrEffect<TurnDecision | undefined> => {
        if (run.stopping) return Effect.interrupt
        return decision !== "end" && (answer === "end" || answer === "continue") ? answer : decision
      }
    )
  })
}

// -----------------------------------------------------------------------------
// The loop alone
// -----------------------------------------------------------------------------

/**
 * What a loop starts from. The lists are copied; nothing in them is changed.
 *
 * @category models
 * @since 0.1.0
 */
export interface LoopContext<T extends ReadonlyArray<Any> = ReadonlyArray<Any>> {
  readonly messages: ReadonlyArray<AgentMessage>
  readonly tools: T
}

/**
 * How a loop works.
 *
 * - `emit`: told of every event, in order, and awaited; its failures are logged
 * - `steering`, `followUps`: queues the loop reads; a `Queue` is drained one message at a time
 *
 * @category models
 * @since 0.1.0
 */
export interface LoopOptions<E = never, R = never> extends RunOptions {
  readonly emit?: ((event: AgentEvent) => Effect.Effect<unknown, E, R> | void) | undefined
  readonly steering?: MessageQueue | Queue.Queue<AgentMessage> | undefined
  readonly followUps?: MessageQueue | Queue.Queue<AgentMessage> | undefined
}

const asMessageQueue = (queue: MessageQueue | Queue.Queue<AgentMessage> | undefined): MessageQueue | undefined =>
  queue === undefined || queue instanceof MessageQueue ? queue : new MessageQueue(queue, "one-at-a-time")

const invalidContext = (error: { readonly message: string }): CannotContinue =>
  new CannotContinue({ reason: "InvalidContext", message: error.message })

/** Told of every event after the `emit` of the options, whatever became of that. */
type Reader = (event: AgentEvent) => Effect.Effect<void> | void

/** A copy of what is given, which may be anything and do anything when it is read. */
const readLoopContext = (context: LoopContext): Result.Result<LoopContext, CannotContinue> =>
  Result.mapError(
    Result.flatMap(
      Result.try({
        try: (): LoopContext => ({ messages: context.messages, tools: context.tools }),
        catch: (failure) => `The context cannot be read: ${show(failure)}`
      }),
      ({ messages, tools }) => Result.map(readContext(messages), (mended) => ({ messages: mended, tools }))
    ),
    (message) => invalidContext({ message })
  )

// A program with an agent needs neither this nor what follows: bundlers leave out what is pure and not used.
const makeRun = /* @__PURE__ */ Effect.fnUntraced(function*<R>(
  loopContext: LoopContext,
  options: LoopOptions<unknown, R>,
  reader?: Reader
): Effect.fn.Return<Run, CannotContinue, StreamFn | R> {
  const services = yield* Effect.context<StreamFn | R>()
  const given = withoutAmbient(services)
  const context = yield* Effect.fromResult(readLoopContext(loopContext))
  const config = yield* Effect.fromResult(Result.mapError(readConfig(options), invalidContext))
  const settings = yield* Effect.fromResult(
    Result.mapError(readSettings(options, context.tools, given), invalidContext)
  )
  const own = withoutRun(services)
  const list = [options.emit, reader].flatMap((emit) => emit === undefined ? [] : [subscriber(emit, own, false)])
  return new Run({
    functions: readFunctions(services),
    given,
    config,
    sessionId: options.sessionId,
    inbox: {
      steering: asMessageQueue(options.steering),
      followUps: asMessageQueue(options.followUps),
      notes: noMessages
    },
    settings,
    transcript: new Transcript(context.messages),
    budget: yield* Budget,
    time: new Time(yield* Clock.Clock),
    subscribers: { list },
    settle: () => Effect.void
  })
})

/** `begin` gives the beginning of a run on a context that was read. */
const runFrom = /* @__PURE__ */ Effect.fnUntraced(function*<R>(
  begin: (messages: ReadonlyArray<AgentMessage>) => Effect.Effect<Beginning, CannotContinue>,
  context: LoopContext,
  options: LoopOptions<unknown, R>,
  reader?: Reader
): Effect.fn.Return<RunResult, CannotContinue, StreamFn | R> {
  const run = yield* makeRun(context, options, reader)
  const beginning = yield* begin(run.transcript.messages)
  // There is no moment between start and wait at which an interruption could get lost.
  const services = yield* Effect.context()
  return yield* Effect.uninterruptibleMask((restore) => {
    start(run, services, doubleLoop(run, beginning))
    return join(restore, run.done, abort(run))
  })
})

/**
 * Runs the loop on a context to which the prompts are added, and gives the outcome and what was added. Calls and results
 * in the prompts are paired, also with calls that are open at the end of the context, as `Messages.repair` does it.
 *
 * **When to use**
 *
 * Use it where something else keeps the conversation: a durable executor, another queue, a test. `Agent.make` is the
 * usual way.
 *
 * **Gotchas**
 *
 * Interrupting it ends the run like an abort: every call is answered and `agent_end` is emitted before the interruption
 * goes on. Fails with `CannotContinue` when prompts, context or options cannot be used. Source: pi's `runAgentLoop`.
 *
 * **Example** (One question)
 *
 * ```ts
 * import { Loop, Messages } from "effect-pi"
 *
 * const answer = Loop.run([Messages.user("hi")], { messages: [], tools: [] })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const run = <const T extends ReadonlyArray<Any>, E = never, R = never>(
  prompts: ReadonlyArray<AgentMessage>,
  context: LoopContext<T>,
  options: LoopOptions<E, R> = {}
): Effect.Effect<RunResult, CannotContinue, StreamFn | R | Services<T[number]>> =>
  runFrom((messages) => fromPrompts(messages, prompts), context, options)

const fromPrompts = (
  messages: ReadonlyArray<AgentMessage>,
  prompts: ReadonlyArray<AgentMessage>
): Effect.Effect<Beginning, CannotContinue> => {
  const read = readMessages(prompts)
  if (Result.isFailure(read)) {
    return Effect.fail(invalidContext({ message: `The prompts do not decode: ${read.failure}` }))
  }
  const paired = pairUp(messages, read.success, true)
  return Effect.as(logMended("prompt", paired), {
    _tag: "Prompts",
    results: paired.results,
    prompts: paired.messages,
    fromSteering: false
  })
}

const asItIs = (messages: ReadonlyArray<AgentMessage>): Effect.Effect<Beginning, CannotContinue> => {
  const last = messages.at(-1)
  if (last === undefined || messages.every((message) => message.role === "system")) {
    return Effect.fail(
      new CannotContinue({ reason: "EmptyTranscript", message: "Cannot continue: no messages in context" })
    )
  }
  return last.role === "assistant"
    ? Effect.fail(
      new CannotContinue({ reason: "AssistantTail", message: "Cannot continue from message role: assistant" })
    )
    : Effect.succeed({ _tag: "Continue", results: noMessages })
}

/**
 * Runs the loop on a context as it is, without adding a prompt.
 *
 * **Gotchas**
 *
 * Fails with `CannotContinue` when the context is empty, holds only system messages, or ends in an assistant message.
 * Source: pi's `runAgentLoopContinue`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const continue_ = <const T extends ReadonlyArray<Any>, E = never, R = never>(
  context: LoopContext<T>,
  options: LoopOptions<E, R> = {}
): Effect.Effect<RunResult, CannotContinue, StreamFn | R | Services<T[number]>> => runFrom(asItIs, context, options)

export {
  /**
   * {@link continue_} under the name it has in pi.
   *
   * @category constructors
   * @since 0.1.0
   */
  continue_ as continue
}

/**
 * The events of a run as a stream.
 *
 * **Details**
 *
 * Nothing is lost: the run waits when the consumer is slow. Ending the stream early aborts the run.
 *
 * **Example** (Printing what happens)
 *
 * ```ts
 * import { Console, Stream } from "effect"
 * import { Loop, Messages } from "effect-pi"
 *
 * const program = Loop.stream([Messages.user("hi")], { messages: [], tools: [] }).pipe(
 *   Stream.runForEach((event) => Console.log(event.type))
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const stream = <const T extends ReadonlyArray<Any>, E = never, R = never>(
  prompts: ReadonlyArray<AgentMessage>,
  context: LoopContext<T>,
  options: LoopOptions<E, R> = {}
): Stream.Stream<AgentEvent, CannotContinue, StreamFn | R | Services<T[number]>> =>
  eventStream((emit, taken) =>
    Effect.tap(
      runFrom((messages) => fromPrompts(messages, prompts), context, options, emit),
      ({ outcome }) => taken(outcome)
    )
  )
