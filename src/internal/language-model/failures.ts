/**
 * The errors of effect/ai as `ModelError`s. They are not kept as causes: they hold requests with their headers.
 */
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import { ModelError, type ModelErrorReason } from "../../Errors.ts"
import { isContextOverflow, withoutSecrets } from "../errorText.ts"
import { oneLine } from "../excerpt.ts"
import { show } from "../json.ts"
import { retryAfter } from "../openai/retryAfter.ts"

/** How much of an error's text is repeated. */
const maxText = 1200

const clean = (text: string): string => oneLine(withoutSecrets(text, []), maxText)

const reasonOf = ({ message, reason }: AiError.AiError): ModelErrorReason => {
  switch (reason._tag) {
    case "RateLimitError":
      return "RateLimited"
    case "AuthenticationError":
      return "Authentication"
    case "InternalProviderError":
      return "Overloaded"
    case "NetworkError":
      return reason.reason === "TransportError" ? "Network" : "InvalidRequest"
    case "InvalidResponseError":
    case "InvalidOutputError":
      return "ProtocolViolation"
    case "ContentPolicyError":
      return "Reported"
    case "UnknownError":
      return isContextOverflow(message) ? "ContextOverflow" : "Unknown"
    default:
      return isContextOverflow(message) ? "ContextOverflow" : "InvalidRequest"
  }
}

/** What the server asks for: most reasons have no place for it but the headers of the answer. */
const waitOf = (error: AiError.AiError, now: () => number): number | undefined => {
  if (error.retryAfter !== undefined) return Duration.toMillis(error.retryAfter)
  const { reason } = error
  const headers = "http" in reason ? reason.http?.response?.headers : undefined
  if (headers === undefined) return undefined
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string") texts[name.toLowerCase()] = value
  }
  return retryAfter(texts, now())
}

/** An error of the model, or whatever else an error part holds; `now` tells how far away a date is. */
export const toModelError = (error: unknown, now: () => number): ModelError => {
  if (error instanceof ModelError) return error
  if (!AiError.isAiError(error)) {
    const text = error instanceof Error ? error.message : typeof error === "string" ? error : show(error)
    return new ModelError({ reason: isContextOverflow(text) ? "ContextOverflow" : "Reported", message: clean(text) })
  }
  const wait = waitOf(error, now)
  return new ModelError({
    reason: reasonOf(error),
    message: clean(error.message),
    ...(wait !== undefined && { retryAfter: wait })
  })
}

export const incomplete = (): ModelError =>
  new ModelError({
    reason: "IncompleteStream",
    message: "The answer of the language model ended without a finish part: it was cut off on the way"
  })
