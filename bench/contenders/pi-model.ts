/**
 * The scripted model for pi: events that were made before, pushed into the stream class that pi asks its models for and all
 * adapters of pi-ai use. Where arguments arrive in pieces they are parsed again with each of them, as those adapters do.
 */
import type { AgentEvent, StreamFn } from "@earendil-works/pi-agent-core"
import type { AssistantMessageEventStream } from "@earendil-works/pi-ai"
import type { Workload } from "../contender.ts"
import { requests, type Response, script } from "../script.ts"

type ModelEvent = Extract<AgentEvent, { type: "message_update" }>["assistantMessageEvent"]
type Assistant = ModelEvent extends infer E ? E extends { partial: infer M } ? M : never : never
type Call = Extract<Assistant["content"][number], { type: "toolCall" }>

/** Reads the pieces of one call's arguments; gives what they say so far. */
export type ArgumentsParser = () => (piece: string) => Call["arguments"]

const usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
}

const assistant = (content: Assistant["content"], stopReason: Assistant["stopReason"]): Assistant => ({
  role: "assistant",
  content,
  api: "bench",
  provider: "bench",
  model: "bench",
  usage,
  stopReason,
  timestamp: 0
})

/** The events of a response. */
interface Recorded {
  readonly events: ReadonlyArray<ModelEvent>
  /** Makes what has to be told each piece of arguments before its event is handed out. */
  readonly reader?: () => (piece: string) => void
}

const textEvents = (delta: string, deltas: number): Recorded => {
  const text = delta.repeat(deltas)
  const message = assistant([{ type: "text", text }], "stop")
  const partial = assistant(message.content, "pending")
  const events: Array<ModelEvent> = [
    { type: "start", partial: assistant([], "pending") },
    { type: "text_start", contentIndex: 0, partial }
  ]
  for (let i = 0; i < deltas; i++) events.push({ type: "text_delta", contentIndex: 0, delta, partial })
  events.push({ type: "text_end", contentIndex: 0, content: text, partial }, { type: "done", reason: "stop", message })
  return { events }
}

const callEvents = (
  request: number,
  { calls, pieces, text }: Extract<Response, { type: "calls" }>,
  parser: ArgumentsParser
): Recorded => {
  const content = Array.from({ length: calls }, (_, index): Call => ({
    type: "toolCall",
    id: `call-${request}-${index}`,
    name: "echo",
    arguments: { text }
  }))
  const message = assistant(content, "toolUse")
  const partial = assistant(content, "pending")
  const events: Array<ModelEvent> = [{ type: "start", partial: assistant([], "pending") }]
  for (const [contentIndex, toolCall] of content.entries()) {
    events.push({ type: "toolcall_start", contentIndex, partial })
    for (const delta of pieces) events.push({ type: "toolcall_delta", contentIndex, delta, partial })
    events.push({ type: "toolcall_end", contentIndex, toolCall, partial })
  }
  events.push({ type: "done", reason: "toolUse", message })
  if (pieces.length === 1) return { events }
  const call = content[0]!
  return {
    events,
    reader: () => {
      const read = parser()
      return (piece) => void (call.arguments = read(piece))
    }
  }
}

const wakeUp = (): Promise<void> => new Promise((resolve) => queueMicrotask(resolve))

/** Pushes a recorded response. `chunk`: so many events follow one asynchronous wake-up; 0: there are none. */
const replay = async ({ events, reader }: Recorded, chunk: number, stream: AssistantMessageEventStream) => {
  const reading = reader?.()
  for (let index = 0; index < events.length; index++) {
    const event = events[index]!
    if (chunk > 0 && index % chunk === 0) await wakeUp()
    if (reading !== undefined && event.type === "toolcall_delta") reading(event.delta)
    stream.push(event)
  }
}

const aborted: Recorded = { events: [{ type: "error", reason: "aborted", error: assistant([], "aborted") }] }

/** Streams that stay silent; as a socket would, this keeps them from being collected. */
const silent: Array<AssistantMessageEventStream> = []

/** What a version of pi gives to those who write a model for it. */
export interface ModelParts {
  readonly makeStream: () => AssistantMessageEventStream
  /** How this version's adapters read arguments that arrive in pieces. */
  readonly parser: ArgumentsParser
}

/** Makes models for one run each, whose responses are recorded now; where memory is measured they must not be kept. */
export const modelsOf = (workload: Workload, { makeStream, parser }: ModelParts): () => StreamFn => {
  const respond = script(workload)
  const record = (request: number): Recorded | undefined => {
    const response = respond(request)
    if (response.type === "silence") return undefined
    return response.type === "text"
      ? textEvents(response.delta, response.deltas)
      : callEvents(request, response, parser)
  }
  const recorded = workload.name === "memory" ? [] : Array.from({ length: requests(workload) }, (_, n) => record(n))
  const chunk = workload.name === "deltas" && workload.wakeUps ? Math.max(1, workload.chunk) : 0
  const makeModel = (): StreamFn => {
    let request = 0
    return (_model, _context, options) => {
      const stream = makeStream()
      if (options?.signal?.aborted === true) {
        void replay(aborted, 0, stream)
        return stream
      }
      const response = workload.name === "memory" ? record(request) : recorded[request]
      request++
      if (response === undefined) silent.push(stream)
      else void replay(response, chunk, stream)
      return stream
    }
  }
  return makeModel
}
