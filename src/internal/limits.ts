/**
 * Limits, checked.
 */
import type * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import type { Limits } from "../Budget.ts"
import { AgentConfigError } from "../Errors.ts"
import { readMillis } from "./millis.ts"

type Checked<A> = Result.Result<A, AgentConfigError>

export const refuse = (reason: AgentConfigError["reason"], message: string): Checked<never> =>
  Result.fail(new AgentConfigError({ reason, message }))

export const checkMillis = (
  name: string,
  input: Duration.Input | undefined,
  reason: AgentConfigError["reason"],
  atLeast: number
): Checked<number | undefined> =>
  input === undefined
    ? Result.succeed(undefined)
    : Result.mapError(readMillis(name, input, atLeast), (message) => new AgentConfigError({ reason, message }))

export const checkCount = (name: string, value: number | undefined, whole: boolean): Checked<number | undefined> =>
  value === undefined || (value > 0 && (!whole || Number.isInteger(value)))
    ? Result.succeed(value)
    : refuse(
      "InvalidLimit",
      `${name} is ${value}; give a ${whole ? "whole number from 1" : "number above 0"}, or leave it out.`
    )

/** `where`: the name of the limits in messages. */
export const checkLimits = (limits: Limits, where: string): Checked<Limits> =>
  Result.gen(function*() {
    yield* checkCount(`${where}.turns`, limits.turns, true)
    yield* checkCount(`${where}.toolCalls`, limits.toolCalls, true)
    yield* checkCount(`${where}.tokens`, limits.tokens, false)
    yield* checkCount(`${where}.cost`, limits.cost, false)
    yield* checkMillis(`${where}.duration`, limits.duration, "InvalidLimit", 1)
    return limits
  })
