/** A model whose answers are written down, attempt by attempt, and an agent that asks it. */
import { assert } from "@effect/vitest"
import { Clock, Effect, Fiber, type Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Errors, type Messages, StreamFn } from "../../src/index.ts"
import type { RunResult } from "../../src/RunResult.ts"
import { ofType, Recorder } from "../utils/events.ts"
import { violations } from "../utils/invariants.ts"

export const failure = (
  reason: Errors.ModelErrorReason = "Overloaded",
  fields: { readonly message?: string; readonly retryAfter?: number } = {}
) => new Errors.ModelError({ reason, message: `it is ${reason}`, ...fields })

/** One attempt: events and waiting times in milliseconds, and how it ends. */
export type Attempt = ReadonlyArray<StreamFn.StreamEvent | number | Errors.ModelError>

export const text = (content: string): ReadonlyArray<StreamFn.StreamEvent> => [
  { type: "start" },
  { type: "text_start", contentIndex: 0 },
  { type: "text_delta", contentIndex: 0, delta: content }
]

export const whole = (content: string, end: Partial<StreamFn.StreamEnd> = {}): Attempt => [
  ...text(content),
  { type: "text_end", contentIndex: 0 },
  { type: "done", stopReason: "stop", ...end }
]

export const call = (id: string): Attempt => [
  { type: "start" },
  { type: "toolcall_start", contentIndex: 0, id, name: "note" },
  { type: "toolcall_delta", contentIndex: 0, delta: "{}" },
  { type: "toolcall_end", contentIndex: 0 },
  { type: "done", stopReason: "toolUse" }
]

/** What a model did. */
export class Played {
  readonly requests: Array<StreamFn.StreamRequest> = []
  /** When each request came, in milliseconds. */
  readonly times: Array<number> = []
  open = 0
  mostOpen = 0
}

/** A model that answers with the attempts in order, one event at a time. */
export const model = (
  attempts: ReadonlyArray<Attempt>,
  played = new Played()
): Layer.Layer<StreamFn.StreamFn> =>
  StreamFn.layer((request) =>
    Stream.unwrap(Effect.gen(function*() {
      const attempt = attempts[played.requests.length]
      assert.isDefined(attempt, "a request too many")
      played.requests.push({ ...request, messages: [...request.messages] })
      played.times.push(yield* Clock.currentTimeMillis)
      played.open++
      played.mostOpen = Math.max(played.open, played.mostOpen)
      return Stream.fromIterable(attempt).pipe(
        Stream.rechunk(1),
        Stream.mapEffect((step) =>
          typeof step === "number"
            ? Effect.as(Effect.sleep(step), [])
            : step instanceof Errors.ModelError
            ? Effect.fail(step)
            : Effect.succeed([step])
        ),
        Stream.flattenIterable,
        Stream.ensuring(Effect.sync(() => played.open--))
      )
    }))
  )

export interface Told {
  readonly recorder: Recorder
  readonly result: RunResult
  readonly last: Messages.AssistantMessage
  readonly endedAt: number
}

/** One prompt, aborted at a time if one is given; the clock goes on until all is over. */
export const ask = (options: Agent.Options & { readonly abortAt?: number } = {}) =>
  Effect.gen(function*() {
    const { abortAt, ...rest } = options
    const recorder = new Recorder()
    const agent = yield* Agent.make(rest)
    const before = yield* agent.messages
    yield* agent.subscribe(recorder.record)
    const run = yield* Effect.forkChild(Effect.zip(agent.prompt("go"), Clock.currentTimeMillis), {
      startImmediately: true
    })
    if (abortAt !== undefined) {
      yield* TestClock.adjust(abortAt)
      yield* agent.abort
    }
    yield* TestClock.adjust("1 hour")
    const [result, endedAt] = yield* Fiber.join(run)
    const transcript = yield* agent.messages
    assert.deepStrictEqual(violations({ events: recorder.events, before, transcript, accepted: ["go"] }), [])
    assert.deepStrictEqual(recorder.changed, [])
    const last = result.messages.findLast(({ role }) => role === "assistant")
    assert(last?.role === "assistant")
    const told: Told = { recorder, result, last, endedAt }
    return told
  }).pipe(Effect.scoped)

/** What the updates said, in a word or two. */
export const updates = ({ recorder }: Told): ReadonlyArray<string> =>
  ofType(recorder.events, "message_update").map(({ assistantMessageEvent: update }) =>
    update.type === "retract"
      ? `retract ${update.attempt}: ${update.errorMessage}`
      : update.type === "text_delta"
      ? update.delta
      : update.type
  )
