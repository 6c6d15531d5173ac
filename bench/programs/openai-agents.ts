/** The program with OpenAI Agents. */
import { Agent, type Model, Runner, tool } from "@openai/agents"
import * as z from "zod"

export const main = async (model: Model): Promise<string | undefined> => {
  const echo = tool({
    name: "echo",
    description: "Says what it is told.",
    parameters: z.object({ text: z.string() }),
    execute: ({ text }) => text
  })
  const agent = new Agent({ name: "echo", instructions: "You echo.", model, tools: [echo] })
  const result = await new Runner({ tracingDisabled: true }).run(agent, "go", { stream: true })
  await result.completed
  return result.finalOutput
}
