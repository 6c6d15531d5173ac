/**
 * One request to a language model of effect/ai, and its answer. Calls are neither decoded nor resolved there: the loop does
 * both, and a call that no tool answers to is a result that says so, not the end of the response.
 */
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { ModelError } from "../../Errors.ts"
import type { ToolDeclaration } from "../../Messages.ts"
import type { StreamEvent, StreamRequest } from "../../StreamFn.ts"
import { wellFormed } from "../json.ts"
import { toModelError } from "./failures.ts"
import { PartReader } from "./partReader.ts"
import { promptOf } from "./prompt.ts"

/** A part of a response whose calls may name any tool. */
export type Part = Response.StreamPart<Record<string, DeclaredTool>, "deferred">

/** The options of `EffectAi.layer`; see there. */
export interface Options {
  readonly configure?:
    | (<A, E>(stream: Stream.Stream<A, E>, request: StreamRequest) => Stream.Stream<A, E>)
    | undefined
}

export const respond = (
  model: LanguageModel.LanguageModel,
  { configure }: Options,
  request: StreamRequest
): Stream.Stream<StreamEvent, ModelError> =>
  Stream.unwrap(Effect.map(Clock.Clock, (clock) => {
    const now = (): number => clock.currentTimeMillisUnsafe()
    const reader = new PartReader(request.model, now)
    const parts = partsOf(model, request)
    return (configure === undefined ? parts : configure(parts, request)).pipe(
      Stream.chunks,
      Stream.map((list) => reader.read(list)),
      Stream.mapError((error) => toModelError(error, now)),
      Stream.concat(Stream.sync(() => reader.end())),
      Stream.filter(Arr.isReadonlyArrayNonEmpty),
      Stream.flattenArray
    )
  }))

const partsOf = (
  model: LanguageModel.LanguageModel,
  { messages, model: asked, toolChoice, tools }: StreamRequest
): Stream.Stream<Part, AiError.AiError> => {
  const prompt = promptOf(messages, asked)
  return model.streamText({
    prompt,
    toolkit: toolkitOf(tools),
    toolChoice: tools.length === 0 ? "none" : toolChoice,
    disableToolCallResolution: true,
    toolCallValidation: "deferred"
  })
}

type DeclaredTool = Tool.Tool<string, {
  readonly parameters: typeof Schema.Unknown
  readonly success: typeof Schema.Unknown
  readonly failure: typeof Schema.Never
  readonly failureMode: "error"
}>

/** The declared tools, for the model to see. */
const toolkitOf = (tools: ReadonlyArray<ToolDeclaration>): Toolkit.WithHandler<Record<string, DeclaredTool>> => ({
  tools: Toolkit.make(
    ...tools.map(({ description, name, parameters }) =>
      Tool.dynamic(name, { description: wellFormed(description), parameters })
    )
  ).tools,
  handle: () => Effect.die("calls are resolved by the loop")
})
