/**
 * The seam between the loop and a model: one service that turns a request into a stream of events.
 *
 * A `StreamFn` says what arrived, block by block, and never builds messages: the loop accumulates the partial message,
 * so that a response that is interrupted, fails or breaks off keeps what had arrived. Interruption of the stream is the
 * abort signal; its finalizers close the connection.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type * as Stream from "effect/Stream"
import type { ModelError } from "./Errors.ts"
import type {
  Json,
  Message,
  StopReason,
  TextContent,
  ThinkingContent,
  ThinkingLevel,
  ToolCall,
  ToolDeclaration,
  Usage
} from "./Messages.ts"

/**
 * Which model answers. Only `id` is needed; a provider's adapter reads the rest, and custom fields are kept.
 *
 * @category models
 * @since 0.1.0
 */
export interface Model {
  readonly id: string
  readonly name?: string
  /** The wire protocol, recorded on assistant messages; `unknown` when absent. */
  readonly api?: string
  /** Recorded on assistant messages and given to the `apiKey` hook; `unknown` when absent. */
  readonly provider?: string
  readonly baseUrl?: string
  readonly reasoning?: boolean
  readonly input?: ReadonlyArray<"text" | "image">
  /** Prices in dollars per million tokens. */
  readonly cost?: {
    readonly input: number
    readonly output: number
    readonly cacheRead: number
    readonly cacheWrite: number
  }
  /** Tokens. */
  readonly contextWindow?: number
  /** Tokens. */
  readonly maxTokens?: number
  readonly [field: string]: unknown
}

/**
 * What one request to a model consists of.
 *
 * **Gotchas**
 *
 * `messages` is a read-only view of the conversation that grows after the response has ended; keep a copy to remember it.
 *
 * @category models
 * @since 0.1.0
 */
export interface StreamRequest {
  readonly model: Model
  /** The conversation after conversion; the system messages in it carry prompt and tool declarations. */
  readonly messages: ReadonlyArray<Message>
  /** The tools declared in `messages`. */
  readonly tools: ReadonlyArray<ToolDeclaration>
  readonly thinkingLevel: ThinkingLevel
  /** `none`: the model must not call a tool, although tools are declared. */
  readonly toolChoice: "auto" | "none"
  readonly apiKey: Redacted.Redacted | undefined
  readonly sessionId: string | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Tokens for thinking, by level. */
  readonly thinkingBudgets: Readonly<Partial<Record<ThinkingLevel, number>>> | undefined
  readonly metadata: Readonly<Record<string, unknown>> | undefined
}

/**
 * What a provider may tell about a response as a whole.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResponseInfo {
  readonly responseId?: string
  readonly responseModel?: string
  readonly rawStopReason?: string
  readonly providerThinkingLevel?: string
  readonly usage?: Usage
  /** Who answers, where that is another model than was asked for; fields that are missing stay as they are. */
  readonly model?: { readonly id?: string; readonly api?: string; readonly provider?: string }
  /** Whether the model said that its turn is over. */
  readonly endTurn?: boolean
  /** What the adapter notes about failures it met. */
  readonly diagnostics?: Json
  /** How to fetch a response with the stop reason `deferred`. */
  readonly deferred?: Json
}

/**
 * The end of a response. `stopReason` decides what the loop does, not whether the event is `done` or `error`; `content`
 * replaces what was accumulated.
 *
 * @category models
 * @since 0.1.0
 */
export interface StreamEnd extends ResponseInfo {
  readonly type: "done" | "error"
  /** Default: `stop` for `done`, `error` for `error`. */
  readonly stopReason?: Exclude<StopReason, "pending">
  readonly content?: ReadonlyArray<TextContent | ThinkingContent | ToolCall>
  readonly errorMessage?: string
  /** The typed error behind an `error` event. */
  readonly error?: ModelError
}

/**
 * One step of a response, addressed by content index: the blocks of a response are numbered in the order in which they
 * open. Blocks may be open at the same time. Reading stops at the first `done` or `error`: the answer is complete, and the
 * stream's finalizers are awaited at the end of the run only, within the grace period.
 *
 * `toolcall_end` may carry the parsed arguments; otherwise the loop parses the text of the deltas.
 *
 * `retract` withdraws everything before it: the response begins anew, with another `start` and with blocks counted from 0.
 *
 * @category models
 * @since 0.1.0
 */
export type StreamEvent =
  | ({ readonly type: "start" } & ResponseInfo)
  | { readonly type: "text_start" | "thinking_start"; readonly contentIndex: number }
  | {
    readonly type: "toolcall_start"
    readonly contentIndex: number
    readonly id: string
    readonly name: string
    readonly namespace?: string
  }
  | {
    readonly type: "text_delta" | "thinking_delta" | "toolcall_delta"
    readonly contentIndex: number
    readonly delta: string
  }
  | { readonly type: "text_end"; readonly contentIndex: number; readonly textSignature?: string }
  | {
    readonly type: "thinking_end"
    readonly contentIndex: number
    readonly thinkingSignature?: string
    readonly redacted?: boolean
  }
  | {
    readonly type: "toolcall_end"
    readonly contentIndex: number
    readonly arguments?: unknown
    readonly thoughtSignature?: string
  }
  | {
    readonly type: "retract"
    /** The attempt that begins, from 2. */
    readonly attempt: number
    /** Why the one before is withdrawn. */
    readonly error?: ModelError | undefined
    /** What the one before has used, if it is known; it stays part of the response's usage. */
    readonly usage?: Usage | undefined
    /** Who answers now, where that is another model than was asked for. */
    readonly model?: ResponseInfo["model"]
  }
  | StreamEnd

/**
 * The service that answers requests.
 *
 * **When to use**
 *
 * Write one for a model that has no adapter yet, and check it with `StreamFnContract` of `effect-pi/testing`.
 *
 * **Gotchas**
 *
 * Emit arrays of events as they arrive from the network (`Stream.fromPull`, `Stream.fromQueue`): one event a chunk costs
 * a wake-up each.
 *
 * @category services
 * @since 0.1.0
 */
export class StreamFn extends Context.Service<StreamFn, {
  readonly stream: (request: StreamRequest) => Stream.Stream<StreamEvent, ModelError>
}>()("effect-pi/StreamFn") {}

/**
 * A layer from a function.
 *
 * **Example** (A model that says one word)
 *
 * ```ts
 * import { Stream } from "effect"
 * import { StreamFn } from "effect-pi"
 *
 * const Parrot = StreamFn.layer(() =>
 *   Stream.make(
 *     { type: "start" },
 *     { type: "text_start", contentIndex: 0 },
 *     { type: "text_delta", contentIndex: 0, delta: "hello" },
 *     { type: "text_end", contentIndex: 0 },
 *     { type: "done", stopReason: "stop" }
 *   )
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  stream: (request: StreamRequest) => Stream.Stream<StreamEvent, ModelError>
): Layer.Layer<StreamFn> => Layer.succeed(StreamFn, { stream })

/**
 * The model of an agent that was given none; source: pi's default model.
 *
 * @category constructors
 * @since 0.1.0
 */
export const unknownModel: Model = { id: "unknown", name: "unknown", api: "unknown", provider: "unknown" }
