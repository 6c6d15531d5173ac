/**
 * Whether a response is the one that was expected.
 */
import * as Effect from "effect/Effect"
import type { AssistantMessage } from "../../Messages.ts"
import { canonicalText } from "../canonical.ts"
import type { Given } from "./ask.ts"
import { type Mismatch, mismatch } from "./mismatch.ts"
import type { Expected, OutlineBlock, OutlineUsage } from "./types.ts"

/** The blocks that say something, without signatures. */
export const outlineOf = (content: AssistantMessage["content"]): ReadonlyArray<OutlineBlock> =>
  content.flatMap((block): ReadonlyArray<OutlineBlock> => {
    switch (block.type) {
      case "text":
        return block.text === "" ? [] : [{ type: "text", text: block.text }]
      case "thinking":
        return block.thinking === "" ? [] : [{ type: "thinking", thinking: block.thinking }]
      case "toolCall": {
        const { arguments: args, argumentsText, id, name } = block
        return [{ type: "toolCall", id, name, arguments: argumentsText ?? args }]
      }
    }
  })

export const usageOf = ({ usage }: AssistantMessage): OutlineUsage => ({
  input: usage.input,
  output: usage.output,
  cacheRead: usage.cacheRead
})

export const describe = (given: Given): string => {
  const { error, message } = given
  const content = JSON.stringify(outlineOf(message.content))
  return error === undefined
    ? `a message came that ended with ${message.stopReason}: ${content}`
    : `the error ${error.reason} came (${error.message}), with the content ${content}`
}

const same = (a: unknown, b: unknown): boolean => canonicalText(a) === canonicalText(b)

const wrongMessage = (given: Given, expected: Expected & { readonly type: "message" }): Mismatched | undefined => {
  const { error, message } = given
  const content = JSON.stringify(expected.content)
  if (
    error !== undefined || message.stopReason !== expected.stopReason ||
    !same(outlineOf(message.content), expected.content)
  ) {
    return [`a message that ends with ${expected.stopReason}: ${content}`, describe(given)]
  }
  if (expected.usage !== undefined && !same(usageOf(message), expected.usage)) {
    return [`the usage ${JSON.stringify(expected.usage)}`, `it was ${JSON.stringify(usageOf(message))}`]
  }
  const { cacheRead, cacheWrite, input, output, totalTokens } = message.usage
  return totalTokens === input + output + cacheRead + cacheWrite
    ? undefined
    : ["a total that is the sum of the tokens", `the usage was ${JSON.stringify(message.usage)}`]
}

const wrongError = (given: Given, expected: Expected & { readonly type: "error" }): Mismatched | undefined => {
  const { error, message } = given
  const { content, reasons, retryAfter } = expected
  const what = `an error with the reason ${reasons.join(" or ")}`
  if (error === undefined || !reasons.includes(error.reason)) return [what, describe(given)]
  if (error.message.trim() === "") return [`${what} that says what happened`, "its message is empty"]
  if (content !== undefined && !same(outlineOf(message.content), content)) {
    return [`${what} that keeps the content ${JSON.stringify(content)}`, describe(given)]
  }
  const after = error.retryAfter
  const isRight = retryAfter === undefined ||
    (retryAfter === "none"
      ? after === undefined
      : after !== undefined && retryAfter[0] <= after && after <= retryAfter[1])
  const wait = retryAfter === "none" ? "no time" : `a time from ${retryAfter?.[0]} to ${retryAfter?.[1]} ms`
  return isRight ? undefined : [`${wait} in \`retryAfter\``, `it was ${after}`]
}

type Mismatched = readonly [expected: string, received: string]

const wrong = (given: Given, expected: Expected): Mismatched | undefined =>
  expected.type === "message" ? wrongMessage(given, expected) : wrongError(given, expected)

/** The response is the expected one, or the other that may be. */
export const expectResponse = (given: Given, expected: Expected, or?: Expected): Effect.Effect<void, Mismatch> => {
  const first = wrong(given, expected)
  if (first === undefined) return Effect.void
  const second = or === undefined ? first : wrong(given, or)
  if (second === undefined) return Effect.void
  return or === undefined ? mismatch(...first) : mismatch(`${first[0]}, or ${second[0]}`, first[1])
}
