import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { scene } from "./utils/scene.ts"
import { violations } from "./utils/invariants.ts"
import { tool, quick } from "./utils/timedTools.ts"
import { ended } from "./utils/journey.ts"
const bad: string[] = []
for (let k = 0; k < 400; k++)
it.effect("k" + k, () => scene({ responses: [ScriptedModel.calls([["a", "y", {}], ["b", "quick", {}], ["c", "y", {}]], {chunks: 2}), ScriptedModel.text("fine fine", { chunks: 3 })],
  tools: [tool("y", ({update}) => Effect.gen(function*() { yield* Effect.yieldNow; yield* update("p"); yield* Effect.yieldNow; return "done" })), quick("quick")] }, (world) =>
  Effect.gen(function*() {
    const { agent, recorder, before } = world
    let called = 0, ran = 0
    yield* agent.subscribe(() => { called++; return Effect.andThen(Effect.yieldNow, Effect.sync(() => { ran++ })) })
    const run = yield* Effect.forkChild(agent.prompt("go"), { startImmediately: true })
    for (let i = 0; i < k; i++) yield* Effect.yieldNow
    const abort = yield* Effect.forkChild(agent.abort, { startImmediately: true })
    yield* TestClock.adjust(0)
    const e = ended(abort)
    yield* TestClock.adjust(5000)
    const { outcome } = yield* Fiber.join(run)
    const transcript = yield* agent.messages
    const v = violations({ events: recorder.events, before, transcript, accepted: ["go"] })
    if (!e || called !== ran || v.length > 0 || called !== recorder.events.length) console.log(k, outcome._tag, e, called, ran, recorder.events.length, v, Transcript.print(transcript))
  })))
