/**
 * Options, checked one by one: a refusal names the option, what it is, and what it may be.
 */
import type * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { Limits } from "../Budget.ts"
import { AgentConfigError } from "../Errors.ts"
import { show } from "./json.ts"
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

export const checkOneOf = <A extends string>(
  name: string,
  value: A | undefined,
  allowed: ReadonlyArray<A>
): Checked<A | undefined> =>
  value === undefined || allowed.includes(value)
    ? Result.succeed(value)
    : refuse("InvalidOption", `${name} is ${show(value)}; give one of ${allowed.map((one) => `"${one}"`).join(", ")}.`)

export const checkSchedule = <A extends Schedule.Schedule<unknown> | undefined>(name: string, value: A): Checked<A> =>
  value === undefined || Schedule.isSchedule(value)
    ? Result.succeed(value)
    : refuse("InvalidOption", `${name} is ${show(value)}; give a Schedule, such as Schedule.recurs(3).`)

/** The limits of what is counted, in the order in which they are looked at; whether they count in whole numbers. */
export const countedLimits = [["turns", true], ["toolCalls", true], ["tokens", false], ["cost", false]] as const

const limitNames: ReadonlyArray<string> = [...countedLimits.map(([name]) => name), "duration"]

/** `where` stands before the names of the limits in messages. */
export const checkLimits = (limits: Limits, where: string): Checked<Limits> =>
  Result.gen(function*() {
    const unknown = Object.keys(limits).find((name) => !limitNames.includes(name))
    if (unknown !== undefined) {
      yield* refuse("InvalidLimit", `${where}${unknown} is no limit; there are ${limitNames.join(", ")}.`)
    }
    for (const [name, whole] of countedLimits) yield* checkCount(`${where}${name}`, limits[name], whole)
    yield* checkMillis(`${where}duration`, limits.duration, "InvalidLimit", 1)
    return limits
  })
