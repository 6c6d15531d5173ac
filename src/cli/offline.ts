/**
 * The model that answers when there is no provider: a few rules, no language model. It knows one way to ask for each tool, so
 * that the program can be tried without a key and without a network.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type JsonObject, type Message, text as textOf, toolCalls } from "../Messages.ts"
import type { Model, StreamEvent, StreamFn, StreamRequest } from "../StreamFn.ts"

export const offlineModel: Model = {
  id: "rules",
  name: "offline demo",
  api: "rules",
  provider: "offline"
}

interface Call {
  readonly name: string
  readonly args: JsonObject
}

const rules: ReadonlyArray<readonly [pattern: RegExp, call: (parts: ReadonlyArray<string>) => Call]> = [
  [/^(?:list|ls)(?:\s+(\S+))?$/i, ([path]) => ({ name: "list", args: { path: path || "." } })],
  [/^(?:read|cat)\s+(\S+)$/i, ([path = ""]) => ({ name: "read", args: { path } })],
  [
    /^(?:search|find|grep)\s+(.+?)(?:\s+in\s+(\S+))?$/i,
    ([pattern = "", path]) => ({ name: "search", args: { pattern, path: path || ".", literal: true } })
  ],
  [
    /^write\s+([^\s:]+):?\s+([\s\S]+)$/i,
    ([path = "", content = ""]) => ({ name: "write", args: { path, content: `${content}\n` } })
  ],
  [
    /^replace\s+(.+?)\s+(?:by|with)\s+(.+?)\s+in\s+(\S+)$/i,
    ([oldText = "", newText = "", path = ""]) => ({ name: "edit", args: { path, oldText, newText } })
  ],
  [/^run\s+([\s\S]+)$/i, ([command = ""]) => ({ name: "run", args: { command } })]
]

const abilities = `I am a set of rules, not a language model. I understand:

- \`list FOLDER\`
- \`read FILE\`
- \`search TEXT in FOLDER\`
- \`write FILE: TEXT\`
- \`replace TEXT by TEXT in FILE\`
- \`run COMMAND\`

Set OPENAI_API_KEY or OPENAI_BASE_URL, or install @earendil-works/pi-ai and set a key of one of its providers, to talk to a model.`

const callFor = (question: string): Call | undefined => {
  for (const [pattern, call] of rules) {
    const match = pattern.exec(question.trim())
    if (match !== null) return call(match.slice(1).map((part) => part ?? ""))
  }
  return undefined
}

/** What was asked since the last answer: one that came in while a tool worked does not replace the first. */
const openQuestions = (messages: ReadonlyArray<Message>) => {
  const answered = messages.findLastIndex((message) => message.role === "assistant" && toolCalls(message).length === 0)
  return messages.flatMap((message, index) =>
    message.role === "user" && index > answered ? [{ call: callFor(textOf(message)), since: index }] : []
  )
}

const sameCall = (call: Call, name: string, args: JsonObject): boolean =>
  call.name === name && JSON.stringify(call.args) === JSON.stringify(args)

const resultOf = (messages: ReadonlyArray<Message>, since: number, call: Call) => {
  const ids = new Set(
    messages.slice(since).flatMap(toolCalls)
      .filter((made) => sameCall(call, made.name, made.arguments))
      .map((made) => made.id)
  )
  return messages.find((message) => message.role === "toolResult" && ids.has(message.toolCallId))
}

const maxQuoted = 12

const answer = (call: Call, result: Message): string => {
  const lines = textOf(result).split("\n")
  const more = lines.length > maxQuoted ? `\n… and ${lines.length - maxQuoted} more lines` : ""
  const failed = result.role === "toolResult" && result.isError
  return `${failed ? `**${call.name}** did not work:` : `**${call.name}** says:`}\n\n\`\`\`\n${
    lines.slice(0, maxQuoted).join("\n")
  }${more}\n\`\`\``
}

interface Paced {
  readonly pause: number
  readonly event: StreamEvent
}

const at = (event: StreamEvent): Paced => ({ pause: 0, event })

const wordsOf = (text: string): ReadonlyArray<string> => {
  const words = text.match(/\s*\S+|\s+$/g) ?? []
  const size = Math.max(1, Math.ceil(words.length / 60))
  return Array.from(
    { length: Math.ceil(words.length / size) },
    (_, index) => words.slice(index * size, (index + 1) * size).join("")
  )
}

const block = (kind: "text" | "thinking", contentIndex: number, text: string): ReadonlyArray<Paced> => [
  at({ type: `${kind}_start`, contentIndex }),
  ...wordsOf(text).map((delta): Paced => ({ pause: 15, event: { type: `${kind}_delta`, contentIndex, delta } })),
  at({ type: `${kind}_end`, contentIndex })
]

const respond = ({ messages }: StreamRequest): ReadonlyArray<Paced> => {
  const questions = openQuestions(messages)
  const missing = questions.flatMap(({ call, since }) =>
    call !== undefined && resultOf(messages, since, call) === undefined ? [call] : []
  )
  if (missing.length > 0) {
    const made = messages.flatMap(toolCalls).length
    return [
      { pause: 50, event: { type: "start" } },
      ...block("thinking", 0, `That is for ${missing.map((call) => call.name).join(" and ")}.`),
      ...missing.flatMap((call, index): ReadonlyArray<Paced> => [
        at({ type: "toolcall_start", contentIndex: index + 1, id: `call_${made + index + 1}`, name: call.name }),
        at({ type: "toolcall_delta", contentIndex: index + 1, delta: JSON.stringify(call.args) }),
        at({ type: "toolcall_end", contentIndex: index + 1 })
      ]),
      at({ type: "done", stopReason: "toolUse" })
    ]
  }
  const texts = questions.map(({ call, since }) => {
    const result = call === undefined ? undefined : resultOf(messages, since, call)
    return call === undefined || result === undefined ? abilities : answer(call, result)
  })
  return [
    { pause: 50, event: { type: "start" } },
    ...block("text", 0, texts.join("\n\n")),
    at({ type: "done", stopReason: "stop" })
  ]
}

export const offlineStream: StreamFn["Service"]["stream"] = (request) =>
  Stream.suspend(() => Stream.fromArray(respond(request))).pipe(
    Stream.mapEffect(({ event, pause }) => pause === 0 ? Effect.succeed(event) : Effect.as(Effect.sleep(pause), event))
  )
