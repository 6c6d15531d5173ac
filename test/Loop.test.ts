import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Fiber, Queue, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type Errors, Hooks, Loop, Messages, Queues, StreamFn } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { Recorder, showAll } from "./utils/events.ts"
import { lie, trap } from "./utils/hostile.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { ended } from "./utils/journey.ts"
import { continueLoop, finish, loop, stage } from "./utils/play.ts"
import { quick, slow, terminator, tool } from "./utils/timedTools.ts"

const { calls, text } = ScriptedModel

const user = (content: string) => Messages.user(content)

const failure = <A, E>(exit: Exit.Exit<A, E>): E | undefined =>
  Exit.isFailure(exit) ? exit.cause.reasons.find(Cause.isFailReason)?.error : undefined

/** A queue with messages in it. */
const filled = (mode: Queues.QueueMode, ...texts: ReadonlyArray<string>) =>
  Effect.map(Queues.make(mode), (queue) => {
    for (const text of texts) queue.offer(user(text))
    return queue
  })

const texts = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> => messages.map(Messages.text)

/** The texts of the messages of each request. */
const asked = (requests: ReadonlyArray<ScriptedModel.RecordedRequest>): ReadonlyArray<string> =>
  requests.map(({ messages }) => Transcript.print(messages, { system: true }))

describe("Loop", () => {
  describe("a run", () => {
    it.effect("L1: begins with agent_start and turn_start, tells every prompt, and agent_end carries all of it", () =>
      Effect.gen(function*() {
        const { recorder, requests, result } = yield* loop({
          responses: [text("fine")],
          prompts: [user("one"), user("two")]
        })
        assert.deepStrictEqual(recorder.shown, [
          "agent_start",
          "turn_start",
          "message_start U",
          "message_end U",
          "message_start U",
          "message_end U",
          "message_start A{pending}",
          "message_update text_start 0",
          "message_update text_delta 0",
          "message_update text_end 0",
          "message_end A",
          "turn_end A",
          "agent_end Completed"
        ])
        assert.deepStrictEqual(texts(result.messages), ["one", "two", "fine"])
        assert.deepStrictEqual(texts(requests[0]!.messages), ["one", "two"])
        assert.deepInclude(result.outcome, { _tag: "Completed", by: "Stop", stopReason: "stop" })
      }))

    it.effect("L1: declares its tools before the prompts", () =>
      Effect.gen(function*() {
        const { recorder, requests, result } = yield* loop({
          responses: [text("fine")],
          tools: [quick("a"), quick("b")]
        })
        assert.deepStrictEqual(recorder.outline.slice(0, 4), ["agent_start", "turn_start", "S", "U"])
        assert.deepStrictEqual(Messages.declaredTools(result.messages).map(({ name }) => name), ["a", "b"])
        assert.deepStrictEqual(requests[0]!.tools.map(({ name }) => name), ["a", "b"])
      }))

    it.effect("L1: declares nothing when the context has declared the tools already", () =>
      Effect.gen(function*() {
        const tools = [quick("a")]
        const first = yield* loop({ responses: [text("fine")], tools })
        const { recorder, requests } = yield* loop({
          responses: [text("fine")],
          tools,
          messages: first.result.messages,
          prompts: [user("again")]
        })
        assert.deepStrictEqual(recorder.outline.slice(0, 4), ["agent_start", "turn_start", "U", "A"])
        assert.deepStrictEqual(asked(requests), ["S U A U"])
      }))

    it.effect("L1: needs no prompt and no context", () =>
      Effect.gen(function*() {
        const { requests, result } = yield* loop({ responses: [text("fine")], prompts: [] })
        assert.deepStrictEqual(asked(requests), [""])
        assert.strictEqual(Transcript.print(result.messages), "A")
      }))

    it.effect("L1: leaves the given context and prompts as they are", () =>
      Effect.gen(function*() {
        const prompts = Object.freeze([Object.freeze(user("go"))])
        const messages = Object.freeze([Object.freeze(user("before")), Object.freeze(Messages.assistant("hm"))])
        const { result } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools: [quick("a")],
          prompts,
          messages
        })
        assert.strictEqual(Transcript.print(messages), "U A")
        assert.deepStrictEqual(prompts, [user("go")])
        assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) A")
      }))

    it.effect("L1: gives prompts without a time the time of the clock, and keeps others", () =>
      Effect.gen(function*() {
        yield* TestClock.adjust("1 minute")
        const { result } = yield* loop({
          responses: [text("fine", { after: "1 second" })],
          prompts: [user("one"), Messages.user("two", { timestamp: 7 })]
        })
        assert.deepStrictEqual(result.messages.slice(0, 2).map(({ timestamp }) => timestamp), [60_000, 7])
      }))
  })

  describe("continue", () => {
    it.effect("L1: goes on without a prompt and declares tools before its first request", () =>
      Effect.gen(function*() {
        const { recorder, requests, result } = yield* continueLoop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools: [quick("a")],
          messages: [user("go")]
        })
        assert.deepStrictEqual(recorder.outline.slice(0, 4), ["agent_start", "turn_start", "S", "A[x]"])
        assert.deepStrictEqual(asked(requests), ["U S", "U S A[x] R(x)"])
        assert.strictEqual(Transcript.print(result.messages), "A[x] R(x) A")
      }))

    const refusals = {
      "an empty context": [[], "EmptyTranscript", "Cannot continue: no messages in context"],
      "only system messages": [
        [Messages.system("Be brief.")],
        "EmptyTranscript",
        "Cannot continue: no messages in context"
      ],
      "an assistant's tail": [
        [user("go"), Messages.assistant("fine")],
        "AssistantTail",
        "Cannot continue from message role: assistant"
      ]
    } as const
    for (const [name, [messages, reason, message]] of Object.entries(refusals)) {
      it.effect(`L1: is refused for ${name}`, () =>
        Effect.gen(function*() {
          const recorder = new Recorder()
          const exit = yield* Effect.exit(
            Loop.continue_({ messages, tools: [quick("a")] }, { emit: recorder.record })
          )
          const error = failure(exit)
          assert.deepStrictEqual([error?._tag, error?.reason, error?.message], ["CannotContinue", reason, message])
          assert.deepStrictEqual(recorder.shown, [])
          assert.deepStrictEqual(yield* ScriptedModel.requests, [])
        }).pipe(Effect.provide(ScriptedModel.layer([text("fine")]))))
    }

    it.effect("L1: goes on from a system message behind a conversation, and from a result", () =>
      Effect.gen(function*() {
        const call: Messages.ToolCall = { type: "toolCall", id: "x", name: "a", arguments: {} }
        const result = [user("go"), Messages.assistant([call]), Messages.toolResult(call, "done")]
        const first = yield* continueLoop({ responses: [text("fine")], messages: result })
        assert.deepStrictEqual(asked(first.requests), ["U A[x] R(x)"])
        const second = yield* continueLoop({
          responses: [text("fine")],
          messages: [...result, Messages.system("Brief!")]
        })
        assert.deepStrictEqual(asked(second.requests), ["U A[x] R(x) S"])
      }))
  })

  describe("queues", () => {
    it.effect("L2: reads steering once before the first turn, behind the prompts", () =>
      Effect.gen(function*() {
        const steering = yield* filled("one-at-a-time", "S1", "S2")
        const { requests, result } = yield* loop({
          responses: [text("1"), text("2")],
          options: { steering }
        })
        assert.deepStrictEqual(requests.map(({ messages }) => texts(messages)), [["go", "S1"], ["go", "S1", "1", "S2"]])
        assert.strictEqual(Transcript.print(result.messages), "U U A U A")
      }))

    it.effect("L2: takes all that waits in mode `all` (B33)", () =>
      Effect.gen(function*() {
        const steering = yield* filled("all", "S1", "S2")
        const followUps = yield* filled("all", "F1", "F2", "F3")
        const { result } = yield* loop({ responses: [text("1"), text("2")], options: { steering, followUps } })
        assert.deepStrictEqual(texts(result.messages), ["go", "S1", "S2", "1", "F1", "F2", "F3", "2"])
      }))

    it.effect("L2: reads follow-ups only when tools and steering are done, and goes round for each batch (B32)", () =>
      Effect.gen(function*() {
        const steering = yield* Queues.make()
        const followUps = yield* filled("one-at-a-time", "F1", "F2")
        const steers = tool("a", () =>
          Effect.sync(() => {
            steering.offer(user("S"))
            return "done"
          }))
        const { recorder, result } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("1"), calls([["y", "b", {}]]), text("2"), text("3")],
          tools: [steers, quick("b")],
          options: { steering, followUps }
        })
        assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) U A U A[y] R(y) A U A")
        const said = result.messages.filter(({ role }) => role === "user")
        assert.deepStrictEqual(texts(said), ["go", "S", "F1", "F2"])
        assert.strictEqual(recorder.shown.filter((event) => event === "agent_start").length, 1)
      }))

    it.effect("L2: drains a plain Queue one message at a time", () =>
      Effect.gen(function*() {
        const steering = yield* Queue.unbounded<Messages.AgentMessage>()
        const followUps = yield* Queue.unbounded<Messages.AgentMessage>()
        yield* Queue.offerAll(steering, [user("S1"), user("S2")])
        yield* Queue.offerAll(followUps, [user("F1"), user("F2")])
        const { result } = yield* loop({
          responses: [text("1"), text("2"), text("3"), text("4")],
          options: { steering, followUps }
        })
        assert.deepStrictEqual(texts(result.messages), ["go", "S1", "1", "S2", "2", "F1", "3", "F2", "4"])
      }))

    const failures: Record<string, () => Effect.Effect<unknown, string> | void> = {
      fails: () => Effect.fail("disk full"),
      dies: () => Effect.die("disk full"),
      "interrupts itself": () => Effect.interrupt,
      throws: () => {
        throw new Error("disk full")
      },
      "returns no effect": () => lie(5)
    }
    for (const [how, failure] of Object.entries(failures)) {
      it.effect(`H3, I3: a stream gives every event, also where emit ${how}`, () =>
        Effect.gen(function*() {
          const told: Array<string> = []
          const stream = Loop.stream([user("go")], { messages: [], tools: [quick("a")] }, {
            emit: (event) => {
              told.push(event.type)
              return failure()
            }
          })
          const events = yield* finish(Stream.runCollect(stream))
          assert.deepStrictEqual(events.map(({ type }) => type), told)
          assert.strictEqual(told.at(-1), "agent_end")
          assertInvariants({ events })
        }).pipe(Effect.provide(stage({ responses: [calls([["x", "a", {}]]), text("fine")] })), logged))
    }

    for (const which of ["steering", "followUps"] as const) {
      it.effect(`Q1, Q3: ${which} in a bounded queue: producers that wait for room go on, and an ended queue is done`, () =>
        Effect.gen(function*() {
          const queue = yield* Queue.bounded<Messages.AgentMessage, Cause.Done>(1)
          const offered = yield* Effect.forkChild(
            Effect.andThen(Queue.offerAll(queue, [user("1"), user("2"), user("3")]), Queue.end(queue)),
            { startImmediately: true }
          )
          const { result } = yield* loop({
            responses: [text("a"), text("b"), text("c"), text("d")],
            options: { [which]: lie<Queue.Queue<Messages.AgentMessage>>(queue) }
          })
          const said = result.messages.filter(({ role }) => role === "user")
          assert.deepStrictEqual(texts(said), ["go", "1", "2", "3"])
          yield* Fiber.join(offered)
          assert.strictEqual(queue.state._tag, "Done")
        }))
    }

    it.effect("Q3: a message is withdrawn from, or all are cleared out of, a bounded queue: producers go on", () =>
      Effect.gen(function*() {
        for (const how of ["withdraw", "clear"] as const) {
          const queue = new Queues.MessageQueue(yield* Queue.bounded<Messages.AgentMessage>(2), "all")
          const receipt = queue.post("x", user("X"), true)
          queue.offer(user("1"))
          const offered = yield* Effect.forkChild(Queue.offer(queue.queue, user("2")), { startImmediately: true })
          if (how === "withdraw") assert.isTrue(queue.withdraw("x"))
          else assert.deepStrictEqual(texts(queue.clear()), ["X", "1"])
          assert.isTrue(yield* Fiber.join(offered))
          assert.deepStrictEqual(texts(queue.messages), how === "withdraw" ? ["1", "2"] : ["2"])
          assert.strictEqual((yield* receipt.delivered)._tag, "Withdrawn")
        }
      }))

    it.effect("L3: reads steering once more behind prepareNextTurn, when nothing is pending", () =>
      Effect.gen(function*() {
        const steering = yield* Queues.make()
        const { result } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools: [quick("a")],
          hooks: [Hooks.prepareNextTurn(() => steering.offer(user("S")))],
          options: { steering }
        })
        assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) U A")
      }))

    it.effect("L3: does not read steering again when a batch is pending", () =>
      Effect.gen(function*() {
        const steering = yield* filled("one-at-a-time", "S0", "S1")
        let turn = 0
        const { requests } = yield* loop({
          responses: [text("1"), text("2"), text("3")],
          hooks: [Hooks.prepareNextTurn(() => {
            if (++turn === 1) steering.offer(user("S2"))
          })],
          options: { steering }
        })
        assert.deepStrictEqual(texts(requests[1]!.messages), ["go", "S0", "1", "S1"])
        assert.deepStrictEqual(texts(requests[2]!.messages), ["go", "S0", "1", "S1", "2", "S2"])
      }))

    it.effect("L6: prepareRequest reads no queue: what is steered there waits for the next turn", () =>
      Effect.gen(function*() {
        const steering = yield* Queues.make()
        let request = 0
        const { requests } = yield* loop({
          responses: [text("1"), text("2")],
          hooks: [Hooks.prepareRequest(() => {
            if (++request === 1) steering.offer(user("S"))
          })],
          options: { steering }
        })
        assert.deepStrictEqual(requests.map(({ messages }) => texts(messages)), [["go"], ["go", "1", "S"]])
      }))
  })

  describe("terminate", () => {
    const tools = [terminator("a"), terminator("b"), quick("c")]

    it.effect("L4: ends the run when the whole batch asks for it", () =>
      Effect.gen(function*() {
        const { requests, result } = yield* loop({
          responses: [calls([["x", "a", {}], ["y", "b", {}]])],
          tools
        })
        assert.strictEqual(Transcript.print(result.messages), "U A[x,y] R(x) R(y)")
        assert.deepInclude(result.outcome, { _tag: "Completed", by: "Terminate", stopReason: "toolUse" })
        assert.strictEqual(requests.length, 1)
      }))

    const goOn = { "a call that does not ask": "c", "a call of an unknown tool": "nope" } as const
    for (const [name, other] of Object.entries(goOn)) {
      it.effect(`L4: goes on with ${name} in the batch`, () =>
        Effect.gen(function*() {
          const { requests, result } = yield* loop({
            responses: [calls([["x", "a", {}], ["y", other, {}]]), text("fine")],
            tools
          })
          assert.strictEqual(requests.length, 2)
          assert.deepInclude(result.outcome, { _tag: "Completed", by: "Stop" })
        }))
    }

    it.effect("L4: a blocking hook and a changed result may ask for it, too", () =>
      Effect.gen(function*() {
        const { requests, result } = yield* loop({
          responses: [calls([["x", "a", {}], ["y", "c", {}], ["z", "c", {}]])],
          tools,
          hooks: [
            Hooks.beforeToolCall(({ toolCall }) =>
              toolCall.id === "y" ? Hooks.block("no", { terminate: true }) : Hooks.allow
            ),
            Hooks.afterToolCall(({ toolCall }) => toolCall.id === "z" ? { terminate: true } : undefined)
          ]
        })
        assert.strictEqual(Transcript.print(result.messages), "U A[x,y,z] R(x) R(y!) R(z)")
        assert.deepInclude(result.outcome, { _tag: "Completed", by: "Terminate" })
        assert.strictEqual(requests.length, 1)
      }))

    it.effect("L4: a hook may take it back", () =>
      Effect.gen(function*() {
        const { requests } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools,
          hooks: [Hooks.afterToolCall(() => ({ terminate: false }))]
        })
        assert.strictEqual(requests.length, 2)
      }))

    it.effect("L4: a response that says toolUse without calls ends the run (B86)", () =>
      Effect.gen(function*() {
        const { requests, result } = yield* loop({ responses: [text("I will", { stopReason: "toolUse" })] })
        assert.deepInclude(result.outcome, { _tag: "Completed", by: "Stop", stopReason: "toolUse" })
        assert.strictEqual(requests.length, 1)
      }))
  })

  describe("misuse", () => {
    const wrong = {
      "two tools with one name (B82)": [[quick("a"), quick("a")], {}],
      "a concurrency of 0": [[], { toolConcurrency: 0 }],
      "a grace below 0": [[], { gracePeriod: -1 }],
      "an infinite grace": [[], { gracePeriod: "Infinity" }]
    } as const
    for (const [name, [tools, options]] of Object.entries(wrong)) {
      it.effect(`L1: ${name} fails with CannotContinue before anything is told`, () =>
        Effect.gen(function*() {
          const recorder = new Recorder()
          const exit = yield* Effect.exit(
            Loop.run([user("go")], { messages: [], tools }, { ...options, emit: recorder.record })
          )
          const error = failure(exit)
          assert.deepStrictEqual([error?._tag, error?.reason], ["CannotContinue", "InvalidContext"])
          const streamed = yield* Effect.exit(
            Stream.runDrain(Loop.stream([user("go")], { messages: [], tools }, options))
          )
          assert.strictEqual(failure(streamed)?.reason, "InvalidContext")
          assert.deepStrictEqual(recorder.shown, [])
          assert.deepStrictEqual(yield* ScriptedModel.requests, [])
        }).pipe(Effect.provide(ScriptedModel.layer([]))))
    }

    const noMessage: ReadonlyArray<readonly [name: string, message: unknown]> = [
      ["null", null],
      ["a number", 5],
      ["an object without a role", {}],
      ["a user message without content", { role: "user", timestamp: 0 }],
      ["a user message whose content is a number", { role: "user", content: 5, timestamp: 0 }],
      ["a user message with a block that is null", { role: "user", content: [null], timestamp: 0 }],
      ["a bare assistant message", { role: "assistant" }],
      ["an assistant message whose content is text", { role: "assistant", content: "x", timestamp: 0 }],
      ["a bare result", { role: "toolResult" }],
      ["a system message with a tool that is null", { role: "system", content: "", toolsAdded: [null], timestamp: 0 }],
      ["a message with a bigint", { role: "user", content: 5n, timestamp: 0 }],
      ["a proxy that throws", trap]
    ]
    const invalid = (what: string, effect: Effect.Effect<unknown, Errors.CannotContinue, StreamFn.StreamFn>) =>
      Effect.gen(function*() {
        const error = failure(yield* Effect.exit(finish(effect)))
        assert.deepStrictEqual([error?._tag, error?.reason], ["CannotContinue", "InvalidContext"], what)
      })
    for (const [name, message] of noMessage) {
      it.effect(`L1 H5: ${name} as a prompt or in the context fails with CannotContinue, and nothing is told`, () =>
        Effect.gen(function*() {
          const recorder = new Recorder()
          const emit = recorder.record
          const messages = [lie<Messages.AgentMessage>(message)]
          const good: Loop.LoopContext = { messages: [], tools: [] }
          yield* invalid("prompt", Loop.run(messages, good, { emit }))
          yield* invalid("prompt of a stream", Stream.runDrain(Loop.stream([user("x"), ...messages], good, { emit })))
          yield* invalid("context", Loop.run([user("x")], { messages, tools: [] }, { emit }))
          yield* invalid("context of a stream", Stream.runDrain(Loop.stream([user("x")], { messages, tools: [] })))
          yield* invalid(
            "continued context",
            Loop.continue({ messages: [...messages, user("x")], tools: [] }, { emit })
          )
          yield* invalid("last message", Loop.continue({ messages, tools: [] }, { emit }))
          assert.deepStrictEqual(recorder.shown, [])
          assert.deepStrictEqual(yield* ScriptedModel.requests, [])
        }).pipe(Effect.provide(ScriptedModel.layer([]))))
    }

    const noContext: ReadonlyArray<readonly [name: string, context: unknown]> = [
      ["null", null],
      ["nothing", undefined],
      ["a text", "x"],
      ["no messages", { tools: [] }],
      ["messages that are a text", { messages: "x", tools: [] }],
      ["no tools", { messages: [user("x")] }],
      ["a tool that is null", { messages: [user("x")], tools: [null] }],
      ["a proxy that throws", trap]
    ]
    for (const [name, context] of noContext) {
      it.effect(`L1 H5: a context that is none (${name}) fails with CannotContinue`, () =>
        Effect.gen(function*() {
          yield* invalid("run", Loop.run([user("x")], lie<Loop.LoopContext>(context)))
          yield* invalid("stream", Stream.runDrain(Loop.stream([user("x")], lie<Loop.LoopContext>(context))))
          yield* invalid("continue", Loop.continue(lie<Loop.LoopContext>(context)))
          yield* invalid("no list of prompts", Loop.run(lie<[]>(context), { messages: [], tools: [] }))
        }).pipe(Effect.provide(ScriptedModel.layer([]))))
    }

    it.effect("L1: what makes up a context is looked at when the loop runs, not when it is described", () =>
      Effect.gen(function*() {
        const messages: Array<Messages.AgentMessage> = []
        const continued = Loop.continue({ messages, tools: [] })
        messages.push(user("go"))
        const { outcome } = yield* continued
        assert.strictEqual(outcome._tag, "Completed")
      }).pipe(Effect.provide(stage({ responses: [text("fine")] }))))

    it.effect("T9 I6: prompts are the JSON they stand for, their text well formed, in the transcript and for the model", () =>
      Effect.gen(function*() {
        const half = "\ud800"
        const prompts = [
          Messages.system(half),
          lie<Messages.AgentMessage>({ ...user("u"), extra: undefined, at: new Date(0) }),
          lie<Messages.AgentMessage>({ role: "note", text: half, timestamp: 1 }),
          user(half)
        ]
        const { messages } = yield* Loop.run(prompts, { messages: [], tools: [] })
        const encoded = Schema.encodeSync(Schema.fromJsonString(Messages.Transcript))(messages)
        assert.isTrue(encoded.isWellFormed())
        assert.notInclude(encoded, "\\ud800")
        assert.deepStrictEqual(Schema.decodeSync(Schema.fromJsonString(Messages.Transcript))(encoded), messages)
        assert.propertyVal(messages[1], "at", "1970-01-01T00:00:00.000Z")
        assert.notProperty(messages[1], "extra")
        const asked = (yield* ScriptedModel.requests).map(({ messages }) => messages.map(Messages.text))
        assert.deepStrictEqual(asked, [["\ufffd", "u", "\ufffd"]])
      }).pipe(Effect.provide(stage({ responses: [text("fine")] }))))

    it.effect("H3: an emit that fails or dies costs nothing (B97, B98)", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const result = yield* finish(Loop.run([user("go")], { messages: [], tools: [quick("a")] }, {
          emit: (event) => {
            seen.push(event.type)
            if (seen.length % 3 === 0) throw new Error("thrown")
            return seen.length % 3 === 1 ? Effect.fail("failed") : Effect.die("died")
          }
        }))
        assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) A")
        assert.deepInclude(result.outcome, { _tag: "Completed" })
        assert.strictEqual(seen.at(-1), "agent_end")
      }).pipe(Effect.provide(stage({ responses: [calls([["x", "a", {}]]), text("fine")] }))))
  })

  describe("stream", () => {
    const context = { messages: [], tools: [slow("a", 1000)] }

    it.effect("L1: gives the events that emit is told, in order, and ends behind agent_end", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const events = yield* finish(
          Stream.runCollect(Loop.stream([user("go")], context, { emit: recorder.record }))
        )
        assert.deepStrictEqual(showAll(events), recorder.shown)
        assert.strictEqual(showAll(events).at(-1), "agent_end Completed")
        assertInvariants({ events })
        yield* ScriptedModel.assertComplete
      }).pipe(Effect.provide(stage({ responses: [calls([["x", "a", {}]]), text("fine", { chunks: 3 })] }))))

    it.effect("H3: a slow consumer holds the run back and misses nothing (B102)", () =>
      Effect.gen(function*() {
        const total = 2000
        let produced = 0
        const deltas = Stream.range(1, total).pipe(
          Stream.rechunk(1),
          Stream.map((n): StreamFn.StreamEvent => {
            produced++
            return { type: "text_delta", contentIndex: 0, delta: `${n} ` }
          })
        )
        const model = StreamFn.layer(() =>
          Stream.make<Array<StreamFn.StreamEvent>>({ type: "start" }, { type: "text_start", contentIndex: 0 }).pipe(
            Stream.concat(deltas),
            Stream.concat(Stream.make<Array<StreamFn.StreamEvent>>({ type: "done" }))
          )
        )
        let taken = 0
        const consumer = yield* Loop.stream([user("go")], { messages: [], tools: [] }).pipe(
          Stream.tap(() => {
            taken++
            return Effect.sleep("1 second")
          }),
          Stream.runCollect,
          Effect.provide(model),
          Effect.forkChild
        )
        yield* TestClock.adjust("20 seconds")
        assert.strictEqual(taken, 21)
        assert.isBelow(produced, total / 2)
        yield* TestClock.adjust("1 hour")
        const events = yield* Fiber.join(consumer)
        assert.strictEqual(events.filter(({ type }) => type === "message_update").length, total + 1)
        assertInvariants({ events })
      }))

    it.effect("H5: a run that fails is a stream that ends; each use of the stream is a run of its own", () =>
      Effect.gen(function*() {
        const events = Loop.stream([user("go")], { messages: [], tools: [] })
        const first = yield* Stream.runCollect(events)
        const second = yield* Stream.runCollect(events)
        assert.deepStrictEqual(showAll(first).slice(-2), ["turn_end A{error}", "agent_end Failed"])
        assert.strictEqual(showAll(second).at(-1), "agent_end Completed")
        for (const events of [first, second]) assertInvariants({ events })
      }).pipe(Effect.provide(stage({ responses: [ScriptedModel.error("reset"), text("fine")] }))))

    it.effect("A1: ending it early aborts the run", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const events = yield* finish(
          Loop.stream([user("go")], context, { emit: recorder.record }).pipe(
            Stream.takeUntil(({ type }) => type === "tool_execution_start"),
            Stream.runCollect
          )
        )
        assert.strictEqual(showAll(events).at(-1), "tool_execution_start x")
        assert.strictEqual(recorder.shown.at(-1), "agent_end Aborted")
        assert.strictEqual(recorder.timeOf("agent_end Aborted"), 0)
        assert.strictEqual((yield* ScriptedModel.requests).length, 1)
        assertInvariants({ events: recorder.events })
      }).pipe(Effect.provide(stage({ responses: [calls([["x", "a", {}]]), text("fine")] }))))

    it.effect("A1: a consumer that leaves releases a run it has held back, at once", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const consumer = yield* Loop.stream([user("go")], context, { emit: recorder.record }).pipe(
          Stream.tap(() => Effect.sleep("1 second")),
          Stream.take(5),
          Stream.runCollect,
          Effect.forkChild
        )
        yield* TestClock.adjust("4999 millis")
        assert.strictEqual(recorder.events.filter(({ type }) => type === "agent_end").length, 0)
        yield* TestClock.adjust(1)
        yield* Effect.repeat(Effect.yieldNow, { times: 100 })
        assert.isTrue(ended(consumer))
        assert.strictEqual((yield* Fiber.join(consumer)).length, 5)
        assert.strictEqual(recorder.timeOf("agent_end Aborted"), 5000)
        assertInvariants({ events: recorder.events })
      }).pipe(Effect.provide(stage({ responses: [text("x".repeat(1000), { chunks: 1000 })] }))))

    it.effect("A1: interrupting its consumer aborts the run, and waits for its end", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const consumer = yield* Loop.stream([user("go")], context, { emit: recorder.record }).pipe(
          Stream.runDrain,
          Effect.forkChild
        )
        yield* TestClock.adjust(500)
        yield* Fiber.interrupt(consumer)
        assert.strictEqual(recorder.timeOf("agent_end Aborted"), 500)
        assert.strictEqual(recorder.outline.at(-3), "R(x!)")
        assertInvariants({ events: recorder.events })
      }).pipe(Effect.provide(stage({ responses: [calls([["x", "a", {}]]), text("fine")] }))))
  })

  describe("interruption", () => {
    it.effect("A1: Loop.run closes everything before the interruption goes on (B19)", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const log: Array<string> = []
        const a = tool("a", () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push("finalizer"))))
        const fiber = yield* Effect.forkChild(
          Loop.run([user("go")], { messages: [], tools: [a] }, { emit: recorder.record })
        )
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        const exit = yield* Fiber.await(fiber)
        assert.isTrue(Exit.hasInterrupts(exit))
        assert.deepStrictEqual(log, ["finalizer"])
        assert.deepStrictEqual(recorder.outline.slice(-5), [
          "tool_execution_start x",
          "tool_execution_end x!",
          "R(x!)",
          "turn_end A[x] R(x!)",
          "agent_end Aborted"
        ])
        assertInvariants({ events: recorder.events })
      }).pipe(Effect.provide(stage({ responses: [calls([["x", "a", {}]]), text("fine")] }))))

    it.effect("A1: a timeout around Loop.run does the same", () =>
      Effect.gen(function*() {
        const recorder = new Recorder()
        const exit = yield* finish(
          Loop.run([user("go")], { messages: [], tools: [] }, { emit: recorder.record }).pipe(
            Effect.timeout("10 seconds"),
            Effect.exit
          )
        )
        assert.strictEqual(failure(exit)?._tag, "TimeoutError")
        assert.strictEqual(recorder.shown.at(-1), "agent_end Aborted")
        assert.strictEqual(recorder.timeOf("agent_end Aborted"), 10_000)
        assert.deepStrictEqual(recorder.outline.slice(-3), ["A{aborted}", "turn_end A{aborted}", "agent_end Aborted"])
      }).pipe(Effect.provide(stage({ responses: [ScriptedModel.hang({ partial: "so far" })] }))))

    it.effect("Q3: what was read and not emitted goes back to the front of its queue", () =>
      Effect.gen(function*() {
        const steering = yield* filled("all", "S1", "S2")
        const fiber = yield* Effect.forkChild(Loop.run([user("go")], { messages: [], tools: [] }, {
          steering,
          emit: (event) =>
            event.type === "message_end" && event.message.role === "user" && Messages.text(event.message) === "S1"
              ? Effect.sleep("1 hour")
              : undefined,
          gracePeriod: 0
        }))
        yield* TestClock.adjust("1 second")
        steering.offer(user("S3"))
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(texts(steering.messages), ["S2", "S3"])
        assert.deepStrictEqual(yield* ScriptedModel.requests, [])
        assert.strictEqual(yield* Clock.currentTimeMillis, 1000)
      }).pipe(Effect.provide(stage({ responses: [] }))))
  })
})
