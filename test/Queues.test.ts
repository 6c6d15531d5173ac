import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Messages, Queues, StreamFn, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { assertBalanced, ofType, record, said, waiting, withEndlessModel, withModel } from "./utils/agents.ts"
import { echo, gated, slow } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")
const calling = ScriptedModel.calls([["a", "slow", { ms: 100 }]])

const texts = (messages: ReadonlyArray<Messages.AgentMessage>) => messages.map(Messages.text)

describe("Steering", () => {
  it.effect("Q1 B31: a steer waits for every tool of the turn and comes before the next request", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(60)
      yield* agent.steer("S")
      yield* TestClock.adjust("1 hour")
      const { messages } = yield* Fiber.join(run)
      assert.strictEqual(Transcript.print(messages), "U A[a,b] R(a) R(b) U A")
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(requests.map(({ messages }) => Transcript.print(messages)), ["U", "U A[a,b] R(a) R(b) U"])
      assert.deepStrictEqual(requests.map(({ at }) => at), [0, 100])
    }).pipe(withModel(ScriptedModel.calls([["a", "slow", { ms: 100 }], ["b", "slow", { ms: 50 }]]), fine)))

  it.effect("Q1: a steer does not cut a stream, and makes a run go on that would have stopped", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(15)
      yield* agent.steer("S")
      yield* TestClock.adjust("1 hour")
      const { messages } = yield* Fiber.join(run)
      assert.strictEqual(Transcript.print(messages), "U A U A")
      assert.deepStrictEqual(texts(messages), ["go", "abcdef", "S", "fine"])
    }).pipe(withModel(ScriptedModel.text("abcdef", { chunks: 6, every: 10 }), fine)))

  it.effect("Q1: a steer does not skip calls of a sequential batch", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow], toolExecution: "sequential" })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* agent.steer("S")
      yield* TestClock.adjust("1 hour")
      const { messages } = yield* Fiber.join(run)
      assert.strictEqual(Transcript.print(messages), "U A[a,b] R(a) R(b) U A")
    }).pipe(withModel(ScriptedModel.calls([["a", "slow", { ms: 100 }], ["b", "slow", { ms: 50 }]]), fine)))

  it.effect("Q1 B27: a steer while idle waits, and comes after the prompt of the next run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.steer("S")
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* agent.messages, [])
      assert.deepStrictEqual(yield* waiting(agent), [["S"], []])
      const { messages } = yield* agent.prompt("p")
      assert.deepStrictEqual(texts(messages), ["p", "S", "fine"])
      assert.deepStrictEqual(yield* waiting(agent), [[], []])
    }).pipe(withModel(fine)))

  it.effect("Q1 B28: an image without text is delivered once, and as it is", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const image = { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" } as const
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* agent.steer(Messages.user([image]))
      yield* TestClock.adjust("1 hour")
      const { messages } = yield* Fiber.join(run)
      assert.strictEqual(Transcript.print(messages), "U A[a] R(a) U A")
      assert.deepInclude(messages[3], { role: "user", content: [image] })
      const request = (yield* ScriptedModel.requests).at(-1)!
      assert.deepInclude(request.messages.at(-1), { role: "user", content: [image] })
      assert.deepStrictEqual(yield* waiting(agent), [[], []])
    }).pipe(withModel(calling, fine)))

  it.effect("Q1: a message is recorded with the time it was delivered at, or its own", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* agent.setSteeringMode("all")
      yield* agent.steer("S")
      yield* agent.steer(Messages.user("T", { timestamp: 7 }))
      yield* TestClock.adjust("1 hour")
      const { messages } = yield* Fiber.join(run)
      assert.deepStrictEqual(messages.slice(3, 5).map((message) => message.timestamp), [100, 7])
    }).pipe(withModel(calling, fine)))
})

describe("Follow-ups", () => {
  it.effect("Q1 B32: a follow-up waits until the agent would stop, a steer goes first", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const run = yield* Effect.forkChild(agent.prompt("p"))
      yield* TestClock.adjust(10)
      yield* agent.followUp("F")
      yield* agent.steer("S")
      yield* TestClock.adjust("1 hour")
      const { messages } = yield* Fiber.join(run)
      assert.deepStrictEqual(texts(messages), ["p", "1", "S", "2", "F", "3"])
    }).pipe(withModel(
      ScriptedModel.text("1", { after: 20 }),
      ScriptedModel.text("2"),
      ScriptedModel.text("3")
    )))

  it.effect("Q1: a follow-up waits while tools go on", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      yield* agent.followUp("F")
      const events = yield* record(agent)
      const { messages } = yield* agent.prompt("p")
      assert.strictEqual(Transcript.print(messages), "U A[a] R(a) A[b] R(b) A U A")
      assert.lengthOf(ofType(events, "agent_start"), 1, "one run")
    }).pipe(withModel(
      ScriptedModel.calls([["a", "echo", {}]]),
      ScriptedModel.calls([["b", "echo", {}]]),
      fine,
      fine
    )))

  it.effect("Q1 L4: a follow-up is read when the tools ask to stop", () =>
    Effect.gen(function*() {
      const stop = Tools.dynamic("stop", {
        description: "d",
        parameters: { type: "object" },
        execute: () => Effect.succeed(Tools.result({ terminate: true }))
      })
      const agent = yield* Agent.make({ tools: [stop] })
      yield* agent.followUp("F")
      const { messages, outcome } = yield* agent.prompt("p")
      assert.strictEqual(Transcript.print(messages), "U A[a] R(a) U A")
      assert.deepInclude(outcome, { _tag: "Completed", by: "Stop" })
    }).pipe(withModel(ScriptedModel.calls([["a", "stop", {}]]), fine)))
})

describe("Modes", () => {
  const three = (agent: Agent.AgentService, queue: "steer" | "followUp") =>
    Effect.forEach(["1", "2", "3"], (text) => agent[queue](text))

  for (const queue of ["steer", "followUp"] as const) {
    it.effect(`Q2 B33: ${queue}: one at a time is the default`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({})
        yield* three(agent, queue)
        const { messages } = yield* agent.prompt("p")
        assert.strictEqual(Transcript.print(messages), queue === "steer" ? "U U A U A U A" : "U A U A U A U A")
        assert.deepStrictEqual(said(messages), ["p", "1", "2", "3"])
      }).pipe(withEndlessModel(fine)))

    it.effect(`Q2 B33: ${queue}: all of them in one turn`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make(queue === "steer" ? { steeringMode: "all" } : { followUpMode: "all" })
        yield* three(agent, queue)
        const { messages } = yield* agent.prompt("p")
        assert.strictEqual(Transcript.print(messages), queue === "steer" ? "U U U U A" : "U A U U U A")
        assert.deepStrictEqual(said(messages), ["p", "1", "2", "3"])
      }).pipe(withEndlessModel(fine)))

    it.effect(`Q2 B33: ${queue}: a mode changed during the run counts for the next drain`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({})
        yield* three(agent, queue)
        const set = (mode: Queues.QueueMode) =>
          queue === "steer" ? agent.setSteeringMode(mode) : agent.setFollowUpMode(mode)
        yield* agent.subscribe((event) =>
          event.type === "message_end" && Messages.text(event.message) === "1" ? set("all") : undefined
        )
        const { messages } = yield* agent.prompt("p")
        assert.strictEqual(Transcript.print(messages), queue === "steer" ? "U U A U U A" : "U A U A U U A")
        assert.deepStrictEqual(said(messages), ["p", "1", "2", "3"])
      }).pipe(withEndlessModel(fine)))
  }

  it.effect("Q2: peek shows what the next drain would take, steering first, and takes nothing", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      assert.deepStrictEqual(yield* agent.peek, [])
      yield* three(agent, "followUp")
      assert.deepStrictEqual(texts(yield* agent.peek), ["1"])
      yield* agent.setFollowUpMode("all")
      assert.deepStrictEqual(texts(yield* agent.peek), ["1", "2", "3"])
      yield* agent.steer("s")
      yield* agent.steer("t")
      assert.deepStrictEqual(texts(yield* agent.peek), ["s"])
      yield* agent.setSteeringMode("all")
      assert.deepStrictEqual(texts(yield* agent.peek), ["s", "t"])
      assert.deepStrictEqual(yield* waiting(agent), [["s", "t"], ["1", "2", "3"]])
    }).pipe(withModel()))

  it.effect("Q2: what is cleared is given back, oldest first, and is gone", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const fill = Effect.andThen(three(agent, "followUp"), three(agent, "steer"))
      yield* fill
      assert.deepStrictEqual(texts(yield* agent.clearSteering), ["1", "2", "3"])
      assert.deepStrictEqual(yield* waiting(agent), [[], ["1", "2", "3"]])
      assert.deepStrictEqual(texts(yield* agent.clearFollowUps), ["1", "2", "3"])
      yield* agent.followUp("f")
      yield* agent.steer("s")
      assert.deepStrictEqual(texts(yield* agent.clearQueues), ["s", "f"])
      assert.deepStrictEqual(yield* waiting(agent), [[], []])
      assert.deepStrictEqual(yield* agent.clearQueues, [])
      const { messages } = yield* agent.prompt("p")
      assert.deepStrictEqual(said(messages), ["p"])
    }).pipe(withModel(fine)))

  it.effect("Q2: a list that was given out does not change when the queue does", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ steeringMode: "all" })
      yield* agent.steer("1")
      const { steering } = yield* agent.queued
      const peeked = yield* agent.peek
      yield* agent.steer("2")
      assert.deepStrictEqual([texts(steering), texts(peeked)], [["1"], ["1"]])
    }).pipe(withModel()))
})

describe("The queues as values", () => {
  it.effect("Q1: other code offers to the queues directly", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ steeringMode: "all" })
      yield* Queue.offer(agent.followUps, Messages.user("F"))
      yield* Queue.offerAll(agent.steering, [Messages.user("S"), Messages.user("T")])
      assert.deepStrictEqual(yield* waiting(agent), [["S", "T"], ["F"]])
      const { messages } = yield* agent.prompt("p")
      assert.deepStrictEqual(said(messages), ["p", "S", "T", "F"])
    }).pipe(withEndlessModel(fine)))

  it.effect("Q1: a stream can feed the steering queue during a run", () =>
    Effect.gen(function*() {
      const { begun, open, tool } = yield* gated()
      const agent = yield* Agent.make({ tools: [tool] })
      const run = yield* Effect.forkChild(agent.prompt("p"))
      yield* begun
      yield* Stream.make("S", "T").pipe(
        Stream.map((text) => Messages.user(text)),
        Stream.runForEach((message) => Queue.offer(agent.steering, message))
      )
      yield* open()
      const { messages } = yield* Fiber.join(run)
      assert.strictEqual(Transcript.print(messages), "U A[a] R(a) U A U A")
    }).pipe(withModel(ScriptedModel.calls([["a", "gated", {}]]), fine, fine)))

  it.effect("Q2: a queue alone can be used the same way", () =>
    Effect.gen(function*() {
      const queue = yield* Queues.make()
      queue.offer(Messages.user("1"))
      yield* Queue.offer(queue.queue, Messages.user("2"))
      assert.deepStrictEqual([queue.size, texts(queue.peek()), texts(queue.messages)], [2, ["1"], ["1", "2"]])
      assert.deepStrictEqual(texts(queue.take()), ["1"])
      queue.putBack([Messages.user("0"), Messages.user("1")])
      queue.mode = "all"
      assert.deepStrictEqual(texts(queue.take()), ["0", "1", "2"])
      assert.deepStrictEqual([queue.take(), queue.clear(), queue.size], [[], [], 0])
    }))

  it.effect("Q2: ten thousand messages are drained one at a time, in order", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const sent = Array.from({ length: 5000 }, (_, index) => index)
      yield* Effect.forEach(sent, (index) => agent.steer(`s${index}`), { discard: true })
      yield* Effect.forEach(sent, (index) => agent.followUp(`f${index}`), { discard: true })
      const { messages, outcome } = yield* agent.prompt("p")
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(said(messages), [
        "p",
        ...sent.map((index) => `s${index}`),
        ...sent.map((index) => `f${index}`)
      ])
      assert.lengthOf(messages.filter(({ role }) => role === "assistant"), 10_000)
    }).pipe(
      Effect.scoped,
      Effect.provide(StreamFn.layer(() => Stream.fromArray([{ type: "start" }, { type: "done" }])))
    ), 60_000)
})

describe("Nothing is lost or delivered twice", () => {
  it.effect("Q3 B23: what waits when a run is aborted stays in its queue, in order", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      yield* Effect.forEach(["1", "2"], (text) => agent.steer(text))
      yield* Effect.forEach(["3", "4"], (text) => agent.followUp(text))
      yield* agent.abort
      const { messages, outcome } = yield* Fiber.join(run)
      assert.strictEqual(outcome._tag, "Aborted")
      assert.strictEqual(Transcript.print(messages), "U A[a] R(a!)")
      assert.deepStrictEqual(yield* waiting(agent), [["1", "2"], ["3", "4"]])
      const next = yield* agent.prompt("again")
      assert.deepStrictEqual(said(next.messages), ["again", "1", "2", "3", "4"])
    }).pipe(withModel(calling, fine, fine, fine, fine)))

  it.effect("Q3: what waits when the model fails stays in its queue", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.followUp("F")
      yield* agent.steer("S")
      yield* agent.steer("T")
      const { messages, outcome } = yield* agent.prompt("go")
      assert.strictEqual(outcome._tag, "Failed")
      assert.deepStrictEqual(said(messages), ["go", "S"], "the first was delivered before the request")
      assert.deepStrictEqual(yield* waiting(agent), [["T"], ["F"]])
    }).pipe(withModel(ScriptedModel.error("down"))))

  /** A run that holds one steering message while `prepareNextTurn` waits for an hour, with another one in the queue. */
  const holding = <A, E>(
    queue: "steer" | "followUp",
    test: (
      agent: Agent.AgentService,
      run: Fiber.Fiber<{ messages: Messages.Transcript }, unknown>
    ) => Effect.Effect<A, E>,
    hook: Effect.Effect<void, string> = Effect.sleep("1 hour")
  ) =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.subscribe((event) =>
        event.type === "message_end" && event.message.role === "assistant" && Messages.text(event.message) === "first"
          ? Effect.forEach(["1", "2"], (text) => agent[queue](text))
          : undefined
      )
      const events = yield* record(agent)
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("1 second")
      const result = yield* test(agent, run)
      assertBalanced(events)
      return result
    }).pipe(
      withModel(ScriptedModel.text("first"), fine, fine),
      Effect.provide(Hooks.layer(Hooks.prepareNextTurn(() => hook)))
    )

  for (const queue of ["steer", "followUp"] as const) {
    const inQueue = (texts: ReadonlyArray<string>) => queue === "steer" ? [texts, []] : [[], texts]

    it.effect(`Q3: ${queue}: while the run holds a message it is not peeked, not listed and not cleared`, () =>
      holding(queue, (agent, run) =>
        Effect.gen(function*() {
          assert.deepStrictEqual(texts(yield* agent.peek), ["2"])
          assert.deepStrictEqual(yield* waiting(agent), inQueue(["2"]))
          assert.deepStrictEqual(texts(yield* agent.clearQueues), ["2"])
          yield* TestClock.adjust("3 hours")
          const { messages } = yield* Fiber.join(run)
          assert.deepStrictEqual(said(messages), ["go", "1"])
        })))

    it.effect(`Q3 B23: ${queue}: what was read but not emitted goes back to the front when the run is aborted`, () =>
      holding(queue, (agent, run) =>
        Effect.gen(function*() {
          yield* agent[queue]("3")
          yield* agent.abort
          const { messages } = yield* Fiber.join(run)
          assert.deepStrictEqual(said(messages), ["go"])
          assert.deepStrictEqual(yield* waiting(agent), inQueue(["1", "2", "3"]))
        })))

    it.effect(`Q3 H5: ${queue}: what was read but not emitted goes back to the front when a hook fails`, () =>
      holding(
        queue,
        (agent, run) =>
          Effect.gen(function*() {
            yield* TestClock.adjust("1 hour")
            const { messages } = yield* Fiber.join(run)
            assert.strictEqual(Transcript.print(messages), "U A A{error}")
            assert.deepStrictEqual(yield* waiting(agent), inQueue(["1", "2"]))
          }),
        Effect.andThen(Effect.sleep("1 minute"), Effect.fail("broke"))
      ))
  }

  it.effect("Q3: one message that is queued twice is delivered twice", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ steeringMode: "all" })
      const message = Messages.user("twice")
      yield* agent.steer(message)
      yield* agent.steer(message)
      yield* Queue.offerAll(agent.followUps, [message, message])
      const { messages } = yield* agent.prompt("go")
      assert.deepStrictEqual(said(messages), ["go", "twice", "twice", "twice", "twice"])
    }).pipe(withEndlessModel(fine)))

  it.effect("Q3: one object that is posted twice to a queue has two receipts", () =>
    Effect.gen(function*() {
      const queue = yield* Queues.make("all")
      const message = Messages.user("twice")
      const receipts = [queue.post("1", message, true), queue.post("2", message, true)]
      const first = queue.messages[0]!
      assert.isTrue(queue.withdraw("2"))
      assert.deepStrictEqual(queue.messages, [first])
      queue.delivered(queue.take()[0]!, 3)
      assert.deepStrictEqual(yield* Effect.forEach(receipts, ({ delivered }) => delivered), [
        Queues.Delivery.Delivered({ turn: 3 }),
        Queues.Delivery.Withdrawn()
      ])
    }), 1000)

  for (const at of ["message_start", "message_end"] as const) {
    it.effect(`Q3 I4: an abort at the ${at} of a queued message leaves it in the transcript and the others in the queue`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ steeringMode: "all" })
        yield* Effect.forEach(["1", "2", "3"], (text) => agent.steer(text))
        yield* agent.subscribe((event) =>
          event.type === at && Messages.text(event.message) === "2" ? agent.abort : undefined
        )
        const events = yield* record(agent)
        yield* agent.prompt("go")
        assertBalanced(events)
        assert.deepStrictEqual(said(yield* agent.messages), ["go", "1", "2"])
        assert.deepStrictEqual(yield* waiting(agent), [["3"], []])
        assert.lengthOf(yield* ScriptedModel.requests, 0)
      }).pipe(withModel(fine)))
  }

  for (let at = 0; at <= 260; at += 20) {
    it.effect(`Q3 I4: aborted at ${at}, every message is in the transcript or in a queue, once and in order`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ tools: [slow] })
        const events = yield* record(agent)
        const sent = ["1", "2", "3", "4"]
        yield* Effect.forEach(sent, (text) => agent.steer(text))
        yield* agent.followUp("5")
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(at)
        yield* Effect.forkChild(agent.abort)
        yield* TestClock.adjust("1 hour")
        const { messages } = yield* Fiber.join(run)
        const [steering, followUps] = yield* waiting(agent)
        assert.deepStrictEqual([...said(messages), ...steering, ...followUps], ["go", ...sent, "5"])
        assertBalanced(events)
      }).pipe(
        withEndlessModel((_, index) =>
          index % 2 === 0
            ? ScriptedModel.calls([[`c${index}`, "slow", { ms: 20 }]], { after: 20 })
            : ScriptedModel.text("x", { after: 20 })
        ),
        Effect.provide(Hooks.layer(
          Hooks.prepareNextTurn(() => Effect.sleep(20)),
          Hooks.finishTurn(() => Effect.sleep(20))
        ))
      ))
  }
})
