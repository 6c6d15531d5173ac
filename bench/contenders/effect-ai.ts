/**
 * `Chat` of effect/ai: `streamText` with a toolkit, called again until a response has no call. The loop is written here because the
 * library has none; running the tools, and the history, are the library's.
 */
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type { StreamPartEncoded } from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Contender, Measured, Workload } from "../contender.ts"
import {
  callsOf,
  echo,
  grouped,
  limitOf,
  play,
  prompt,
  recorded,
  stored,
  Tally,
  textOf,
  wakesUp,
  wakeUp
} from "./peers-play.ts"

const tools = Toolkit.make(
  Tool.make("echo", {
    description: "Says what it is told.",
    parameters: Schema.Struct({ text: Schema.String }),
    success: Schema.String
  })
)

const usage = {
  inputTokens: { uncached: 0, total: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 }
}

const record = (...[response, request]: Parameters<typeof callsOf>): Array<StreamPartEncoded> => {
  const parts: Array<StreamPartEncoded> = []
  if (response.type === "text") {
    parts.push({ type: "text-start", id: "0" })
    for (const delta of textOf(response)) parts.push({ type: "text-delta", id: "0", delta })
    parts.push({ type: "text-end", id: "0" })
  }
  for (const { id, pieces, text } of callsOf(response, request)) {
    parts.push({ type: "tool-params-start", id, name: "echo" })
    for (const delta of pieces) parts.push({ type: "tool-params-delta", id, delta })
    parts.push({ type: "tool-params-end", id }, { type: "tool-call", id, name: "echo", params: { text } })
  }
  const reason = response.type === "text" ? "stop" : "tool-calls"
  parts.push({ type: "finish", reason, usage, response: undefined })
  return parts
}

const replay = (groups: ReadonlyArray<Arr.NonEmptyReadonlyArray<StreamPartEncoded>>, wakes: boolean) =>
  Stream.fromPull(Effect.sync(() => {
    let next = 0
    const pull = Effect.suspend(() => {
      const group = groups[next++]
      return group === undefined ? Cause.done() : Effect.succeed(group)
    })
    return wakes ? Effect.andThen(Effect.promise(wakeUp), pull) : pull
  }))

const makeModel = (workload: Workload, tally: Tally, start: number) => {
  const respond = recorded(
    workload,
    (...response) => grouped(workload, record(...response)).filter(Arr.isReadonlyArrayNonEmpty)
  )
  const silence = Stream.fromEffectDrain(Effect.promise(tally.wait))
  return LanguageModel.make({
    generateText: () => Effect.die("only streams are asked for"),
    streamText: (request) => {
      const response = respond(request.prompt.content.length - start)
      return response === undefined ? silence : replay(response, wakesUp(workload))
    }
  })
}

const makeHandlers = (workload: Workload, tally: Tally) => {
  const run = echo(workload, tally)
  const sleeps = workload.name === "calls" && workload.tool === "sleep"
  return tools.toLayer({
    echo: ({ text }) => {
      if (sleeps) {
        tally.executions++
        return Effect.as(Effect.sleep(1), text)
      }
      const result = run(text)
      return typeof result === "string" ? Effect.succeed(result) : Effect.promise(() => result)
    }
  })
}

const exchange = (n: number): ReadonlyArray<Prompt.MessageEncoded> => [
  { role: "user", content: [{ type: "text", text: `question ${n}` }] },
  { role: "assistant", content: [{ type: "tool-call", id: `stored-${n}`, name: "echo", params: { text: "hi" } }] },
  { role: "tool", content: [{ type: "tool-result", id: `stored-${n}`, name: "echo", isFailure: false, result: "hi" }] },
  { role: "assistant", content: [{ type: "text", text: "done" }] }
]

const see = (tally: Tally, part: { readonly type: StreamPartEncoded["type"] }): void => {
  if (part.type === "text-delta" || part.type === "tool-params-delta") tally.deltas++
  else if (part.type === "tool-result") tally.results++
  else if (part.type === "finish") tally.responses++
}

const run = async (workload: Workload): Promise<Measured> => {
  const tally = new Tally()
  const history = Prompt.make(stored(workload, exchange))
  const model = await Effect.runPromise(makeModel(workload, tally, history.content.length + 1))
  const toolkit = await Effect.runPromise(Effect.provide(tools, makeHandlers(workload, tally)))
  const concurrency = limitOf(workload) ?? "unbounded"

  const converse = Effect.fnUntraced(function*(chat: Chat.Chat) {
    let next: Prompt.RawInput = prompt
    let called = false
    do {
      called = false
      const response = chat.streamText({ prompt: next, toolkit, concurrency })
      yield* workload.listener === "sync"
        ? Stream.runForEachArray(response, (parts) => {
          for (const part of parts) {
            called ||= part.type === "tool-call"
            see(tally, part)
          }
          return Effect.void
        })
        : Stream.runForEach(response, (part) =>
          Effect.sync(() => {
            called ||= part.type === "tool-call"
            see(tally, part)
          }))
      next = Prompt.empty
    } while (called)
    return chat
  })

  return play(workload, tally, () => {
    const chat = Effect.runSync(Chat.fromPrompt(history))
    const once = Effect.provideService(converse(chat), LanguageModel.LanguageModel, model)
    return () => Effect.runPromise(Effect.withTracerEnabled(once, false))
  })
}

const cannot = (workload: Workload): string | undefined => {
  if (workload.hooks) return "has no hooks"
  if (workload.name === "steering") return "has no queue of messages"
  if (workload.name === "abort") return "an interruption leaves the calls in the history without results"
  return undefined
}

export const contender: Contender = {
  name: "effect/ai Chat",
  version: "4.1.0",
  prepare: (workload) => Promise.resolve(cannot(workload) ?? (() => run(workload)))
}
export default contender
