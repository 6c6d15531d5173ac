/**
 * A span with its times, and the metrics of the place it was opened in. Nothing here fails: a tracer, a clock or a
 * registry that throws costs the run nothing.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import type * as Tracer from "effect/Tracer"
import { attempt } from "../json.ts"
import type { Attributes } from "./attributes.ts"

/** Why a span failed, by its class only: the text of an error may say what was said. */
export class SpanError extends Data.Error<{ readonly name: string; readonly message: string }> {}

export interface TimedOptions {
  readonly kind: Tracer.SpanKind
  readonly attributes: Attributes
  /** Another parent than that of the place; `null` for none. */
  readonly parent?: Tracer.AnySpan | null | undefined
}

export class Timed {
  /** Absent when the tracer threw. */
  readonly span: Tracer.Span | undefined
  readonly #services: Context.Context<never>
  readonly #startedAt: bigint
  #last = 0n

  constructor(services: Context.Context<never>, name: string, { attributes, kind, parent }: TimedOptions) {
    this.#services = services
    this.#startedAt = this.now()
    const place = parent === undefined ? {} : parent === null ? { root: true } : { parent }
    this.span = attempt(() => Effect.runSyncWith(services)(Effect.makeSpan(name, { kind, attributes, ...place })))
  }

  /** Nanoseconds. */
  now(): bigint {
    return this.#last = attempt(() => Context.get(this.#services, Clock.Clock).currentTimeNanosUnsafe()) ?? this.#last
  }

  /** Seconds since it was opened. */
  seconds(): number {
    return Number(this.now() - this.#startedAt) / 1e9
  }

  attributes(attributes: Attributes): void {
    for (const [key, value] of Object.entries(attributes)) attempt(() => this.span?.attribute(key, value))
  }

  event(name: string, attributes: Attributes = {}): void {
    attempt(() => this.span?.event(name, this.#time(), attributes))
  }

  fail(errorType: string, message: string | undefined): void {
    this.attributes({ "error.type": errorType })
    this.end(Exit.fail(new SpanError({ name: errorType, message: message ?? errorType })))
  }

  end(exit: Exit.Exit<unknown, unknown>): void {
    attempt(() => this.span?.end(this.#time(), exit))
  }

  #time(): bigint {
    return Context.get(this.#services, References.TracerTimingEnabled) ? this.now() : 0n
  }
}
