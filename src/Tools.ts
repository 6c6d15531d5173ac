/**
 * Tools: what an agent can do.
 *
 * A tool has a name, a description and parameters for the model, and an `execute` that returns an effect. A value the
 * effect succeeds with becomes the call's result; a failure or a defect becomes an error result the model can read. The
 * services it asks for become part of the agent's type.
 *
 * A call passes three gates before it runs: the tool exists, its arguments decode (lenient where nothing can be lost,
 * then strict), and no `beforeToolCall` hook blocks it. None of them ends the run: each failure is an error result of
 * that call.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Types from "effect/Types"
import * as Arguments from "./internal/arguments.ts"
import { readMillis } from "./internal/millis.ts"
import type { AssistantMessage, ImageContent, Json, JsonObject, TextContent, ToolCall, Usage } from "./Messages.ts"

/**
 * What a model can read of a result.
 *
 * @category models
 * @since 0.1.0
 */
export type Content = ReadonlyArray<TextContent | ImageContent>

/**
 * The result of a tool call; made by {@link result}.
 *
 * - `content`: what the model reads
 * - `details`: anything that encodes as JSON, for the host; kept in the transcript, never sent to the model
 * - `structuredContent`: a machine-readable form of the content, in events only
 * - `usage`: tokens the tool itself spent
 * - `isError`: reports a failure without failing, keeping `details`
 * - `terminate`: asks the run to stop; it does when every call of the batch asks
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolResult {
  readonly content?: Content | undefined
  readonly details?: unknown
  readonly structuredContent?: Json | undefined
  readonly usage?: Usage | undefined
  readonly isError?: boolean | undefined
  readonly terminate?: boolean | undefined
}

/**
 * What a tool may succeed with: a text, content blocks, or a whole result.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolOutput = string | Content | ToolResult

/**
 * The outcome of a call that a tool made with `call.runToolCall`.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolCallOutcome {
  readonly toolCall: ToolCall
  readonly result: ToolResult
  readonly isError: boolean
}

/**
 * A call one tool makes to another.
 *
 * @category models
 * @since 0.1.0
 */
export interface NestedCall {
  readonly id: string
  readonly name: string
  readonly arguments?: unknown
}

/**
 * What a running tool knows about its call.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallContext {
  readonly toolCall: ToolCall
  readonly assistantMessage: AssistantMessage
  /**
   * Hands progress to the listeners and returns at once. The call's end waits until it is delivered; progress after the
   * end is ignored.
   */
  readonly update: (partial: ToolOutput) => Effect.Effect<void>
  /**
   * Runs another tool, one of this run or one of `tools`: same gates and hooks, no events and no messages. An unknown
   * tool, invalid arguments, a blocked or failing call are outcomes with `isError`. Progress of the call goes to
   * `onUpdate`, for instance to this call's `update`. The call counts against the limit of tool calls; beyond it, and
   * when this call has ended (something it left running makes the call), it is not executed. Source: pi's `runToolCall`.
   */
  readonly runToolCall: <const T extends ReadonlyArray<Any> = readonly []>(
    call: NestedCall,
    options?: {
      readonly tools?: T | undefined
      readonly onUpdate?: ((partial: ToolOutput) => Effect.Effect<void>) | undefined
    }
  ) => Effect.Effect<ToolCallOutcome, never, Services<T[number]>>
}

/**
 * Whether the calls of one response run one after the other or concurrently.
 *
 * @category models
 * @since 0.1.0
 */
export type ExecutionMode = "parallel" | "sequential"

/**
 * What a tool says of itself, for the host: the terms, and what an absent one means, are those of the Model Context
 * Protocol. The loop does not look at them; a `beforeToolCall` hook may, to decide whom to ask.
 *
 * @category models
 * @since 0.1.0
 */
export interface Annotations {
  /** It changes nothing; absent: it may. */
  readonly readOnly?: boolean | undefined
  /** What it changes may be lost; absent: it may. */
  readonly destructive?: boolean | undefined
  /** A second call with the same arguments changes nothing more; absent: it may. */
  readonly idempotent?: boolean | undefined
  /** It reaches beyond this system; absent: it may. */
  readonly openWorld?: boolean | undefined
}

/**
 * Brand of {@link Tool}.
 *
 * @category type IDs
 * @since 0.1.0
 */
export const TypeId = "~effect-pi/Tool"

/**
 * A tool that asks for the services `R`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tool<out R = never> {
  readonly [TypeId]: { readonly _R: Types.Covariant<R> }
  readonly name: string
  /** For people; default: the name. */
  readonly label: string
  readonly description: string
  /** `sequential`: a response that calls this tool runs its calls one after the other. */
  readonly executionMode: ExecutionMode | undefined
  /** How arguments are shown to the model and decoded, or why they cannot be. */
  readonly parameters: Result.Result<Arguments.ArgumentsCodec, string>
  readonly prepareArguments: ((args: unknown) => unknown) | undefined
  /** Milliseconds, or why they cannot be used. */
  readonly timeout: Result.Result<number | undefined, string>
  readonly retry: Schedule.Schedule<unknown> | undefined
  readonly annotations: Annotations
  readonly execute: (args: never, call: CallContext) => Effect.Effect<unknown, unknown, R>
}

/**
 * A tool, whatever it asks for.
 *
 * @category models
 * @since 0.1.0
 */
export type Any = Tool<any>

/**
 * The services a tool, or a union of tools, asks for. A `Scope` is not among them: every call has one of its own, which
 * closes when the call is over.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<T> = T extends Tool<infer R> ? Exclude<R, Scope.Scope> : never

interface Options {
  readonly label?: string | undefined
  readonly description: string
  readonly executionMode?: ExecutionMode | undefined
  /**
   * How long a call may take, its retries included. It holds for tools that ignore interruption as well: the call is
   * answered at the deadline, and what is left of the tool is interrupted.
   */
  readonly timeout?: Duration.Input | undefined
  /** When a call that failed, with a typed failure, is tried again. */
  readonly retry?: Schedule.Schedule<unknown> | undefined
  /**
   * Repairs raw arguments before they are decoded. May return an effect of the new arguments; must not change the given
   * ones, and what it returns is decoded like any other.
   */
  readonly prepareArguments?: ((args: unknown) => unknown) | undefined
  readonly annotations?: Annotations | undefined
}

const makeTool = <R>(
  name: string,
  options: Options,
  parameters: Result.Result<Arguments.ArgumentsCodec, string>,
  execute: Tool<R>["execute"]
): Tool<R> => ({
  [TypeId]: variance,
  name,
  label: options.label ?? name,
  description: options.description,
  executionMode: options.executionMode,
  parameters,
  prepareArguments: options.prepareArguments,
  timeout: options.timeout === undefined
    ? Result.succeed(undefined)
    : readMillis(`The timeout of tool "${name}"`, options.timeout, 1),
  retry: options.retry,
  annotations: options.annotations ?? {},
  execute
})

const variance = { _R: (_: never) => _ }

/**
 * A tool whose parameters are an Effect `Schema`.
 *
 * **Details**
 *
 * The model is shown the JSON Schema of the parameters; `execute` gets the decoded value. A schema that cannot be shown
 * to a model, or asks for services, is reported when the tool is given to an agent.
 *
 * **Gotchas**
 *
 * Use `Schema.optionalKey` for optional parameters and `Schema.Finite` or `Schema.Int` for numbers. Of a failure the model
 * reads the message, so give a tagged error one; its other fields go to the log only.
 *
 * **Example** (A tool that fails)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tools } from "effect-pi"
 *
 * const divide = Tools.make("divide", {
 *   description: "Divides two numbers.",
 *   parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
 *   execute: ({ a, b }) => b === 0 ? Effect.fail("division by zero") : Effect.succeed(String(a / b))
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <A, I, E = never, R = never>(
  name: string,
  options: Options & {
    readonly parameters: Schema.Codec<A, I>
    readonly execute: (args: A, call: CallContext) => Effect.Effect<ToolOutput, E, R>
  }
): Tool<R> => makeTool(name, options, Arguments.fromSchema(options.parameters), options.execute)

/**
 * A tool whose parameters are a plain JSON Schema, for tools discovered at run time.
 *
 * **Gotchas**
 *
 * Keywords that are not understood are not checked, JSON Schema's `default` is not applied, and keys the schema does not
 * name are kept unless `additionalProperties` is `false`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const dynamic = <E = never, R = never>(
  name: string,
  options: Options & {
    readonly parameters: JsonObject
    readonly execute: (args: unknown, call: CallContext) => Effect.Effect<ToolOutput, E, R>
  }
): Tool<R> => makeTool(name, options, Arguments.fromJsonSchema(options.parameters), options.execute)

/**
 * A whole result: `text` is short for one text block.
 *
 * **Example** (Details for the host)
 *
 * ```ts
 * import { Tools } from "effect-pi"
 *
 * const found = Tools.result({ text: "2 hits", details: { hits: ["a", "b"] } })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const result = (
  options: Omit<ToolResult, "content"> & { readonly text?: string; readonly content?: Content }
): ToolResult => {
  const { content, text, ...rest } = options
  const blocks: Content = text === undefined ? content ?? [] : [{ type: "text", text }, ...(content ?? [])]
  return { content: blocks, ...rest }
}
