/**
 * Messages that come from outside: hosts, hooks, queues.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type AgentMessage, Transcript } from "../Messages.ts"
import { copyJson } from "./copyJson.ts"
import { encode, show } from "./json.ts"

const decode = Schema.decodeUnknownResult(Transcript)

/** A copy of the messages, as the JSON they stand for, their text well formed; fails with what does not decode. */
export const readMessages = (messages: unknown): Result.Result<ReadonlyArray<AgentMessage>, string> =>
  guarded(() => read(messages))

/** Getters and proxies in what is given may throw. */
const guarded = <A>(reading: () => Result.Result<A, string>): Result.Result<A, string> =>
  Result.flatMap(
    Result.try({ try: reading, catch: (failure) => `it cannot be read: ${show(failure)}` }),
    (result) => result
  )

const read = (messages: unknown): Result.Result<ReadonlyArray<AgentMessage>, string> =>
  Array.isArray(messages)
    ? Result.flatMap(encode(messages), (json) => Result.mapError(decode(copyJson(json)), (error) => error.message))
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
  guarded(() => {
    if (!Array.isArray(messages)) return Result.fail(`expected a list of messages, got ${typeof messages}`)
    if (messages.findIndex((message) => !isKnown(message)) < 0) return Result.succeed(messages)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- text apart, encoding JSON changes nothing
    return Result.map(encode(messages), (json) => json as ReadonlyArray<M>)
  })
