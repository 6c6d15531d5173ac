/** The scripted model of SCENARIO.md, section 5, as a `StreamFn`: a hot source, read through an unbounded queue. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ModelError } from "../../src/Errors.ts"
import * as StreamFn from "../../src/StreamFn.ts"
import { normMessages, showTool } from "./normalize.mjs"
import { type Stage, wait } from "./stage.ts"
import type { Response, StreamStep } from "./types.ts"
import { compact, contentIn, eventGroups } from "./values.mjs"

type Source = Queue.Queue<StreamFn.StreamEvent, ModelError | Cause.Done>

const failure = (message: string): ModelError => new ModelError({ reason: "Unknown", message })

/** Where a response stands. */
class Progress {
  /** Blocks opened so far. */
  blocks = 0
  /** The response is complete: an abort has no effect any more. */
  over = false
}

const endOf = ({ content, errorMessage, stopReason }: StreamStep, type: "done" | "error"): StreamFn.StreamEnd => ({
  type,
  stopReason: stopReason ?? (type === "done" ? "stop" : "error"),
  ...(content !== undefined && { content: contentIn(content) }),
  ...(errorMessage !== undefined && { errorMessage })
})

const emit = (queue: Source, progress: Progress, step: StreamStep): void => {
  const contentIndex = step.type.endsWith("_start") ? progress.blocks++ : step.index ?? progress.blocks - 1
  switch (step.type) {
    case "start":
      Queue.offerUnsafe(queue, { type: "start" })
      return
    case "text_start":
    case "thinking_start":
      Queue.offerUnsafe(queue, { type: step.type, contentIndex })
      return
    case "toolcall_start":
      Queue.offerUnsafe(queue, { type: "toolcall_start", contentIndex, id: step.call!, name: step.tool! })
      return
    case "text_delta":
    case "thinking_delta":
    case "toolcall_delta":
      Queue.offerUnsafe(queue, { type: step.type, contentIndex, delta: step.delta! })
      return
    case "text_end":
    case "thinking_end":
      Queue.offerUnsafe(queue, { type: step.type, contentIndex })
      return
    case "toolcall_end":
      Queue.offerUnsafe(queue, { type: "toolcall_end", contentIndex, arguments: structuredClone(step.args ?? {}) })
      return
    case "done":
    case "error":
      progress.over = true
      Queue.offerUnsafe(queue, endOf(step, step.type))
      return
    case "end":
      progress.over = true
      if (!step.noResult) Queue.offerUnsafe(queue, endOf(step, "done"))
      Queue.endUnsafe(queue)
      return
    case "throw":
      progress.over = true
      Queue.failCauseUnsafe(queue, Cause.fail(failure(step.message!)))
      return
  }
}

/** Emits what is due at once, and the rest from a fiber that lives as long as the stream. */
const produce = (queue: Source, progress: Progress, response: Response): Effect.Effect<void, never, Scope.Scope> => {
  const groups = eventGroups(response.events)
  const now = groups[0]?.due === 0 ? groups.shift() : undefined
  const run = (events: ReadonlyArray<StreamStep>) =>
    Effect.sync(() => {
      for (const step of events) emit(queue, progress, step)
    })
  let at = 0
  const later = Effect.forEach(groups, ({ due, events }) => {
    const delay = due - at
    at = due
    return Effect.andThen(wait(delay), run(events))
  }, { discard: true })
  return Effect.andThen(run(now?.events ?? []), Effect.forkScoped(later, { startImmediately: true })).pipe(
    Effect.asVoid
  )
}

const play = (response: Response): Stream.Stream<StreamFn.StreamEvent, ModelError> => {
  const mode = response.onAbort ?? "error"
  const progress = new Progress()
  const deaf = <A, E, R>(effect: Effect.Effect<A, E, R>) => mode === "ignore" ? Effect.uninterruptible(effect) : effect
  return Stream.unwrap(Effect.gen(function*() {
    if (typeof mode === "number") {
      yield* Effect.addFinalizer((exit) => Exit.hasInterrupts(exit) && !progress.over ? wait(mode) : Effect.void)
    }
    yield* deaf(wait(response.setup))
    if (response.throws !== undefined) {
      progress.over = true
      return Stream.fail(failure(response.throws))
    }
    const queue: Source = yield* Queue.unbounded<StreamFn.StreamEvent, ModelError | Cause.Done>()
    yield* produce(queue, progress, response)
    return Stream.fromPull(Effect.succeed(deaf(Queue.takeAll(queue))))
  }))
}

export const scriptedModel = (stage: Stage): Layer.Layer<StreamFn.StreamFn> => {
  let responses = 0
  return StreamFn.layer((request) => {
    const n = stage.recording.requests.length + 1
    stage.recording.requests.push(compact({
      t: stage.now(),
      n,
      model: request.model.id,
      thinkingLevel: request.thinkingLevel,
      apiKey: request.apiKey && Redacted.value(request.apiKey),
      sessionId: request.sessionId,
      tools: request.tools.map(showTool),
      messages: normMessages(request.messages)
    }))
    const response = stage.scenario.model[responses++]
    return response === undefined
      ? Stream.fail(failure(`no scripted response for request ${n}`))
      : play(response)
  })
}
