import type { Trace } from "./trace.ts"
import type { Scenario } from "./types.ts"

/** Classes of section 5 of docs/SPEC.md that can make an unmarked scenario differ from the trace of pi; empty: none. */
export function byRule(scenario: Scenario, trace: Trace): Set<string>
