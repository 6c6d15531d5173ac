/** The program with LangChain. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { createAgent, tool } from "langchain"
import * as z from "zod"

export const main = async (model: BaseChatModel): Promise<unknown> => {
  const echo = tool(({ text }: { readonly text: string }) => text, {
    name: "echo",
    description: "Says what it is told.",
    schema: z.object({ text: z.string() })
  })
  const agent = createAgent({ model, systemPrompt: "You echo.", tools: [echo] })
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "go" }] })
  return messages.at(-1)
}
