import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import {
  answers,
  answerTexts,
  assertBalanced,
  line,
  ofType,
  record,
  settled,
  toolLines,
  withModel
} from "./utils/agents.ts"
import { echo, slow, tool, untyped } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")

/** A place to note what happened and when. */
const notebook = () => {
  const notes: Array<string> = []
  const note = (text: string) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      notes.push(`${now} ${text}`)
    })
  return { notes, note }
}

/** Calls of `slow`, by id, with how long they sleep. */
const sleeps = (calls: Readonly<Record<string, number>>) =>
  ScriptedModel.calls(Object.entries(calls).map(([id, ms]) => [id, "slow", { ms }]))

describe("A parallel batch", () => {
  it.effect("T2: the gates are passed one after the other in call order, and nothing runs before the last", () =>
    Effect.gen(function*() {
      const { note, notes } = notebook()
      const noting = tool("noting", ({ toolCall }) => note(`run ${toolCall.id}`).pipe(Effect.as("done")))
      const agent = yield* Agent.make({ tools: [noting] }).pipe(Effect.provide(Hooks.layer(
        Hooks.beforeToolCall(({ toolCall }) =>
          note(`ask ${toolCall.id}`).pipe(
            Effect.andThen(Effect.sleep(toolCall.id === "a" ? 30 : 10)),
            Effect.andThen(note(`allow ${toolCall.id}`)),
            Effect.as(Hooks.allow)
          )
        )
      )))
      yield* agent.subscribe((event) =>
        event.type === "tool_execution_start" ? note(`start ${event.toolCallId}`) : undefined
      )
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(notes, [
        "0 start a",
        "0 ask a",
        "30 allow a",
        "30 start b",
        "30 ask b",
        "40 allow b",
        "40 start c",
        "40 ask c",
        "50 allow c",
        "50 run a",
        "50 run b",
        "50 run c"
      ])
    }).pipe(withModel(ScriptedModel.calls([["a", "noting", {}], ["b", "noting", {}], ["c", "noting", {}]]), fine)))

  it.effect("T2 T3 B68: ends come in completion order, results in call order after the last end", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const events = yield* record(agent)
      const run = yield* settled(agent.prompt("go"))
      const lines = events.map(line)
      assert.deepStrictEqual(lines.slice(lines.indexOf("tool_execution_start a"), lines.indexOf("turn_end")), [
        "tool_execution_start a",
        "tool_execution_start b",
        "tool_execution_start c",
        "tool_execution_end b",
        "tool_execution_end c",
        "tool_execution_end a",
        "message_start R(a)",
        "message_end R(a)",
        "message_start R(b)",
        "message_end R(b)",
        "message_start R(c)",
        "message_end R(c)"
      ])
      assert.deepStrictEqual(answerTexts(run.messages), [["a", "slept 40"], ["b", "slept 1"], ["c", "slept 20"]])
      const [turn] = ofType(events, "turn_end")
      assert.deepStrictEqual(turn?.toolResults, answers(run.messages))
      assertBalanced(events)
    }).pipe(withModel(sleeps({ a: 40, b: 1, c: 20 }), fine)))

  it.effect("T2: the calls run concurrently: the batch takes as long as the longest", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      yield* settled(agent.prompt("go"))
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(requests.map(({ at }) => at), [0, 40])
    }).pipe(withModel(sleeps({ a: 40, b: 30, c: 20 }), fine)))

  const ways: ReadonlyArray<[string, Effect.Effect<unknown>]> = [
    ["at once", Effect.void],
    ["after some yields", Effect.andThen(Effect.yieldNow, Effect.yieldNow)],
    ["through a promise", Effect.promise(() => Promise.resolve().then(() => Promise.resolve()))],
    ["after two sleeps", Effect.andThen(Effect.sleep(4), Effect.sleep(6))],
    ["after one sleep", Effect.sleep(10)],
    [
      "after a sleep and some yields",
      Effect.sleep(10).pipe(Effect.andThen(Effect.yieldNow), Effect.andThen(Effect.yieldNow))
    ]
  ]
  const toolEvents = (used: ReadonlyArray<Effect.Effect<unknown>>) =>
    Effect.gen(function*() {
      const tools = used.map((effect, index) => tool(`t${index}`, () => Effect.as(effect, "done")))
      const agent = yield* Agent.make({ tools })
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      return toolLines(events)
    }).pipe(withModel(ScriptedModel.calls([["a", "t0", {}], ["b", "t1", {}], ["c", "t2", {}]]), fine))
  const endsOf = (used: ReadonlyArray<readonly [string, Effect.Effect<unknown>]>) =>
    toolEvents(used.map(([, effect]) => effect))
  const endsInCallOrder = (used: ReadonlyArray<Effect.Effect<unknown>>) =>
    Effect.map(toolEvents(used), (lines) => {
      assert.deepStrictEqual(lines, ["start a", "start b", "start c", "end a", "end b", "end c"])
    })

  for (const [how, effect] of ways) {
    it.effect(`T2 (microtask-order): calls that all end ${how}, at one instant, end in call order`, () =>
      endsInCallOrder([effect, effect, effect]))
  }
  // Calls that end in different ways at one instant end in the order in which they do, the same every time (I7).
  for (const order of [[0, 1, 2], [2, 1, 0], [3, 4, 5], [5, 4, 3]]) {
    const used = order.map((index) => ways[index]!)
    it.effect(`T2, I7: calls that end at one instant, ${used.map(([how]) => how).join(", ")}: the same order twice`, () =>
      Effect.gen(function*() {
        const [first, second] = [yield* endsOf(used), yield* endsOf(used)]
        assert.sameMembers(first.slice(3), ["end a", "end b", "end c"])
        assert.deepStrictEqual(first, second)
      }))
  }

  it.effect("T2 H3: ends keep the order of completion when a listener is slow", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const events = yield* record(agent)
      yield* agent.subscribe((event) => event.type === "tool_execution_end" ? Effect.sleep(1000) : undefined)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(toolLines(events).slice(4), ["end d", "end b", "end c", "end a"])
    }).pipe(withModel(sleeps({ a: 40, b: 10, c: 20, d: 5 }), fine)))

  it.effect("T2: a call ends when afterToolCall has ended", () =>
    Effect.gen(function*() {
      const { note, notes } = notebook()
      const agent = yield* Agent.make({ tools: [slow] })
      yield* agent.subscribe((event) => event.type === "tool_execution_end" ? note(event.toolCallId) : undefined)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(notes, ["50 b", "110 a"])
    }).pipe(
      withModel(sleeps({ a: 10, b: 50 }), fine),
      Effect.provide(Hooks.layer(
        Hooks.afterToolCall(({ toolCall }) => toolCall.id === "a" ? Effect.asVoid(Effect.sleep(100)) : undefined)
      ))
    ))

  it.effect("T2: a call that is refused ends at its gate", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(toolLines(events), [
        "start a",
        "start b",
        "end b!",
        "start c",
        "end c!",
        "start d",
        "end d!",
        "start e",
        "end e",
        "end a"
      ])
    }).pipe(
      withModel(
        ScriptedModel.calls([
          ["a", "slow", { ms: 10 }],
          ["b", "slow", { ms: 1 }],
          ["c", "nope", {}],
          ["d", "slow", { ms: "x" }],
          ["e", "slow", { ms: 1 }]
        ]),
        fine
      ),
      Effect.provide(Hooks.layer(
        Hooks.beforeToolCall(({ toolCall }) => toolCall.id === "b" ? Hooks.block("no") : Hooks.allow)
      ))
    ))

  it.effect("T2: results join the context after the batch, for hooks too", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const look = (what: string, { context, toolCall }: Hooks.ToolCallRequest) => {
        seen.push(`${what} ${toolCall.id}: ${Transcript.print(context.messages)}`)
      }
      const hooks = Hooks.layer(
        Hooks.beforeToolCall((request) => look("before", request)),
        Hooks.afterToolCall((outcome) => look("after", outcome)),
        Hooks.finishTurn(({ context, toolResults }) => {
          seen.push(`finish ${toolResults.length}: ${Transcript.print(context.messages)}`)
        })
      )
      const agent = yield* Agent.make({ tools: [slow] }).pipe(Effect.provide(hooks))
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(seen, [
        "before a: U A[a,b]",
        "before b: U A[a,b]",
        "after b: U A[a,b]",
        "after a: U A[a,b]",
        "finish 2: U A[a,b] R(a) R(b)",
        "finish 0: U A[a,b] R(a) R(b) A"
      ])
    }).pipe(withModel(sleeps({ a: 10, b: 5 }), fine)))
})

describe("A sequential batch", () => {
  const steps = [
    "tool_execution_start a",
    "tool_execution_end a",
    "message_start R(a)",
    "message_end R(a)",
    "tool_execution_start b",
    "tool_execution_end b",
    "message_start R(b)",
    "message_end R(b)"
  ]
  const batch = (events: ReadonlyArray<Parameters<typeof line>[0]>) => {
    const lines = events.map(line)
    return lines.slice(lines.indexOf("tool_execution_start a"), lines.indexOf("turn_end"))
  }

  it.effect("T2: when the run says so, one call is over before the next starts", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow], toolExecution: "sequential" })
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(batch(events), steps)
      assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ at }) => at), [0, 50])
    }).pipe(withModel(sleeps({ a: 40, b: 10 }), fine)))

  it.effect("T2: when one of the called tools says so, all calls of the batch are sequential", () =>
    Effect.gen(function*() {
      const alone = tool("alone", () => Effect.as(Effect.sleep(5), "done"), { executionMode: "sequential" })
      const agent = yield* Agent.make({ tools: [slow, alone] })
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(batch(events), steps)
      assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ at }) => at), [0, 45])
    }).pipe(withModel(ScriptedModel.calls([["a", "slow", { ms: 40 }], ["b", "alone", {}]]), fine)))

  it.effect("T2: a tool that is not called does not make the batch sequential", () =>
    Effect.gen(function*() {
      const alone = tool("alone", () => Effect.succeed("done"), { executionMode: "sequential" })
      const agent = yield* Agent.make({ tools: [slow, alone] })
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ at }) => at), [0, 40])
    }).pipe(withModel(sleeps({ a: 40, b: 10 }), fine)))

  it.effect("T2: a tool that says parallel does not undo the run's sequential", () =>
    Effect.gen(function*() {
      const together = tool("together", () => Effect.as(Effect.sleep(10), "done"), { executionMode: "parallel" })
      const agent = yield* Agent.make({ tools: [together], toolExecution: "sequential" })
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ at }) => at), [0, 20])
    }).pipe(withModel(ScriptedModel.calls([["a", "together", {}], ["b", "together", {}]]), fine)))

  it.effect("T2: the gates of a call come after the result of the one before, whose result is not in the context yet", () =>
    Effect.gen(function*() {
      const { note, notes } = notebook()
      const agent = yield* Agent.make({ tools: [slow], toolExecution: "sequential" }).pipe(Effect.provide(Hooks.layer(
        Hooks.beforeToolCall(({ context, toolCall }) =>
          note(`ask ${toolCall.id}: ${Transcript.print(context.messages)}`).pipe(Effect.as(Hooks.allow))
        )
      )))
      yield* agent.subscribe((event) =>
        event.type === "message_end" && event.message.role === "toolResult"
          ? note(`result ${event.message.toolCallId}`)
          : undefined
      )
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(notes, ["0 ask a: U A[a,b]", "10 result a", "10 ask b: U A[a,b]", "30 result b"])
    }).pipe(withModel(sleeps({ a: 10, b: 20 }), fine)))

  it.effect("T2 T1: a refused call does not keep the next from running", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo], toolExecution: "sequential" })
      const events = yield* record(agent)
      const run = yield* agent.prompt("go")
      assert.deepStrictEqual(toolLines(events), ["start a", "end a!", "start b", "end b!", "start c", "end c"])
      assert.strictEqual(Transcript.print(run.messages), "U A[a,b,c] R(a!) R(b!) R(c) A")
    }).pipe(withModel(
      ScriptedModel.calls([["a", "nope", {}], ["b", "echo", { x: [] }], ["c", "echo", {}]]),
      fine
    )))
})

describe("toolConcurrency", () => {
  const many = (count: number, ms: number) =>
    ScriptedModel.calls(Array.from({ length: count }, (_, index) => [`c${index}`, "measured", { ms }]))

  const measured = () => {
    const state = { now: 0, most: 0, ran: 0 }
    const measuredTool = Tools.make("measured", {
      description: "Counts how many work at once.",
      parameters: Schema.Struct({ ms: Schema.Finite }),
      execute: ({ ms }) =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            state.ran++
            state.now++
            state.most = Math.max(state.most, state.now)
          }),
          () => Effect.as(Effect.sleep(ms), "done"),
          () =>
            Effect.sync(() => {
              state.now--
            })
        )
    })
    return { state, tool: measuredTool }
  }

  for (const [limit, most, time] of [[5, 5, 100], [1, 1, 500], [50, 50, 10], ["unbounded", 50, 10]] as const) {
    it.effect(`T2 B69: with ${limit} at most ${most} of 50 calls work at once, and all are answered in call order`, () =>
      Effect.gen(function*() {
        const { state, tool } = measured()
        const agent = yield* Agent.make({ tools: [tool], toolConcurrency: limit })
        const run = yield* settled(agent.prompt("go"))
        assert.deepStrictEqual(state, { now: 0, most, ran: 50 })
        assert.deepStrictEqual((yield* ScriptedModel.requests).map(({ at }) => at), [0, time])
        assert.deepStrictEqual(
          answerTexts(run.messages),
          Array.from({ length: 50 }, (_, index) => [`c${index}`, "done"] as const)
        )
      }).pipe(withModel(many(50, 10), fine)))
  }

  for (const toolConcurrency of [1, 2, "unbounded"] as const) {
    for (const toolExecution of ["parallel", "sequential"] as const) {
      for (const ids of [["a"], ["a", "b", "c"]]) {
        const batch = ScriptedModel.calls(ids.map((id) => [id, "works", {}]))
        const where = `${ids.length} ${toolExecution} with ${toolConcurrency}`
        it.effect(`T2: what a tool leaves running ends with its call (${where})`, () =>
          Effect.gen(function*() {
            const { note, notes } = notebook()
            const works = tool("works", ({ toolCall: { id } }) =>
              Effect.gen(function*() {
                yield* Effect.forkChild(Effect.onInterrupt(Effect.never, () => note(`left ${id}`)), {
                  startImmediately: true
                })
                yield* Effect.sleep(id === "a" ? 10 : 20)
                return "done"
              }))
            const agent = yield* Agent.make({ tools: [works], toolConcurrency, toolExecution })
            yield* agent.subscribe((event) => event.type === "turn_end" ? note("turn_end") : undefined)
            yield* settled(agent.prompt("go"))
            assert.deepStrictEqual(
              notes.map((text) => text.replace(/^\d+ /, "")),
              [...ids.map((id) => `left ${id}`), "turn_end", "turn_end"]
            )
            // With its own call, not with the batch.
            assert.strictEqual(notes[0], "10 left a")
          }).pipe(withModel(batch, fine)))

        it.effect(`A1: a tool that aborts its run goes on to where it waits (${where})`, () =>
          Effect.gen(function*() {
            const { note, notes } = notebook()
            const works: Tools.Tool = tool("works", () =>
              Effect.gen(function*() {
                yield* agent.abort
                yield* note("aborted")
                yield* Effect.sleep(10)
                yield* note("went on")
                return "done"
              }))
            const agent: Agent.AgentService = yield* Agent.make({ tools: [works], toolConcurrency, toolExecution })
            const { messages, outcome } = yield* settled(agent.prompt("go"))
            assert.strictEqual(outcome._tag, "Aborted")
            assert.deepStrictEqual(answerTexts(messages), ids.map((id) => [id, "! Operation aborted"] as const))
            assert.include(notes, "0 aborted")
            assert.notInclude(notes, "10 went on")
          }).pipe(withModel(batch)))

        it.effect(`T4: a tool that interrupts its fiber costs its own call (${where})`, () =>
          Effect.gen(function*() {
            const works = tool("works", ({ toolCall: { id } }) =>
              Effect.withFiber((fiber) => {
                if (id === "a") fiber.interruptUnsafe()
                return Effect.as(Effect.sleep(10), "done")
              }))
            const agent = yield* Agent.make({ tools: [works], toolConcurrency, toolExecution })
            const { messages, outcome } = yield* settled(agent.prompt("go"))
            assert.strictEqual(outcome._tag, "Completed")
            assert.deepStrictEqual(
              answerTexts(messages),
              ids.map((id) => [id, id === "a" ? "! Tool \"works\" was interrupted" : "done"] as const)
            )
          }).pipe(withModel(batch, fine)))
      }
    }
  }

  it.effect("T2 B69 A2: calls that wait for their place do not start after an abort", () =>
    Effect.gen(function*() {
      const { state, tool } = measured()
      const agent = yield* Agent.make({ tools: [tool], toolConcurrency: 5 })
      const events = yield* record(agent)
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(15)
      yield* agent.abort
      yield* TestClock.adjust("1 minute")
      const { messages } = yield* Fiber.join(run)
      assert.deepStrictEqual(state, { now: 0, most: 5, ran: 10 })
      const errors = answers(messages).map(({ isError }) => isError)
      assert.deepStrictEqual(errors, Array.from({ length: 20 }, (_, index) => index >= 5))
      assertBalanced(events)
    }).pipe(withModel(many(20, 10))))

  it.effect("T2: a thousand calls that end at once are all answered", () =>
    Effect.gen(function*() {
      const { state, tool } = measured()
      const agent = yield* Agent.make({ tools: [tool] })
      const run = yield* settled(agent.prompt("go"))
      assert.strictEqual(state.ran, 1000)
      assert.lengthOf(answers(run.messages), 1000)
    }).pipe(withModel(many(1000, 0), fine)))
})

describe("Progress", () => {
  it.effect("T3: updates are events in order, with the call and what was handed over", () =>
    Effect.gen(function*() {
      const working = tool("working", (call) =>
        Effect.gen(function*() {
          yield* call.update("one")
          yield* Effect.sleep(10)
          yield* call.update([{ type: "text", text: "two" }])
          yield* call.update({ content: [{ type: "text", text: "three" }], details: { done: 3 } })
          return "done"
        }))
      const agent = yield* Agent.make({ tools: [working] })
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(toolLines(events), ["start a", "update a one", "update a two", "update a three", "end a"])
      const updates = ofType(events, "tool_execution_update")
      assert.deepInclude(updates[2], { toolName: "working", args: {}, toolCallId: "a" })
      assert.deepStrictEqual(updates[2]!.partialResult.details, { done: 3 })
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A[a] R(a) A", "progress leaves no messages")
    }).pipe(withModel(ScriptedModel.calls([["a", "working", {}]]), fine)))

  it.effect("T3: update returns at once, and the end of the call waits until its updates are delivered", () =>
    Effect.gen(function*() {
      const { note, notes } = notebook()
      const working = tool("working", (call) =>
        call.update("one").pipe(
          Effect.andThen(call.update("two")),
          Effect.andThen(note("returned")),
          Effect.as("done")
        ))
      const agent = yield* Agent.make({ tools: [working] })
      yield* agent.subscribe((event) =>
        event.type.startsWith("tool_execution")
          ? Effect.andThen(note(`begin ${line(event)}`), Effect.sleep(100)).pipe(Effect.andThen(note("end")))
          : undefined
      )
      yield* settled(agent.prompt("go"))
      assert.sameMembers(notes, [
        "0 begin tool_execution_start a",
        "100 end",
        "100 begin tool_execution_update a one",
        "100 returned",
        "200 end",
        "200 begin tool_execution_update a two",
        "300 end",
        "300 begin tool_execution_end a",
        "400 end"
      ])
    }).pipe(withModel(ScriptedModel.calls([["a", "working", {}]]), fine)))

  it.effect("T3: a call's end waits for its own updates, and a failing tool's updates are delivered as well", () =>
    Effect.gen(function*() {
      const failing = tool("failing", (call) => Effect.andThen(call.update("so far"), Effect.fail("broke")))
      const agent = yield* Agent.make({ tools: [failing] })
      yield* agent.subscribe(() => Effect.sleep(10))
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(toolLines(events), ["start a", "update a so far", "end a!"])
    }).pipe(withModel(ScriptedModel.calls([["a", "failing", {}]]), fine)))

  it.effect("T3 B14: progress after the end is ignored, and harms neither the tool nor the run", () =>
    Effect.gen(function*() {
      let late: string | undefined
      const leaving = tool("leaving", (call) =>
        Effect.sleep(50).pipe(
          Effect.andThen(call.update("too late")),
          Effect.andThen(Effect.sync(() => {
            late = "returned"
          })),
          Effect.forkDetach,
          Effect.andThen(call.update("in time")),
          Effect.as("done")
        ))
      const agent = yield* Agent.make({ tools: [leaving, slow] })
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      assert.strictEqual(late, "returned")
      assert.deepStrictEqual(toolLines(events), ["start a", "start b", "update a in time", "end a", "end b"])
      assertBalanced(events)
    }).pipe(withModel(ScriptedModel.calls([["a", "leaving", {}], ["b", "slow", { ms: 100 }]]), fine)))

  for (
    const [name, odd] of [
      ["undefined", undefined],
      ["null", null],
      ["a number", 5],
      ["content that is a number", { content: 5 }],
      ["a list with null", [null]]
    ] as ReadonlyArray<[string, unknown]>
  ) {
    it.effect(`T3: ${name} as progress is ignored`, () =>
      Effect.gen(function*() {
        const working = tool("working", (call) =>
          call.update(untyped<Tools.ToolOutput>(odd)).pipe(Effect.andThen(call.update("good")), Effect.as("done")))
        const agent = yield* Agent.make({ tools: [working] })
        const events = yield* record(agent)
        yield* settled(agent.prompt("go"))
        assert.deepStrictEqual(toolLines(events), ["start a", "update a good", "end a"])
      }).pipe(withModel(ScriptedModel.calls([["a", "working", {}]]), fine)))
  }

  it.effect("T3: a thousand updates are all delivered before the end", () =>
    Effect.gen(function*() {
      const working = tool("working", (call) =>
        Effect.as(
          Effect.forEach(Array.from({ length: 1000 }, (_, index) => index), (index) => call.update(`${index}`)),
          "done"
        ))
      const agent = yield* Agent.make({ tools: [working] })
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      const lines = toolLines(events)
      assert.lengthOf(lines, 1002)
      assert.deepStrictEqual(
        lines.slice(1, -1),
        Array.from({ length: 1000 }, (_, index) => `update a ${index}`)
      )
    }).pipe(withModel(ScriptedModel.calls([["a", "working", {}]]), fine)))
})

describe("Siblings", () => {
  it.effect("T3 T4: whatever becomes of a call, it has one start and one end", () =>
    Effect.gen(function*() {
      const tools = [
        echo,
        tool("failing", () => Effect.fail("no")),
        tool("dying", () => Effect.die("no")),
        tool("throwing", () => {
          throw new Error("no")
        }),
        tool("interrupting", () => Effect.interrupt),
        tool("odd", () => Effect.succeed(untyped<string>(5)))
      ]
      const agent = yield* Agent.make({ tools })
      const events = yield* record(agent)
      const run = yield* settled(agent.prompt("go"))
      assertBalanced(events)
      const ids = ["a", "b", "c", "d", "e", "f", "g", "h"]
      assert.sameMembers(ofType(events, "tool_execution_end").map(({ toolCallId }) => toolCallId), ids)
      assert.deepStrictEqual(answers(run.messages).map(({ toolCallId }) => toolCallId), ids)
      assert.deepStrictEqual(answers(run.messages).map(({ isError }) => isError), [...Array(7).fill(true), false])
    }).pipe(withModel(
      ScriptedModel.calls([
        ["a", "failing", {}],
        ["b", "dying", {}],
        ["c", "throwing", {}],
        ["d", "interrupting", {}],
        ["e", "odd", {}],
        ["f", "nope", {}],
        ["g", "echo", { x: {} }],
        ["h", "echo", {}]
      ]),
      fine
    )))

  for (
    const [how, breaking] of [
      ["dies", Effect.die(new Error("broke"))],
      ["fails", Effect.fail("broke")],
      ["interrupts itself", Effect.interrupt]
    ] as const
  ) {
    it.effect(`T4 B67: a call that ${how} while its sibling works leaves the sibling alone`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({
          tools: [slow, tool("breaking", () => Effect.andThen(Effect.sleep(10), breaking))]
        })
        const events = yield* record(agent)
        const run = yield* settled(agent.prompt("go"))
        assert.deepStrictEqual(toolLines(events), ["start a", "start b", "start c", "end b!", "end a", "end c"])
        assert.strictEqual(Transcript.print(run.messages), "U A[a,b,c] R(a) R(b!) R(c) A")
        assert.strictEqual(Messages.text(answers(run.messages)[0]!), "slept 50")
        assert.strictEqual(run.outcome._tag, "Completed")
      }).pipe(withModel(
        ScriptedModel.calls([["a", "slow", { ms: 50 }], ["b", "breaking", {}], ["c", "slow", { ms: 60 }]]),
        fine
      )))
  }
})
