/**
 * What an agent is given from outside, checked: transcripts, prompts, queued messages.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { PromptOptions } from "../Agent.ts"
import { AgentConfigError, InvalidPrompt } from "../Errors.ts"
import { type AgentMessage, repair, user } from "../Messages.ts"
import { checkOneOf } from "./checks.ts"
import { excerpt, show } from "./json.ts"
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

/** A transcript whose calls and results go together, and what was mended for that. */
export interface Paired {
  readonly messages: ReadonlyArray<AgentMessage>
  readonly mended: string | undefined
}

/** What is done with a stored transcript whose messages decode but do not go together. */
const pairUp = (
  messages: ReadonlyArray<AgentMessage>,
  mode: "repair" | "refuse"
): Result.Result<Paired, AgentConfigError> => {
  const open = answersToOpenCalls(messages)
  // Open calls at the end are no defect: the next run answers them (Q4).
  const { messages: paired, repairs } = repair([...messages, ...open])
  if (repairs.length === 0) return Result.succeed({ messages, mended: undefined })
  const report = excerpt(repairs.map((one) => one.message).join("; "), 1500)
  // An answer whose call was renamed is another one now; then all of them stay, so that they stand in call order.
  const added = new Set<AgentMessage>(paired.slice(-open.length).every((one, n) => one === open[n]) ? open : [])
  return mode === "repair"
    ? Result.succeed({ messages: paired.filter((message) => !added.has(message)), mended: report })
    : Result.fail(
      new AgentConfigError({
        reason: "InvalidTranscript",
        message:
          `The transcript is broken: ${report}. Mend it with Messages.repair, or leave out \`transcript: "refuse"\`.`
      })
    )
}

/** A transcript from outside, checked and paired. */
export const readPaired = (
  messages: ReadonlyArray<AgentMessage>,
  mode: "repair" | "refuse"
): Result.Result<Paired, AgentConfigError> => Result.flatMap(readTranscript(messages), (read) => pairUp(read, mode))

export const logMended = ({ mended }: Paired): Effect.Effect<void> =>
  mended === undefined ? Effect.void : Log.warn(`The transcript was mended: ${mended}`)

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
  return Result.mapError(
    Result.flatMap(
      Result.try({
        try: () => promptMessages(input, images),
        catch: (failure) => `it cannot be read: ${show(failure)}`
      }),
      readMessages
    ),
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
  return [user(images.length === 0 ? [text] : input === "" ? images : [text, ...images])]
}
