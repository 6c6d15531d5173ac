/**
 * Writes responses down as they pass.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import type * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { ModelError } from "../../Errors.ts"
import type { StreamEvent, StreamRequest } from "../../StreamFn.ts"
import {
  CassetteError,
  type End,
  eventJson,
  failureOf,
  header,
  type Line,
  type Redact,
  redact,
  redactFields,
  redactText,
  requestJson,
  secretsOf,
  writeLine
} from "./cassette.ts"
import { type Answer, onLayer } from "./onLayer.ts"

/** The options of `Resilience.record`; see there. */
export interface RecordOptions {
  readonly redact?: Redact | undefined
}

export const record = (file: string, options: RecordOptions) =>
  onLayer((stream) =>
    Effect.gen(function*() {
      const write = yield* openFile(file)
      let count = 0
      return (request): ReturnType<Answer> =>
        Stream.unwrap(Effect.map(Clock.currentTimeMillis, (startedAt) => {
          const recording = new Recording(file, ++count, startedAt, options.redact ?? [], request, write)
          return recording.of(Stream.suspend(() => stream(request)), request)
        }))
    })
  )

type Write = (text: string) => Effect.Effect<void, CassetteError>

/** An empty file and a function that adds a line; lines of responses at the same time never mix. */
const openFile = Effect.fnUntraced(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  const notWritable = (error: { readonly message: string }) =>
    new CassetteError({
      reason: "NotWritable",
      file,
      message: `The cassette ${file} cannot be written: ${error.message}. Is the folder there?`
    })
  const opened = yield* Effect.mapError(fs.open(file, { flag: "w" }), notWritable)
  const lock = yield* Semaphore.make(1)
  const encoder = new TextEncoder()
  const write: Write = (text) =>
    Effect.uninterruptible(lock.withPermits(1)(Effect.mapError(opened.writeAll(encoder.encode(text)), notWritable)))
  yield* write(`${header}\n`)
  return write
})

class Recording {
  readonly #file: string
  readonly #n: number
  readonly #startedAt: number
  readonly #hidden: Redact
  readonly #secrets: ReadonlyArray<string>
  readonly #write: Write
  #ended = false

  constructor(file: string, n: number, startedAt: number, hidden: Redact, request: StreamRequest, write: Write) {
    this.#file = file
    this.#n = n
    this.#startedAt = startedAt
    this.#hidden = hidden
    this.#secrets = secretsOf(request)
    this.#write = write
  }

  of(stream: Stream.Stream<StreamEvent, ModelError>, request: StreamRequest): Stream.Stream<StreamEvent, ModelError> {
    return Stream.unwrap(Effect.as(
      this.#request(request),
      stream.pipe(
        Stream.mapArrayEffect((events) => Effect.as(this.#events(events), events)),
        Stream.onExit((exit) => this.#end(exit))
      )
    ))
  }

  #request(request: StreamRequest): Effect.Effect<void, ModelError> {
    return Effect.flatMap(
      this.#json("The request", requestJson(request)),
      (json) => this.#line({ n: this.#n, request: redact(json, this.#hidden, this.#secrets) })
    )
  }

  #events(events: Arr.NonEmptyReadonlyArray<StreamEvent>): Effect.Effect<void, ModelError> {
    return Effect.gen({ self: this }, function*() {
      const at = yield* this.#millis
      const lines = yield* Effect.forEach(events, (event) => this.#json(`An event ${event.type}`, eventJson(event)))
      const clean = lines.map((line) => redactFields(line, this.#hidden, this.#secrets))
      if (events.some(({ type }) => type === "done" || type === "error")) this.#ended = true
      if (Arr.isReadonlyArrayNonEmpty(clean)) yield* this.#line({ n: this.#n, at, events: clean })
    })
  }

  #end(exit: Exit.Exit<unknown, ModelError>): Effect.Effect<void> {
    if (this.#ended) return Effect.void
    const end = Effect.flatMap(this.#millis, (at) => this.#line({ n: this.#n, at, end: this.#endOf(exit) }))
    return Effect.catch(end, (error) => Effect.logWarning(error.message))
  }

  #endOf(exit: Exit.Exit<unknown, ModelError>): End {
    if (Exit.isSuccess(exit)) return "complete"
    if (Cause.hasInterrupts(exit.cause)) return "interrupted"
    const error = Cause.findErrorOption(exit.cause)
    const failure = failureOf(
      error._tag === "Some" ? error.value : new ModelError({ reason: "Unknown", message: Cause.pretty(exit.cause) })
    )
    return { ...failure, message: redactText(failure.message, this.#hidden, this.#secrets) }
  }

  get #millis(): Effect.Effect<number> {
    return Effect.map(Clock.currentTimeMillis, (now) => now - this.#startedAt)
  }

  #json<A>(what: string, json: Result.Result<A, string>): Effect.Effect<A, ModelError> {
    return Effect.mapError(
      Effect.fromResult(json),
      (problem) =>
        new ModelError({ reason: "Unknown", message: `${what} cannot be written to ${this.#file}: ${problem}` })
    )
  }

  /** A recording with a gap would be found out much later: what cannot be written down ends the response. */
  #line(line: Line): Effect.Effect<void, ModelError> {
    return Effect.mapError(
      this.#write(writeLine(line)),
      (cause) => new ModelError({ reason: "Unknown", message: cause.message, cause })
    )
  }
}
