/**
 * A response that may take several attempts: when one fails, what comes next is asked for, what had arrived is withdrawn, and
 * the next attempt begins. An attempt is closed before anything else happens.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ModelError } from "../../Errors.ts"
import type { ResponseInfo, StreamEnd, StreamEvent } from "../../StreamFn.ts"

export interface Attempt {
  readonly stream: Stream.Stream<StreamEvent, ModelError>
  /** Who answers, where that is another model than was asked for. */
  readonly model?: ResponseInfo["model"]
}

/** What comes after a failure, or nothing: then the failure is the end of the response. */
export type Next = (error: ModelError) => Effect.Effect<Attempt | undefined, ModelError>

type Events = Arr.NonEmptyReadonlyArray<StreamEvent>

type EventPull = Pull.Pull<Events, ModelError>

export const attempts = (first: Attempt, next: Next): Stream.Stream<StreamEvent, ModelError> =>
  Stream.fromChannel(Channel.fromTransform((_: Pull.Pull<unknown, unknown, unknown>, scope) =>
    Effect.suspend(() => {
      const state = new Attempts(next, scope)
      return Effect.as(state.open(first), state.read)
    })
  ))

class Attempts {
  readonly #next: Next
  readonly #scope: Scope.Scope
  #attempt = 1
  #model: Attempt["model"]
  #current: { readonly pull: EventPull; readonly scope: Scope.Closeable } | undefined
  /** The final event of an attempt that failed, which stays back until it is known that nothing comes after it. */
  #failed: StreamEnd | undefined
  #complete = false

  constructor(next: Next, scope: Scope.Scope) {
    this.#next = next
    this.#scope = scope
  }

  open({ stream }: Attempt): Effect.Effect<void, ModelError> {
    return Effect.suspend(() => {
      const scope = Scope.forkUnsafe(this.#scope)
      return Effect.map(Channel.toTransform(Stream.toChannel(stream))(Cause.done(), scope), (pull) => {
        this.#current = { pull, scope }
      })
    })
  }

  readonly read: EventPull = Effect.suspend(() => {
    const failed = this.#failed
    if (failed !== undefined) return this.#goOn(errorOf(failed), failed)
    return Effect.matchCauseEffect(this.#current!.pull, {
      onSuccess: (events) => this.#take(events),
      onFailure: (cause): EventPull => {
        const done = Pull.filterDone(cause)
        if (Result.isSuccess(done)) {
          return this.#complete
            ? Effect.failCause(cause)
            : this.#goOn(incomplete(), undefined)
        }
        const error = Cause.findErrorOption(done.failure)
        return error._tag === "Some" && error.value instanceof ModelError
          ? this.#goOn(error.value, undefined)
          : Effect.failCause(cause)
      }
    })
  })

  #take(events: Events): EventPull {
    const end = events.findIndex(({ type }) => type === "done" || type === "error")
    const last = events[end]
    if (last?.type === "done") this.#complete = true
    const told = events.some(({ type }) => type === "retract") ? Arr.map(events, (event) => this.#count(event)) : events
    if (last?.type !== "error") return Effect.succeed(told)
    this.#failed = last
    const before = told.slice(0, end)
    return Arr.isReadonlyArrayNonEmpty(before) ? Effect.succeed(before) : this.read
  }

  /** An attempt may consist of attempts itself: they are counted through. */
  #count(event: StreamEvent): StreamEvent {
    if (event.type !== "retract") return event
    const model = event.model ?? this.#model
    return { ...event, attempt: ++this.#attempt, ...(model !== undefined && { model }) }
  }

  #goOn(error: ModelError, failed: StreamEnd | undefined): EventPull {
    const close = Scope.close(this.#current!.scope, Exit.fail(error))
    return Effect.flatMap(Effect.andThen(close, this.#next(error)), (attempt): EventPull => {
      this.#failed = undefined
      if (attempt === undefined) {
        this.#complete = true
        this.#current = { pull: Cause.done(), scope: this.#current!.scope }
        return failed === undefined ? Effect.fail(error) : Effect.succeed([failed])
      }
      this.#attempt++
      const model = this.#model = attempt.model
      const usage = failed?.usage
      const retract: StreamEvent = {
        type: "retract",
        attempt: this.#attempt,
        error,
        ...(usage !== undefined && { usage }),
        ...(model !== undefined && { model })
      }
      return Effect.as(this.open(attempt), [retract])
    })
  }
}

/** The error of a final event; one that carries none is the provider's own report. */
const errorOf = ({ error, errorMessage, stopReason }: StreamEnd): ModelError =>
  error ?? new ModelError({
    reason: stopReason === "aborted" ? "Aborted" : "Reported",
    message: errorMessage ?? "The model reported an error"
  })

const incomplete = (): ModelError =>
  new ModelError({ reason: "IncompleteStream", message: "The model's stream ended without a final event" })
