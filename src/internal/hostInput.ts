/**
 * What an agent is given from outside, checked: transcripts, prompts, queued messages.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { PromptOptions } from "../Agent.ts"
import { AgentConfigError, InvalidPrompt } from "../Errors.ts"
import { type AgentMessage, repair, user } from "../Messages.ts"
import { excerpt } from "./json.ts"
import * as Log from "./log.ts"
import { answersToOpenCalls } from "./openCalls.ts"
import { readMessages } from "./readMessages.ts"

export const readTranscript = (
  messages: ReadonlyArray<AgentMessage>
): Result.Result<ReadonlyArray<AgentMessage>, AgentConfigError> =>
  Result.mapError(
    readMessages(messages),
    (problem) =>
      new AgentConfigError({
        reason: "InvalidTranscript",
        message: `The messages do not decode: ${problem}. Give messages as Messages.Transcript describes them.`
      })
  )

/** What is done with a stored transcript whose messages decode but do not go together. */
export const pairUp = (
  messages: ReadonlyArray<AgentMessage>,
  mode: "repair" | "refuse"
): Effect.Effect<ReadonlyArray<AgentMessage>, AgentConfigError> => {
  const open = answersToOpenCalls(messages)
  // Open calls at the end are no defect: the next run answers them (Q4).
  const { messages: mended, repairs } = repair([...messages, ...open])
  if (repairs.length === 0) return Effect.succeed(messages)
  const report = repairs.map((one) => one.message).join("; ")
  if (mode === "refuse") {
    return Effect.fail(
      new AgentConfigError({
        reason: "InvalidTranscript",
        message: `The transcript is broken: ${
          excerpt(report, 1500)
        }. Mend it with Messages.repair, or leave out \`transcript: "refuse"\`.`
      })
    )
  }
  const kept = mended.filter((message) => !open.some((answer) => answer === message))
  return Effect.as(Log.warn(`The transcript was mended: ${excerpt(report, 1500)}`), kept)
}

/** A message to queue; one that does not decode is a mistake of the program, so a defect. */
export const readQueued = (message: string | AgentMessage): Effect.Effect<AgentMessage> =>
  Effect.suspend(() => {
    const read = readMessages([typeof message === "string" ? user(message) : message])
    return Result.isSuccess(read)
      ? Effect.succeed(read.success[0]!)
      : Effect.die(
        new InvalidPrompt({ reason: "InvalidMessage", message: `The message does not decode: ${read.failure}` })
      )
  })

export const readPrompt = (
  input: string | AgentMessage | ReadonlyArray<AgentMessage>,
  { images = [] }: PromptOptions
): Result.Result<ReadonlyArray<AgentMessage>, InvalidPrompt> => {
  if (input === "" && images.length === 0) {
    return Result.fail(
      new InvalidPrompt({ reason: "Empty", message: "The prompt is empty; give a text, images, or messages." })
    )
  }
  return Result.mapError(
    readMessages(promptMessages(input, images)),
    (problem) =>
      new InvalidPrompt({ reason: "InvalidMessage", message: `The prompt's messages do not decode: ${problem}` })
  )
}

const promptMessages = (
  input: string | AgentMessage | ReadonlyArray<AgentMessage>,
  images: NonNullable<PromptOptions["images"]>
): unknown => {
  if (typeof input !== "string") return Array.isArray(input) ? input : [input]
  const text = input === "" ? [] : [{ type: "text" as const, text: input }]
  return [user([...text, ...images])]
}
