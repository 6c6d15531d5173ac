/**
 * What code of others answers, plainly or with an effect: an answer that is there at once costs no effect.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

/** An answer, or the effect that gives it. */
export type OrEffect<A, E = never> = A | Effect.Effect<A, E>

export const asEffect = <A, E, R>(answer: A | Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.isEffect(answer) ? answer : Effect.succeed(answer)

/** Effects of answers that may be plain values; whatever is thrown on the way is a defect of the effect. */
export const ask = <A, E, R>(answer: () => A | Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => asEffect(answer()))

/** What is made of an answer. */
export const whenAnswered = <A, E, B, E2>(
  answer: OrEffect<A, E>,
  f: (answer: A) => OrEffect<B, E2>
): OrEffect<B, E | E2> => Effect.isEffect(answer) ? Effect.flatMap(answer, (later) => asEffect(f(later))) : f(answer)

/** Lets hooks, from the `from`-th, change a value one after the other: at once, up to the first that answers with an effect. */
export const inTurn = <Hook, A, E>(
  hooks: ReadonlyArray<Hook>,
  value: A,
  change: (value: A, hook: Hook) => OrEffect<A, E>,
  from = 0
): OrEffect<A, E> => {
  let current = value
  for (let n = from; n < hooks.length; n++) {
    const next = change(current, hooks[n]!)
    if (Effect.isEffect(next)) return whenAnswered(next, (later: A) => inTurn(hooks, later, change, n + 1))
    current = next
  }
  return current
}

/** An answer; `failed` gives what stands for it when it failed, or when something was thrown on the way. */
export const guarded = <A, E>(
  answer: () => OrEffect<A, unknown>,
  failed: (cause: Cause.Cause<unknown>) => Effect.Effect<A, E>
): OrEffect<A, E> => {
  const given = Result.try(answer)
  if (Result.isFailure(given)) return failed(Cause.die(given.failure))
  return Effect.isEffect(given.success) ? Effect.catchCause(given.success, failed) : given.success
}
