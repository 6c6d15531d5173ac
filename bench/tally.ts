/** Counts what a listener sees, for libraries whose events are those of pi. */
import type { Counts, Workload } from "./contender.ts"

/** As much of an event as is counted. */
interface Event {
  readonly type: string
  readonly message?: { readonly role: string; readonly stopReason?: string }
  readonly assistantMessageEvent?: { readonly type: string }
}

const prompts = (workload: Workload): number => {
  if (workload.name === "agents" || workload.name === "memory") return workload.agents
  return workload.name === "transcript" ? workload.repeat : 1
}

export class Tally implements Counts {
  responses = 0
  deltas = 0
  executions = 0
  results = 0
  queued = 0

  constructor(workload: Workload) {
    this.reset(workload)
  }

  /** Begins to count from here. */
  reset(workload: Workload): void {
    this.responses =
      this.deltas =
      this.executions =
      this.results =
        0
    // A prompt is not a queued message.
    this.queued = -prompts(workload)
  }

  see(event: Event): void {
    if (event.type === "message_update") {
      const { type } = event.assistantMessageEvent!
      if (type === "text_delta" || type === "toolcall_delta") this.deltas++
    } else if (event.type === "message_end") {
      const { role, stopReason } = event.message!
      if (role === "user") this.queued++
      else if (role === "toolResult") this.results++
      else if (role === "assistant" && stopReason !== "aborted") this.responses++
    }
  }

  /** What was counted; of agents in a tool the response is left out. */
  counts(workload: Workload): Counts {
    const { deltas, executions, queued, responses, results } = this
    const inTool = workload.name === "memory" && workload.state === "tool"
    return { responses: inTool ? 0 : responses, deltas, executions, results, queued }
  }
}
