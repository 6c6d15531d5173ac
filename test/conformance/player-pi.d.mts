import type { Trace } from "./trace.ts"
import type { Scenario } from "./types.ts"

/** Version of the pi-agent-core that is played. */
export const piVersion: string

/** Deterministic 32-bit generator of numbers from 0 (included) to 1 (excluded). */
export function mulberry32(seed: number): () => number

/** Plays one scenario against pi under virtual time. `jitter` seeds random microtask hops. */
export function playScenario(scenario: Scenario, options?: { readonly jitter?: number }): Promise<Trace>

/** Trace as text, one line per list entry. */
export function formatTrace(trace: Trace): string
