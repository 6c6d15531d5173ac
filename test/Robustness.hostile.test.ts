import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Events, Hooks, Messages, StreamFn, type Tools } from "../src/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"
import { logged } from "./utils/agents.ts"
import { answers, bite, hostile, lie, on, play, tagOf, thrower, trap } from "./utils/hostile.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { finish, stage, watched } from "./utils/play.ts"
import { echo, returning, tool } from "./utils/sampleTools.ts"

const { calls, text } = ScriptedModel

const fine = text("fine")

describe("Things that bite", () => {
  for (const [name, value] of hostile) {
    it.effect(`${name} as a result, in a result, as progress or as a failure costs one call`, () =>
      Effect.gen(function*() {
        const inside = [{ content: value }, { content: [value] }, { content: "x", details: value }, {
          content: "x",
          usage: value
        }]
        const tools = [
          returning(value, "t0"),
          ...inside.map((result, index) => returning(result, `t${index + 1}`)),
          tool("fails", () => Effect.fail(value)),
          tool("dies", () => Effect.die(value)),
          tool("updates", ({ update }) => Effect.as(update(lie<Tools.ToolOutput>(value)), "done")),
          tool("is", () => lie<Effect.Effect<string>>(value)),
          echo
        ]
        const { messages, outcome } = yield* play(
          [
            calls([...tools.slice(0, -1).map(({ name }) => [name, name, {}] as const), ["ok", "echo", { x: "ok" }]]),
            fine
          ],
          tools
        )
        assert.strictEqual(outcome._tag, "Completed")
        const texts = answers(messages)
        assert.lengthOf(texts, tools.length)
        assert.strictEqual(texts.at(-1), "ok")
        for (const text of texts.slice(5, 7)) assert.match(text, /^! ./)
      }))

    it.effect(`${name} as the answer of a hook costs a call or ends the run, typed`, () =>
      Effect.gen(function*() {
        const hooks: ReadonlyArray<[kind: string, hook: Hooks.Hook]> = [
          ["beforeToolCall", Hooks.beforeToolCall(() => lie<Hooks.ToolCallDecision>(value))],
          ["afterToolCall", Hooks.afterToolCall(() => lie<Hooks.ToolResultPatch>(value))],
          ["transformContext", Hooks.transformContext(() => lie<ReadonlyArray<Messages.AgentMessage>>(value))],
          ["transformContext", Hooks.transformContext((messages) => [...messages, lie<Messages.AgentMessage>(value)])],
          ["prepareRequest", Hooks.prepareRequest(() => lie<Hooks.RequestUpdate>(value))],
          [
            "prepareRequest",
            Hooks.prepareRequest(() => ({ context: { messages: lie<ReadonlyArray<Messages.AgentMessage>>(value) } }))
          ],
          [
            "prepareRequest",
            Hooks.prepareRequest(() => ({ context: { tools: lie<ReadonlyArray<Tools.Tool>>(value) } }))
          ],
          ["prepareRequest", Hooks.prepareRequest(() => ({ context: { tools: [lie<Tools.Tool>(value)] } }))],
          ["prepareNextTurn", Hooks.prepareNextTurn(() => lie<Hooks.TurnUpdate>(value))],
          [
            "prepareNextTurn",
            Hooks.prepareNextTurn(() => ({ messages: lie<ReadonlyArray<Messages.AgentMessage>>(value) }))
          ],
          ["prepareNextTurn", Hooks.prepareNextTurn(() => ({ messages: [lie<Messages.AgentMessage>(value)] }))],
          ["finishTurn", Hooks.finishTurn(() => lie<Hooks.TurnDecision>(value))],
          ["apiKey", Hooks.apiKey(() => lie<string>(value))]
        ]
        for (const [kind, hook] of hooks) {
          yield* Effect.gen(function*() {
            const { agent, before, recorder } = yield* watched({ tools: [echo] })
            const { outcome } = yield* finish(agent.prompt("go"))
            assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
            if (outcome._tag === "Completed") return
            assert(outcome._tag === "Failed" && outcome.error._tag === "HookError", kind)
            assert.strictEqual(outcome.error.hook, kind)
          }).pipe(
            Effect.provide(stage({ responses: [calls([["a", "echo", { x: "1" }]]), fine, fine], hooks: [hook] })),
            Effect.scoped,
            logged
          )
        }
      }))

    for (const required of [false, true]) {
      it.effect(`H3: ${name} as the answer of a ${required ? "required " : ""}listener costs nothing else`, () =>
        Effect.gen(function*() {
          const types = ["message_start", "message_update", "tool_execution_end", "turn_end", "agent_end"] as const
          for (const type of types) {
            yield* Effect.gen(function*() {
              const { agent, before, recorder } = yield* watched({ tools: [echo] })
              yield* agent.subscribe(
                (event) => event.type === type ? lie<Effect.Effect<void>>(value) : undefined,
                { required }
              )
              const heard: Array<Events.AgentEvent> = []
              yield* agent.subscribe((event) => void heard.push(event))
              const { outcome } = yield* finish(agent.prompt("go"))
              assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
              assert.deepStrictEqual(heard, recorder.events)
              if (outcome._tag === "Completed") return
              // What throws when it is looked at is a listener that threw.
              assert(required && outcome._tag === "Failed" && outcome.error._tag === "ListenerError", type)
              assert.strictEqual(outcome.error.event, type)
            }).pipe(
              Effect.provide(stage({ responses: [calls([["a", "echo", { x: "1" }]]), fine] })),
              Effect.scoped,
              logged
            )
          }
        }))
    }

    it.effect(`${name} as a message or in one is refused where it is given, and changes nothing`, () =>
      Effect.gen(function*() {
        const agent = yield* Agent.make({ tools: [echo] })
        const before = yield* agent.messages
        const isList = name.startsWith("a list")
        const inside = lie<Messages.AgentMessage>({ role: "user", content: value, timestamp: 0 })
        const list: Array<
          [what: string, effect: Effect.Effect<unknown, unknown, Scope.Scope | StreamFn.StreamFn>, tag: string]
        > = []
        for (const message of [lie<Messages.AgentMessage>(value), inside]) {
          const messages = [message]
          list.push(
            ["prompt", agent.prompt(message), "InvalidPrompt"],
            ["prompt of a list", agent.prompt([Messages.user("x"), message]), "InvalidPrompt"],
            ["steer", agent.steer(message), "InvalidPrompt"],
            ["followUp", agent.followUp(message), "InvalidPrompt"],
            ["note", agent.note(message), "InvalidPrompt"],
            ["setMessages", agent.setMessages(messages), "AgentConfigError"],
            ["appendMessages", agent.appendMessages(messages), "AgentConfigError"],
            ["transcript, refused", Agent.make({ messages, transcript: "refuse" }), "AgentConfigError"]
          )
        }
        for (const [what, effect, tag] of list) {
          const exit = yield* Effect.exit(finish(effect))
          // A list without anything in it is no messages at all.
          if (isList && Exit.isSuccess(exit)) continue
          assert(Exit.isFailure(exit), what)
          const error = Cause.squash(exit.cause)
          assert.strictEqual(tagOf(error), tag, `${what}: ${String(error)}`)
        }
        if (!isList) assert.deepStrictEqual(yield* agent.messages, before)
        assert.deepStrictEqual(yield* agent.queued, { steering: [], followUps: [] })
        assert.isFalse((yield* agent.state).isStreaming)
      }).pipe(logged, on(fine, fine, fine, fine)))

    it.effect(`${name} as an event of a provider or in one ends the response, typed`, () =>
      Effect.gen(function*() {
        const start = { type: "start" } as const
        const lists: ReadonlyArray<ReadonlyArray<unknown>> = [
          [value],
          [start, value],
          [start, { type: "text_start", contentIndex: value }, { type: "done" }],
          [start, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: value }, {
            type: "done"
          }],
          [start, { type: "toolcall_start", contentIndex: 0, id: value, name: "echo" }, { type: "done" }],
          [start, { type: "toolcall_start", contentIndex: 0, id: "a", name: value }, { type: "done" }],
          [start, { type: "toolcall_start", contentIndex: 0, id: "a", name: "echo" }, {
            type: "toolcall_end",
            contentIndex: 0,
            arguments: value
          }, { type: "done", stopReason: "toolUse" }],
          [start, { type: "done", content: value }],
          [start, { type: "done", content: [value] }],
          [start, { type: "done", usage: value }],
          [{ ...start, responseId: value }, { type: "done" }],
          [start, { type: "error", errorMessage: value }],
          [start, { type: "error", error: value }]
        ]
        for (const [index, list] of lists.entries()) {
          const provider = StreamFn.layer(({ messages }) =>
            Stream.fromIterable(
              messages.at(-1)?.role === "user" && !messages.some(({ role }) => role === "assistant")
                ? list.map(lie<StreamFn.StreamEvent>)
                : [start, { type: "done" } as const]
            )
          )
          yield* Effect.gen(function*() {
            const { agent, before, recorder } = yield* watched({ tools: [echo] })
            const { outcome } = yield* finish(agent.prompt("go"))
            assert.include(["Completed", "Failed"], outcome._tag, `list ${index}`)
            assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
          }).pipe(Effect.scoped, Effect.provide(provider), logged)
        }
      }))
  }

  it.effect("events of whatever a tool gives can be written as JSON, so that nobody's stream of them ends", () =>
    Effect.gen(function*() {
      const extra = { big: 5n, when: new Date(0), self: () => 1, toJSON: bite }
      const odd: ReadonlyArray<unknown> = [
        { content: "x", ...extra },
        { content: [{ type: "text", text: "x", ...extra }] },
        { content: [{ type: "image", data: "AAAA", mimeType: "image/png", ...extra }] },
        { content: "x", isError: 5n },
        { content: "x", terminate: 5n },
        { content: "x", details: { ...extra } },
        { content: "x", structuredContent: { ...extra } }
      ]
      for (const [index, result] of odd.entries()) {
        const tools = [
          returning(result),
          tool("updates", ({ update }) => Effect.as(update(lie<Tools.ToolResult>(result)), "done"))
        ]
        const lines = yield* Effect.gen(function*() {
          const agent = yield* Agent.make({ tools })
          return yield* finish(Stream.runCollect(Agent.stream(agent, "go").pipe(Events.toSse)))
        }).pipe(logged, Effect.map(([lines]) => lines), on(calls([["a", "odd", {}], ["b", "updates", {}]]), fine))
        assert.match(lines.at(-1)!, /^event: agent_end/, `result ${index}`)
        for (const line of lines) JSON.parse(line.slice(line.indexOf("data: ") + 6))
      }
    }))

  it.effect("a clock that throws now and then keeps no run from its end", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      let reading = 0
      let broken = Number.POSITIVE_INFINITY
      const faulty: Clock.Clock = Object.assign(Object.create(clock), {
        currentTimeMillisUnsafe: () => {
          const from = reading++ - broken
          return from === 0 || from === 1 ? bite() : clock.currentTimeMillisUnsafe()
        }
      })
      const play = Effect.gen(function*() {
        reading = 0
        const { agent, before, recorder } = yield* watched({ tools: [echo], limits: { duration: "1 day" } })
        const { outcome } = yield* finish(agent.prompt("go"))
        assert.strictEqual(outcome._tag, "Completed", `reading ${broken}`)
        assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
        return reading
      }).pipe(
        Effect.provideService(Clock.Clock, faulty),
        on(calls([["a", "echo", {}], ["b", "echo", {}]]), fine),
        logged,
        Effect.map(([readings]) => readings)
      )
      const readings = yield* play
      assert.isAbove(readings, 5)
      for (broken = 0; broken < readings; broken++) yield* play
    }))

  const models: ReadonlyArray<[name: string, model: unknown]> = [
    ["null", null],
    ["a number", 5],
    ["an object without an id", {}],
    ["an id that is a number", { id: 5 }],
    ["an api that is a number", { id: "m", api: 5 }],
    ["a proxy that throws", trap],
    ["a getter that throws", thrower("id")]
  ]
  for (const [name, model] of models) {
    for (const place of ["setModel", "setModel in a run", "prepareRequest", "prepareNextTurn", "options"] as const) {
      it.effect(`a model that is none (${name}, by ${place}): the run settles, the transcript is one`, () =>
        Effect.gen(function*() {
          const odd = lie<StreamFn.Model>(model)
          const hook = place === "prepareRequest"
            ? [Hooks.prepareRequest(() => ({ model: odd }))]
            : place === "prepareNextTurn"
            ? [Hooks.prepareNextTurn(() => ({ model: odd }))]
            : []
          // The scope stays open: closing it would wait for a run that never settles.
          const scope = yield* Scope.make()
          yield* Effect.gen(function*() {
            const host: { agent?: Agent.AgentService } = {}
            const work = tool(
              "work",
              () => Effect.as(place === "setModel in a run" ? host.agent!.setModel(odd) : Effect.void, "done")
            )
            const { agent, before, recorder } = yield* watched({
              tools: [work],
              model: place === "options" ? odd : undefined
            })
            host.agent = agent
            if (place === "setModel") yield* agent.setModel(odd)
            const run = yield* Effect.forkDetach(agent.prompt("go"))
            yield* TestClock.adjust("1 hour")
            assert.isDefined(run.pollUnsafe(), "the run has not settled")
            assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, accepted: ["go"] })
            assert.isFalse((yield* agent.state).isStreaming)
          }).pipe(
            Effect.provide(stage({ responses: [calls([["a", "work", {}]]), fine], hooks: hook })),
            Scope.provide(scope),
            // Refusing it where it is given would be as good.
            Effect.catchIf((error) => error._tag === "AgentConfigError", () => Effect.void),
            logged
          )
        }))
    }
  }
})
