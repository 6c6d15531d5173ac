/**
 * The agent of the program, and the model that answers it.
 */
import * as Effect from "effect/Effect"
import * as Agent from "../Agent.ts"
import * as Hooks from "../Hooks.ts"
import type { ThinkingLevel } from "../Messages.ts"
import { StreamFn } from "../StreamFn.ts"
import type { Provider } from "./provider.ts"
import { tools } from "./tools.ts"
import { Workspace } from "./workspace.ts"

export interface SessionOptions {
  readonly provider: Provider
  /** Replaces what the agent is told about itself. */
  readonly system: string | undefined
  readonly thinking: ThinkingLevel
  readonly maxTurns: number
  /** Dollars of one run. */
  readonly maxCost: number | undefined
  readonly approval: Hooks.Hook
}

export interface Session {
  readonly agent: Agent.AgentService
  readonly provider: () => Provider
  /** Answers the next requests. */
  readonly use: (provider: Provider) => Effect.Effect<void>
}

const defaultSystem = (root: string): string =>
  `You are a coding agent in a terminal. You work in the folder ${root} with the tools you have; paths are relative to it.
Look before you answer, read a file before you edit it, and check what you changed. Be brief. Answer in Markdown.`

export const makeSession = Effect.fn("makeSession")(function*(options: SessionOptions) {
  const { root } = yield* Workspace
  let provider = options.provider
  const agent = yield* Agent.make({
    systemPrompt: options.system ?? defaultSystem(root),
    model: provider.model,
    thinkingLevel: options.thinking,
    tools,
    limits: { turns: options.maxTurns, cost: options.maxCost },
    maxResultLength: 200_000,
    // A command gets half a second to end by itself, then its processes are killed and waited for.
    gracePeriod: "3 seconds"
  }).pipe(
    Effect.provideService(StreamFn, { stream: (request) => provider.stream(request) }),
    Effect.provide(Hooks.layer(options.approval))
  )
  const session: Session = {
    agent,
    provider: () => provider,
    use: (next) =>
      Effect.suspend(() => {
        provider = next
        return agent.setModel(next.model)
      })
  }
  return session
})
