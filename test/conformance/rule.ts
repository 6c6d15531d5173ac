/** What a rule of docs/SPEC.md, section 5, is to the fuzzer: the moments from which it can make traces go apart. */
import type { Class } from "./classes.ts"
import { allActions, listenersOf, type Run, runsOf, settledAt } from "./runs.ts"
import type { Trace } from "./trace.ts"
import type { Scenario } from "./types.ts"

/** What may cause a difference that first shows between `from` and `until`. */
export interface Trigger {
  readonly name: Class
  readonly from: number
  readonly until: number
}

/** An abort that met a run of pi. */
export interface Abort {
  readonly at: number
  readonly run: Run
  readonly settled: number
}

/** The facts the rules look at. */
export interface Facts {
  readonly scenario: Scenario
  readonly pi: Trace
  readonly ours: Trace
  readonly runs: ReadonlyArray<Run>
  readonly aborts: ReadonlyArray<Abort>
  /** Times at which a listener of a run of pi failed. */
  readonly failedListeners: ReadonlyArray<number>
}

export type Rule = (facts: Facts) => ReadonlyArray<Trigger>

/** A trigger; without `until` the difference has to show at once. */
export const trigger = (name: Class, from: number, until: number = from): Trigger => ({ name, from, until })

export const factsOf = (scenario: Scenario, pi: Trace, ours: Trace): Facts => {
  const runs = runsOf(pi)
  const aborts = allActions(pi).filter((action) => action.do === "abort").flatMap(({ at }) =>
    runs.map((run) => ({ at, run, settled: settledAt(pi, run) }))
      .filter(({ run, settled }) => at >= run.start && at <= settled)
  )
  const failedListeners = listenersOf(pi).filter((listener) => listener.done === undefined).map(({ t }) => t)
  return { scenario, pi, ours, runs, aborts, failedListeners }
}
