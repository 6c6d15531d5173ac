/** What can be done with an agent, from outside or from inside of a run. */
import { Cause, Context, Effect, Exit, type Fiber, Queue, Scheduler, Scope, Stream } from "effect"
import * as Agent from "../../src/Agent.ts"
import * as Messages from "../../src/Messages.ts"
import type { Receipt } from "../../src/Queues.ts"
import type { RunResult } from "../../src/RunResult.ts"
import { extended } from "./random.ts"
import type { Action, Input } from "./types.ts"
import { Activity, exitText, type Given, type Way, type World } from "./world.ts"

type ActionOf<Do extends Action["do"]> = Action & { readonly do: Do }

// -----------------------------------------------------------------------------
// Messages
// -----------------------------------------------------------------------------

/** Nothing that is handed in may be changed. */
export const freeze = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const field of Object.values(value)) freeze(field)
  return value
}

const messageOf = (input: Input, token: string): Messages.AgentMessage => {
  switch (input) {
    case "text":
    case "message":
      return Messages.user(token)
    case "system":
      return Messages.system(token)
    case "odd":
      return Messages.user(`${token} \ud800`)
    case "rich":
      return extended(
        Messages.user([
          extended({ type: "text" as const, text: token }, { signature: "s", more: { n: [1, null] } }),
          { type: "image", data: "AA==", mimeType: "image/png" }
        ], { timestamp: 7 }),
        { origin: { id: 1 } }
      )
    case "custom": {
      const note: unknown = { role: "note", content: token, extra: [{ a: 1 }], timestamp: 0 }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a role of the host's own
      return note as Messages.AgentMessage
    }
  }
}

/** Makes a message with a token of its own. */
const give = (world: World, input: Input, way: Way, busy = world.busy): Given => {
  const token = `<${way}-${world.given.length + 1}>`
  const given: Given = {
    token,
    way,
    message: freeze(messageOf(input, token)),
    activity: world.activity,
    busy,
    accepted: "no",
    at: world.entries.length,
    removed: undefined,
    receipt: undefined,
    delivery: undefined
  }
  world.given.push(given)
  return given
}

const accept = (world: World, given: Given, accepted: Given["accepted"] = "yes"): void => {
  // What was wiped away while it was being accepted may be anywhere.
  if (given.accepted !== "unknown") given.accepted = accepted
  given.at = world.entries.length
}

/** Whether a message of a conversation or a queue is this input. */
export const holds = (message: Messages.AgentMessage, { token }: Given): boolean =>
  message.role !== "assistant" && message.role !== "toolResult" && Messages.text(message).includes(token)

const remove = (world: World, messages: ReadonlyArray<Messages.AgentMessage>): void => {
  for (const given of world.given) {
    if (messages.some((message) => holds(message, given))) given.removed ??= world.entries.length
  }
}

const asInput = (input: Input, { message, token }: Given): string | Messages.AgentMessage =>
  input === "text" ? token : message

// -----------------------------------------------------------------------------
// Runs
// -----------------------------------------------------------------------------

const resultText = ({ messages, outcome }: RunResult): string => {
  const more = outcome._tag === "Limited"
    ? ` ${outcome.limit}`
    : outcome._tag === "Failed"
    ? ` ${outcome.error._tag}`
    : ""
  return `${outcome._tag}${more}, ${messages.length} messages`
}

const stopped = (world: World, how: "abort" | "interrupt" | "close", activity: number): void => {
  if (world.busy && activity === world.current) world.log({ kind: "stop", how, activity })
}

/** Interrupts an effect after a time, as `Effect.timeout` does, and notes when. */
const interrupted = (world: World, effect: Effect.Effect<string, unknown>, ms: number, activity: number) =>
  Effect.raceFirst(
    effect,
    Effect.map(world.sleep(ms), () => {
      stopped(world, "interrupt", activity)
      return "timed out"
    })
  )

const prompt = (world: World, action: ActionOf<"prompt">): Effect.Effect<string, unknown> => {
  const { inputs, take, timeout, whileRunning } = action
  const { agent, busy } = world
  const activity = busy ? world.current : ++world.activity
  const way = !busy || whileRunning === undefined ? "prompt" : whileRunning === "steer" ? "steering" : "followUp"
  const given = inputs.map((input) => give(world, input, way, busy))
  const list = inputs.map((input, index) => asInput(input, given[index]!))
  const input = list.length === 1 ? list[0]! : given.map(({ message }) => message)
  const run: Effect.Effect<string, unknown> = take === undefined || whileRunning !== undefined
    ? Effect.map(agent.prompt(input, whileRunning === undefined ? {} : { whileRunning }), resultText)
    : Agent.stream(agent, input).pipe(
      Stream.take(take),
      Stream.runCount,
      Effect.map((count) => `${count} events`)
    )
  const settled = Effect.onExit(run, (exit) =>
    Effect.sync(() => {
      const text = exitText(exit)
      // A stream that was ended early may have ended before its prompt was taken.
      const accepted = text === "interrupted" || (text === "ok" && take !== undefined)
        ? "maybe"
        : text === "ok"
        ? "yes"
        : "no"
      for (const one of given) accept(world, one, accepted)
    }))
  const limited = timeout === undefined ? settled : interrupted(world, settled, timeout, activity)
  return Effect.provideService(limited, Activity, activity)
}

const continue_ = (world: World): Effect.Effect<string, unknown> => {
  const activity = world.busy ? world.current : ++world.activity
  return Effect.provideService(Effect.map(world.agent.continue, resultText), Activity, activity)
}

/** Nothing comes between what is noted and what is done. */
const atOnce = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.provideService(Effect.provideService(effect, Scheduler.PreventSchedulerYield, true), Activity, 0)

const interruptPrompt = (world: World): string => {
  const waiting = world.prompts.findLast(({ fiber }) => fiber.pollUnsafe() === undefined)
  if (waiting === undefined) return "nobody waits"
  stopped(world, "interrupt", waiting.activity)
  waiting.fiber.interruptUnsafe()
  return `of activity ${waiting.activity}`
}

// -----------------------------------------------------------------------------
// Queues
// -----------------------------------------------------------------------------

const posted = (world: World, given: Given, receipt: Receipt): string => {
  // A message with a known id is not queued again.
  if (world.given.some((other) => other.receipt === receipt)) return "known"
  accept(world, given)
  given.receipt = receipt
  world.observe(Effect.map(receipt.delivered, (delivery) => {
    given.delivery = { delivery, at: world.log({ kind: "delivery", token: given.token, delivery }) }
  }))
  return receipt.whileIdle ? "receipt while idle" : "receipt"
}

const post = (world: World, action: ActionOf<"steer" | "followUp">): Effect.Effect<string> => {
  const { agent } = world
  const given = give(world, action.input, action.do === "steer" ? "steering" : "followUp")
  const message = asInput(action.input, given)
  const options = action.id === undefined ? {} : { id: action.id }
  const posting = action.do === "steer" ? agent.steer(message, options) : agent.followUp(message, options)
  return Effect.map(posting, (receipt) => posted(world, given, receipt))
}

const offer = (world: World, action: ActionOf<"offerSteering" | "offerFollowUp">): Effect.Effect<unknown> => {
  const isSteering = action.do === "offerSteering"
  const given = give(world, action.input, isSteering ? "steering" : "followUp")
  const offering = Queue.offer(isSteering ? world.agent.steering : world.agent.followUps, given.message)
  return Effect.map(offering, () => accept(world, given))
}

const withdraw = (world: World, number: number): Effect.Effect<string> => {
  const receipts = world.given.filter(({ receipt }) => receipt !== undefined)
  const given = receipts[number % Math.max(1, receipts.length)]
  if (given?.receipt === undefined) return Effect.succeed("no receipt")
  return Effect.map(world.agent.withdraw(given.receipt.id), (done) => {
    if (done) given.removed ??= world.entries.length
    return `${done} ${given.token}`
  })
}

const clear = (world: World, effect: Effect.Effect<ReadonlyArray<Messages.AgentMessage>>): Effect.Effect<string> =>
  Effect.map(effect, (messages) => {
    remove(world, messages)
    return `${messages.length} messages`
  })

// -----------------------------------------------------------------------------
// State
// -----------------------------------------------------------------------------

/** Something that replaces the transcript. */
const wipe = (world: World, effect: Effect.Effect<void, unknown>, queues: boolean): Effect.Effect<void, unknown> =>
  Effect.suspend(() => {
    const { followUps, messages, steering } = world.snapshot("wipe")
    return Effect.map(effect, () => {
      // Where fibers are switched between any two steps, a message may be queued meanwhile.
      if (world.scenario.yieldAfter !== undefined) {
        for (const given of world.given) given.accepted = "unknown"
        return
      }
      // What a reset leaves is the sum of all system messages.
      const kept = queues ? messages.filter(({ role }) => role === "system") : []
      for (const given of world.given) if (kept.some((message) => holds(message, given))) given.accepted = "unknown"
      remove(world, messages.filter((message) => !kept.includes(message)))
      if (queues) remove(world, [...steering, ...followUps])
    })
  })

const add = (world: World, { do: how, inputs }: ActionOf<"append" | "setMessages">): Effect.Effect<void, unknown> => {
  const given = inputs.map((input) => give(world, input, how === "append" ? "append" : "set"))
  const messages = given.map(({ message }) => message)
  const adding = how === "append"
    ? world.agent.appendMessages(messages)
    : wipe(world, world.agent.setMessages(messages), false)
  return Effect.map(adding, () => {
    for (const one of given) accept(world, one)
  })
}

const setTools = (world: World, names: ReadonlyArray<string>): Effect.Effect<void, unknown> =>
  world.agent.setTools(world.tools.filter(({ name }) => names.includes(name)))

const close = (world: World): Effect.Effect<void> => {
  stopped(world, "close", world.current)
  world.closed = true
  return Scope.close(world.scope, Exit.void)
}

// -----------------------------------------------------------------------------
// Performing
// -----------------------------------------------------------------------------

/** What ends at once and is not cut in half. */
const quick = (world: World, action: Action): Effect.Effect<unknown, unknown> | undefined => {
  const { agent } = world
  switch (action.do) {
    case "steer":
    case "followUp":
      return post(world, action)
    case "note": {
      const given = give(world, action.input, "note")
      return Effect.map(agent.note(asInput(action.input, given)), () => accept(world, given))
    }
    case "offerSteering":
    case "offerFollowUp":
      return offer(world, action)
    case "withdraw":
      return withdraw(world, action.receipt)
    case "clearSteering":
    case "clearFollowUps":
    case "clearQueues":
      return clear(world, agent[action.do])
    case "reset":
      return wipe(world, agent.reset, true)
    case "setModel":
      return agent.setModel({ id: action.model })
    case "setThinkingLevel":
      return agent.setThinkingLevel(action.level)
    case "setToolExecution":
      return agent.setToolExecution(action.mode)
    case "setTools":
      return setTools(world, action.tools)
    case "setSessionId":
      return agent.setSessionId(action.id)
    case "setSteeringMode":
      return agent.setSteeringMode(action.mode)
    case "setFollowUpMode":
      return agent.setFollowUpMode(action.mode)
    case "append":
    case "setMessages":
      return add(world, action)
    case "subscribe":
      return world.subscribe(action.listener)
    case "unsubscribe":
      return world.unsubscribe(action.listener)
    case "peek":
      return Effect.map(agent.peek, (messages) => `${messages.length} messages`)
    case "interruptPrompt":
      return Effect.sync(() => interruptPrompt(world))
    default:
      return undefined
  }
}

const effectOf = (world: World, action: Action): Effect.Effect<unknown, unknown> => {
  const { agent } = world
  switch (action.do) {
    case "prompt":
      return prompt(world, action)
    case "invalidPrompt":
      return agent.prompt(
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a mistake of the user
        action.prompt === "empty" ? "" : { role: "user", content: 5 } as unknown as Messages.AgentMessage
      )
    case "continue":
      return continue_(world)
    case "abort":
      stopped(world, "abort", world.current)
      return agent.abort
    case "close":
      return close(world)
    case "awaitIdle":
      return agent.awaitIdle
    default:
      return Effect.void
  }
}

/** Performs an action and notes how it went; fails only when it is interrupted. `from` says where it is performed. */
export const perform = (world: World, action: Action, from: string): Effect.Effect<void> =>
  Effect.uninterruptibleMask((restore) => {
    // A closed agent is not used any more.
    if (world.closed && (action.do === "prompt" || action.do === "continue")) return Effect.void
    const act = world.acts++
    world.log({ kind: "act", act, action, from, busy: world.busy })
    const instant = quick(world, action)
    const effect = instant !== undefined
      // What is made here belongs to no run.
      ? Effect.updateContext(instant, (context: Context.Context<never>) => Context.omit(Activity)(context))
      : action.do === "abort" || action.do === "close"
      ? restore(atOnce(Effect.suspend(() => effectOf(world, action))))
      : restore(effectOf(world, action))
    return effect.pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          const result = Exit.isSuccess(exit) ? typeof exit.value === "string" ? exit.value : "ok" : exitText(exit)
          world.log({ kind: "acted", act, action, result })
        })
      ),
      Effect.asVoid,
      Effect.catchCause((cause) => Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.void)
    )
  })

/** Performs an action from outside of all runs, without waiting for it. */
export const performOutside = (world: World, action: Action, from: string): Fiber.Fiber<void> => {
  const fiber = world.fork(perform(world, action, from))
  if (action.do === "prompt" || action.do === "continue") world.prompts.push({ fiber, activity: world.activity })
  return fiber
}
