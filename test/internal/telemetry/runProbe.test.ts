/** A run whose ending throws emits nothing more and is settled all the same (I1): its spans end there. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Stream } from "effect"
import { RunOutcome } from "../../../src/Errors.ts"
import type { EventSource } from "../../../src/internal/emitter.ts"
import type { Run, RunFunctions } from "../../../src/internal/run.ts"
import { watch } from "../../../src/internal/telemetry/runProbe.ts"
import { RunResult } from "../../../src/RunResult.ts"
import { model, request } from "../../openai/ask.ts"
import { assertClosed, endings, keep } from "../../telemetry/spans.ts"
import { lie } from "../../utils/hostile.ts"

describe("A run that could not be ended in order", () => {
  it.effect("ends the spans of its request and its calls when it is settled", () => {
    const kept = keep()
    return Effect.gen(function*() {
      const services = yield* Effect.context()
      const parts = {
        functions: lie<RunFunctions>({ stream: () => Stream.empty }),
        emitter: lie<{ source: EventSource }>({}),
        settle: lie<Run["settle"]>(() => Effect.void)
      }
      const run = Object.assign(parts, {
        settings: { model, tools: { byName: new Map() } },
        turns: 1,
        reduce: () => {}
      })
      watch({ captureContent: false })(lie<Run>(run), Context.omit()(services))
      assert.isDefined(run.functions.stream(request()))
      run.emitter.source.reduce({ type: "tool_execution_start", toolCallId: "a", toolName: "x", args: {} })
      yield* run.settle(new RunResult(RunOutcome.Aborted(), []))
      assert.deepStrictEqual(endings(kept), [
        "invoke_agent: interrupted",
        "chat test-model: interrupted",
        "execute_tool _OTHER: interrupted"
      ])
      assertClosed(kept)
    }).pipe(Effect.provide(kept.layer))
  })
})
