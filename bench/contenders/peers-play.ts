/**
 * What the contenders of other families share: how a script becomes the parts of their models, what their tool does, what is counted,
 * and how a workload is played by a library whose conversations are made one by one.
 */
import type { Counts, Measured, Workload } from "../contender.ts"
import { heapOf, timed } from "../measure.ts"
import { requests, type Response, script } from "../script.ts"

export const prompt = "go"

type Spoken = Exclude<Response, { readonly type: "silence" }>

/** A call of `echo` as it arrives. */
export interface Call {
  readonly id: string
  readonly text: string
  readonly pieces: ReadonlyArray<string>
  readonly json: string
}

export const textOf = (response: Spoken): ReadonlyArray<string> =>
  response.type === "text" ? Array.from({ length: response.deltas }, () => response.delta) : []

export const callsOf = (response: Spoken, request: number): ReadonlyArray<Call> => {
  if (response.type === "text") return []
  const { calls, pieces, text } = response
  const json = pieces.join("")
  return Array.from({ length: calls }, (_, index) => ({ id: `call-${request}-${index}`, text, pieces, json }))
}

/**
 * The responses, recorded before they are asked for. Which one it is, is read off the number of messages that were added to the
 * beginning of the conversation, its prompt included: two for each request, and more only where one response remains. So one model
 * serves any number of conversations. `undefined` is silence.
 */
export const recorded = <A>(workload: Workload, record: (response: Spoken, request: number) => A) => {
  const respond = script(workload)
  const one = (request: number): A | undefined => {
    const response = respond(request)
    return response.type === "silence" ? undefined : record(response, request)
  }
  // Where memory is measured, every agent has what it received for itself.
  if (workload.name === "memory") return () => one(0)
  const all = Array.from({ length: requests(workload) }, (_, request) => one(request))
  return (added: number) => all[Math.min(added >> 1, all.length - 1)]
}

/** Parts in the groups in which they arrive. */
export const grouped = <A>(workload: Workload, parts: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> => {
  const size = workload.name === "deltas" && workload.chunk > 0 ? workload.chunk : parts.length
  return Array.from({ length: Math.ceil(parts.length / size) }, (_, n) => parts.slice(n * size, (n + 1) * size))
}

export const wakesUp = (workload: Workload): boolean => workload.name === "deltas" && workload.wakeUps
export const wakeUp = (): Promise<void> => new Promise((resolve) => queueMicrotask(resolve))

/** How often an iterator that gives one part at a time wakes up; 0: never. */
export const wakeUpEach = (workload: Workload): number =>
  workload.name === "deltas" && workload.wakeUps ? Math.max(1, workload.chunk) : 0

/** The limit of concurrent calls, if there is one. */
export const limitOf = (workload: Workload): number | undefined =>
  workload.name === "calls" && workload.concurrency > 0 ? workload.concurrency : undefined

/** The messages of a stored transcript, four for each exchange: a question, a call, its result, an answer. */
export const stored = <A>(workload: Workload, exchange: (n: number) => ReadonlyArray<A>): Array<A> =>
  workload.name === "transcript"
    ? Array.from({ length: workload.messages / 4 }, (_, n) => exchange(n)).flat()
    : []

/** What a listener saw, and what waits. */
export class Tally {
  responses = 0
  deltas = 0
  executions = 0
  results = 0
  queued = 0
  readonly #waiting: Array<() => void> = []

  /** Waits for ever, but stays reachable, as something that waits for the outside world does. */
  readonly wait = (): Promise<void> => new Promise((resolve) => this.#waiting.push(resolve))

  async waiting(count: number): Promise<void> {
    while (this.#waiting.length < count) await new Promise(setImmediate)
  }

  /** Of agents in a tool the response is left out: several libraries show its end only behind the tools. */
  counts(workload: Workload): Counts {
    const { deltas, executions, queued, responses, results } = this
    const inTool = workload.name === "memory" && workload.state === "tool"
    return { responses: inTool ? 0 : responses, deltas, executions, results, queued }
  }
}

/** What `echo` does. */
export const echo = (workload: Workload, tally: Tally): (text: string) => string | Promise<string> => {
  const wait = workload.name === "memory" ? tally.wait : {
    sync: undefined,
    promise: wakeUp,
    sleep: () => new Promise((resolve) => setTimeout(resolve, 1))
  }[workload.name === "calls" ? workload.tool : "sync"]
  return (text) => {
    tally.executions++
    return wait === undefined ? text : wait().then(() => text)
  }
}

/**
 * A conversation. Each time it sends the prompt and reads to the end; what it gives has to be kept to go on with the conversation, apart
 * from the definition of the agent, which all conversations share.
 */
export type Conversation = () => Promise<unknown>

export const play = async (workload: Workload, tally: Tally, begin: () => Conversation): Promise<Measured> => {
  switch (workload.name) {
    case "transcript": {
      const converse = begin()
      const value = await timed(async () => {
        for (let n = 0; n < workload.repeat; n++) await converse()
      })
      return { counts: tally.counts(workload), value }
    }
    case "agents": {
      const value = await timed(() => Promise.all(Array.from({ length: workload.agents }, () => begin()())))
      return { counts: tally.counts(workload), value }
    }
    case "memory": {
      const { value } = await heapOf(workload.agents, async () => {
        const kept: Array<unknown> = [tally]
        for (let n = 0; n < workload.agents; n++) {
          const conversation = begin()()
          kept.push(workload.state === "idle" ? await conversation : conversation)
        }
        if (workload.state !== "idle") await tally.waiting(workload.agents)
        return kept
      })
      return { counts: tally.counts(workload), value }
    }
    default: {
      const converse = begin()
      const value = await timed(converse)
      return { counts: tally.counts(workload), value }
    }
  }
}
