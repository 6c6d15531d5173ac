/** A scenario file, as far as the tools look at it; SCENARIO.md, sections 2 to 8, describes all of it. */
export interface ScenarioFile {
  readonly format: 1
  readonly name: string
  readonly description: string
  readonly covers?: ReadonlyArray<string>
  readonly divergence?: string
  readonly tags?: ReadonlyArray<string>
  readonly agent: object
  readonly tools?: ReadonlyArray<object>
  readonly hooks?: object
  readonly listeners?: ReadonlyArray<object>
  readonly model: ReadonlyArray<object>
  readonly timeline: ReadonlyArray<{ readonly at: number; readonly do: string }>
}

/** A trace entry that happened at the virtual time `t`. */
export interface Entry {
  readonly t: number
  readonly [field: string]: unknown
}

/** A driver action and how it went. */
export interface ActionEntry {
  readonly at: number
  readonly do: string
  readonly outcome: "ok" | "resolved" | "rejected" | "pending"
  readonly t?: number
  readonly error?: string
  readonly value?: unknown
}

/** What an agent did; SCENARIO.md, section 9. */
export interface Trace {
  readonly scenario: string
  readonly events: ReadonlyArray<Entry & { readonly type: string }>
  readonly requests: ReadonlyArray<Entry & { readonly n: number; readonly model: string }>
  readonly executions: ReadonlyArray<Entry & { readonly call: string; readonly tool: string }>
  readonly hooks: ReadonlyArray<Entry & { readonly hook: string }>
  readonly listeners?: ReadonlyArray<Entry & { readonly listener: string; readonly on: string }>
  readonly actions: ReadonlyArray<ActionEntry>
  readonly inner?: ReadonlyArray<ActionEntry & { readonly from: string }>
  readonly final: { readonly [field: string]: unknown }
  readonly unhandled?: ReadonlyArray<Entry & { readonly error: string }>
  readonly anomalies: ReadonlyArray<{ readonly kind: string; readonly [field: string]: unknown }>
}

/** Version of the pi-agent-core that is played. */
export const piVersion: string

/** Deterministic 32-bit generator of numbers from 0 (included) to 1 (excluded). */
export function mulberry32(seed: number): () => number

/** Plays one scenario against pi under virtual time. `jitter` seeds random microtask hops. */
export function playScenario(scenario: object, options?: { readonly jitter?: number }): Promise<Trace>

/** Trace as text, one line per list entry. */
export function formatTrace(trace: object): string
