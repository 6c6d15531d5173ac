/**
 * Reads the stream of a response, event by event, and tells the listeners.
 */
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ModelError } from "../Errors.ts"
import type { StreamEvent } from "../StreamFn.ts"
import type { Accumulator } from "./accumulator.ts"
import { closeInBackground, inBackground, within } from "./deadline.ts"
import type { Pending } from "./emitter.ts"
import type { Run } from "./run.ts"

const streamName = "The model's stream"

type Chunk = ReadonlyArray<StreamEvent>

/**
 * The loop over the events of a stream: `body` takes those that are there as long as listeners answer at once, and gives
 * what there is to wait for otherwise. So a stream costs a pull a chunk instead of an effect an event, and as an object
 * instead of three functions it costs a waiting agent less.
 */
class Reader {
  ended = false
  readonly #run: Run
  readonly #accumulator: Accumulator
  readonly #deadline: Deadline | undefined
  readonly #scope = Scope.makeUnsafe()
  #pull: Effect.Effect<Chunk, ModelError | Cause.Done> = Effect.never
  /** What is waited for are events, not listeners. */
  #pulling = false
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
      this.#waiting(Channel.toTransform(Stream.toChannel(stream))(Cause.done(), this.#scope)),
      (pull) => {
        this.#pull = this.#waiting(pull)
        return Effect.whileLoop(this)
      }
    )
  }

  /** An abort and a deadline end what waits for the stream. */
  #waiting<A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E | ModelError> {
    return Effect.interruptible(this.#deadline === undefined ? work : this.#deadline.limit(work))
  }

  close(exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> {
    const close = Scope.closeUnsafe(this.#scope, exit)
    if (close === undefined) return Effect.void
    if (this.#deadline?.missed) return inBackground(this.#run, streamName, Effect.uninterruptible(close))
    // The answer is complete: that its connection closes is no part of it.
    return this.ended ? closeInBackground(this.#run, streamName, close) : close
  }

  while(): boolean {
    return !this.ended
  }

  body(): Effect.Effect<Chunk | void, ModelError | Cause.Done> {
    const rest = this.#run.emitter.next()
    if (rest !== undefined) return rest
    while (this.#next < this.#chunk.length) {
      const pending = this.#take(this.#chunk[this.#next++]!)
      if (this.ended) return Effect.void
      if (pending !== undefined) return pending
    }
    if (this.#run.stopping) return Effect.interrupt
    this.#pulling = true
    return this.#pull
  }

  /** What listeners answer means nothing; a pull gives the next events. */
  step(answer: Chunk | void): void {
    if (!this.#pulling) return
    this.#pulling = false
    const chunk = answer ?? noEvents
    if (this.#deadline !== undefined) this.#deadline.begun = true
    this.#chunk = chunk
    this.#next = 0
  }

  /** Feeds one event to the message. What listeners have left to do is awaited before the next one. */
  #take(event: StreamEvent): Pending {
    const run = this.#run
    if (run.stopping) return Effect.interrupt
    const step = this.#accumulator.add(event)
    if (step === undefined) return undefined
    if (step === "end") {
      this.ended = true
      return undefined
    }
    if (step === "start") return run.emit({ type: "message_start", message: this.#accumulator.snapshot() })
    const { emitter } = run
    if (!emitter.observed) return undefined
    return emitter.begin({
      type: "message_update",
      message: this.#accumulator.snapshot(),
      assistantMessageEvent: step
    })
  }
}

const noEvents: Chunk = []

/** Reads the stream to its final event, or to its end: whether there was a final event, or the failure. */
export const read = (
  run: Run,
  accumulator: Accumulator,
  stream: Stream.Stream<StreamEvent, ModelError>
): Effect.Effect<boolean | Cause.Cause<ModelError>> => {
  const reader = new Reader(run, accumulator)
  return Effect.matchCause(Effect.onExit(reader.read(stream), (exit) => reader.close(exit)), {
    onSuccess: () => reader.ended,
    onFailure: (cause) => {
      const done = Pull.filterDone(cause)
      return Result.isSuccess(done) ? reader.ended : done.failure
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
