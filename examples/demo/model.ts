/**
 * No language model: rules that read the question and the tool results. It stands where a provider's adapter would
 * stand: a `StreamFn` that is given the conversation and streams a response, text in small pieces or tool calls.
 */
import { Effect, type Layer, Stream } from "effect"
import { Messages, StreamFn } from "../../src/index.ts"
import { type Answered, type Call, stepFor } from "./answers.ts"
import { readQuestion } from "./questions.ts"

/** Answers questions about files; see `abilities` for what it understands. */
export const RuleBasedModel: Layer.Layer<StreamFn.StreamFn> = StreamFn.layer((request) =>
  Stream.fromArray(respond(request)).pipe(
    Stream.mapEffect(({ event, pause }) => Effect.as(Effect.sleep(pause), event))
  )
)

/** An event, and how long the model takes for it. */
interface Paced {
  readonly pause: `${number} millis`
  readonly event: StreamFn.StreamEvent
}

const respond = ({ messages, toolChoice, tools }: StreamFn.StreamRequest): ReadonlyArray<Paced> => {
  // Every question since the last answer: a message that came in while tools worked does not replace the first one.
  const steps = openQuestions(messages).map(({ question, since }) =>
    stepFor(readQuestion(question), (call) => resultOf(messages, since, call))
  )
  const known = steps.filter((step) => step.calls.length === 0)
  const answers = known.map((step) => step.text).join("\n\n")
  const footnotes = new Set(known.flatMap((step) => step.footnote ?? []))
  if (toolChoice === "none") {
    return say(["I may call no more tools. This is what I know:", answers || "nothing.", ...footnotes].join("\n"))
  }

  const calls = distinct(steps.flatMap((step) => step.calls))
  const missing = calls.find((call) => tools.every((tool) => tool.name !== call.name))
  if (missing !== undefined) return say(`For that I would need the tool ${missing.name}.`)
  if (calls.length > 0) return callTools(calls, messages.flatMap(Messages.toolCalls).length)
  return say([answers, ...footnotes].join("\n"))
}

const openQuestions = (messages: ReadonlyArray<Messages.Message>) => {
  const answered = messages.findLastIndex((message) =>
    message.role === "assistant" && Messages.toolCalls(message).length === 0
  )
  return messages.flatMap((message, index) =>
    message.role === "user" && index > answered ? [{ question: Messages.text(message), since: index }] : []
  )
}

const keyOf = (call: Call): string => `${call.name} ${JSON.stringify(call.args)}`

const distinct = (calls: ReadonlyArray<Call>): ReadonlyArray<Call> => [
  ...new Map(calls.map((call) => [keyOf(call), call])).values()
]

/** The result of a call that was made after the message at `since`. */
const resultOf = (
  messages: ReadonlyArray<Messages.Message>,
  since: number,
  call: Call
): Answered | undefined => {
  const ids = new Set(
    messages.slice(since).flatMap(Messages.toolCalls)
      .filter((made) => keyOf({ name: made.name, args: made.arguments }) === keyOf(call))
      .map((made) => made.id)
  )
  const result = messages.findLast((message) => message.role === "toolResult" && ids.has(message.toolCallId))
  return result?.role === "toolResult" ? { text: Messages.text(result), isError: result.isError } : undefined
}

const start: Paced = { pause: "100 millis", event: { type: "start" } }

const at = (event: StreamFn.StreamEvent): Paced => ({ pause: "0 millis", event })

const callTools = (calls: ReadonlyArray<Call>, made: number): ReadonlyArray<Paced> => [
  start,
  ...calls.flatMap(({ args, name }, contentIndex): ReadonlyArray<Paced> => [
    at({ type: "toolcall_start", contentIndex, id: `call_${made + contentIndex + 1}`, name }),
    at({ type: "toolcall_delta", contentIndex, delta: JSON.stringify(args) }),
    at({ type: "toolcall_end", contentIndex })
  ]),
  at({ type: "done", stopReason: "toolUse" })
]

/** A text, word by word; a long one in larger pieces, so that it takes a second at most. */
const say = (text: string): ReadonlyArray<Paced> => {
  const words = text.match(/\s*\S+/g) ?? []
  const size = Math.max(1, Math.ceil(words.length / 50))
  const pieces = Array.from(
    { length: Math.ceil(words.length / size) },
    (_, index) => words.slice(index * size, (index + 1) * size).join("")
  )
  return [
    start,
    at({ type: "text_start", contentIndex: 0 }),
    ...pieces.map((delta): Paced => ({
      pause: "10 millis",
      event: { type: "text_delta", contentIndex: 0, delta }
    })),
    at({ type: "text_end", contentIndex: 0 }),
    at({ type: "done", stopReason: "stop" })
  ]
}
