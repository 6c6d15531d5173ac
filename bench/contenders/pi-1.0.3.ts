/** pi-agent-core 1.0.3, its `Agent`. */
import { Agent } from "@earendil-works/pi-agent-core"
import { parseStreamingJson, Type } from "@earendil-works/pi-ai"
import type { ArgumentsParser } from "./pi-model.ts"
import { piAgent } from "./pi.ts"

export const parameters = Type.Object({ text: Type.String() })

/** As pi-ai 1.0's adapters do: the whole text is parsed again with each piece. */
export const parser: ArgumentsParser = () => {
  let text = ""
  return (piece) => parseStreamingJson(text += piece)
}

export const contender = piAgent({ version: "1.0.3", Agent, parameters, parser })
