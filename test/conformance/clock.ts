/**
 * Virtual time: a `TestClock` that also tells when the next sleep is due, and a scheduler that tells when everything is
 * suspended. Together they let a player go from one instant to the next without stepping through the time in between.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Scheduler from "effect/Scheduler"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"

/** Rounds without end mean that a fiber spins instead of suspending. */
const maxRounds = 100_000

const macrotask = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Counts the tasks that wait to be run. */
class CountingScheduler implements Scheduler.Scheduler {
  readonly #inner = new Scheduler.MixedScheduler()
  readonly executionMode = this.#inner.executionMode
  waiting = 0

  readonly shouldYield: Scheduler.Scheduler["shouldYield"] = (fiber) => this.#inner.shouldYield(fiber)

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    const dispatcher = this.#inner.makeDispatcher()
    return {
      scheduleTask: (task, priority) => {
        this.waiting++
        dispatcher.scheduleTask(() => {
          this.waiting--
          task()
        }, priority)
      },
      flush: () => dispatcher.flush()
    }
  }
}

/** The due times of the sleeps that go on. */
class Dues {
  readonly #counts = new Map<number, number>()

  add(due: number): void {
    this.#counts.set(due, (this.#counts.get(due) ?? 0) + 1)
  }

  remove(due: number): void {
    const count = this.#counts.get(due)!
    if (count === 1) this.#counts.delete(due)
    else this.#counts.set(due, count - 1)
  }

  earliest(): number | undefined {
    let earliest: number | undefined
    for (const due of this.#counts.keys()) if (earliest === undefined || due < earliest) earliest = due
    return earliest
  }
}

export interface VirtualTime {
  /** Clock, scheduler and silence: what fibers that live in this time have to run with. */
  readonly context: Context.Context<never>
  readonly now: () => number
  /** The next instant at which a fiber wakes up. */
  readonly nextDue: () => number | undefined
  readonly advanceTo: (time: number) => Promise<void>
  /** Resolves once every fiber is suspended. */
  readonly settle: () => Promise<void>
  readonly close: () => Promise<void>
}

export const makeVirtualTime = async (): Promise<VirtualTime> => {
  const scheduler = new CountingScheduler()
  const scope = Scope.makeUnsafe()
  const layer = Layer.mergeAll(TestClock.layer({ warningDelay: "1 hour" }), Logger.layer([]))
  const built = await Effect.runPromiseWith(Context.make(Scheduler.Scheduler, scheduler))(
    Layer.buildWithScope(layer, scope)
  )
  const testClock = await Effect.runPromiseWith(built)(TestClock.testClockWith(Effect.succeed))
  const dues = new Dues()
  const clock: TestClock.TestClock = {
    ...testClock,
    sleep: (duration) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const due = testClock.currentTimeMillisUnsafe() + Duration.toMillis(duration)
          dues.add(due)
          return due
        }),
        () => testClock.sleep(duration),
        (due) => Effect.sync(() => dues.remove(due))
      )
  }
  const context: Context.Context<never> = Context.add(built, Clock.Clock, clock)
  const settle = async () => {
    for (let quiet = 0, round = 0; quiet < 2; round++) {
      if (round > maxRounds) throw new Error(`the fibers do not suspend at ${testClock.currentTimeMillisUnsafe()} ms`)
      await macrotask()
      quiet = scheduler.waiting === 0 ? quiet + 1 : 0
    }
  }
  return {
    context,
    now: () => testClock.currentTimeMillisUnsafe(),
    nextDue: () => {
      const due = dues.earliest()
      return due === Infinity ? undefined : due
    },
    advanceTo: (time) => Effect.runPromiseWith(built)(testClock.setTime(time)).then(settle),
    settle,
    close: () => Effect.runPromiseWith(built)(Scope.close(scope, Exit.void))
  }
}
