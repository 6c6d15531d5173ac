/** Logs inside a run carry its id. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, References } from "effect"
import { Agent, Hooks } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { tool } from "../utils/timedTools.ts"
import { attributesOf, find, keep } from "./spans.ts"

const { calls, text } = ScriptedModel

/** Each message with its annotations. */
const loggedBy = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
  const entries: Array<readonly [message: string, annotations: Readonly<Record<string, unknown>>]> = []
  const logger = Logger.make<unknown, void>(({ fiber, message }) => {
    entries.push([String(message), fiber.getRef(References.CurrentLogAnnotations)])
  })
  return Effect.as(Effect.provide(effect, Logger.layer([logger])), entries)
}

describe("Logs", () => {
  it.effect("of tools, hooks, listeners and the run itself carry run and session, others do not", () => {
    const kept = keep()
    return Effect.gen(function*() {
      const entries = yield* loggedBy(Effect.gen(function*() {
        const says = tool("says", () => Effect.as(Effect.log("tool"), "done"))
        const dies = tool("dies", () => Effect.die("defect"))
        const agent = yield* Agent.make({ model: { id: "big" }, sessionId: "s1", tools: [says, dies] }).pipe(
          Effect.provide(Hooks.layer(Hooks.prepareRequest(() => Effect.log("hook"))))
        )
        yield* agent.subscribe((event) => event.type === "agent_end" ? Effect.log("listener") : undefined)
        yield* Effect.log("before")
        yield* Effect.annotateLogs(agent.prompt("go"), { user: "u" })
        yield* Effect.log("after")
      }))
      const run = attributesOf(find(kept, "invoke_agent"))["effect_pi.run.id"]
      const inside = { user: "u", run, session: "s1" }
      assert.deepStrictEqual(entries, [
        ["before", {}],
        ["hook", inside],
        ["tool", inside],
        ["Tool \"dies\" failed: defect", inside],
        ["hook", inside],
        ["listener", inside],
        ["after", {}]
      ])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(kept.layer, ScriptedModel.layer([calls([["a", "says", {}], ["b", "dies", {}]]), text("fine")]))
      )
    )
  })

  it.effect("of a run inside another one carry its own id", () => {
    const kept = keep()
    return Effect.gen(function*() {
      const entries = yield* loggedBy(Effect.gen(function*() {
        const inner = tool("inner", () => Effect.as(Effect.log("inner"), "done"))
        const ask = tool("ask", () =>
          Effect.gen(function*() {
            yield* (yield* Agent.make({ model: { id: "big" }, tools: [inner] })).prompt("?")
            yield* Effect.log("outer")
            return "done"
          }).pipe(Effect.scoped, Effect.orDie))
        yield* (yield* Agent.make({ model: { id: "big" }, tools: [ask] })).prompt("go")
      }))
      const [outer, child] = kept.spans.filter(({ name }) => name === "invoke_agent").map((span) =>
        attributesOf(span)["effect_pi.run.id"]
      )
      assert.deepStrictEqual(entries, [["inner", { run: child }], ["outer", { run: outer }]])
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.merge(
        kept.layer,
        ScriptedModel.layer([calls([["a", "ask", {}]]), calls([["b", "inner", {}]]), text("child"), text("fine")])
      ))
    )
  })
})
