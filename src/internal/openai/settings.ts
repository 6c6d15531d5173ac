/**
 * What is known of the server and the model before a request is built: what the model says of itself, and where it says
 * nothing, what its base URL tells.
 */
import type { Model } from "../../StreamFn.ts"
import { isRecord } from "../record.ts"

/** How a server or a model differs from the rest; see `OpenAi.Compat`. */
export interface Compat {
  /** The field that bounds the answer. Default: `max_completion_tokens` for OpenAI itself, else `max_tokens`. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens"
  /** Whether usage can be asked for with `stream_options`. Default: true. */
  readonly supportsUsageInStreaming?: boolean
  /** Whether a response that ends without a finish reason broke off. Default: true. */
  readonly supportsFinishReason?: boolean
  /** Whether the server takes `reasoning_effort`. Default: true. */
  readonly supportsReasoningEffort?: boolean
  /**
   * Whether system messages may stand in the middle of the conversation. Default: false; then all of them are sent as one,
   * at the beginning.
   */
  readonly supportsMidConvoSystemMessages?: boolean
  /** How thinking is asked for: `reasoning_effort`, or OpenRouter's `reasoning` object. Default: by the base URL. */
  readonly thinkingFormat?: "openai" | "openrouter"
  /** The field that takes the tokens of `thinkingBudgets`, such as `thinking_budget`. Default: none. */
  readonly thinkingTokenBudgetField?: string
}

/** {@link Compat} with every default filled in, and what else the base URL decides. */
export interface Settings {
  readonly maxTokensField: string
  readonly usage: boolean
  readonly finishReason: boolean
  readonly effort: boolean
  readonly midConversation: boolean
  readonly openRouter: boolean
  readonly budgetField: string | undefined
  /** The server keeps prompts of a session together by a field of the body. */
  readonly promptCacheKey: boolean
  /** … or by a header. */
  readonly sessionHeader: boolean
  readonly images: boolean
}

export const readSettings = (model: Model, baseUrl: string): Settings => {
  const compat = isRecord(model["compat"]) ? model["compat"] : {}
  const isOpenAi = baseUrl.includes("api.openai.com")
  const isOpenRouter = baseUrl.includes("openrouter.ai")
  const { maxTokensField, thinkingFormat, thinkingTokenBudgetField: budgetField } = compat
  return {
    maxTokensField: typeof maxTokensField === "string"
      ? maxTokensField
      : isOpenAi
      ? "max_completion_tokens"
      : "max_tokens",
    usage: compat["supportsUsageInStreaming"] !== false,
    finishReason: compat["supportsFinishReason"] !== false,
    effort: compat["supportsReasoningEffort"] !== false,
    midConversation: compat["supportsMidConvoSystemMessages"] === true,
    openRouter: thinkingFormat === undefined ? isOpenRouter : thinkingFormat === "openrouter",
    budgetField: typeof budgetField === "string" ? budgetField : undefined,
    promptCacheKey: isOpenAi,
    sessionHeader: isOpenRouter,
    images: model.input === undefined || model.input.includes("image")
  }
}
