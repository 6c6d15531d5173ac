/** pi-agent-core 1.0.3, its `runAgentLoop`: the loop without the agent around it. */
import { type AgentEvent, type AgentMessage, runAgentLoop, type StreamFn } from "@earendil-works/pi-agent-core"
import type { Contender, Measured, Workload } from "../contender.ts"
import { timed } from "../measure.ts"
import { storedTranscript } from "../storedTranscript.ts"
import { Tally } from "../tally.ts"
import { modelParts, parameters } from "./pi-1.0.3.ts"
import { modelsOf } from "./pi-model.ts"
import { echo, hooks, listener } from "./pi-parts.ts"

const question: AgentMessage = { role: "user", content: "go", timestamp: 0 }

const model = {
  id: "bench",
  name: "bench",
  api: "bench",
  provider: "bench",
  baseUrl: "",
  reasoning: false,
  input: [],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 0,
  maxTokens: 0
}

/** A conversation, which is all that is kept between two runs. */
const converse = (workload: Workload, tally: Tally, streamFn: StreamFn) => {
  const messages: Array<AgentMessage> = workload.name === "transcript" ? storedTranscript(workload) : []
  const tools = [echo(parameters, workload, tally)]
  const tell = listener(workload, tally)
  const config = { model, convertToLlm: keepAll, ...hooks(workload) }
  return async (signal?: AbortSignal): Promise<void> => {
    const emit = async (event: AgentEvent) => tell(event)
    messages.push(...await runAgentLoop([question], { messages, tools }, config, emit, signal, streamFn))
  }
}

/** Every message of the workloads is one that a model understands. */
const keepAll = (messages: Array<AgentMessage>) => messages

const run = async (workload: Workload, models: () => StreamFn): Promise<Measured> => {
  const tally = new Tally(workload)
  switch (workload.name) {
    case "agents": {
      const value = await timed(() =>
        Promise.all(Array.from({ length: workload.agents }, () => converse(workload, tally, models())()))
      )
      return { counts: tally.counts(workload), value }
    }
    case "abort": {
      const controller = new AbortController()
      const running = converse(workload, tally, models())(controller.signal)
      while (tally.executions < workload.tools) await new Promise(setImmediate)
      const value = await timed(() => {
        controller.abort()
        return running
      })
      return { counts: tally.counts(workload), value }
    }
    case "transcript": {
      const ask = converse(workload, tally, models())
      const askAgain = async () => {
        for (let i = 0; i < workload.repeat; i++) await ask()
      }
      await askAgain()
      tally.reset(workload)
      const value = await timed(askAgain)
      return { counts: tally.counts(workload), value }
    }
    default: {
      const ask = converse(workload, tally, models())
      const value = await timed(ask)
      return { counts: tally.counts(workload), value }
    }
  }
}

const cannot = (workload: Workload): string | undefined => {
  if (workload.name === "steering") return "has no queue of its own"
  if (workload.name === "calls" && workload.concurrency > 0) return "runs all calls of a response at once"
  if (workload.name === "memory") return "keeps nothing between runs"
  return undefined
}

export const contender: Contender = {
  name: "pi-agent-core runAgentLoop",
  version: "1.0.3",
  prepare: (workload) => {
    const missing = cannot(workload)
    if (missing !== undefined) return Promise.resolve(missing)
    const models = modelsOf(workload, modelParts)
    return Promise.resolve(() => run(workload, models))
  }
}
