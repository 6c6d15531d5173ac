/**
 * One response of the model: the request as hooks and conversion make it (M1), then its stream, read event by event.
 */
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { defaultConversion } from "../ConvertToLlm.ts"
import { HookError, type HookName, ModelError } from "../Errors.ts"
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
import { closeInBackground, inBackground, within, withinHookTime } from "./deadline.ts"
import type { Pending } from "./emitter.ts"
import { show } from "./json.ts"
import * as Log from "./log.ts"
import { mendMessages } from "./readMessages.ts"
import { normalize } from "./requestMessages.ts"
import type { Run } from "./run.ts"

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

/** Effects of answers that may be plain values; whatever is thrown on the way is a defect of the effect. */
export const ask = <A, E, R>(answer: () => A | Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const given = answer()
    return Effect.isEffect(given) ? given : Effect.succeed(given)
  })

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

const transformed = Effect.fnUntraced(function*(run: Run) {
  const { conversion, hooks } = run.config
  let messages: ReadonlyArray<AgentMessage> = run.context.messages
  for (const hook of hooks.transformContext) {
    const current = messages
    messages = yield* naming(run, "transformContext")(ask(() => hook(current)))
    if (run.stopping) return yield* Effect.interrupt
    if (messages !== current) messages = yield* mended(run, "transformContext", messages)
  }
  if (messages === run.context.messages && conversion === defaultConversion) return asItStands(run)
  const chosen = messages
  const converted = yield* naming(run, "convertToLlm")(ask(() => conversion.convert(chosen)))
  const normal = normalize(yield* mended(run, "convertToLlm", converted))
  return { ...normal, tools: declaredTools(normal.messages) }
})

/** The conversation that no hook and no conversion changes: it costs the same however long it is. */
const asItStands = (run: Run): Conversation => {
  const { messages, splitPairs } = run.context.request()
  return { messages, tools: run.context.replay.declaredTools(), splitPairs }
}

const conversation = (run: Run): Conversation | Effect.Effect<Conversation, HookError> => {
  const { conversion, hooks } = run.config
  return hooks.transformContext.length > 0 || conversion !== defaultConversion ? transformed(run) : asItStands(run)
}

const keyFor = Effect.fnUntraced(function*(run: Run, model: Model) {
  for (const hook of run.config.hooks.apiKey) {
    const key = yield* naming(run, "apiKey")(ask(() => hook(model)))
    if (run.stopping) return yield* Effect.interrupt
    if (typeof key === "string") return Redacted.make(key)
    if (key !== undefined) return key
  }
  return undefined
})

const streamName = "The model's stream"

/** The place of the events that were read in the chunk they came in. */
class Reader {
  chunk: ReadonlyArray<StreamEvent> = []
  next = 0
  ended = false
}

/** Feeds one event to the message and tells the listeners. What they have left to do is awaited before the next one. */
const take = (run: Run, accumulator: Accumulator, reader: Reader, event: StreamEvent): Pending => {
  if (run.stopping) return Effect.interrupt
  const step = accumulator.add(event)
  if (step === undefined) return undefined
  if (step === "end") {
    reader.ended = true
    return undefined
  }
  if (step === "start") return run.emit({ type: "message_start", message: accumulator.snapshot() })
  const { emitter } = run
  if (!emitter.observed) return undefined
  return emitter.emit({ type: "message_update", message: accumulator.snapshot(), assistantMessageEvent: step })
}

/**
 * Reads the stream to its end. One `whileLoop` whose body takes events as long as they need no effect: the stream costs
 * a pull a chunk instead of an effect an event.
 */
const read = (run: Run, accumulator: Accumulator, stream: Stream.Stream<StreamEvent, ModelError>) => {
  const scope = Scope.makeUnsafe()
  const reader = new Reader()
  const deadline = new Deadline(run)
  const opening = Effect.interruptible(
    deadline.limit(Channel.toTransform(Stream.toChannel(stream))(Cause.done(), scope))
  )
  const reading = Effect.flatMap(opening, (pull) => {
    const next = Effect.interruptible(deadline.limit(pull))
    return Effect.whileLoop<ReadonlyArray<StreamEvent> | void, ModelError | Cause.Done, never>({
      while: () => !reader.ended,
      body: () => {
        while (reader.next < reader.chunk.length) {
          const pending = take(run, accumulator, reader, reader.chunk[reader.next++]!)
          if (reader.ended) return Effect.void
          if (pending !== undefined) return pending
        }
        return run.stopping ? Effect.interrupt : next
      },
      // What listeners have left to do gives nothing; a pull gives the next events.
      step: (chunk) => {
        if (chunk === undefined) return
        deadline.arrived()
        reader.chunk = chunk
        reader.next = 0
      }
    })
  })
  const closing = (exit: Exit.Exit<unknown, unknown>) => {
    const close = Scope.close(scope, exit)
    if (deadline.missed) return inBackground(run, streamName, close)
    // The answer is complete: that its connection closes is no part of it.
    return reader.ended && scope.state._tag === "Open" ? closeInBackground(run, streamName, close) : close
  }
  return Effect.map(
    Pull.catchDone(Effect.onExit(reading, closing), () => Effect.void),
    () => reader.ended
  )
}

/** How long a stream may take to its first event, and between events. */
class Deadline {
  missed = false
  readonly #run: Run
  readonly #openedAt: number
  #begun = false

  constructor(run: Run) {
    this.#run = run
    this.#openedAt = run.now()
  }

  arrived(): void {
    this.#begun = true
  }

  limit<A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E | ModelError> {
    const { eventTimeout, firstEventTimeout } = this.#run.config
    if (eventTimeout === undefined && firstEventTimeout === undefined) return work
    return Effect.suspend(() => {
      const millis = this.#begun ? eventTimeout : this.#firstMillis(firstEventTimeout)
      if (millis === undefined) return work
      return Effect.flatMap(
        within(this.#run, millis, streamName, work),
        (exit): Effect.Effect<A, E | ModelError> => exit ?? Effect.fail(this.#miss())
      )
    })
  }

  #firstMillis(timeout: number | undefined): number | undefined {
    return timeout === undefined ? undefined : Math.max(0, this.#openedAt + timeout - this.#run.now())
  }

  #miss(): ModelError {
    this.missed = true
    const { eventTimeout, firstEventTimeout } = this.#run.config
    return new ModelError({
      reason: "Timeout",
      message: this.#begun
        ? `The model's stream paused for more than ${eventTimeout} ms`
        : `The model's stream gave no event within ${firstEventTimeout} ms`
    })
  }
}

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
  const opened = Result.try(() => run.config.stream(request))
  return Result.isSuccess(opened) ? opened.success : Stream.die(opened.failure)
}

/** The response to the run's conversation as it stands; the error, typed, when the message's stop reason is one. */
export const respond = Effect.fnUntraced(function*(
  run: Run,
  model: Model,
  thinkingLevel: ThinkingLevel,
  toolChoice: StreamRequest["toolChoice"]
) {
  run.requested = { model, thinkingLevel }
  const chosen = conversation(run)
  const { messages, splitPairs, tools } = Effect.isEffect(chosen) ? yield* chosen : chosen
  if (run.stopping) return yield* Effect.interrupt
  if (splitPairs > 0) {
    yield* Log.warn(
      `${splitPairs} tool calls or results without their counterpart were left out of the request`
    )
  }
  const apiKey = run.config.hooks.apiKey.length === 0 ? undefined : yield* keyFor(run, model)
  if (run.stopping) return yield* Effect.interrupt
  const accumulator = run.response = new Accumulator(model, run.now())
  const { headers, metadata, sessionId, thinkingBudgets } = run.config
  const stream = open(run, {
    model,
    messages,
    tools,
    thinkingLevel,
    toolChoice,
    apiKey,
    sessionId,
    headers,
    thinkingBudgets,
    metadata
  })
  const exit = yield* Effect.exit(read(run, accumulator, stream))
  if (run.stopping) return yield* Effect.interrupt
  if (Exit.isFailure(exit)) streamFailure(accumulator, exit.cause)
  else if (!exit.value) accumulator.fail(incomplete())
  const message = accumulator.message(thinkingLevel)
  let pending: Pending
  if (!accumulator.announced && (pending = run.emit({ type: "message_start", message })) !== undefined) yield* pending
  const failed = message.stopReason === "error" || message.stopReason === "aborted"
  const error = failed ? responseError(message, accumulator.error) : undefined
  run.told = error
  if ((pending = run.emit({ type: "message_end", message })) !== undefined) yield* pending
  return error === undefined ? message : yield* Effect.fail(error)
})

/** The typed error of a response that ended with `error` or `aborted`. */
const responseError = (message: AssistantMessage, error: ModelError | undefined): ModelError =>
  error ?? new ModelError({
    reason: message.stopReason === "aborted" ? "Aborted" : "Reported",
    message: message.errorMessage ?? `The model stopped with reason "${message.stopReason}"`
  })
