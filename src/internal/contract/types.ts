/**
 * What the contract of a `StreamFn` is about: answers, whoever gives them, and what is wrong with them. Public through
 * `StreamFnContract`.
 *
 * @since 0.1.0
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { ModelErrorReason } from "../../Errors.ts"
import type { Model, StreamFn } from "../../StreamFn.ts"

/**
 * A case that does not hold: which one, what was expected and what came.
 *
 * @category errors
 * @since 0.1.0
 */
export class ContractViolation extends Data.TaggedError("ContractViolation")<{
  /** The name of the case. */
  readonly case: string
  readonly expected: string
  readonly received: string
  readonly message: string
}> {}

/**
 * One case of the contract. The test needs nothing and runs on the real clock, whichever clock the test framework has.
 *
 * @category models
 * @since 0.1.0
 */
export interface Case {
  readonly name: string
  readonly test: Effect.Effect<void, ContractViolation>
}

/**
 * What can be set for a list of cases.
 *
 * **Details**
 *
 * `differences` names the cases that are known not to hold, each with the reason. Such a case fails when it holds after
 * all, and so does a name that no case has, so that the list stays true.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  readonly differences?: Readonly<Record<string, string>> | undefined
  /** How long a case waits for what has to come. Default: 5 seconds. */
  readonly patience?: Duration.Input | undefined
}

// -----------------------------------------------------------------------------
// Answers
// -----------------------------------------------------------------------------

/**
 * A step of an answer: a piece of the text or of the thinking, the beginning of a call, or a piece of the arguments of a
 * call. Steps of one kind that follow each other belong to one block; pieces of the arguments of several calls may
 * interleave.
 *
 * @category models
 * @since 0.1.0
 */
export type AnswerStep =
  | { readonly type: "text" | "thinking"; readonly delta: string }
  | { readonly type: "call"; readonly id: string; readonly name: string }
  | { readonly type: "arguments"; readonly id: string; readonly delta: string }

/**
 * What a model is going to answer, whatever the wire.
 *
 * **Details**
 *
 * How it ends:
 *
 * - `complete`: as it should
 * - `failure`: with an error that the server reports, instead of an answer where there are no steps, else in its middle
 * - `cut`: the connection breaks
 * - `hang`: nothing more comes, and the connection stays open
 *
 * @category models
 * @since 0.1.0
 */
export interface Answer {
  readonly steps: ReadonlyArray<AnswerStep>
  /** Tokens; `input` without those that were read from a cache. */
  readonly usage?: { readonly input: number; readonly output: number; readonly cacheRead: number }
  readonly end:
    | { readonly type: "complete"; readonly stopReason: "stop" | "length" | "toolUse" }
    | { readonly type: "failure"; readonly reason: ModelErrorReason; readonly retryAfter?: number }
    | { readonly type: "cut" }
    | { readonly type: "hang" }
}

/**
 * A `StreamFn` that is going to get answers.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answering {
  readonly layer: Layer.Layer<StreamFn, unknown>
  /** The model of the requests. Default: one with the id `contract-model`. */
  readonly model?: Model | undefined
  /** Completes when an answer that hangs has been asked for and has come as far as it comes. Default: at once. */
  readonly hanging?: Effect.Effect<void> | undefined
  /** Completes when no answer that was asked for is open any more. */
  readonly closed: Effect.Effect<void>
}

/**
 * Whose contract is checked: makes a `StreamFn` that gets these answers, one for each request in order; the last one answers
 * all that follow.
 *
 * @category models
 * @since 0.1.0
 */
export interface Subject {
  readonly answering: (answers: NonEmptyReadonlyArray<Answer>) => Effect.Effect<Answering, never, Scope.Scope>
}

// -----------------------------------------------------------------------------
// The wire
// -----------------------------------------------------------------------------

/**
 * A piece of an answer's body: what is written at once, a pause, the end of the connection, or its standstill.
 *
 * @category models
 * @since 0.1.0
 */
export type Piece =
  | string
  | Uint8Array
  | { readonly type: "pause"; readonly millis: number }
  | { readonly type: "cut" }
  | { readonly type: "hold" }

/**
 * An answer of an HTTP server, as data.
 *
 * @category models
 * @since 0.1.0
 */
export interface Exchange {
  /** Default: 200. */
  readonly status?: number
  /** Default: the content type of server-sent events. */
  readonly headers?: Readonly<Record<string, string>>
  /** Neither status nor headers are sent; the body is a `cut` or a `hold`. */
  readonly silent?: boolean
  /** Each piece is written on its own, when the one before has gone out. */
  readonly body: ReadonlyArray<Piece>
}

/**
 * A server that plays exchanges.
 *
 * @category models
 * @since 0.1.0
 */
export interface Server {
  /** With `/v1`; `/chat/completions` is behind it. */
  readonly url: string
  /** The requests so far, their bodies as JSON. */
  readonly asked: ReadonlyArray<{ readonly body: unknown }>
  /** Completes when a `hold` was reached. */
  readonly holding: Effect.Effect<void>
  /** Completes when no exchange is open any more: each was answered to its end, or its connection is closed. */
  readonly closed: Effect.Effect<void>
}

/**
 * An adapter to the chat completions API, and the server it is checked against.
 *
 * **Details**
 *
 * `serve` starts a server on this machine that plays one exchange for each request; the last one answers all that follow.
 * The contract runs anywhere and therefore brings no server; the documentation has one for Node.
 *
 * @category models
 * @since 0.1.0
 */
export interface CompletionsSubject {
  /** The adapter for a server at this URL, which ends in `/v1`. */
  readonly connect: (url: string) => Layer.Layer<StreamFn, unknown>
  readonly serve: (exchanges: NonEmptyReadonlyArray<Exchange>) => Effect.Effect<Server, never, Scope.Scope>
  /** Default: a model of the provider `contract` with the URL as its `baseUrl`. */
  readonly model?: ((url: string) => Model) | undefined
}

/**
 * What has to come of an exchange.
 *
 * **Details**
 *
 * The content is compared without signatures and without blocks that say nothing. The content of an error is what had
 * arrived, where it is given.
 *
 * @category models
 * @since 0.1.0
 */
export type Expected =
  | {
    readonly type: "message"
    readonly content: ReadonlyArray<OutlineBlock>
    readonly stopReason: "stop" | "length" | "toolUse"
    readonly usage?: OutlineUsage
  }
  | {
    readonly type: "error"
    /** Any of them. */
    readonly reasons: NonEmptyReadonlyArray<ModelErrorReason>
    /** Milliseconds, at least and at most; `none` when there must be none. */
    readonly retryAfter?: readonly [min: number, max: number] | "none"
    readonly content?: ReadonlyArray<OutlineBlock>
  }

/**
 * A block of a message as it is compared.
 *
 * @category models
 * @since 0.1.0
 */
export type OutlineBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string }
  | { readonly type: "toolCall"; readonly id: string; readonly name: string; readonly arguments: unknown }

/**
 * Tokens as they are compared.
 *
 * @category models
 * @since 0.1.0
 */
export interface OutlineUsage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
}

/**
 * An exchange with its name and what has to come of it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ExchangeCase {
  readonly name: string
  readonly exchange: Exchange
  readonly expected: Expected
  /** What may come of it as well. */
  readonly or?: Expected
}
