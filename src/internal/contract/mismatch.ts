/**
 * How a case says that something does not hold.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { oneLine } from "../excerpt.ts"
import { type Case, ContractViolation, type Options } from "./types.ts"

/** What was expected, and what came. */
export class Mismatch extends Data.TaggedError("Mismatch")<{
  readonly expected: string
  readonly received: string
}> {}

export const mismatch = (expected: string, received: string): Effect.Effect<never, Mismatch> =>
  Effect.fail(new Mismatch({ expected, received }))

/** How long a case waits; by default much longer than anything takes that is not stuck. */
const Patience = Context.Reference<Duration.Input>("effect-pi/testing/StreamFnContract/Patience", {
  defaultValue: () => "5 seconds"
})

/** Ends with a mismatch what does not end by itself. */
export const within = Effect.fnUntraced(function*<A, E, R>(
  effect: Effect.Effect<A, E, R>,
  expected: string,
  received: string
) {
  const ended = yield* Effect.timeoutOption(effect, yield* Patience)
  return Option.isSome(ended) ? ended.value : yield* mismatch(expected, received)
})

/** Runs code of others beside the case, which does not wait for it when it ends: it may never do so. */
export const beside = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<Fiber.Fiber<A, E>, never, R | Scope.Scope> =>
  Effect.acquireRelease(Effect.forkDetach(effect), (fiber) => Effect.sync(() => fiber.interruptUnsafe()))

/** A case before it is known by name to whoever runs it. */
export interface Check {
  readonly name: string
  readonly check: Effect.Effect<void, Mismatch, Scope.Scope>
}

const violation = (name: string, { expected, received }: Mismatch): ContractViolation =>
  new ContractViolation({
    case: name,
    expected,
    received,
    message: `${name}: expected ${expected}, but ${received}`
  })

/** A whole trace would hide what happened. */
const maxDefect = 500

/** What dies or is interrupted does not hold either. */
const caught = <R>(check: Effect.Effect<void, Mismatch, R>): Effect.Effect<void, Mismatch, R> =>
  Effect.catchCause(check, (cause) => {
    const failed = cause.reasons.find(Cause.isFailReason)
    return failed === undefined
      ? mismatch("neither a defect nor an interruption", `it died: ${oneLine(Cause.pretty(cause), maxDefect)}`)
      : Effect.fail(failed.error)
  })

/** The real clock: a server and its sockets know no other. */
const onRealClock = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Clock.Clock, Clock.Clock.defaultValue())

const toTest = ({ check, name }: Check, { patience }: Options): Effect.Effect<void, ContractViolation> => {
  const test = onRealClock(Effect.mapError(Effect.scoped(caught(check)), (error) => violation(name, error)))
  return patience === undefined ? test : Effect.provideService(test, Patience, patience)
}

/** A case that is known to differ has to differ. */
const differing = (check: Check, reason: string, options: Options): Effect.Effect<void, ContractViolation> =>
  Effect.matchEffect(toTest(check, options), {
    onFailure: () => Effect.void,
    onSuccess: () =>
      Effect.fail(violation(
        check.name,
        new Mismatch({
          expected: `a difference, because ${reason}`,
          received: "it no longer differs: take it out of `differences`"
        })
      ))
  })

/** The cases as they are handed out. */
export const casesOf = (checks: ReadonlyArray<Check>, options: Options): ReadonlyArray<Case> => {
  const differences = new Map(Object.entries(options.differences ?? {}))
  const cases = checks.map((check): Case => {
    const reason = differences.get(check.name)
    differences.delete(check.name)
    return reason === undefined
      ? { name: check.name, test: toTest(check, options) }
      : { name: `${check.name} (differs: ${reason})`, test: differing(check, reason, options) }
  })
  if (differences.size === 0) return cases
  const name = "every difference is that of a case"
  const unknown = [...differences.keys()].map((each) => JSON.stringify(each)).join(", ")
  const error = new Mismatch({
    expected: "the names of cases in `differences`",
    received: `there is no case ${unknown}`
  })
  return [...cases, { name, test: Effect.fail(violation(name, error)) }]
}
