/**
 * One response of the model: the request as hooks and conversion make it (M1), then its stream, read event by event.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { defaultConversion } from "../ConvertToLlm.ts"
import { HookError, type HookName, ModelError, type RunError } from "../Errors.ts"
import {
  type AgentMessage,
  type AssistantMessage,
  declaredTools,
  type Message,
  type ThinkingLevel,
  type ToolDeclaration
} from "../Messages.ts"
import type { Model, StreamEvent, StreamRequest } from "../StreamFn.ts"
import { Accumulator } from "./accumulator.ts"
import { asEffect, ask, inTurn, type OrEffect, whenAnswered } from "./answer.ts"
import { withinHookTime } from "./deadline.ts"
import { show } from "./json.ts"
import * as Log from "./log.ts"
import { mendMessages } from "./readMessages.ts"
import { normalize } from "./requestMessages.ts"
import type { Run } from "./run.ts"
import { read } from "./streamReader.ts"

/** The failure of a hook, named. */
export const hookError = (hook: HookName, failure: Cause.Cause<unknown>): HookError => {
  const cause = Cause.squash(failure)
  return new HookError({ hook, message: show(cause), cause })
}

/** A hook's effect whose failure is named; an abort goes its own way. */
export const naming =
  (run: Run, hook: HookName) => <A, R>(effect: Effect.Effect<A, unknown, R>): Effect.Effect<A, HookError, R> =>
    Effect.catchCause(
      Effect.interruptible(withinHookTime(run, hook, effect)),
      (cause): Effect.Effect<never, HookError> => run.stopping ? Effect.interrupt : Effect.fail(hookError(hook, cause))
    )

/**
 * What a hook answers, at once if it can, else the effect of its answer: a hook that needs no effect costs none. Its
 * failure is named.
 */
export const askHook = <A>(
  run: Run,
  hook: HookName,
  answer: () => A | Effect.Effect<A, unknown>
): A | Effect.Effect<A, HookError> => {
  const given = Result.try(() => {
    const value = answer()
    return Effect.isEffect(value) ? naming(run, hook)(value) : value
  })
  return Result.isSuccess(given) ? given.success : Effect.fail(hookError(hook, Cause.die(given.failure)))
}

interface Conversation {
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolDeclaration>
  readonly splitPairs: number
}

/** What a hook or the conversion made of the conversation, its text well formed. */
const mended = <M extends AgentMessage>(
  run: Run,
  hook: HookName,
  messages: ReadonlyArray<M>
): Effect.Effect<ReadonlyArray<M>, HookError> =>
  Effect.fromResult(
    Result.mapError(
      mendMessages(messages, (message) => run.context.has(message)),
      (message) => new HookError({ hook, message, cause: message })
    )
  )

/** What the conversion makes of the conversation. */
const converted = (run: Run, chosen: ReadonlyArray<AgentMessage>): Effect.Effect<Conversation, HookError> =>
  naming(run, "convertToLlm")(ask(() => run.functions.conversion.convert(chosen))).pipe(
    Effect.flatMap((messages) => mended(run, "convertToLlm", messages)),
    Effect.map((messages) => {
      const normal = normalize(messages)
      return { ...normal, tools: declaredTools(normal.messages) }
    })
  )

/** The conversation that no hook and no conversion changes: it costs the same however long it is. */
const asItStands = (run: Run): Conversation => {
  const { messages, splitPairs } = run.context.request()
  return { messages, tools: run.context.replay.declaredTools(), splitPairs }
}

/** What the hooks and the conversion make of it. Hooks that give the messages back at once, as they are, cost no effect. */
const conversation = (run: Run): OrEffect<Conversation, HookError> => {
  const { conversion, hooks: { transformContext } } = run.functions
  if (transformContext.length === 0 && conversion === defaultConversion) return asItStands(run)
  const { messages } = run.context
  const transformed = inTurn(
    transformContext,
    messages,
    (current: ReadonlyArray<AgentMessage>, hook) =>
      whenAnswered(
        askHook(run, "transformContext", () => hook(current)),
        (given) =>
          run.stopping ? Effect.interrupt : given === current ? current : mended(run, "transformContext", given)
      )
  )
  return whenAnswered(
    transformed,
    (chosen) => chosen === messages && conversion === defaultConversion ? asItStands(run) : converted(run, chosen)
  )
}

const asKey = (key: Redacted.Redacted | string | undefined | void): Redacted.Redacted | undefined =>
  typeof key === "string" ? Redacted.make(key) : key === undefined ? undefined : key

type Key = Redacted.Redacted | undefined

/** The key of the first hook that has one. */
const keyFor = (run: Run, model: Model): OrEffect<Key, HookError> =>
  inTurn(
    run.hooks.apiKey,
    undefined,
    (key: Key, hook) =>
      key ??
        whenAnswered(
          // Read inside, so that a key that cannot be is the hook's failure.
          askHook(run, "apiKey", () => whenAnswered(hook(model), asKey)),
          (given): OrEffect<Key> => run.stopping ? Effect.interrupt : given
        )
  )

const incomplete = (): ModelError =>
  new ModelError({ reason: "IncompleteStream", message: "The model's stream ended without a final event" })

const streamFailure = (accumulator: Accumulator, cause: Cause.Cause<ModelError>): void => {
  if (Cause.hasInterruptsOnly(cause)) {
    accumulator.error = new ModelError({ reason: "Aborted", message: abortedResponse })
    return accumulator.stop("aborted", abortedResponse)
  }
  const error: unknown = Cause.squash(cause)
  accumulator.fail(
    error instanceof ModelError ? error : new ModelError({ reason: "Unknown", message: show(error), cause: error })
  )
}

/** The text of a response that an abort cut short; source: pi-ai. */
export const abortedResponse = "Request was aborted"

const open = (run: Run, request: StreamRequest): Stream.Stream<StreamEvent, ModelError> => {
  const opened = Result.try(() => run.functions.stream(request))
  return Result.isSuccess(opened) ? opened.success : Stream.die(opened.failure)
}

/** What a request asks for beside the conversation. */
interface Asked {
  readonly model: Model
  readonly thinkingLevel: ThinkingLevel
  readonly toolChoice: StreamRequest["toolChoice"]
}

/** The response to the run's conversation as it stands; the error, typed, when the message's stop reason is one. */
export const respond = (run: Run, asked: Asked): Effect.Effect<AssistantMessage, RunError> => {
  run.requested = asked
  return asEffect(whenAnswered(conversation(run), (chosen) => requestWith(run, asked, chosen)))
}

const requestWith = (run: Run, asked: Asked, chosen: Conversation): Effect.Effect<AssistantMessage, RunError> => {
  if (run.stopping) return Effect.interrupt
  const { splitPairs } = chosen
  if (splitPairs === 0) return authorized(run, asked, chosen)
  return Effect.andThen(
    Log.warn(`${splitPairs} tool calls or results without their counterpart were left out of the request`),
    Effect.suspend(() => authorized(run, asked, chosen))
  )
}

const authorized = (run: Run, asked: Asked, chosen: Conversation): Effect.Effect<AssistantMessage, RunError> =>
  asEffect(whenAnswered(keyFor(run, asked.model), (apiKey) => receive(run, asked, chosen, apiKey)))

const receive = (
  run: Run,
  { model, thinkingLevel, toolChoice }: Asked,
  { messages, tools }: Conversation,
  apiKey: Key
): Effect.Effect<AssistantMessage, RunError> => {
  if (run.stopping) return Effect.interrupt
  const accumulator = run.response = new Accumulator(model, run.now())
  const { headers, metadata, thinkingBudgets } = run.config
  const stream = open(run, {
    model,
    messages,
    tools,
    thinkingLevel,
    toolChoice,
    apiKey,
    sessionId: run.sessionId,
    headers,
    thinkingBudgets,
    metadata
  })
  return read(run, accumulator, stream, (outcome) => {
    if (run.stopping) return Effect.interrupt
    if (Cause.isCause(outcome)) streamFailure(accumulator, outcome)
    else if (!outcome) accumulator.fail(incomplete())
    return finish(run, accumulator, accumulator.message(thinkingLevel))
  })
}

/** Records the message of a response. */
const finish = (
  run: Run,
  accumulator: Accumulator,
  message: AssistantMessage
): Effect.Effect<AssistantMessage, RunError> => {
  const failed = message.stopReason === "error" || message.stopReason === "aborted"
  const error = failed ? responseError(message, accumulator.error) : undefined
  const answer = error === undefined ? Effect.succeed(message) : Effect.fail(error)
  const pending = accumulator.announced ? undefined : run.emit({ type: "message_start", message })
  const end = () => {
    run.told = error
    return run.emit({ type: "message_end", message })
  }
  if (pending !== undefined) {
    return Effect.andThen(Effect.flatMap(pending, () => end() ?? Effect.void), answer)
  }
  const ended = end()
  return ended === undefined ? answer : Effect.andThen(ended, answer)
}

/** The typed error of a response that ended with `error` or `aborted`. */
const responseError = (message: AssistantMessage, error: ModelError | undefined): ModelError =>
  error ?? new ModelError({
    reason: message.stopReason === "aborted" ? "Aborted" : "Reported",
    message: message.errorMessage ?? `The model stopped with reason "${message.stopReason}"`
  })
