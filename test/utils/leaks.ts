/**
 * Tests after which nothing is left (I5): no fiber, no sleep of the test clock, no listener on an agent, no unhandled
 * rejection.
 *
 * How it finds out: every fiber tells the `Metric.FiberRuntimeMetrics` of its context when it is made and when it ends,
 * and detached fibers inherit that context, so the difference is what lives. The test clock is wrapped to count the
 * sleeps nobody has woken. The listeners of an agent are in a private field, which V8's inspector can read; an agent made
 * with {@link makeAgent} is looked at when the scope of the test is closed, so a test subscribes with {@link subscribe}.
 * All this happens after the test's own effect, and before what it forked without joining is interrupted by its end.
 *
 * What may be left behind because it ignores interruption (A4) has to wait for {@link testEnd}: it is let go when the test
 * has ended, and must be gone then.
 */
import { assert, it } from "@effect/vitest"
import { Clock, Context, Deferred, type Duration, Effect, Exit, Fiber, Metric, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { Session } from "node:inspector"
import { Agent } from "../../src/index.ts"

/** What lives in one test. */
class Living {
  fibers = 0
  readonly sleeps = new Map<symbol, number>()
  readonly agents: Array<Agent.AgentService> = []
  readonly rejections: Array<unknown> = []
  readonly end = Deferred.makeUnsafe<void>()

  readonly metrics: Metric.FiberRuntimeMetricsService = {
    recordFiberStart: () => {
      this.fibers++
    },
    recordFiberEnd: () => {
      this.fibers--
    }
  }

  readonly onRejection = (reason: unknown): void => {
    this.rejections.push(reason)
  }

  /** The clock, its sleeps counted. */
  watch(clock: Clock.Clock): Clock.Clock {
    const sleep = (duration: Duration.Duration): Effect.Effect<void> =>
      Effect.suspend(() => {
        const key = Symbol("sleep")
        this.sleeps.set(key, clock.currentTimeMillisUnsafe())
        return Effect.ensuring(clock.sleep(duration), Effect.sync(() => this.sleeps.delete(key)))
      })
    return Object.assign({}, clock, { sleep })
  }

  /** What is left, in words; nothing when nothing is. */
  left(): ReadonlyArray<string> {
    return [
      ...(this.fibers === 0 ? [] : [`${this.fibers} fibers`]),
      ...Array.from(this.sleeps.values(), (since) => `a sleep that began at ${since}`),
      ...this.rejections.map((reason) => `an unhandled rejection: ${String(reason)}`)
    ]
  }
}

const CurrentTest = Context.Reference<Living | undefined>("effect-pi/test/CurrentTest", {
  defaultValue: () => undefined
})

const current: Effect.Effect<Living> = Effect.map(CurrentTest, (living) => {
  assert(living !== undefined, "only in a test of leaks.ts")
  return living
})

/** Ends when the test has ended; see above. */
export const testEnd: Effect.Effect<void> = Effect.flatMap(current, ({ end }) => Deferred.await(end))

/** An agent whose listeners are counted when the test has ended. */
export const makeAgent: typeof Agent.make = (options) =>
  Effect.tap(Agent.make(options), (agent) => Effect.map(current, ({ agents }) => void agents.push(agent)))

/** Subscribes until the test has ended. */
export const subscribe = <E, R>(
  agent: Agent.AgentService,
  listener: Agent.Listener<E, R>,
  options?: Parameters<Agent.AgentService["subscribe"]>[1]
): Effect.Effect<void, never, R | Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(agent.subscribe(listener, options), (unsubscribe) => unsubscribe))

/** How many listeners an agent has, observers included. */
const listenerCount = (agent: Agent.AgentService): Effect.Effect<number> =>
  Effect.callback((resume) => {
    const session = new Session()
    const onAnswer = (_: Error | null, answer?: { readonly result?: { readonly value?: unknown } }): void => {
      const count = answer?.result?.value
      Reflect.deleteProperty(globalThis, "inspected")
      session.disconnect()
      resume(
        typeof count === "number"
          ? Effect.succeed(count)
          : Effect.die(new Error("the listeners of an agent are not in its field #subscribers any more"))
      )
    }
    session.connect()
    Reflect.set(globalThis, "inspected", agent)
    // As in a console, where private fields can be read.
    const expression = "inspected.#subscribers.list.length"
    session.post("Runtime.evaluate", { expression, replMode: true }, onAnswer)
  })

/** Lets everything run that can run without time. */
export const rest: Effect.Effect<void> = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: 100 }))

/** Lets time pass, once everything has run that can run before, and lets everything run then. */
export const pass = (time: Duration.Input): Effect.Effect<void> =>
  rest.pipe(Effect.andThen(TestClock.adjust(time)), Effect.andThen(rest))

/** The same, and what becomes of promises. */
const quiet = rest.pipe(
  Effect.andThen(Effect.promise(() => new Promise<void>((resolve) => void setImmediate(resolve)))),
  Effect.andThen(rest)
)

/** Nothing of the runs before lives now: what a later check would not see because it ends by itself in the meantime. */
export const nothingLives: Effect.Effect<void> = Effect.gen(function*() {
  const living = yield* current
  yield* rest
  const left = living.left()
  assert(left.length === 0, `I5: ${left.join(", ")} at a time when nothing should live`)
})

/** Runs the body of a test; fails when something is left. */
export const leakFree = <A, E, R>(body: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Scope.Scope>> =>
  Effect.suspend(() => {
    const living = new Living()
    const nothingLeft = Effect.gen(function*() {
      Deferred.doneUnsafe(living.end, Effect.void)
      yield* quiet
      const left = living.left()
      assert(left.length === 0, `I5: the test left behind ${left.join(", ")}`)
    })
    const nobodyListens = Effect.gen(function*() {
      const left = (yield* Effect.forEach(living.agents, listenerCount)).filter((count) => count > 0)
      assert(left.length === 0, `I5: the test left behind ${left.join(" and ")} listeners`)
    })
    const watched = Effect.scoped(Effect.tap(body, nothingLeft)).pipe(
      Effect.ensuring(Effect.sync(() => Deferred.doneUnsafe(living.end, Effect.void))),
      Effect.tap(nobodyListens),
      Effect.tap(nothingLeft),
      Effect.provideService(CurrentTest, living),
      Effect.provideService(Metric.FiberRuntimeMetrics, living.metrics)
    )
    return Effect.clockWith((clock) =>
      Effect.acquireUseRelease(
        Effect.sync(() => process.on("unhandledRejection", living.onRejection)),
        () => Effect.provideService(watched, Clock.Clock, living.watch(clock)),
        () => Effect.sync(() => process.off("unhandledRejection", living.onRejection))
      )
    )
  })

/** Longer than anything that a test leaves behind because it ignores interruption (A4) goes on. */
const long = "1000 days"

/**
 * What every test has to satisfy (`vitest.ts`): when it has ended, its scope is closed, and what it left behind has had all the time it
 * wanted, nothing lives any more. {@link leakFree} is stricter.
 */
export const leavesNothing = <A, E, R>(body: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Scope.Scope>> =>
  Effect.suspend(() => {
    const living = new Living()
    const watched = Effect.scoped(body).pipe(
      Effect.provideService(Metric.FiberRuntimeMetrics, living.metrics)
    )
    return Effect.clockWith((clock) =>
      Effect.gen(function*() {
        process.on("unhandledRejection", living.onRejection)
        const fiber = yield* Effect.forkChild(Effect.provideService(watched, Clock.Clock, living.watch(clock)), {
          startImmediately: true
        })
        const exit = yield* Fiber.await(fiber)
        yield* quiet
        if (living.left().length > 0) {
          yield* TestClock.adjust(long)
          yield* quiet
        }
        process.off("unhandledRejection", living.onRejection)
        const left = living.left()
        if (Exit.isSuccess(exit)) assert(left.length === 0, `I5: the test left behind ${left.join(", ")}`)
        return yield* exit
      })
    )
  })

/** A test that leaves nothing behind. */
export const test = <A, E>(name: string, body: () => Effect.Effect<A, E, Scope.Scope>, timeout?: number): void =>
  it.effect(name, () => leakFree(Effect.suspend(body)), timeout)
