/**
 * A model of one's own: a `StreamFn` for a made-up server that answers with a line of JSON for each piece, and its contract.
 * The server is pretended, so the program needs no network.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Deferred, Effect, Layer, Schema, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "effect/http"
import { Agent, Errors, Messages, StreamFn, Tools } from "../src/index.ts"
import { StreamFnContract } from "../src/testing/index.ts"

// --- the adapter ---

const Line = Schema.Union([
  Schema.Struct({ think: Schema.String }),
  Schema.Struct({ say: Schema.String }),
  Schema.Struct({ call: Schema.String, name: Schema.String }),
  Schema.Struct({ argsOf: Schema.String, piece: Schema.String }),
  Schema.Struct({
    end: Schema.Literals(["stop", "length", "toolUse"]),
    tokens: Schema.optionalKey(Schema.Struct({ input: Schema.Int, output: Schema.Int, cacheRead: Schema.Int }))
  }),
  Schema.Struct({ busy: Schema.String })
])

type Line = typeof Line.Type

const decodeLine = Schema.decodeUnknownEffect(Schema.fromJsonString(Line))

/** Turns lines into events: blocks are counted from 0, in the order in which they open. */
class LineReader {
  ended = false
  #events: Array<StreamFn.StreamEvent> = [{ type: "start" }]
  #count = 0
  #open: { readonly type: "text" | "thinking"; readonly contentIndex: number } | undefined
  readonly #calls = new Map<string, number>()

  read(line: Line): ReadonlyArray<StreamFn.StreamEvent> {
    this.#read(line)
    const events = this.#events
    this.#events = []
    return events
  }

  #read(line: Line): void {
    if ("say" in line) this.#delta("text", line.say)
    else if ("think" in line) this.#delta("thinking", line.think)
    else if ("call" in line) {
      this.#close()
      const contentIndex = this.#count++
      this.#calls.set(line.call, contentIndex)
      this.#events.push({ type: "toolcall_start", contentIndex, id: line.call, name: line.name })
    } else if ("argsOf" in line) {
      const contentIndex = this.#calls.get(line.argsOf) ?? this.#count
      this.#events.push({ type: "toolcall_delta", contentIndex, delta: line.piece })
    } else if ("busy" in line) {
      // Ends the response as an error; what had arrived is kept.
      const error = new Errors.ModelError({ reason: "Overloaded", message: `The line server is busy: ${line.busy}` })
      this.#events.push({ type: "error", error })
      this.ended = true
    } else {
      this.#close()
      for (const contentIndex of this.#calls.values()) this.#events.push({ type: "toolcall_end", contentIndex })
      const { end: stopReason, tokens = { input: 0, output: 0, cacheRead: 0 } } = line
      const totalTokens = tokens.input + tokens.output + tokens.cacheRead
      this.#events.push({ type: "done", stopReason, usage: { ...Messages.emptyUsage, ...tokens, totalTokens } })
      this.ended = true
    }
  }

  #delta(type: "text" | "thinking", delta: string): void {
    if (this.#open?.type !== type) {
      this.#close()
      this.#open = { type, contentIndex: this.#count++ }
      this.#events.push({ type: `${type}_start`, contentIndex: this.#open.contentIndex })
    }
    this.#events.push({ type: `${type}_delta`, contentIndex: this.#open.contentIndex, delta })
  }

  #close(): void {
    if (this.#open !== undefined) {
      this.#events.push({ type: `${this.#open.type}_end`, contentIndex: this.#open.contentIndex })
    }
    this.#open = undefined
  }
}

const failed = (reason: Errors.ModelErrorReason, message: string, retryAfter?: number) =>
  new Errors.ModelError({ reason, message: `The line server ${message}`, retryAfter })

const reasons: Readonly<Record<number, Errors.ModelErrorReason>> = {
  401: "Authentication",
  413: "ContextOverflow",
  429: "RateLimited",
  503: "Overloaded"
}

const statusError = ({ headers, status }: HttpClientResponse.HttpClientResponse) => {
  const after = headers["retry-after"]
  return failed(
    reasons[status] ?? "InvalidRequest",
    `answered ${status}`,
    after === undefined ? undefined : Number(after) * 1000
  )
}

const LineModel = Layer.effect(
  StreamFn.StreamFn,
  Effect.gen(function*() {
    const client = yield* HttpClient.HttpClient
    return {
      // Nothing happens before the stream is run, and every run is a request of its own. The connection belongs to the scope of
      // the stream: an interruption closes it.
      stream: ({ messages, model, tools }) =>
        Stream.unwrap(Effect.gen(function*() {
          const request = HttpClientRequest.post("https://lines.example/answer").pipe(
            HttpClientRequest.bodyJsonUnsafe({ model: model.id, messages, tools })
          )
          const response = yield* Effect.mapError(client.execute(request), ({ message }) => failed("Network", message))
          if (response.status !== 200) return Stream.fail(statusError(response))
          const reader = new LineReader()
          return response.stream.pipe(
            Stream.mapError(({ message }) => failed("Network", `broke off: ${message}`)),
            Stream.decodeText(),
            Stream.splitLines,
            Stream.mapEffect((line) =>
              Effect.mapError(decodeLine(line), () => failed("ProtocolViolation", `sent the line ${line}`))
            ),
            Stream.takeUntil((line) => "end" in line || "busy" in line),
            Stream.map((line) => reader.read(line)),
            Stream.flatMap(Stream.fromIterable),
            // An end that nobody announced is no end.
            Stream.concat(Stream.suspend(() =>
              reader.ended ? Stream.empty : Stream.fail(failed("IncompleteStream", "ended without an end"))
            ))
          )
        }))
    }
  })
)

// --- the pretended server ---

type Answer = StreamFnContract.Answer

const lineOf = (step: Answer["steps"][number]): Line => {
  switch (step.type) {
    case "text":
      return { say: step.delta }
    case "thinking":
      return { think: step.delta }
    case "call":
      return { call: step.id, name: step.name }
    case "arguments":
      return { argsOf: step.id, piece: step.delta }
  }
}

const statusOf = (reason: Errors.ModelErrorReason): number =>
  Number(Object.keys(reasons).find((status) => reasons[Number(status)] === reason) ?? 400)

/** The body of an answer; `closed` is called when nobody reads it any more. */
const bodyOf = ({ end, steps, usage }: Answer, closed: () => void): ReadableStream<Uint8Array> => {
  const lines = steps.map(lineOf)
  if (end.type === "failure") lines.push({ busy: end.reason })
  if (end.type === "complete") lines.push({ end: end.stopReason, ...(usage !== undefined && { tokens: usage }) })
  const pieces = lines.map((line) => new TextEncoder().encode(`${JSON.stringify(line)}\n`))
  let next = 0
  return new ReadableStream({
    pull: (controller) => {
      const piece = pieces[next++]
      if (piece !== undefined) return controller.enqueue(piece)
      if (end.type === "hang") return
      closed()
      if (end.type === "cut") controller.error(new Error("connection reset"))
      else controller.close()
    },
    cancel: closed
  })
}

/** Answers one request after the other; the last answer is that to all that follow. */
const pretend = (answers: ReadonlyArray<Answer>) => {
  const open: Array<Deferred.Deferred<void>> = []
  const client = HttpClient.make((request) =>
    Effect.suspend(() => {
      const answer = answers[Math.min(open.length, answers.length - 1)]!
      const deferred = Deferred.makeUnsafe<void>()
      const closed = () => void Deferred.doneUnsafe(deferred, Effect.void)
      open.push(deferred)
      const { end, steps } = answer
      if (steps.length > 0 || end.type === "complete") {
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(bodyOf(answer, closed))))
      }
      if (end.type === "hang") return Effect.onInterrupt(Effect.never, () => Effect.sync(closed))
      closed()
      if (end.type === "cut") {
        const reason = new HttpClientError.TransportError({ request, description: "cannot be reached" })
        return Effect.fail(new HttpClientError.HttpClientError({ reason }))
      }
      const headers = end.retryAfter === undefined ? {} : { "retry-after": `${end.retryAfter / 1000}` }
      return Effect.succeed(
        HttpClientResponse.fromWeb(request, new Response(null, { status: statusOf(end.reason), headers }))
      )
    })
  )
  return {
    layer: LineModel.pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, client))),
    closed: Effect.suspend(() => Effect.forEach(open, Deferred.await, { discard: true }))
  }
}

// --- the program ---

const multiply = Tools.make("multiply", {
  description: "Multiplies two numbers.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: ({ a, b }) => Effect.succeed(`${a * b}`)
})

const conversation = pretend([
  {
    steps: [
      { type: "call", id: "a", name: "multiply" },
      { type: "arguments", id: "a", delta: "{\"a\":6," },
      { type: "arguments", id: "a", delta: "\"b\":7}" }
    ],
    end: { type: "complete", stopReason: "toolUse" },
    usage: { input: 20, output: 5, cacheRead: 0 }
  },
  {
    steps: [{ type: "text", delta: "It is " }, { type: "text", delta: "42." }],
    end: { type: "complete", stopReason: "stop" },
    usage: { input: 10, output: 4, cacheRead: 20 }
  }
])

const ask = Effect.gen(function*() {
  const agent = yield* Agent.make({ tools: [multiply] })
  const { messages, outcome, usage } = yield* agent.prompt("What is 6 times 7?")
  yield* Console.log(`${messages.map(Messages.text).at(-1)}\n${outcome._tag}, ${usage.totalTokens} tokens`)
}).pipe(Effect.scoped, Effect.provide(conversation.layer))

/** In a test: `it.live(name, () => test)` for each of them. */
const cases = StreamFnContract.cases({ answering: (answers) => Effect.sync(() => pretend(answers)) })

const check = Effect.gen(function*() {
  for (const { name, test } of cases) {
    yield* Effect.catch(test, ({ message }) => Console.log(`${name} does not hold: ${message}`))
  }
  yield* Console.log(`${cases.length} cases of the contract were checked`)
})

Effect.andThen(ask, check).pipe(NodeRuntime.runMain)
