/**
 * A short tour on this repository: parallel tools, a steer, a follow-up, an abort, a limit, a deadline.
 */
import { Deferred, Effect, Fiber, FileSystem } from "effect"
import type { Agent, Errors } from "../../src/index.ts"
import { Transcript } from "../../src/testing/index.ts"
import { makeAgent } from "./agent.ts"
import { type Display, makeDisplay } from "./display.ts"

/** Asks in the background, and waits until a tool reports its first progress, or there is nothing to wait for. */
const askUntilToolWorks = Effect.fnUntraced(function*(agent: Agent.AgentService, question: string) {
  const working = yield* Deferred.make<void>()
  yield* agent.subscribe((event) =>
    event.type === "tool_execution_update" ? Deferred.succeed(working, undefined) : undefined
  )
  const run = yield* Effect.forkScoped(agent.prompt(question))
  yield* Effect.raceFirst(Deferred.await(working), Fiber.await(run))
  return run
})

const inWords = (outcome: Errors.RunOutcome): string =>
  outcome._tag === "Limited" ? `Limited, the limit is ${outcome.limit}` : outcome._tag

/** One agent: what the model and the person who asks can do. */
const showConversation = Effect.fnUntraced(function*(display: Display) {
  const agent = yield* makeAgent()
  yield* agent.subscribe(display.listener)

  yield* display.say("\n1. A question. Its two tool calls run in parallel; the answer is made from both results.\n")
  yield* agent.prompt("How many lines of TypeScript are in src, and which file is longest?")
  yield* display.timeline

  yield* display.say(
    "\n2. A steer, sent while a tool works: no tool is cut, the model reads it before its next request."
  )
  yield* display.say("3. A follow-up, sent at the same time: it waits until the agent would stop.\n")
  const run = yield* askUntilToolWorks(agent, "How many lines of JSON are in test?")
  yield* agent.steer("And how many lines of Markdown are in docs?")
  yield* agent.followUp("Which is the largest Markdown file in docs?")
  yield* display.say("  (steer and follow-up are queued)")
  yield* Fiber.join(run)
  yield* display.timeline

  yield* display.say("\n4. An abort, while tools work: they are interrupted, and every call has an answer.\n")
  const doomed = yield* askUntilToolWorks(agent, "How many lines of JSON and TypeScript are in test?")
  yield* agent.abort
  const { messages, outcome } = yield* Fiber.join(doomed)
  yield* display.say(
    `\nThe outcome is ${
      inWords(outcome)
    }. What this run added to the transcript (U user, A assistant, R result, ! error):\n`
  )
  yield* display.say(Transcript.show(messages))
})

const showLimit = Effect.fnUntraced(function*(display: Display) {
  const agent = yield* makeAgent({ limits: { toolCalls: 1 }, wrapUp: true })
  yield* agent.subscribe(display.listener)

  yield* display.say(
    "\n5. A limit of one tool call: the second is refused, and the model says a last word without tools.\n"
  )
  const { outcome } = yield* agent.prompt("How many files are in src and docs?")
  yield* display.say(`\nThe outcome is ${inWords(outcome)}.`)
})

const showDeadline = Effect.fnUntraced(function*(display: Display) {
  // The tools ask for `FileSystem`; this agent's tools get one that never finishes listing the folder test.
  const agent = yield* makeAgent({ toolTimeout: "500 millis" }).pipe(
    Effect.updateService(FileSystem.FileSystem, (fs) => ({
      ...fs,
      readDirectoryEntries: (path) => path.endsWith("test") ? Effect.never : fs.readDirectoryEntries(path)
    }))
  )
  yield* agent.subscribe(display.listener)

  yield* display.say(
    "\n6. A deadline of 500 ms. Reading test hangs, on purpose: its call is answered, and the run goes on.\n"
  )
  const { outcome } = yield* agent.prompt("How many files are in docs and test?")
  yield* display.timeline
  yield* display.say(`\nThe outcome is ${inWords(outcome)}.`)
})

const showAll = Effect.fnUntraced(function*(display: Display) {
  yield* display.say("The model of this tour is a set of rules, not a language model. Agent, tools and files are real.")
  yield* showConversation(display)
  yield* showLimit(display)
  yield* showDeadline(display)
  yield* display.say("\nAsk a question of your own: npm run tour -- \"How many Markdown files are in docs?\"")
})

export const tour = Effect.gen(function*() {
  const display = yield* makeDisplay
  yield* Effect.scoped(showAll(display)).pipe(Effect.onInterrupt(() => display.say("\naborted")))
}).pipe(Effect.scoped)
