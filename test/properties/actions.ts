/** What can be done with an agent, from outside or from inside of a run. */
import { Deferred, Effect, Exit, Fiber, Scheduler, Scope, Stream } from "effect"
import * as Agent from "../../src/Agent.ts"
import * as Messages from "../../src/Messages.ts"
import type { Receipt } from "../../src/Queues.ts"
import type { RunResult } from "../../src/RunResult.ts"
import type { Action, Input } from "./types.ts"
import { Activity, exitText, type Given, type Way, type World } from "./world.ts"

type Prompt = Extract<Action, { readonly do: "prompt" }>

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
      return Messages.user([
        { type: "text", text: token, ...{ signature: "s", more: { n: [1, null] } } },
        { type: "image", data: "AA==", mimeType: "image/png" }
      ], { timestamp: 7, ...{ origin: { id: 1 } } })
    case "custom": {
      const note: unknown = { role: "note", content: token, extra: [{ a: 1 }], timestamp: 0 }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a role of the host's own
      return note as Messages.AgentMessage
    }
  }
}

/** Makes a message with a token of its own. */
const give = (world: World, input: Input, way: Way): Given => {
  const token = `<${way}-${world.given.length + 1}>`
  const given: Given = {
    token,
    way,
    message: freeze(messageOf(input, token)),
    activity: world.activity,
    accepted: "no",
    at: world.entries.length,
    removed: false,
    receipt: undefined,
    delivery: undefined
  }
  world.given.push(given)
  return given
}

const accept = (world: World, given: Given, accepted: Given["accepted"] = "yes"): void => {
  given.accepted = accepted
  given.at = world.entries.length
}

/** Whether a message of a conversation is this input. */
export const holds = (message: Messages.AgentMessage, { token }: Given): boolean =>
  message.role !== "assistant" && message.role !== "toolResult" && Messages.text(message).includes(token)

const removed = (world: World, messages: ReadonlyArray<Messages.AgentMessage>): void => {
  for (const given of world.given) {
    if (messages.some((message) => holds(message, given))) given.removed = true
  }
}

/** What a string or message was given as. */
const asInput = (input: Input, { message, token }: Given): string | Messages.AgentMessage =>
  input === "text" ? token : message

const resultText = (result: RunResult): string => {
  const { outcome } = result
  const more = outcome._tag === "Limited"
    ? ` ${outcome.limit}`
    : outcome._tag === "Failed"
    ? ` ${outcome.error._tag}`
    : ""
  return `${outcome._tag}${more}, ${result.messages.length} messages`
}

const prompting = (world: World, action: Prompt): Effect.Effect<string, unknown> => {
  const { inputs, take, timeout, whileRunning } = action
  const { agent, busy } = world
  const given = inputs.map((input) => give(world, input, "prompt"))
  const activity = busy ? world.activity : ++world.activity
  const list = inputs.map((input, index) => asInput(input, given[index]!))
  const [first] = list
  const input = list.length === 1 && first !== undefined ? first : given.map(({ message }) => message)
  const run: Effect.Effect<string, unknown> = take === undefined || whileRunning !== undefined
    ? Effect.map(agent.prompt(input, whileRunning === undefined ? {} : { whileRunning }), resultText)
    : Agent.stream(agent, input).pipe(
      Stream.take(take),
      Stream.runCount,
      Effect.map((count) => `${count} events`)
    )
  const settled = Effect.onExit(run, (exit) =>
    Effect.sync(() => {
      const accepted = Exit.isSuccess(exit) ? "yes" : exitText(exit) === "interrupted" ? "maybe" : "no"
      for (const one of given) accept(world, one, accepted)
    }))
  return Effect.provideService(
    timeout === undefined ? settled : interrupted(world, settled, timeout, activity),
    Activity,
    activity
  )
}

/** Interrupts an effect after a time, as `Effect.timeout` does, and tells when. */
const interrupted = (
  world: World,
  effect: Effect.Effect<string, unknown>,
  ms: number,
  activity: number
): Effect.Effect<string, unknown> =>
  Effect.raceFirst(
    effect,
    Effect.map(world.sleep(ms), () => {
      world.log({ kind: "stop", how: "interrupt", activity })
      return "timed out"
    })
  )

const continuing = (world: World): Effect.Effect<string, unknown> => {
  const activity = world.busy ? world.activity : ++world.activity
  return Effect.provideService(Effect.map(world.agent.continue, resultText), Activity, activity)
}

const posted = (world: World, given: Given, receipt: Receipt): string => {
  // A message with a known id is not queued again.
  if (world.given.some((other) => other.receipt === receipt)) return "known"
  accept(world, given)
  given.receipt = receipt
  world.receipts.push({ given, receipt })
  world.fork(Effect.map(receipt.delivered, (delivery) => {
    given.delivery = { delivery, at: world.log({ kind: "delivery", token: given.token, delivery }) }
  }))
  return `receipt${receipt.whileIdle ? " while idle" : ""}`
}

const clearing = (world: World, effect: Effect.Effect<ReadonlyArray<Messages.AgentMessage>>) =>
  Effect.map(effect, (messages) => {
    removed(world, messages)
    return `${messages.length} messages`
  })

/** Everything that is in the transcript and in the given queues is gone when the effect succeeds. */
const wiping = (world: World, effect: Effect.Effect<void, unknown>, queues: boolean): Effect.Effect<string, unknown> =>
  Effect.gen(function*() {
    const messages = yield* world.agent.messages
    const queued = yield* world.agent.queued
    const { length } = world.wiped
    if (!world.busy) world.check()
    yield* effect
    if (world.wiped.length === length) world.wiped.push(messages)
    removed(world, queues ? [...messages, ...queued.steering, ...queued.followUps] : messages)
    return "ok"
  })

const adding = (
  world: World,
  inputs: ReadonlyArray<Input>,
  way: "append" | "set",
  add: (messages: ReadonlyArray<Messages.AgentMessage>) => Effect.Effect<void, unknown>
): Effect.Effect<string, unknown> =>
  Effect.suspend(() => {
    const given = inputs.map((input) => give(world, input, way))
    const added = add(given.map(({ message }) => message))
    return Effect.map(way === "set" ? wiping(world, added, false) : added, () => {
      for (const one of given) accept(world, one)
      return "ok"
    })
  })

/** What an action does; its value says how it went. */
const effectOf = (world: World, action: Action): Effect.Effect<unknown, unknown> => {
  const { agent } = world
  switch (action.do) {
    case "prompt":
      return prompting(world, action)
    case "invalidPrompt":
      return agent.prompt(
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a mistake of the user
        action.prompt === "empty" ? "" : { role: "user", content: 5 } as unknown as Messages.AgentMessage
      )
    case "continue":
      return continuing(world)
    case "steer":
    case "followUp": {
      const given = give(world, action.input, action.do === "steer" ? "steering" : "followUp")
      const message = asInput(action.input, given)
      const options = action.id === undefined ? {} : { id: action.id }
      return Effect.map(
        action.do === "steer" ? agent.steer(message, options) : agent.followUp(message, options),
        (receipt) => posted(world, given, receipt)
      )
    }
    case "note": {
      const given = give(world, action.input, "note")
      return Effect.map(agent.note(asInput(action.input, given)), () => accept(world, given))
    }
  }
}
