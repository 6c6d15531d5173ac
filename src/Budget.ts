/**
 * Limits on what runs may spend: turns, tool calls, tokens, cost and time (L7).
 *
 * A run counts against its agent's own `limits` and against every budget around it: that of a `Budget.layer`, and that of
 * the run whose tool started it. A child run can therefore never spend more than its parent has left.
 *
 * **Guarantees**
 *
 * Turns and tool calls are exact, also between runs that work at the same time. Tokens and cost are known when a response
 * has ended, so they stop the next turn. Time interrupts like an abort.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AgentConfigError, Limit } from "./Errors.ts"
import { checkLimits } from "./internal/checks.ts"
import type { Usage } from "./Messages.ts"

/**
 * What may be spent; what is absent is not limited.
 *
 * - `turns`: requests to the model, the optional last one of a wrap-up not counted
 * - `toolCalls`: calls that are executed, those that tools make with `runToolCall` among them; calls beyond get an error
 *   result
 * - `tokens`, `cost`: of the model's responses; cost in dollars
 * - `duration`: wall-clock time, of `Clock`
 *
 * @category models
 * @since 0.1.0
 */
export interface Limits {
  readonly turns?: number | undefined
  readonly toolCalls?: number | undefined
  readonly tokens?: number | undefined
  readonly cost?: number | undefined
  readonly duration?: Duration.Input | undefined
}

/**
 * What was spent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Spent {
  readonly turns: number
  readonly toolCalls: number
  readonly tokens: number
  readonly cost: number
}

/**
 * Limits with what was spent of them, and the budget around this one.
 *
 * @category models
 * @since 0.1.0
 */
export class BudgetState {
  readonly limits: Limits
  readonly parent: BudgetState | undefined
  #turns = 0
  #toolCalls = 0
  #tokens = 0
  #cost = 0
  #startedAt: number | undefined

  constructor(limits: Limits, parent: BudgetState | undefined) {
    this.limits = limits
    this.parent = parent
  }

  /** What was spent so far. */
  get spent(): Spent {
    return { turns: this.#turns, toolCalls: this.#toolCalls, tokens: this.#tokens, cost: this.#cost }
  }

  /** The limit that was reached, here or around. */
  get reached(): Limit | undefined {
    const { cost, tokens, toolCalls, turns } = this.limits
    if (turns !== undefined && this.#turns >= turns) return "turns"
    if (toolCalls !== undefined && this.#toolCalls >= toolCalls) return "toolCalls"
    if (tokens !== undefined && this.#tokens >= tokens) return "tokens"
    if (cost !== undefined && this.#cost >= cost) return "cost"
    return this.parent?.reached
  }

  /** The limit that does not allow another turn at this time. */
  spentAt(now: number): Limit | undefined {
    return this.millisLeft(now) === 0 ? "duration" : this.reached
  }

  /** Takes a turn, unless a limit was reached. */
  takeTurn(): Limit | undefined {
    const { reached } = this
    if (reached === undefined) this.#addTurn()
    return reached
  }

  /** Takes a tool call; `false` when none is left. */
  takeToolCall(): boolean {
    if (!this.#hasToolCall()) return false
    this.#addToolCall()
    return true
  }

  /** Counts what a response cost. */
  spend(usage: Usage): void {
    this.#tokens += usage.totalTokens
    this.#cost += usage.cost.total
    this.parent?.spend(usage)
  }

  /** A run begins; time starts with the first one. */
  begin(now: number): void {
    this.#startedAt ??= now
    this.parent?.begin(now)
  }

  /** Milliseconds left; all of them as long as no run has begun. */
  millisLeft(now: number): number | undefined {
    const { duration } = this.limits
    const own = duration === undefined
      ? undefined
      : Math.max(0, (this.#startedAt ?? now) + Duration.toMillis(Duration.fromInputUnsafe(duration)) - now)
    const around = this.parent?.millisLeft(now)
    return own === undefined ? around : around === undefined ? own : Math.min(own, around)
  }

  #hasToolCall(): boolean {
    const { toolCalls } = this.limits
    if (toolCalls !== undefined && this.#toolCalls >= toolCalls) return false
    return this.parent === undefined || this.parent.#hasToolCall()
  }

  #addTurn(): void {
    this.#turns++
    if (this.parent !== undefined) this.parent.#addTurn()
  }

  #addToolCall(): void {
    this.#toolCalls++
    if (this.parent !== undefined) this.parent.#addToolCall()
  }
}

/**
 * The budget that runs count against; none by default.
 *
 * @category services
 * @since 0.1.0
 */
export const Budget = Context.Reference<BudgetState | undefined>("effect-pi/Budget", { defaultValue: () => undefined })

/**
 * One budget for all runs of the agents that are made with this layer, or run inside it.
 *
 * **Example** (Ten turns for everybody)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent, Budget } from "effect-pi"
 *
 * const program = Effect.gen(function*() {
 *   const agent = yield* Agent.make()
 *   return yield* agent.prompt("hi")
 * }).pipe(Effect.provide(Budget.layer({ turns: 10 })))
 * ```
 *
 * **Gotchas**
 *
 * Fails with `AgentConfigError` when a limit makes no sense: not above 0, or a part of a turn or call.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (limits: Limits): Layer.Layer<never, AgentConfigError> =>
  Layer.fresh(Layer.effect(
    Budget,
    Effect.gen(function*() {
      const checked = yield* Effect.fromResult(checkLimits(limits, "Budget.layer: "))
      return new BudgetState(checked, yield* Budget)
    })
  ))

/**
 * What was spent of the budget in the context, and how long is left, in milliseconds; nothing without a budget.
 *
 * @category accessors
 * @since 0.1.0
 */
export const spent: Effect.Effect<(Spent & { readonly millisLeft: number | undefined }) | undefined> = Effect.gen(
  function*() {
    const budget = yield* Budget
    if (budget === undefined) return undefined
    const now = yield* Clock.currentTimeMillis
    return { ...budget.spent, millisLeft: budget.millisLeft(now) }
  }
)
