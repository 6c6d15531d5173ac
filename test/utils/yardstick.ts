/**
 * The yardstick: pi-ai's own adapter to the chat completions API, called as it is.
 */
import { stream } from "@earendil-works/pi-ai/api/openai-completions"
import { normalizeContext } from "@earendil-works/pi-ai/utils/transcript"
import { Effect } from "effect"

export type Fields = { readonly [field: string]: unknown }

export const cost = { input: 1, output: 4, cacheRead: 0.25, cacheWrite: 2 }

export const piModel = (url: string) => ({
  id: "test-model",
  name: "test-model",
  api: "openai-completions" as const,
  provider: "openai",
  baseUrl: url,
  reasoning: true,
  input: ["text" as const],
  cost,
  contextWindow: 1000,
  maxTokens: 100
})

/** The final message of one question to the server at this URL. */
export const finalMessage = (url: string): Effect.Effect<Fields> =>
  Effect.promise(async () => {
    const context = normalizeContext({ messages: [{ role: "user", content: "hi", timestamp: 0 }] })
    const response = stream(piModel(url), context, { apiKey: "k", maxRetries: 0 })
    return { ...(await response.result()) }
  })
