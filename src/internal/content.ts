/**
 * What messages are made of: JSON, content blocks, usage, stop reasons, tool declarations. Public through `Messages`.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { openStruct, optionalString } from "./openSchema.ts"

/**
 * A JSON value.
 *
 * @category models
 * @since 0.1.0
 */
export type Json = Schema.Json

/**
 * Schema of {@link Json}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Json = Schema.Json

/**
 * A JSON object, such as the arguments of a tool call.
 *
 * @category models
 * @since 0.1.0
 */
export type JsonObject = { readonly [key: string]: Json }

/**
 * Schema of {@link JsonObject}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const JsonObject = Schema.JsonObject

/**
 * A block of text.
 *
 * @category models
 * @since 0.1.0
 */
export type TextContent = {
  readonly type: "text"
  readonly text: string
  /** What the provider wants back with the text in later requests. */
  readonly textSignature?: string
}

/**
 * Schema of {@link TextContent}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const TextContent = openStruct<TextContent>("TextContent", {
  type: Schema.Literal("text"),
  text: Schema.String,
  textSignature: optionalString
})

/**
 * A block of the model's reasoning.
 *
 * @category models
 * @since 0.1.0
 */
export type ThinkingContent = {
  readonly type: "thinking"
  readonly thinking: string
  /** What the provider wants back with the reasoning in later requests. */
  readonly thinkingSignature?: string
  /** The provider withheld the reasoning; its encrypted form is the signature. */
  readonly redacted?: boolean
}

/**
 * Schema of {@link ThinkingContent}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ThinkingContent = openStruct<ThinkingContent>("ThinkingContent", {
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  thinkingSignature: optionalString,
  redacted: Schema.optionalKey(Schema.Boolean)
})

/**
 * An image.
 *
 * @category models
 * @since 0.1.0
 */
export type ImageContent = {
  readonly type: "image"
  /** The bytes in base64, without a `data:` prefix. */
  readonly data: string
  readonly mimeType: string
}

/**
 * Schema of {@link ImageContent}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ImageContent = openStruct<ImageContent>("ImageContent", {
  type: Schema.Literal("image"),
  data: Schema.String,
  mimeType: Schema.String
})

/**
 * A tool call the model asks for.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolCall = {
  readonly type: "toolCall"
  readonly id: string
  readonly name: string
  /** The arguments as the model gave them: `{}` while they are streamed and when they were no JSON object. */
  readonly arguments: JsonObject
  /** The arguments as text: while they are streamed, and afterwards only when the text was no JSON object. */
  readonly argumentsText?: string
  /** What the provider wants back with the call in later requests. */
  readonly thoughtSignature?: string
  /** The namespace of the tool, for providers that have such. */
  readonly namespace?: string
}

/**
 * Schema of {@link ToolCall}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolCall = openStruct<ToolCall>("ToolCall", {
  type: Schema.Literal("toolCall"),
  id: Schema.String,
  name: Schema.String,
  arguments: JsonObject,
  argumentsText: optionalString,
  thoughtSignature: optionalString,
  namespace: optionalString
})

/**
 * The tokens a response took and what they cost.
 *
 * @category models
 * @since 0.1.0
 */
export type Usage = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** The part of `cacheWrite` that is kept for an hour. */
  readonly cacheWrite1h?: number
  /** The part of `output` that was reasoning; absent when the provider does not tell. */
  readonly reasoning?: number
  readonly totalTokens: number
  readonly cost: {
    readonly input: number
    readonly output: number
    readonly cacheRead: number
    readonly cacheWrite: number
    readonly total: number
  }
}

/**
 * Schema of {@link Usage}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Usage = openStruct<Usage>("Usage", {
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite,
  cacheWrite1h: Schema.optionalKey(Schema.Finite),
  reasoning: Schema.optionalKey(Schema.Finite),
  totalTokens: Schema.Finite,
  cost: openStruct<Usage["cost"]>("Cost", {
    input: Schema.Finite,
    output: Schema.Finite,
    cacheRead: Schema.Finite,
    cacheWrite: Schema.Finite,
    total: Schema.Finite
  })
})

/**
 * No tokens, no cost.
 *
 * @category constructors
 * @since 0.1.0
 */
export const emptyUsage: Usage = Object.freeze({
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: Object.freeze({ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 })
})

const addOptional = (left: number | undefined, right: number | undefined): number | undefined =>
  left === undefined ? right : right === undefined ? left : left + right

/**
 * The sum of two usages. A part that only one of them tells is taken from that one.
 *
 * @category combinators
 * @since 0.1.0
 */
export const addUsage = (left: Usage, right: Usage): Usage => {
  const cacheWrite1h = addOptional(left.cacheWrite1h, right.cacheWrite1h)
  const reasoning = addOptional(left.reasoning, right.reasoning)
  return {
    input: left.input + right.input,
    output: left.output + right.output,
    cacheRead: left.cacheRead + right.cacheRead,
    cacheWrite: left.cacheWrite + right.cacheWrite,
    ...(cacheWrite1h !== undefined && { cacheWrite1h }),
    ...(reasoning !== undefined && { reasoning }),
    totalTokens: left.totalTokens + right.totalTokens,
    cost: {
      input: left.cost.input + right.cost.input,
      output: left.cost.output + right.cost.output,
      cacheRead: left.cost.cacheRead + right.cost.cacheRead,
      cacheWrite: left.cost.cacheWrite + right.cost.cacheWrite,
      total: left.cost.total + right.cost.total
    }
  }
}

/**
 * Why a response ended. `pending` is a response still being streamed; `deferred` one the provider goes on with elsewhere.
 *
 * @category models
 * @since 0.1.0
 */
export type StopReason = typeof StopReason.Type

/**
 * Schema of {@link StopReason}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const StopReason = Schema.Literals(["pending", "stop", "length", "toolUse", "error", "aborted", "deferred"])

/**
 * How much a model is asked to think; each model makes of it what it can.
 *
 * @category models
 * @since 0.1.0
 */
export type ThinkingLevel = typeof ThinkingLevel.Type

/**
 * Schema of {@link ThinkingLevel}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ThinkingLevel = Schema.Literals(["off", "minimal", "low", "medium", "high", "xhigh", "max"])

/**
 * What a model is told of a tool.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolDeclaration = {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject
  /** How the provider should constrain the arguments it samples; source: pi-ai's `ConstrainedSamplingConfig`. */
  readonly constrainedSampling?: Json
}

/**
 * Schema of {@link ToolDeclaration}.
 *
 * @category schemas
 * @since 0.1.0
 */
export const ToolDeclaration = openStruct<ToolDeclaration>("ToolDeclaration", {
  name: Schema.String,
  description: Schema.String,
  parameters: JsonObject,
  constrainedSampling: Schema.optionalKey(Json)
})
