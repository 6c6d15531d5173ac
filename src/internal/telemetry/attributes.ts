/**
 * The attributes of spans and metrics, by OpenTelemetry's conventions for generative AI. What a span says of a request is
 * taken from here alone, field by field, so that no key, header or content gets into one by accident.
 */
import * as Result from "effect/Result"
import type { RunError } from "../../Errors.ts"
import type { AssistantMessage, Usage } from "../../Messages.ts"
import type { Model, StreamRequest } from "../../StreamFn.ts"

export type Attributes = Readonly<Record<string, unknown>>

/** What a program tells of an agent. */
export interface AgentInfo {
  readonly name: string
  readonly description?: string | undefined
  readonly version?: string | undefined
}

/** Providers by their names in pi-ai, where the conventions have others. */
const wellKnown: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws.bedrock",
  "azure-openai-responses": "azure.ai.openai",
  google: "gcp.gemini",
  "google-vertex": "gcp.vertex_ai",
  mistral: "mistral_ai",
  moonshotai: "moonshot_ai",
  "openai-codex": "openai",
  xai: "x_ai"
}

export const providerName = (model: Model): string => {
  const provider = model.provider ?? "unknown"
  return wellKnown[provider] ?? provider
}

const defined = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))

/** Host and port only: the rest of an address may hold a key. */
const server = ({ baseUrl }: Model): Attributes => {
  const url = baseUrl === undefined ? undefined : Result.getOrUndefined(Result.try(() => new URL(baseUrl)))
  if (url === undefined || url.hostname === "") return {}
  const port = url.port === "" ? url.protocol === "http:" ? 80 : 443 : Number(url.port)
  return { "server.address": url.hostname, "server.port": port }
}

const agent = (info: AgentInfo | undefined): Attributes => ({ "gen_ai.agent.name": info?.name })

export const agentAttributes = (
  runId: string,
  model: Model,
  sessionId: string | undefined,
  info: AgentInfo | undefined
): Attributes =>
  defined({
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.provider.name": providerName(model),
    "gen_ai.request.model": model.id,
    "gen_ai.conversation.id": sessionId,
    ...agent(info),
    "gen_ai.agent.description": info?.description,
    "gen_ai.agent.version": info?.version,
    "effect_pi.run.id": runId
  })

export const chatAttributes = (
  runId: string,
  { model, sessionId, thinkingLevel }: StreamRequest,
  info: AgentInfo | undefined
): Attributes =>
  defined({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": providerName(model),
    "gen_ai.request.model": model.id,
    "gen_ai.request.stream": true,
    "gen_ai.request.reasoning.level": thinkingLevel === "off" ? undefined : thinkingLevel,
    "gen_ai.conversation.id": sessionId,
    ...agent(info),
    ...server(model),
    "effect_pi.run.id": runId
  })

/** A name that no tool has is the model's text; it stays out of names, of which there are to be few. */
export const unknownTool = "_OTHER"

export const toolAttributes = (
  runId: string,
  call: { readonly id: string; readonly name: string },
  description: string | undefined,
  info: AgentInfo | undefined
): Attributes =>
  defined({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": call.name,
    "gen_ai.tool.call.id": call.id,
    "gen_ai.tool.type": "function",
    "gen_ai.tool.description": description,
    ...agent(info),
    "effect_pi.run.id": runId
  })

/** All input tokens, those of the cache among them, as the conventions count. */
export const inputTokens = ({ cacheRead, cacheWrite, input }: Usage): number => input + cacheRead + cacheWrite

export const usageAttributes = (usage: Usage): Attributes =>
  defined({
    "gen_ai.usage.input_tokens": inputTokens(usage),
    "gen_ai.usage.output_tokens": usage.output,
    "gen_ai.usage.cache_read.input_tokens": usage.cacheRead,
    "gen_ai.usage.cache_write.input_tokens": usage.cacheWrite,
    // The name of cache_write before version 0.1.0 of the conventions.
    "gen_ai.usage.cache_creation.input_tokens": usage.cacheWrite,
    "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    "effect_pi.usage.cost": usage.cost.total
  })

/** Why the model stopped, in the words of the conventions. */
export const finishReason = ({ stopReason }: AssistantMessage): string =>
  stopReason === "toolUse" ? "tool_call" : stopReason

export const responseAttributes = (message: AssistantMessage, timeToFirstChunk: number | undefined): Attributes =>
  defined({
    "gen_ai.response.id": message.responseId,
    "gen_ai.response.model": message.responseModel ?? message.model,
    "gen_ai.response.finish_reasons": [finishReason(message)],
    "gen_ai.response.time_to_first_chunk": timeToFirstChunk,
    ...usageAttributes(message.usage)
  })

/** A class of errors, of which there are few. */
export const errorType = (error: RunError): string => {
  switch (error._tag) {
    case "ModelError":
      return error.reason
    case "HookError":
      return `HookError.${error.hook}`
    case "ListenerError":
      return `ListenerError.${error.event}`
  }
}
