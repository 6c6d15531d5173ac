/**
 * The scripted model for pi: an asynchronous iterator over events that were made before, so that as little time as possible
 * is the model's. Where arguments arrive in pieces they are parsed again with each of them, as the adapters of pi-ai do.
 */
import type { AgentEvent, StreamFn } from "@earendil-works/pi-agent-core"
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

/** The events of a response, and its message. */
interface Recorded {
  readonly events: ReadonlyArray<ModelEvent>
  readonly message: Assistant
  /** Has to be told each piece of arguments before its event is handed out. */
  readonly reading?: (piece: string) => void
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
  return { events, message }
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
  if (pieces.length === 1) return { events, message }
  const read = parser()
  const call = content[0]!
  return { events, message, reading: (piece) => void (call.arguments = read(piece)) }
}

const wakeUp = (): Promise<void> => new Promise((resolve) => queueMicrotask(resolve))

/** Hands out a recorded response. */
class Replay implements AsyncIterator<ModelEvent> {
  readonly #recorded: Recorded
  readonly #chunk: number
  #next = 0

  /** `chunk`: so many events follow one asynchronous wake-up; 0: there are none. */
  constructor(recorded: Recorded, chunk: number) {
    this.#recorded = recorded
    this.#chunk = chunk
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<ModelEvent>> {
    const index = this.#next++
    const { events, reading } = this.#recorded
    const value = events[index]
    if (value === undefined) return Promise.resolve({ done: true, value })
    if (reading !== undefined && value.type === "toolcall_delta") reading(value.delta)
    const result = { done: false, value } as const
    return this.#chunk > 0 && index % this.#chunk === 0 ? wakeUp().then(() => result) : Promise.resolve(result)
  }

  result(): Promise<Assistant> {
    return Promise.resolve(this.#recorded.message)
  }
}

const aborted: Recorded = (() => {
  const message = assistant([], "aborted")
  return { message, events: [{ type: "error", reason: "aborted", error: message }] }
})()

/** What waits for a silent model; as a socket would, it keeps them from being collected. */
const waiting: Array<() => void> = []

const silence: AsyncIterable<never> & { readonly result: () => Promise<never> } = {
  [Symbol.asyncIterator]: () => ({
    next: () => new Promise((resolve) => waiting.push(() => resolve({ done: true, value: undefined })))
  }),
  result: () => new Promise(() => {})
}

/** A model for one run, whose responses are recorded now; where memory is measured it must not keep them. */
export const makeModel = (workload: Workload, parser: ArgumentsParser): StreamFn => {
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
  let request = 0
  const stream = (_model: unknown, _context: unknown, options?: { readonly signal?: AbortSignal }) => {
    if (options?.signal?.aborted === true) return new Replay(aborted, 0)
    const response = workload.name === "memory" ? record(request) : recorded[request]
    request++
    return response === undefined ? silence : new Replay(response, chunk)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the loop only reads; the class is for those who write
  return stream as unknown as StreamFn
}
