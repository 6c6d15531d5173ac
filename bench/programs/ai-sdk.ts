/** The program with the AI SDK. */
import { isStepCount, type LanguageModel, streamText, tool } from "ai"
import * as z from "zod"

export const main = async (model: LanguageModel): Promise<string> => {
  const result = streamText({
    model,
    system: "You echo.",
    prompt: "go",
    tools: {
      echo: tool({
        description: "Says what it is told.",
        inputSchema: z.object({ text: z.string() }),
        execute: ({ text }) => text
      })
    },
    stopWhen: isStepCount(Number.POSITIVE_INFINITY)
  })
  await result.consumeStream()
  return result.text
}
