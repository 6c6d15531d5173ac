/** Draws what code of the user does, and what is done with the agent. */
import { badOutputs, failures, goodOutputs, type Oddity } from "./oddities.ts"
import { compact, type Random } from "./random.ts"
import type { Traits } from "./traits.ts"
import type { Action, Input, Span, Step, Work } from "./types.ts"

/** What a scenario is drawn with. */
export interface Draw {
  readonly random: Random
  readonly traits: Traits
  readonly toolNames: ReadonlyArray<string>
  readonly listeners: number
  /** A number nobody else has. */
  readonly fresh: () => number
}

type Kind = "tool" | "hook" | "listener" | "stream" | "prepare"

export const millis = ({ random }: Draw): number =>
  random.weighted([
    [1, 0],
    [2, 1],
    [6, random.int(2, 20)],
    [4, random.int(20, 100)],
    [1, random.pick([500, 1000, 1500, 3000])]
  ])

const span = (draw: Draw): Span => draw.traits.endless && draw.random.chance(0.25) ? "forever" : millis(draw)

export const output = ({ random, traits }: Draw): Oddity =>
  random.weighted<Oddity>([
    [8, "text"],
    [3, random.pick(goodOutputs)],
    [traits.odd ? 4 : 0, random.pick(badOutputs)]
  ])

// -----------------------------------------------------------------------------
// Actions
// -----------------------------------------------------------------------------

const input = ({ random, traits }: Draw): Input =>
  random.weighted<Input>([
    [6, "text"],
    [2, "message"],
    [1, "rich"],
    [traits.odd ? 1 : 0, "odd"],
    [traits.odd ? 1 : 0, "custom"],
    [traits.changes ? 1 : 0, "system"]
  ])

const inputs = (draw: Draw): ReadonlyArray<Input> =>
  draw.random.weighted<ReadonlyArray<Input>>([
    [8, [input(draw)]],
    [2, draw.random.many(2, 3, () => input(draw))],
    [0.5, []]
  ])

export const promptAction = (draw: Draw): Action => {
  const { random, traits } = draw
  return compact({
    do: "prompt",
    inputs: inputs(draw),
    whileRunning: random.maybe(traits.queues ? 0.25 : 0, () => random.pick(["steer", "followUp"])),
    timeout: random.maybe(traits.aborts ? 0.15 : 0, () => random.int(1, 150)),
    take: random.maybe(traits.aborts ? 0.05 : 0, () => random.int(1, 20))
  })
}

const queueAction = (draw: Draw): Action => {
  const { random } = draw
  const post = (what: "steer" | "followUp"): Action =>
    compact({
      do: what,
      input: input(draw),
      id: random.maybe(0.1, () => random.pick(["same", "other"]))
    })
  return random.weighted<Action>([
    [6, post("steer")],
    [5, post("followUp")],
    [2, { do: "note", input: input(draw) }],
    [1, { do: "offerSteering", input: input(draw) }],
    [1, { do: "offerFollowUp", input: input(draw) }],
    [2, { do: "withdraw", receipt: random.int(0, 5) }],
    [1, { do: random.pick(["clearSteering", "clearFollowUps", "clearQueues"]) }],
    [0.5, { do: random.pick(["setSteeringMode", "setFollowUpMode"]), mode: random.pick(["all", "one-at-a-time"]) }],
    [0.3, { do: "peek" }]
  ])
}

const changeAction = (draw: Draw): Action => {
  const { random, toolNames } = draw
  return random.weighted<Action>([
    [1, { do: "setModel", model: random.pick(["m1", "m2"]) }],
    [1, { do: "setThinkingLevel", level: random.pick(["off", "low", "high"]) }],
    [1, { do: "setToolExecution", mode: random.pick(["parallel", "sequential"]) }],
    [3, { do: "setTools", tools: toolNames.filter(() => random.chance(0.6)) }],
    [0.5, { do: "setSessionId", id: "session" }],
    [1, { do: "append", inputs: inputs(draw) }],
    [0.5, { do: "setMessages", inputs: inputs(draw) }],
    [0.5, { do: "reset" }]
  ])
}

export const action = (draw: Draw): Action => {
  const { listeners, random, traits } = draw
  return random.weighted<() => Action>([
    [traits.queues ? 6 : 1, () => queueAction(draw)],
    [traits.aborts ? 4 : 0, () => ({ do: "abort" })],
    [traits.aborts ? 1 : 0, () => ({ do: "interruptPrompt" })],
    [traits.changes ? 3 : 0, () => changeAction(draw)],
    [1.5, () => promptAction(draw)],
    [1, () => ({ do: "continue" })],
    [0.5, () => ({ do: "awaitIdle" })],
    [0.2, () => ({ do: "invalidPrompt", prompt: random.pick(["empty", "undecodable"]) })],
    [listeners > 0 ? 1 : 0, () => ({
      do: random.pick(["subscribe", "unsubscribe"]),
      listener: random.int(0, Math.max(0, listeners - 1))
    })],
    [traits.closing ? 0.5 : 0, () => ({ do: "close" })]
  ])()
}

// -----------------------------------------------------------------------------
// Works
// -----------------------------------------------------------------------------

const failing = ({ random }: Draw, kind: Kind): Step =>
  random.weighted<Step>([
    [3, { do: "fail", with: random.pick(failures) }],
    [2, { do: "die", with: random.pick(failures) }],
    [2, { do: "throw", with: random.pick(failures) }],
    [kind === "stream" ? 0 : 1, { do: "interrupt" }]
  ])

const nested = ({ random, toolNames, traits }: Draw): Step =>
  compact({
    do: "nested",
    tool: random.pick([...toolNames, "ghost"]),
    args: random.pick([{ n: 1 }, {}, { n: "x" }]),
    progress: random.maybe(traits.updates ? 0.5 : 0, () => true)
  })

const step = (draw: Draw, kind: Kind, depth: number): Step => {
  const { random, traits } = draw
  return random.weighted<() => Step>([
    [4, () => ({ do: "sleep", ms: span(draw) })],
    [traits.deaf ? 3 : 0, () => ({ do: "deaf", ms: span(draw) })],
    [traits.deaf ? 2 : 0, () => ({ do: "sleep", ms: span(draw), cleanup: span(draw) })],
    [
      traits.deaf ? 1 : 0,
      () => compact({ do: "promise", ms: millis(draw), rejects: random.maybe(traits.failures ? 0.4 : 0, () => true) })
    ],
    [1, () => ({ do: "yield" })],
    [
      traits.reentrant ? 4 : 0,
      () => compact({ do: "act", action: action(draw), outside: random.maybe(0.3, () => true) })
    ],
    [traits.background && depth === 0 ? 2 : 0, () => ({
      do: "background",
      detached: random.chance(0.5),
      steps: kind === "tool" && traits.updates && random.chance(0.5)
        ? [{ do: "sleep", ms: millis(draw) }, { do: "update", output: output(draw) }]
        : random.many(1, 2, () => step(draw, kind, depth + 1))
    })],
    [traits.updates && kind === "tool" ? 4 : 0, () => ({ do: "update", output: output(draw) })],
    [traits.nested && kind === "tool" ? 3 : 0, () => nested(draw)],
    [traits.failures ? 1.5 : 0, () => failing(draw, kind)]
  ])()
}

export const steps = (draw: Draw, kind: Kind, from: number, to: number): ReadonlyArray<Step> =>
  draw.random.many(from, to, () => step(draw, kind, 0))

const syncWork = (draw: Draw): Work => {
  const { random, traits } = draw
  return {
    sync: true,
    steps: random.weighted<() => ReadonlyArray<Step>>([
      [4, () => []],
      [traits.reentrant ? 4 : 0, () => random.many(1, 2, () => ({ do: "act", action: action(draw) }))],
      [traits.failures ? 1 : 0, () => [{ do: "throw", with: random.pick(failures) }]]
    ])()
  }
}

/** What keeps an agent going when it would stop (Q5), or an abort keeps from it. */
export const workAtEnd = (draw: Draw): Work => {
  const { random, traits } = draw
  const followUp: Step = { do: "act", action: { do: "followUp", input: "text" } }
  const abort: Step = { do: "act", action: { do: "abort" } }
  const rest = random.weighted<() => ReadonlyArray<Step>>([
    [3, () => []],
    [3, () => [{ do: "sleep", ms: millis(draw) }]],
    [traits.aborts ? 3 : 0, () => [random.chance(0.3) ? { ...abort, outside: true } : abort]]
  ])()
  return { steps: [followUp, ...rest] }
}

export const work = (draw: Draw, kind: Kind, slow = true): Work =>
  draw.random.chance(slow ? 0.25 : 0.6) ? syncWork(draw) : { steps: steps(draw, kind, 0, 3) }
