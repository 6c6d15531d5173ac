/** The program with pi-agent-core 1.0.3. */
import { Agent, type StreamFn } from "@earendil-works/pi-agent-core"
import { Type } from "@earendil-works/pi-ai"

export const main = async (streamFn: StreamFn): Promise<string> => {
  const agent = new Agent({
    initialState: {
      systemPrompt: "You echo.",
      tools: [{
        name: "echo",
        label: "echo",
        description: "Says what it is told.",
        parameters: Type.Object({ text: Type.String() }),
        execute: async (_id, args) => {
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- they were validated against `parameters`
          const { text } = args as { readonly text: string }
          return { content: [{ type: "text", text }], details: undefined }
        }
      }]
    },
    streamFn
  })
  await agent.prompt("go")
  return agent.state.messages.at(-1)!.role
}
