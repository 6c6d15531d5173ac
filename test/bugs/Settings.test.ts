/** B110: tools, model and the like that change while a run is under way. */
import { assert, describe } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { type Agent, Hooks, Messages, type Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { pass, subscribe, test } from "../utils/leaks.ts"
import { quick, slow, tool } from "../utils/timedTools.ts"
import { makeTrial, modes, results, type Setting, type Trial } from "../utils/trial.ts"

const fine = ScriptedModel.text("fine")

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

type Change = (agent: Agent.AgentService) => Effect.Effect<void>

/** Places of the first turn from which the host changes something. */
const places: ReadonlyArray<
  readonly [name: string, place: (changes: Effect.Effect<void>) => Setting & { readonly listener?: Agent.Listener }]
> = [
  ["a tool", (changes) => ({ tools: [tool("a", () => Effect.as(changes, "done"))] })],
  ["beforeToolCall", (changes) => ({ hooks: [Hooks.beforeToolCall(() => changes)] })],
  ["afterToolCall", (changes) => ({ hooks: [Hooks.afterToolCall(() => changes)] })],
  ["finishTurn", (changes) => ({ hooks: [Hooks.finishTurn(() => changes)] })],
  ["prepareNextTurn", (changes) => ({ hooks: [Hooks.prepareNextTurn(() => changes)] })],
  ["a listener of the response", (changes) => ({
    listener: (event) => event.type === "message_end" && event.message.role === "assistant" ? changes : undefined
  })],
  ["a listener of the turn's end", (changes) => ({
    listener: (event) => event.type === "turn_end" ? changes : undefined
  })],
  ["outside", () => ({ tools: [slow("a", 100)] })]
]

/** A run whose first turn calls `a`; the change happens once, at the place. */
const changed = Effect.fnUntraced(function*(
  name: string,
  place: typeof places[number][1],
  mode: Tools.ExecutionMode,
  change: Change,
  responses: ReadonlyArray<ScriptedModel.Response>,
  more: Setting = {}
) {
  const inside: { changes: Effect.Effect<void> } = { changes: Effect.void }
  let times = 0
  const changes = Effect.suspend(() => ++times === 1 ? inside.changes : Effect.void)
  const { listener, tools = [quick("a")], ...setting } = place(changes)
  const trial = yield* makeTrial({ toolExecution: mode, responses, ...setting, ...more, tools: [...tools, quick("b")] })
  inside.changes = change(trial.agent)
  if (listener !== undefined) yield* subscribe(trial.agent, listener)
  const run = yield* trial.start()
  yield* pass(50)
  if (name === "outside") yield* changes
  yield* pass("1 hour")
  yield* Fiber.join(run)
  assert.isAbove(times, 0)
  return trial
})

const toolNames = (trial: Trial) =>
  Effect.map(trial.model.requests, (requests) => requests.map(({ tools }) => tools.map(({ name }) => name).join("")))

describe("B110 a change during a run counts from the next request", () => {
  for (const mode of modes) {
    for (const [name, place] of places) {
      test(`B110 (H4) a tool that is added in ${name} is declared and runs, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* changed(
            name,
            place,
            mode,
            (agent) => Effect.orDie(agent.setTools([quick("a"), quick("b"), quick("u", "new")])),
            [calling("a"), calling("u"), fine]
          )
          assert.strictEqual(yield* trial.shape, "U A[a] R(a) A[u] R(u) A")
          assert.deepStrictEqual(yield* toolNames(trial), ["ab", "abu", "abu"])
          assert.include(results(yield* trial.agent.messages), "u: new")
        }))

      test(`B110 (H4) a tool that is removed in ${name} is not there any more, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* changed(
            name,
            place,
            mode,
            (agent) => Effect.orDie(agent.setTools([quick("b")])),
            [calling("a"), calling("a"), fine]
          )
          assert.strictEqual(yield* trial.shape, "U A[a] R(a) A[a] R(a!) A")
          assert.deepStrictEqual(yield* toolNames(trial), ["ab", "b", "b"])
          assert.deepStrictEqual(results(yield* trial.agent.messages), [
            "a: done",
            "a! Tool a not found. Available tools: b"
          ])
        }))

      test(`B110 (H4) the calls of the response that is at work keep their tools, changed in ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* changed(
            name,
            place,
            mode,
            (agent) => Effect.orDie(agent.setTools([quick("a", "new a"), quick("b", "new b")])),
            [calling("a", "b"), calling("a", "b"), fine]
          )
          assert.strictEqual(yield* trial.shape, "U A[a,b] R(a) R(b) A[a,b] R(a) R(b) A")
          assert.deepStrictEqual(results(yield* trial.agent.messages), [
            "a: done",
            "b: done",
            "a: new a",
            "b: new b"
          ])
        }))

      test(`B110 (H4) model and thinking level that are set in ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const trial = yield* changed(
            name,
            place,
            mode,
            (agent) => Effect.andThen(agent.setModel({ id: "m2" }), agent.setThinkingLevel("high")),
            [calling("a"), fine],
            { model: { id: "m1" } }
          )
          const requests = yield* trial.model.requests
          assert.deepStrictEqual(requests.map(({ model, thinkingLevel }) => `${model.id} ${thinkingLevel}`), [
            "m1 off",
            "m2 high"
          ])
          const answers = (yield* trial.agent.messages).filter((message) => message.role === "assistant")
          assert.deepStrictEqual(answers.map(({ model, thinkingLevel }) => `${model} ${thinkingLevel}`), [
            "m1 off",
            "m2 high"
          ])
          yield* trial.shape
        }))

      test(`B110 (H4) the way to run tools that is set in ${name}, ${mode}`, () =>
        Effect.gen(function*() {
          const other = mode === "parallel" ? "sequential" : "parallel"
          const trial = yield* changed(
            name,
            place,
            mode,
            (agent) => agent.setToolExecution(other),
            [calling("a", "b"), calling("a", "b"), fine]
          )
          yield* trial.shape
          const order = trial.recorder.shown.filter((text) => /^tool_execution_start|^message_start R/.test(text))
          const first = {
            parallel: ["start a", "start b", "R(a)", "R(b)"],
            sequential: ["start a", "R(a)", "start b", "R(b)"]
          }
          assert.deepStrictEqual(
            order.map((text) => text.replace(/^tool_execution_|^message_start /, "")),
            [...first[mode], ...first[other]]
          )
        }))
    }
  }

  test("B110 (H4) the session id counts from the next run", () =>
    Effect.gen(function*() {
      const trial = yield* changed("outside", places.at(-1)![1], "parallel", (agent) => agent.setSessionId("s2"), [
        calling("a"),
        fine,
        fine
      ], { sessionId: "s1" })
      yield* trial.run("again")
      assert.deepStrictEqual((yield* trial.model.requests).map(({ sessionId }) => sessionId), ["s1", "s1", "s2"])
    }))
})

describe("B110 a hook and the host change the same", () => {
  const hookTools = [quick("a"), quick("h", "by the hook")]
  const hostTools = [quick("a"), quick("h", "by the host")]
  const kinds = ["prepareNextTurn", "prepareRequest"] as const
  /** A hook that answers once, before the second request, after doing something. */
  const answering = (kind: typeof kinds[number], first: Effect.Effect<void>) => {
    let times = 0
    const answer = Effect.suspend(() => {
      const now = ++times === (kind === "prepareRequest" ? 2 : 1)
      return now ? Effect.as(first, { context: { tools: hookTools }, model: { id: "hook" } }) : Effect.void
    })
    return kind === "prepareRequest" ? Hooks.prepareRequest(() => answer) : Hooks.prepareNextTurn(() => answer)
  }
  const host = (agent: Agent.AgentService) =>
    Effect.orDie(Effect.andThen(agent.setTools(hostTools), agent.setModel({ id: "host" })))

  for (const kind of kinds) {
    test(`B110 (L6) what ${kind} changes lasts for the rest of the run, and not longer`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          model: { id: "first" },
          tools: [quick("a")],
          responses: [calling("a"), calling("h"), calling("a"), fine, fine],
          hooks: [answering(kind, Effect.void)]
        })
        yield* trial.run()
        assert.strictEqual(yield* trial.shape, "U A[a] R(a) A[h] R(h) A[a] R(a) A")
        yield* trial.run("again")
        yield* trial.shape
        assert.deepStrictEqual(yield* toolNames(trial), ["a", "ah", "ah", "ah", "a"])
        assert.deepStrictEqual((yield* trial.model.requests).map(({ model }) => model.id), [
          "first",
          "hook",
          "hook",
          "hook",
          "first"
        ])
      }))

    test(`B110 (L6) the host changes it before ${kind} answers: the hook's answer is later`, () =>
      Effect.gen(function*() {
        const inside: { change: Effect.Effect<void> } = { change: Effect.void }
        const trial = yield* makeTrial({
          tools: [quick("a")],
          responses: [calling("a"), calling("h"), fine],
          hooks: [answering(kind, Effect.suspend(() => inside.change))]
        })
        inside.change = host(trial.agent)
        yield* trial.run()
        yield* trial.shape
        assert.include(results(yield* trial.agent.messages), "h: by the hook")
        assert.strictEqual((yield* trial.model.requests)[1]!.model.id, "hook")
      }))

    test(`B110 (L6) the host changes it after ${kind} has answered: the host's change is later`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          tools: [quick("a")],
          responses: [calling("a"), ScriptedModel.text("2"), calling("h"), fine],
          hooks: [answering(kind, Effect.void)]
        })
        let turns = 0
        yield* subscribe(trial.agent, (event) =>
          event.type === "turn_end" && ++turns === 2
            ? Effect.andThen(host(trial.agent), trial.steer("S"))
            : undefined)
        yield* trial.run()
        yield* trial.shape
        assert.include(results(yield* trial.agent.messages), "h: by the host")
        assert.deepStrictEqual((yield* trial.model.requests).slice(1).map(({ model }) => model.id), [
          "hook",
          "host",
          "host"
        ])
      }))
  }
})
void Schema
void Messages
