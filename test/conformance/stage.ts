/** What the scripted model, tools, hooks and listeners of one scenario share: the time, the trace, and the rules' bookkeeping. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { AgentEvent } from "../../src/Events.ts"
import type { AgentMessage } from "../../src/Messages.ts"
import type { Tool } from "../../src/Tools.ts"
import { normEvent } from "./normalize.mjs"
import type { TraceAction, TraceEvent, TraceExecution, TraceHook, TraceListener, TraceRequest } from "./trace.ts"
import type { InnerAction, Message, Rule, Scenario } from "./types.ts"
import { compact, declarationIn, messageIn } from "./values.mjs"

/** What a scenario lets a tool, a hook or a listener fail with. */
export class ScriptedFailure extends Data.TaggedError("ScriptedFailure")<{ readonly message: string }> {}

/** An entry of a trace while it is being written. */
export type Draft<T> = { -readonly [K in keyof T]: T[K] }

/** How an action went, so far; `from` is what performed it inside a run. */
export type Outcome = Draft<Omit<TraceAction, "outcome">> & {
  readonly from?: string
  outcome?: TraceAction["outcome"]
}

/** The lists of a trace while it is played. */
export class Recording {
  readonly events: Array<TraceEvent> = []
  readonly requests: Array<TraceRequest> = []
  readonly executions: Array<Draft<TraceExecution>> = []
  readonly hooks: Array<TraceHook> = []
  readonly listeners: Array<Draft<TraceListener>> = []
  readonly actions: Array<Outcome> = []
  readonly inner: Array<Outcome> = []
}

/** Performs an action in place; never fails. */
export type Perform = (action: InnerAction, outcome: Outcome) => Effect.Effect<void>

export class Stage {
  readonly scenario: Scenario
  readonly now: () => number
  readonly recording = new Recording()
  /** Tools by key; filled before the scenario begins. */
  readonly registry = new Map<string, Tool>()
  /** Set once the agent exists. */
  perform: Perform = () => Effect.void
  readonly #uses = new Map<Rule, number>()
  readonly #counters = new Map<string, number>()

  constructor(scenario: Scenario, now: () => number) {
    this.scenario = scenario
    this.now = now
  }

  readonly tool = (key: string): Tool => {
    const tool = this.registry.get(key)
    if (tool === undefined) throw new Error(`scenario has no tool ${key}`)
    return tool
  }

  readonly message = (message: Message): AgentMessage =>
    messageIn(message, this.now(), (key) => {
      this.tool(key)
      return declarationIn(this.scenario.tools!.find((tool) => (tool.key ?? tool.name) === key)!)
    })

  readonly messages = (messages: ReadonlyArray<Message> | undefined): Array<AgentMessage> =>
    (messages ?? []).map(this.message)

  /** The recorder: the listener that is subscribed first. */
  readonly record = (event: AgentEvent): void => {
    if (event.type === "agent_start") this.#counters.clear()
    this.recording.events.push({ t: this.now(), ...normEvent(event) })
  }

  log(hook: string, fields: { readonly [field: string]: unknown }): void {
    this.recording.hooks.push(compact({ t: this.now(), hook, ...fields }))
  }

  /** The how-many-th call of a hook in the current run this is. */
  count(hook: string): number {
    const n = (this.#counters.get(hook) ?? 0) + 1
    this.#counters.set(hook, n)
    return n
  }

  unspent(rule: Rule): boolean {
    return rule.times === undefined || (this.#uses.get(rule) ?? 0) < rule.times
  }

  /** The shared part of every rule: its actions, its wait, its failure. */
  apply(rule: Rule | undefined, source: string): Effect.Effect<void, ScriptedFailure> {
    if (rule === undefined) return Effect.void
    return Effect.suspend(() => {
      this.#uses.set(rule, (this.#uses.get(rule) ?? 0) + 1)
      const failure = rule.throws === undefined
        ? Effect.void
        : Effect.fail(new ScriptedFailure({ message: rule.throws }))
      return this.inner(rule.do, source).pipe(Effect.andThen(wait(rule.delay)), Effect.andThen(failure))
    })
  }

  /** The actions attached to a hook rule, a listener rule or a tool: all of them, in order, even when one is an abort. */
  inner(actions: ReadonlyArray<InnerAction> | undefined, source: string): Effect.Effect<void> {
    if (actions === undefined || actions.length === 0) return Effect.void
    return Effect.uninterruptible(Effect.forEach(actions, (action) => {
      const outcome: Outcome = { at: this.now(), from: source, do: action.do }
      this.recording.inner.push(outcome)
      return this.perform(action, outcome)
    }, { discard: true }))
  }
}

/** A wait of a scenario: 0, or none, does not suspend. */
export const wait = (ms: number | undefined): Effect.Effect<void> =>
  ms !== undefined && ms > 0 ? Effect.sleep(ms) : Effect.void
