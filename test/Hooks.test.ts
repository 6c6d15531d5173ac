// @effect-diagnostics multipleEffectProvide:off -- layers that are provided one inside the other are what is tested
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { Agent, ConvertToLlm, Hooks, Messages, Tools } from "../src/index.ts"
import { ScriptedModel, Transcript } from "../src/testing/index.ts"
import { answers, record, settled, withModel } from "./utils/agents.ts"
import { counting, echo, resultText, tool } from "./utils/sampleTools.ts"

const fine = ScriptedModel.text("fine")
const calling = ScriptedModel.calls([["a", "echo", { x: "1" }]])

/** An agent with one tool that is prompted once. */
const once = <E, R>(hooks: Layer.Layer<never, E, R>) =>
  Effect.gen(function*() {
    const agent = yield* Agent.make({ tools: [echo] })
    return yield* settled(agent.prompt("go"))
  }).pipe(Effect.provide(hooks), withModel(calling, fine))

describe("Hooks of one kind", () => {
  it.effect("M1: transformContext chains, for every request, and leaves the transcript as it is", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const adding = (text: string) =>
        Hooks.transformContext((messages) => {
          seen.push(`${text} sees ${Transcript.print(messages)}`)
          return [...messages, Messages.user(text)]
        })
      const agent = yield* Agent.make({ tools: [echo] }).pipe(Effect.provide(Hooks.layer(adding("one"), adding("two"))))
      const run = yield* agent.prompt("go")
      assert.deepStrictEqual(seen, [
        "one sees U",
        "two sees U U",
        "one sees U A[a] R(a)",
        "two sees U A[a] R(a) U"
      ])
      assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) A")
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(
        requests.map(({ messages }) => messages.filter(({ role }) => role === "user").map(Messages.text)),
        [["go", "one", "two"], ["go", "one", "two"]]
      )
    }).pipe(withModel(calling, fine)))

  it.effect("T1: beforeToolCall: each is asked, with the arguments the one before made, until one blocks", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const asking = (name: string, decision: Hooks.ToolCallDecision | void) =>
        Hooks.beforeToolCall(({ args }) => {
          seen.push(`${name} ${JSON.stringify(args)}`)
          return decision
        })
      const run = yield* once(Hooks.layer(
        asking("one", undefined),
        asking("two", Hooks.allowWith({ x: "2" })),
        asking("three", Hooks.allow),
        asking("four", Hooks.block("four says no")),
        asking("five", Hooks.allow)
      ))
      assert.deepStrictEqual(seen, [
        "one {\"x\":\"1\"}",
        "two {\"x\":\"1\"}",
        "three {\"x\":\"2\"}",
        "four {\"x\":\"2\"}"
      ])
      assert.strictEqual(Messages.text(answers(run.messages)[0]!), "four says no")
    }))

  it.effect("T1: beforeToolCall: the last changed arguments reach the tool", () =>
    Effect.gen(function*() {
      const { ran, tool } = counting("echo")
      const agent = yield* Agent.make({ tools: [tool] }).pipe(Effect.provide(Hooks.layer(
        Hooks.beforeToolCall(() => Hooks.allowWith({ x: "2" })),
        Hooks.beforeToolCall(() => Hooks.allowWith({ x: "3" })),
        Hooks.beforeToolCall(() => Hooks.allow)
      )))
      yield* agent.prompt("go")
      assert.deepStrictEqual(ran, [{ x: "3" }])
    }).pipe(withModel(calling, fine)))

  it.effect("T1: beforeToolCall: a failing hook is the last one asked", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const run = yield* once(Hooks.layer(
        Hooks.beforeToolCall(() => Effect.fail("one broke")),
        Hooks.beforeToolCall(() => {
          seen.push("two")
        })
      ))
      assert.deepStrictEqual(seen, [])
      assert.include(Messages.text(answers(run.messages)[0]!), "one broke")
    }))

  it.effect("T5: afterToolCall: each sees what the one before made of the result", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const patching = (name: string, patch: Hooks.ToolResultPatch | void) =>
        Hooks.afterToolCall(({ isError, result }) => {
          seen.push(`${name} ${resultText(result)} ${JSON.stringify(result.details)} ${isError}`)
          return patch
        })
      const run = yield* once(Hooks.layer(
        patching("one", { details: { by: "one" } }),
        patching("two", { content: [{ type: "text", text: "two" }], isError: true }),
        patching("three", undefined),
        patching("four", { isError: false })
      ))
      assert.deepStrictEqual(seen, [
        "one 1 undefined false",
        "two 1 {\"by\":\"one\"} false",
        "three two {\"by\":\"one\"} true",
        "four two {\"by\":\"one\"} true"
      ])
      const [answer] = answers(run.messages)
      assert.deepInclude(answer, { details: { by: "one" }, isError: false })
    }))

  for (
    const [decisions, goesOn] of [
      [["continue", "end"], false],
      [["end", "continue"], false],
      [["end", undefined], false],
      [[undefined, "continue"], true],
      [["continue", undefined], true],
      [[undefined, undefined], false]
    ] as const
  ) {
    it.effect(`L5: finishTurn: every hook is asked and end beats continue: ${decisions.join(", ")}`, () =>
      Effect.gen(function*() {
        const seen: Array<number> = []
        const hooks = decisions.map((decision, index) =>
          Hooks.finishTurn(() => {
            seen.push(index)
            return seen.length <= decisions.length ? decision : undefined
          })
        )
        const agent = yield* Agent.make({}).pipe(Effect.provide(Hooks.layer(...hooks)))
        const run = yield* agent.prompt("go")
        assert.deepStrictEqual(seen, goesOn ? [0, 1, 0, 1] : [0, 1])
        assert.strictEqual(Transcript.print(run.messages), goesOn ? "U A A" : "U A")
        assert.deepInclude(run.outcome, {
          _tag: "Completed",
          by: decisions.some((d) => d === "end") ? "FinishTurn" : "Stop"
        })
      }).pipe(withModel(fine, fine)))
  }

  it.effect("L6: prepareNextTurn: each sees what the one before made, and all their messages are appended in order", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const adding = (text: string) =>
        Hooks.prepareNextTurn(({ context }) => {
          seen.push(`${text} ${context.tools.map(({ name }) => name).join()} ${Transcript.print(context.messages)}`)
          return {
            context: { tools: [{ ...echo, name: text }], messages: context.messages.slice(0, 2) },
            messages: [Messages.user(text)]
          }
        })
      const agent = yield* Agent.make({ tools: [echo] }).pipe(Effect.provide(Hooks.layer(adding("one"), adding("two"))))
      const run = yield* agent.prompt("go")
      assert.deepStrictEqual(seen, ["one echo U A[a] R(a)", "two one U"])
      assert.deepStrictEqual(
        run.messages.filter(({ role }) => role === "user").map(Messages.text),
        ["go", "one", "two"]
      )
      const [, second] = yield* ScriptedModel.requests
      assert.deepStrictEqual(second!.tools.map(({ name }) => name), ["two"])
      assert.strictEqual(Transcript.print(second!.messages), "U U U")
    }).pipe(withModel(calling, fine)))

  it.effect("L6: prepareNextTurn is not asked before the first turn of a run", () =>
    Effect.gen(function*() {
      let asked = 0
      const agent = yield* Agent.make({}).pipe(Effect.provide(Hooks.layer(Hooks.prepareNextTurn(() => {
        asked++
      }))))
      yield* agent.prompt("one")
      yield* agent.prompt("two")
      assert.strictEqual(asked, 0)
    }).pipe(withModel(fine, fine)))

  it.effect("L6: prepareRequest: each sees what the one before made, on the first request too", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const naming = (name: string) =>
        Hooks.prepareRequest(({ context, model, thinkingLevel }) => {
          seen.push(`${name}: ${model.id} ${thinkingLevel} ${Transcript.print(context.messages)}`)
          return {
            model: { id: `${model.id}+${name}` },
            thinkingLevel: "high",
            context: { messages: [...context.messages, Messages.user(name)] }
          }
        })
      const agent = yield* Agent.make({ model: { id: "m" } }).pipe(
        Effect.provide(Hooks.layer(naming("one"), naming("two")))
      )
      const run = yield* agent.prompt("go")
      assert.deepStrictEqual(seen, ["one: m off U", "two: m+one high U U"])
      const [request] = yield* ScriptedModel.requests
      assert.deepStrictEqual(
        [request!.model.id, request!.thinkingLevel, Transcript.print(request!.messages)],
        ["m+one+two", "high", "U U U"]
      )
      assert.strictEqual(Transcript.print(run.messages), "U A", "the transcript keeps every message and gets no others")
    }).pipe(withModel(fine)))

  it.effect("L6: what prepareRequest replaces lasts for the rest of the run and not longer", () =>
    Effect.gen(function*() {
      let first = true
      const agent = yield* Agent.make({ model: { id: "m" }, tools: [echo] }).pipe(
        Effect.provide(Hooks.layer(Hooks.prepareRequest(() => {
          if (!first) return
          first = false
          return { model: { id: "other" }, thinkingLevel: "low" }
        })))
      )
      yield* agent.prompt("go")
      yield* agent.prompt("again")
      const requests = yield* ScriptedModel.requests
      assert.deepStrictEqual(
        requests.map(({ model, thinkingLevel }) => [model.id, thinkingLevel]),
        [["other", "low"], ["other", "low"], ["m", "off"]]
      )
      assert.strictEqual((yield* agent.state).model.id, "m")
    }).pipe(withModel(calling, fine, fine)))

  it.effect("M1: apiKey: the first that answers wins, freshly for every request", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      let requests = 0
      const agent = yield* Agent.make({ model: { id: "m" }, tools: [echo] }).pipe(Effect.provide(Hooks.layer(
        Hooks.apiKey(() => {
          seen.push("one")
        }),
        Hooks.apiKey((model) => {
          seen.push(`two ${model.id}`)
          requests++
          return requests === 1 ? "key" : Redacted.make("redacted key")
        }),
        Hooks.apiKey(() => {
          seen.push("three")
          return "other"
        })
      )))
      yield* agent.prompt("go")
      assert.deepStrictEqual(seen, ["one", "two m", "one", "two m"])
      const keys = (yield* ScriptedModel.requests).map(({ apiKey }) =>
        apiKey === undefined ? undefined : Redacted.value(apiKey)
      )
      assert.deepStrictEqual(keys, ["key", "redacted key"])
    }).pipe(withModel(calling, fine)))

  it.effect("M1: apiKey: without an answer there is none", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({}).pipe(Effect.provide(Hooks.layer(Hooks.apiKey(() => undefined))))
      yield* agent.prompt("go")
      assert.isUndefined((yield* ScriptedModel.requests)[0]!.apiKey)
    }).pipe(withModel(fine)))

  it.effect("M1: a request is made in the order prepareRequest, transformContext, ConvertToLlm, apiKey", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const note = (text: string) => Effect.sync(() => seen.push(text))
      const agent = yield* Agent.make({}).pipe(
        Effect.provide(Hooks.layer(
          Hooks.apiKey(() => Effect.as(note("apiKey"), "key")),
          Hooks.transformContext((messages) => Effect.as(note("transformContext"), messages)),
          Hooks.prepareRequest(() => Effect.asVoid(note("prepareRequest")))
        )),
        Effect.provide(
          ConvertToLlm.layer((messages) => Effect.as(note("convertToLlm"), messages.filter(Messages.isMessage)))
        )
      )
      yield* agent.prompt("go")
      const [request] = yield* ScriptedModel.requests
      assert.strictEqual(Redacted.value(request!.apiKey!), "key")
      assert.deepStrictEqual(seen, ["prepareRequest", "transformContext", "convertToLlm", "apiKey"])
    }).pipe(withModel(fine)))
})

describe("Hooks as values or effects", () => {
  const answering = <A>(answer: A) => [answer, Effect.succeed(answer), Effect.as(Effect.sleep("1 second"), answer)]

  it.effect("M1 T1 T5 L5 L6: every kind of hook may return a value, an effect, or an effect that takes time", () =>
    Effect.gen(function*() {
      const shown = [Messages.user("shown")]
      for (let index = 0; index < 3; index++) {
        const hooks = Hooks.layer(
          Hooks.transformContext(() => answering<ReadonlyArray<Messages.AgentMessage>>(shown)[index]!),
          Hooks.beforeToolCall(() => answering(Hooks.allowWith({ x: "with" }))[index]!),
          Hooks.afterToolCall(() => answering<Hooks.ToolResultPatch>({ details: index })[index]!),
          Hooks.finishTurn(({ toolResults }) =>
            answering<Hooks.TurnDecision | undefined>(toolResults.length === 0 ? "end" : undefined)[index]!
          ),
          Hooks.prepareNextTurn(() => answering<Hooks.TurnUpdate>({ messages: [Messages.user("next")] })[index]!),
          Hooks.prepareRequest(() => answering<Hooks.RequestUpdate>({ thinkingLevel: "max" })[index]!),
          Hooks.apiKey(() => answering<string>("key")[index]!)
        )
        yield* Effect.gen(function*() {
          const agent = yield* Agent.make({ tools: [echo] })
          const run = yield* settled(agent.prompt("go"))
          assert.strictEqual(Transcript.print(run.messages), "U A[a] R(a) U A")
          assert.deepInclude(answers(run.messages)[0], { details: index, content: [{ type: "text", text: "with" }] })
          assert.deepInclude(run.outcome, { _tag: "Completed", by: "FinishTurn" })
          for (const { apiKey, messages, thinkingLevel } of yield* ScriptedModel.requests) {
            assert.deepStrictEqual(messages.map(Messages.text), ["shown"])
            assert.strictEqual(thinkingLevel, "max")
            assert.strictEqual(Redacted.value(apiKey!), "key")
          }
        }).pipe(Effect.provide(hooks), withModel(calling, fine))
      }
    }))
})

class Name extends Context.Service<Name, { readonly name: string }>()("test/Name") {}

const named = (name: string) => Layer.succeed(Name, { name })

describe("Hooks.layer", () => {
  const noting = (notes: Array<string>, text: string) =>
    Hooks.finishTurn(() => {
      notes.push(text)
    })
  const prompting = Effect.gen(function*() {
    const agent = yield* Agent.make({})
    yield* agent.prompt("go")
  })

  it.effect("API: adds to the hooks of the context it is built in: the application's first, then the session's", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      yield* prompting.pipe(
        Effect.provide(Hooks.layer(noting(notes, "session one"), noting(notes, "session two"))),
        Effect.provide(Hooks.layer(noting(notes, "app")))
      )
      assert.deepStrictEqual(notes, ["app", "session one", "session two"])
    }).pipe(withModel(fine)))

  it.effect("API: adds with Layer.provideMerge", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const layer = Hooks.layer(noting(notes, "session")).pipe(Layer.provideMerge(Hooks.layer(noting(notes, "app"))))
      yield* Effect.provide(prompting, layer)
      assert.deepStrictEqual(notes, ["app", "session"])
    }).pipe(withModel(fine)))

  it.effect("API: of two that are merged only the last counts, as with any service", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const layer = Layer.mergeAll(Hooks.layer(noting(notes, "one")), Hooks.layer(noting(notes, "two")))
      yield* Effect.provide(prompting, layer)
      assert.deepStrictEqual(notes, ["two"])
    }).pipe(withModel(fine)))

  it.effect("API: is a fresh layer: one value provided in two places adds its hooks twice", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const layer = Hooks.layer(noting(notes, "x"))
      yield* Effect.provide(prompting, layer.pipe(Layer.provideMerge(layer)))
      assert.deepStrictEqual(notes, ["x", "x"])
    }).pipe(withModel(fine)))

  it.effect("API: is a fresh layer: one value serves two applications with different hooks of their own", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const session = Hooks.layer(noting(notes, "session"))
      const build = (name: string) =>
        session.pipe(Layer.provideMerge(Hooks.layer(noting(notes, name))), (layer) => Effect.provide(prompting, layer))
      yield* Effect.all([build("a"), build("b")])
      assert.deepStrictEqual(notes, ["a", "session", "b", "session"])
    }).pipe(withModel(fine, fine)))

  it.effect("API: keeps hooks of other kinds", () =>
    Effect.gen(function*() {
      const run = yield* once(
        Hooks.layer(Hooks.afterToolCall(() => ({ details: "session" }))).pipe(
          Layer.provideMerge(Hooks.layer(Hooks.beforeToolCall(() => Hooks.allowWith({ x: "app" }))))
        )
      )
      assert.deepInclude(answers(run.messages)[0], { details: "session", content: [{ type: "text", text: "app" }] })
    }))

  it.effect("API: an agent has the hooks of the place it is made in, not of the place it is prompted in", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const agent = yield* Agent.make({}).pipe(Effect.provide(Hooks.layer(noting(notes, "made"))))
      yield* agent.prompt("go").pipe(Effect.provide(Hooks.layer(noting(notes, "prompted"))))
      assert.deepStrictEqual(notes, ["made"])
    }).pipe(withModel(fine)))

  it.effect("API: without hooks there are none", () =>
    Effect.gen(function*() {
      yield* Effect.provide(prompting, Hooks.layer())
    }).pipe(withModel(fine)))

  it.effect("API: a hook's services are those of the place where the layer is built", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const hook = (kind: string) => Name.useSync(({ name }) => notes.push(`${kind} ${name}`))
      const hooks = Hooks.layer(
        Hooks.transformContext((messages) => Effect.as(hook("transformContext"), messages)),
        Hooks.beforeToolCall(() => Effect.as(hook("beforeToolCall"), Hooks.allow)),
        Hooks.afterToolCall(() => Effect.asVoid(hook("afterToolCall"))),
        Hooks.finishTurn(() => Effect.asVoid(hook("finishTurn"))),
        Hooks.prepareNextTurn(() => Effect.asVoid(hook("prepareNextTurn"))),
        Hooks.prepareRequest(() => Effect.asVoid(hook("prepareRequest"))),
        Hooks.apiKey(() => Effect.as(hook("apiKey"), undefined))
      ).pipe(Layer.provide(named("hooks")))
      yield* Effect.provide(once(hooks), named("agent"))
      assert.deepStrictEqual(
        notes,
        [
          "prepareRequest",
          "transformContext",
          "apiKey",
          "beforeToolCall",
          "afterToolCall",
          "finishTurn",
          "prepareNextTurn",
          "prepareRequest",
          "transformContext",
          "apiKey",
          "finishTurn"
        ].map((kind) => `${kind} hooks`)
      )
    }))

  it.effect("API: two layers keep the services each was built with", () =>
    Effect.gen(function*() {
      const notes: Array<string> = []
      const hooks = Hooks.layer(Hooks.finishTurn(() =>
        Name.useSync(({ name }) => {
          notes.push(name)
        })
      ))
      yield* prompting.pipe(
        Effect.provide(Layer.provide(hooks, named("session"))),
        Effect.provide(Layer.provide(hooks, named("app")))
      )
      assert.deepStrictEqual(notes, ["app", "session"])
    }).pipe(withModel(fine)))

  for (const kind of ["prepareRequest", "prepareNextTurn"] as const) {
    it.effect(`L6 API: ${kind}: tools it brings along have the services of the place where the layer is built`, () =>
      Effect.gen(function*() {
        const greet = tool("greet", () => Name.useSync(({ name }) => `I am ${name}`))
        const bring = () => ({ context: { tools: [greet, echo] } })
        const hook = kind === "prepareRequest" ? Hooks.prepareRequest(bring) : Hooks.prepareNextTurn(bring)
        const agent = yield* Agent.make({ tools: [echo] }).pipe(
          Effect.provide(Hooks.layer(hook).pipe(Layer.provide(named("the hook's"))))
        )
        const run = yield* agent.prompt("go")
        assert.strictEqual(Messages.text(answers(run.messages).at(-1)!), "I am the hook's")
        assert.deepStrictEqual((yield* agent.state).tools.map(({ name }) => name), ["echo"], "for this run only")
      }).pipe(withModel(calling, ScriptedModel.calls([["b", "greet", {}]]), fine)))
  }
})

describe("ConvertToLlm", () => {
  const note = (text: string): Messages.AgentMessage => ({ role: "typetest-note", note: text, timestamp: 1 })

  it.effect("M1: by default roles the model does not know are left out of requests and stay in the transcript", () =>
    Effect.gen(function*() {
      const agent = yield* Agent.make({})
      const events = yield* record(agent)
      yield* agent.prompt([note("hidden"), Messages.user("go")])
      assert.strictEqual(Transcript.print(yield* agent.messages), "C(typetest-note) U A")
      assert.strictEqual(Transcript.print((yield* ScriptedModel.requests)[0]!.messages), "U")
      assert.strictEqual(events.filter(({ type }) => type === "message_end").length, 3)
    }).pipe(withModel(fine)))

  it.effect("M1: a conversion may be a value or an effect with services of the place where the layer is built", () =>
    Effect.gen(function*() {
      const convert = (messages: ReadonlyArray<Messages.AgentMessage>, prefix: string) =>
        messages.map((message): Messages.Message =>
          Messages.isMessage(message) ? message : Messages.user(prefix + message.note)
        )
      const layers = [
        ConvertToLlm.layer((messages) => convert(messages, "note: ")),
        ConvertToLlm.layer((messages) =>
          Effect.map(Effect.andThen(Effect.sleep("1 second"), Name), ({ name }) => convert(messages, name))
        ).pipe(Layer.provide(named("note: ")))
      ]
      for (const layer of layers) {
        yield* Effect.gen(function*() {
          const agent = yield* Agent.make({})
          yield* settled(agent.prompt([note("shown"), Messages.user("go")]))
          assert.deepStrictEqual(
            (yield* ScriptedModel.requests)[0]!.messages.map(Messages.text),
            ["note: shown", "go"]
          )
          assert.strictEqual(Transcript.print(yield* agent.messages), "C(typetest-note) U A")
        }).pipe(Effect.provide(layer), withModel(fine))
      }
    }))

  it.effect("M1: there is one conversion: the inner layer replaces the outer", () =>
    Effect.gen(function*() {
      yield* Effect.gen(function*() {
        const agent = yield* Agent.make({})
        yield* agent.prompt("go")
        assert.deepStrictEqual((yield* ScriptedModel.requests)[0]!.messages.map(Messages.text), ["inner"])
      }).pipe(
        Effect.provide(ConvertToLlm.layer(() => [Messages.user("inner")])),
        Effect.provide(ConvertToLlm.layer(() => [Messages.user("outer")]))
      )
    }).pipe(withModel(fine)))

  it.effect("L6 S3: a tool a hook brings along is declared to the request it is brought for", () =>
    Effect.gen(function*() {
      const added = Tools.make("added", {
        description: "New.",
        parameters: Schema.Struct({ n: Schema.Finite }),
        execute: () => Effect.succeed("x")
      })
      const agent = yield* Agent.make({}).pipe(
        Effect.provide(Hooks.layer(Hooks.prepareRequest(() => ({ context: { tools: [added] } }))))
      )
      yield* agent.prompt("go")
      const [request] = yield* ScriptedModel.requests
      assert.deepStrictEqual(request!.tools.map(({ description, name }) => [name, description]), [["added", "New."]])
      assert.deepStrictEqual(request!.tools, Messages.declaredTools(request!.messages))
    }).pipe(withModel(fine)))
})
