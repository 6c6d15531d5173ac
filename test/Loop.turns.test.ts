import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Ref } from "effect"
import { TestClock } from "effect/testing"
import { type Agent, ConvertToLlm, type Events, Hooks, Loop, Messages, Queues, type Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { ofType, outline, Recorder } from "./utils/events.ts"
import { assertInvariants } from "./utils/invariants.ts"
import { finish, loop, type LoopSetting, stage, watched } from "./utils/play.ts"
import { quick, terminator, tool } from "./utils/timedTools.ts"

const { calls, text } = ScriptedModel

const user = (content: string) => Messages.user(content)

const texts = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> => messages.map(Messages.text)

const roles = (messages: ReadonlyArray<Messages.AgentMessage>): string => Transcript.print(messages, { system: true })

const names = (tools: ReadonlyArray<{ readonly name: string }>): ReadonlyArray<string> => tools.map(({ name }) => name)

const model = (id: string) => ({ id, provider: "test" })

/** Answers only on the given turns, counted from 0. */
const onTurn = <A>(answers: Readonly<Record<number, A>>) => {
  let turn = 0
  return (): A | undefined => answers[turn++]
}

describe("Loop turns", () => {
  describe("order", () => {
    /** Every hook, tool and event of a run, in one list. */
    const inOrder = (setting: Pick<LoopSetting, "responses" | "messages">) =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const note = (name: string) => Effect.sync(() => void log.push(name))
        const steering = yield* Queues.make()
        const a = tool("a", () => Effect.as(note("tool"), "done"))
        const hooks = [
          Hooks.transformContext((messages) => Effect.as(note("transformContext"), messages)),
          Hooks.beforeToolCall(() => note("beforeToolCall")),
          Hooks.afterToolCall(() => note("afterToolCall")),
          Hooks.finishTurn(() => note("finishTurn")),
          Hooks.prepareNextTurn(() =>
            Effect.sync(() => {
              log.push("prepareNextTurn")
              steering.offer(user("S"))
              return { messages: [Messages.system("P")] }
            })
          ),
          Hooks.prepareRequest(() => note("prepareRequest")),
          Hooks.apiKey(() => note("apiKey"))
        ]
        const emit = (event: Events.AgentEvent) => log.push(...outline([event]))
        yield* finish(Loop.run([user("go")], { messages: setting.messages ?? [], tools: [a] }, {
          steering,
          emit: (event) => void emit(event)
        })).pipe(Effect.provide(stage({ hooks, responses: setting.responses })))
        return log
      })

    it.effect("L3: a run of one turn", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* inOrder({ responses: [text("1")] }), [
          "agent_start",
          "turn_start",
          "S",
          "U",
          "prepareRequest",
          "transformContext",
          "apiKey",
          "A",
          "finishTurn",
          "turn_end A",
          "agent_end Completed"
        ])
      }))

    it.effect("L3: a turn prepares, reads steering, starts, injects, asks, runs tools, finishes and ends", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* inOrder({ responses: [calls([["x", "a", {}]]), text("2")] }), [
          "agent_start",
          "turn_start",
          "S",
          "U",
          "prepareRequest",
          "transformContext",
          "apiKey",
          "A[x]",
          "tool_execution_start x",
          "beforeToolCall",
          "tool",
          "afterToolCall",
          "tool_execution_end x",
          "R(x)",
          "finishTurn",
          "turn_end A[x] R(x)",
          "prepareNextTurn",
          "turn_start",
          "S",
          "U",
          "prepareRequest",
          "transformContext",
          "apiKey",
          "A",
          "finishTurn",
          "turn_end A",
          "agent_end Completed"
        ])
      }))

    it.effect("L3: prepared messages stand before the queued ones", () =>
      Effect.gen(function*() {
        const steering = yield* Queues.make("all")
        const { requests } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools: [tool("a", () =>
            Effect.sync(() => {
              steering.offer(user("S1"))
              steering.offer(user("S2"))
              return "done"
            }))],
          hooks: [
            Hooks.prepareNextTurn(() => ({ messages: [user("P1")] })),
            Hooks.prepareNextTurn(() => ({ messages: [user("P2")] }))
          ],
          options: { steering }
        })
        assert.deepStrictEqual(texts(requests[1]!.messages).slice(2), ["", "done", "P1", "P2", "S1", "S2"])
      }))
  })

  describe("finishTurn", () => {
    it.effect("L5: sees the results in the context and what the run added, before turn_end", () =>
      Effect.gen(function*() {
        const seen: Array<ReadonlyArray<string>> = []
        const { recorder } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools: [quick("a")],
          messages: [user("before")],
          hooks: [Hooks.finishTurn(({ context, message, newMessages, toolResults }) => {
            seen.push([roles(context.messages), roles([message]), roles(toolResults), roles(newMessages)])
          })]
        })
        assert.deepStrictEqual(seen, [
          ["U S U A[x] R(x)", "A[x]", "R(x)", "S U A[x] R(x)"],
          ["U S U A[x] R(x) A", "A", "", "S U A[x] R(x) A"]
        ])
        assert.deepStrictEqual(ofType(recorder.events, "turn_end").length, 2)
      }))

    // The first turn and its decision, and the transcript with nothing, a steer or a follow-up queued.
    const turns = { text: text("1"), tools: calls([["x", "a", {}]]), terminating: calls([["x", "b", {}]]) }
    type Row = readonly [keyof typeof turns, Hooks.TurnDecision | undefined, readonly [string, string, string]]
    const rows: ReadonlyArray<Row> = [
      ["text", undefined, ["U A", "U A U A", "U A U A"]],
      ["text", "end", ["U A", "U A", "U A"]],
      ["text", "continue", ["U A A", "U A U A", "U A U A"]],
      ["tools", undefined, ["U A[x] R(x) A", "U A[x] R(x) U A", "U A[x] R(x) A U A"]],
      ["tools", "end", ["U A[x] R(x)", "U A[x] R(x)", "U A[x] R(x)"]],
      ["tools", "continue", ["U A[x] R(x) A", "U A[x] R(x) U A", "U A[x] R(x) A U A"]],
      ["terminating", undefined, ["U A[x] R(x)", "U A[x] R(x) U A", "U A[x] R(x) U A"]],
      ["terminating", "end", ["U A[x] R(x)", "U A[x] R(x)", "U A[x] R(x)"]],
      ["terminating", "continue", ["U A[x] R(x) A", "U A[x] R(x) U A", "U A[x] R(x) U A"]]
    ]
    for (const [kind, decision, transcripts] of rows) {
      for (const [index, queued] of (["nothing", "a steer", "a follow-up"] as const).entries()) {
        it.effect(`L5, L4: ${decision ?? "no decision"} after ${kind}, with ${queued} queued`, () =>
          Effect.gen(function*() {
            const steering = yield* Queues.make()
            const followUps = yield* Queues.make()
            const shape = transcripts[index]!
            const { result } = yield* loop({
              responses: [
                turns[kind],
                ...Array.from({ length: shape.split("A").length - 2 }, (_, n) => text(`${n + 2}`))
              ],
              tools: [quick("a"), terminator("b")],
              hooks: [
                Hooks.transformContext((messages) => {
                  if (index === 1 && messages.length === 2) steering.offer(user("S"))
                  if (index === 2 && messages.length === 2) followUps.offer(user("F"))
                  return messages
                }),
                Hooks.finishTurn(onTurn({ 0: decision }))
              ],
              options: { steering, followUps }
            })
            assert.strictEqual(Transcript.print(result.messages), shape)
            const by = decision === "end" ? "FinishTurn" : shape.endsWith("R(x)") ? "Terminate" : "Stop"
            assert.deepInclude(result.outcome, { _tag: "Completed", by })
            const waiting = decision === "end" ? 1 : 0
            assert.deepStrictEqual([steering.size, followUps.size], [
              index === 1 ? waiting : 0,
              index === 2 ? waiting : 0
            ])
          }))
      }
    }

    it.effect("L5: one more request each time it says continue, with the context as it is", () =>
      Effect.gen(function*() {
        const { recorder, requests } = yield* loop({
          responses: [text("1"), text("2"), text("3")],
          hooks: [Hooks.finishTurn(onTurn({ 0: "continue" as const, 1: "continue" as const }))]
        })
        assert.deepStrictEqual(requests.map(({ messages }) => roles(messages)), ["U", "U A", "U A A"])
        assert.strictEqual(ofType(recorder.events, "turn_start").length, 3)
      }))

    it.effect("L5: every hook is asked, and end beats continue", () =>
      Effect.gen(function*() {
        const asked: Array<number> = []
        const answer = (n: number, decision: Hooks.TurnDecision | undefined) =>
          Hooks.finishTurn(() => {
            asked.push(n)
            return decision
          })
        const { requests } = yield* loop({
          responses: [text("1")],
          hooks: [answer(1, "continue"), answer(2, "end"), answer(3, "continue"), answer(4, undefined)]
        })
        assert.deepStrictEqual(asked, [1, 2, 3, 4])
        assert.strictEqual(requests.length, 1)
      }))

    for (const stopReason of ["error", "aborted"] as const) {
      for (const decision of ["end", "continue"] as const) {
        it.effect(`L5: ${decision} is ignored on a turn that ended as ${stopReason}`, () =>
          Effect.gen(function*() {
            const steering = yield* Queues.make()
            let asked = 0
            const { recorder, result } = yield* loop({
              responses: [text("so far", { stopReason })],
              hooks: [Hooks.finishTurn(() => {
                asked++
                steering.offer(user("S"))
                return decision
              })],
              options: { steering }
            })
            assert.strictEqual(asked, 1)
            assert.strictEqual(result.outcome._tag, "Failed")
            assert.deepStrictEqual(texts(steering.messages), ["S"])
            assert.deepStrictEqual(recorder.outline.slice(-2), [`turn_end A{${stopReason}}`, "agent_end Failed"])
          }))
      }
    }
  })

  describe("replacements", () => {
    const three = [calls([["x", "a", {}]]), calls([["y", "a", {}]]), text("fine")]

    it.effect("L6: prepareNextTurn replaces context, model and thinking level for the rest of the run", () =>
      Effect.gen(function*() {
        const { requests, result } = yield* loop({
          responses: three,
          tools: [quick("a")],
          hooks: [Hooks.prepareNextTurn(onTurn({
            0: { context: { messages: [user("summary")] }, model: model("m2"), thinkingLevel: "high" as const }
          }))],
          options: { model: model("m1"), thinkingLevel: "low" }
        })
        assert.deepStrictEqual(
          requests.map(({ messages, model, thinkingLevel }) => [roles(messages), model.id, thinkingLevel]),
          [["S U", "m1", "low"], ["U S", "m2", "high"], ["U S A[y] R(y)", "m2", "high"]]
        )
        assert.strictEqual(texts(requests[1]!.messages)[0], "summary")
        assert.deepStrictEqual(
          result.messages.flatMap((message) =>
            message.role === "assistant" ? [[message.model, message.thinkingLevel]] : []
          ),
          [["m1", "low"], ["m2", "high"], ["m2", "high"]]
        )
        assert.strictEqual(Transcript.print(result.messages), "U A[x] R(x) A[y] R(y) A")
      }))

    it.effect("L6: prepareRequest does so on the first turn, too, and sees what is pending", () =>
      Effect.gen(function*() {
        const seen: Array<ReadonlyArray<unknown>> = []
        const { requests } = yield* loop({
          responses: three,
          tools: [quick("a")],
          hooks: [
            Hooks.prepareRequest(({ context, model, thinkingLevel }) => {
              seen.push([roles(context.messages), names(context.tools), model.id, thinkingLevel])
            }),
            Hooks.prepareRequest(onTurn({
              0: { context: { messages: [user("instead")] }, model: model("m2") },
              2: { thinkingLevel: "max" as const }
            })),
            Hooks.prepareRequest(({ context, model, thinkingLevel }) => {
              seen.push([roles(context.messages), names(context.tools), model.id, thinkingLevel])
            })
          ],
          options: { model: model("m1"), thinkingLevel: "low" }
        })
        assert.deepStrictEqual(seen, [
          ["S U", ["a"], "m1", "low"],
          ["U", ["a"], "m2", "low"],
          ["U S A[x] R(x)", ["a"], "m2", "low"],
          ["U S A[x] R(x)", ["a"], "m2", "low"],
          ["U S A[x] R(x) A[y] R(y)", ["a"], "m2", "low"],
          ["U S A[x] R(x) A[y] R(y)", ["a"], "m2", "max"]
        ])
        assert.deepStrictEqual(
          requests.map(({ messages, model, thinkingLevel }) => [roles(messages), model.id, thinkingLevel]),
          [["U S", "m2", "low"], ["U S A[x] R(x)", "m2", "low"], ["U S A[x] R(x) A[y] R(y)", "m2", "max"]]
        )
      }))

    it.effect("L6: each prepareNextTurn sees what the one before made, never on the first turn", () =>
      Effect.gen(function*() {
        const seen: Array<ReadonlyArray<string>> = []
        const { requests } = yield* loop({
          responses: [calls([["x", "a", {}]]), text("fine")],
          tools: [quick("a")],
          hooks: [
            Hooks.prepareNextTurn(({ context, message, newMessages, toolResults }) => {
              seen.push([roles(context.messages), roles([message]), roles(toolResults), roles(newMessages)])
              return { context: { messages: [user("1")] } }
            }),
            Hooks.prepareNextTurn(({ context, message, newMessages, toolResults }) => {
              seen.push([roles(context.messages), roles([message]), roles(toolResults), roles(newMessages)])
              return { context: { messages: [...context.messages, user("2")] } }
            })
          ]
        })
        assert.deepStrictEqual(seen, [
          ["S U A[x] R(x)", "A[x]", "R(x)", "S U A[x] R(x)"],
          ["U", "A[x]", "R(x)", "S U A[x] R(x)"]
        ])
        assert.deepStrictEqual(texts(requests[1]!.messages).slice(0, 2), ["1", "2"])
      }))

    for (const kind of ["prepareNextTurn", "prepareRequest"] as const) {
      it.effect(`L6, S3: tools that ${kind} brings are declared before the request that can use them (B110)`, () =>
        Effect.gen(function*() {
          const ran: Array<string> = []
          const brought: Tools.Tool = tool("u", () =>
            Effect.sync(() => {
              ran.push("u")
              return "done"
            }))
          const answer = onTurn({ [kind === "prepareNextTurn" ? 0 : 1]: { context: { tools: [brought] } } })
          const { requests, result } = yield* loop({
            responses: [calls([["x", "a", {}]]), calls([["y", "u", {}], ["z", "a", {}]]), text("fine")],
            tools: [quick("a")],
            hooks: [kind === "prepareNextTurn" ? Hooks.prepareNextTurn(answer) : Hooks.prepareRequest(answer)]
          })
          assert.deepStrictEqual(requests.map(({ tools }) => names(tools)), [["a"], ["u"], ["u"]])
          assert.deepStrictEqual(names(Messages.declaredTools(requests[1]!.messages)), ["u"])
          assert.deepStrictEqual(ran, ["u"])
          assert.strictEqual(roles(result.messages), "S U A[x] R(x) S A[y,z] R(y) R(z!) A")
        }))
    }

    it.effect("L6: the host's transcript keeps every message, and the next run starts from it and its own settings", () =>
      Effect.gen(function*() {
        const { agent, before, recorder } = yield* watched({
          tools: [quick("a")],
          systemPrompt: "Be brief.",
          model: model("m1"),
          thinkingLevel: "low"
        })
        yield* finish(agent.prompt("go"))
        yield* finish(agent.prompt("again"))
        const transcript = yield* agent.messages
        assert.strictEqual(Transcript.print(transcript), "U A[x] R(x) U A U A")
        const requests = yield* ScriptedModel.requests
        assert.deepStrictEqual(
          requests.map(({ messages, model, thinkingLevel }) => [
            Transcript.print(messages),
            model.id,
            thinkingLevel,
            names(Messages.declaredTools(messages))
          ]),
          [
            ["U", "m1", "low", ["a"]],
            ["U U", "m2", "high", ["u"]],
            ["U A[x] R(x) U A U", "m1", "low", ["a"]]
          ]
        )
        const state = yield* agent.state
        assert.deepStrictEqual([state.model.id, state.thinkingLevel, names(state.tools)], ["m1", "low", ["a"]])
        assertInvariants({ before, events: recorder.events, transcript, requests, accepted: ["go", "again"] })
      }).pipe(
        Effect.scoped,
        Effect.provide(stage({
          responses: [calls([["x", "a", {}]]), text("1"), text("2")],
          hooks: [Hooks.prepareNextTurn(onTurn({
            0: {
              context: { messages: [user("summary")], tools: [quick("u")] },
              messages: [user("added")],
              model: model("m2"),
              thinkingLevel: "high" as const
            }
          }))]
        }))
      ))

    it.effect("L6, H4: between a hook's replacement and a change by the host the later one wins", () =>
      Effect.gen(function*() {
        const host = yield* Ref.make<Agent.AgentService | undefined>(undefined)
        const setModel = (id: string) =>
          Effect.flatMap(
            Ref.get(host),
            (agent) => Effect.andThen(agent!.setModel(model(id)), agent!.setThinkingLevel("max"))
          )
        yield* Effect.gen(function*() {
          const { agent } = yield* watched({ tools: [quick("a")], model: model("m1"), thinkingLevel: "low" })
          yield* Ref.set(host, agent)
          yield* finish(agent.prompt("go"))
          assert.deepStrictEqual(
            (yield* ScriptedModel.requests).map(({ model, thinkingLevel }) => [model.id, thinkingLevel]),
            [["m1", "low"], ["hook 1", "high"], ["host 2", "max"], ["hook 3", "high"], ["hook 3", "high"]]
          )
        }).pipe(
          Effect.scoped,
          Effect.provide(stage({
            responses: [...["1", "2", "3", "4"].map((id) => calls([[id, "a", {}]])), text("fine")],
            hooks: [
              // The host changes the model during turns 0 (before the hook), 1 (after it), 2 (before it again).
              Hooks.finishTurn(onTurn({ 0: setModel("host 0"), 1: setModel("host 2"), 2: setModel("host 3") })),
              Hooks.prepareNextTurn(onTurn<Hooks.TurnUpdate | undefined>({
                0: { model: model("hook 1"), thinkingLevel: "high" },
                2: { model: model("hook 3"), thinkingLevel: "high" }
              }))
            ]
          }))
        )
      }))

    it.effect("L6, H4: a change by the host during the request that follows a replacement wins, too", () =>
      Effect.gen(function*() {
        const { agent } = yield* watched({ tools: [quick("a")], model: model("m1") })
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* TestClock.adjust(150)
        yield* agent.setModel(model("host"))
        yield* agent.setTools([quick("b")])
        yield* TestClock.adjust(1000)
        yield* Fiber.join(run)
        assert.deepStrictEqual(
          (yield* ScriptedModel.requests).map(({ model, tools }) => [model.id, names(tools)]),
          [["m1", ["a"]], ["hook", ["u"]], ["host", ["b"]]]
        )
      }).pipe(
        Effect.scoped,
        Effect.provide(stage({
          responses: [
            calls([["x", "a", {}]], { after: 100 }),
            calls([["y", "u", {}]], { after: 100 }),
            text("fine", { after: 100 })
          ],
          hooks: [Hooks.prepareNextTurn(onTurn({ 0: { model: model("hook"), context: { tools: [quick("u")] } } }))]
        }))
      ))
  })

  it.effect("L1: the hooks and the conversion that surround the loop are used without a host", () =>
    Effect.gen(function*() {
      const recorder = new Recorder()
      yield* finish(Loop.run([user("go")], { messages: [], tools: [] }, { emit: recorder.record })).pipe(
        Effect.provide(ConvertToLlm.layer(() => []))
      )
      const [request] = yield* ScriptedModel.requests
      assert.deepStrictEqual(request!.messages, [])
      assert.strictEqual(Redacted.value(request!.apiKey!), "key")
    }).pipe(Effect.provide(stage({ responses: [text("fine")], hooks: [Hooks.apiKey(() => "key")] }))))
})
