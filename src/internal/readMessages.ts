/**
 * Messages that come from outside: hosts, hooks, queues.
 */
import * as Result from "effect/Result"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { type AgentMessage, Transcript } from "../Messages.ts"
import { copyJson } from "./copyJson.ts"
import { encode, reading, show } from "./json.ts"
import { isRecord } from "./record.ts"

const decode = SchemaParser.decodeUnknownResult(Transcript)

const formatIssue = SchemaIssue.makeFormatterDefault()

/** A copy of the messages, as the JSON they stand for, their text well formed; fails with what does not decode. */
export const readMessages = (messages: unknown): Result.Result<ReadonlyArray<AgentMessage>, string> =>
  reading(unreadable, () => read(messages))

/** Getters and proxies in what is given may throw. */
export const unreadable = "it cannot be read"

const read = (messages: unknown): Result.Result<ReadonlyArray<AgentMessage>, string> =>
  Array.isArray(messages)
    ? Result.flatMap(encode(messages), (json) => Result.mapError(decode(copyJson(json)), formatIssue))
    : Result.fail(`expected a list of messages, got ${messages === null ? "null" : typeof messages}`)

/**
 * Messages whose text is made well formed, the same list when it is; fails when there is no list or something in it is no
 * JSON. For conversations that are looked at for every request, where a full check would cost too much; `isKnown`: what
 * has been looked at before.
 */
export const mendMessages = <M extends AgentMessage>(
  messages: ReadonlyArray<M>,
  isKnown: (message: M) => boolean = () => false
): Result.Result<ReadonlyArray<M>, string> =>
  reading(unreadable, () => {
    if (!Array.isArray(messages)) return Result.fail(`expected a list of messages, got ${typeof messages}`)
    if (messages.findIndex((message) => !isKnown(message)) < 0) return Result.succeed(messages)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- text apart, encoding JSON changes nothing
    return Result.map(encode(messages), (json) => json as ReadonlyArray<M>)
  })

/**
 * A context a run can start from: {@link mendMessages}, and every message has the parts of its role that are looked at. A
 * full check would cost a long conversation too much.
 */
export const readContext = (
  messages: ReadonlyArray<AgentMessage>
): Result.Result<ReadonlyArray<AgentMessage>, string> =>
  reading(unreadable, () =>
    Result.flatMap(mendMessages(messages), (mended) => {
      const at = mended.findIndex((message) => !hasParts(message))
      return at < 0 ? Result.succeed(mended) : Result.fail(`message ${at} is none: ${show(mended[at])}`)
    }))

const isBlock = (block: unknown): boolean =>
  isRecord(block) && (block.type === "text"
    ? typeof block.text === "string"
    : block.type === "toolCall"
    ? typeof block.id === "string" && typeof block.name === "string"
    : typeof block.type === "string")

const isContent = (content: unknown): boolean => Array.isArray(content) && content.every(isBlock)

const isListOfRecords = (list: unknown): boolean =>
  list === undefined || (Array.isArray(list) && list.every((one) => isRecord(one) && typeof one.name === "string"))

const hasParts = (message: unknown): boolean => {
  if (!isRecord(message)) return false
  const { content } = message
  switch (message.role) {
    case "system":
      return typeof content === "string" && isListOfRecords(message.toolsAdded) && isListOfRecords(message.toolsRemoved)
    case "user":
      return typeof content === "string" || isContent(content)
    case "assistant":
      return isContent(content)
    case "toolResult":
      return typeof message.toolCallId === "string" && isContent(content)
    default:
      return typeof message.role === "string"
  }
}
