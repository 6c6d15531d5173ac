/** Toolkits of effect/ai as tools of an agent. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema } from "effect"
import { Prompt, Tool, Toolkit } from "effect/ai"
import { Agent, Messages, type Tools } from "../../src/index.ts"
import { EffectAi } from "../../src/language-model/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"

/** The results of calls, and the events of the run that made them. */
const call = <R>(
  tools: ReadonlyArray<Tools.Tool<R>>,
  calls: ReadonlyArray<readonly [id: string, name: string, args: Messages.JsonObject]>
) =>
  Effect.gen(function*() {
    const agent = yield* Agent.make({ tools })
    const progress: Array<unknown> = []
    yield* agent.subscribe((event) => {
      if (event.type === "tool_execution_update") progress.push(event.partialResult)
    })
    const { messages, outcome } = yield* agent.prompt("hi")
    assert.strictEqual(outcome._tag, "Completed")
    return { progress, results: messages.filter((message) => message.role === "toolResult") }
  }).pipe(Effect.scoped, Effect.provide(ScriptedModel.layer([ScriptedModel.calls(calls), ScriptedModel.text("done")])))

const textOf = (message: Messages.AgentMessage | undefined): string =>
  message === undefined ? assert.fail("no message") : Messages.text(message)

const kit = Toolkit.make(
  Tool.make("when", {
    description: "The day after.",
    parameters: Schema.Struct({ day: Schema.Date, note: Schema.optional(Schema.String) }),
    success: Schema.Struct({ next: Schema.Date })
  }).annotate(Tool.Title, "When?").annotate(Tool.Readonly, true),
  Tool.make("count", { parameters: Schema.Struct({ to: Schema.Int }), success: Schema.String }),
  Tool.make("fails", {
    failure: Schema.Struct({ code: Schema.Finite }),
    failureMode: "return",
    success: Schema.String
  }),
  Tool.make("throws", { failure: Schema.Struct({ message: Schema.String }), success: Schema.String }),
  Tool.dynamic("anything", {
    description: "Any.",
    parameters: { type: "object", properties: { x: { type: "number" } } }
  }),
  Tool.make("picture", {
    success: Schema.String,
    toModelOutput: (data) => [
      Prompt.textPart({ text: "here" }),
      Prompt.filePart({ mediaType: "image/png", data }),
      Prompt.filePart({ mediaType: "application/pdf", data: "JVBERg==", fileName: "a.pdf" })
    ]
  })
)

const Handlers = kit.toLayer({
  when: ({ day }) => Effect.succeed({ next: new Date(day.getTime() + 86_400_000) }),
  count: Effect.fnUntraced(function*({ to }, { preliminary }) {
    for (let n = 1; n < to; n++) yield* preliminary(`${n}`)
    return `${to}`
  }),
  fails: () => Effect.fail({ code: 7 }),
  throws: () => Effect.fail({ message: "out of paper" }),
  anything: (params) => Effect.succeed({ got: params }),
  picture: () => Effect.succeed("aGk=")
})

describe("fromToolkit", () => {
  it.effect("keeps names, descriptions, titles and annotations", () =>
    Effect.gen(function*() {
      const tools = yield* EffectAi.fromToolkit(kit)
      assert.deepStrictEqual(tools.map(({ name }) => name), ["when", "count", "fails", "throws", "anything", "picture"])
      assert.strictEqual(tools[0]!.label, "When?")
      assert.strictEqual(tools[0]!.description, "The day after.")
      assert.deepStrictEqual(tools[0]!.annotations, {
        readOnly: true,
        destructive: true,
        idempotent: false,
        openWorld: true
      })
    }).pipe(Effect.provide(Handlers)))

  it.effect("decodes arguments leniently, and encodes results", () =>
    Effect.gen(function*() {
      const tools = yield* EffectAi.fromToolkit(kit)
      const { results } = yield* call(tools, [
        ["a", "when", { day: "2026-12-06T00:00:00.000Z", note: null }],
        ["b", "when", { day: "no day" }],
        ["c", "anything", { x: "5" }]
      ])
      assert.strictEqual(textOf(results[0]), "{\"next\":\"2026-12-07T00:00:00.000Z\"}")
      assert.deepStrictEqual(results[0]!.details, { next: "2026-12-07T00:00:00.000Z" })
      assert.isTrue(results[1]!.isError)
      assert.strictEqual(textOf(results[2]), "{\"got\":{\"x\":5}}")
    }).pipe(Effect.provide(Handlers)))

  it.effect("makes preliminary results progress", () =>
    Effect.gen(function*() {
      const { progress, results } = yield* call(yield* EffectAi.fromToolkit(kit), [["a", "count", { to: 3 }]])
      assert.deepStrictEqual(progress, [
        { content: [{ type: "text", text: "1" }], isError: false },
        { content: [{ type: "text", text: "2" }], isError: false }
      ])
      assert.strictEqual(textOf(results[0]), "3")
    }).pipe(Effect.provide(Handlers)))

  it.effect("makes failures of both modes error results", () =>
    Effect.gen(function*() {
      const { results } = yield* call(yield* EffectAi.fromToolkit(kit), [["a", "fails", {}], ["b", "throws", {}]])
      assert.deepStrictEqual(results.map(({ isError }) => isError), [true, true])
      assert.strictEqual(textOf(results[0]), "{\"code\":7}")
      assert.deepStrictEqual(results[0]!.details, { code: 7 })
      assert.include(textOf(results[1]), "out of paper")
    }).pipe(Effect.provide(Handlers)))

  it.effect("shows the model what the tool makes of its result", () =>
    Effect.gen(function*() {
      const { results } = yield* call(yield* EffectAi.fromToolkit(kit), [["a", "picture", {}]])
      assert.deepStrictEqual(results[0]!.content, [
        { type: "text", text: "here" },
        { type: "image", mimeType: "image/png", data: "aGk=" },
        { type: "text", text: "[a file of type application/pdf: a.pdf]" }
      ])
    }).pipe(Effect.provide(Handlers)))

  it.effect("asks for an approval where one is needed", () =>
    Effect.gen(function*() {
      const ran: Array<string> = []
      const guarded = Toolkit.make(
        Tool.make("always", { needsApproval: true, success: Schema.String }),
        Tool.make("large", {
          parameters: Schema.Struct({ n: Schema.Int }),
          needsApproval: ({ n }) => n > 10,
          success: Schema.String
        })
      )
      const Guarded = guarded.toLayer({
        always: () => Effect.sync(() => `${ran.push("always")}`),
        large: ({ n }) => Effect.sync(() => `${ran.push(`large ${n}`)}`)
      })
      const calls = [["a", "always", {}], ["b", "large", { n: 5 }], ["c", "large", { n: 50 }]] as const
      const nobody = yield* EffectAi.fromToolkit(guarded).pipe(Effect.provide(Guarded))
      const first = yield* call(nobody, calls)
      assert.deepStrictEqual(first.results.map(({ isError }) => isError), [true, false, true])
      assert.include(textOf(first.results[0]), "approve")
      const asked: Array<string> = []
      const somebody = yield* EffectAi.fromToolkit(guarded, {
        approve: ({ params, tool }) =>
          Effect.sync(() => {
            asked.push(`${tool} ${JSON.stringify(params)}`)
            return tool === "large"
          })
      }).pipe(Effect.provide(Guarded))
      const second = yield* call(somebody, calls)
      assert.deepStrictEqual(second.results.map(({ isError }) => isError), [true, false, false])
      assert.deepStrictEqual(asked, ["always {}", "large {\"n\":50}"])
      assert.deepStrictEqual(ran, ["large 5", "large 5", "large 50"])
    }))

  it.effect("interrupts a handler with its call", () =>
    Effect.gen(function*() {
      const slow = Toolkit.make(Tool.make("slow", { success: Schema.String }))
      const began = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const tools = yield* EffectAi.fromToolkit(slow).pipe(Effect.provide(slow.toLayer({
        slow: () =>
          Deferred.succeed(began, undefined).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Deferred.succeed(ended, undefined))
          )
      })))
      const agent = yield* Agent.make({ tools })
      const fiber = yield* Effect.forkChild(agent.prompt("hi"))
      yield* Deferred.await(began)
      yield* agent.abort
      yield* Deferred.await(ended)
      assert.strictEqual((yield* Fiber.join(fiber)).outcome._tag, "Aborted")
    }).pipe(Effect.scoped, Effect.provide(ScriptedModel.layer([ScriptedModel.calls([["a", "slow", {}]])]))))

  it.effect("refuses a tool that the provider executes", () =>
    Effect.gen(function*() {
      const search = Tool.providerDefined({ id: "p.search", customName: "search", providerName: "search" })()
      const error = yield* Effect.flip(EffectAi.fromToolkit({ tools: { search }, handle: () => Effect.die("never") }))
      assert.include(error.message, "\"search\"")
    }))
})
