/** pi-agent-core 1.6.0, its `Agent`. */
import type * as Core from "@earendil-works/pi-agent-core"
import { obj, str } from "@earendil-works/pi-schema"
import { findPackageJSON } from "node:module"
import { pathToFileURL } from "node:url"
import { Agent } from "pi-agent-core-1.6.0"
import { piAgent } from "./pi.ts"

/** In the pi-ai that this version brings along, not in the older one beside it. */
const manifest = findPackageJSON("@earendil-works/pi-ai", import.meta.resolve("pi-agent-core-1.6.0"))!
const { StreamingJsonParser } = await import(new URL("dist/index.js", pathToFileURL(manifest)).href)

export const contender = piAgent({
  version: "1.6.0",
  // What the workloads use of it did not change since 1.0.
  Agent: Agent as unknown as typeof Core.Agent,
  parameters: obj({ text: str() }) as unknown as Core.AgentTool["parameters"],
  parser: () => {
    const parser = new StreamingJsonParser()
    return (piece) => {
      parser.append(piece)
      return parser.snapshot() ?? {}
    }
  }
})
