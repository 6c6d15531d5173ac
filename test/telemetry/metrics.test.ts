/** What is counted of runs, under the test clock. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Messages } from "../../src/index.ts"
import { Telemetry } from "../../src/telemetry/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { settled } from "../utils/agents.ts"
import { slow, tool } from "../utils/timedTools.ts"
import { keep, type Kept, metrics } from "./spans.ts"

const { calls, error, text } = ScriptedModel

const model = { id: "big", provider: "openai" }

const watched = <E, R>(
  kept: Kept,
  responses: ReadonlyArray<ScriptedModel.Response>,
  test: Effect.Effect<void, E, R>
) => test.pipe(Effect.scoped, Effect.provide(Layer.merge(kept.layer, ScriptedModel.layer(responses))))

describe("Metrics", () => {
  it.effect("count turns, calls, tokens, cost, and times", () =>
    watched(
      keep(),
      [
        calls([["a", "slow", {}], ["b", "fails", {}], ["c", "none", {}]], {
          after: 500,
          chunks: 2,
          every: 1000,
          usage: { input: 100, output: 20, cacheRead: 8, cacheWrite: 4, reasoning: 6, cost: { total: 0.5 } }
        }),
        text("fine", { after: 250, usage: { input: 200, output: 10, cost: { total: 0.25 } } })
      ],
      Effect.gen(function*() {
        const fails = tool("fails", () => Effect.fail("no"))
        const agent = yield* Effect.provideService(
          Agent.make({ model, tools: [slow("slow", 3000), fails] }),
          Telemetry.AgentInfo,
          { name: "me" }
        )
        yield* settled(agent.prompt("go"))
        const request =
          "gen_ai.operation.name=chat,gen_ai.provider.name=openai,gen_ai.request.model=big,gen_ai.response.model=big"
        const tokens = `${request},gen_ai.token.modality=unknown`
        const failed = "error.type=tool_error,gen_ai.agent.name=me,gen_ai.tool.name=fails"
        const unknown = "error.type=tool_not_found,gen_ai.agent.name=me,gen_ai.tool.name=_OTHER"
        const worked = "gen_ai.agent.name=me,gen_ai.tool.name=slow"
        const run = "gen_ai.agent.name=me,gen_ai.operation.name=invoke_agent"
        assert.deepStrictEqual(
          yield* metrics,
          [
            `gen_ai.client.operation.duration{${request}} 2x${5.5 + 0.25}`,
            `gen_ai.client.inference.duration{${request}} 2x${5.5 + 0.25}`,
            `gen_ai.client.operation.time_to_first_chunk{${request}} 2x0.75`,
            `gen_ai.client.inference.time_to_first_chunk{${request}} 2x0.75`,
            `gen_ai.client.token.usage{${request},gen_ai.token.type=input} 2x312`,
            `gen_ai.client.token.usage{${request},gen_ai.token.type=output} 2x30`,
            `gen_ai.client.inference.usage.input_tokens{${tokens}} 312`,
            `gen_ai.client.inference.usage.output_tokens{${tokens}} 30`,
            `gen_ai.client.inference.usage.cache_read.input_tokens{${tokens}} 8`,
            `gen_ai.client.inference.usage.cache_write.input_tokens{${tokens}} 4`,
            `gen_ai.client.inference.usage.reasoning.output_tokens{${tokens}} 6`,
            `effect_pi.cost{${request}} 0.75`,
            `gen_ai.execute_tool.duration{${worked},gen_ai.tool.type=function} 1x3`,
            `gen_ai.execute_tool.duration{${failed},gen_ai.tool.type=function} 1x0`,
            `gen_ai.execute_tool.duration{${unknown},gen_ai.tool.type=function} 1x0`,
            `effect_pi.tool_calls{${worked}} 1`,
            `effect_pi.tool_calls{${failed}} 1`,
            `effect_pi.tool_calls{${unknown}} 1`,
            `gen_ai.invoke_agent.duration{${run}} 1x${5.5 + 3 + 0.25}`,
            `gen_ai.invoke_agent.inference_calls{${run}} 1x2`,
            `gen_ai.invoke_agent.tool_calls{${run}} 1x3`,
            "effect_pi.runs{effect_pi.run.outcome=completed,gen_ai.agent.name=me} 1",
            "effect_pi.turns{gen_ai.agent.name=me} 2"
          ].toSorted()
        )
      })
    ))

  it.effect("tell failures by their class, and no times to a piece that never came", () =>
    watched(
      keep(),
      [error("secret", { reason: "Overloaded", after: 1000 })],
      Effect.gen(function*() {
        yield* settled((yield* Agent.make({ model })).prompt("go"))
        const found = yield* metrics
        const request =
          "gen_ai.operation.name=chat,gen_ai.provider.name=openai,gen_ai.request.model=big,gen_ai.response.model=big"
        assert.includeMembers([...found], [
          `gen_ai.client.operation.duration{error.type=Overloaded,${request}} 1x1`,
          "gen_ai.invoke_agent.duration{error.type=Overloaded,gen_ai.operation.name=invoke_agent} 1x1",
          "effect_pi.runs{effect_pi.run.outcome=failed} 1"
        ])
        assert.deepStrictEqual(found.filter((each) => /first_chunk|token\.usage|secret|effect_pi.cost/.test(each)), [])
      })
    ))

  it.effect("are those of the place where the agent was prompted, and none without the layer", () => {
    const kept = keep()
    return Effect.gen(function*() {
      const agent = yield* Agent.make({ model })
      yield* agent.prompt([Messages.user("unseen")])
      assert.deepStrictEqual(yield* metrics, [])
      const seen = yield* Effect.andThen(agent.prompt("seen"), metrics).pipe(Effect.provide(kept.layer))
      assert.include(seen, "effect_pi.runs{effect_pi.run.outcome=completed} 1")
      assert.deepStrictEqual(yield* metrics, [])
    }).pipe(Effect.scoped, Effect.provide(ScriptedModel.layer([], { otherwise: text("hi") })))
  })
})
