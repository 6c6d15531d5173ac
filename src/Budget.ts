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
import { checkLimits, countedLimits } from "./internal/checks.ts"
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
 * Limits with what was spent of them, and the budgets around this one.
 *
 * @category models
 * @since 0.1.0
 */
export class BudgetState {
  readonly limits: Limits
  /** The budgets around this one, each once; what is spent here is spent there. */
  readonly around: ReadonlyArray<BudgetState>
  #turns = 0
  #toolCalls = 0
  #tokens = 0
  #cost = 0
  #startedAt: number | undefined

  constructor(limits: Limits, outside: ReadonlyArray<BudgetState>) {
    this.limits = limits
    this.around = [...new Set(outside.flatMap((budget) => budget.withAround))]
  }

  /** This budget and those around it. */
  get withAround(): ReadonlyArray<BudgetState> {
    return [this, ...this.around]
  }

  /** What was spent so far. */
  get spent(): Spent {
    return { turns: this.#turns, toolCalls: this.#toolCalls, tokens: this.#tokens, cost: this.#cost }
  }

  /** The limit that was reached, here or around. */
  get reached(): Limit | undefined {
    return this.#first((budget) => budget.#reached)
  }

  /** The limit that does not allow another turn at this time. */
  spentAt(now: number): Limit | undefined {
    return this.millisLeft(now) === 0 ? "duration" : this.reached
  }

  /** Takes a turn, unless a limit was reached. */
  takeTurn(): Limit | undefined {
    const { reached } = this
    if (reached === undefined) this.#each((budget) => budget.#turns++)
    return reached
  }

  /** Takes a tool call; `false` when none is left. */
  takeToolCall(): boolean {
    if (this.#first((budget) => budget.#toolCalls >= (budget.limits.toolCalls ?? Infinity) || undefined)) return false
    this.#each((budget) => budget.#toolCalls++)
    return true
  }

  /** Counts what a response cost. */
  spend(usage: Usage): void {
    this.#each((budget) => {
      budget.#tokens += usage.totalTokens
      budget.#cost += usage.cost.total
    })
  }

  /** A run begins; time starts with the first one. */
  begin(now: number): void {
    this.#each((budget) => budget.#startedAt ??= now)
  }

  /** Milliseconds left; all of them as long as no run has begun. */
  millisLeft(now: number): number | undefined {
    let least: number | undefined
    this.#each((budget) => {
      const left = budget.#millisLeft(now)
      if (left !== undefined && (least === undefined || left < least)) least = left
    })
    return least
  }

  get #reached(): Limit | undefined {
    const { limits, spent } = this
    return countedLimits.find(([name]) => spent[name] >= (limits[name] ?? Infinity))?.[0]
  }

  #millisLeft(now: number): number | undefined {
    const { duration } = this.limits
    if (duration === undefined) return undefined
    return Math.max(0, (this.#startedAt ?? now) + Duration.toMillis(Duration.fromInputUnsafe(duration)) - now)
  }

  #each(action: (budget: BudgetState) => void): void {
    action(this)
    for (const budget of this.around) action(budget)
  }

  #first<A>(find: (budget: BudgetState) => A | undefined): A | undefined {
    let found = find(this)
    for (let n = 0; found === undefined && n < this.around.length; n++) found = find(this.around[n]!)
    return found
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
      const around = yield* Budget
      return new BudgetState(checked, around === undefined ? [] : [around])
    })
  ))

/**
 * What was spent of the budget in the context, and how long is left, in milliseconds; nothing without a budget.
 *
 * @category accessors
 * @since 0.1.0
 */
export const spent: Effect.Effect<(Spent & { readonly millisLeft: number | undefined }) | undefined> =
  /* @__PURE__ */ Effect.gen(function*() {
    const budget = yield* Budget
    if (budget === undefined) return undefined
    const now = yield* Clock.currentTimeMillis
    return { ...budget.spent, millisLeft: budget.millisLeft(now) }
  })
