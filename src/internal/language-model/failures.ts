/**
 * The errors of effect/ai as `ModelError`s. They are not kept as causes: they hold requests with their headers.
 */
import * as AiError from "effect/ai/AiError"
import * as Duration from "effect/Duration"
import { ModelError, type ModelErrorReason } from "../../Errors.ts"
import { isContextOverflow, withoutSecrets } from "../errorText.ts"
import { oneLine } from "../excerpt.ts"
import { show } from "../json.ts"

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

/** An error of the model, or whatever else an error part holds. */
export const toModelError = (error: unknown): ModelError => {
  if (error instanceof ModelError) return error
  if (!AiError.isAiError(error)) {
    const text = error instanceof Error ? error.message : typeof error === "string" ? error : show(error)
    return new ModelError({ reason: isContextOverflow(text) ? "ContextOverflow" : "Reported", message: clean(text) })
  }
  const { retryAfter } = error
  return new ModelError({
    reason: reasonOf(error),
    message: clean(error.message),
    ...(retryAfter !== undefined && { retryAfter: Duration.toMillis(retryAfter) })
  })
}

export const incomplete = (): ModelError =>
  new ModelError({
    reason: "IncompleteStream",
    message: "The answer of the language model ended without a finish part: it was cut off on the way"
  })
