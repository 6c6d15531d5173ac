/**
 * A tool of a toolkit of effect/ai, with its handler, as a tool of an agent. Arguments are decoded by the loop, leniently as
 * for every tool, and encoded again for the handler, which decodes them strictly.
 */
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as AiTool from "effect/ai/Tool"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { AgentConfigError } from "../../Errors.ts"
import type { ImageContent, Json, TextContent } from "../../Messages.ts"
import * as Tools from "../../Tools.ts"
import { encode } from "../json.ts"
import { isJsonObject } from "../record.ts"

/** What an approval is asked for. */
export interface ApprovalRequest {
  readonly tool: string
  readonly params: unknown
  readonly call: Tools.CallContext
}

/** The options of `EffectAi.fromToolkit`; see there. */
export interface ToolkitOptions<R> {
  readonly approve?: ((request: ApprovalRequest) => Effect.Effect<boolean, never, R>) | undefined
  readonly executionMode?: Tools.ExecutionMode | undefined
}

/** Why a call did not reach its handler, or what its handler answered that nobody can read. */
class ToolkitCallError extends Data.TaggedError("ToolkitCallError")<{ readonly message: string }> {}

type Handled = AiTool.HandlerResult<AiTool.Any>

/** The handler of one tool, whatever its types: the toolkit has checked them. */
type Handle<R> = (
  name: string,
  params: unknown,
  toolCallId: string
) => Effect.Effect<Stream.Stream<Handled, unknown, R>, unknown, R>

export const toTool = <R, R2>(
  tool: AiTool.Any,
  handle: Handle<R>,
  options: ToolkitOptions<R2>
): Effect.Effect<Tools.Tool<R | R2>, AgentConfigError> => {
  if (AiTool.isProviderDefined(tool) && !tool.requiresHandler) {
    return Effect.fail(
      new AgentConfigError({
        reason: "InvalidTool",
        message:
          `The provider itself executes the tool "${tool.name}": it has no handler that an agent could run. Leave it out of the toolkit.`
      })
    )
  }
  const common = {
    label: Option.getOrElse(Context.getOption(tool.annotations, AiTool.Title), () => tool.name),
    description: AiTool.getDescription(tool) ?? "",
    executionMode: options.executionMode,
    annotations: {
      readOnly: Context.get(tool.annotations, AiTool.Readonly),
      destructive: Context.get(tool.annotations, AiTool.Destructive),
      idempotent: Context.get(tool.annotations, AiTool.Idempotent),
      openWorld: Context.get(tool.annotations, AiTool.OpenWorld)
    }
  }
  const execute = (params: unknown, encoded: unknown, call: Tools.CallContext) =>
    Effect.andThen(approved(tool, params, call, options), run(tool, handle, encoded, call))
  const { parametersSchema } = tool
  const jsonSchema: unknown = AiTool.isDynamic(tool) ? tool.jsonSchema : undefined
  if (isJsonObject(jsonSchema)) {
    return Effect.succeed(
      Tools.dynamic(tool.name, {
        ...common,
        parameters: jsonSchema,
        execute: (args, call) => execute(args, args, call)
      })
    )
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one that asks for services is refused by the agent
  const parameters = parametersSchema as Schema.Codec<unknown, unknown>
  const encodeParams = Schema.encodeUnknownEffect(parameters)
  return Effect.succeed(
    Tools.make(tool.name, {
      ...common,
      parameters,
      execute: (args, call) => Effect.flatMap(encodeParams(args), (encoded) => execute(args, encoded, call))
    })
  )
}

/** Asks, where the tool wants to be asked for; without an answer nothing runs. */
const approved = <R>(
  tool: AiTool.Any,
  params: unknown,
  call: Tools.CallContext,
  { approve }: ToolkitOptions<R>
): Effect.Effect<void, ToolkitCallError, R> =>
  Effect.gen(function*() {
    if (!(yield* needsApproval(tool, params, call))) return
    if (approve === undefined) {
      return yield* new ToolkitCallError({
        message: `"${tool.name}" needs an approval, and there is nobody to ask: give \`approve\` to \`fromToolkit\`.`
      })
    }
    if (!(yield* approve({ tool: tool.name, params, call }))) {
      return yield* new ToolkitCallError({ message: `The call of "${tool.name}" was not approved.` })
    }
  })

const needsApproval = (
  { needsApproval: needs }: AiTool.Any,
  params: unknown,
  { toolCall }: Tools.CallContext
): Effect.Effect<boolean> => {
  if (typeof needs !== "function") return Effect.succeed(needs === true)
  return Effect.suspend(() => {
    const { id, name } = toolCall
    const call = Prompt.toolCallPart({ id, name, params: toolCall.arguments, providerExecuted: false })
    const answer = needs(params, { toolCallId: id, messages: [Prompt.assistantMessage({ content: [call] })] })
    return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
  })
}

const run = <R>(
  tool: AiTool.Any,
  handle: Handle<R>,
  params: unknown,
  call: Tools.CallContext
): Effect.Effect<Tools.ToolOutput, unknown, R> =>
  Effect.gen(function*() {
    const results = yield* handle(tool.name, params, call.toolCall.id)
    let last: Handled | undefined
    yield* Stream.runForEach(results, (result) => {
      if (result.preliminary) return call.update(outputOf(result))
      last = result
      return Effect.void
    })
    if (last === undefined) {
      return yield* new ToolkitCallError({ message: `The handler of "${tool.name}" ended without a result.` })
    }
    return outputOf(last)
  })

const outputOf = ({ encodedResult, isFailure, modelOutput, result }: Handled): Tools.ToolResult => {
  const encoded = encode(encodedResult)
  const json = Result.isSuccess(encoded) ? encoded.success : undefined
  return {
    content: modelOutput === undefined ? [{ type: "text", text: textOf(json, result) }] : modelOutput.map(contentOf),
    isError: isFailure,
    ...(json !== undefined && typeof json !== "string" && { details: json, structuredContent: json })
  }
}

/** What the model reads: a text as it is, an error's message, else JSON. */
const textOf = (json: Json | undefined, result: unknown): string => {
  if (AiError.isAiError(result)) return result.message
  if (typeof json === "string") return json
  return json === undefined || json === null ? "" : JSON.stringify(json)
}

const contentOf = (part: Prompt.ToolModelOutputPart): TextContent | ImageContent => {
  if (part.type === "text") return { type: "text", text: part.text }
  const { data, fileName, mediaType } = part
  if (!mediaType.startsWith("image/") || data instanceof URL) {
    const where = data instanceof URL ? ` ${data.href}` : fileName === undefined ? "" : ` ${fileName}`
    return { type: "text", text: `[a file of type ${mediaType}:${where || " left out"}]` }
  }
  return { type: "image", mimeType: mediaType, data: typeof data === "string" ? data : Base64.encode(data) }
}
