/** One-glance view of a trace as text. */
export function summarize(trace: object): string
