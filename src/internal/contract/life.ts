/**
 * Whether a `StreamFn` opens and closes what it should (M2, A1): cases for any wire.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { user } from "../../Messages.ts"
import type { StreamRequest } from "../../StreamFn.ts"
import { args, call, complete, text } from "./answers.ts"
import { ask, build, copyOf, type Given, instructions, isPlain, requestOf, streamOf } from "./ask.ts"
import { expectResponse, outlineOf } from "./expectation.ts"
import { beside, type Check, mismatch, within } from "./mismatch.ts"
import type { Answer, Answering, Expected, Subject } from "./types.ts"

const hangs = (...texts: ReadonlyArray<string>): Answer => ({ steps: texts.map(text), end: { type: "hang" } })

const says = (content: string): Expected => ({
  type: "message",
  content: [{ type: "text", text: content }],
  stopReason: "stop"
})

const closed = (answering: Answering, after: string) =>
  within(answering.closed, `nothing that is left open after ${after}`, "the answer is still open")

/** Reads until an event is the one that is waited for, interrupts the reader then, and looks whether all is closed. */
const interrupted = (subject: Subject, answer: Answer, isReached: (type: string) => boolean) =>
  Effect.gen(function*() {
    const answering = yield* subject.answering([answer])
    const streaming = yield* build(answering)
    const reached = yield* Deferred.make<void>()
    const reading = yield* beside(
      Stream.runForEach(streaming.stream(requestOf(answering.model)), ({ type }) =>
        isReached(type) ? Deferred.succeed(reached, undefined) : Effect.void)
    )
    const ended = Effect.flatMap(Fiber.await(reading), () =>
      mismatch("a response that goes on as long as its answer is open", "it ended by itself"))
    yield* within(
      Effect.raceFirst(
        answer.steps.length === 0 ? answering.hanging ?? Effect.yieldNow : Deferred.await(reached),
        ended
      ),
      "an event for each piece when it arrives",
      "none came while the answer was open"
    )
    yield* within(Fiber.interrupt(reading), "a stream that can be interrupted", "it went on")
    yield* closed(answering, "the interruption")
  })

/** Fields of every kind, so that a change to any of them shows. */
const fullRequest = (answering: Answering): StreamRequest =>
  requestOf(answering.model, {
    messages: [
      instructions,
      user([{ type: "text", text: "hi" }, { type: "image", data: "AAAA", mimeType: "image/png" }])
    ],
    thinkingLevel: "high",
    headers: { "x-contract": "1" },
    thinkingBudgets: { high: 100 },
    metadata: { user_id: "u" },
    sessionId: "s"
  })

const contentOf = ({ message }: Given): string => JSON.stringify(outlineOf(message.content))

const several: ReadonlyArray<Answer> = ["one", "two", "three", "four"].map((word) =>
  complete([text(`${word} `), text(word), call("a", word), args("a", "{\"word\":"), args("a", `"${word}"}`)], "toolUse")
)

const expectedOf = (word: string): string =>
  JSON.stringify([
    { type: "text", text: `${word} ${word}` },
    { type: "toolCall", id: "a", name: word, arguments: { word } }
  ])

export const lifeChecks = (subject: Subject): ReadonlyArray<Check> => [
  {
    name: "A1: an interruption in the middle of an answer closes it",
    check: interrupted(subject, hangs("Hel", "lo"), (type) => type === "text_delta")
  },
  {
    name: "A1: an interruption before the first event closes the answer",
    check: interrupted(subject, hangs(), () => false)
  },
  {
    name: "M2: a reader that stops early closes the answer",
    check: Effect.gen(function*() {
      const answering = yield* subject.answering([hangs("Hel", "lo")])
      const streaming = yield* build(answering)
      const reading = yield* beside(Stream.runDrain(Stream.take(streaming.stream(requestOf(answering.model)), 1)))
      yield* within(
        Fiber.await(reading),
        "a stream that ends when nobody reads it",
        "it went on"
      )
      yield* closed(answering, "its reader stopped")
    })
  },
  {
    name: "M2: a stream that is made and never run asks for nothing",
    check: Effect.gen(function*() {
      const answering = yield* subject.answering([complete([text("one")]), complete([text("two")])])
      const streaming = yield* build(answering)
      const request = requestOf(answering.model)
      yield* Effect.asVoid(streamOf(streaming, request))
      yield* expectResponse(yield* ask(streaming, request), says("one"))
    })
  },
  {
    name: "M2: a stream that is run twice asks twice",
    check: Effect.gen(function*() {
      const answering = yield* subject.answering([complete([text("one")]), complete([text("two")])])
      const streaming = yield* build(answering)
      const stream = yield* streamOf(streaming, requestOf(answering.model))
      for (const word of ["one", "two"]) {
        yield* expectResponse(yield* ask({ stream: () => stream }, requestOf(answering.model)), says(word))
      }
      yield* closed(answering, "both")
    })
  },
  {
    name: "M2: a request after a failure is answered",
    check: Effect.gen(function*() {
      const answering = yield* subject.answering([
        { steps: [text("one")], end: { type: "cut" } },
        complete([text("two")])
      ])
      const streaming = yield* build(answering)
      yield* ask(streaming, requestOf(answering.model))
      yield* expectResponse(yield* ask(streaming, requestOf(answering.model)), says("two"))
    })
  },
  {
    name: "M2: answers to requests at the same time do not mix",
    check: Effect.gen(function*() {
      const [first, ...rest] = several
      const answering = yield* subject.answering([first!, ...rest])
      const streaming = yield* build(answering)
      const given = yield* Effect.forEach(several, () => ask(streaming, requestOf(answering.model)), {
        concurrency: "unbounded"
      })
      const expected = ["one", "two", "three", "four"].map(expectedOf).toSorted()
      const received = given.map(contentOf).toSorted()
      if (expected.join() !== received.join()) {
        return yield* mismatch(`the answers ${expected.join(", ")}, in any order`, `they were ${received.join(", ")}`)
      }
      yield* closed(answering, "all of them")
    })
  },
  {
    name: "M1: the request is not changed",
    check: Effect.gen(function*() {
      const answering = yield* subject.answering([complete([text("one")])])
      const streaming = yield* build(answering)
      const request = fullRequest(answering)
      const before = copyOf(request)
      yield* ask(streaming, request)
      for (const [field, value] of Object.entries(before)) {
        const now = JSON.stringify(Reflect.get(request, field))
        if (now !== JSON.stringify(value)) {
          return yield* mismatch(`\`${field}\` as it was, ${JSON.stringify(value)}`, `it is ${now}`)
        }
      }
      const added = Object.keys(request).filter((field) => !Object.hasOwn(before, field))
      if (added.length > 0) return yield* mismatch("no other fields", `there are ${added.join(", ")}`)
    })
  },
  {
    name: "M1: a request that is frozen is answered",
    check: Effect.gen(function*() {
      const answering = yield* subject.answering([complete([text("one")])])
      const streaming = yield* build(answering)
      yield* expectResponse(yield* ask(streaming, deepFreeze(fullRequest(answering))), says("one"))
    })
  }
]

const deepFreeze = <A>(value: A): A => {
  if (!Array.isArray(value) && !isPlain(value)) return value
  for (const field of Object.values(value)) deepFreeze(field)
  return Object.freeze(value)
}
