/** The spans of runs: which there are, what they are in, what they say, and how they end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Metric, Random, Redacted, References, Schedule, Schema, Stream, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Errors, Hooks, Loop, Messages, StreamFn, Tools } from "../../src/index.ts"
import { Telemetry } from "../../src/telemetry/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { settled } from "../utils/agents.ts"
import { deaf, quick, slow, tool } from "../utils/timedTools.ts"
import {
  assertClosed,
  attributesOf,
  ending,
  endings,
  eventsOf,
  everything,
  find,
  keep,
  type Kept,
  path,
  paths,
  timesOf
} from "./spans.ts"

const { calls, error, hang, text } = ScriptedModel

const model: StreamFn.Model = {
  id: "big",
  provider: "amazon-bedrock",
  baseUrl: "https://user:baseurl-secret@models.example.com:8443/v1?key=query-secret"
}

const usage = { input: 10, output: 5, cacheRead: 3, cacheWrite: 2, reasoning: 4, cost: { total: 0.25 } }

/** Runs a test with telemetry around the making of agents and everything else. */
const watched = <E, R>(
  kept: Kept,
  responses: ReadonlyArray<ScriptedModel.Response | ScriptedModel.Responder>,
  test: Effect.Effect<void, E, R>
) => test.pipe(Effect.scoped, Effect.provide(Layer.merge(kept.layer, ScriptedModel.layer(responses))))

const spanOf = (name: string) => Effect.withSpan(Effect.void, name)

describe("The spans of a run", () => {
  it.effect("are one for the run, one a request, one a call", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "slow", {}], ["b", "quick", {}]], { after: 100, usage }), text("fine", { after: 50 })],
      Effect.gen(function*() {
        const agent = yield* Agent.make({
          model,
          sessionId: "s1",
          thinkingLevel: "high",
          tools: [slow("slow", 1000), quick("quick")]
        })
        yield* settled(agent.prompt("go"))
        assert.deepStrictEqual(paths(kept), [
          "invoke_agent",
          "chat big < invoke_agent",
          "execute_tool slow < invoke_agent",
          "execute_tool quick < invoke_agent",
          "chat big < invoke_agent"
        ])
        assert.deepStrictEqual(kept.spans.map(timesOf), [[0, 1150], [0, 100], [100, 1100], [100, 100], [1100, 1150]])
        assert.deepStrictEqual(kept.spans.map(({ kind }) => kind), [
          "internal",
          "client",
          "internal",
          "internal",
          "client"
        ])
        assert.deepStrictEqual(kept.spans.map(ending), ["ok", "ok", "ok", "ok", "ok"])
        const [run, chat, call] = kept.spans.map(attributesOf)
        const runId = run!["effect_pi.run.id"]
        assert.match(String(runId), /^[0-9a-f]{16}$/)
        assert.deepStrictEqual(run, {
          "gen_ai.operation.name": "invoke_agent",
          "gen_ai.provider.name": "aws.bedrock",
          "gen_ai.request.model": "big",
          "gen_ai.conversation.id": "s1",
          "effect_pi.run.id": runId,
          "gen_ai.usage.input_tokens": 15,
          "gen_ai.usage.output_tokens": 5,
          "gen_ai.usage.cache_read.input_tokens": 3,
          "gen_ai.usage.cache_write.input_tokens": 2,
          "gen_ai.usage.cache_creation.input_tokens": 2,
          "gen_ai.usage.reasoning.output_tokens": 4,
          "effect_pi.usage.cost": 0.25,
          "effect_pi.run.outcome": "completed",
          "effect_pi.run.turns": 2,
          "effect_pi.run.tool_calls": 2,
          "effect_pi.total_usage.tokens": 20,
          "effect_pi.total_usage.cost": 0.25
        })
        assert.deepStrictEqual(chat, {
          "gen_ai.operation.name": "chat",
          "gen_ai.provider.name": "aws.bedrock",
          "gen_ai.request.model": "big",
          "gen_ai.request.stream": true,
          "gen_ai.request.reasoning.level": "high",
          "gen_ai.conversation.id": "s1",
          "server.address": "models.example.com",
          "server.port": 8443,
          "effect_pi.run.id": runId,
          "gen_ai.response.model": "big",
          "gen_ai.response.finish_reasons": ["tool_call"],
          "gen_ai.response.time_to_first_chunk": 0.1,
          "gen_ai.usage.input_tokens": 15,
          "gen_ai.usage.output_tokens": 5,
          "gen_ai.usage.cache_read.input_tokens": 3,
          "gen_ai.usage.cache_write.input_tokens": 2,
          "gen_ai.usage.cache_creation.input_tokens": 2,
          "gen_ai.usage.reasoning.output_tokens": 4,
          "effect_pi.usage.cost": 0.25
        })
        assert.deepStrictEqual(call, {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": "slow",
          "gen_ai.tool.call.id": "a",
          "gen_ai.tool.type": "function",
          "gen_ai.tool.description": "The tool slow.",
          "effect_pi.run.id": runId
        })
      })
    )
  })

  it.effect("are those that code of users stands in", () => {
    const kept = keep()
    const noting = tool("noting", () => Effect.as(spanOf("in the tool"), "done"))
    const outer = tool("outer", ({ runToolCall }) => Effect.as(runToolCall({ id: "n", name: "noting" }), "done"))
    const answering: StreamFn.StreamFn["Service"]["stream"] = () =>
      Stream.unwrap(Effect.as(
        spanOf("in the stream"),
        Stream.fromIterable<StreamFn.StreamEvent>([{ type: "start" }, { type: "done" }])
      ))
    let request = 0
    return Effect.gen(function*() {
      const scripted = yield* ScriptedModel.make([calls([["a", "noting", {}], ["b", "outer", {}]])])
      const agent = yield* Agent.make({ model, tools: [noting, outer] }).pipe(
        Effect.provideService(StreamFn.StreamFn, {
          stream: (asked) => request++ === 0 ? scripted.stream(asked) : answering(asked)
        }),
        Effect.provide(Hooks.layer(
          Hooks.beforeToolCall(({ toolCall }) => Effect.as(spanOf(`before ${toolCall.id}`), Hooks.allow)),
          Hooks.afterToolCall(({ toolCall }) => Effect.asVoid(spanOf(`after ${toolCall.id}`))),
          Hooks.prepareRequest(() => Effect.asVoid(spanOf("prepare")))
        ))
      )
      // Whatever it was subscribed in.
      yield* Effect.withSpan(
        agent.subscribe((event) => event.type === "agent_start" ? spanOf("in the listener") : undefined),
        "subscribing"
      )
      yield* Effect.withSpan(agent.prompt("go"), "outside")
      const run = "invoke_agent < outside"
      assert.deepStrictEqual(paths(kept).filter((each) => each.includes("invoke_agent")), [
        run,
        `in the listener < ${run}`,
        `prepare < ${run}`,
        `chat big < ${run}`,
        `execute_tool noting < ${run}`,
        `before a < execute_tool noting < ${run}`,
        `execute_tool outer < ${run}`,
        `before b < execute_tool outer < ${run}`,
        `in the tool < execute_tool noting < ${run}`,
        `after a < execute_tool noting < ${run}`,
        `execute_tool noting < execute_tool outer < ${run}`,
        `before n < execute_tool noting < execute_tool outer < ${run}`,
        `in the tool < execute_tool noting < execute_tool outer < ${run}`,
        `after n < execute_tool noting < execute_tool outer < ${run}`,
        `after b < execute_tool outer < ${run}`,
        `prepare < ${run}`,
        `chat big < ${run}`,
        `in the stream < chat big < ${run}`
      ])
      assertClosed(kept)
      assert.strictEqual(attributesOf(find(kept, "invoke_agent"))["effect_pi.run.tool_calls"], 3)
    }).pipe(Effect.scoped, Effect.provide(kept.layer))
  })

  it.effect("of an agent inside a tool stand in the call", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "ask", {}]]), text("child", { usage }), text("fine", { usage })],
      Effect.gen(function*() {
        const ask = tool("ask", () =>
          Effect.gen(function*() {
            const child = yield* Effect.provideService(Agent.make({ model }), Telemetry.AgentInfo, { name: "child" })
            return Messages.text((yield* child.prompt("?")).messages.at(-1)!)
          }).pipe(Effect.orDie, Effect.scoped))
        const agent = yield* Effect.provideService(Agent.make({ model, tools: [ask] }), Telemetry.AgentInfo, {
          name: "boss",
          description: "Asks.",
          version: "1"
        })
        yield* agent.prompt("go")
        assert.deepStrictEqual(paths(kept), [
          "invoke_agent boss",
          "chat big < invoke_agent boss",
          "execute_tool ask < invoke_agent boss",
          "invoke_agent child < execute_tool ask < invoke_agent boss",
          "chat big < invoke_agent child < execute_tool ask < invoke_agent boss",
          "chat big < invoke_agent boss"
        ])
        const boss = attributesOf(find(kept, "invoke_agent boss"))
        assert.deepInclude(boss, {
          "gen_ai.agent.name": "boss",
          "gen_ai.agent.description": "Asks.",
          "gen_ai.agent.version": "1",
          "effect_pi.usage.cost": 0.25,
          "effect_pi.total_usage.cost": 0.5,
          "effect_pi.total_usage.tokens": 40
        })
        const child = attributesOf(find(kept, "invoke_agent child"))
        assert.strictEqual(child["gen_ai.agent.name"], "child")
        assert.notStrictEqual(child["effect_pi.run.id"], boss["effect_pi.run.id"])
      })
    )
  })

  it.effect("of an unnamed agent inside a named one have no name", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "ask", {}]]), text("child"), text("fine")],
      Effect.gen(function*() {
        const ask = tool("ask", () =>
          Effect.gen(function*() {
            yield* (yield* Agent.make({ model })).prompt("?")
            return "done"
          }).pipe(Effect.orDie, Effect.scoped))
        const agent = yield* Agent.make({ model, tools: [ask] })
        yield* Effect.provideService(agent.prompt("go"), Telemetry.AgentInfo, { name: "boss" })
        assert.deepStrictEqual(paths(kept).filter((each) => each.startsWith("invoke_agent")), [
          "invoke_agent boss",
          "invoke_agent < execute_tool ask < invoke_agent boss"
        ])
      })
    )
  })

  it.effect("of a run that follows another one stand beside it", () => {
    const kept = keep()
    return watched(
      kept,
      [text("one"), text("two")],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model })
        let first = true
        yield* agent.subscribe((event) => {
          if (event.type !== "agent_end" || !first) return undefined
          first = false
          return agent.followUp("and?")
        })
        yield* Effect.withSpan(agent.prompt("go"), "outside")
        assert.deepStrictEqual(paths(kept), [
          "outside",
          "invoke_agent < outside",
          "chat big < invoke_agent < outside",
          "invoke_agent < outside",
          "chat big < invoke_agent < outside"
        ])
        assertClosed(kept)
      })
    )
  })

  it.effect("of a run that follows another one stand beside it, also outside of every span", () => {
    const kept = keep()
    return watched(
      kept,
      [text("one"), text("two")],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model })
        let first = true
        yield* agent.subscribe((event) => {
          if (event.type !== "agent_end" || !first) return undefined
          first = false
          return agent.followUp("and?")
        })
        yield* agent.prompt("go")
        const run = ["invoke_agent", "chat big < invoke_agent"]
        assert.deepStrictEqual(paths(kept), [...run, ...run])
      })
    )
  })

  it.effect("name the server with its usual port", () => {
    const kept = keep()
    return watched(
      kept,
      [text("one"), text("two")],
      Effect.gen(function*() {
        for (const baseUrl of ["http://one.example.com/v1", "https://two.example.com"]) {
          const agent = yield* Agent.make({ model: { id: "big", baseUrl } })
          yield* agent.prompt("go")
        }
        const servers = kept.spans.filter(({ name }) => name === "chat big").map(attributesOf)
        assert.deepStrictEqual(servers.map((each) => [each["server.address"], each["server.port"]]), [
          ["one.example.com", 80],
          ["two.example.com", 443]
        ])
      })
    )
  })

  it.effect("of a call say what the tool was that the model was given", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "clear", {}], ["b", "look", {}]]), text("done")],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model, toolExecution: "sequential" })
        const clear = tool("clear", () => Effect.as(agent.setTools([]), "cleared"))
        yield* agent.setTools([clear, quick("look")])
        yield* agent.prompt("go")
        assert.strictEqual(ending(find(kept, "execute_tool look")), "ok")
      })
    )
  })

  it.effect("are there where the loop is run alone, and where only the prompt is watched", () => {
    const kept = keep()
    return Effect.gen(function*() {
      yield* Loop.run([Messages.user("hi")], { messages: [], tools: [] }, { model }).pipe(Effect.provide(kept.layer))
      const agent = yield* Agent.make({ model })
      yield* agent.prompt("unseen")
      yield* Effect.provide(agent.prompt("seen"), kept.layer)
      assert.deepStrictEqual(paths(kept), [
        "invoke_agent",
        "chat big < invoke_agent",
        "invoke_agent",
        "chat big < invoke_agent"
      ])
    }).pipe(Effect.scoped, Effect.provide(ScriptedModel.layer([], { otherwise: text("hi") })))
  })

  it.effect("have ids of runs that come from Random", () => {
    const ids = Effect.suspend(() => {
      const kept = keep()
      return watched(
        kept,
        [text("a"), text("b")],
        Effect.gen(function*() {
          const agent = yield* Agent.make({ model })
          yield* agent.prompt("1")
          yield* agent.prompt("2")
        })
      ).pipe(
        Random.withSeed("seed"),
        Effect.map(() => kept.spans.map((span) => String(span.attributes.get("effect_pi.run.id"))))
      )
    })
    return Effect.gen(function*() {
      const first = yield* ids
      assert.strictEqual(new Set(first).size, 2)
      assert.deepStrictEqual(yield* ids, first)
    })
  })
})

describe("What happens in between", () => {
  it.effect("are events: steering and follow-up messages", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "slow", {}]]), text("one"), text("two")],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model, tools: [slow("slow", 1000)] })
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(500)
        yield* agent.steer("steer-content")
        yield* agent.followUp("follow-content")
        yield* TestClock.adjust("1 hour")
        yield* Fiber.join(run)
        assert.deepStrictEqual(eventsOf(find(kept, "invoke_agent")), [
          ["effect_pi.steering", 1000, { "effect_pi.turn": 2 }],
          ["effect_pi.follow_up", 1000, { "effect_pi.turn": 3 }]
        ])
        assert.notInclude(everything(kept), "content")
      })
    )
  })

  it.effect("are events: each message of a batch, at the same time", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "slow", {}]]), text("one")],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model, tools: [slow("slow", 1000)], steeringMode: "all" })
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(500)
        yield* agent.steer("1")
        yield* agent.steer("2")
        yield* agent.note("a note is neither")
        yield* TestClock.adjust("1 hour")
        yield* Fiber.join(run)
        assert.deepStrictEqual(eventsOf(find(kept, "invoke_agent")).map(([name]) => name), [
          "effect_pi.steering",
          "effect_pi.steering"
        ])
      })
    )
  })

  it.effect("are events: another attempt of a request", () => {
    const kept = keep()
    return watched(
      kept,
      [ScriptedModel.events([
        { type: "start" },
        { type: "text_start", contentIndex: 0, at: 100 },
        { type: "text_delta", contentIndex: 0, delta: "secret" },
        {
          type: "retract",
          attempt: 2,
          at: 200,
          error: new Errors.ModelError({ reason: "Overloaded", message: "secret" }),
          model: { id: "other" }
        },
        { type: "start", at: 1000 },
        { type: "text_start", contentIndex: 0, at: 1500 },
        { type: "text_end", contentIndex: 0, at: 2000 },
        { type: "done", responseId: "r1", responseModel: "other-1" }
      ])],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model })
        yield* settled(agent.prompt("go"))
        const chat = find(kept, "chat big")
        assert.deepStrictEqual(eventsOf(chat), [
          ["effect_pi.retract", 200, {
            "effect_pi.attempt": 2,
            "error.type": "Overloaded",
            "gen_ai.request.model": "other"
          }]
        ])
        assert.deepInclude(attributesOf(chat), {
          "gen_ai.response.id": "r1",
          "gen_ai.response.model": "other-1",
          "gen_ai.response.time_to_first_chunk": 1.5
        })
        assert.notInclude(everything(kept), "secret")
      })
    )
  })
})

describe("How spans end", () => {
  it.effect("with the error of a failed response, by its reason alone", () => {
    const kept = keep()
    return watched(
      kept,
      [error("the text is secret", { reason: "RateLimited" })],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model })
        yield* agent.prompt("go")
        assert.deepStrictEqual(endings(kept), [
          "invoke_agent: RateLimited: RateLimited",
          "chat big: RateLimited: RateLimited"
        ])
        assert.deepInclude(attributesOf(find(kept, "chat big")), {
          "error.type": "RateLimited",
          "gen_ai.response.finish_reasons": ["error"]
        })
        assert.deepInclude(attributesOf(find(kept, "invoke_agent")), {
          "error.type": "RateLimited",
          "effect_pi.run.outcome": "failed"
        })
        assert.notInclude(everything(kept), "secret")
      })
    )
  })

  it.effect("with the error of a hook", () => {
    const kept = keep()
    return watched(
      kept,
      [],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model }).pipe(
          Effect.provide(Hooks.layer(Hooks.prepareRequest(() => Effect.fail("secret"))))
        )
        yield* agent.prompt("go")
        assert.deepStrictEqual(endings(kept), ["invoke_agent: HookError.prepareRequest: HookError.prepareRequest"])
        assert.notInclude(everything(kept), "secret")
      })
    )
  })

  it.effect("with the error of a call, while the run goes on", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "fails", {}], ["b", "secret-name", {}], ["c", "fails", "{"]]), text("fine")],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model, tools: [tool("fails", () => Effect.fail("secret"))] })
        yield* agent.prompt("go")
        assert.deepStrictEqual(endings(kept), [
          "invoke_agent: ok",
          "chat big: ok",
          "execute_tool fails: tool_error: tool_error",
          "execute_tool _OTHER: tool_not_found: tool_not_found",
          "execute_tool fails: tool_error: tool_error",
          "chat big: ok"
        ])
        assert.notInclude(everything(kept), "secret")
      })
    )
  })

  it.effect("by a limit, with an event when it is reached", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "slow", {}]]), text("in short", { after: 100 })],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model, tools: [slow("slow", 1000)], limits: { turns: 1 }, wrapUp: true })
        yield* settled(agent.prompt("go"))
        const run = find(kept, "invoke_agent")
        assert.deepStrictEqual(eventsOf(run), [["effect_pi.limit", 1000, { "effect_pi.limit": "turns" }]])
        assert.deepInclude(attributesOf(run), { "effect_pi.run.outcome": "limited", "effect_pi.limit": "turns" })
        assert.strictEqual(ending(run), "ok")
        assert.deepStrictEqual(timesOf(run), [0, 1100])
      })
    )
  })

  it.effect("by a limit without a last word, with the event all the same", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "slow", {}]])],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model, tools: [slow("slow", 1000)], limits: { turns: 1 } })
        yield* settled(agent.prompt("go"))
        assert.deepStrictEqual(eventsOf(find(kept, "invoke_agent")), [
          ["effect_pi.limit", 1000, { "effect_pi.limit": "turns" }]
        ])
      })
    )
  })

  it.effect("by a limit of time, which interrupts", () => {
    const kept = keep()
    return watched(
      kept,
      [hang({ partial: "so far" })],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model, limits: { duration: "1 second" } })
        yield* settled(agent.prompt("go"))
        assert.deepStrictEqual(endings(kept), ["invoke_agent: ok", "chat big: interrupted"])
        assert.deepStrictEqual(eventsOf(find(kept, "invoke_agent")), [
          ["effect_pi.limit", 1000, { "effect_pi.limit": "duration" }]
        ])
      })
    )
  })

  it.effect("by an abort, with an event", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "slow", {}], ["b", "outer", {}]])],
      Effect.gen(function*() {
        const sleepy = slow("slow", 60_000)
        const outer = tool("outer", ({ runToolCall }) => Effect.as(runToolCall({ id: "n", name: "slow" }), "done"))
        const agent = yield* Agent.make({ model, tools: [sleepy, outer] })
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(500)
        yield* agent.abort
        yield* Fiber.join(run)
        assert.deepStrictEqual(endings(kept), [
          "invoke_agent: interrupted",
          "chat big: ok",
          "execute_tool slow: interrupted",
          "execute_tool outer: interrupted",
          "execute_tool slow: interrupted"
        ])
        const span = find(kept, "invoke_agent")
        assert.deepStrictEqual(eventsOf(span), [["effect_pi.abort", 500, {}]])
        assert.strictEqual(attributesOf(span)["effect_pi.run.outcome"], "aborted")
        assertClosed(kept)
      })
    )
  })

  it.effect("when something is left behind after the grace period", () => {
    const kept = keep()
    return watched(
      kept,
      [calls([["a", "outer", {}]])],
      Effect.gen(function*() {
        const nested = deaf("deaf", 60_000)
        const outer = tool("outer", ({ runToolCall }) => Effect.as(runToolCall({ id: "n", name: "deaf" }), "done"))
        const agent = yield* Agent.make({ model, tools: [nested, outer], gracePeriod: 1000 })
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(500)
        const abort = yield* Effect.forkChild(agent.abort)
        yield* TestClock.adjust(1000)
        yield* Fiber.join(abort)
        yield* Fiber.join(run)
        assert.deepStrictEqual(kept.spans.map((span) => [span.name, ending(span), timesOf(span)[1]]), [
          ["invoke_agent", "interrupted", 1500],
          ["chat big", "ok", 0],
          ["execute_tool outer", "interrupted", 1500],
          ["execute_tool deaf", "interrupted", 1500]
        ])
        assert.deepStrictEqual(eventsOf(find(kept, "invoke_agent")), [["effect_pi.abort", 500, {}]])
        assertClosed(kept)
        yield* TestClock.adjust("2 minutes")
      })
    )
  })

  it.effect("when a response cannot be stopped", () => {
    const kept = keep()
    const stubborn = Stream.fromEffect(Effect.uninterruptible(Effect.sleep(60_000))).pipe(
      Stream.drain,
      Stream.concat(Stream.empty)
    )
    return Effect.gen(function*() {
      const agent = yield* Agent.make({ model, gracePeriod: 1000 })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* TestClock.adjust(500)
      yield* Effect.forkChild(agent.abort)
      yield* TestClock.adjust(1000)
      yield* Fiber.join(run)
      assert.deepStrictEqual(kept.spans.map((span) => [span.name, ending(span), timesOf(span)[1]]), [
        ["invoke_agent", "interrupted", 1500],
        ["chat big", "interrupted", 1500]
      ])
      yield* TestClock.adjust("2 minutes")
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(kept.layer, StreamFn.layer(() => stubborn))))
  })

  it.effect("when the stream function throws", () => {
    const kept = keep()
    return Effect.gen(function*() {
      const agent = yield* Agent.make({ model })
      const { outcome } = yield* agent.prompt("go")
      assert.strictEqual(outcome._tag, "Failed")
      assert.deepStrictEqual(endings(kept), ["invoke_agent: Unknown: Unknown", "chat big: Unknown: Unknown"])
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.merge(
        kept.layer,
        StreamFn.layer(() => {
          throw new Error("secret")
        })
      ))
    )
  })

  it.effect("each on its own, when a tool is tried again", () => {
    const kept = keep()
    let tries = 0
    const flaky = Tools.make("flaky", {
      description: "Works the second time.",
      parameters: Schema.Struct({}),
      retry: Schedule.recurs(3),
      execute: () => Effect.suspend(() => tries++ === 0 ? Effect.fail("no") : Effect.as(spanOf(`try ${tries}`), "ok"))
    })
    return watched(
      kept,
      [calls([["a", "flaky", {}]]), text("fine")],
      Effect.gen(function*() {
        const agent = yield* Agent.make({ model, tools: [flaky] })
        yield* agent.prompt("go")
        assert.strictEqual(path(find(kept, "try 2")), "try 2 < execute_tool flaky < invoke_agent")
        assert.strictEqual(ending(find(kept, "execute_tool flaky")), "ok")
      })
    )
  })
})

describe("What spans do not say", () => {
  const said = (kept: Kept) =>
    watched(
      kept,
      [
        calls([["a", "echo", { text: "argument-content" }]], { thinking: "thinking-content" }),
        text("answer-content")
      ],
      Effect.gen(function*() {
        const echo = Tools.make("echo", {
          description: "Returns its argument.",
          parameters: Schema.Struct({ text: Schema.String }),
          execute: () => Effect.succeed("result-content")
        })
        const agent = yield* Agent.make({
          model,
          systemPrompt: "system-content",
          tools: [echo],
          headers: { authorization: "Bearer header-secret", "x-api-key": "header-secret" },
          metadata: { key: "metadata-secret" }
        }).pipe(Effect.provide(Hooks.layer(Hooks.apiKey(() => Redacted.make("key-secret")))))
        yield* agent.prompt([
          Messages.user([
            { type: "text", text: "prompt-content" },
            { type: "image", data: "aW1hZ2UtYnl0ZXM=", mimeType: "image/png" }
          ])
        ])
      })
    )

  it.effect("is what was said, and every secret", () => {
    const kept = keep()
    return Effect.map(said(kept), () => {
      assert.strictEqual(kept.spans.length, 4)
      assert.notMatch(everything(kept), /content|secret|aW1hZ2U/)
    })
  })

  it.effect("is every secret, also when what was said is asked for", () => {
    const kept = keep({ captureContent: true })
    return Effect.map(said(kept), () => {
      assert.notMatch(everything(kept), /secret|aW1hZ2U/)
      const last = attributesOf(kept.spans.at(-1)!)
      const parsed = (key: string): unknown => JSON.parse(String(last[key]))
      assert.deepStrictEqual(parsed("gen_ai.system_instructions"), [{ type: "text", content: "system-content" }])
      assert.deepStrictEqual(parsed("gen_ai.input.messages"), [
        {
          role: "user",
          parts: [{ type: "text", content: "prompt-content" }, { type: "image", mime_type: "image/png" }]
        },
        {
          role: "assistant",
          parts: [
            { type: "reasoning", content: "thinking-content" },
            { type: "tool_call", id: "a", name: "echo", arguments: { text: "argument-content" } }
          ]
        },
        {
          role: "tool",
          parts: [{ type: "tool_call_response", id: "a", response: [{ type: "text", content: "result-content" }] }]
        }
      ])
      assert.deepStrictEqual(parsed("gen_ai.output.messages"), [
        { role: "assistant", parts: [{ type: "text", content: "answer-content" }], finish_reason: "stop" }
      ])
      assert.include(String(last["gen_ai.tool.definitions"]), "\"name\":\"echo\"")
      const call = attributesOf(find(kept, "execute_tool echo"))
      assert.strictEqual(call["gen_ai.tool.call.arguments"], "{\"text\":\"argument-content\"}")
      assert.strictEqual(call["gen_ai.tool.call.result"], "[{\"type\":\"text\",\"text\":\"result-content\"}]")
    })
  })

  it.effect("are the texts of errors, unless what was said is asked for", () => {
    const kept = keep({ captureContent: true })
    return watched(
      kept,
      [error("the provider said this", { reason: "InvalidRequest" })],
      Effect.gen(function*() {
        yield* (yield* Agent.make({ model })).prompt("go")
        assert.strictEqual(ending(find(kept, "invoke_agent")), "InvalidRequest: the provider said this")
      })
    )
  })
})

describe("Telemetry that fails", () => {
  it.effect("costs the run nothing", () => {
    const broken = (): never => {
      throw new Error("broken")
    }
    const registry: Metric.MetricRegistry = new Map()
    registry.get = broken
    return Effect.gen(function*() {
      let annotated: unknown
      const looks = tool("looks", () =>
        Effect.map(References.CurrentLogAnnotations, ({ run }) => {
          annotated = run
          return "done"
        }))
      const outer = tool("outer", ({ runToolCall }) => Effect.as(runToolCall({ id: "n", name: "slow" }), "done"))
      const agent = yield* Agent.make({ model, tools: [slow("slow", 10), outer, looks] })
      const { outcome } = yield* settled(agent.prompt("go"))
      assert.strictEqual(outcome._tag, "Completed")
      // What does not fail goes on.
      assert.isString(annotated)
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.mergeAll(
        Telemetry.layer(),
        Layer.succeed(Tracer.Tracer, Tracer.make({ span: broken })),
        Layer.succeed(Metric.MetricRegistry, registry),
        ScriptedModel.layer([calls([["a", "slow", {}], ["b", "outer", {}], ["c", "looks", {}]]), text("fine")])
      ))
    )
  })
})
