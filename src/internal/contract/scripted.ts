/**
 * The answers of the contract from a model in the same process.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ModelError } from "../../Errors.ts"
import { emptyUsage, type Usage } from "../../Messages.ts"
import { type StreamEvent, StreamFn } from "../../StreamFn.ts"
import { make } from "../../testing/ScriptedModel.ts"
import * as Script from "../scriptedResponse.ts"
import type { Answer, AnswerStep, Subject } from "./types.ts"

/** A text or a thinking ends where something else begins; calls end with the answer. */
class Writer {
  readonly events: Array<StreamEvent> = [{ type: "start" }]
  readonly #calls = new Map<string, number>()
  #count = 0
  #open: { readonly type: "text" | "thinking"; readonly contentIndex: number } | undefined

  step(step: AnswerStep): void {
    switch (step.type) {
      case "text":
      case "thinking":
        this.events.push({ type: `${step.type}_delta`, contentIndex: this.#block(step.type), delta: step.delta })
        return
      case "call": {
        this.#close()
        const contentIndex = this.#count++
        this.#calls.set(step.id, contentIndex)
        this.events.push({ type: "toolcall_start", contentIndex, id: step.id, name: step.name })
        return
      }
      case "arguments":
        this.events.push({ type: "toolcall_delta", contentIndex: this.#calls.get(step.id) ?? 0, delta: step.delta })
    }
  }

  end(): void {
    this.#close()
    for (const contentIndex of this.#calls.values()) this.events.push({ type: "toolcall_end", contentIndex })
  }

  #block(type: "text" | "thinking"): number {
    if (this.#open?.type === type) return this.#open.contentIndex
    this.#close()
    const contentIndex = this.#count++
    this.#open = { type, contentIndex }
    this.events.push({ type: `${type}_start`, contentIndex })
    return contentIndex
  }

  #close(): void {
    if (this.#open === undefined) return
    const { contentIndex, type } = this.#open
    this.events.push({ type: `${type}_end`, contentIndex })
    this.#open = undefined
  }
}

const usageOf = ({ cacheRead, input, output }: NonNullable<Answer["usage"]>): Usage => ({
  ...emptyUsage,
  input,
  output,
  cacheRead,
  totalTokens: input + output + cacheRead
})

const responseOf = ({ end, steps, usage }: Answer): Script.Response => {
  const writer = new Writer()
  for (const step of steps) writer.step(step)
  switch (end.type) {
    case "complete":
      writer.end()
      return Script.events([
        ...writer.events,
        { type: "done", stopReason: end.stopReason, ...(usage !== undefined && { usage: usageOf(usage) }) }
      ])
    case "failure": {
      const { reason, retryAfter } = end
      return Script.events(steps.length === 0 ? [] : writer.events, {
        error: new ModelError({ reason, message: `This is the failure ${reason}.`, retryAfter })
      })
    }
    case "cut":
      return Script.events(steps.length === 0 ? [] : writer.events, {
        error: new ModelError({ reason: "Network", message: "The connection broke off." })
      })
    case "hang":
      return Script.events(steps.length === 0 ? [] : writer.events, { open: true })
  }
}

/** Looks again and again. */
const until = (isSo: Effect.Effect<boolean>): Effect.Effect<void> =>
  Effect.flatMap(isSo, (yes) => yes ? Effect.void : Effect.andThen(Effect.sleep("1 millis"), until(isSo)))

export const scripted: Subject["answering"] = ([first, ...rest]) =>
  Effect.map(
    make([first, ...rest].map(responseOf), { otherwise: responseOf(rest.at(-1) ?? first) }),
    ({ requests, stream }) => ({
      layer: Layer.succeed(StreamFn, { stream }),
      hanging: until(Effect.map(requests, (asked) => asked.length > 0)),
      closed: until(Effect.map(requests, (asked) => asked.every(({ outcome }) => outcome !== "open")))
    })
  )
