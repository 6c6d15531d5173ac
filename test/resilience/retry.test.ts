/** Trying again: when, how often, how long after, and what is told of the attempts that failed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule, Schema } from "effect"
import { Agent, Budget, type Errors, Messages, type StreamFn, Tools } from "../../src/index.ts"
import { Resilience } from "../../src/resilience/index.ts"
import { ofType } from "../utils/events.ts"
import { ask, type Attempt, call, failure, model, Played, text, updates, whole } from "./scene.ts"

const everySecond = Schedule.spaced("1 second")

const setUp = (attempts: ReadonlyArray<Attempt>, options: Resilience.RetryOptions = { schedule: everySecond }) => {
  const played = new Played()
  return { played, layer: model(attempts, played).pipe(Resilience.retry(options)) }
}

const note = Tools.make("note", {
  description: "Notes.",
  parameters: Schema.Struct({}),
  execute: () => Effect.succeed("noted")
})

const failed = (outcome: Errors.RunOutcome): Errors.ModelError => {
  assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
  return outcome.error
}

describe("A response that fails and comes on the second attempt", () => {
  const usage = { ...Messages.emptyUsage, input: 3, totalTokens: 3 }

  /** Where an attempt may fail, and what listeners are told until the second one begins. */
  const failures: ReadonlyArray<readonly [name: string, attempt: Attempt, told: ReadonlyArray<string>]> = [
    ["before anything arrived", [failure()], []],
    ["after its start", [{ type: "start" }, failure()], ["retract 2: it is Overloaded"]],
    ["in the middle of a text", [...text("half"), failure()], ["text_start", "half", "retract 2: it is Overloaded"]],
    [
      "in the middle of a call",
      [...call("a").slice(0, 3), failure()],
      ["toolcall_start", "toolcall_delta", "retract 2: it is Overloaded"]
    ],
    [
      "between two blocks",
      [...whole("one").slice(0, -1), { type: "thinking_start", contentIndex: 1 }, failure()],
      ["text_start", "one", "text_end", "thinking_start", "retract 2: it is Overloaded"]
    ],
    [
      "without a final event",
      text("cut"),
      ["text_start", "cut", "retract 2: The model's stream ended without a final event"]
    ],
    [
      "by an error event",
      [...text("half"), { type: "error", error: failure(), errorMessage: "it is Overloaded", usage }],
      ["text_start", "half", "retract 2: it is Overloaded"]
    ]
  ]
  for (const [name, attempt, told] of failures) {
    it.effect(`is told and stored once, failing ${name}`, () => {
      const { layer, played } = setUp([attempt, whole("all of it")])
      return Effect.gen(function*() {
        const answer = yield* ask()
        assert.strictEqual(answer.result.outcome._tag, "Completed")
        assert.strictEqual(Messages.text(answer.last), "all of it")
        assert.lengthOf(answer.last.content, 1)
        assert.lengthOf(
          ofType(answer.recorder.events, "message_start").filter((e) => e.message.role === "assistant"),
          1
        )
        assert.deepStrictEqual(updates(answer), [...told, "text_start", "all of it", "text_end"])
        const { message } = ofType(answer.recorder.events, "message_update").find((event) =>
          event.assistantMessageEvent.type === "retract"
        ) ?? { message: undefined }
        assert.deepStrictEqual(message?.content, told.length === 0 ? undefined : [])
        assert.deepStrictEqual(played.times, [0, 1000])
        assert.deepStrictEqual([played.open, played.mostOpen], [0, 1], "an attempt is closed before the next begins")
      }).pipe(Effect.provide(layer))
    })
  }

  it.effect("has cost what both attempts used", () =>
    Effect.gen(function*() {
      const { last, result } = yield* ask()
      assert.strictEqual(last.usage.totalTokens, 10)
      assert.strictEqual(result.usage.totalTokens, 10)
    }).pipe(Effect.provide(
      setUp([
        [...text("half"), { type: "error", error: failure(), usage }],
        whole("all", { usage: { ...usage, input: 7, totalTokens: 7 } })
      ]).layer
    )))

  it.effect("runs the calls of the attempt that succeeded, and only those", () =>
    Effect.gen(function*() {
      const { recorder } = yield* ask({ tools: [note] })
      assert.deepStrictEqual(ofType(recorder.events, "tool_execution_start").map(({ toolCallId }) => toolCallId), ["b"])
    }).pipe(Effect.provide(setUp([[...call("a").slice(0, 4), failure()], call("b"), whole("done")]).layer)))

  it.effect("is shown as a new beginning by onText", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make()
      const shown: Array<string> = []
      yield* agent.subscribe(Agent.onText((delta) => {
        shown.push(delta)
      }))
      const reasons: Array<string | undefined> = []
      yield* agent.subscribe(Agent.onText(() => {}, {
        onRetract: (reason) => {
          reasons.push(reason)
        }
      }))
      yield* agent.prompt("go")
      assert.deepStrictEqual(shown, ["half", "\n[begins again: it is Overloaded]\n", "all"])
      assert.deepStrictEqual(reasons, ["it is Overloaded"])
    }).pipe(
      Effect.scoped,
      Effect.provide(setUp([[...text("half"), failure()], whole("all")], { schedule: Schedule.recurs(1) }).layer)
    ))
})

describe("How often", () => {
  it.effect("three more times by default, longer each time; then the last error stands with what it had", () => {
    const { layer, played } = setUp(Array.from({ length: 4 }, (_, n): Attempt => [...text(`${n}`), failure()]), {})
    return Effect.gen(function*() {
      const answer = yield* ask()
      assert.strictEqual(failed(answer.result.outcome).reason, "Overloaded")
      assert.strictEqual(Messages.text(answer.last), "3")
      assert.strictEqual(answer.last.stopReason, "error")
      assert.lengthOf(played.times, 4)
      const waits = played.times.slice(1).map((time, index) => time - (played.times[index] ?? 0))
      for (const [index, base] of [500, 1000, 2000].entries()) {
        assert.isAtLeast(waits[index] ?? 0, base * 0.8 - 1)
        assert.isAtMost(waits[index] ?? 0, base * 1.2 + 1)
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect("an error event stays the end when nothing comes after it", () =>
    Effect.gen(function*() {
      const { last, result } = yield* ask()
      assert.strictEqual(failed(result.outcome).message, "as the provider said")
      assert.deepStrictEqual([last.errorMessage, last.responseId], ["as the provider said", "r1"])
    }).pipe(Effect.provide(
      setUp([[
        ...text("half"),
        {
          type: "error",
          errorMessage: "as the provider said",
          responseId: "r1",
          error: failure("Overloaded", { message: "as the provider said" })
        }
      ]], { times: 0 }).layer
    )))

  for (
    const reason of ["Authentication", "InvalidRequest", "ContextOverflow", "ProtocolViolation", "Reported"] as const
  ) {
    it.effect(`not after ${reason}`, () => {
      const { layer, played } = setUp([[failure(reason)]])
      return Effect.gen(function*() {
        assert.strictEqual(failed((yield* ask()).result.outcome).reason, reason)
        assert.lengthOf(played.times, 1)
      }).pipe(Effect.provide(layer))
    })
  }

  it.effect("for the errors that `while` names, as long as the schedule goes", () => {
    const { layer, played } = setUp([[failure("Reported")], [failure("Reported")], [failure("Reported")]], {
      schedule: Schedule.max([everySecond, Schedule.recurs(2)]),
      times: Infinity,
      while: ({ reason }) => reason === "Reported"
    })
    return Effect.gen(function*() {
      yield* ask()
      assert.deepStrictEqual(played.times, [0, 1000, 2000])
    }).pipe(Effect.provide(layer))
  })

  it.effect("L7: every attempt takes a turn of the limits", () => {
    const { layer, played } = setUp([[failure()], [failure()], whole("too late")])
    return Effect.gen(function*() {
      const { endedAt, result } = yield* ask({ limits: { turns: 2 } })
      assert.strictEqual(endedAt, 1000, "it does not wait for what it may not do")
      assert.lengthOf(played.times, 2)
      assert.strictEqual(failed(result.outcome).reason, "Overloaded")
    }).pipe(Effect.provide(layer))
  })

  it.effect("L7: of the budget around the run, too", () => {
    const { layer, played } = setUp([[failure()], whole("fine")])
    return Effect.gen(function*() {
      yield* ask()
      assert.lengthOf(played.times, 2)
      assert.strictEqual((yield* Budget.Budget)?.spent.turns, 2)
    }).pipe(Effect.provide(Layer.merge(layer, Budget.layer({ turns: 5 }))))
  })
})

describe("How long after", () => {
  it.effect("as long as the server asks for, where that is longer", () => {
    const { layer, played } = setUp([
      [failure("RateLimited", { retryAfter: 30_000 })],
      [failure("RateLimited", { retryAfter: 10 })],
      whole("fine")
    ])
    return Effect.gen(function*() {
      yield* ask()
      assert.deepStrictEqual(played.times, [0, 30_000, 31_000])
    }).pipe(Effect.provide(layer))
  })

  it.effect("not at all when the server asks for more than `maxDelay`", () => {
    const { layer, played } = setUp([[failure("RateLimited", { retryAfter: 61_000 })]])
    return Effect.gen(function*() {
      assert.strictEqual(failed((yield* ask()).result.outcome).retryAfter, 61_000)
      assert.deepStrictEqual(played.times, [0])
    }).pipe(Effect.provide(layer))
  })

  it.effect("no longer than `maxDelay` by the schedule", () => {
    const { layer, played } = setUp([[failure()], whole("fine")], {
      schedule: Schedule.spaced("1 hour"),
      maxDelay: "5 seconds"
    })
    return Effect.gen(function*() {
      yield* ask()
      assert.deepStrictEqual(played.times, [0, 5000])
    }).pipe(Effect.provide(layer))
  })
})

describe("An abort", () => {
  const attempt: Attempt = [...text("half"), 500, failure()]
  for (
    const [name, abortAt, expected, requests] of [
      ["in the first attempt", 499, "half", 1],
      ["while it waits keeps the text", 1000, "half", 1],
      ["in the second attempt", 1600, "half", 2],
      ["while it waits again", 2500, "half", 2]
    ] as const
  ) {
    it.effect(`A1: ${name}`, () => {
      const { layer, played } = setUp([attempt, attempt, whole("never")])
      return Effect.gen(function*() {
        const { endedAt, last, result } = yield* ask({ abortAt })
        assert.strictEqual(result.outcome._tag, "Aborted")
        assert.strictEqual(last.stopReason, "aborted")
        assert.strictEqual(Messages.text(last), expected)
        assert.strictEqual(endedAt, abortAt)
        assert.deepStrictEqual([played.requests.length, played.open], [requests, 0])
      }).pipe(Effect.provide(layer))
    })
  }
})

describe("Bad options", () => {
  for (
    const [options, message] of [
      [{ times: -1 }, "retry: times must be a whole number of at least 0, not -1."],
      [{ times: 1.5 }, "retry: times must be a whole number of at least 0, not 1.5."],
      [{ maxDelay: 0 }, "retry: maxDelay must be a finite duration of at least 1 ms, such as \"1 second\"."]
    ] as const
  ) {
    it.effect(JSON.stringify(options), () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Effect.provide(Effect.void, setUp([], options).layer))
        assert.deepStrictEqual([error._tag, error.message], ["AgentConfigError", message])
      }))
  }

  it.effect("a schedule alone", () =>
    Effect.gen(function*() {
      const layer: Layer.Layer<StreamFn.StreamFn, Errors.AgentConfigError> = model([[failure()], whole("fine")])
        .pipe(Resilience.retry(everySecond))
      const { endedAt } = yield* Effect.provide(ask(), layer)
      assert.strictEqual(endedAt, 1000)
    }))
})
