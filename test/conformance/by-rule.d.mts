import type { Trace } from "./player-pi.mjs"

/** Classes of section 5 of docs/SPEC.md that can make an unmarked scenario differ from the trace of pi; empty: none. */
export function byRule(scenario: object, trace: Trace): Set<string>
