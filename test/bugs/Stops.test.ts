/** B07, B16, B18, B19: stops that come before the start, in a pause, from outside of the run, at every kind of place. */
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Schedule, Scope, Stream } from "effect"
import { getEventListeners } from "node:events"
import { Agent, Errors, type Events, Hooks, Loop, Messages, StreamFn, Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { ofType, Recorder } from "../utils/events.ts"
import { assertInvariants } from "../utils/invariants.ts"
import { nothingLives, pass, rest, subscribe, test } from "../utils/leaks.ts"
import { deaf, quick, slow, tool } from "../utils/timedTools.ts"
import { makeTrial, modes, results, type Setting, settings, type Trial } from "../utils/trial.ts"

const fine = ScriptedModel.text("fine")

const calling = (...ids: ReadonlyArray<string>) => ScriptedModel.calls(ids.map((id) => [id, id, {}]))

describe("B07 a run that is stopped before it starts makes no request", () => {
  for (const [name, setting] of settings) {
    test(`B07 the fiber is interrupted in the same tick: nothing is accepted, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, responses: [fine] })
        const run = yield* Effect.forkChild(trial.agent.prompt("hi"))
        yield* Fiber.interrupt(run)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(run)))
        assert.deepStrictEqual([yield* trial.shape, yield* trial.requests, trial.recorder.events], ["", 0, []])
        yield* trial.run("again")
        assert.strictEqual(yield* trial.shape, "U A")
      }))

    test(`B07 (A2) on a signal that was aborted before: aborted at once, the prompt stays, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, responses: [ScriptedModel.text("late", { after: 10 })] })
        const services = yield* Effect.context()
        // Effect begins a fiber before it looks at the signal: the run may have made its request.
        const run = Effect.runForkWith(services)(trial.prompt("hi"), { signal: AbortSignal.abort() })
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(run)))
        assert.strictEqual(yield* trial.shape, "U A{aborted}")
        const requests = yield* trial.requests
        assert.isAtMost(requests, trial.recorder.events.length > 0 && setting.audience === "waiting" ? 0 : 1)
        yield* trial.nothingFollows
      }))

    test(`B07 in a region that is interrupted already: nothing is accepted, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, responses: [fine] })
        const run = yield* Effect.forkChild(Effect.uninterruptibleMask((restore) =>
          Effect.withFiber((fiber) => {
            fiber.interruptUnsafe()
            return restore(trial.agent.prompt("hi"))
          })
        ))
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(run)))
        assert.deepStrictEqual([yield* trial.shape, yield* trial.requests, trial.recorder.events], ["", 0, []])
      }))

    test(`B07 (A1) in a finalizer, which nothing interrupts, it runs to its end, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, responses: [ScriptedModel.text("bye", { after: 10 })] })
        const fiber = yield* Effect.forkChild(
          Effect.onInterrupt(Effect.never, () => Effect.orDie(trial.prompt("bye"))),
          {
            startImmediately: true
          }
        )
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
        yield* pass(10)
        yield* Fiber.join(interrupting)
        assert.strictEqual(yield* trial.shape, "U A")
      }))

    test(`B07 (A2, L1) aborted by a listener of agent_start: the prompt stays, ${name}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({ ...setting, responses: [fine] })
        yield* subscribe(trial.agent, (event) => event.type === "agent_start" ? trial.agent.abort : undefined)
        const [{ outcome }, at] = yield* Effect.flatMap(trial.start("hi"), Fiber.join)
        assert.deepStrictEqual([outcome._tag, at], ["Aborted", 0])
        assert.deepStrictEqual([yield* trial.shape, yield* trial.requests], ["U A{aborted}", 0])
        yield* trial.nothingFollows
      }))
  }

  test("B07 the scope of the agent has closed: no request is made, and nobody waits for ever", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const trial = yield* Scope.provide(makeTrial({ otherwise: fine }), scope)
      yield* trial.run("1")
      yield* Scope.close(scope, Exit.void)
      const late = yield* Effect.forkChild(Effect.exit(trial.agent.prompt("2")))
      yield* pass("1 hour")
      assert.isDefined(late.pollUnsafe())
      assert.strictEqual(yield* trial.requests, 1)
    }))

  test("B07 (H1) the scope of the agent has closed: prompt and continue say so, and take nothing", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const trial = yield* Scope.provide(makeTrial({ otherwise: fine }), scope)
      yield* trial.run("1")
      yield* Scope.close(scope, Exit.void)
      yield* trial.followUp("2")
      const prompting = yield* Effect.forkChild(Effect.flip(trial.agent.prompt("3")))
      const continuing = yield* Effect.forkChild(Effect.flip(trial.agent.continue))
      yield* pass("1 hour")
      for (const error of [yield* Fiber.join(prompting), yield* Fiber.join(continuing)]) {
        assert.deepStrictEqual([error._tag, error.reason], ["AgentBusy", "Closed"])
      }
      assert.deepStrictEqual([yield* trial.queued, yield* trial.requests], [["2"], 1])
      assert.strictEqual(yield* trial.shape, "U A")
    }))

  test("B07 the loop alone, interrupted in the same tick, tells nobody", () =>
    Effect.gen(function*() {
      const model = yield* ScriptedModel.make([fine])
      const recorder = new Recorder()
      const run = yield* Effect.forkChild(
        Loop.run([Messages.user("hi")], { messages: [], tools: [] }, { emit: recorder.record }).pipe(
          Effect.provideService(StreamFn.StreamFn, { stream: model.stream })
        )
      )
      yield* Fiber.interrupt(run)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(run)))
      assert.deepStrictEqual([recorder.events, yield* model.requests], [[], []])
    }))
})

describe("B16 an abort during a pause before another try", () => {
  const everyMinute = Schedule.spaced("1 minute")
  const failing = (options: { readonly retry?: Schedule.Schedule<unknown> }) => {
    const tries: Array<number> = []
    return {
      tries,
      tool: Tools.dynamic("a", {
        description: "Fails.",
        parameters: { type: "object" },
        execute: () =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => {
            tries.push(now)
            return Effect.fail("busy")
          }),
        ...options
      })
    }
  }
  const outer = tool("outer", ({ runToolCall }) => Effect.as(runToolCall({ id: "n", name: "a" }), "done"))
  /** Who tries again: the call that is asked for, and options. */
  const pauses: ReadonlyArray<readonly [name: string, called: string, own: boolean, options: Setting]> = [
    ["a tool's own schedule", "a", true, {}],
    ["the agent's schedule for tools", "a", false, { toolRetry: everyMinute }],
    ["a tool's own schedule within a time limit", "a", true, { toolTimeout: "1 hour" }],
    ["the schedule of a nested call", "outer", true, {}]
  ]
  for (const [setting, of] of settings) {
    for (const [name, called, own, options] of pauses) {
      test(`B16 (A1) ${name}, ${setting}`, () =>
        Effect.gen(function*() {
          const { tool, tries } = failing(own ? { retry: everyMinute } : {})
          const trial = yield* makeTrial({
            ...of,
            ...options,
            tools: [tool, outer],
            responses: [ScriptedModel.calls([["a", called, {}]]), fine]
          })
          const run = yield* trial.start()
          yield* pass(60_000)
          assert.deepStrictEqual(tries, [0, 60_000])
          yield* pass(1000)
          yield* trial.abort(run)
          yield* nothingLives
          assert.strictEqual(yield* trial.shape, "U A[a] R(a!)")
          yield* trial.nothingFollows
          assert.deepStrictEqual(tries, [0, 60_000])
        }))
    }

    test(`B16 (A1) a StreamFn that tries again, ${setting}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          ...of,
          wrap: (scripted) => Stream.retry(scripted, everyMinute),
          otherwise: ScriptedModel.error("busy", { reason: "Overloaded" })
        })
        const run = yield* trial.start()
        yield* pass(61_000)
        assert.strictEqual(yield* trial.requests, 2)
        yield* trial.abort(run)
        assert.strictEqual(yield* trial.shape, "U A{aborted}")
        yield* trial.nothingFollows
      }))

    test(`B16 (A1) a hook that tries again, ${setting}`, () =>
      Effect.gen(function*() {
        let tries = 0
        const trying = Effect.retry(Effect.suspend(() => Effect.fail(++tries)), everyMinute)
        const trial = yield* makeTrial({ ...of, responses: [fine], hooks: [Hooks.prepareRequest(() => trying)] })
        const run = yield* trial.start()
        yield* pass(61_000)
        yield* trial.abort(run)
        assert.strictEqual(yield* trial.shape, "U A{aborted}")
        yield* trial.nothingFollows
        assert.strictEqual(tries, 2)
      }))
  }

  test("B16 a thousand runs on one signal leave no listener on it", () =>
    Effect.gen(function*() {
      const { tool } = failing({ retry: everyMinute })
      const controller = new AbortController()
      const { signal } = controller
      const services = yield* Effect.context()
      const trials: Array<Trial> = []
      for (let index = 0; index < 1000; index++) {
        trials.push(yield* makeTrial({ audience: "nobody", tools: [tool], responses: [calling("a"), fine] }))
      }
      const runs = trials.map(({ agent }) => Effect.runForkWith(services)(agent.prompt("hi"), { signal }))
      yield* pass(1000)
      assert.isAbove(getEventListeners(signal, "abort").length, 0)
      controller.abort()
      const exits = yield* Fiber.awaitAll(runs)
      assert.strictEqual(yield* Clock.currentTimeMillis, 1000)
      assert.isTrue(exits.every(Exit.hasInterrupts))
      for (const { agent } of trials) {
        assert.deepStrictEqual(results(yield* agent.messages), ["a! Operation aborted"])
      }
      assert.lengthOf(getEventListeners(signal, "abort"), 0)
    }), 60_000)

  test("B16 a thousand runs that end by themselves leave no listener on their signal", () =>
    Effect.gen(function*() {
      const { signal } = new AbortController()
      const services = yield* Effect.context()
      const trial = yield* makeTrial({ audience: "nobody", tools: [quick("a")], otherwise: fine })
      for (let index = 0; index < 1000; index++) {
        yield* Fiber.await(Effect.runForkWith(services)(trial.agent.prompt("hi"), { signal }))
      }
      assert.lengthOf(getEventListeners(signal, "abort"), 0)
      assert.strictEqual(yield* trial.requests, 1000)
    }), 60_000)
})

describe("B18 reset, replacement and the end of the scope during a run", () => {
  const changing = "Agent is already processing. Wait for completion before changing messages."
  type Change = (agent: Agent.AgentService) => Effect.Effect<unknown, Errors.AgentBusy | Errors.AgentConfigError>
  const changes: ReadonlyArray<readonly [name: string, change: Change, message: string | undefined]> = [
    ["reset", ({ reset }) => reset, undefined],
    ["setMessages", ({ setMessages }) => setMessages([]), changing],
    ["appendMessages", ({ appendMessages }) => appendMessages([Messages.user("x")]), changing]
  ]
  const refused = (agent: Agent.AgentService, change: Change, message: string | undefined) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.suspend(() => change(agent)))
      assert.strictEqual(error._tag, "AgentBusy")
      if (message !== undefined) assert.strictEqual(error.message, message)
    }).pipe(Effect.orDie)

  const types: ReadonlyArray<Events.AgentEventType> = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_end",
    "turn_end",
    "agent_end"
  ]
  for (const [setting, of] of settings) {
    for (const [name, change, message] of changes) {
      test(`B18 (H1) ${name} from outside, in the stream and in a tool, is refused, ${setting}`, () =>
        Effect.gen(function*() {
          const trial = yield* makeTrial({
            ...of,
            tools: [slow("a", 100)],
            responses: [ScriptedModel.calls([["a", "a", {}]], { after: 100 }), fine]
          })
          const run = yield* trial.start()
          yield* trial.steer("S")
          for (const at of [10, 150]) {
            yield* pass(at)
            yield* refused(trial.agent, change, message)
          }
          yield* pass("1 hour")
          yield* Fiber.join(run)
          assert.match(yield* trial.shape, /^U U A\[a\] R\(a\) A$|^U A\[a\] R\(a\) U A$/)
        }))
    }
  }

  for (const mode of modes) {
    for (const [name, change, message] of changes) {
      test(`B18 (H1) ${name} from inside is refused at every place, ${mode}`, () =>
        Effect.gen(function*() {
          const places: Array<string> = []
          const inside: { check: (place: string) => Effect.Effect<void> } = { check: () => Effect.void }
          const check = (place: string) => Effect.suspend(() => inside.check(place))
          const trial = yield* makeTrial({
            toolExecution: mode,
            tools: [tool("a", () => Effect.as(check("tool"), "done"))],
            responses: [calling("a"), fine],
            hooks: [
              Hooks.transformContext((messages) => Effect.as(check("transformContext"), messages)),
              Hooks.beforeToolCall(() => check("beforeToolCall")),
              Hooks.afterToolCall(() => check("afterToolCall")),
              Hooks.finishTurn(() => check("finishTurn")),
              Hooks.prepareNextTurn(() => check("prepareNextTurn")),
              Hooks.prepareRequest(() => check("prepareRequest")),
              Hooks.apiKey(() => check("apiKey"))
            ]
          })
          inside.check = (place) => {
            places.push(place)
            return refused(trial.agent, change, message)
          }
          yield* subscribe(trial.agent, (event) => check(event.type))
          yield* trial.run()
          assert.strictEqual(yield* trial.shape, "U A[a] R(a) A")
          const hooks = ["transformContext", "beforeToolCall", "afterToolCall", "finishTurn", "prepareNextTurn"]
          assert.deepStrictEqual(
            new Set(places),
            new Set([...types, ...hooks, "prepareRequest", "apiKey", "tool"])
          )
        }))
    }

    test(`B18 (H6) reset after an abort clears everything, ${mode}`, () =>
      Effect.gen(function*() {
        const trial = yield* makeTrial({
          toolExecution: mode,
          systemPrompt: "Be brief.",
          tools: [slow("a", 100)],
          responses: [calling("a"), fine]
        })
        const run = yield* trial.start()
        yield* pass(10)
        yield* trial.agent.steer("S")
        yield* trial.abort(run)
        yield* trial.agent.reset
        assert.deepStrictEqual((yield* trial.agent.messages).map(({ role }) => role), ["system"])
        assert.deepStrictEqual(yield* trial.queued, [])
        const next = yield* trial.run("again")
        assert.deepStrictEqual(next.messages.map(Messages.text), ["again", "fine"])
      }))

    const disposals: ReadonlyArray<readonly [name: string, Setting, at: number, shape: string, settles: number]> = [
      ["in the stream", { tools: [] }, 5, "U A{aborted}", 0],
      ["in a tool", { tools: [slow("a", 100)] }, 50, "U A[a] R(a!)", 0],
      ["in a deaf tool", { tools: [deaf("a", 5000)] }, 50, "U A[a] R(a!)", 1000],
      [
        "in a hook",
        {
          tools: [quick("a")],
          hooks: [Hooks.beforeToolCall(() => Effect.sleep(100))]
        },
        50,
        "U A[a] R(a!)",
        0
      ]
    ]
    for (const [name, setting, at, shape, settles] of disposals) {
      test(`B18 the scope closes ${name}: it waits until everything is recorded, ${mode}`, () =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const trial = yield* Scope.provide(
            makeTrial({
              toolExecution: mode,
              responses: [ScriptedModel.calls([["a", "a", {}]], { after: 10 }), fine],
              audience: "nobody",
              ...setting
            }),
            scope
          )
          const recorder = new Recorder()
          yield* subscribe(trial.agent, recorder.record)
          const run = yield* trial.start()
          yield* pass(at)
          const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
          if (settles > 0) {
            yield* pass(settles - 1)
            assert.isUndefined(closing.pollUnsafe())
            yield* pass(1)
          } else yield* rest
          assert.isDefined(closing.pollUnsafe())
          const [{ outcome }, settledAt] = yield* Fiber.join(run)
          assert.deepStrictEqual([outcome._tag, settledAt], ["Aborted", at + settles])
          assert.strictEqual(yield* trial.shape, shape)
          assert.strictEqual(recorder.shown.at(-1), "agent_end Aborted")
          assertInvariants({ events: recorder.events })
          yield* trial.nothingFollows
        }))
    }

    test(`B18 (A1) a tool closes the scope of its own agent: nobody waits for ever, ${mode}`, () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const trial = yield* Scope.provide(
          makeTrial({
            toolExecution: mode,
            audience: "nobody",
            tools: [tool("a", () => Effect.as(Scope.close(scope, Exit.void), "done"))],
            responses: [calling("a"), fine]
          }),
          scope
        )
        const [{ outcome }] = yield* Effect.flatMap(trial.start(), Fiber.join)
        assert.strictEqual(outcome._tag, "Aborted")
        assert.strictEqual(yield* trial.shape, "U A[a] R(a!)")
      }))
  }
})

describe("B19 an aborted run has its end", () => {
  /** How the run gets to the place, where it waits from 50 on. */
  type Place = (waits: Effect.Effect<void>) => Setting & { readonly listener?: Agent.Listener }
  const listening = (type: Events.AgentEventType): Place => (waits) => ({
    listener: (event) => event.type === type ? waits : undefined
  })
  const places: ReadonlyArray<readonly [name: string, place: Place, settles: number]> = [
    ["before the first turn", listening("agent_start"), 50],
    ["in the stream", (waits) => ({ wrap: (scripted) => Stream.concat(Stream.fromEffectDrain(waits), scripted) }), 0],
    ["in beforeToolCall", (waits) => ({ hooks: [Hooks.beforeToolCall(() => waits)] }), 0],
    ["in transformContext", (waits) => ({
      hooks: [Hooks.transformContext((messages) => Effect.as(waits, messages))]
    }), 0],
    ["in a tool", (waits) => ({ tools: [tool("a", () => Effect.as(waits, "done"))] }), 0],
    ["in a listener", listening("message_update"), 50],
    ["in a listener of the call's end", listening("tool_execution_end"), 50],
    ["in a pause before another try", () => ({
      tools: [tool("a", () => Effect.fail("busy"))],
      toolRetry: Schedule.spaced("1 minute")
    }), 0],
    ["between turns", (waits) => ({ hooks: [Hooks.prepareNextTurn(() => waits)] }), 0],
    ["in finishTurn", (waits) => ({ hooks: [Hooks.finishTurn(() => waits)] }), 0]
  ]
  const response = ScriptedModel.calls([["a", "a", {}]], { text: "Now:" })
  const once = (): Effect.Effect<void> => {
    let waits = 0
    return Effect.suspend(() => ++waits > 1 ? Effect.void : Effect.sleep(100))
  }

  for (const mode of modes) {
    for (const [name, place, settles] of places) {
      for (const way of ["agent.abort", "an interruption", "the end of the scope"] as const) {
        test(`B19 (I3) ${name}, by ${way}, ${mode}`, () =>
          Effect.gen(function*() {
            const { listener, ...setting } = place(once())
            const scope = yield* Scope.make()
            const trial = yield* Scope.provide(
              makeTrial({
                toolExecution: mode,
                audience: "nobody",
                tools: [quick("a")],
                otherwise: response,
                ...setting
              }),
              scope
            )
            const { agent } = trial
            const recorder = new Recorder()
            yield* subscribe(agent, recorder.record)
            if (listener !== undefined) yield* subscribe(agent, listener)
            const run = yield* trial.start()
            yield* pass(50)
            const requests = yield* trial.requests
            const end = way === "agent.abort"
              ? agent.abort
              : way === "an interruption"
              ? Fiber.interrupt(run)
              : Scope.close(scope, Exit.void)
            const ending = yield* Effect.forkChild(Effect.andThen(end, Clock.currentTimeMillis))
            yield* pass(settles)
            assert.strictEqual(yield* Fiber.join(ending), 50 + settles)
            yield* Fiber.await(run)
            yield* trial.shape
            assertInvariants({
              events: recorder.events,
              requestsAtAbort: requests,
              requestsAtEnd: yield* trial.requests
            })
            assert.deepStrictEqual(
              ofType(recorder.events, "agent_end").map(({ outcome }) => outcome),
              [Errors.RunOutcome.Aborted()]
            )
            assert.strictEqual(recorder.shown.at(-1), "agent_end Aborted")
            yield* nothingLives
            yield* trial.nothingFollows
            yield* Scope.close(scope, Exit.void)
          }))
      }

      test(`B19 (I3) ${name}: the stream of the run's events has its end, ${mode}`, () =>
        Effect.gen(function*() {
          const { listener, ...setting } = place(once())
          const trial = yield* makeTrial({
            toolExecution: mode,
            audience: "nobody",
            tools: [quick("a")],
            otherwise: response,
            ...setting
          })
          const { agent } = trial
          if (listener !== undefined) yield* subscribe(agent, listener)
          const run = yield* Effect.forkChild(Stream.runCollect(Agent.stream(agent, "go")), { startImmediately: true })
          yield* pass(50)
          const aborting = yield* Effect.forkChild(agent.abort)
          yield* pass(settles)
          yield* Fiber.join(aborting)
          const events = yield* Fiber.join(run)
          yield* nothingLives
          assertInvariants({ events })
          assert.deepStrictEqual(
            ofType(events, "agent_end").map(({ outcome }) => outcome),
            [Errors.RunOutcome.Aborted()]
          )
        }))

      test(`B19 (I5) ${name}: whoever reads the events goes away, ${mode}`, () =>
        Effect.gen(function*() {
          const { listener, ...setting } = place(once())
          const trial = yield* makeTrial({
            toolExecution: mode,
            audience: "nobody",
            tools: [quick("a")],
            otherwise: response,
            ...setting
          })
          const { agent } = trial
          if (listener !== undefined) yield* subscribe(agent, listener)
          const recorder = new Recorder()
          yield* subscribe(agent, recorder.record)
          const run = yield* Effect.forkChild(Stream.runDrain(Agent.stream(agent, "go")), { startImmediately: true })
          yield* pass(50)
          const leaving = yield* Effect.forkChild(Fiber.interrupt(run))
          yield* pass(settles)
          assert.isDefined(leaving.pollUnsafe())
          yield* nothingLives
          assertInvariants({ events: recorder.events })
          assert.strictEqual(recorder.shown.at(-1), "agent_end Aborted")
          yield* trial.nothingFollows
        }))
    }
  }
})
