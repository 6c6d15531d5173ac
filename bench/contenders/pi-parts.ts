/** The tool, the listener and the hooks that pi-agent-core is measured with. */
import type * as Core from "@earendil-works/pi-agent-core"
import type { Workload } from "../contender.ts"
import type { Tally } from "../tally.ts"

/** Rejects when the signal fires. */
const untilAborted = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(new Error("Operation aborted")), { once: true })
  })

const work = (workload: Workload): ((signal: AbortSignal | undefined) => Promise<unknown>) | undefined => {
  if (workload.name === "abort" || workload.name === "memory") return untilAborted
  if (workload.name !== "calls" || workload.tool === "sync") return undefined
  return workload.tool === "promise"
    ? () => new Promise((resolve) => queueMicrotask(() => resolve(undefined)))
    : () => new Promise((resolve) => setTimeout(resolve, 1))
}

export const echo = (parameters: Core.AgentTool["parameters"], workload: Workload, tally: Tally): Core.AgentTool => {
  const wait = work(workload)
  return {
    name: "echo",
    label: "echo",
    description: "Says what it is told.",
    parameters,
    execute: async (_id, args, signal) => {
      tally.executions++
      if (wait !== undefined) await wait(signal)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- they were validated against `parameters`
      const { text } = args as { readonly text: string }
      return { content: [{ type: "text", text }], details: undefined }
    }
  }
}

export const listener = (workload: Workload, tally: Tally): (event: Core.AgentEvent) => Promise<void> | void =>
  workload.listener === "sync" ? (event) => tally.see(event) : async (event) => tally.see(event)

/** Every hook there is. */
export const hooks = (workload: Workload) =>
  workload.hooks
    ? {
      transformContext: async (messages: Array<Core.AgentMessage>) => messages,
      getApiKey: () => undefined,
      beforeToolCall: async () => undefined,
      afterToolCall: async () => undefined,
      finishTurn: () => undefined,
      prepareRequest: () => undefined,
      prepareNextTurn: () => undefined
    }
    : {}
