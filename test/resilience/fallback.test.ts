/** Other models: which of them answers, what it is asked, and who is named. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schedule } from "effect"
import { Hooks, Messages, type StreamFn } from "../../src/index.ts"
import { Resilience } from "../../src/resilience/index.ts"
import { ask, failure, model, Played, text, updates, whole } from "./scene.ts"

const first = { id: "first", provider: "one", api: "a1", baseUrl: "http://one" } satisfies StreamFn.Model
const second = { id: "second", provider: "two", api: "a2", baseUrl: "http://two" } satisfies StreamFn.Model

const withKey = Hooks.layer(Hooks.apiKey(() => Effect.succeed(Redacted.make("of one"))))

const options = { model: first, headers: { authorization: "of one" } }

describe("The next model", () => {
  it.effect("answers, is named, and is given nothing of the first one's", () => {
    const [one, two] = [new Played(), new Played()]
    const layer = model([[...text("half"), failure("Authentication")]], one).pipe(
      Resilience.fallback({ layer: model([whole("all")], two), model: second })
    )
    return Effect.gen(function*() {
      const answer = yield* ask(options)
      assert.strictEqual(Messages.text(answer.last), "all")
      assert.deepStrictEqual([answer.last.model, answer.last.provider, answer.last.api], ["second", "two", "a2"])
      assert.deepStrictEqual(updates(answer).slice(0, 3), ["text_start", "half", "retract 2: it is Authentication"])
      const [asked] = one.requests
      const [other] = two.requests
      assert.isDefined(asked?.apiKey)
      assert.deepStrictEqual([asked.headers, asked.model], [options.headers, first])
      assert.deepStrictEqual([other?.apiKey, other?.headers, other?.model], [undefined, undefined, second])
      assert.deepStrictEqual(other?.messages, asked.messages)
    }).pipe(Effect.provide([layer, withKey]))
  })

  it.effect("is given the key on another server only when it is the same provider there", () => {
    const two = new Played()
    const layer = model([[failure()]]).pipe(
      Resilience.fallback({ layer: model([whole("all")], two), model: { ...first, id: "smaller" } })
    )
    return Effect.gen(function*() {
      const { last } = yield* ask(options)
      assert.strictEqual(last.model, "smaller")
      const key = two.requests[0]?.apiKey
      assert.strictEqual(key === undefined ? undefined : Redacted.value(key), "of one")
      assert.deepStrictEqual(two.requests[0]?.headers, options.headers)
    }).pipe(Effect.provide([layer, withKey]))
  })

  it.effect("is the same one elsewhere when no model is named, without the key", () => {
    const two = new Played()
    const layer = model([[failure()]]).pipe(Resilience.fallback({ layer: model([whole("all")], two) }))
    return Effect.gen(function*() {
      const { last } = yield* ask(options)
      assert.deepStrictEqual([last.model, two.requests[0]?.model], ["first", first])
      assert.deepStrictEqual([two.requests[0]?.apiKey, two.requests[0]?.headers], [undefined, undefined])
    }).pipe(Effect.provide([layer, withKey]))
  })

  for (
    const [name, other] of [
      ["another provider behind the same gateway", { ...second, baseUrl: first.baseUrl }],
      ["the same provider at another address", { ...first, baseUrl: "http://two" }],
      ["the same provider at an address that is not known", { id: "second", provider: first.provider }]
    ] as const
  ) {
    it.effect(`is given no key when it is ${name}`, () => {
      const two = new Played()
      const layer = model([[failure()]]).pipe(
        Resilience.fallback({ layer: model([whole("all")], two), model: other })
      )
      return Effect.gen(function*() {
        yield* ask(options)
        const [asked] = two.requests
        assert.deepStrictEqual([asked?.model, asked?.apiKey, asked?.headers], [other, undefined, undefined])
      }).pipe(Effect.provide([layer, withKey]))
    })
  }

  it.effect("of an unknown provider is not given the key of another unknown one", () => {
    const two = new Played()
    const layer = model([[failure()]]).pipe(
      Resilience.fallback({ layer: model([whole("all")], two), model: { id: "second" } })
    )
    return Effect.gen(function*() {
      yield* ask({ ...options, model: { id: "first" } })
      assert.deepStrictEqual([two.requests[0]?.apiKey, two.requests[0]?.headers], [undefined, undefined])
    }).pipe(Effect.provide([layer, withKey]))
  })

  it.effect("is the first whose condition holds; the next request begins with the first model again", () => {
    const [one, two, three] = [new Played(), new Played(), new Played()]
    const layer = model([[failure()], whole("again")], one).pipe(Resilience.fallback(
      { layer: model([], two), when: ({ reason }) => reason === "ContextOverflow" },
      { layer: model([whole("third")], three), model: second }
    ))
    return Effect.gen(function*() {
      assert.strictEqual(Messages.text((yield* ask()).last), "third")
      assert.strictEqual(Messages.text((yield* ask()).last), "again")
      assert.deepStrictEqual([one, two, three].map(({ requests }) => requests.length), [2, 0, 1])
    }).pipe(Effect.provide(layer))
  })

  it.effect("does not answer either: the last error stands, of the last model", () => {
    const layer = model([[failure("Overloaded")]]).pipe(
      Resilience.fallback({ layer: model([[...text("x"), failure("Authentication")]]), model: second })
    )
    return Effect.gen(function*() {
      const { last, result } = yield* ask(options)
      assert(result.outcome._tag === "Failed" && result.outcome.error._tag === "ModelError")
      assert.strictEqual(result.outcome.error.reason, "Authentication")
      assert.deepStrictEqual([last.model, Messages.text(last)], ["second", "x"])
    }).pipe(Effect.provide(layer))
  })

  it.effect("A1: nobody else is asked after an abort", () => {
    const two = new Played()
    const layer = model([[...text("half"), 1000]]).pipe(Resilience.fallback({ layer: model([], two) }))
    return Effect.gen(function*() {
      const { last, result } = yield* ask({ abortAt: 500 })
      assert.deepStrictEqual([result.outcome._tag, Messages.text(last)], ["Aborted", "half"])
      assert.lengthOf(two.requests, 0)
    }).pipe(Effect.provide(layer))
  })
})

describe("Tries and other models", () => {
  const again = Resilience.retry({ schedule: Schedule.spaced("1 second"), times: 1 })

  it.effect("tries inside: all of the first model, then the other; attempts are counted through", () => {
    const [one, two] = [new Played(), new Played()]
    const layer = model([[...text("1"), failure()], [...text("2"), failure()]], one).pipe(
      again,
      Resilience.fallback({
        layer: model([[...text("3"), failure()], whole("4")], two).pipe(again),
        model: second
      })
    )
    return Effect.gen(function*() {
      const answer = yield* ask(options)
      assert.deepStrictEqual(
        updates(answer).filter((update) => update.startsWith("retract")),
        [2, 3, 4].map((attempt) => `retract ${attempt}: it is Overloaded`)
      )
      assert.deepStrictEqual([answer.last.model, Messages.text(answer.last)], ["second", "4"])
      assert.deepStrictEqual([one.times, two.times], [[0, 1000], [1000, 2000]])
    }).pipe(Effect.provide(layer))
  })

  it.effect("tries outside: first and other, and the same once more; the model is named anew", () => {
    const [one, two] = [new Played(), new Played()]
    const layer = model([[...text("1"), failure()], whole("3")], one).pipe(
      Resilience.fallback({ layer: model([[...text("2"), failure()]], two), model: second }),
      again
    )
    return Effect.gen(function*() {
      const answer = yield* ask(options)
      assert.deepStrictEqual([answer.last.model, Messages.text(answer.last)], ["first", "3"])
      assert.deepStrictEqual([one.times, two.times], [[0, 1000], [0]])
      assert.lengthOf(updates(answer).filter((update) => update.startsWith("retract")), 2)
    }).pipe(Effect.provide(layer))
  })
})
