/** A conversation of a given length, as pi and effect-pi store it. */
import type { Workload } from "./contender.ts"

const text = (value: string) => [{ type: "text" as const, text: value }]

const call = (id: string) => [{ type: "toolCall" as const, id, name: "echo", arguments: { text: "hi" } }]

const assistant = <Content, const Reason>(content: Content, stopReason: Reason) => ({
  role: "assistant" as const,
  content,
  api: "bench",
  provider: "bench",
  model: "bench",
  usage: {
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 0,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
  },
  stopReason,
  timestamp: 0
})

const result = (toolCallId: string) => ({
  role: "toolResult" as const,
  toolCallId,
  toolName: "echo",
  content: text("hi"),
  details: null,
  isError: false,
  timestamp: 0
})

/** A question, a call, its result, an answer. */
const exchange = (n: number) => [
  { role: "user" as const, content: text(`question ${n}`), timestamp: 0 },
  assistant(call(`stored-${n}`), "toolUse"),
  result(`stored-${n}`),
  assistant(text("done"), "stop")
]

const make = (messages: number) => Array.from({ length: messages / 4 }, (_, n) => exchange(n)).flat()

let last: ReturnType<typeof make> = []

/**
 * What stands before the runs of a workload, those that are not timed among them; a run adds four messages. Nobody may change the
 * messages: who asks again gets the same, so that none become garbage.
 */
export const storedTranscript = (workload: Extract<Workload, { readonly name: "transcript" }>) => {
  const messages = workload.messages - 4 * workload.repeat
  if (last.length !== messages) last = make(messages)
  return last.slice()
}
