/**
 * The tokens of a response and what they cost. Servers count cached tokens among those of the prompt, `Usage` counts them
 * apart, and they tell of them in three places: OpenAI and OpenRouter, DeepSeek, Kimi.
 */
import type { Usage } from "../../Messages.ts"
import type { Model } from "../../StreamFn.ts"
import { costOf } from "../costOf.ts"
import { isRecord } from "../record.ts"

type Counts = { readonly [key: string]: unknown }

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined

const part = (counts: Counts, name: string): Counts => {
  const value = counts[name]
  return isRecord(value) ? value : {}
}

export const readUsage = (counts: Counts, model: Model): Usage => {
  const prompt = part(counts, "prompt_tokens_details")
  const cacheRead = count(prompt["cached_tokens"]) ?? count(counts["prompt_cache_hit_tokens"]) ??
    count(counts["cached_tokens"]) ?? 0
  const cacheWrite = count(prompt["cache_write_tokens"]) ?? 0
  const input = Math.max(0, (count(counts["prompt_tokens"]) ?? 0) - cacheRead - cacheWrite)
  const output = count(counts["completion_tokens"]) ?? 0
  const reasoning = count(part(counts, "completion_tokens_details")["reasoning_tokens"])
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    ...(reasoning !== undefined && { reasoning }),
    totalTokens: input + output + cacheRead + cacheWrite,
    cost: costOf(model.cost, { input, output, cacheRead, cacheWrite })
  }
}
