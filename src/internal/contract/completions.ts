/**
 * Whether an adapter to the chat completions API reads what servers write (M2, M4) and writes what they take (M1).
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Effect from "effect/Effect"
import { user } from "../../Messages.ts"
import type { StreamRequest } from "../../StreamFn.ts"
import { isRecord } from "../record.ts"
import { ask, build, instructions, modelAt, requestOf } from "./ask.ts"
import { brokenExchanges } from "./brokenExchanges.ts"
import { answer, finish, text } from "./chunks.ts"
import { completeExchanges } from "./exchanges.ts"
import { expectResponse } from "./expectation.ts"
import { type Check, mismatch, within } from "./mismatch.ts"
import { exchangeOf } from "./render.ts"
import { requestDefects } from "./requestBody.ts"
import { conversations } from "./transcripts.ts"
import type { CompletionsSubject, Exchange, ExchangeCase, Subject } from "./types.ts"

/** Every exchange of the contract. */
export const exchanges: ReadonlyArray<ExchangeCase> = [...completeExchanges, ...brokenExchanges]

const modelOf = ({ model = modelAt }: CompletionsSubject, url: string) => model(url)

/** The answers of the contract over this wire. */
export const subjectOf = (subject: CompletionsSubject): Subject => ({
  answering: ([first, ...rest]) =>
    Effect.map(subject.serve([exchangeOf(first), ...rest.map(exchangeOf)]), ({ closed, holding, url }) => ({
      layer: subject.connect(url),
      model: modelOf(subject, url),
      hanging: holding,
      closed
    }))
})

const serving = Effect.fnUntraced(function*(subject: CompletionsSubject, served: NonEmptyReadonlyArray<Exchange>) {
  const server = yield* subject.serve(served)
  const streaming = yield* build({ layer: subject.connect(server.url) })
  return { server, streaming, model: modelOf(subject, server.url) }
})

export const exchangeChecks = (subject: CompletionsSubject): ReadonlyArray<Check> =>
  exchanges.map(({ exchange, expected, name, or }) => ({
    name,
    check: Effect.gen(function*() {
      const { model, server, streaming } = yield* serving(subject, [exchange])
      yield* expectResponse(yield* ask(streaming, requestOf(model)), expected, or)
      yield* within(server.closed, "nothing that is left open after the response", "the connection is still open")
      if (server.asked.length !== 1) {
        return yield* mismatch("one request: trying again is `Resilience.retry`", `there were ${server.asked.length}`)
      }
    })
  }))

/** Nobody listens at this port. */
const nobody = "http://127.0.0.1:1/v1"

const refused = (subject: CompletionsSubject): Check => ({
  name: "M2: a server that cannot be reached is Network",
  check: Effect.gen(function*() {
    const streaming = yield* build({ layer: subject.connect(nobody) })
    const given = yield* ask(streaming, requestOf(modelOf(subject, nobody)))
    yield* expectResponse(given, { type: "error", reasons: ["Network"], content: [] })
  })
})

/** The body that reaches the server, which has nothing that servers refuse. */
const sent = Effect.fnUntraced(function*(subject: CompletionsSubject, fields: Partial<StreamRequest>) {
  const { model, server, streaming } = yield* serving(subject, [answer(text("x"), finish("stop"))])
  yield* expectResponse(yield* ask(streaming, requestOf(model, fields)), {
    type: "message",
    content: [{ type: "text", text: "x" }],
    stopReason: "stop"
  })
  const body = server.asked[0]?.body
  const defects = requestDefects(body)
  if (defects.length > 0) {
    return yield* mismatch("a request that servers take", `${defects.join("; ")}: ${JSON.stringify(body)}`)
  }
  return isRecord(body) ? body : {}
})

const conversationChecks = (subject: CompletionsSubject): ReadonlyArray<Check> =>
  conversations.map(({ messages, name, omits = [], says = [] }) => ({
    name,
    check: Effect.gen(function*() {
      const body = JSON.stringify(yield* sent(subject, { messages }))
      for (const each of says) {
        if (!body.includes(each)) {
          return yield* mismatch(`a request that says ${JSON.stringify(each)}`, `it was ${body}`)
        }
      }
      for (const each of omits) {
        if (body.includes(each)) return yield* mismatch(`a request without ${JSON.stringify(each)}`, `it was ${body}`)
      }
    })
  }))

const fieldChecks = (subject: CompletionsSubject): ReadonlyArray<Check> => [
  {
    name: "M1: the model and the declared tools are in the request",
    check: Effect.gen(function*() {
      const { model, tools } = yield* sent(subject, {})
      const declared = JSON.stringify(tools) ?? "nothing"
      if (!declared.includes("read_file") || !declared.includes("Reads a file.")) {
        return yield* mismatch("the tool `read_file` with its description", `\`tools\` is ${declared}`)
      }
      const { id } = modelOf(subject, nobody)
      if (model !== id) return yield* mismatch(`the model ${JSON.stringify(id)}`, `it is ${JSON.stringify(model)}`)
    })
  },
  {
    name: "M1: without declared tools there are none in the request",
    check: Effect.gen(function*() {
      const { tools } = yield* sent(subject, { messages: [user("hi")] })
      if (tools !== undefined) return yield* mismatch("no tools", `\`tools\` is ${JSON.stringify(tools)}`)
    })
  },
  {
    name: "L7: the tool choice `none` keeps the tools and forbids their calls",
    check: Effect.gen(function*() {
      const { tool_choice: choice, tools } = yield* sent(subject, {
        toolChoice: "none",
        messages: [instructions, user("hi")]
      })
      if (choice !== "none" || tools === undefined) {
        return yield* mismatch(
          "`tool_choice` none and the tools",
          `it is ${JSON.stringify(choice)}, with the tools ${JSON.stringify(tools)}`
        )
      }
    })
  }
]

export const completionsChecks = (subject: CompletionsSubject): ReadonlyArray<Check> => [
  ...exchangeChecks(subject),
  refused(subject),
  ...conversationChecks(subject),
  ...fieldChecks(subject)
]
