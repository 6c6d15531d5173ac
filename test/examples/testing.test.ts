/**
 * A test of an agent: a scripted model, exact times, no waiting.
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Tools } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"

const slow = Tools.make("slow", {
  description: "Take ten seconds.",
  parameters: Schema.Struct({}),
  execute: () => Effect.as(Effect.sleep("10 seconds"), "done")
})

it.effect("a steer waits for the running tool", () =>
  Effect.gen(function*() {
    const agent = yield* Agent.make({ tools: [slow] })
    const run = yield* Effect.forkChild(agent.prompt("go"))
    yield* TestClock.adjust("1 second")
    yield* agent.steer("enough")
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(run)
    assert.strictEqual(Transcript.print(yield* agent.messages), "U A[a] R(a) U A")
    yield* ScriptedModel.assertComplete
  }).pipe(
    Effect.scoped,
    Effect.provide(ScriptedModel.layer([
      ScriptedModel.calls([["a", "slow", {}]], { after: "200 millis" }),
      ScriptedModel.text("fine", { chunks: 3, every: "50 millis" })
    ]))
  ))
