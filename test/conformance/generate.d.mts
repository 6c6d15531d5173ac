import type { Trace } from "./trace.ts"
import type { Scenario } from "./types.ts"

/** `full` draws everything; `safe` only what section 5 of docs/SPEC.md leaves as it is in pi. */
export type Profile = "safe" | "full"

/** The random scenario of a seed, the trace of pi, and how many candidates were drawn again before it. */
export function generate(
  seed: number,
  profile?: Profile
): Promise<{ readonly scenario: Scenario; readonly trace: Trace; readonly attempt: number }>
