/**
 * The arguments of a tool call as the model gave them. A call holds the JSON object it was given, or, when the model gave
 * something else, an empty object and the original text beside it (`argumentsText`).
 */
import * as Result from "effect/Result"
import type { Json, ToolCall } from "../Messages.ts"
import { copyJson } from "./copyJson.ts"
import { encode, parse, wellFormed } from "./json.ts"
import { isJsonObject } from "./record.ts"

/** What was given, as text; of a value that is no JSON a text that is none either, saying why. */
const originalText = (given: unknown, encoded: Result.Result<Json, string>): string => {
  if (typeof given === "string") return wellFormed(given)
  return Result.isSuccess(encoded) ? JSON.stringify(encoded.success) : `not JSON: ${encoded.failure}`
}

/** The call with its arguments, given as text or as a value. */
export const readArguments = (call: ToolCall, given: unknown): ToolCall => {
  const { argumentsText: _, ...rest } = call
  if (typeof given === "string" && given.trim() === "") return { ...rest, arguments: {} }
  const parsed = typeof given === "string" ? parse(given) : Result.succeed(given)
  const encoded = Result.flatMap(parsed, encode)
  if (Result.isSuccess(encoded) && isJsonObject(encoded.success)) {
    // A copy: a provider may go on changing what it handed over.
    return { ...rest, arguments: typeof given === "string" ? encoded.success : copyJson(encoded.success) }
  }
  return { ...rest, arguments: {}, argumentsText: originalText(given, encoded) }
}

/** What the tool's gate decodes: the object, or the value the original text stands for; fails with the bad text. */
export const givenArguments = (call: ToolCall): Result.Result<Json, string> => {
  if (call.argumentsText === undefined) return Result.succeed(call.arguments)
  return Result.mapError(Result.flatMap(parse(call.argumentsText), encode), () => call.argumentsText!)
}
