/** A part of a trace that is compared. */
export type Section = "events" | "requests" | "executions" | "hooks" | "listeners" | "actions" | "inner" | "final"

/** A trace, as far as it is compared. */
export type Comparable = { readonly [S in Section]?: unknown }

/** The parts of a trace that are compared; anomalies and unhandled are not. */
export const SECTIONS: ReadonlyArray<Section>

/** Differences as text, at most 20; empty when the traces agree. Key order does not matter. */
export function diffTraces(
  expected: Comparable,
  actual: Comparable,
  sections?: ReadonlyArray<Section>
): Array<string>
