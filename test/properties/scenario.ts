/** Draws a scenario from a seed: the same seed gives the same scenario. */
import type { AgentEventType } from "../../src/Events.ts"
import { type AgentMessage, assistant, system, toolResult, user } from "../../src/Messages.ts"
import { responses } from "./drawResponses.ts"
import { action, type Draw, output, promptAction, work, workAtEnd } from "./drawWorks.ts"
import { compact, extended, Random } from "./random.ts"
import { drawTraits } from "./traits.ts"
import type { Answer, Hook, HookKind, Limits, Listener, Options, Rule, Scenario, TimedAction, Tool } from "./types.ts"

export type { Scenario } from "./types.ts"

const tool = (draw: Draw, name: string): Tool => {
  const { random, traits } = draw
  return compact({
    name,
    parameters: random.pick(["any", "number"]),
    mode: random.maybe(traits.sequential ? 0.3 : 0.05, () => "sequential" as const),
    timeout: random.maybe(traits.deadlines ? 0.4 : 0, () => random.int(1, 60)),
    retry: random.maybe(traits.retries ? 0.5 : 0, () => ({ times: random.int(1, 2), every: random.int(1, 10) })),
    prepare: random.maybe(0.08, () => work(draw, "prepare", false)),
    spare: random.maybe(traits.changes ? 0.25 : 0, () => true),
    runs: random.many(0, 4, () => ({
      work: work(draw, "tool"),
      output: random.chance(0.08) ? "terminate" : output(draw)
    }))
  })
}

const kinds: ReadonlyArray<HookKind> = [
  "transformContext",
  "beforeToolCall",
  "beforeToolCall",
  "afterToolCall",
  "afterToolCall",
  "finishTurn",
  "finishTurn",
  "prepareNextTurn",
  "prepareRequest",
  "apiKey"
]

const answersOf: { readonly [Kind in HookKind]: ReadonlyArray<Answer> } = {
  transformContext: ["same", "short", "noResults", "empty", "more"],
  convertToLlm: ["same", "same", "noResults", "more"],
  beforeToolCall: ["nothing", "allow", "otherArguments", "block", "blockAndTerminate"],
  afterToolCall: ["nothing", "content", "details", "error", "noError", "terminate"],
  finishTurn: ["nothing", "nothing", "end", "continue", "continue"],
  prepareNextTurn: ["nothing", "model", "thinking", "messages", "short", "fewerTools", "moreTools", "more"],
  prepareRequest: ["nothing", "model", "thinking", "short", "fewerTools", "moreTools", "noResults"],
  apiKey: ["nothing", "key"]
}

const hook = (draw: Draw, kinds: ReadonlyArray<HookKind>): Hook => {
  const { random, traits } = draw
  const kind = traits.conversions && random.chance(0.3) ? "convertToLlm" : random.pick(kinds)
  return {
    kind,
    runs: random.many(1, 3, () => ({
      work: work(draw, "hook", traits.slowHooks),
      answer: traits.odd && random.chance(0.15)
        ? random.pick<Answer>(["odd", "odd", "doubleTools"])
        : random.pick(answersOf[kind])
    }))
  }
}

/** Few kinds, so that several hooks are of the same one. */
const hooks = (draw: Draw): ReadonlyArray<Hook> => {
  const { random, traits } = draw
  if (!traits.hooks && !traits.conversions) return []
  const some = random.many(1, 4, () => random.pick(kinds))
  return random.many(1, 5, () => hook(draw, some))
}

const eventTypes: ReadonlyArray<AgentEventType> = [
  "agent_start",
  "agent_end",
  "agent_end",
  "turn_start",
  "turn_end",
  "message_start",
  "message_start",
  "message_update",
  "message_end",
  "message_end",
  "message_end",
  "tool_execution_start",
  "tool_execution_update",
  "tool_execution_end"
]

const listener = (draw: Draw): Listener => {
  const { random, traits } = draw
  return compact({
    required: random.maybe(traits.required ? 0.5 : 0, () => true),
    later: random.maybe(0.15, () => true),
    rules: random.many(1, 4, (): Rule => {
      const on = random.pick(eventTypes)
      const often = on.startsWith("message")
      const ends = on === "agent_end" && traits.queues && random.chance(0.4)
      return {
        on,
        nth: random.int(1, often ? 8 : 3),
        work: ends ? workAtEnd(draw) : work(draw, "listener")
      }
    })
  })
}

const limits = ({ random }: Draw): Limits =>
  compact({
    turns: random.maybe(0.4, () => random.int(1, 3)),
    toolCalls: random.maybe(0.4, () => random.int(1, 4)),
    tokens: random.maybe(0.2, () => random.pick([10, 100])),
    cost: random.maybe(0.15, () => random.pick([0.1, 1])),
    duration: random.maybe(0.4, () => random.int(1, 150))
  })

const options = (draw: Draw): Options => {
  const { random, traits } = draw
  const retry = () => ({ times: 1, every: random.int(1, 10) })
  return compact({
    systemPrompt: random.maybe(0.5, () => "Be brief."),
    steeringMode: random.maybe(0.3, () => "all" as const),
    followUpMode: random.maybe(0.3, () => "all" as const),
    toolExecution: random.maybe(traits.sequential ? 0.5 : 0, () => "sequential" as const),
    toolConcurrency: random.maybe(0.15, () => random.int(1, 3)),
    toolTimeout: random.maybe(traits.deadlines ? 0.3 : 0, () => random.int(1, 80)),
    toolRetry: random.maybe(traits.retries ? 0.2 : 0, retry),
    maxResultLength: random.maybe(0.08, () => random.pick([1, 20, 300])),
    hookTimeout: random.maybe(traits.deadlines ? 0.4 : 0, () => random.int(1, 60)),
    firstEventTimeout: random.maybe(traits.deadlines ? 0.35 : 0, () => random.int(1, 60)),
    eventTimeout: random.maybe(traits.deadlines ? 0.35 : 0, () => random.int(1, 60)),
    limits: random.maybe(traits.limits ? 0.8 : 0, () => limits(draw)),
    repeatedCalls: random.maybe(traits.limits ? 0.25 : 0, () => random.int(1, 3)),
    wrapUp: random.maybe(traits.limits ? 0.4 : 0, () => true),
    gracePeriod: random.weighted<number | undefined>([[3, undefined], [3, 0], [1, 10], [2, 1000]])
  })
}

/** A stored conversation, with what a later version or another program may have put into it. */
const stored = ({ random, traits }: Draw): ReadonlyArray<AgentMessage> => {
  if (!traits.stored) return []
  const call = extended({ type: "toolCall" as const, id: "old", name: "t0", arguments: { n: 1 } }, { later: "field" })
  const rounds: ReadonlyArray<ReadonlyArray<AgentMessage>> = [
    [extended(user("before", { timestamp: 1 }), { stored: { by: "somebody" } }), assistant("yes", { timestamp: 2 })],
    [
      user("before"),
      assistant([call], { timestamp: 3 }),
      toolResult(call, "done", { timestamp: 4, details: { a: null } })
    ],
    [user("before"), assistant([], { timestamp: 5, stopReason: "aborted", errorMessage: "Request was aborted" })],
    [user("before"), assistant([{ type: "thinking", thinking: "hm", thinkingSignature: "x" }], { responseId: "r" })],
    [user("before")]
  ]
  return [
    ...(random.chance(0.5) ? [system("Stored prompt", { sections: { a: "b" } })] : []),
    ...random.many(1, 3, () => random.pick(rounds)).flat(),
    // Calls that a crash left open, which `continue` answers.
    ...(random.chance(0.15) ? [user("before"), assistant([call, { ...call, id: "older" }], { timestamp: 6 })] : [])
  ]
}

const timeline = (draw: Draw): ReadonlyArray<TimedAction> => {
  const { random, traits } = draw
  let at = 0
  const actions: Array<TimedAction> = random.chance(0.25) ? [{ at, action: action(draw) }] : []
  const add = (action: TimedAction["action"]) => {
    at += random.weighted<() => number>([
      [1, () => 0],
      [4, () => random.int(1, 10)],
      [4, () => random.int(10, 100)],
      [1, () => random.int(100, 1500)]
    ])()
    actions.push(compact({ at, joined: random.maybe(0.08, () => true), action }))
  }
  add(promptAction(draw))
  for (let left = random.int(0, 7); left > 0; left--) {
    const isEnd = left === 1 && traits.closing && random.chance(0.6)
    add(isEnd ? { do: "close" } : random.chance(0.2) ? promptAction(draw) : action(draw))
    if (isEnd) break
  }
  return actions
}

/** The scenario of a seed. */
export const draw = (seed: number): Scenario => {
  const random = new Random(seed)
  const traits = drawTraits(random)
  const toolNames = Array.from({ length: random.int(1, 4) }, (_, index) => `t${index}`)
  const listeners = traits.listeners ? random.int(1, 3) : 0
  let last = 0
  const draw: Draw = { random, traits, toolNames, listeners, fresh: () => ++last }
  return compact({
    seed,
    yieldAfter: random.maybe(traits.yields ? 1 : 0, () => random.pick([3, 7, 20, 100])),
    options: options(draw),
    budget: random.maybe(traits.limits ? 0.25 : 0, () => limits(draw)),
    stored: stored(draw),
    model: responses(draw),
    tools: toolNames.map((name) => tool(draw, name)),
    hooks: hooks(draw),
    listeners: Array.from({ length: listeners }, () => listener(draw)),
    observer: random.maybe(0.15, () => ({
      capacity: random.int(1, 6),
      strategy: random.pick(["sliding", "dropping"]),
      every: random.pick([0, 0, 1, 10])
    })),
    timeline: timeline(draw)
  })
}
