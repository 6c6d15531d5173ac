import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, type Events, Messages } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { assertBalanced, line, logged, ofType, record, settled, withModel } from "./utils/agents.ts"
import { echo, slow, tool, untyped } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")
const working = tool("working", ({ update }) => Effect.as(update("half"), "done"))
const calling = ScriptedModel.calls([["a", "working", {}]])

/** A run with every kind of event. */
const script = [calling, fine]
const everything = { tools: [working], systemPrompt: "s" }

/** The events of the script when nobody interferes. */
const undisturbed = Effect.gen(function*() {
  const agent = yield* Agent.make(everything)
  const events = yield* record(agent)
  yield* agent.prompt("go")
  return events.map(line)
}).pipe(withModel(...script))

class Name extends Context.Service<Name, { readonly name: string }>()("test/Listeners/Name") {}

describe("Listeners", () => {
  it.effect("H3: are told in the order of subscription, one event at a time, each awaited", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make(everything)
      const notes: Array<string> = []
      const listener = (name: string, millis: number) =>
        agent.subscribe((event) =>
          Effect.sync(() => notes.push(`${name} begins ${line(event)}`)).pipe(
            Effect.andThen(Effect.sleep(millis)),
            Effect.andThen(Effect.sync(() => notes.push(`${name} ends ${line(event)}`)))
          )
        )
      yield* listener("one", 30)
      yield* listener("two", 0)
      yield* listener("three", 10)
      yield* settled(agent.prompt("go"))
      const lines = yield* undisturbed
      assert.deepStrictEqual(
        notes,
        lines.flatMap((line) =>
          ["one", "two", "three"].flatMap((name) => [`${name} begins ${line}`, `${name} ends ${line}`])
        )
      )
    }).pipe(withModel(...script)))

  it.effect("H3: the loop waits for them", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      yield* agent.subscribe(() => Effect.sleep(100))
      const times: Array<string> = []
      yield* agent.subscribe((event) =>
        Effect.map(Clock.currentTimeMillis, (now) => times.push(`${now} ${line(event)}`))
      )
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(times.slice(0, 4), [
        "100 agent_start",
        "200 turn_start",
        "300 message_start U",
        "400 message_end U"
      ])
      assert.strictEqual((yield* ScriptedModel.requests)[0]!.at, 400)
    }).pipe(withModel(fine)))

  it.effect("H3 (events-not-serialized): one event at a time, also with parallel tools and slow listeners", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [working, slow] })
      let inside = 0
      let most = 0
      const seen: ReadonlyArray<Array<string>> = [[], []]
      for (const [index, millis] of [[0, 7], [1, 3]] as const) {
        yield* agent.subscribe((event) =>
          Effect.gen(function*() {
            inside++
            most = Math.max(most, inside)
            yield* Effect.sleep(millis)
            inside--
            seen[index]!.push(line(event))
          })
        )
      }
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual([inside, most], [0, 1])
      assert.deepStrictEqual(seen[0], seen[1], "the same order for everybody")
      assert.lengthOf(seen[0]!.filter((line) => line.startsWith("tool_execution_end")), 20)
    }).pipe(withModel(
      ScriptedModel.calls(
        Array.from(
          { length: 20 },
          (_, index) => index % 2 === 0 ? [`c${index}`, "working", {}] : [`c${index}`, "slow", { ms: index }]
        )
      ),
      fine
    )))

  it.effect("H3: may ask for services, which are those of the place where they subscribe", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const seen = new Set<string>()
      yield* agent.subscribe(() => Name.useSync(({ name }) => seen.add(name))).pipe(
        Effect.provideService(Name, { name: "subscriber" })
      )
      yield* agent.prompt("go").pipe(Effect.provideService(Name, { name: "prompt" }))
      assert.deepStrictEqual([...seen], ["subscriber"])
    }).pipe(withModel(fine)))

  it.effect("H3: two subscriptions of one function are two listeners, each with its own end", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      let count = 0
      const listener = (event: Events.AgentEvent) => {
        if (event.type === "agent_start") count++
      }
      const first = yield* agent.subscribe(listener)
      yield* agent.subscribe(listener)
      yield* agent.prompt("one")
      assert.strictEqual(count, 2)
      yield* first
      yield* first
      yield* agent.prompt("two")
      assert.strictEqual(count, 3)
    }).pipe(withModel(fine, fine)))

  const looks: ReadonlyArray<[string, (look: Effect.Effect<void>) => Effect.Effect<void> | void]> = [
    ["at once", (look) => Effect.runSync(look)],
    ["as an effect", (look) => look],
    ["after a while", (look) => Effect.andThen(Effect.sleep(10), look)]
  ]
  for (const [when, look] of looks) {
    it.effect(`H3 B103: see a state that already includes the event, ${when}`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make(everything)
        const seen: Array<string> = []
        yield* agent.subscribe((event) =>
          look(
            Effect.map(agent.state, ({ errorMessage, isStreaming, messages, pendingToolCalls, streamingMessage }) => {
              const pending = [...pendingToolCalls].join()
              const streaming = streamingMessage === undefined ? "-" : Transcript.print([streamingMessage])
              seen.push(
                `${line(event)}: ${Transcript.print(messages)} | ${streaming} | ${pending} | ${errorMessage ?? "-"}`
              )
              assert.isTrue(isStreaming, line(event))
              if (event.type === "message_start" || event.type === "message_update") {
                assert.deepStrictEqual(streamingMessage, event.message)
              }
              if (event.type === "message_end") assert.deepStrictEqual(messages.at(-1), event.message)
            })
          )
        )
        const [, log] = yield* logged(settled(agent.prompt("go")))
        assert.deepStrictEqual(log, [], "no assertion of the listener failed")
        assert.deepStrictEqual(seen.filter((entry) => !entry.startsWith("message_update")), [
          "agent_start:  | - |  | -",
          "turn_start:  | - |  | -",
          "message_start U:  | U |  | -",
          "message_end U: U | - |  | -",
          "message_start A{pending}: U | A{pending} |  | -",
          "message_end A[a]: U A[a] | - |  | -",
          "tool_execution_start a: U A[a] | - | a | -",
          "tool_execution_update a half: U A[a] | - | a | -",
          "tool_execution_end a: U A[a] | - |  | -",
          "message_start R(a): U A[a] | R(a) |  | -",
          "message_end R(a): U A[a] R(a) | - |  | -",
          "turn_end: U A[a] R(a) | - |  | -",
          "turn_start: U A[a] R(a) | - |  | -",
          "message_start A{pending}: U A[a] R(a) | A{pending} |  | -",
          "message_end A{error}: U A[a] R(a) A{error} | - |  | -",
          "turn_end: U A[a] R(a) A{error} | - |  | down",
          "agent_end Failed: U A[a] R(a) A{error} | - |  | down"
        ])
        const { errorMessage, isStreaming } = yield* agent.state
        assert.deepStrictEqual([errorMessage, isStreaming], ["down", false])
      }).pipe(withModel(calling, ScriptedModel.error("down", { partial: "x" }))))
  }
})

describe("A listener that breaks", () => {
  const hostile = new Error("hidden")
  Object.defineProperty(hostile, "message", {
    get: () => {
      throw new Error("getter")
    }
  })
  const ways: ReadonlyArray<[string, () => Effect.Effect<unknown, unknown>, boolean]> = [
    ["fails", () => Effect.fail("listener broke"), true],
    ["dies", () => Effect.die(new Error("listener broke")), true],
    ["throws", () => {
      throw new Error("listener broke")
    }, true],
    ["throws nothing", () => {
      // oxlint-disable-next-line typescript/only-throw-error -- anything can be thrown
      throw undefined
    }, false],
    ["rejects", () => Effect.promise(() => Promise.reject(new Error("listener broke"))), true],
    ["fails after a while", () => Effect.andThen(Effect.sleep(10), Effect.fail("listener broke")), true],
    ["interrupts itself", () => Effect.interrupt, false],
    ["dies with an error whose message cannot be read", () => Effect.die(hostile), false],
    ["returns a number", () => untyped(5), false]
  ]
  for (const [how, broken, told] of ways) {
    it.effect(`H3 B97 B98: one that always ${how} costs no message, no result and not the run`, () =>
      Effect.gen(function*() {
        const lines = yield* undisturbed
        const agent = yield* Agent.make(everything)
        const before = yield* record(agent)
        yield* agent.subscribe(() => broken())
        const after = yield* record(agent)
        const [run, log] = yield* logged(settled(agent.prompt("go")))
        assert.strictEqual(run.outcome._tag, "Completed")
        assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) A")
        assert.deepStrictEqual([before.map(line), after.map(line)], [lines, lines])
        if (told) {
          assert.lengthOf(
            log.filter((entry) => entry.includes("listener broke")),
            lines.length,
            "each failure is logged"
          )
        }
      }).pipe(withModel(...script)))
  }

  for (
    const type of [
      "agent_start",
      "turn_start",
      "message_start",
      "message_update",
      "message_end",
      "tool_execution_start",
      "tool_execution_update",
      "tool_execution_end",
      "turn_end",
      "agent_end"
    ] as const
  ) {
    it.effect(`H3 B97: one that dies at ${type} alone goes on with the next event`, () =>
      Effect.gen(function*() {
        const lines = yield* undisturbed
        const agent = yield* Agent.make(everything)
        const seen: Array<string> = []
        yield* agent.subscribe((event) => {
          seen.push(line(event))
          return event.type === type ? Effect.die("broke") : undefined
        })
        const run = yield* agent.prompt("go")
        assert.deepStrictEqual(seen, lines)
        assert.strictEqual(run.outcome._tag, "Completed")
        assert.isFalse((yield* agent.state).isStreaming)
        assert.isTrue(lines.some((line) => line.startsWith(type)), "the script has such an event")
      }).pipe(withModel(...script)))
  }
})

describe("Listeners that come and go", () => {
  it.effect("H3 (live-listener-set): one that is removed during an event is not told of it any more", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const seen: Array<string> = []
      const holder: { remove: Effect.Effect<void> } = { remove: Effect.void }
      yield* agent.subscribe((event) => event.type === "turn_start" ? holder.remove : undefined)
      holder.remove = yield* agent.subscribe((event) => {
        seen.push(event.type)
      })
      yield* agent.prompt("go")
      assert.deepStrictEqual(seen, ["agent_start"])
    }).pipe(withModel(fine)))

  it.effect("H3: one that removes itself finishes the event it has and gets no other; the others lose nothing", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const seen: Array<string> = []
      const holder: { remove: Effect.Effect<void> } = { remove: Effect.void }
      holder.remove = yield* agent.subscribe((event) =>
        holder.remove.pipe(
          Effect.andThen(Effect.sleep(10)),
          Effect.andThen(Effect.sync(() => seen.push(event.type)))
        )
      )
      const events = yield* record(agent)
      yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(seen, ["agent_start"])
      assertBalanced(events)
    }).pipe(withModel(fine)))

  it.effect("H3 (live-listener-set): one that is added during an event is told from the next one on", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const seen: Array<string> = []
      yield* agent.subscribe((event) =>
        event.type === "turn_start"
          ? agent.subscribe((event) => {
            seen.push(line(event))
          })
          : undefined
      )
      yield* agent.prompt("go")
      assert.strictEqual(seen[0], "message_start U")
      assert.strictEqual(seen.at(-1), "agent_end Completed")
    }).pipe(withModel(fine)))

  it.effect("H3: one that is added during a run is told of the rest", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(10)
      const events = yield* record(agent)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.join(run)
      assert.strictEqual(line(events[0]!), "tool_execution_end a")
      assert.strictEqual(events.at(-1)?.type, "agent_end")
    }).pipe(withModel(ScriptedModel.calls([["a", "slow", { ms: 100 }]]), fine)))

  it.effect("H3: listeners that come and go during every event leave the others in order", () =>
    Effect.gen(function*() {
      const lines = yield* undisturbed
      const agent = yield* Agent.make(everything)
      const first = yield* record(agent)
      let told = 0
      yield* agent.subscribe(() =>
        Effect.flatMap(
          agent.subscribe(() => {
            told++
          }),
          (remove) => remove
        )
      )
      const last = yield* record(agent)
      yield* agent.prompt("go")
      assert.deepStrictEqual([first.map(line), last.map(line)], [lines, lines])
      assert.strictEqual(told, 0)
    }).pipe(withModel(...script)))
})

describe("Agent.stream", () => {
  it.effect("H3: gives every event of one run, as a listener gets them", () =>
    Effect.gen(function*() {
      const lines = yield* undisturbed
      const agent = yield* Agent.make(everything)
      const events = yield* Stream.runCollect(Agent.stream(agent, "go"))
      assert.deepStrictEqual(Array.from(events, line), lines)
      assert.isFalse((yield* agent.state).isStreaming)
    }).pipe(withModel(...script)))

  it.effect("H3: loses nothing when the consumer is slow: the run waits for it", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const seen: Array<string> = []
      let ahead = 0
      const events = yield* record(agent)
      const slowly = Agent.stream(agent, "go").pipe(
        Stream.runForEach((event) =>
          Effect.andThen(
            Effect.sleep(100),
            Effect.sync(() => {
              ahead = Math.max(ahead, events.length - seen.length)
              seen.push(line(event))
            })
          )
        )
      )
      yield* settled(slowly)
      assert.deepStrictEqual(seen, events.map(line))
      assert.lengthOf(seen, 2000 + 10)
      assert.isAtMost(ahead, 500, "the run is only so far ahead")
    }).pipe(withModel(ScriptedModel.text("x".repeat(2000), { chunks: 2000, every: 1 }))))

  it.effect("H3 A1: ending it early aborts the run, and waits until it is settled", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const events = yield* record(agent)
      const taken = yield* Agent.stream(agent, "go").pipe(
        Stream.takeUntil(({ type }) => type === "tool_execution_start"),
        Stream.runCollect
      )
      assert.strictEqual(line(Array.from(taken).at(-1)!), "tool_execution_start a")
      assertBalanced(events)
      assert.strictEqual(ofType(events, "agent_end")[0]?.outcome._tag, "Aborted")
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A[a] R(a!)")
      assert.isFalse((yield* agent.state).isStreaming)
    }).pipe(withModel(ScriptedModel.calls([["a", "slow", { ms: 100 }]]))))

  it.effect("H3 A1: interrupting its consumer aborts the run", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const consumer = yield* Effect.forkChild(Stream.runDrain(Agent.stream(agent, "go")))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(consumer)
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A{aborted}")
      assert.isFalse((yield* agent.state).isStreaming)
    }).pipe(withModel(ScriptedModel.hang())))

  it.effect("H3: a consumer that fails aborts the run and keeps its own failure", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [slow] })
      const error = yield* Agent.stream(agent, "go").pipe(
        Stream.runForEach(({ type }) => type === "tool_execution_start" ? Effect.fail("consumer broke") : Effect.void),
        Effect.flip
      )
      assert.strictEqual(error, "consumer broke")
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A[a] R(a!)")
    }).pipe(withModel(ScriptedModel.calls([["a", "slow", { ms: 100 }]]))))

  it.effect("H1 H2: it fails like prompt", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const invalid = yield* Effect.flip(Stream.runCollect(Agent.stream(agent, "")))
      assert.strictEqual(invalid._tag, "InvalidPrompt")
      yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(1)
      const busy = yield* Effect.flip(Stream.runCollect(Agent.stream(agent, "go")))
      assert.strictEqual(busy._tag, "AgentBusy")
      yield* agent.abort
    }).pipe(withModel(ScriptedModel.hang())))

  it.effect("H3: it leaves no listener behind, and can be run again", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const stream = Agent.stream(agent, "go")
      for (let index = 0; index < 3; index++) {
        const events = yield* Stream.runCollect(stream)
        assertBalanced(Array.from(events))
      }
      assert.strictEqual(Transcript.print(yield* agent.messages), "U A U A U A")
    }).pipe(withModel(fine, fine, fine)))
})

describe("Agent.onText", () => {
  it.effect("H3: tells the text of responses as it comes, and nothing else", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({ tools: [echo] })
      const values: Array<string> = []
      const effects: Array<string> = []
      yield* agent.subscribe(Agent.onText((delta) => {
        values.push(delta)
      }))
      yield* agent.subscribe(Agent.onText((delta) => Effect.sync(() => effects.push(delta))))
      yield* agent.steer("a text that is not the model's")
      yield* agent.prompt("go")
      assert.deepStrictEqual(values, ["before", "one", " tw", "o"])
      assert.deepStrictEqual(effects, values)
    }).pipe(withModel(
      ScriptedModel.calls([["a", "echo", { x: "not this" }]], { text: "before", thinking: "nor this" }),
      ScriptedModel.events([
        { type: "start" },
        { type: "text_start", contentIndex: 0 },
        { type: "text_delta", contentIndex: 0, delta: "one" },
        { type: "text_delta", contentIndex: 0, delta: " tw" },
        { type: "text_delta", contentIndex: 0, delta: "o" },
        { type: "text_end", contentIndex: 0 },
        { type: "done" }
      ])
    )))

  it.effect("H3: awaits the function, which may fail or ask for services", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const seen: Array<string> = []
      yield* agent.subscribe(Agent.onText((delta) =>
        Effect.gen(function*() {
          yield* Effect.sleep(10)
          const { name } = yield* Name
          seen.push(`${name} ${delta}`)
          return yield* Effect.fail("broke")
        })
      )).pipe(Effect.provideService(Name, { name: "n" }))
      const run = yield* settled(agent.prompt("go"))
      assert.deepStrictEqual(seen, ["n fine"])
      assert.strictEqual(Messages.text(run.messages.at(-1)!), "fine")
    }).pipe(withModel(fine)))
})
