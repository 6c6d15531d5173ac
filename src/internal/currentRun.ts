/**
 * Which run a fiber executes code of, and what of a fiber's context belongs to the place and not to the code.
 */
import * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { Budget, BudgetState } from "../Budget.ts"
import type { Run } from "./run.ts"

/** The run whose code a fiber executes; the runs around it are its parents. */
export const CurrentRun = Context.Reference<Run | undefined>("effect-pi/CurrentRun", {
  defaultValue: () => undefined
})

/** Whether the fiber executes code of this run: one of its tools, hooks or listeners. */
export const isInside = (fiber: Fiber.Fiber<unknown, unknown>, run: Run): boolean => {
  let current = fiber.getRef(CurrentRun)
  while (current !== undefined && current !== run) current = current.parent
  return current !== undefined
}

const without =
  (keys: ReadonlyArray<Context.Key<unknown, unknown>>) => <R>(services: Context.Context<R>): Context.Context<R> =>
    keys.some((key) => Context.getOrUndefined(services, key) !== undefined)
      // Of a copy: a context that something is left out of keeps what it makes for that, and who subscribes keeps the context.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is left out is there again where the code is called
      ? Context.omit(...keys)(Context.add(services, CurrentRun, undefined)) as Context.Context<R>
      : services

/** The services of code that is given here and called by a run later: the run, its budget and its span are those of the call. */
export const withoutRun = without([CurrentRun, Budget, Tracer.ParentSpan])

/** The same for code that is called in a scope of its own. */
export const withoutAmbient = without([CurrentRun, Budget, Scope.Scope, Tracer.ParentSpan])

/** The budget of a place: that of its layers, not the limits of the runs whose code it is. */
export const layeredBudget = (services: Context.Context<never>): BudgetState | undefined => {
  let budget = Context.get(services, Budget)
  for (let run = Context.get(services, CurrentRun); run !== undefined; run = run.parent) {
    if (budget !== undefined && budget === run.ownBudget) budget = budget.around[0]
  }
  return budget
}

/** The budget of a run of an agent that was made within one, and is prompted within another. */
export const commonBudget = (
  made: BudgetState | undefined,
  prompted: BudgetState | undefined
): BudgetState | undefined => {
  if (made === undefined || prompted?.withAround.includes(made)) return prompted ?? made
  if (prompted === undefined || made.around.includes(prompted)) return made
  return new BudgetState({}, [prompted, made])
}
