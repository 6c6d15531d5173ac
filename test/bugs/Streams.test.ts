/**
 * Section E of the public faults: streams that break off, fail, hang or talk nonsense. B85 and the rest of B91 and B94 need
 * retry, B96 a provider that executes tools; what holds without them is tested here.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type Agent, ConvertToLlm, Errors, Hooks, Loop, Messages, StreamFn } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { ofType, Recorder } from "../utils/events.ts"
import { lie } from "../utils/hostile.ts"
import { assertInvariants } from "../utils/invariants.ts"
import { finish, loop, watched } from "../utils/play.ts"
import { counting, echo } from "../utils/sampleTools.ts"
import { play, type Setting, withStage } from "./scene.ts"

const { calls, events, text } = ScriptedModel

const fine = text("fine")

type Events = ReadonlyArray<StreamFn.StreamEvent>

const start = { type: "start" } as const
const done = { type: "done" } as const
const textOpen: Events = [
  { type: "text_start", contentIndex: 0 },
  { type: "text_delta", contentIndex: 0, delta: "par" }
]
const callOpen: Events = [
  { type: "toolcall_start", contentIndex: 0, id: "a", name: "write" },
  { type: "toolcall_delta", contentIndex: 0, delta: "{\"n\":" }
]
const callWhole: Events = [
  ...callOpen,
  { type: "toolcall_delta", contentIndex: 0, delta: "1}" },
  { type: "toolcall_end", contentIndex: 0 }
]

const modelError = (outcome: Errors.RunOutcome): Errors.ModelError => {
  assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError", outcome._tag)
  return outcome.error
}

/**
 * A response that goes wrong, then a second prompt, by an agent; the first response by a loop alone as well, which has to
 * tell the same.
 */
const goWrong = (response: ScriptedModel.Response) =>
  Effect.gen(function*() {
    const { ran, tool } = counting()
    const setting: Setting = { responses: [response, fine], tools: [tool], prompts: ["go", "again"] }
    const scene = yield* play(setting)
    const alone = yield* loop({ responses: [response], tools: [tool] })
    const firstRun = scene.recorder.shown.slice(
      0,
      scene.recorder.shown.findIndex((line) => line.startsWith("agent_end")) + 1
    )
    assert.deepStrictEqual(alone.recorder.shown.filter((line) => !line.endsWith(" S")), firstRun)
    assert.deepStrictEqual(ran, [])
    const [first, second] = scene.runs
    assert.strictEqual(second!.outcome._tag, "Completed")
    const responses = first!.messages.filter((message) => message.role === "assistant")
    const [message, ...more] = responses
    assert(message !== undefined && more.length === 0)
    assert.strictEqual(message.stopReason, "error")
    // No later request has an open call in it.
    assert.notMatch(Transcript.print(scene.requests[1]!.messages), /\[/)
    return { scene, alone, message, error: modelError(first!.outcome) }
  })

describe("Streams", () => {
  const incomplete: ReadonlyArray<[name: string, list: Events, content: ReadonlyArray<unknown>]> = [
    ["without an event", [], []],
    ["behind start", [start], []],
    ["in a text", [start, ...textOpen], [{ type: "text", text: "par" }]],
    ["behind a text", [start, ...textOpen, { type: "text_end", contentIndex: 0 }], [{ type: "text", text: "par" }]],
    ["in a text without start", textOpen, [{ type: "text", text: "par" }]],
    ["in a thought", [start, { type: "thinking_start", contentIndex: 0 }, {
      type: "thinking_delta",
      contentIndex: 0,
      delta: "hm"
    }], [{ type: "thinking", thinking: "hm" }]],
    ["in the arguments of a call", [start, ...callOpen], [
      { type: "toolCall", id: "a", name: "write", arguments: {}, argumentsText: "{\"n\":" }
    ]],
    ["behind a whole call", [start, ...callWhole], [{ type: "toolCall", id: "a", name: "write", arguments: { n: 1 } }]]
  ]
  for (const [name, list, content] of incomplete) {
    it.effect(`B83: a stream that ends ${name} is a typed, retryable error that keeps what came; no call runs`, () =>
      Effect.gen(function*() {
        const { error, message } = yield* goWrong(events(list))
        assert.deepStrictEqual([error.reason, error.isRetryable], ["IncompleteStream", true])
        assert.deepStrictEqual(message.content, content)
        assert.strictEqual(message.errorMessage, error.message)
      }))
  }

  const reset = new Errors.ModelError({ reason: "Network", message: "reset" })
  const breaks: ReadonlyArray<
    [name: string, end: (list: Events) => ScriptedModel.Response, reason: Errors.ModelErrorReason]
  > = [
    ["fails", (list) => events(list, { error: reset }), "Network"],
    ["reports an error", (list) => events([...list, { type: "error", errorMessage: "reset" }]), "Reported"],
    ["reports a typed error", (list) => events([...list, { type: "error", error: reset }]), "Network"],
    ["ends with the stop reason error", (list) => events([...list, { type: "done", stopReason: "error" }]), "Reported"],
    ["breaks the protocol", (list) => events([...list, start]), "ProtocolViolation"]
  ]
  for (const [name, end, reason] of breaks) {
    for (const [what, list] of [["a partial call", callOpen], ["a whole call", callWhole]] as const) {
      it.effect(`B84: a stream that ${name} behind ${what}: the call is a record, never run, in no later request`, () =>
        Effect.gen(function*() {
          const moved = list.map((event) => Object.assign({}, event, { contentIndex: 1 }))
          const { error, message, scene } = yield* goWrong(
            end([start, ...textOpen, { type: "text_end", contentIndex: 0 }, ...moved])
          )
          assert.strictEqual(error.reason, reason)
          assert.deepStrictEqual(message.content[0], { type: "text", text: "par" })
          assert.deepInclude(message.content[1], { type: "toolCall", id: "a", name: "write" })
          assert.deepStrictEqual(scene.shape, "U A[a]{error} U A")
          assert.strictEqual(Transcript.print(scene.requests[1]!.messages), "U A{error} U")
        }))
    }
  }

  for (
    const [name, response] of [
      ["says something", text("I'll read it.", { stopReason: "toolUse" })],
      [
        "thinks",
        events([start, { type: "thinking_start", contentIndex: 0 }, { type: "thinking_end", contentIndex: 0 }, {
          type: "done",
          stopReason: "toolUse"
        }])
      ],
      ["says nothing", events([start, { type: "done", stopReason: "toolUse" }])],
      ["gives no start", events([{ type: "done", stopReason: "toolUse" }])]
    ] as const
  ) {
    it.effect(`B86: a response that ${name}, stops to call tools and calls none ends the run, which says so`, () =>
      Effect.gen(function*() {
        const scene = yield* play({ responses: [response], tools: [echo] })
        assert.deepStrictEqual(scene.run.outcome, Errors.RunOutcome.Completed({ by: "Stop", stopReason: "toolUse" }))
        assert.strictEqual(scene.requests.length, 1)
        const alone = yield* loop({ responses: [response], tools: [echo] })
        assert.deepStrictEqual(alone.result.outcome, scene.run.outcome)
      }))
  }

  // --- B88 ---

  const boom = () => {
    throw new Error("boom")
  }
  const scripted = ScriptedModel.layer([], { otherwise: fine })
  const setups: ReadonlyArray<
    readonly [name: string, layer: Layer.Layer<StreamFn.StreamFn>, tag: "ModelError" | "HookError", hook?: string]
  > = [
    ["a StreamFn that throws", StreamFn.layer(boom), "ModelError"],
    ["a StreamFn whose stream dies", StreamFn.layer(() => Stream.die(new Error("boom"))), "ModelError"],
    ["a StreamFn whose stream throws", StreamFn.layer(() => Stream.suspend(boom)), "ModelError"],
    [
      "a StreamFn whose connection rejects",
      StreamFn.layer(() => Stream.unwrap(Effect.promise(() => Promise.reject(new Error("boom"))))),
      "ModelError"
    ],
    ["a StreamFn that gives nothing", StreamFn.layer(() => lie(undefined)), "ModelError"],
    [
      "a StreamFn that gives a promise",
      StreamFn.layer(() => lie(Promise.resolve(Stream.empty))),
      "ModelError"
    ],
    ["a StreamFn that interrupts itself", StreamFn.layer(() => Stream.fromEffect(Effect.interrupt)), "ModelError"],
    ...(["throws", "fails", "dies", "rejects"] as const).flatMap((how) => {
      const broken = (): Effect.Effect<never, string> => {
        switch (how) {
          case "throws":
            return boom()
          case "fails":
            return Effect.fail("boom")
          case "dies":
            return Effect.die(new Error("boom"))
          case "rejects":
            return Effect.promise(() => Promise.reject(new Error("boom")))
        }
      }
      const hooked = (layer: Layer.Layer<never>) => Layer.merge(scripted, layer)
      return [
        [`a key that ${how}`, hooked(Hooks.layer(Hooks.apiKey(broken))), "HookError", "apiKey"],
        [`a conversion that ${how}`, hooked(ConvertToLlm.layer(broken)), "HookError", "convertToLlm"],
        [
          `a context hook that ${how}`,
          hooked(Hooks.layer(Hooks.transformContext(broken))),
          "HookError",
          "transformContext"
        ],
        [`a request hook that ${how}`, hooked(Hooks.layer(Hooks.prepareRequest(broken))), "HookError", "prepareRequest"]
      ] as const
    })
  ]
  for (const [name, layer, tag, hook] of setups) {
    it.effect(`B88: ${name} ends the run with a typed error, alike in the loop, its stream and the agent; nothing is left`, () =>
      Effect.gen(function*() {
        const rejections: Array<unknown> = []
        const onRejection = (reason: unknown) => void rejections.push(reason)
        process.on("unhandledRejection", onRejection)
        const prompts = [Messages.user("go")]
        const context = { messages: [], tools: [] }
        const alone = new Recorder()
        const inLoop = yield* finish(Loop.run(prompts, context, { emit: alone.record })).pipe(Effect.provide(layer))
        const streamed = yield* finish(Stream.runCollect(Loop.stream(prompts, context))).pipe(Effect.provide(layer))
        const hosted = yield* Effect.gen(function*() {
          const { agent, before, recorder } = yield* watched({})
          const run = yield* finish(agent.prompt("go"))
          assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages })
          assert.deepStrictEqual(recorder.shown, alone.shown)
          return run
        }).pipe(Effect.scoped, Effect.provide(layer))
        for (const outcome of [inLoop.outcome, hosted.outcome, ofType(streamed, "agent_end")[0]!.outcome]) {
          assert(outcome._tag === "Failed", outcome._tag)
          const { error } = outcome
          assert.strictEqual(error._tag, tag)
          if (error._tag === "HookError") assert.strictEqual(error.hook, hook)
          assert.isNotEmpty(error.message)
        }
        // A stop that nobody asked for is a failure, too (M5).
        const stopReason = name.endsWith("interrupts itself") ? "aborted" : "error"
        assert.strictEqual(Transcript.print(inLoop.messages), `U A{${stopReason}}`)
        assert.deepStrictEqual(streamed.map(({ type }) => type), alone.events.map(({ type }) => type))
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        process.off("unhandledRejection", onRejection)
        assert.deepStrictEqual(rejections, [])
      }))
  }

  // --- B89 ---

  const par = [{ type: "text", text: "par" }]
  const sloppy: ReadonlyArray<
    [name: string, list: ReadonlyArray<unknown>, stopReason: string, content: ReadonlyArray<unknown>]
  > = [
    ["a delta before start", [...textOpen, start, done], "stop", par],
    ["a delta before its block", [start, textOpen[1], textOpen[0], done], "error", []],
    ["two dones", [start, ...textOpen, done, { type: "done", stopReason: "toolUse" }], "stop", par],
    ["an error behind done", [start, ...textOpen, done, { type: "error", errorMessage: "late" }], "stop", par],
    ["done behind an error", [start, ...textOpen, { type: "error", errorMessage: "x" }, done], "error", par],
    ["a delta behind done", [start, ...textOpen, done, textOpen[1]], "stop", par],
    ["start behind done", [start, ...textOpen, done, start], "stop", par],
    ["start twice", [start, ...textOpen, start, done], "error", par],
    [
      "an index out of range",
      [start, ...textOpen, { type: "text_delta", contentIndex: 7, delta: "x" }, done],
      "error",
      par
    ],
    ["a block that leaves an index out", [start, { type: "text_start", contentIndex: 1 }, done], "error", []],
    [
      "a call's end without its start",
      [start, ...textOpen, { type: "toolcall_end", contentIndex: 1, arguments: {} }, done],
      "error",
      par
    ],
    [
      "a text's end for a thought",
      [start, { type: "thinking_start", contentIndex: 0 }, { type: "text_end", contentIndex: 0 }, done],
      "error",
      [
        { type: "thinking", thinking: "" }
      ]
    ],
    [
      "an end twice",
      [start, ...textOpen, { type: "text_end", contentIndex: 0 }, { type: "text_end", contentIndex: 0 }, done],
      "error",
      par
    ],
    ["no end of a block", [start, ...textOpen, done], "stop", par],
    ["an event of an unknown type", [start, ...textOpen, { type: "ping" }, done], "error", par],
    ["an event without a type", [start, ...textOpen, {}, done], "error", par],
    ["null instead of an event", [start, ...textOpen, null, done], "error", par],
    ["a text instead of an event", [start, ...textOpen, "data", done], "error", par],
    [
      "a delta that is no text",
      [start, ...textOpen, { type: "text_delta", contentIndex: 0, delta: undefined }, done],
      "error",
      par
    ],
    [
      "a delta that is a number",
      [start, ...textOpen, { type: "text_delta", contentIndex: 0, delta: 5 }, done],
      "error",
      par
    ],
    ["a call without a name", [start, { type: "toolcall_start", contentIndex: 0, id: "a" }, done], "error", []],
    ["a call without an id", [start, { type: "toolcall_start", contentIndex: 0, name: "write" }, done], "error", []],
    ["a stop reason nobody knows", [start, ...textOpen, { type: "done", stopReason: "tired" }], "error", par],
    ["a stop reason pending", [start, ...textOpen, { type: "done", stopReason: "pending" }], "error", par],
    ["content that is no list", [start, ...textOpen, { type: "done", content: "par" }], "error", par],
    ["content with a hole", [start, ...textOpen, { type: "done", content: [null] }], "error", par],
    ["content with half a block", [start, ...textOpen, { type: "done", content: [{ type: "text" }] }], "error", par],
    ["usage that is none", [start, ...textOpen, { type: "done", usage: { input: "many" } }], "error", par],
    ["usage that is none, at the start", [{ type: "start", usage: { input: "many" } }, ...textOpen, done], "error", []]
  ]
  for (const [name, list, stopReason, content] of sloppy) {
    it.effect(`B89 (M2, M4): ${name}: one assistant message that ends with ${stopReason}, and the next prompt works`, () =>
      Effect.gen(function*() {
        const provider = StreamFn.layer(({ messages }) =>
          Stream.fromIterable(
            messages.some((message) => Messages.text(message) === "again")
              ? [start, ...textOpen, done]
              : list.map(lie<StreamFn.StreamEvent>)
          )
        )
        yield* Effect.gen(function*() {
          const { ran, tool } = counting()
          const { agent, before, recorder } = yield* watched({ tools: [tool] })
          const { messages, outcome } = yield* finish(agent.prompt("go"))
          const responses = messages.filter((message) => message.role === "assistant")
          assert.lengthOf(responses, 1)
          assert.strictEqual(responses[0]!.stopReason, stopReason)
          assert.deepStrictEqual(responses[0]!.content, content)
          assert.strictEqual(outcome._tag, stopReason === "error" ? "Failed" : "Completed")
          assert.deepStrictEqual(ran, [])
          assert.strictEqual((yield* finish(agent.prompt("again"))).outcome._tag, "Completed")
          assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages })
        }).pipe(Effect.scoped, Effect.provide(provider))
      }))
  }

  // --- B91, B94, B96 ---

  const thought: Events = [
    start,
    { type: "thinking_start", contentIndex: 0 },
    { type: "thinking_delta", contentIndex: 0, delta: "hm" }
  ]
  for (const [what, list] of [["nothing but a thought", thought], ["nothing", [start]], ["no event", []]] as const) {
    for (const [how, end] of breaks) {
      it.effect(`B91 (no retry): with ${what} a stream that ${how} fails the run, which is no empty step`, () =>
        Effect.gen(function*() {
          // Without an event, one more start is none too many.
          const { error, message, scene } = yield* goWrong(
            end(how === "breaks the protocol" ? [start, ...list.slice(1)] : list)
          )
          assert.deepStrictEqual(message.content, list.length === 3 ? [{ type: "thinking", thinking: "hm" }] : [])
          assert.isNotEmpty(error.message)
          const kept = list.length === 3 ? "U A{error} U" : "U U"
          assert.strictEqual(Transcript.print(scene.requests[1]!.messages), kept)
        }))
    }
  }

  it.effect("B94 (no retry): the outcome has the class of the failure, whether it may be tried again, and when", () =>
    Effect.gen(function*() {
      const retryable: ReadonlyArray<Errors.ModelErrorReason> = [
        "RateLimited",
        "Overloaded",
        "Network",
        "Timeout",
        "IncompleteStream"
      ]
      const final: ReadonlyArray<Errors.ModelErrorReason> = [
        "Authentication",
        "InvalidRequest",
        "ContextOverflow",
        "ProtocolViolation",
        "Reported",
        "Aborted",
        "Unknown"
      ]
      for (const reason of [...retryable, ...final]) {
        const failed = ScriptedModel.error("no", { reason, retryAfter: "7 seconds", partial: "par" })
        const { error, scene } = yield* goWrong(failed)
        assert.deepStrictEqual([error.reason, error.isRetryable, error.retryAfter], [
          reason,
          retryable.includes(reason),
          7000
        ])
        assert.strictEqual(scene.requests.length, 2, "nobody tries again unasked")
      }
    }))

  it.effect("B96 (no provider): blocks of a kind this version does not know are kept, sent back, and never executed", () =>
    Effect.gen(function*() {
      const { ran, tool } = counting("search")
      const foreign: Messages.AssistantMessage["content"] = [
        lie({ type: "serverToolUse", id: "s", name: "search", arguments: { q: "x" } }),
        lie({ type: "serverToolResult", toolCallId: "s", content: [{ type: "text", text: "found" }] }),
        { type: "text", text: "found" }
      ]
      const scene = yield* play({
        responses: [events([start, { type: "done", content: foreign }]), fine],
        tools: [tool],
        prompts: ["go", "again"]
      })
      assert.deepStrictEqual([ran, scene.shape], [[], "U A U A"])
      const sent = scene.requests[1]!.messages.find(({ role }) => role === "assistant")
      assert.deepInclude(sent, { content: foreign })
    }))
})

// --- B92 ---

describe("Idle streams (B92)", () => {
  const limits = { firstEventTimeout: "30 seconds", eventTimeout: "1 minute" } as const

  /** A prompt, four hours, a second prompt; when the first ended and with what. */
  const wait = (response: ScriptedModel.Response, options: Omit<Agent.Options, "tools"> = limits) =>
    Effect.gen(function*() {
      const { agent, before, recorder } = yield* watched({ tools: [echo], ...options })
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("4 hours")
      const run = yield* Fiber.join(fiber)
      const [start, end] = [recorder.times[0]!, recorder.times.at(-1)!]
      assert.strictEqual((yield* finish(agent.prompt("again"))).outcome._tag, "Completed")
      assertInvariants({
        events: recorder.events,
        before,
        transcript: yield* agent.messages,
        requests: yield* ScriptedModel.requests
      })
      const message = run.messages.findLast((message) => message.role === "assistant")!
      return { outcome: run.outcome, message, seconds: (end - start) / 1000 }
    }).pipe(withStage({ responses: [response, fine] }))

  const at = (seconds: number, event: StreamFn.StreamEvent) => ({ ...event, at: seconds * 1000 })
  const delta = (seconds: number, delta: string) => at(seconds, { type: "text_delta", contentIndex: 0, delta })
  const opening = [at(0, start), at(0, { type: "text_start", contentIndex: 0 }), delta(0, "a")]

  const cut: ReadonlyArray<[name: string, response: ScriptedModel.Response, seconds: number, content: string]> = [
    ["pauses for ten minutes", events([...opening, delta(600, "b"), at(600, done)]), 60, "a"],
    ["pauses a moment too long", events([...opening, delta(59, "b"), delta(119.001, "c"), at(120, done)]), 119, "ab"],
    ["pauses for ever", events(opening, { open: true }), 60, "a"],
    ["pauses before done", events([...opening, at(61, done)]), 60, "a"],
    ["begins too late", events([at(31, start), at(31, done)]), 30, ""],
    ["never begins", ScriptedModel.hang(), 30, ""]
  ]
  for (const [name, response, seconds, content] of cut) {
    it.effect(`B92: a stream that ${name} is cut with a typed error that may be tried again, the partial kept`, () =>
      Effect.gen(function*() {
        const ended = yield* wait(response)
        const error = modelError(ended.outcome)
        assert.deepStrictEqual([error.reason, error.isRetryable], ["Timeout", true])
        assert.deepStrictEqual([ended.seconds, Messages.text(ended.message)], [seconds, content])
        assert.deepInclude(ended.message, { stopReason: "error", errorMessage: error.message })
      }))
  }

  const steady = Array.from({ length: 61 }, (_, index) => delta((index + 1) * 59, "x"))
  const kept: ReadonlyArray<
    [name: string, response: ScriptedModel.Response, seconds: number, options?: Omit<Agent.Options, "tools">]
  > = [
    ["is slow but steady for an hour", events([...opening, ...steady, at(3600, done)]), 3600],
    ["begins at the last moment", events([at(29.999, start), at(30, done)]), 30],
    ["pauses ten minutes where nobody set a limit", events([...opening, delta(600, "b"), at(600, done)]), 600, {}],
    ["pauses ten minutes where only its beginning has a limit", events([...opening, at(600, done)]), 600, {
      firstEventTimeout: 1000
    }],
    ["begins after ten minutes where only pauses have a limit", events([at(600, start), at(600, done)]), 600, {
      eventTimeout: 1000
    }]
  ]
  for (const [name, response, seconds, options] of kept) {
    it.effect(`B92: a stream that ${name} is not cut`, () =>
      Effect.gen(function*() {
        const ended = yield* wait(response, options)
        assert.deepStrictEqual([ended.outcome._tag, ended.seconds], ["Completed", seconds])
      }))
  }

  const hours = Effect.uninterruptible(Effect.sleep("2 hours"))
  const deaf: ReadonlyArray<[name: string, stream: Stream.Stream<StreamFn.StreamEvent>, seconds: number]> = [
    ["to connect", Stream.unwrap(Effect.as(hours, Stream.empty)), 30],
    ["to give its first event", Stream.fromEffect(Effect.as(hours, start)), 30],
    [
      "between events",
      Stream.concat(Stream.fromIterable([start, ...textOpen]), Stream.fromEffect(Effect.as(hours, done))),
      60
    ],
    ["to close", Stream.ensuring(Stream.concat(Stream.make(start), Stream.never), hours), 60]
  ]
  for (const [name, stream, seconds] of deaf) {
    it.effect(`B92 (T6, A4): a stream that ignores interruption and takes hours ${name} is cut on time and left behind`, () =>
      Effect.gen(function*() {
        const { agent, recorder } = yield* watched(limits)
        const fiber = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust("10 minutes")
        const run = yield* Fiber.join(fiber)
        assert.strictEqual(modelError(run.outcome).reason, "Timeout")
        const begin = recorder.times[0]!
        assert.strictEqual(recorder.timeOf("message_end A{error}"), begin + seconds * 1000)
        assert.strictEqual(recorder.times.at(-1), begin + seconds * 1000 + 1000, "the grace")
        const count = recorder.events.length
        yield* TestClock.adjust("3 hours")
        assert.lengthOf(recorder.events, count)
      }).pipe(Effect.scoped, Effect.provide(StreamFn.layer(() => stream))))
  }

  it.effect("B92: the time of tools, hooks and listeners is not the stream's", () =>
    Effect.gen(function*() {
      const { agent } = yield* watched({ tools: [echo], ...limits })
      yield* agent.subscribe(() => Effect.sleep("5 minutes"))
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("10 hours")
      assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Completed")
    }).pipe(withStage({
      responses: [calls([["a", "echo", { x: "1" }]]), fine],
      hooks: [Hooks.transformContext((messages) => Effect.as(Effect.sleep("10 minutes"), messages))]
    })))
})
