/**
 * An answer as a server of the chat completions API gives it.
 */
import type { ModelErrorReason } from "../../Errors.ts"
import { calls, cut, delta, done, finish, hold, json, piece, sse, text, usage } from "./chunks.ts"
import type { Answer, AnswerStep, Exchange } from "./types.ts"

const finishReasons = { stop: "stop", length: "length", toolUse: "tool_calls" } as const

const statuses: Partial<Record<ModelErrorReason, number>> = {
  Authentication: 401,
  Timeout: 408,
  RateLimited: 429,
  Overloaded: 503
}

export const exchangeOf = (answer: Answer): Exchange => {
  const { end } = answer
  if (answer.steps.length === 0 && end.type !== "complete") return withoutStart(end)
  const chunks = chunksOf(answer.steps).map((chunk) => sse(chunk))
  switch (end.type) {
    case "complete": {
      const counted = answer.usage === undefined ? [] : [sse(usage(usageFields(answer.usage)))]
      return { body: [...chunks, sse(finish(finishReasons[end.stopReason])), ...counted, done] }
    }
    case "failure":
      return { body: [...chunks, sse(errorOf(end.reason)), done] }
    case "cut":
      return { body: [...chunks, cut] }
    case "hang":
      return { body: [...chunks, hold] }
  }
}

const withoutStart = (end: Exclude<Answer["end"], { readonly type: "complete" }>): Exchange =>
  end.type === "failure"
    ? json(
      statuses[end.reason] ?? 400,
      errorOf(end.reason),
      end.retryAfter === undefined ? {} : { "retry-after": `${end.retryAfter / 1000}` }
    )
    : { silent: true, body: [end.type === "cut" ? cut : hold] }

const errorOf = (reason: ModelErrorReason): object => ({
  error: reason === "ContextOverflow"
    ? { message: "This model's maximum context length is 10 tokens.", code: "context_length_exceeded" }
    : { message: `This is the failure ${reason}.`, code: statuses[reason] ?? 400 }
})

const usageFields = ({ cacheRead, input, output }: NonNullable<Answer["usage"]>): object => ({
  prompt_tokens: input + cacheRead,
  completion_tokens: output,
  total_tokens: input + cacheRead + output,
  prompt_tokens_details: { cached_tokens: cacheRead }
})

const chunksOf = (steps: ReadonlyArray<AnswerStep>): ReadonlyArray<object> => {
  const indices = new Map<string, number>()
  return steps.map((step) => {
    switch (step.type) {
      case "text":
        return text(step.delta)
      case "thinking":
        return delta({ reasoning_content: step.delta })
      case "call": {
        const index = indices.size
        indices.set(step.id, index)
        return calls(piece(index, "", { id: step.id, name: step.name }))
      }
      case "arguments":
        return calls(piece(indices.get(step.id) ?? 0, step.delta))
    }
  })
}
