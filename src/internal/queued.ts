/**
 * Messages that wait in a queue: what can be one, and what of a batch can be delivered.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { InvalidPrompt } from "../Errors.ts"
import { type AgentMessage, toolCalls } from "../Messages.ts"
import type { MessageQueue } from "../Queues.ts"
import * as Log from "./log.ts"
import { readMessages } from "./readMessages.ts"

/** Whether a message makes sense only together with others, which a queue would tear apart. */
export const needsOthers = (message: AgentMessage): boolean =>
  message.role === "toolResult" || (message.role === "assistant" && toolCalls(message).length > 0)

/** A copy of a message that can be queued, or what is wrong with it. */
const read = (message: AgentMessage): Result.Result<AgentMessage, string> =>
  Result.flatMap(
    Result.mapError(readMessages([message]), (problem) => `does not decode: ${problem}`),
    ([copy]) =>
      needsOthers(copy!)
        ? Result.fail("is a tool result or has tool calls, which a message that stands alone cannot be paired with")
        : Result.succeed(copy!)
  )

export const readQueued = (message: AgentMessage): Result.Result<AgentMessage, InvalidPrompt> =>
  Result.mapError(
    read(message),
    (problem) => new InvalidPrompt({ reason: "InvalidMessage", message: `The message ${problem}` })
  )

/** The next batch of which anything can be delivered, and what is wrong with the rest, which other code offered. */
export const takeDeliverable = (
  queue: MessageQueue
): { readonly messages: ReadonlyArray<AgentMessage>; readonly refused: ReadonlyArray<string> } => {
  const refused: Array<string> = []
  while (queue.size > 0) {
    const messages: Array<AgentMessage> = []
    for (const message of queue.take()) {
      const checked = queue.wasPosted(message) ? Result.succeed(message) : read(message)
      if (Result.isSuccess(checked)) messages.push(checked.success)
      else refused.push(checked.failure)
    }
    if (messages.length > 0) return { messages, refused }
  }
  return { messages: [], refused }
}

export const logRefused = (refused: ReadonlyArray<string>): Effect.Effect<void> =>
  refused.length === 0
    ? Effect.void
    : Log.error(`Queued messages were left out; each of them ${refused.join("; or ")}`, Cause.empty)
