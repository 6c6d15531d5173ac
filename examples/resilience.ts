/**
 * A model that breaks off in the middle of its answer, asked again; and the conversation played back from a cassette.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Schedule } from "effect"
import { Agent, Messages } from "../src/index.ts"
import { Resilience } from "../src/resilience/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"

const Flaky = ScriptedModel.layer([
  ScriptedModel.error("too many people ask", { reason: "Overloaded", partial: "The answer is" }),
  ScriptedModel.text("The answer is 42.")
])

const ask = Effect.gen(function*() {
  const agent = yield* Agent.make()
  yield* agent.subscribe(Agent.onText((delta) => Console.log(delta.trim())))
  const run = yield* agent.prompt("What is the answer?")
  yield* Console.log(`${run.outcome._tag}, in the transcript: ${run.messages.map(Messages.text).join(" / ")}`)
}).pipe(Effect.scoped)

const program = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const file = `${yield* fs.makeTempDirectoryScoped()}/answer.jsonl`
  const Recorded = Flaky.pipe(Resilience.retry(Schedule.spaced("100 millis")), Resilience.record(file))
  yield* Effect.provide(ask, Recorded)
  yield* Console.log("--- played back ---")
  yield* Effect.provide(ask, Resilience.replay(file))
})

program.pipe(Effect.scoped, Effect.provide(NodeServices.layer), NodeRuntime.runMain)
