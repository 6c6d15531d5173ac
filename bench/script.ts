/** What the model answers in a workload, the same for every contender. */
import type { Workload } from "./contender.ts"

/** One response. */
export type Response =
  | { readonly type: "text"; readonly deltas: number; readonly delta: string }
  /** That many calls of `echo`, each with the pieces of its arguments. */
  | { readonly type: "calls"; readonly calls: number; readonly pieces: ReadonlyArray<string>; readonly text: string }
  /** Nothing, ever. */
  | { readonly type: "silence" }

const text = (delta: string, deltas = 1): Response => ({ type: "text", deltas, delta })

const echo = (calls: number): Response => ({ type: "calls", calls, pieces: [`{"text":"hi"}`], text: "hi" })

/** A call with arguments of that many bytes, in that many pieces. */
const longCall = (bytes: number, deltas: number): Response => {
  const value = "a".repeat(bytes - `{"text":""}`.length)
  const json = JSON.stringify({ text: value })
  const size = Math.ceil(json.length / deltas)
  const pieces = Array.from({ length: deltas }, (_, index) => json.slice(index * size, (index + 1) * size))
  return { type: "calls", calls: 1, pieces, text: value }
}

const done = text("done")

/** The responses of one run, by the number of the request from 0. */
export const script = (workload: Workload): (request: number) => Response => {
  switch (workload.name) {
    case "turns":
    case "agents": {
      const turn = echo(1)
      return (request) => request < workload.turns ? turn : done
    }
    case "deltas": {
      const response = text("word ", workload.deltas)
      return () => response
    }
    case "arguments": {
      const call = longCall(workload.bytes, workload.deltas)
      return (request) => request === 0 ? call : done
    }
    case "calls": {
      const calls = echo(workload.calls)
      return (request) => request === 0 ? calls : done
    }
    case "abort": {
      const calls = echo(workload.tools)
      return (request) => request === 0 ? calls : done
    }
    case "transcript": {
      const call = echo(1)
      return (request) => request % 2 === 0 ? call : done
    }
    case "steering": {
      const ok = text("ok")
      return () => ok
    }
    case "memory": {
      const response = { idle: done, tool: echo(1), stream: { type: "silence" } as const }[workload.state]
      return () => response
    }
  }
}

/** How many requests one run makes; on top of a transcript with those of the runs that are not timed. */
export const requests = (workload: Workload): number => {
  switch (workload.name) {
    case "turns":
    case "agents":
      return workload.turns + 1
    case "deltas":
    case "memory":
      return 1
    case "arguments":
    case "calls":
    case "abort":
      return 2
    case "transcript":
      return 2 * (2 * workload.repeat)
    case "steering":
      return workload.messages
  }
}
