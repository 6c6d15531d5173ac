/**
 * A conversation in a terminal: what is typed goes to the agent, what the agent does goes to the screen.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import type { AgentBusy, InvalidPrompt } from "../../Errors.ts"
import type { ToolCall } from "../../Messages.ts"
import type { Delivery, Receipt } from "../../Queues.ts"
import type { RunResult } from "../../RunResult.ts"
import type { Answer } from "../approval.ts"
import { outcomeText } from "../describe.ts"
import { exitCodes } from "../exitCode.ts"
import { nameOf, selectProvider } from "../provider.ts"
import type { Session } from "../session.ts"
import { version } from "../version.ts"
import { Workspace } from "../workspace.ts"
import { type Intent, Screen } from "./screen.ts"
import type { Waiting } from "./statusLines.ts"

export interface Options<E, R> {
  /** What is asked first, or nothing. */
  readonly prompt: string
  readonly makeSession: (ask: (call: ToolCall) => Effect.Effect<Answer>) => Effect.Effect<Session, E, R>
  readonly limits: { readonly turns: number; readonly cost: number | undefined }
}

const commands = [
  { name: "help", description: "Keys and commands" },
  { name: "model", description: "Shows the model, or takes another: /model PROVIDER/ID" },
  { name: "clear", description: "A new conversation" },
  { name: "quit", description: "Leaves" }
]

const help = `Enter        sends; while the agent works it steers: it is read before the next request
Alt+Enter    queues for when the agent is done
Alt+Up       takes the last queued message back
Shift+Enter  a new line (or \\ and Enter)
Esc          stops the agent
Ctrl-C       clears the line; twice leaves
Tab          completes file names
${commands.map(({ description, name }) => `/${name.padEnd(11)} ${description}`).join("\n")}`

/** How long the first Ctrl-C counts. */
const doublePress = 2000

type Step =
  | Intent
  | { readonly type: "settled"; readonly id: string; readonly delivery: Delivery }
  | { readonly type: "ended"; readonly exit: Exit.Exit<RunResult, AgentBusy | InvalidPrompt> }

export const converse = Effect.fn("converse")(function*<E, R>(options: Options<E, R>) {
  const { root } = yield* Workspace
  const clock = yield* Clock.Clock
  const noColor = yield* Effect.orElseSucceed(Config.option(Config.String("NO_COLOR")), () => Option.none<string>())
  const steps = yield* Queue.unbounded<Step>()
  const screen = new Screen({
    colors: Option.getOrElse(noColor, () => "") === "",
    now: () => clock.currentTimeMillisUnsafe(),
    folder: root,
    commands,
    limits: options.limits,
    onIntent: (intent) => Queue.offerUnsafe(steps, intent)
  })

  let answer: Deferred.Deferred<Answer> | undefined
  const session = yield* options.makeSession((call) =>
    Effect.suspend(() => {
      const waiting = Deferred.makeUnsafe<Answer>()
      answer = waiting
      screen.ask(call)
      return Effect.ensuring(
        Deferred.await(waiting),
        Effect.sync(() => {
          answer = undefined
          screen.asked(call)
        })
      )
    })
  )
  const { agent } = session
  let waiting: ReadonlyArray<Waiting> = []
  let run: Fiber.Fiber<unknown> | undefined
  let interruptedAt: number | undefined

  const setWaiting = (next: ReadonlyArray<Waiting>) => {
    waiting = next
    screen.setWaiting(next)
  }

  const begin = Effect.fnUntraced(function*(text: string) {
    run = yield* agent.prompt(text).pipe(
      Effect.exit,
      Effect.flatMap((exit) => Queue.offer(steps, { type: "ended", exit })),
      Effect.forkScoped({ startImmediately: true })
    )
  })

  const queue = Effect.fnUntraced(function*(text: string, kind: Waiting["kind"]) {
    const receipt: Receipt = yield* kind === "steer" ? agent.steer(text) : agent.followUp(text)
    // The run ended in the meantime: then it is a prompt.
    if (receipt.whileIdle && (yield* agent.withdraw(receipt.id))) {
      if (run !== undefined) yield* Fiber.await(run)
      yield* Queue.offer(steps, { type: "submit", text })
      return
    }
    setWaiting([...waiting, { id: receipt.id, text, kind }])
    yield* receipt.delivered.pipe(
      Effect.flatMap((delivery) => Queue.offer(steps, { type: "settled", id: receipt.id, delivery })),
      Effect.forkScoped({ startImmediately: true })
    )
  })

  /** What was not delivered goes back into the editor. */
  const takeBack = Effect.fnUntraced(function*(some: ReadonlyArray<Waiting>) {
    const back: Array<string> = []
    for (const { id, text } of some) if (yield* agent.withdraw(id)) back.push(text)
    setWaiting(waiting.filter((each) => !some.includes(each)))
    if (back.length > 0) screen.putBack(back.join("\n"))
  })

  const chooseModel = Effect.fnUntraced(function*(name: string) {
    if (name === "") {
      screen.note(`${nameOf(session.provider())} (${session.provider().because})`)
      return
    }
    yield* selectProvider(name).pipe(
      Effect.flatMap((provider) => session.use(provider)),
      Effect.matchEffect({
        onFailure: ({ message }) => Effect.sync(() => screen.note(message, "problem")),
        onSuccess: () =>
          Effect.sync(() => {
            screen.setModel(nameOf(session.provider()))
            screen.note(`From now on ${nameOf(session.provider())} answers (${session.provider().because}).`)
          })
      })
    )
  })

  const clear = Effect.fnUntraced(function*() {
    yield* agent.reset.pipe(
      Effect.match({
        onFailure: () => screen.note("The agent works; Esc stops it.", "problem"),
        onSuccess: () => {
          setWaiting([])
          screen.clear()
          screen.note("A new conversation.")
        }
      })
    )
  })

  /** What was submitted; `true` leaves. */
  const submit = Effect.fnUntraced(function*(text: string, kind: Waiting["kind"]) {
    interruptedAt = undefined
    screen.setHint(undefined)
    const [, name, rest = ""] = /^\/(\w+)(?:\s+(.*))?$/s.exec(text.trim()) ?? []
    switch (name) {
      case undefined:
        yield* run === undefined ? begin(text) : queue(text, kind)
        return false
      case "quit":
      case "exit":
        return true
      case "help":
        screen.note(help)
        return false
      case "clear":
        yield* clear()
        return false
      case "model":
        yield* chooseModel(rest.trim())
        return false
      default:
        screen.note(`There is no command /${name}; /help lists them.`, "problem")
        return false
    }
  })

  const ended = Effect.fnUntraced(function*(exit: Exit.Exit<RunResult, AgentBusy | InvalidPrompt>) {
    run = undefined
    if (Exit.isSuccess(exit)) {
      const { outcome } = exit.value
      const problem = outcomeText(outcome)
      if (problem !== undefined) screen.note(problem, outcome._tag === "Failed" ? "problem" : "plain")
      if (outcome._tag === "Failed") {
        screen.note("Ask again when that is mended, or take another model with /model.")
      }
    } else screen.note(Cause.pretty(exit.cause), "problem")
    yield* takeBack(waiting)
  })

  /** The first press clears what is typed, a second one soon after leaves. */
  const interrupt = Effect.fnUntraced(function*() {
    const now = clock.currentTimeMillisUnsafe()
    if (interruptedAt !== undefined && now - interruptedAt < doublePress) return true
    interruptedAt = now
    screen.takeText()
    screen.setHint("Ctrl-C again leaves")
    yield* Effect.sleep(doublePress).pipe(
      Effect.andThen(Effect.sync(() => screen.setHint(undefined))),
      Effect.forkScoped
    )
    return false
  })

  /** Does one step; `true` leaves. */
  const take = (step: Step): Effect.Effect<boolean, never, Effect.Services<ReturnType<typeof submit>>> => {
    switch (step.type) {
      case "submit":
        return submit(step.text, "steer")
      case "followUp":
        return submit(step.text, "followUp")
      case "withdraw":
        return Effect.as(takeBack(waiting.slice(-1)), false)
      case "abort":
        return Effect.as(agent.abort, false)
      case "answer":
        if (answer !== undefined) Deferred.doneUnsafe(answer, Effect.succeed(step.answer))
        return Effect.succeed(false)
      case "settled":
        // What a run left goes back into the editor at its end.
        if (step.delivery._tag !== "Returned") setWaiting(waiting.filter((each) => each.id !== step.id))
        return Effect.succeed(false)
      case "ended":
        return Effect.as(ended(step.exit), false)
      case "interrupt":
        return interrupt()
      case "leave":
        return Effect.succeed(true)
    }
  }

  yield* agent.subscribe((event) => screen.onEvent(event))
  const { because, model } = session.provider()
  screen.note(`effect-pi ${version} · ${nameOf(session.provider())} (${because})`)
  if (model.provider === "offline") {
    screen.note(
      "The offline demo model answers: a set of rules, no language model. Ask it anything to see what it knows."
    )
  }
  screen.setModel(nameOf(session.provider()))
  yield* Effect.acquireRelease(
    Effect.sync(() => screen.start()),
    () => Effect.ensuring(Effect.promise(() => screen.drain()), Effect.sync(() => screen.stop()))
  )
  yield* Effect.sync(() => screen.isMoving && screen.render()).pipe(
    Effect.repeat(Schedule.spaced("100 millis")),
    Effect.forkScoped
  )
  if (options.prompt !== "") yield* submit(options.prompt, "steer")
  while (!(yield* take(yield* Queue.take(steps))));
  screen.setHint(undefined)
  if (run === undefined) return exitCodes.completed
  yield* agent.abort
  return exitCodes.aborted
})
