/** The contract holds for the scripted model and what goes around it, and finds every fault that is made on purpose. */
import { assert, describe, it } from "@effect/vitest"
import { type Cause, Effect, Layer, Queue, Stream } from "effect"
import { Errors, Messages, StreamFn } from "../../src/index.ts"
import { Resilience } from "../../src/resilience/index.ts"
import { StreamFnContract } from "../../src/testing/index.ts"

type Respond = StreamFn.StreamFn["Service"]["stream"]

type Event = StreamFn.StreamEvent

/** Around the model that keeps the contract. */
const around = (
  change: (layer: Layer.Layer<StreamFn.StreamFn, unknown>) => Layer.Layer<StreamFn.StreamFn, unknown>
) => ({
  answering: (answers: Parameters<typeof StreamFnContract.scripted>[0]) =>
    Effect.map(StreamFnContract.scripted(answers), (answering) => ({ ...answering, layer: change(answering.layer) }))
})

const brokenBy = (change: (respond: Respond) => Respond) =>
  around((layer) =>
    Layer.effect(StreamFn.StreamFn, Effect.map(StreamFn.StreamFn, ({ stream }) => ({ stream: change(stream) }))).pipe(
      Layer.provide(layer)
    )
  )

describe("The contract is kept by", () => {
  const subjects: Readonly<Record<string, StreamFnContract.Subject>> = {
    "the scripted model": { answering: StreamFnContract.scripted },
    "Resilience.rateLimit": around(Resilience.rateLimit({ concurrency: 8 })),
    "Resilience.retry that does not try": around(Resilience.retry({ times: 2, while: () => false })),
    "Resilience.fallback that has none": around(Resilience.fallback())
  }
  for (const [subject, answering] of Object.entries(subjects)) {
    for (const { name, test } of StreamFnContract.cases(answering)) it.effect(`${subject}: ${name}`, () => test)
  }
})

const isEnd = ({ type }: Event): boolean => type === "done" || type === "error"

/** Every event may become several, or none. */
const rewrite = (change: (event: Event) => ReadonlyArray<Event>) =>
  brokenBy((respond) => (request) => Stream.flatMap(respond(request), (event) => Stream.fromIterable(change(event))))

const text = "M2: a text in two pieces is one block"
const three = "M2: thinking, text and a call are three blocks in order"
const interleaved = "M2: the pieces of two calls that interleave stay apart"
const withoutUsage = "M2: an answer without usage counts no tokens"
const usage = "M2: the usage is that of the server, tokens from a cache apart"
const length = "M6: an answer at the output limit has the stop reason `length`"
const rateLimited = "M2: a failure is a ModelError: RateLimited"
const wait = "M2: a failure tells how long to wait"
const midway = "M4: a failure in the middle of an answer keeps what had arrived"
const cutBefore = "M4: an answer that is cut off before it begins is an error"
const cut = "M4: an answer that is cut off in its middle is an error and keeps what had arrived"
const cutCall = "M4: an answer that is cut off in a call is an error"
const interrupted = "A1: an interruption in the middle of an answer closes it"
const interruptedBefore = "A1: an interruption before the first event closes the answer"
const early = "M2: a reader that stops early closes the answer"
const lazy = "M2: a stream that is made and never run asks for nothing"
const twice = "M2: a stream that is run twice asks twice"
const mixed = "M2: answers to requests at the same time do not mix"
const unchanged = "M1: the request is not changed"
const frozen = "M1: a request that is frozen is answered"

interface Fault {
  readonly name: string
  readonly subject: StreamFnContract.Subject
  /** The cases that find it. */
  readonly found: ReadonlyArray<string>
  /** Cases it does not concern. */
  readonly spared: ReadonlyArray<string>
  /** What the first of them says. */
  readonly says: string
}

const done: Event = { type: "done", stopReason: "stop" }

/** What a model of this process does with a promise of its own: it goes on when nobody reads any more. */
const detached: (respond: Respond) => Respond = (respond) => (request) =>
  Stream.unwrap(Effect.gen(function*() {
    const queue = yield* Queue.unbounded<Event, Errors.ModelError | Cause.Done>()
    yield* Effect.forkDetach(Stream.runIntoQueue(respond(request), queue))
    return Stream.fromQueue(queue)
  }))

const faults: ReadonlyArray<Fault> = [
  {
    name: "completes an answer that was cut off",
    subject: brokenBy((respond) => (request) =>
      Stream.catch(
        respond(request),
        (error): Stream.Stream<Event, Errors.ModelError> =>
          error.reason === "Network"
            ? Stream.fromIterable<Event>([{ type: "start" }, done]).pipe(Stream.drop(1))
            : Stream.fail(error)
      )
    ),
    found: [cut, cutBefore, cutCall],
    spared: [text, rateLimited, midway],
    says: "M2: `done` while block 0 is open"
  },
  {
    name: "dies instead of failing",
    subject: brokenBy((respond) => (request) => Stream.orDie(respond(request))),
    found: [rateLimited, wait, midway, cut],
    spared: [text, interrupted],
    says: "expected a failure with a `ModelError`, but the stream died: "
  },
  {
    name: "fails with an error of its own",
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JavaScript does
    subject: brokenBy((respond) => (request) => Stream.mapError(respond(request), () => new Error("no") as never)),
    found: [rateLimited, midway, cut],
    spared: [text, interrupted],
    says: "the stream failed with"
  },
  {
    name: "throws",
    subject: brokenBy(() => () => {
      throw new Error("no")
    }),
    found: [text, rateLimited, interrupted, unchanged],
    spared: [],
    says: "`stream` threw"
  },
  {
    name: "leaves the answer open when it is interrupted",
    subject: brokenBy(detached),
    found: [interrupted, interruptedBefore, early],
    spared: [text, cut, mixed],
    says: "expected nothing that is left open after the interruption, but the answer is still open"
  },
  {
    name: "cannot be interrupted",
    subject: brokenBy((respond) => (request) => Stream.ensuring(respond(request), Effect.never)),
    found: [interrupted, interruptedBefore, early],
    spared: [text, lazy],
    says: "expected a stream that can be interrupted, but it went on"
  },
  {
    name: "gives everything at the end",
    subject: brokenBy((respond) => (request) =>
      Stream.unwrap(Effect.map(Stream.runCollect(respond(request)), Stream.fromIterable))
    ),
    found: [interrupted, cut, midway],
    spared: [text, usage, rateLimited],
    says: "expected an event for each piece when it arrives, but none came while the answer was open"
  },
  {
    name: "asks when the stream is made",
    subject: brokenBy((respond) => (request) => {
      const events = Effect.runSync(Effect.cached(Effect.exit(Stream.runCollect(respond(request)))))
      Effect.runFork(events)
      return Stream.unwrap(Effect.flatMap(events, (exit) => Effect.map(exit, Stream.fromIterable)))
    }),
    found: [lazy, twice],
    spared: [text, rateLimited],
    says: "but a message came that ended with stop: [{\"type\":\"text\",\"text\":\"two\"}]"
  },
  {
    name: "drops the usage",
    subject: rewrite((event) => event.type === "done" ? [{ ...event, usage: Messages.emptyUsage }] : [event]),
    found: [usage],
    spared: [text, three, withoutUsage, length],
    says: "expected the usage {\"input\":60,\"output\":20,\"cacheRead\":40}, but it was {\"input\":0"
  },
  {
    name: "gives a total that is none",
    subject: rewrite((event) =>
      event.type === "done" && event.usage !== undefined
        ? [{ ...event, usage: { ...event.usage, totalTokens: 1 } }]
        : [event]
    ),
    found: [text, usage],
    spared: [withoutUsage],
    says: "expected a total that is the sum of the tokens"
  },
  {
    name: "mixes the calls",
    subject: rewrite((event) =>
      event.type === "toolcall_delta" && event.delta.startsWith("\"a.md") ? [{ ...event, contentIndex: 1 }] : [event]
    ),
    found: [interleaved],
    spared: [text, "M2: a call without arguments has none"],
    says: "expected a message that ends with toolUse"
  },
  {
    name: "ends twice",
    subject: rewrite((event) => isEnd(event) ? [event, event] : [event]),
    found: [text, length],
    spared: [cut, rateLimited, interrupted],
    says: "M2: `done` after the final event"
  },
  {
    name: "goes on behind the end",
    subject: rewrite((event) =>
      isEnd(event) ? [event, { type: "text_delta", contentIndex: 0, delta: "late" }] : [event]
    ),
    found: [text, three],
    spared: [cut],
    says: "M2: `text_delta` after the final event"
  },
  {
    name: "fails behind the end",
    subject: brokenBy((respond) => (request) =>
      Stream.flatMap(respond(request), (event) =>
        isEnd(event)
          ? Stream.concat(
            Stream.succeed(event),
            Stream.fail(new Errors.ModelError({ reason: "Network", message: "closed" }))
          )
          : Stream.succeed(event))
    ),
    found: [text],
    spared: [cut, rateLimited],
    says: "expected one end, but the stream failed after its final event `done`: closed"
  },
  {
    name: "starts twice",
    subject: rewrite((event) => event.type === "start" ? [event, event] : [event]),
    found: [text, cut],
    spared: [rateLimited, cutBefore],
    says: "M4: a second `start`"
  },
  {
    name: "does not start",
    subject: rewrite((event) => event.type === "start" ? [] : [event]),
    found: [text],
    spared: [rateLimited],
    says: "M2: `text_start` before `start`"
  },
  {
    name: "ends no block",
    subject: rewrite((event) => event.type === "text_end" ? [] : [event]),
    found: [text, three],
    spared: [interleaved, cut],
    says: "M2: `done` while block 0 is open"
  },
  {
    name: "counts blocks from 1",
    subject: rewrite((event) =>
      "contentIndex" in event ? [{ ...event, contentIndex: event.contentIndex + 1 }] : [event]
    ),
    found: [text, interleaved],
    spared: [rateLimited],
    says: "M2: `text_start` for block 1, where block 0 comes next"
  },
  {
    name: "takes every end for a stop",
    subject: rewrite((event) => event.type === "done" ? [{ ...event, stopReason: "stop" }] : [event]),
    found: [length, three],
    spared: [text],
    says: "expected a message that ends with length"
  },
  {
    name: "does not say why it fails",
    subject: brokenBy((respond) => (request) =>
      Stream.mapError(respond(request), ({ message }) => new Errors.ModelError({ reason: "Unknown", message }))
    ),
    found: [rateLimited, wait, cut],
    spared: [text],
    says: "expected an error with the reason RateLimited, but the error Unknown came"
  },
  {
    name: "does not say how long to wait",
    subject: brokenBy((respond) => (request) =>
      Stream.mapError(respond(request), ({ message, reason }) => new Errors.ModelError({ reason, message }))
    ),
    found: [wait],
    spared: [text, rateLimited, cut],
    says: "expected a time from 7000 to 7000 ms in `retryAfter`, but it was undefined"
  },
  {
    name: "forgets what had arrived when it fails",
    subject: brokenBy((respond) => (request) =>
      Stream.catch(respond(request), (error) => Stream.succeed<Event>({ type: "error", error, content: [] }))
    ),
    found: [cut, midway],
    spared: [text, rateLimited, cutBefore],
    says: "that keeps the content [{\"type\":\"text\",\"text\":\"Hello\"}]"
  },
  {
    name: "keeps its state between requests",
    subject: brokenBy((respond) => {
      let said = ""
      return (request) =>
        Stream.map(respond(request), (event): Event => {
          if (event.type !== "text_delta") return event
          said += event.delta
          return { ...event, delta: said.slice(0, event.delta.length) }
        })
    }),
    found: [mixed, twice],
    spared: [rateLimited, interrupted],
    says: "expected the answers "
  },
  {
    name: "remembers its first answer",
    subject: brokenBy((respond) => {
      const known = new Map<Respond, Effect.Effect<ReadonlyArray<Event>, Errors.ModelError>>()
      return (request) =>
        Stream.unwrap(Effect.gen(function*() {
          const cached = known.get(respond) ?? (yield* Effect.cached(Stream.runCollect(respond(request))))
          known.set(respond, cached)
          return Stream.fromIterable(yield* cached)
        }))
    }),
    found: [twice, mixed],
    spared: [text, lazy, rateLimited],
    says: "expected a message that ends with stop: [{\"type\":\"text\",\"text\":\"two\"}]"
  },
  {
    name: "changes the request",
    subject: brokenBy((respond) => (request) => {
      Object.assign(request.messages[0]!, { content: "changed" })
      return respond(request)
    }),
    found: [unchanged, frozen],
    spared: [text, rateLimited],
    says: "expected `messages` as it was"
  }
]

const testOf = (cases: ReadonlyArray<StreamFnContract.Case>, name: string) => {
  const found = cases.find((each) => each.name.startsWith(name))
  return found?.test ?? assert.fail(`no case ${name}`)
}

describe("The contract finds a StreamFn that", { concurrent: true }, () => {
  for (const { found, name, says, spared, subject } of faults) {
    it.live(name, () =>
      Effect.gen(function*() {
        // Long enough for all but those who wait for ever.
        const impatient = StreamFnContract.cases(subject, { patience: "1 second" })
        const violations = yield* Effect.forEach(found, (each) => Effect.flip(testOf(impatient, each)), {
          concurrency: "unbounded"
        })
        assert.include(violations[0]?.message, says)
        const patient = StreamFnContract.cases(subject)
        for (const each of spared) yield* testOf(patient, each)
      }))
  }
})

describe("A difference", () => {
  const subject = { answering: StreamFnContract.scripted }
  it.effect("is in the name of the case, which holds as long as the two differ", () =>
    Effect.gen(function*() {
      const broken = rewrite((event) => event.type === "done" ? [{ ...event, usage: Messages.emptyUsage }] : [event])
      const cases = StreamFnContract.cases(broken, { differences: { [usage]: "it is not told" } })
      assert.include(cases.map(({ name }) => name), `${usage} (differs: it is not told)`)
      yield* testOf(cases, usage)
    }))

  it.effect("that is none any more is a violation", () =>
    Effect.gen(function*() {
      const cases = StreamFnContract.cases(subject, { differences: { [usage]: "it is not told" } })
      const violation = yield* Effect.flip(testOf(cases, usage))
      assert.strictEqual(violation._tag, "ContractViolation")
      assert.strictEqual(violation.case, usage)
      assert.include(violation.message, "it is not told, but it no longer differs: take it out of `differences`")
    }))

  it.effect("of a case that does not exist is a violation", () =>
    Effect.gen(function*() {
      const cases = StreamFnContract.cases(subject, { differences: { "M2: no such case": "gone" } })
      const violation = yield* Effect.flip(testOf(cases, "every difference"))
      assert.include(violation.message, "there is no case \"M2: no such case\"")
    }))
})
