/**
 * The body of a request.
 */
import * as Result from "effect/Result"
import type { Json, JsonObject, ToolDeclaration } from "../../Messages.ts"
import type { StreamRequest } from "../../StreamFn.ts"
import { encode } from "../json.ts"
import { setField } from "../record.ts"
import { jsonText } from "./jsonText.ts"
import type { Settings } from "./settings.ts"
import { thinkingFields } from "./thinking.ts"
import { wireMessages } from "./wireMessages.ts"

/** The longest key OpenAI takes. */
const maxCacheKey = 64

export const payloadOf = (request: StreamRequest, settings: Settings): JsonObject => {
  const { metadata, model, sessionId, toolChoice, tools } = request
  const body: Record<string, Json> = {
    model: model.id,
    messages: wireMessages(request.messages, model, settings),
    stream: true
  }
  if (settings.usage) body["stream_options"] = { include_usage: true }
  if (model.maxTokens !== undefined && model.maxTokens > 0) body[settings.maxTokensField] = model.maxTokens
  if (tools.length > 0) {
    body["tools"] = tools.map(declaration)
    // Without tools servers refuse the field.
    if (toolChoice === "none") body["tool_choice"] = "none"
  }
  for (const [field, value] of thinkingFields(request, settings)) body[field] = value
  if (settings.promptCacheKey && sessionId !== undefined) {
    body["prompt_cache_key"] = Array.from(sessionId).slice(0, maxCacheKey).join("")
  }
  if (metadata !== undefined) body["metadata"] = metadataOf(metadata)
  return body
}

const declaration = ({ description, name, parameters }: ToolDeclaration): Json => ({
  type: "function",
  function: { name, description, parameters }
})

/** The API takes texts only; what is no JSON is left out. */
const metadataOf = (metadata: Readonly<Record<string, unknown>>): JsonObject => {
  const texts: Record<string, Json> = {}
  for (const [key, value] of Object.entries(metadata)) {
    const json = Result.getOrUndefined(encode(value))
    if (json !== undefined && json !== null) setField(texts, key, typeof json === "string" ? json : jsonText(json))
  }
  return texts
}
