/** B08, B09, B10, B22: what stays of an answer that did not come to its end, and what later requests hold of it. */
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber, Stream } from "effect"
import { ConvertToLlm, type Errors, Hooks, Messages, type StreamFn } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { nothingLives, pass, test } from "../utils/leaks.ts"
import { noting } from "../utils/timedTools.ts"
import { type Audience, lastResponse, makeTrial, type Setting, type Trial } from "../utils/trial.ts"

const fine = ScriptedModel.text("fine")

const audiences: ReadonlyArray<readonly [name: string, audience: Audience]> = [
  ["nobody listens", "nobody"],
  ["a plain listener", "plain"],
  ["a waiting listener", "waiting"]
]

const write: Pick<Messages.ToolCall, "type" | "id" | "name" | "arguments"> = {
  type: "toolCall",
  id: "a",
  name: "write",
  arguments: {}
}

const text = (text: string) => ({ type: "text", text }) as const

const thinking = (thinking: string) => ({ type: "thinking", thinking }) as const

const usage: Messages.Usage = {
  input: 7,
  output: 1,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 8,
  cost: { input: 0.7, output: 0.1, cacheRead: 0, cacheWrite: 0, total: 0.8 }
}

describe("B08 an abort keeps the part of the answer that had come", () => {
  const events: ReadonlyArray<ScriptedModel.TimedEvent> = [
    { type: "start", usage, responseId: "r1" },
    { type: "thinking_start", contentIndex: 0 },
    { at: 10, type: "thinking_delta", contentIndex: 0, delta: "Hm" },
    { at: 20, type: "thinking_end", contentIndex: 0 },
    { type: "text_start", contentIndex: 1 },
    { at: 30, type: "text_delta", contentIndex: 1, delta: "Hello" },
    { at: 40, type: "text_delta", contentIndex: 1, delta: " world" },
    { at: 50, type: "text_end", contentIndex: 1 },
    { type: "toolcall_start", contentIndex: 2, id: "a", name: "write" },
    { at: 60, type: "toolcall_delta", contentIndex: 2, delta: "{}" },
    { at: 70, type: "toolcall_end", contentIndex: 2 }
  ]
  const hello = [thinking("Hm"), text("Hello world")]
  const parts: ReadonlyArray<readonly [at: number, content: ReadonlyArray<unknown>]> = [
    [5, [thinking("")]],
    [15, [thinking("Hm")]],
    [25, [thinking("Hm"), text("")]],
    [35, [thinking("Hm"), text("Hello")]],
    [45, hello],
    [55, [...hello, write]],
    [65, [...hello, { ...write, argumentsText: "{}" }]],
    [75, [...hello, write]]
  ]
  const ways: ReadonlyArray<
    readonly [
      name: string,
      options: (at: number) => Setting,
      end: (trial: Trial, run: Fiber.Fiber<unknown, unknown>) => Effect.Effect<void>,
      outcome: Errors.RunOutcome["_tag"]
    ]
  > = [
    ["an abort", () => ({}), ({ agent }) => agent.abort, "Aborted"],
    ["an interruption", () => ({}), (_, run) => Fiber.interrupt(run), "Aborted"],
    ["the limit of its duration", (at) => ({ limits: { duration: at } }), () => Effect.void, "Limited"]
  ]
  for (const [name, audience] of audiences) {
    for (const [way, options, end, outcome] of ways) {
      for (const [at, content] of parts) {
        test(`B08 by ${way} at ${at}, ${name}`, () =>
          Effect.gen(function*() {
            const trial = yield* makeTrial({
              ...options(at),
              audience,
              responses: [ScriptedModel.events(events, { open: true })]
            })
            const run = yield* trial.start()
            yield* pass(at)
            yield* end(trial, run)
            const exit = yield* Fiber.await(run)
            yield* nothingLives
            yield* trial.shape
            const message = lastResponse(yield* trial.agent.messages)
            assert.deepStrictEqual<unknown>(message.content, content)
            assert.deepStrictEqual(
              [message.stopReason, message.errorMessage, message.usage, message.responseId],
              ["aborted", "Request was aborted", usage, "r1"]
            )
            if (way === "an interruption") assert.isTrue(Exit.hasInterrupts(exit))
            else {
              assert(Exit.isSuccess(exit))
              const [result] = exit.value
              assert.strictEqual(result.outcome._tag, outcome)
              assert.deepStrictEqual(result.messages.at(-1), message)
              assert.deepStrictEqual(result.usage, usage)
            }
            if (trial.watched) {
              const [end, ...more] = trial.heard("agent_end")
              assert.lengthOf(more, 0)
              assert.strictEqual(end!.outcome._tag, outcome)
              assert.deepStrictEqual(end!.messages.at(-1), message)
              assert.deepStrictEqual(trial.heard("turn_end").map((event) => event.message), [message])
              assert.deepStrictEqual(trial.heard("message_end").at(-1)!.message, message)
            }
            yield* trial.nothingFollows
          }))
      }
    }
  }
})

describe("B09 an answer with nothing in it is in no later request", () => {
  const open = (...events: ReadonlyArray<ScriptedModel.TimedEvent>) => ScriptedModel.events(events, { open: true })
  const start = { type: "start" } as const
  /** Answers that are aborted at 10 or end by themselves. */
  const nothings: ReadonlyArray<readonly [name: string, response: ScriptedModel.Response, stopReason: string]> = [
    ["aborted before the stream began", ScriptedModel.text("x", { after: 100 }), "aborted"],
    ["aborted before the first block", open(start), "aborted"],
    ["aborted in an empty text", open(start, { type: "text_start", contentIndex: 0 }), "aborted"],
    ["aborted in an empty thought", open(start, { type: "thinking_start", contentIndex: 0 }), "aborted"],
    [
      "aborted after an empty text and an empty thought",
      open(
        start,
        { type: "text_start", contentIndex: 0 },
        { type: "text_delta", contentIndex: 0, delta: "" },
        { type: "text_end", contentIndex: 0 },
        { type: "thinking_start", contentIndex: 1 },
        { type: "thinking_end", contentIndex: 1 }
      ),
      "aborted"
    ],
    ["failed before the stream began", ScriptedModel.error("down"), "error"],
    ["failed before the first block", ScriptedModel.error("down", { partial: "" }), "error"],
    ["ended without a block", ScriptedModel.events([start, { type: "done" }]), "stop"]
  ]
  const paths: ReadonlyArray<
    readonly [
      name: string,
      hooks: ReadonlyArray<Hooks.Hook>,
      conversion: ConvertToLlm.Conversion["convert"] | undefined
    ]
  > = [
    ["the default conversion", [], undefined],
    ["a context hook", [Hooks.transformContext((messages) => Effect.succeed(messages.slice()))], undefined],
    ["another conversion", [], (messages) => messages.filter(Messages.isMessage)]
  ]
  for (const [path, hooks, conversion] of paths) {
    for (const [name, response, stopReason] of nothings) {
      test(`B09 (A2, M1) ${name}, three times, ${path}`, () =>
        Effect.gen(function*() {
          const making = makeTrial({ hooks, responses: [response, response, response, fine] })
          const trial = yield* (conversion === undefined
            ? making
            : Effect.provide(making, ConvertToLlm.layer(conversion)))
          for (const prompt of ["1", "2", "3"]) {
            const run = yield* trial.start(prompt)
            yield* pass(10)
            yield* trial.agent.abort
            yield* Fiber.join(run)
            // It stays in the transcript, as what happened.
            assert.strictEqual(lastResponse(yield* trial.agent.messages).stopReason, stopReason)
          }
          yield* trial.run("4")
          assert.strictEqual(Transcript.print(yield* trial.request(3)), "U U U U")
          const mark = stopReason === "stop" ? "A" : `A{${stopReason}}`
          assert.strictEqual(yield* trial.shape, `U ${mark} U ${mark} U ${mark} U A`)
        }))
    }

    test(`B09 (M1) in a stored transcript, ${path}`, () =>
      Effect.gen(function*() {
        const empty = (content: Messages.AssistantMessage["content"]) =>
          Messages.assistant(content, { stopReason: "aborted" })
        const making = makeTrial({
          hooks,
          responses: [fine],
          messages: [Messages.user("1"), empty([]), Messages.user("2"), empty([text(""), thinking("")])]
        })
        const trial = yield* (conversion === undefined
          ? making
          : Effect.provide(making, ConvertToLlm.layer(conversion)))
        yield* trial.run("3")
        assert.strictEqual(Transcript.print(yield* trial.request(0)), "U U U")
      }))
  }
})

describe("B10 an abort in the middle of streamed arguments", () => {
  const json = `{"path":"x"}`
  const streaming = (cut: number, words: string): ReadonlyArray<StreamFn.StreamEvent> => {
    const contentIndex = words === "" ? 0 : 1
    return [
      { type: "start" },
      ...(words === "" ? [] : [
        { type: "text_start", contentIndex: 0 } as const,
        { type: "text_delta", contentIndex: 0, delta: words } as const,
        { type: "text_end", contentIndex: 0 } as const
      ]),
      { type: "toolcall_start", contentIndex, id: "a", name: "write" },
      ...Array.from(json.slice(0, cut), (delta) => ({ type: "toolcall_delta", contentIndex, delta }) as const)
    ]
  }
  for (const [name, audience] of audiences) {
    for (const words of ["", "Now:"]) {
      for (let cut = 0; cut <= json.length; cut++) {
        test(`B10 (M1, M2) after ${cut} of ${json.length} characters${words === "" ? "" : " behind a text"}, ${name}`, () =>
          Effect.gen(function*() {
            const ran: Array<string> = []
            const trial = yield* makeTrial({
              audience,
              tools: [noting("write", ran)],
              responses: [ScriptedModel.events(streaming(cut, words), { open: true }), fine]
            })
            const run = yield* trial.start()
            yield* pass(10)
            const state = yield* trial.agent.state
            assert.deepStrictEqual(Messages.toolCalls(state.streamingMessage!).map((call) => call.arguments), [{}])
            yield* trial.abort(run)
            const message = lastResponse(yield* trial.agent.messages)
            const call = cut === 0 ? write : { ...write, argumentsText: json.slice(0, cut) }
            assert.deepStrictEqual<unknown>(message.content, words === "" ? [call] : [text(words), call])
            const seen = trial.heard("message_update").map(({ assistantMessageEvent }) => assistantMessageEvent.type)
            assert.notInclude(seen, "toolcall_end")
            for (const { message } of trial.heard("message_update")) {
              for (const { arguments: args } of Messages.toolCalls(message)) assert.deepStrictEqual(args, {})
            }
            yield* trial.run("go on")
            assert.strictEqual(yield* trial.shape, "U A[a]{aborted} U A")
            assert.strictEqual(Transcript.print(yield* trial.request(1)), words === "" ? "U U" : "U A{aborted} U")
            assert.deepStrictEqual([ran, trial.heard("tool_execution_start")], [[], []])
          }))
      }
    }

    test(`B10 (M1) a call that was complete before does not run either, ${name}`, () =>
      Effect.gen(function*() {
        const ran: Array<string> = []
        const trial = yield* makeTrial({
          audience,
          tools: [noting("write", ran)],
          responses: [
            ScriptedModel.events([
              ...streaming(json.length, ""),
              { type: "toolcall_end", contentIndex: 0 },
              { type: "toolcall_start", contentIndex: 1, id: "b", name: "write" },
              { type: "toolcall_delta", contentIndex: 1, delta: "{\"pa" }
            ], { open: true }),
            fine
          ]
        })
        const run = yield* trial.start()
        yield* pass(10)
        yield* trial.abort(run)
        assert.deepStrictEqual<unknown>(lastResponse(yield* trial.agent.messages).content, [
          { ...write, arguments: { path: "x" } },
          { ...write, id: "b", argumentsText: "{\"pa" }
        ])
        yield* trial.run("go on")
        assert.strictEqual(yield* trial.shape, "U A[a,b]{aborted} U A")
        assert.strictEqual(Transcript.print(yield* trial.request(1)), "U U")
        assert.deepStrictEqual(ran, [])
      }))
  }
})

describe("B22 the prompt stays when the first request fails", () => {
  const reasons: ReadonlyArray<Errors.ModelErrorReason> = [
    "Authentication",
    "InvalidRequest",
    "ContextOverflow",
    "RateLimited",
    "Overloaded",
    "Network",
    "Timeout",
    "Unknown"
  ]
  interface Failing {
    readonly response?: ScriptedModel.Response
    readonly stream?: () => Stream.Stream<StreamFn.StreamEvent, Errors.ModelError>
    readonly hook?: (answer: Once) => Hooks.Hook
    readonly conversion?: boolean
  }
  /** Fails the first time. */
  type Once = <A>(answer: A) => Effect.Effect<A, string>
  const failures: ReadonlyArray<readonly [name: string, failing: Failing, error: string, stopReason?: "aborted"]> = [
    ...reasons.map((reason) =>
      [`a ModelError: ${reason}`, { response: ScriptedModel.error("down", { reason }) }, reason] as const
    ),
    [
      "an error event",
      { response: ScriptedModel.events([{ type: "error", errorMessage: "down" }]) },
      "Reported"
    ],
    ["a stream that ends at once", { response: ScriptedModel.events([]) }, "IncompleteStream"],
    ["a stream that breaks the protocol", {
      response: ScriptedModel.events([{ type: "text_delta", contentIndex: 0, delta: "x" }])
    }, "ProtocolViolation"],
    ["a stream that dies", { stream: () => Stream.die(new Error("down")) }, "Unknown"],
    ["a stream that interrupts itself", { stream: () => Stream.fromEffect(Effect.interrupt) }, "Aborted", "aborted"],
    ["a StreamFn that throws", {
      stream: () => {
        throw new Error("down")
      }
    }, "Unknown"],
    ["transformContext", { hook: (once) => Hooks.transformContext((messages) => once(messages)) }, "transformContext"],
    ["prepareRequest", { hook: (once) => Hooks.prepareRequest(() => once(undefined)) }, "prepareRequest"],
    ["apiKey", { hook: (once) => Hooks.apiKey(() => once("key")) }, "apiKey"],
    ["the conversion", { conversion: true }, "convertToLlm"]
  ]
  for (const [name, audience] of audiences) {
    for (const [what, { conversion, hook, response, stream }, expected, stopReason = "error"] of failures) {
      test(`B22 ${what}, ${name}`, () =>
        Effect.gen(function*() {
          let requests = 0
          let asked = 0
          const once: Once = (answer) =>
            Effect.suspend(() => ++asked === 1 ? Effect.fail("down") : Effect.succeed(answer))
          const making = makeTrial({
            audience,
            responses: response === undefined ? [] : [response],
            otherwise: fine,
            wrap: (scripted) => ++requests === 1 && stream !== undefined ? stream() : scripted,
            hooks: hook === undefined ? [] : [hook(once)]
          })
          const trial = yield* (conversion === undefined
            ? making
            : Effect.provide(making, ConvertToLlm.layer((messages) => once(messages.filter(Messages.isMessage)))))
          const { outcome } = yield* trial.run("hi")
          assert(outcome._tag === "Failed")
          const { error } = outcome
          assert.strictEqual(
            error._tag === "ModelError" ? error.reason : error._tag === "HookError" ? error.hook : "",
            expected
          )
          assert.strictEqual(yield* trial.shape, `U A{${stopReason}}`)
          const { content, errorMessage } = lastResponse(yield* trial.agent.messages)
          assert.deepStrictEqual(content, [])
          assert.isString(errorMessage)
          yield* trial.run("again")
          assert.strictEqual(yield* trial.shape, `U A{${stopReason}} U A`)
        }))
    }
  }
})
