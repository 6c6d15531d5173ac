/** What pi-agent-core's `Agent` does in each workload; the same for its versions. */
import type * as Core from "@earendil-works/pi-agent-core"
import type { Contender, Measured, Workload } from "../contender.ts"
import { heapOf, timed } from "../measure.ts"
import { storedTranscript } from "../storedTranscript.ts"
import { Tally } from "../tally.ts"
import { type ModelParts, modelsOf } from "./pi-model.ts"
import { echo, hooks, listener } from "./pi-parts.ts"

export interface Pi extends ModelParts {
  readonly version: string
  readonly Agent: typeof Core.Agent
  /** The parameters of `echo`, `{ text: string }`, in the schema language of this version. */
  readonly parameters: Core.AgentTool["parameters"]
}

const user = (text: string) => ({ role: "user" as const, content: text, timestamp: 0 })

/** Makes agents that share their tool, as those of an application do. */
const makerOf = (pi: Pi, workload: Workload, models: () => Core.StreamFn, tally: Tally) => {
  const tools = [echo(pi.parameters, workload, tally)]
  return (): Core.Agent => {
    const agent = new pi.Agent({
      initialState: {
        systemPrompt: "You are a benchmark.",
        tools,
        messages: workload.name === "transcript" ? storedTranscript(workload) : []
      },
      streamFn: models(),
      ...hooks(workload)
    })
    agent.subscribe(listener(workload, tally))
    return agent
  }
}

const run = async (pi: Pi, workload: Workload, models: () => Core.StreamFn): Promise<Measured> => {
  const tally = new Tally(workload)
  const makeAgent = makerOf(pi, workload, models, tally)
  switch (workload.name) {
    case "agents": {
      const value = await timed(() =>
        Promise.all(Array.from({ length: workload.agents }, () => makeAgent().prompt("go")))
      )
      return { counts: tally.counts(workload), value }
    }
    case "abort": {
      const agent = makeAgent()
      const prompt = agent.prompt("go")
      while (tally.executions < workload.tools) await new Promise(setImmediate)
      const value = await timed(() => {
        agent.abort()
        return prompt
      })
      return { counts: tally.counts(workload), value }
    }
    case "memory": {
      const { value, kept } = await heapOf(workload.agents, async () => {
        const agents: Array<Core.Agent> = []
        for (let i = 0; i < workload.agents; i++) {
          const agent = makeAgent()
          agents.push(agent)
          const prompt = agent.prompt("go")
          if (workload.state === "idle") await prompt
        }
        return agents
      })
      const counts = tally.counts(workload)
      for (const agent of kept) agent.abort()
      return { counts, value }
    }
    case "transcript": {
      const agent = makeAgent()
      const ask = async () => {
        for (let i = 0; i < workload.repeat; i++) await agent.prompt("go")
      }
      await ask()
      tally.reset(workload)
      const value = await timed(ask)
      return { counts: tally.counts(workload), value }
    }
    default: {
      const agent = makeAgent()
      if (workload.name === "steering") {
        for (let i = 0; i < workload.messages; i++) agent.steer(user("steer"))
      }
      const value = await timed(() => agent.prompt("go"))
      return { counts: tally.counts(workload), value }
    }
  }
}

export const piAgent = (pi: Pi): Contender => ({
  name: "pi-agent-core",
  version: pi.version,
  prepare: (workload) => {
    if (workload.name === "calls" && workload.concurrency > 0) {
      return Promise.resolve("runs all calls of a response at once")
    }
    const models = modelsOf(workload, pi)
    return Promise.resolve(() => run(pi, workload, models))
  }
})
