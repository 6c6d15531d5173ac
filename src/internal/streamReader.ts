/**
 * Reads the stream of a response, event by event, and tells the listeners.
 */
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ModelError } from "../Errors.ts"
import type { StreamEvent } from "../StreamFn.ts"
import type { Accumulator } from "./accumulator.ts"
import { closeInBackground, inBackground, within } from "./deadline.ts"
import type { Answer, Pending } from "./emitter.ts"
import type { Run } from "./run.ts"

const streamName = "The model's stream"

type Chunk = ReadonlyArray<StreamEvent>

/**
 * Reads the events of a stream: pulls chunks as long as listeners answer at once, in one loop that may be interrupted, and
 * runs what listeners answer in another one that may not. So a stream costs a pull a chunk instead of an effect an event,
 * and entering and leaving what may be interrupted is not paid for each pull. As an object instead of three functions the
 * loop of the pulls costs a waiting agent less.
 */
class Reader {
  ended = false
  /** What a listener has left to do. */
  pending: Answer
  readonly #run: Run
  readonly #accumulator: Accumulator
  readonly #deadline: Deadline | undefined
  readonly #scope = Scope.makeUnsafe()
  #pull: Effect.Effect<Chunk, ModelError | Cause.Done> = Effect.never
  #pulls: Effect.Effect<void, ModelError | Cause.Done> = Effect.never
  #answers: Effect.Effect<void> | undefined
  #chunk: Chunk = noEvents
  #next = 0

  constructor(run: Run, accumulator: Accumulator) {
    this.#run = run
    this.#accumulator = accumulator
    this.#deadline = deadlineOf(run)
  }

  /** Opens the stream and reads it. */
  read(stream: Stream.Stream<StreamEvent, ModelError>): Effect.Effect<void, ModelError | Cause.Done> {
    return Effect.flatMap(
      Effect.interruptible(this.#limited(Channel.toTransform(Stream.toChannel(stream))(Cause.done(), this.#scope))),
      (pull) => {
        this.#pull = this.#limited(pull)
        this.#pulls = Effect.catchCause(
          Effect.interruptible(Effect.whileLoop(this)),
          // An abort between two listeners of an event: the second is told all the same.
          (cause) => this.pending === undefined ? Effect.failCause(cause) : Effect.void
        )
        return this.#goOn()
      }
    )
  }

  #limited<A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E | ModelError> {
    return this.#deadline === undefined ? work : this.#deadline.limit(work)
  }

  #goOn(): Effect.Effect<void, ModelError | Cause.Done> {
    if (this.pending !== undefined) return Effect.flatMap(this.#answers ??= answersOf(this), () => this.#goOn())
    if (this.ended) return Effect.void
    return this.#run.stopping ? Effect.interrupt : Effect.flatMap(this.#pulls, () => this.#goOn())
  }

  close(exit: Exit.Exit<unknown, unknown>): Pending {
    const close = Scope.closeUnsafe(this.#scope, exit)
    if (close === undefined) return undefined
    if (this.#deadline?.missed) return inBackground(this.#run, streamName, Effect.uninterruptible(close))
    // The answer is complete: that its connection closes is no part of it.
    return this.ended ? closeInBackground(this.#run, streamName, close) : close
  }

  while(): boolean {
    return !this.ended && this.pending === undefined && !this.#run.stopping
  }

  body(): Effect.Effect<Chunk, ModelError | Cause.Done> {
    return this.#pull
  }

  step(chunk: Chunk): void {
    if (this.#deadline !== undefined) this.#deadline.begun = true
    this.#chunk = chunk
    this.#next = 0
    this.takeEvents()
  }

  /** Takes the events that are there until a listener has something left to do. */
  takeEvents(): void {
    this.pending = undefined
    let pending = this.#run.emitter.next()
    while (pending === undefined && this.#next < this.#chunk.length && !this.ended && !this.#run.stopping) {
      pending = this.#take(this.#chunk[this.#next++]!)
    }
    this.pending = pending
  }

  /** A listener failed, which costs nobody else the event; or, when nothing was left to do, an event that cannot be read. */
  failed(cause: Cause.Cause<unknown>): Effect.Effect<void> {
    if (this.pending === undefined) return Effect.die(Cause.squash(cause))
    return Effect.map(this.#run.emitter.failed(cause), () => this.takeEvents())
  }

  /** Feeds one event to the message. What listeners have left to do is awaited before the next one. */
  #take(event: StreamEvent): Answer {
    const step = this.#accumulator.add(event)
    if (step === undefined) return undefined
    if (step === "end") {
      this.ended = true
      return undefined
    }
    const { emitter } = this.#run
    if (step === "start") return emitter.begin({ type: "message_start", message: this.#accumulator.snapshot() })
    if (!emitter.observed) return undefined
    return emitter.begin({
      type: "message_update",
      message: this.#accumulator.snapshot(),
      assistantMessageEvent: step
    })
  }
}

/** Runs what listeners answer to the events that are there. */
const answersOf = (reader: Reader): Effect.Effect<void> =>
  Effect.catchCause(
    Effect.whileLoop({
      while: () => reader.pending !== undefined,
      body: () => reader.pending!,
      step: () => reader.takeEvents()
    }),
    (cause) => reader.failed(cause)
  )

const noEvents: Chunk = []

/** How a stream ended: whether there was a final event, or the failure. */
export type Outcome = boolean | Cause.Cause<ModelError>

/** Reads the stream to its final event, or to its end, closes it, and goes on with how it ended. */
export const read = <A, E>(
  run: Run,
  accumulator: Accumulator,
  stream: Stream.Stream<StreamEvent, ModelError>,
  then: (outcome: Outcome) => Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const reader = new Reader(run, accumulator)
  const closed = (outcome: Outcome, exit: Exit.Exit<unknown, unknown>): Effect.Effect<A, E> => {
    const close = reader.close(exit)
    if (close === undefined) return then(outcome)
    return Effect.matchCauseEffect(close, {
      onSuccess: () => then(outcome),
      onFailure: (cause) => then(Cause.isCause(outcome) ? Cause.combine(outcome, cause) : cause)
    })
  }
  return Effect.matchCauseEffect(reader.read(stream), {
    onSuccess: () => closed(reader.ended, Exit.void),
    onFailure: (cause) => {
      const done = Pull.filterDone(cause)
      return closed(Result.isSuccess(done) ? reader.ended : done.failure, Exit.failCause(cause))
    }
  })
}

const deadlineOf = (run: Run): Deadline | undefined => {
  const { eventTimeout, firstEventTimeout } = run.config
  return eventTimeout === undefined && firstEventTimeout === undefined ? undefined : new Deadline(run)
}

/** How long a stream may take to its first event, and between events. */
class Deadline {
  missed = false
  /** An event has arrived. */
  begun = false
  readonly #run: Run
  readonly #openedAt: number

  constructor(run: Run) {
    this.#run = run
    this.#openedAt = run.now()
  }

  limit<A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E | ModelError> {
    const { eventTimeout, firstEventTimeout } = this.#run.config
    return Effect.suspend(() => {
      const millis = this.begun ? eventTimeout : this.#firstMillis(firstEventTimeout)
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
      message: this.begun
        ? `The model's stream paused for more than ${eventTimeout} ms`
        : `The model's stream gave no event within ${firstEventTimeout} ms`
    })
  }
}
