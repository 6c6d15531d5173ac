// @effect-diagnostics globalErrorInEffectFailure:off -- hooks may fail with anything
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, ConvertToLlm, type Errors, type Events, Hooks, Loop, Messages, StreamFn } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { assertBalanced, line, logged, ofType, record, settled, withModel } from "./utils/agents.ts"
import { echo, untyped } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")
const calling = ScriptedModel.calls([["a", "echo", { x: "1" }]])

type Kind = "transformContext" | "convertToLlm" | "apiKey" | "prepareRequest" | "prepareNextTurn" | "finishTurn"

/** A layer with one hook of a kind, which is asked by number from 1 and otherwise does nothing. */
const hooked = (kind: Kind, ask: (time: number) => Effect.Effect<never, unknown> | undefined): Layer.Layer<never> => {
  let time = 0
  const answer = <A>(value: A) => ask(++time) ?? Effect.succeed(value)
  switch (kind) {
    case "transformContext":
      return Hooks.layer(Hooks.transformContext((messages) => answer(messages)))
    case "convertToLlm":
      return ConvertToLlm.layer((messages) => answer(messages.filter(Messages.isMessage)))
    case "apiKey":
      return Hooks.layer(Hooks.apiKey(() => answer("key")))
    case "prepareRequest":
      return Hooks.layer(Hooks.prepareRequest(() => answer(undefined)))
    case "prepareNextTurn":
      return Hooks.layer(Hooks.prepareNextTurn(() => answer(undefined)))
    case "finishTurn":
      return Hooks.layer(Hooks.finishTurn(() => answer(undefined)))
  }
}

const ways: ReadonlyArray<[string, () => Effect.Effect<never, unknown>]> = [
  ["fails", () => Effect.fail("it broke")],
  ["fails later", () => Effect.andThen(Effect.sleep("1 second"), Effect.fail(new Error("it broke")))],
  ["dies", () => Effect.die(new Error("it broke"))],
  ["throws", () => {
    throw new Error("it broke")
  }],
  ["throws a string", () => {
    // oxlint-disable-next-line typescript/only-throw-error -- anything can be thrown
    throw "it broke"
  }],
  ["rejects", () => Effect.promise(() => Promise.reject(new Error("it broke")))]
]

const tail = (events: ReadonlyArray<Events.AgentEvent>, from: string): ReadonlyArray<string> => {
  const lines = events.map(line)
  return lines.slice(lines.lastIndexOf(from))
}

const assertFailed = (outcome: Errors.RunOutcome, kind: Kind): Errors.HookError => {
  assert(outcome._tag === "Failed", outcome._tag)
  assert(outcome.error._tag === "HookError", outcome.error._tag)
  assert.strictEqual(outcome.error.hook, kind)
  assert.include(outcome.error.message, "it broke")
  return outcome.error
}

describe("A hook of a request", () => {
  for (const kind of ["transformContext", "convertToLlm", "apiKey", "prepareRequest"] as const) {
    for (const [how, broken] of ways) {
      it.effect(`H5 B88 B104: ${kind} that ${how} in the first turn ends the run with a message in that turn`, () =>
        Effect.gen(function*() {
          const agent = yield* Agent.make({ thinkingLevel: "high", model: { id: "m", provider: "p" } }).pipe(
            Effect.provide(hooked(kind, (time) => time === 1 ? broken() : undefined))
          )
          const events = yield* record(agent)
          const run = yield* settled(agent.prompt("go"))
          assertFailed(run.outcome, kind)
          assertBalanced(events)
          assert.deepStrictEqual(events.map(line), [
            "agent_start",
            "turn_start",
            "message_start U",
            "message_end U",
            "message_start A{error}",
            "message_end A{error}",
            "turn_end",
            "agent_end Failed"
          ])
          const message = run.messages.at(-1)
          assert(message?.role === "assistant")
          assert.deepInclude(message, { stopReason: "error", content: [], thinkingLevel: "high", model: "m" })
          assert.include(message.errorMessage, "it broke")
          assert.deepStrictEqual(yield* agent.messages, run.messages)
          assert.include((yield* agent.state).errorMessage, "it broke")
          assert.isFalse((yield* agent.state).isStreaming)
          assert.lengthOf(yield* ScriptedModel.requests, 0)

          const again = yield* settled(agent.prompt("again"))
          assert.strictEqual(again.outcome._tag, "Completed")
          assert.strictEqual(Transcript.print((yield* ScriptedModel.requests)[0]!.messages), "U U")
        }).pipe(withModel(fine)))
    }

    it.effect(`H5: ${kind} that fails in a later turn leaves every call answered`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ tools: [echo] }).pipe(
          Effect.provide(hooked(kind, (time) => time === 2 ? Effect.fail("it broke") : undefined))
        )
        const events = yield* record(agent)
        const run = yield* agent.prompt("go")
        assertFailed(run.outcome, kind)
        assertBalanced(events)
        assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) A{error}")
        assert.deepStrictEqual(tail(events, "turn_start"), [
          "turn_start",
          "message_start A{error}",
          "message_end A{error}",
          "turn_end",
          "agent_end Failed"
        ])
        assert.strictEqual((yield* agent.prompt("again")).outcome._tag, "Completed")
      }).pipe(withModel(calling, fine)))
  }

  it.effect("H5: a key or a model is not asked for when the context cannot be made", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const agent = yield* Agent.make({}).pipe(Effect.provide(Hooks.layer(
        Hooks.transformContext(() => Effect.fail("it broke")),
        Hooks.apiKey(() => {
          seen.push("apiKey")
        })
      )))
      yield* agent.prompt("go")
      assert.deepStrictEqual(seen, [])
      yield* ScriptedModel.assertComplete
    }).pipe(withModel()))
})

describe("A hook between turns", () => {
  for (const [how, broken] of ways) {
    it.effect(`H5 B104: prepareNextTurn that ${how} ends the run with a message in a turn of its own`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ tools: [echo] }).pipe(
          Effect.provide(hooked("prepareNextTurn", (time) => time === 1 ? broken() : undefined))
        )
        const events = yield* record(agent)
        const run = yield* settled(agent.prompt("go"))
        assertFailed(run.outcome, "prepareNextTurn")
        assertBalanced(events)
        assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) A{error}")
        assert.deepStrictEqual(tail(events, "message_end R(a)"), [
          "message_end R(a)",
          "turn_end",
          "turn_start",
          "message_start A{error}",
          "message_end A{error}",
          "turn_end",
          "agent_end Failed"
        ])
        assert.strictEqual((yield* agent.prompt("again")).outcome._tag, "Completed")
      }).pipe(withModel(calling, fine)))

    it.effect(`H5 B104: finishTurn that ${how} ends the run with a message in a turn of its own`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ tools: [echo] }).pipe(
          Effect.provide(hooked("finishTurn", (time) => time === 1 ? broken() : undefined))
        )
        const events = yield* record(agent)
        const run = yield* settled(agent.prompt("go"))
        assertFailed(run.outcome, "finishTurn")
        assertBalanced(events)
        assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) A{error}")
        assert.deepStrictEqual(tail(events, "message_end R(a)"), [
          "message_end R(a)",
          "turn_end",
          "turn_start",
          "message_start A{error}",
          "message_end A{error}",
          "turn_end",
          "agent_end Failed"
        ])
        const [first] = ofType(events, "turn_end")
        assert.lengthOf(first!.toolResults, 1)
        assert.strictEqual((yield* agent.prompt("again")).outcome._tag, "Completed")
      }).pipe(withModel(calling, fine)))
  }

  it.effect("H5: finishTurn that always fails ends each run once", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({}).pipe(Effect.provide(hooked("finishTurn", () => Effect.fail("it broke"))))
      for (const prompt of ["one", "two"]) {
        const events = yield* record(agent)
        const run = yield* agent.prompt(prompt)
        assertFailed(run.outcome, "finishTurn")
        assertBalanced(events)
        assert.strictEqual(Transcript.print(run.messages), "U A A{error}")
      }
    }).pipe(withModel(fine, fine)))

  it.effect("H5 M5: finishTurn that fails on a turn that failed leaves the run Failed, with balanced events", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({}).pipe(Effect.provide(hooked("finishTurn", () => Effect.die("it broke"))))
      const events = yield* record(agent)
      const run = yield* agent.prompt("go")
      assert.strictEqual(run.outcome._tag, "Failed")
      assertBalanced(events)
    }).pipe(withModel(ScriptedModel.error("down"))))

  it.effect("H5 Q3: queued messages stay queued when a hook ends the run", () =>
    Effect.gen(function*() {
      for (const kind of ["transformContext", "prepareRequest", "prepareNextTurn", "finishTurn"] as const) {
        yield* Effect.gen(function*() {
          const agent = yield* Agent.make({ tools: [echo] }).pipe(
            Effect.provide(hooked(kind, (time) => time === 1 ? Effect.fail("it broke") : undefined))
          )
          yield* agent.subscribe((event) =>
            event.type === "message_end" && event.message.role !== "user"
              ? Effect.andThen(agent.steer(`s ${event.message.role}`), agent.followUp("f"))
              : undefined
          )
          yield* agent.followUp("f")
          const run = yield* agent.prompt("go")
          assertFailed(run.outcome, kind)
          const { followUps, steering } = yield* agent.queued
          const waiting = [...steering, ...followUps].map(Messages.text)
          const delivered = (yield* agent.messages).filter(({ role }) => role === "user").map(Messages.text).slice(1)
          assert.include(waiting, "f")
          assert.deepStrictEqual(delivered, [])
        }).pipe(withModel(calling, fine))
      }
    }))
})

describe("A hook that breaks", () => {
  const contexts: ReadonlyArray<[Kind, string]> = [
    ["transformContext", "U A{error}"],
    ["convertToLlm", "U A{error}"],
    ["apiKey", "U A{error}"],
    ["prepareRequest", "U A{error}"],
    ["prepareNextTurn", "U A[a] R(a) A{error}"],
    ["finishTurn", "U A[a] R(a) A{error}"]
  ]
  for (const [kind, shape] of contexts) {
    it.effect(`H5 B88: ${kind} fails a loop without a host in the same way`, () =>
      Effect.gen(function*() {
        const events: Array<Events.AgentEvent> = []
        const run = yield* Loop.run([Messages.user("go")], { messages: [], tools: [echo] }, {
          emit: (event) => {
            events.push(event)
          }
        }).pipe(Effect.provide(hooked(kind, (time) => time === 1 ? Effect.die(new Error("it broke")) : undefined)))
        assertFailed(run.outcome, kind)
        assertBalanced(events)
        assert.strictEqual(Transcript.print(run.messages), shape)
        assert.deepStrictEqual(ofType(events, "agent_end")[0]!.messages, run.messages)
      }).pipe(withModel(calling, fine)))

    it.effect(`H5: ${kind} that interrupts itself fails the run; nobody aborted it`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ tools: [echo] }).pipe(
          Effect.provide(hooked(kind, (time) => time === 1 ? Effect.interrupt : undefined))
        )
        const events = yield* record(agent)
        const run = yield* agent.prompt("go")
        assertBalanced(events)
        assert(run.outcome._tag === "Failed", run.outcome._tag)
        assert(run.outcome.error._tag === "HookError")
        assert.strictEqual(run.outcome.error.hook, kind)
        assert.strictEqual(Transcript.print(run.messages), shape)
      }).pipe(withModel(calling, fine)))

    it.effect(`H5: ${kind}: the error has the cause, and run.orFail fails with it`, () =>
      Effect.gen(function*() {
        const cause = new Error("it broke")
        const agent = yield* Agent.make({ tools: [echo] }).pipe(
          Effect.provide(hooked(kind, (time) => time === 1 ? Effect.fail(cause) : undefined))
        )
        const run = yield* agent.prompt("go")
        const error = assertFailed(run.outcome, kind)
        assert.strictEqual(error.cause, cause)
        const failure = yield* Effect.flip(run.orFail)
        assert(failure._tag === "RunFailed")
        assert.strictEqual(failure.error, error)
        assert.include(failure.message, kind)
      }).pipe(withModel(calling, fine)))

    it.effect(`H5: ${kind} that fails without a readable error ends the run all the same`, () =>
      Effect.gen(function*() {
        const hostile = new Error("hidden")
        Object.defineProperty(hostile, "message", {
          get: () => {
            throw new Error("getter")
          }
        })
        for (const value of [undefined, null, hostile, "", { code: 42 }]) {
          const agent = yield* Agent.make({ tools: [echo] }).pipe(
            Effect.provide(hooked(kind, (time) => time === 1 ? Effect.fail(value) : undefined))
          )
          const events = yield* record(agent)
          const { messages, outcome } = yield* agent.prompt("go")
          assertBalanced(events)
          assert(outcome._tag === "Failed" && outcome.error._tag === "HookError")
          const message = messages.at(-1)
          assert(message?.role === "assistant")
          assert.isNotEmpty(message.errorMessage)
          assert.notMatch(message.errorMessage!, /^(undefined|null|\[object)/)
        }
      }).pipe(withModel(calling, calling, calling, calling, calling)))
  }

  for (const kind of ["transformContext", "convertToLlm"] as const) {
    for (const odd of [undefined, null]) {
      it.effect(`H5: ${kind} that answers ${odd} fails the run`, () =>
        Effect.gen(function*() {
          const answer = () => untyped<ReadonlyArray<Messages.Message>>(odd)
          const agent = yield* Agent.make({}).pipe(Effect.provide(
            kind === "transformContext" ? Hooks.layer(Hooks.transformContext(answer)) : ConvertToLlm.layer(answer)
          ))
          const events = yield* record(agent)
          const { messages, outcome } = yield* agent.prompt("go")
          assertBalanced(events)
          assert.strictEqual(outcome._tag, "Failed")
          assert.strictEqual(Transcript.print(messages), "U A{error}")
          assert.lengthOf(yield* ScriptedModel.requests, 0)
        }).pipe(withModel(fine)))
    }
  }

  for (const kind of ["prepareRequest", "prepareNextTurn"] as const) {
    for (
      const [what, update] of [
        ["two tools of one name", { context: { tools: [echo, echo] } }],
        ["tools that are none", { context: { tools: [5] } }],
        ["messages that are no list", { context: { messages: 5 } }],
        ["messages that are no JSON", { context: { messages: [Messages.user("go"), { role: "note", at: 1n }] } }]
      ] as ReadonlyArray<[string, unknown]>
    ) {
      it.effect(`H5: ${kind} that answers with ${what} fails the run and names the hook`, () =>
        Effect.gen(function*() {
          const answer = () => untyped<Hooks.RequestUpdate>(update)
          const hook = kind === "prepareRequest" ? Hooks.prepareRequest(answer) : Hooks.prepareNextTurn(answer)
          const agent = yield* Agent.make({ tools: [echo] }).pipe(Effect.provide(Hooks.layer(hook)))
          const events = yield* record(agent)
          const { outcome } = yield* agent.prompt("go")
          assertBalanced(events)
          assert(outcome._tag === "Failed", outcome._tag)
          assert(outcome.error._tag === "HookError", outcome.error._tag)
          assert.strictEqual(outcome.error.hook, kind)
        }).pipe(withModel(calling, fine)))
    }
  }

  it.effect("H5 I6: prepareNextTurn cannot put a message into the transcript that does not decode", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] }).pipe(Effect.provide(Hooks.layer(
        Hooks.prepareNextTurn(() => ({ messages: [untyped({ role: "user", content: 5 })] }))
      )))
      const { outcome } = yield* agent.prompt("go")
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A[a] R(a) A{error}")
      assert(outcome._tag === "Failed" && outcome.error._tag === "HookError")
      assert.strictEqual(outcome.error.hook, "prepareNextTurn")
    }).pipe(withModel(calling, fine)))

  it.effect("H5 A3: a hook's failure that an abort overtakes is an abort", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({}).pipe(Effect.provide(
        hooked("transformContext", () => Effect.andThen(Effect.sleep("1 minute"), Effect.fail("it broke")))
      ))
      const fiber = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust("1 second")
      yield* agent.abort
      const run = yield* Fiber.join(fiber)
      assert.strictEqual(run.outcome._tag, "Aborted")
      assert.strictEqual(Transcript.print(run.messages), "U A{aborted}")
    }).pipe(withModel()))

  it.effect("H5: a defect of a hook is not a defect of prompt, and the log or the error keeps it", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({}).pipe(
        Effect.provide(hooked("transformContext", () => Effect.die(new Error("it broke"))))
      )
      const [run] = yield* logged(agent.prompt("go"))
      assert.instanceOf(assertFailed(run.outcome, "transformContext").cause, Error)
    }).pipe(withModel()))
})

describe("The set-up of a stream", () => {
  const broken: ReadonlyArray<[string, StreamFn.StreamFn["Service"]["stream"]]> = [
    ["throws", () => {
      throw new Error("it broke")
    }],
    ["returns no stream", () => untyped(5)],
    ["dies", () => Stream.die(new Error("it broke"))],
    ["dies when it is run", () =>
      Stream.suspend(() => {
        throw new Error("it broke")
      })],
    ["interrupts itself, though nobody aborted", () => Stream.fromEffect(Effect.interrupt)]
  ]
  for (const [how, stream] of broken) {
    it.effect(`H5 M5 B88: a StreamFn that ${how} ends the run with an error message in the open turn`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ thinkingLevel: "low" })
        const events = yield* record(agent)
        const run = yield* agent.prompt("go")
        assertBalanced(events)
        assert(run.outcome._tag === "Failed", run.outcome._tag)
        assert.strictEqual(run.outcome.error._tag, "ModelError")
        assert.match(Transcript.print(run.messages), how.startsWith("interrupts") ? /^U A\{\w+\}$/ : /^U A\{error\}$/)
        assert.deepInclude(run.messages.at(-1), { thinkingLevel: "low", content: [] })
        assert.lengthOf(ofType(events, "turn_end"), 1)
      }).pipe(Effect.scoped, Effect.provide(StreamFn.layer(stream))))
  }
})
