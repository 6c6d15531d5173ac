/**
 * What an agent is given from outside, checked: transcripts and prompts.
 */
import * as Result from "effect/Result"
import type { PromptOptions } from "../Agent.ts"
import { AgentConfigError, InvalidPrompt } from "../Errors.ts"
import { type AgentMessage, user } from "../Messages.ts"
import { checkOneOf } from "./checks.ts"
import { reading, wellFormed } from "./json.ts"
import { type Paired, pairUp } from "./pairing.ts"
import { needsOthers } from "./queued.ts"
import { readMessages, unreadable } from "./readMessages.ts"

const readTranscript = (
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

/** What is done with messages that decode but do not go together. */
export type TranscriptMode = "repair" | "refuse"

/** Messages from outside, checked and paired, to follow a conversation. */
export const readPaired = (
  before: ReadonlyArray<AgentMessage>,
  messages: ReadonlyArray<AgentMessage>,
  mode: TranscriptMode
): Result.Result<Paired, AgentConfigError> =>
  Result.flatMap(readTranscript(messages), (read) => {
    const paired = pairUp(before, read, false)
    return paired.mended === undefined || mode === "repair"
      ? Result.succeed(paired)
      : Result.fail(
        new AgentConfigError({
          reason: "InvalidTranscript",
          message:
            `The transcript is broken: ${paired.mended}. Mend it with Messages.repair, or leave out \`transcript: "refuse"\`.`
        })
      )
  })

/** The prompts of a run, paired with one another and with calls that are open in the conversation. */
export const pairPrompts = (
  before: ReadonlyArray<AgentMessage>,
  prompts: ReadonlyArray<AgentMessage>,
  mode: TranscriptMode
): Result.Result<Paired, InvalidPrompt> => {
  const paired = pairUp(before, prompts, true)
  return paired.mended === undefined || mode === "repair"
    ? Result.succeed(paired)
    : refusePrompt(`The prompt's messages do not go together: ${paired.mended}`)
}

const refusePrompt = (message: string) => Result.fail(new InvalidPrompt({ reason: "InvalidMessage", message }))

/** A prompt that is queued is torn apart. */
export const checkQueueable = (
  prompts: ReadonlyArray<AgentMessage>
): Result.Result<ReadonlyArray<AgentMessage>, InvalidPrompt> =>
  prompts.some(needsOthers)
    ? refusePrompt("A tool result or a message with tool calls cannot be queued; wait for the end of the run.")
    : Result.succeed(prompts)

export const readWhileRunning = ({ whileRunning }: PromptOptions): Result.Result<unknown, InvalidPrompt> =>
  Result.mapError(
    checkOneOf("whileRunning", whileRunning, ["steer", "followUp"]),
    ({ message }) => new InvalidPrompt({ reason: "InvalidOption", message })
  )

export const readPrompt = (
  input: string | AgentMessage | ReadonlyArray<AgentMessage>,
  { images = [] }: PromptOptions
): Result.Result<ReadonlyArray<AgentMessage>, InvalidPrompt> => {
  if (input === "" && images.length === 0) {
    return Result.fail(
      new InvalidPrompt({ reason: "Empty", message: "The prompt is empty; give a text, images, or messages." })
    )
  }
  if (typeof input === "string" && images.length === 0) {
    return Result.succeed([user([{ type: "text", text: wellFormed(input) }])])
  }
  return Result.mapError(
    reading(unreadable, () => readMessages(promptMessages(input, images))),
    (problem) =>
      new InvalidPrompt({ reason: "InvalidMessage", message: `The prompt's messages do not decode: ${problem}` })
  )
}

const promptMessages = (
  input: string | AgentMessage | ReadonlyArray<AgentMessage>,
  images: NonNullable<PromptOptions["images"]>
): unknown => {
  if (typeof input !== "string") return Array.isArray(input) ? input : [input]
  const text = { type: "text" as const, text: input }
  return [user(input === "" ? images : [text, ...images])]
}
