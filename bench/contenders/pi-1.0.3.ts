/** pi-agent-core 1.0.3, its `Agent`. */
import { Agent } from "@earendil-works/pi-agent-core"
import { createAssistantMessageEventStream, parseStreamingJson, Type } from "@earendil-works/pi-ai"
import type { ModelParts } from "./pi-model.ts"
import { piAgent } from "./pi.ts"

export const parameters = Type.Object({ text: Type.String() })

export const modelParts: ModelParts = {
  makeStream: createAssistantMessageEventStream,
  // As pi-ai 1.0's adapters do: the whole text is parsed again with each piece.
  parser: () => {
    let text = ""
    return (piece) => parseStreamingJson(text += piece)
  }
}

export const contender = piAgent({ version: "1.0.3", Agent, parameters, ...modelParts })
