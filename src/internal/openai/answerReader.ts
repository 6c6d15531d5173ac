/**
 * From the bytes of an answer to stream events: one list of events for each read from the network that brought any.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as Pull from "effect/Pull"
import type { ModelError } from "../../Errors.ts"
import type { StreamEvent } from "../../StreamFn.ts"
import type { ChunkReader } from "./chunkReader.ts"
import type { Failures } from "./failures.ts"

export type Events = Pull.Pull<Arr.NonEmptyReadonlyArray<StreamEvent>, ModelError>

type Bytes = Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, ModelError>

/** How much is kept of an answer that has no events, to show what it was. */
const maxStart = 1000

const drainMillis = 100

export class AnswerReader {
  readonly #chunks: ChunkReader
  readonly #failures: Failures
  readonly #contentType: string | undefined
  /** A character may be spread over two reads. */
  readonly #decoder = new TextDecoder()
  readonly #parser: Sse.Parser
  #start = ""

  constructor(chunks: ChunkReader, failures: Failures, contentType: string | undefined) {
    this.#chunks = chunks
    this.#failures = failures
    this.#contentType = contentType
    this.#parser = Sse.makeParser((event) => {
      if (event._tag === "Event") this.#chunks.read(event.data, event.event)
    })
  }

  /** Events that came before a failure or the end are given first. */
  events(bytes: Bytes): Events {
    const read: Events = Effect.flatMap(bytes, (arrays) => {
      for (const array of arrays) this.#feed(this.#decoder.decode(array, { stream: true }))
      return this.#next() ?? read
    })
    const ended: Events = Effect.suspend(() => {
      // The last event may lack the empty line behind it.
      this.#feed(`${this.#decoder.decode()}\n\n`)
      if (this.#chunks.begun) this.#chunks.end()
      else this.#chunks.failure ??= this.#failures.notEvents(this.#contentType, this.#start)
      return this.#next() ?? Cause.done()
    })
    const readOn: Events = Pull.catchDone(read, () => ended)
    return Effect.suspend(() => this.#next() ?? readOn)
  }

  /**
   * After the last event the rest of the answer is read, which is nothing or next to nothing, so that the connection serves
   * the next turn as well. A server that keeps it open behind its last event loses it after a moment.
   */
  drain(bytes: Bytes): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.#chunks.finished) return Effect.void
      const toTheEnd = Effect.exit(Effect.interruptible(Effect.forever(bytes)))
      return Effect.asVoid(Effect.timeoutOption(toTheEnd, drainMillis))
    })
  }

  #feed(text: string): void {
    if (!this.#chunks.begun && this.#start.length < maxStart) this.#start += text
    if (this.#chunks.failure !== undefined) return
    const tooLarge = this.#parser.feed(text)
    if (tooLarge !== undefined) this.#chunks.failure = this.#failures.violation(`sent too much: ${tooLarge.message}`)
  }

  /** What there is without another read. */
  #next(): Events | undefined {
    const { events, failure, finished } = this.#chunks
    if (Arr.isArrayNonEmpty(events)) {
      this.#chunks.events = []
      return Effect.succeed(events)
    }
    return failure !== undefined ? Effect.fail(failure) : finished ? Cause.done() : undefined
  }
}
