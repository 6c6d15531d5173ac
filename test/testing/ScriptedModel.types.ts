/**
 * Type tests of `src/testing/ScriptedModel.ts`; `tsc` checks them, nothing runs them.
 */
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { ModelError } from "../../src/Errors.ts"
import type { StreamFn } from "../../src/StreamFn.ts"
import { ScriptedModel } from "../../src/testing/index.ts"

type Equal<A, B> = [A] extends [B] ? [B] extends [A] ? true : false : false
const equal = <A, B>(_same: Equal<A, B>): void => {}

// The layer gives the seam and the recorder and asks for nothing.
const layer = ScriptedModel.layer([ScriptedModel.text("fine"), () => ScriptedModel.hang()])
equal<typeof layer, Layer.Layer<StreamFn | ScriptedModel.ScriptedModel>>(true)

// What a test asks of it cannot fail.
equal<
  typeof ScriptedModel.requests,
  Effect.Effect<ReadonlyArray<ScriptedModel.RecordedRequest>, never, ScriptedModel.ScriptedModel>
>(true)
equal<typeof ScriptedModel.assertComplete, Effect.Effect<void, never, ScriptedModel.ScriptedModel>>(true)

// A responder may fail like a model, and has no requirements.
export const failing = (error: Effect.Effect<never, ModelError>): ScriptedModel.Responder => () => error
export const needy = (effect: Effect.Effect<ScriptedModel.Response, never, StreamFn>): void => {
  // @ts-expect-error the script has no services to give
  const responder: ScriptedModel.Responder = () => effect
  void responder
}

// @ts-expect-error arguments are a JSON object or a text
ScriptedModel.calls([["a", "read", [1]]])

// @ts-expect-error a scripted response has ended
ScriptedModel.text("fine", { stopReason: "pending" })

// @ts-expect-error no such event
ScriptedModel.events([{ at: "1 second", type: "text" }])

// @ts-expect-error a delta needs a text
ScriptedModel.events([{ at: "1 second", type: "text_delta", contentIndex: 0 }])

// @ts-expect-error responses are made by the constructors
ScriptedModel.layer([{ label: "mine", timeline: [], end: { _tag: "Ended" } }])
