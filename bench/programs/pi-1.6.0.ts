/** The program with pi-agent-core 1.6.0. */
import { obj, str } from "@earendil-works/pi-schema"
import { Agent, type StreamFn } from "pi-agent-core-1.6.0"

export const main = async (streamFn: StreamFn): Promise<string> => {
  const agent = new Agent({
    initialState: {
      systemPrompt: "You echo.",
      tools: [{
        name: "echo",
        label: "echo",
        description: "Says what it is told.",
        parameters: obj({ text: str() }),
        execute: async (_id: string, { text }: { readonly text: string }) => ({
          content: [{ type: "text", text }],
          details: undefined
        })
      }]
    },
    streamFn
  })
  await agent.prompt("go")
  return agent.state.messages.at(-1)!.role
}
