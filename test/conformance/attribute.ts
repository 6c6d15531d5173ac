/**
 * Which rules of docs/SPEC.md, section 5, can explain that this library plays a scenario differently from pi.
 *
 * Every rule has triggers: moments in pi's trace from which it can make the traces go apart, and the time until which
 * that must have shown. A rule explains a difference only when the first difference of the traces lies in the span of
 * one of its triggers. The rules about what a request leaves out are applied to the requests of pi beforehand, so that
 * they explain nothing else.
 */
import { isDeepStrictEqual } from "node:util"
import { abortRules } from "./abortRules.ts"
import type { Class } from "./classes.ts"
import { diffTraces } from "./compare.mjs"
import { dataRules } from "./dataRules.ts"
import { failureRules } from "./failureRules.ts"
import { hostRules } from "./hostRules.ts"
import { withRepairedRequests } from "./repair.ts"
import { factsOf } from "./rule.ts"
import type { Trace } from "./trace.ts"
import type { Scenario } from "./types.ts"

const rules = [...abortRules, ...failureRules, ...dataRules, ...hostRules]

interface Timed {
  readonly t?: number
  readonly at?: number
  readonly end?: number
}

/** The latest time an entry tells; what settles shows its outcome then. */
const timeOf = (entry: Timed | undefined): number => entry?.end ?? entry?.t ?? entry?.at ?? Infinity

/** The time of the earliest entry that is not the same in both lists. */
const firstDifferent = (left: ReadonlyArray<Timed> = [], right: ReadonlyArray<Timed> = []): number => {
  let first = Infinity
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    if (isDeepStrictEqual(left[index], right[index])) continue
    first = Math.min(first, timeOf(left[index]), timeOf(right[index]))
  }
  return first
}

/** When two traces go apart; infinite when only the final state differs. */
export const firstDifference = (pi: Trace, ours: Trace): number =>
  Math.min(
    firstDifferent(pi.events, ours.events),
    firstDifferent(pi.requests, ours.requests),
    firstDifferent(pi.executions, ours.executions),
    firstDifferent(pi.hooks, ours.hooks),
    firstDifferent(pi.listeners, ours.listeners),
    firstDifferent(pi.actions, ours.actions),
    firstDifferent(pi.inner, ours.inner)
  )

/** The classes that can explain why two traces of a scenario differ; empty when none can. */
export const attribute = (scenario: Scenario, pi: Trace, ours: Trace): ReadonlySet<Class> => {
  const { classes, trace } = withRepairedRequests(pi)
  if (diffTraces(trace, ours).length === 0) return classes
  const facts = factsOf(scenario, pi, ours)
  const difference = firstDifference(trace, ours)
  return new Set(
    rules.flatMap((rule) => rule(facts))
      .filter(({ from, until }) => difference >= from && difference <= until)
      .map(({ name }) => name)
  )
}
