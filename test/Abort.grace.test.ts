import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Hooks } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { showAll } from "./utils/events.ts"
import { timed } from "./utils/journey.ts"
import { finish, type Setting } from "./utils/play.ts"
import { abortAfter, answers, executions, scene, shape } from "./utils/scene.ts"
import { deaf, slow, tool } from "./utils/timedTools.ts"

const { calls, error, hang, text } = ScriptedModel

/** How long the next key takes. */
const pause: Array<number> = []

describe("Abort and its grace", () => {
  describe("the deaf", () => {
    it.effect("A4: a tool that cannot be stopped is answered when the grace is over (B04)", () =>
      scene({
        responses: [calls([["a", "deaf", {}], ["b", "slow", {}]])],
        tools: [deaf("deaf", 60_000), slow("slow", 60_000)]
      }, (world) =>
        Effect.gen(function*() {
          const { at, result } = yield* abortAfter(world, 10, 1000)
          assert.strictEqual(at, 1010)
          const [left, stopped] = answers(result.messages)
          assert.match(left!, /^Operation aborted.*unknown/s)
          assert.strictEqual(stopped, "Operation aborted")
          assert.strictEqual(world.recorder.timeOf("tool_execution_end a!"), 1010)
        })))

    it.effect("A4: its late result and progress reach nobody, and the next request holds the one answer (B12, B14)", () => {
      const late = tool("late", ({ update }) =>
        Effect.uninterruptible(Effect.gen(function*() {
          yield* Effect.sleep(100)
          yield* update("late progress")
          yield* Effect.sleep(100)
          yield* update("later progress")
          return "late result"
        })))
      return scene({
        responses: [calls([["a", "late", {}]]), text("fine", { after: 120 })],
        tools: [late],
        options: { gracePeriod: 0 }
      }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          const { at } = yield* abortAfter(world, 10)
          assert.strictEqual(at, 10)
          const count = recorder.events.length
          const next = yield* Effect.forkChild(agent.prompt("again"))
          yield* TestClock.adjust("1 hour")
          assert.strictEqual((yield* Fiber.join(next)).outcome._tag, "Completed")
          assert.isFalse(recorder.shown.slice(count).some((event) => event.includes("tool_execution")))
          assert.strictEqual(yield* shape(world, ["go", "again"]), "U A[a] R(a!) U A")
          const last = (yield* ScriptedModel.requests).at(-1)
          assert.strictEqual(Transcript.print(last!.messages), "U A[a] R(a!) U")
          assert.match(answers(last!.messages).join(), /^Operation aborted/)
        }))
    })

    it.effect("A4: the rest of a stream that cannot be stopped is not read (B06)", () => {
      const log: Array<string> = []
      return scene({
        responses: [() =>
          Effect.sleep("1 minute").pipe(
            Effect.andThen(Effect.sync(() => log.push("late"))),
            Effect.as(text("never")),
            Effect.uninterruptible
          )],
        options: { gracePeriod: "100 millis" }
      }, (world) =>
        Effect.gen(function*() {
          const { at, outcome } = yield* abortAfter(world, 50, 100)
          assert.deepStrictEqual([at, outcome], [150, "Aborted"])
          assert.strictEqual(yield* shape(world), "U A{aborted}")
          yield* TestClock.adjust("1 hour")
          assert.deepStrictEqual(log, ["late"])
          assert.strictEqual(yield* shape(world), "U A{aborted}")
        }))
    })

    it.effect("A4: several of them share one grace", () =>
      scene({
        responses: [calls([["a", "deaf", {}], ["b", "deaf", {}], ["c", "deaf", {}]])],
        tools: [deaf("deaf", 60_000)],
        options: { toolExecution: "parallel" }
      }, (world) =>
        Effect.gen(function*() {
          const { at } = yield* abortAfter(world, 10, 1000)
          assert.strictEqual(at, 1010)
          assert.deepStrictEqual(executions(world.recorder).slice(-3), ["end a!", "end b!", "end c!"])
          assert.strictEqual(yield* shape(world), "U A[a,b,c] R(a!) R(b!) R(c!)")
        })))

    it.effect("A4: a finalizer that takes longer than the grace is left behind", () => {
      const log: Array<string> = []
      const finalizer = (name: string) =>
        Effect.andThen(Effect.sleep("1 minute"), Effect.sync(() => void log.push(name)))
      const polite = tool("polite", () => Effect.onInterrupt(Effect.never, () => finalizer("tool")))
      return scene(
        { responses: [calls([["a", "polite", {}]]), text("fine")], tools: [polite] },
        (world) =>
          Effect.gen(function*() {
            const { at, result } = yield* abortAfter(world, 100, 1000)
            assert.strictEqual(at, 1100)
            assert.match(answers(result.messages)[0]!, /^Operation aborted.*unknown/s)
            assert.deepStrictEqual(log, [])
            yield* TestClock.adjust("1 hour")
            assert.deepStrictEqual(log, ["tool"])
            assert.strictEqual(yield* shape(world), "U A[a] R(a!)")
          })
      )
    })

    it.effect("A4: with a grace of 0 finalizers that need no time still run", () => {
      const log: Array<string> = []
      const polite = tool(
        "polite",
        () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push("ran")))
      )
      return scene(
        { responses: [calls([["a", "polite", {}]])], tools: [polite], options: { gracePeriod: 0 } },
        (world) =>
          Effect.gen(function*() {
            const { at } = yield* abortAfter(world, 100)
            yield* TestClock.adjust("1 hour")
            assert.deepStrictEqual([at, log], [100, ["ran"]])
            assert.strictEqual(yield* shape(world), "U A[a] R(a!)")
          })
      )
    })

    it.effect("A4: the finalizer of a stream is awaited within the grace, and run once (B06)", () => {
      const log: Array<string> = []
      const slowly = Effect.andThen(Effect.sleep(300), Effect.sync(() => void log.push("closed")))
      return scene(
        { responses: [() => Effect.onInterrupt(Effect.never, () => slowly)] },
        (world) =>
          Effect.gen(function*() {
            const { at } = yield* abortAfter(world, 100, 300)
            yield* TestClock.adjust("1 hour")
            assert.deepStrictEqual([at, log], [400, ["closed"]])
            assert.strictEqual(yield* shape(world), "U A{aborted}")
          })
      )
    })

    it.effect("A4: what it does later reaches a log", () => {
      const failing = tool(
        "failing",
        () => Effect.uninterruptible(Effect.andThen(Effect.sleep("1 minute"), Effect.fail("late failure")))
      )
      return logged(
        scene(
          { responses: [calls([["a", "failing", {}]])], tools: [failing], options: { gracePeriod: 0 } },
          (world) =>
            Effect.gen(function*() {
              const { outcome } = yield* abortAfter(world, 100)
              assert.strictEqual(outcome, "Aborted")
              yield* TestClock.adjust("1 hour")
              assert.strictEqual(yield* shape(world), "U A[a] R(a!)")
            })
        )
      ).pipe(Effect.map(([, entries]) => {
        assert.isTrue(entries.some((entry) => entry.includes("late failure")), entries.join("\n"))
      }))
    })

    for (const kind of ["turn_end", "agent_end"] as const) {
      it.effect(`A4: a listener that does not come back from the ${kind} of an aborted run is left behind`, () =>
        scene({ responses: [hang(), text("fine")] }, (world) =>
          Effect.gen(function*() {
            const { agent, recorder } = world
            let busy = true
            yield* agent.subscribe((event) => busy && event.type === kind ? Effect.sleep("1 day") : undefined)
            const { at, outcome } = yield* abortAfter(world, 100, 1000)
            assert.deepStrictEqual([at, outcome], [1100, "Aborted"])
            assert.strictEqual(recorder.shown.at(-1), "agent_end Aborted")
            busy = false
            const next = yield* Effect.forkChild(agent.prompt("again"))
            yield* TestClock.adjust("1 minute")
            assert.strictEqual((yield* Fiber.join(next)).outcome._tag, "Completed")
            assert.strictEqual(yield* shape(world, ["go", "again"]), "U A{aborted} U A")
          })))
    }
  })

  describe("the closing events", () => {
    // What is told after the abort: a listener is busy at each of these events in turn.
    const closings: Record<string, readonly [Setting, transcript: string, events: number]> = {
      "of a response": [{ responses: [hang({ partial: "so far" }), text("fine")] }, "U A{aborted}", 3],
      "of a request": [
        { responses: [text("fine")], hooks: [Hooks.apiKey(() => Effect.sleep(pause.shift() ?? 0))] },
        "U A{aborted}",
        4
      ],
      "of parallel calls": [
        { responses: [calls([["a", "slow", {}], ["b", "slow", {}]]), text("fine")], tools: [slow("slow", 10_000)] },
        "U A[a,b] R(a!) R(b!)",
        8
      ]
    }
    for (const [name, [setting, transcript, events]] of Object.entries(closings)) {
      for (let n = 0; n < events; n++) {
        it.effect(`A4: a listener that does not come back from closing event ${n} ${name}`, () =>
          Effect.suspend(() => {
            pause.splice(0, pause.length, 10_000)
            return scene(setting, (world) =>
              Effect.gen(function*() {
                const { agent, recorder } = world
                let told = Number.NEGATIVE_INFINITY
                yield* agent.subscribe(() => told++ === n ? Effect.sleep("1 day") : undefined)
                const run = yield* Effect.forkChild(agent.prompt("go"))
                yield* TestClock.adjust(100)
                told = 0
                const abort = yield* Effect.forkChild(timed(agent.abort), { startImmediately: true })
                yield* TestClock.adjust(1000)
                assert.strictEqual((yield* Fiber.join(abort))[1], 1100)
                assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
                assert.strictEqual(yield* shape(world), transcript)
                const { length } = recorder.events
                const next = yield* Effect.forkChild(agent.prompt("again"))
                yield* TestClock.adjust("1 minute")
                assert.strictEqual((yield* Fiber.join(next)).outcome._tag, "Completed")
                assert.strictEqual(recorder.shown[length], "agent_start")
                // One event at a time (H3).
                assert.strictEqual(told, n + 1)
                // The busy listener has missed nothing of either run when it has come back.
                yield* TestClock.adjust("2 days")
                assert.strictEqual(told, events + recorder.events.length - length)
                assert.strictEqual(yield* shape(world, ["go", "again"]), `${transcript} U A`)
              }))
          }))
      }
    }

    it.effect("A3: the stream of a prompt gives its slow consumer everything, up to agent_end (B102)", () =>
      scene({ responses: [hang({ partial: "x".repeat(200), chunks: 200 })] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          const consumer = yield* Agent.stream(agent, "go").pipe(
            Stream.tap(() => Effect.sleep("10 seconds")),
            Stream.runCollect,
            Effect.forkChild
          )
          yield* TestClock.adjust("15 seconds")
          const abort = yield* Effect.forkChild(timed(agent.abort), { startImmediately: true })
          yield* TestClock.adjust("1 second")
          assert.strictEqual((yield* Fiber.join(abort))[1], 16_000)
          yield* TestClock.adjust("3 hours")
          const events = showAll(yield* Fiber.join(consumer))
          assert.deepStrictEqual(events.slice(-2), ["turn_end A{aborted}", "agent_end Aborted"])
          assert.deepStrictEqual(events, recorder.shown)
          yield* shape(world)
        })))

    it.effect("A1: an abort while a failed run is closing leaves a whole run", () =>
      scene({ responses: [ScriptedModel.error("reset"), text("fine")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          const unsubscribe = yield* agent.subscribe((event) => event.type === "turn_end" ? agent.abort : undefined)
          const { outcome } = yield* finish(agent.prompt("go"))
          assert.include(["Failed", "Aborted"], outcome._tag)
          assert.strictEqual(recorder.shown.at(-1), `agent_end ${outcome._tag}`)
          assert.strictEqual(yield* shape(world), "U A{error}")
          yield* unsubscribe
          yield* finish(agent.prompt("again"))
          assert.strictEqual(yield* shape(world, ["go", "again"]), "U A{error} U A")
        })))
  })

  describe("between the abort and its end", () => {
    it.effect("H1: a prompt is refused, Q3: a steer is queued and stays", () =>
      scene(
        { responses: [calls([["a", "deaf", {}]]), text("1"), text("2")], tools: [deaf("deaf", 60_000)] },
        (world) =>
          Effect.gen(function*() {
            const { agent } = world
            yield* Effect.forkChild(agent.prompt("go"))
            yield* TestClock.adjust(100)
            const abort = yield* Effect.forkChild(agent.abort, { startImmediately: true })
            yield* TestClock.adjust(500)
            assert.strictEqual((yield* Effect.flip(agent.prompt("refused")))._tag, "AgentBusy")
            yield* agent.steer("S")
            yield* agent.followUp("F")
            yield* TestClock.adjust(500)
            yield* Fiber.join(abort)
            assert.strictEqual(yield* shape(world, ["go", "S", "F"]), "U A[a] R(a!)")
            yield* finish(agent.prompt("again"))
            assert.strictEqual(yield* shape(world, ["go", "again", "S", "F"]), "U A[a] R(a!) U U A U A")
          })
      ))

    it.effect("A1: at once behind the prompt, in the same instant", () =>
      scene({ responses: [text("fine")] }, (world) =>
        Effect.gen(function*() {
          const { agent, recorder } = world
          const run = yield* Effect.forkChild(agent.prompt("go"), { startImmediately: true })
          yield* agent.abort
          const { outcome } = yield* Fiber.join(run)
          assert.strictEqual(recorder.shown.at(-1), `agent_end ${outcome._tag}`)
          const expected = outcome._tag === "Aborted" ? "U A{aborted}" : "U A"
          assert.strictEqual(yield* shape(world), expected)
        })))
  })

  describe("finishTurn for the open turn", () => {
    it.effect("A3: is asked once; its answer is ignored, and what it steers stays queued", () => {
      const seen: Array<string> = []
      const held: { agent?: Agent.AgentService } = {}
      return scene({
        responses: [calls([["a", "slow", {}]])],
        tools: [slow("slow", 1000)],
        hooks: [
          Hooks.finishTurn(({ message, newMessages, toolResults }) => {
            seen.push(`${Transcript.print([message, ...toolResults])} of ${Transcript.print(newMessages)}`)
            return Effect.as(held.agent!.steer("S"), "continue" as const)
          }),
          Hooks.prepareNextTurn(() => void seen.push("prepareNextTurn"))
        ]
      }, (world) =>
        Effect.gen(function*() {
          held.agent = world.agent
          const { outcome } = yield* abortAfter(world, 100)
          assert.strictEqual(outcome, "Aborted")
          assert.deepStrictEqual(seen, ["A[a] R(a!) of U A[a] R(a!)"])
          assert.strictEqual(yield* shape(world, ["go", "S"]), "U A[a] R(a!)")
        }))
    })

    const slowly: Record<string, Effect.Effect<undefined, unknown>> = {
      "takes longer than the grace": Effect.as(Effect.sleep("1 day"), undefined),
      "takes longer than the grace and is deaf": Effect.uninterruptible(Effect.as(Effect.sleep("1 day"), undefined))
    }
    for (const [name, hook] of Object.entries(slowly)) {
      it.effect(`A3: one that ${name} is not waited for any longer`, () =>
        scene({ responses: [hang()], hooks: [Hooks.finishTurn(() => hook)] }, (world) =>
          Effect.gen(function*() {
            const { at, outcome } = yield* abortAfter(world, 100, 1000)
            assert.deepStrictEqual([at, outcome], [1100, "Aborted"])
            assert.strictEqual(yield* shape(world), "U A{aborted}")
          })))
    }

    it.effect("A3, I5: one that is not waited for any longer is interrupted", () => {
      const log: Array<string> = []
      const hook = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push("interrupted")))
      return scene({ responses: [hang()], hooks: [Hooks.finishTurn(() => hook)] }, (world) =>
        Effect.gen(function*() {
          yield* abortAfter(world, 100, 1000)
          assert.deepStrictEqual(log, ["interrupted"])
          assert.strictEqual(yield* shape(world), "U A{aborted}")
        }))
    })

    it.effect("A3, I5: one that is asked when the grace is over is interrupted at once", () => {
      const log: Array<string> = []
      const hook = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push("interrupted")))
      return scene({
        responses: [calls([["a", "deaf", {}]])],
        tools: [deaf("deaf", 60_000)],
        hooks: [Hooks.finishTurn(() => hook)]
      }, (world) =>
        Effect.gen(function*() {
          const { at, outcome } = yield* abortAfter(world, 100, 1000)
          assert.deepStrictEqual([at, outcome, log], [1100, "Aborted", ["interrupted"]])
          assert.strictEqual(yield* shape(world), "U A[a] R(a!)")
        }))
    })

    it.effect("A1: one that is asked when the grace is over is inside of the run", () => {
      const log: Array<string> = []
      const held: { agent?: Agent.AgentService } = {}
      const hook = Effect.suspend(() => Effect.flip(held.agent!.awaitIdle)).pipe(
        Effect.map(({ reason }) => void log.push(reason))
      )
      return scene({
        responses: [calls([["a", "deaf", {}]])],
        tools: [deaf("deaf", 60_000)],
        hooks: [Hooks.finishTurn(() => Effect.orDie(hook))]
      }, (world) =>
        Effect.gen(function*() {
          held.agent = world.agent
          yield* abortAfter(world, 100, 1000)
          assert.deepStrictEqual(log, ["Inside"])
        }))
    })

    it.effect("A4, H5: one that works on a turn that failed is interrupted at once", () => {
      const log: Array<string> = []
      const hook = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void log.push("interrupted")))
      return scene(
        { responses: [error("overloaded")], hooks: [Hooks.finishTurn(() => hook)] },
        (world) =>
          Effect.gen(function*() {
            const { at, outcome } = yield* abortAfter(world, 100)
            assert.deepStrictEqual([at, outcome, log], [100, "Failed", ["interrupted"]])
            assert.strictEqual(yield* shape(world), "U A{error}")
          })
      )
    })

    it.effect("A4, H5: one that works on a turn that failed and fails after an abort is only logged", () => {
      const hook = Effect.uninterruptible(Effect.andThen(Effect.sleep(500), Effect.fail("hook broke")))
      return logged(
        scene({
          responses: [error("overloaded")],
          hooks: [Hooks.finishTurn(() => hook)]
        }, (world) =>
          Effect.gen(function*() {
            const { result: { outcome } } = yield* abortAfter(world, 100, 400)
            assert(outcome._tag === "Failed")
            assert.deepStrictEqual([outcome.error._tag, outcome.error.message], ["ModelError", "overloaded"])
            assert.strictEqual(yield* shape(world), "U A{error}")
          }))
      ).pipe(Effect.map(([, log]) => assert.include(log.join("\n"), "hook broke")))
    })

    it.effect("A3: one that fails changes nothing about the abort", () =>
      scene(
        { responses: [hang()], hooks: [Hooks.finishTurn(() => Effect.die("broken"))] },
        (world) =>
          Effect.gen(function*() {
            const { outcome } = yield* abortAfter(world, 100)
            assert.strictEqual(outcome, "Aborted")
            assert.strictEqual(yield* shape(world), "U A{aborted}")
            assert.strictEqual((yield* world.agent.state).errorMessage, "Request was aborted")
          })
      ))

    it.effect("A3: one within the grace is waited for", () =>
      scene(
        { responses: [hang()], hooks: [Hooks.finishTurn(() => Effect.sleep(700))] },
        (world) =>
          Effect.gen(function*() {
            const { at } = yield* abortAfter(world, 100, 700)
            assert.strictEqual(at, 800)
            assert.strictEqual(world.recorder.timeOf("turn_end A{aborted}"), 800)
          })
      ))
  })
})
