/**
 * The agent of the demo.
 */
import type { Effect, FileSystem, Path, Scope } from "effect"
import { Agent, type Errors, type StreamFn } from "../../src/index.ts"
import { fileTools } from "./tools.ts"
import type { Workspace } from "./workspace.ts"

/** Its type says what has to be provided: a model, and the services the tools ask for. */
export const makeAgent = (options: Pick<Agent.Options, "limits" | "toolTimeout" | "wrapUp"> = {}): Effect.Effect<
  Agent.AgentService,
  Errors.AgentConfigError,
  Scope.Scope | StreamFn.StreamFn | FileSystem.FileSystem | Path.Path | Workspace
> =>
  Agent.make({
    systemPrompt: "You answer questions about the files of the working folder. Look before you answer.",
    model: { id: "rules", name: "RuleBasedModel", provider: "demo" },
    tools: fileTools,
    limits: { turns: 12 },
    ...options
  })
