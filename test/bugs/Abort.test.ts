/** Section A of the reported faults, B01 to B03: an abort while the calls of a response are under way. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { type Agent, Errors, type Events, Hooks, Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { nothingLives, pass, subscribe, test } from "../utils/leaks.ts"
import { quick, tool } from "../utils/timedTools.ts"
import { makeTrial, modes, results, type Setting, settings } from "../utils/trial.ts"

const stopped = "Operation aborted"

/** Tools that work for some time and note the calls they began. */
const working = (millis: Readonly<Record<string, number>>, executionMode?: Tools.ExecutionMode) => {
  const began: Array<string> = []
  const tools = Object.entries(millis).map(([name, ms]) =>
    tool(
      name,
      ({ toolCall }) =>
        Effect.suspend(() => {
          began.push(toolCall.id)
          return Effect.as(Effect.sleep(ms), "done")
        }),
      executionMode === undefined ? {} : { executionMode }
    )
  )
  return { began, tools }
}

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

describe("B01 an abort between the calls of a batch leaves none of them open", () => {
  const oneByOne = { a: 50, b: 50, c: 50 }
  const together = { a: 50, b: 100, c: 150 }
  /** How the calls run, how long they take, and which of them have begun when the 1st, 2nd, 3rd one works. */
  const ways: ReadonlyArray<
    readonly [string, Setting, Readonly<Record<string, number>>, Tools.ExecutionMode | undefined, ReadonlyArray<string>]
  > = [
    ["a sequential run", { toolExecution: "sequential" }, oneByOne, undefined, ["a", "ab", "abc"]],
    ["sequential tools", { toolExecution: "parallel" }, oneByOne, "sequential", ["a", "ab", "abc"]],
    ["one at a time", { toolConcurrency: 1 }, oneByOne, undefined, ["a", "ab", "abc"]],
    ["two at a time", { toolConcurrency: 2 }, together, undefined, ["ab", "abc", "abc"]],
    ["all at once", {}, together, undefined, ["abc", "abc", "abc"]]
  ]
  for (const [way, how, millis, executionMode, begun] of ways) {
    for (const [name, { audience, hooks }] of settings.slice(0, 4)) {
      for (const [index, began] of begun.entries()) {
        test(`B01 ${way}, while call ${index + 1} of 3 works, ${name.replace("parallel, ", "")}`, () =>
          Effect.gen(function*() {
            const work = working(millis, executionMode)
            const trial = yield* makeTrial({
              ...how,
              audience: audience!,
              hooks: hooks ?? [],
              tools: work.tools,
              responses: [calling("a", "b", "c"), ScriptedModel.text("fine")]
            })
            const run = yield* trial.start()
            yield* pass(20 + 50 * index)
            const { messages } = yield* trial.abort(run)
            yield* nothingLives
            const marks = ["a", "b", "c"].map((id, at) => at < index ? `R(${id})` : `R(${id}!)`)
            assert.strictEqual(yield* trial.shape, `U A[a,b,c] ${marks.join(" ")}`)
            assert.deepStrictEqual(
              results(messages),
              ["a", "b", "c"].map((id, at) => at < index ? `${id}: done` : `${id}! ${stopped}`)
            )
            assert.strictEqual(work.began.join(""), began)
            assert.strictEqual(yield* trial.requests, 1)
            yield* trial.nothingFollows
            assert.strictEqual(work.began.join(""), began)
            assert.strictEqual((yield* trial.run("again")).outcome._tag, "Completed")
            assert.strictEqual(yield* trial.shape, `U A[a,b,c] ${marks.join(" ")} U A`)
          }))
      }
    }
  }

  const picky = Tools.make("picky", {
    description: "Wants a number.",
    parameters: Schema.Struct({ n: Schema.Finite }),
    execute: () => Effect.succeed("never")
  })
  const mixed = ScriptedModel.calls([
    ["a", "a", {}],
    ["b", "nope", {}],
    ["c", "picky", { n: "x" }],
    ["d", "blocked", {}],
    ["e", "picky", "{\"n\":"],
    ["f", "f", {}]
  ])
  const guard = Hooks.beforeToolCall(({ toolCall }) => toolCall.name === "blocked" ? Hooks.block("no") : Hooks.allow)

  for (const mode of modes) {
    test(`B01 calls that would never have run are answered, too, ${mode}`, () =>
      Effect.gen(function*() {
        const { began, tools } = working({ a: 50, blocked: 1, f: 50 })
        const trial = yield* makeTrial({
          toolExecution: mode,
          tools: [...tools, picky],
          hooks: [guard],
          responses: [mixed]
        })
        const run = yield* trial.start()
        yield* pass(20)
        const { messages } = yield* trial.abort(run)
        assert.strictEqual(yield* trial.shape, "U A[a,b,c,d,e,f] R(a!) R(b!) R(c!) R(d!) R(e!) R(f!)")
        const answers = results(messages)
        if (mode === "sequential") {
          assert.deepStrictEqual(answers, ["a", "b", "c", "d", "e", "f"].map((id) => `${id}! ${stopped}`))
          assert.deepStrictEqual(began, ["a"])
        } else {
          // The gates were passed before: those calls had ended with their own errors.
          assert.deepStrictEqual([answers[0], answers[3], answers[5]], [`a! ${stopped}`, "d! no", `f! ${stopped}`])
          assert.match(answers[1]!, /^b! Tool nope not found/)
          assert.match(answers[2]!, /^c! Validation failed for tool "picky"/)
          assert.match(answers[4]!, /^e! .*not valid JSON/)
          assert.deepStrictEqual(began, ["a", "f"])
        }
        yield* trial.nothingFollows
      }))
  }
})

describe("B02 the model is not asked again after an abort", () => {
  /** A setting in which something happens at one place. */
  type Place = (happens: Effect.Effect<void>) => Setting & { readonly listener?: Agent.Listener }
  const onEvent = (type: Events.AgentEventType, role?: string): Place => (happens) => ({
    listener: (event) =>
      event.type === type && (role === undefined || ("message" in event && event.message.role === role))
        ? happens
        : undefined
  })
  /** How long a listener may still work on the event it has. */
  const places: ReadonlyArray<readonly [name: string, place: Place, shape: string, settles: number]> = [
    ["a tool", (happens) => ({ tools: [tool("a", () => Effect.as(happens, "done"))] }), "U A[a] R(a!)", 0],
    ["beforeToolCall", (happens) => ({ hooks: [Hooks.beforeToolCall(() => happens)] }), "U A[a] R(a!)", 0],
    ["afterToolCall", (happens) => ({ hooks: [Hooks.afterToolCall(() => happens)] }), "U A[a] R(a!)", 0],
    ["finishTurn", (happens) => ({ hooks: [Hooks.finishTurn(() => happens)] }), "U A[a] R(a)", 0],
    ["prepareNextTurn", (happens) => ({ hooks: [Hooks.prepareNextTurn(() => happens)] }), "U A[a] R(a)", 0],
    ["a listener of the call's start", onEvent("tool_execution_start"), "U A[a] R(a!)", 50],
    ["a listener of the call's end", onEvent("tool_execution_end"), "U A[a] R(a)", 50],
    ["a listener of its result", onEvent("message_end", "toolResult"), "U A[a] R(a)", 50],
    ["a listener of the turn's end", onEvent("turn_end"), "U A[a] R(a)", 50]
  ]
  const once = (effect: Effect.Effect<void>): Effect.Effect<void> => {
    let done = false
    return Effect.suspend(() => {
      const skip = done
      done = true
      return skip ? Effect.void : effect
    })
  }
  for (const mode of modes) {
    for (const [name, place, shape, settles] of places) {
      for (const way of ["from outside", "from inside"] as const) {
        test(`B02 (A3) aborted in ${name} ${way}, ${mode}`, () =>
          Effect.gen(function*() {
            const inside: { abort: Effect.Effect<void> } = { abort: Effect.void }
            const happens = once(way === "from outside" ? Effect.sleep(100) : Effect.suspend(() => inside.abort))
            const { listener, ...setting } = place(happens)
            const trial = yield* makeTrial({
              toolExecution: mode,
              tools: [quick("a")],
              responses: [ScriptedModel.calls([["a", "a", {}]], { after: 10 })],
              otherwise: ScriptedModel.text("done"),
              ...setting
            })
            inside.abort = trial.agent.abort
            if (listener !== undefined) yield* subscribe(trial.agent, listener)
            const run = yield* trial.start()
            yield* pass(5)
            yield* trial.steer("S")
            yield* trial.followUp("F")
            yield* pass(55)
            if (way === "from outside") yield* trial.abort(run, settles)
            const [{ outcome }] = yield* Fiber.join(run)
            assert.deepStrictEqual(outcome, Errors.RunOutcome.Aborted())
            assert.strictEqual(yield* trial.shape, shape)
            assert.strictEqual(yield* trial.requests, 1)
            assert.lengthOf(trial.heard("agent_end"), 1)
            assert.deepStrictEqual(yield* trial.queued, ["S", "F"])
            yield* trial.nothingFollows
            yield* trial.run("again")
            assert.strictEqual(yield* trial.shape, `${shape} U U A U A`)
          }))
      }
    }
  }

  for (const [name, setting] of settings) {
    test(`B02 (A2) aborted between two turns: the second one that was begun has its end, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...setting,
          tools: [quick("a")],
          responses: [calling("a"), ScriptedModel.text("done", { after: 10 })]
        })
        const run = yield* trial.start()
        yield* pass(5)
        yield* trial.abort(run)
        assert.strictEqual(yield* trial.shape, "U A[a] R(a) A{aborted}")
        assert.strictEqual(yield* trial.requests, 2)
        yield* trial.nothingFollows
      }))
  }
})

describe("B03 an abort in a hook before a call asks no further hook", () => {
  const answers: ReadonlyArray<readonly [name: string, answer: Effect.Effect<Hooks.ToolCallDecision | void, string>]> =
    [
      ["allows", Effect.succeed(Hooks.allow)],
      ["says nothing", Effect.void],
      ["allows with other arguments", Effect.succeed(Hooks.allowWith({ x: 1 }))],
      ["blocks", Effect.succeed(Hooks.block("no"))],
      ["fails", Effect.fail("broke")],
      ["dies", Effect.die("broke")],
      ["never answers", Effect.never]
    ]
  for (const mode of modes) {
    for (const hookTimeout of [undefined, "1 minute"] as const) {
      for (const [name, answer] of answers) {
        test(`B03 the hook aborts and ${name}, ${mode}${hookTimeout ? ", with a time limit for hooks" : ""}`, () =>
          Effect.gen(function*() {
            const inside: { abort: Effect.Effect<void> } = { abort: Effect.void }
            const asked: Array<string> = []
            const { began, tools } = working({ a: 1, b: 1 })
            const ask = (hook: number, then: Effect.Effect<Hooks.ToolCallDecision | void, string>) =>
              Hooks.beforeToolCall(({ toolCall }) =>
                Effect.suspend(() => {
                  asked.push(`${hook} ${toolCall.id}`)
                  return then
                })
              )
            const trial = yield* makeTrial({
              toolExecution: mode,
              hookTimeout,
              tools,
              responses: [calling("a", "b"), ScriptedModel.text("fine")],
              hooks: [
                ask(1, Effect.andThen(Effect.suspend(() => inside.abort), answer)),
                ask(2, Effect.succeed(Hooks.allow))
              ]
            })
            inside.abort = trial.agent.abort
            const [{ messages, outcome }] = yield* Effect.flatMap(trial.start(), Fiber.join)
            assert.strictEqual(outcome._tag, "Aborted")
            assert.strictEqual(yield* trial.shape, "U A[a,b] R(a!) R(b!)")
            assert.deepStrictEqual(results(messages), [`a! ${stopped}`, `b! ${stopped}`])
            assert.deepStrictEqual([asked, began], [["1 a"], []])
            yield* trial.nothingFollows
            assert.deepStrictEqual([asked, began, yield* trial.requests], [["1 a"], [], 1])
          }))
      }
    }

    const pairs: ReadonlyArray<
      readonly [kind: string, make: (asked: Effect.Effect<void>) => Hooks.Hook, shape: string, requests: number]
    > = [
      [
        "transformContext",
        (asked) => Hooks.transformContext((messages) => Effect.as(asked, messages)),
        "U A{aborted}",
        0
      ],
      ["apiKey", (asked) => Hooks.apiKey(() => asked), "U A{aborted}", 0],
      ["prepareRequest", (asked) => Hooks.prepareRequest(() => asked), "U A{aborted}", 0],
      ["afterToolCall", (asked) => Hooks.afterToolCall(() => asked), "U A[a,b] R(a!) R(b!)", 1],
      ["prepareNextTurn", (asked) => Hooks.prepareNextTurn(() => asked), "U A[a,b] R(a) R(b)", 1]
    ]
    for (const hookTimeout of [undefined, "1 minute"] as const) {
      for (const [kind, make, shape, requests] of pairs) {
        test(
          `B03 the first of two ${kind} hooks aborts, ${mode}${hookTimeout ? ", with a time limit for hooks" : ""}`,
          () =>
            Effect.gen(function*() {
              const inside: { abort: Effect.Effect<void> } = { abort: Effect.void }
              const asked: Array<number> = []
              const note = (hook: number) => Effect.sync(() => void asked.push(hook))
              const trial = yield* makeTrial({
                toolExecution: mode,
                hookTimeout,
                tools: [quick("a"), quick("b")],
                responses: [calling("a", "b")],
                hooks: [make(Effect.andThen(note(1), Effect.suspend(() => inside.abort))), make(note(2))]
              })
              inside.abort = trial.agent.abort
              yield* trial.run()
              assert.strictEqual(yield* trial.shape, shape)
              assert.deepStrictEqual([asked, yield* trial.requests], [[1], requests])
              yield* trial.nothingFollows
            })
        )
      }
    }

    test(`B03 the preparation of arguments aborts: no hook is asked, ${mode}`, () =>
      Effect.gen(function*() {
        const inside: { abort: Effect.Effect<void> } = { abort: Effect.void }
        const ran: Array<string> = []
        const prepared = Tools.dynamic("a", {
          description: "Aborts.",
          parameters: { type: "object" },
          prepareArguments: (args) => Effect.as(Effect.suspend(() => inside.abort), args),
          execute: () => Effect.sync(() => `ran ${ran.push("a")}`)
        })
        const trial = yield* makeTrial({
          toolExecution: mode,
          tools: [prepared],
          responses: [ScriptedModel.calls([["a", "a", {}], ["b", "a", {}]])],
          hooks: [Hooks.beforeToolCall(({ toolCall }) => void ran.push(`hook ${toolCall.id}`))]
        })
        inside.abort = trial.agent.abort
        yield* trial.run()
        assert.strictEqual(yield* trial.shape, "U A[a,b] R(a!) R(b!)")
        assert.deepStrictEqual(ran, [])
      }))
  }
})
