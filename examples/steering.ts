/**
 * Steer, follow up, stop: what another fiber can do with an agent that works.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Deferred, Effect, Fiber, Schema } from "effect"
import { Agent, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"

const program = Effect.gen(function*() {
  const started = yield* Deferred.make<void>()
  const migrate = Tools.make("migrate", {
    description: "Migrate a folder of tests.",
    parameters: Schema.Struct({ folder: Schema.String }),
    execute: Effect.fn("migrate")(function*({ folder }) {
      yield* Deferred.succeed(started, undefined)
      yield* Effect.sleep("100 millis")
      return `${folder} is migrated`
    })
  })
  const agent = yield* Agent.make({ tools: [migrate] })

  // A steer waits for the tool that works and is read before the next request; a follow-up waits for the end.
  const run = yield* Effect.forkChild(agent.prompt("Migrate the tests"))
  yield* Deferred.await(started)
  const receipt = yield* agent.steer("Leave test/legacy alone")
  yield* agent.followUp("Then update the changelog")
  const delivery = yield* receipt.delivered // waits; tells the turn, or why it never was
  const { outcome } = yield* Fiber.join(run)
  yield* Console.log(`the steer: ${JSON.stringify(delivery)}`)
  yield* Console.log(`${outcome._tag}\n${Transcript.show(yield* agent.messages)}\n`)

  // An abort returns when the run is settled: what had arrived is kept. A second one does nothing.
  const another = yield* Effect.forkChild(agent.prompt("Now rewrite everything"))
  yield* Effect.sleep("50 millis")
  yield* agent.abort
  yield* agent.abort
  const aborted = yield* Fiber.join(another)
  yield* Console.log(`${aborted.outcome._tag}\n${Transcript.show(aborted.messages)}\n`)

  // A timeout does the same: interrupting the one who waits aborts the run.
  const late = yield* agent.prompt("Think for a while").pipe(Effect.timeoutOption("50 millis"))
  yield* Console.log(`${late._tag === "None" ? "timed out" : "in time"}: ${Transcript.print(yield* agent.messages)}`)
})

const Model = ScriptedModel.layer([
  ScriptedModel.calls([["a", "migrate", { folder: "test" }]]),
  ScriptedModel.text("I leave test/legacy as it is."),
  ScriptedModel.text("The changelog is up to date."),
  ScriptedModel.hang({ partial: "I begin with" }),
  ScriptedModel.hang()
])

program.pipe(Effect.scoped, Effect.provide(Model), NodeRuntime.runMain)
