/**
 * pi-agent-core 1.6.0, its `Agent`. Its packages are imported without their types: what the workloads use did not change since
 * 1.0, whose types are at hand.
 */
import type * as Core from "@earendil-works/pi-agent-core"
import { findPackageJSON } from "node:module"
import { pathToFileURL } from "node:url"
import { piAgent } from "./pi.ts"

const core = import.meta.resolve("pi-agent-core-1.6.0")
const { Agent }: Pick<typeof Core, "Agent"> = await import(core)
const { obj, str } = await import(import.meta.resolve("@earendil-works/pi-schema"))

/** In the pi-ai that this version brings along, not in the older one beside it. */
const manifest = findPackageJSON("@earendil-works/pi-ai", core)!
const { createAssistantMessageEventStream, StreamingJsonParser } = await import(
  new URL("dist/index.js", pathToFileURL(manifest)).href
)

export const contender = piAgent({
  version: "1.6.0",
  Agent,
  makeStream: createAssistantMessageEventStream,
  parameters: obj({ text: str() }),
  parser: () => {
    const parser = new StreamingJsonParser()
    return (piece) => {
      parser.append(piece)
      return parser.snapshot() ?? {}
    }
  }
})
