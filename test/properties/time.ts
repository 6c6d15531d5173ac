/**
 * Virtual time: Effect's `TestClock`, with counts of what sleeps and of the fibers that are alive, and a way to tell when
 * everything is suspended.
 */
import { Clock, Context, Duration, Effect, Exit, Layer, Logger, Metric, Scheduler, Scope } from "effect"
import { TestClock } from "effect/testing"

/** Tasks without end mean that fibers spin instead of suspending. */
const maxTasks = 300_000

/** Fibers never suspend. */
export class Spinning extends Error {}

const macrotask = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Counts the tasks that wait to be run. */
class CountingScheduler implements Scheduler.Scheduler {
  readonly #inner = new Scheduler.MixedScheduler()
  readonly executionMode = this.#inner.executionMode
  waiting = 0
  #ran = 0
  readonly spinning = Promise.withResolvers<never>()

  constructor() {
    this.spinning.promise.catch(() => {})
  }

  readonly shouldYield: Scheduler.Scheduler["shouldYield"] = (fiber) => this.#inner.shouldYield(fiber)

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    const dispatcher = this.#inner.makeDispatcher()
    return {
      scheduleTask: (task, priority) => {
        this.waiting++
        dispatcher.scheduleTask(() => {
          this.waiting--
          // What spins is not run any more, so that it ends.
          if (++this.#ran > maxTasks) this.spinning.reject(new Spinning("the fibers do not suspend"))
          else task()
        }, priority)
      },
      flush: () => dispatcher.flush()
    }
  }
}

export interface Time {
  /** What fibers that live in this time run with. */
  readonly context: Context.Context<never>
  readonly now: () => number
  /** How many fibers sleep. */
  readonly sleeping: () => number
  /** How many fibers are alive. */
  readonly fibers: () => number
  /** Goes on to this time, everything that is due on the way included. */
  readonly advanceTo: (time: number) => Promise<void>
  /** Resolves once every fiber is suspended. */
  readonly settle: () => Promise<void>
  /** Runs an effect that waits for no time. */
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
  readonly close: () => Promise<void>
}

/** `log` is told of every log entry; `yieldAfter` is the number of operations after which a fiber lets others go on. */
export const makeTime = async (
  log: (level: string, text: string) => void,
  yieldAfter: number | undefined
): Promise<Time> => {
  const scheduler = new CountingScheduler()
  const scope = Scope.makeUnsafe()
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    log(logLevel, Array.isArray(message) ? message.map(String).join(" ") : String(message))
  })
  const layer = Layer.mergeAll(TestClock.layer({ warningDelay: "1 hour" }), Logger.layer([logger]))
  const built = await Effect.runPromiseWith(Context.make(Scheduler.Scheduler, scheduler))(
    Layer.buildWithScope(layer, scope)
  )
  const testClock = await Effect.runPromiseWith(built)(TestClock.testClockWith(Effect.succeed))
  const dues: Array<number> = []
  let fibers = 0
  const clock: TestClock.TestClock = {
    ...testClock,
    sleep: (duration) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const due = testClock.currentTimeMillisUnsafe() + Duration.toMillis(duration)
          dues.push(due)
          return due
        }),
        () => testClock.sleep(duration),
        (due) => Effect.sync(() => dues.splice(dues.indexOf(due), 1))
      )
  }
  const metrics: Metric.FiberRuntimeMetricsService = {
    recordFiberStart: () => {
      fibers++
    },
    recordFiberEnd: () => {
      fibers--
    }
  }
  const counted = Context.add(Context.add(built, Clock.Clock, clock), Metric.FiberRuntimeMetrics, metrics)
  const settle = async () => {
    for (let quiet = 0; quiet < 2;) {
      await macrotask()
      quiet = scheduler.waiting === 0 ? quiet + 1 : 0
    }
  }
  const context = yieldAfter === undefined ? counted : Context.add(counted, Scheduler.MaxOpsBeforeYield, yieldAfter)
  const setTime = (time: number) => Effect.runPromiseWith(built)(testClock.setTime(time)).then(settle)
  // From one instant to the next: what promises wake is not known to the clock.
  const advance = async (time: number) => {
    await settle()
    for (let due = Math.min(...dues); due < time; due = Math.min(...dues)) await setTime(due)
    await setTime(time)
  }
  return {
    context,
    now: () => testClock.currentTimeMillisUnsafe(),
    sleeping: () => dues.length,
    fibers: () => fibers,
    advanceTo: (time) => Promise.race([advance(time), scheduler.spinning.promise]),
    settle: () => Promise.race([settle(), scheduler.spinning.promise]),
    run: (effect) => Promise.race([Effect.runPromiseWith(context)(effect), scheduler.spinning.promise]),
    close: () => Promise.race([Effect.runPromiseWith(built)(Scope.close(scope, Exit.void)), scheduler.spinning.promise])
  }
}
