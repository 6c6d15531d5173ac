/** What a workload is, in a few words. */
import type { Workload } from "./contender.ts"

const number = (value: number): string => value.toLocaleString("en").replaceAll(",", " ")

const bytes = (value: number): string => value >= 1_000_000 ? `${value / 1_000_000} MB` : `${value / 1000} kB`

const work = (workload: Workload): string => {
  switch (workload.name) {
    case "turns":
      return `${number(workload.turns)} turns with one call each`
    case "deltas": {
      const { chunk, deltas, wakeUps } = workload
      const how = wakeUps ? ", each after a wake-up" : chunk === 0 ? " at once" : ` in chunks of ${chunk}`
      return `${number(deltas)} text deltas${how}`
    }
    case "arguments":
      return `arguments of ${bytes(workload.bytes)} in ${number(workload.deltas)} deltas`
    case "calls": {
      const { calls, concurrency, tool } = workload
      const kind = { sync: "calls", promise: "calls that await a promise", sleep: "calls that wait 1 ms" }[tool]
      return `${number(calls)} ${concurrency === 0 ? "parallel" : `(${concurrency} at a time)`} ${kind}`
    }
    case "transcript":
      return `a question on top of ${number(workload.messages)} messages`
    case "agents":
      return `${number(workload.agents)} agents at once, ${workload.turns} turns each`
    case "abort":
      return `abort with ${number(workload.tools)} running tools`
    case "steering":
      return `${number(workload.messages)} queued messages, drained one by one`
    case "memory": {
      const state = { idle: "idle", tool: "in a tool", stream: "waiting for the model" }[workload.state]
      return `bytes of an agent, ${state}`
    }
  }
}

export const describe = (workload: Workload): string => {
  const listener = workload.listener === "effect" ? ", listener an effect" : ""
  return work(workload) + listener + (workload.hooks ? ", all hooks" : "")
}
