/** Whole runs that may go wrong, and values that bite when they are touched. */
import { assert } from "@effect/vitest"
import { Effect, Logger, Predicate } from "effect"
import { type Agent, type Hooks, Messages, type Tools } from "../../src/index.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { assertInvariants } from "./invariants.ts"
import { leakFree } from "./leaks.ts"
import { finish, stage, watched } from "./play.ts"

/** A scope and a scripted model. */
export const on = (...responses: ReadonlyArray<ScriptedModel.Response>) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(Effect.scoped(effect), stage({ responses }))

/** Runs one prompt of a watched agent, and checks what always holds. */
export const play = (
  responses: ReadonlyArray<ScriptedModel.Response>,
  tools: ReadonlyArray<Tools.Tool>,
  options: Omit<Agent.Options, "tools"> & { readonly hooks?: ReadonlyArray<Hooks.Hook> } = {}
) =>
  Effect.gen(function*() {
    const { agent, before, recorder } = yield* watched({ ...options, tools })
    const { messages, outcome } = yield* finish(agent.prompt("go"))
    const requests = yield* ScriptedModel.requests
    assertInvariants({ events: recorder.events, before, transcript: yield* agent.messages, requests, accepted: ["go"] })
    assert.deepStrictEqual(recorder.changed, [])
    yield* ScriptedModel.assertComplete
    return { messages, outcome, requests, events: recorder.events, shape: Transcript.print(messages) }
  }).pipe(
    Effect.provide(stage({ responses, hooks: options.hooks ?? [] })),
    leakFree,
    Effect.orDie,
    Effect.provide(Logger.layer([]))
  )

/** The texts of all results, `! ` before an error. */
export const answers = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> =>
  messages.flatMap((message) =>
    message.role === "toolResult" ? [`${message.isError ? "! " : ""}${Messages.text(message)}`] : []
  )

/** Passes a value off as something it is not, as JavaScript or a careless cast may. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-parameters -- a lie on purpose
export const lie = <A>(value: unknown): A => value as A

/** The tag of an error, or what it says. */
export const tagOf = (error: unknown): string =>
  Predicate.hasProperty(error, "_tag") ? String(error._tag) : String(error)

/** Throws whenever it is called. */
export const bite = (): never => {
  throw new Error("do not touch")
}
/** A proxy that throws whatever is done with it. */
export const trap = new Proxy({}, {
  get: bite,
  has: bite,
  ownKeys: bite,
  getPrototypeOf: bite,
  getOwnPropertyDescriptor: bite,
  set: bite,
  defineProperty: bite,
  deleteProperty: bite
})
const revoked = (() => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
})()
/** An object whose field cannot be read. */
export const thrower = (key: string, rest: object = {}): unknown =>
  Object.defineProperty({ ...rest }, key, { enumerable: true, get: bite })

/** Values that throw, lie or never end. */
export const hostile: ReadonlyArray<[name: string, value: unknown]> = [
  ["a proxy that throws", trap],
  ["a revoked proxy", revoked],
  ["an object with a getter that throws", thrower("content")],
  ["an object whose toJSON throws", { content: [], toJSON: bite }],
  [
    "an object that is never the same",
    (() => {
      let reads = 0
      return Object.defineProperty({}, "content", { enumerable: true, get: () => ++reads % 2 === 1 ? [] : { reads } })
    })()
  ],
  [
    "an object that holds itself",
    (() => {
      const cycle: { content?: unknown; details?: unknown } = {}
      cycle.content = cycle
      cycle.details = cycle
      return cycle
    })()
  ],
  ["a list that lies about its length", Object.assign([], { length: 3 })]
]
