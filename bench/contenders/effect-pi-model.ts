/**
 * The scripted model for effect-pi: streams of arrays that were made before, as a provider emits what one read from the
 * network brought.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { StreamEvent } from "../../src/StreamFn.ts"
import type { Workload } from "../contender.ts"
import { requests, type Response, script } from "../script.ts"

type Chunk = readonly [StreamEvent, ...Array<StreamEvent>]

const chunksOf = (events: ReadonlyArray<StreamEvent>, size: number): ReadonlyArray<Exit.Exit<Chunk>> => {
  const chunks: Array<Exit.Exit<Chunk>> = []
  for (let i = 0; i < events.length; i += size) {
    const [first, ...rest] = events.slice(i, i + size)
    chunks.push(Exit.succeed([first!, ...rest]))
  }
  return chunks
}

/** Chunk after chunk; `wakeUps`: each arrives a while after it was asked for. */
const replay = (chunks: ReadonlyArray<Exit.Exit<Chunk>>, wakeUps: boolean): Stream.Stream<StreamEvent> =>
  Stream.fromPull(Effect.sync(() => {
    let index = 0
    const next = () => chunks[index++] ?? Cause.done()
    return wakeUps
      ? Effect.callback<Chunk, Cause.Done>((resume) => queueMicrotask(() => resume(next())))
      : Effect.suspend(next)
  }))

const textEvents = (delta: string, deltas: number): ReadonlyArray<StreamEvent> => [
  { type: "start" },
  { type: "text_start", contentIndex: 0 },
  ...Array.from({ length: deltas }, (): StreamEvent => ({ type: "text_delta", contentIndex: 0, delta })),
  { type: "text_end", contentIndex: 0 },
  { type: "done", stopReason: "stop" }
]

const callEvents = (request: number, { calls, pieces }: Extract<Response, { type: "calls" }>) => {
  const events: Array<StreamEvent> = [{ type: "start" }]
  for (let contentIndex = 0; contentIndex < calls; contentIndex++) {
    events.push({ type: "toolcall_start", contentIndex, id: `call-${request}-${contentIndex}`, name: "echo" })
    for (const delta of pieces) events.push({ type: "toolcall_delta", contentIndex, delta })
    events.push({ type: "toolcall_end", contentIndex })
  }
  events.push({ type: "done", stopReason: "toolUse" })
  return events
}

type Model = () => Stream.Stream<StreamEvent>

/** Makes models for one run each, whose responses are recorded now; where memory is measured they must not be kept. */
export const modelsOf = (workload: Workload): () => Model => {
  const respond = script(workload)
  const record = (request: number): Stream.Stream<StreamEvent> => {
    const response = respond(request)
    if (response.type === "silence") return Stream.never
    if (response.type === "calls") return Stream.fromArray(callEvents(request, response))
    const events = textEvents(response.delta, response.deltas)
    if (workload.name !== "deltas" || workload.chunk === 0) return Stream.fromArray(events)
    return replay(chunksOf(events, workload.chunk), workload.wakeUps)
  }
  const recorded = workload.name === "memory" ? [] : Array.from({ length: requests(workload) }, (_, n) => record(n))
  const makeModel = (): Model => {
    let request = 0
    return () => {
      const response = recorded[request] ?? record(request)
      request++
      return response
    }
  }
  return makeModel
}
