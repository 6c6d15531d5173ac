/** Who is measured. The id names the file in `contenders/`. */

export interface Entry {
  readonly id: string
  readonly title: string
  /**
   * `core`: effect-pi, pi, and the floor, measured at full size. `peer`: other libraries, much slower, measured with less work, together
   * with effect-pi and pi again.
   */
  readonly kind: "core" | "peer"
  /** Whether its packages are those of the library's own development. */
  readonly atRoot: boolean
}

/** The library under test. */
export const ours = "effect-pi"

/** What everything is compared with. */
export const base = "pi-1.0.3"

export const roster: ReadonlyArray<Entry> = [
  { id: ours, title: "effect-pi", kind: "core", atRoot: true },
  { id: base, title: "pi-agent-core 1.0.3 `Agent`", kind: "core", atRoot: true },
  { id: "pi-1.0.3-loop", title: "pi-agent-core 1.0.3 `runAgentLoop`", kind: "core", atRoot: true },
  { id: "pi-1.6.0", title: "pi-agent-core 1.6.0 `Agent`", kind: "core", atRoot: false },
  { id: "floor", title: "plain loop (floor)", kind: "core", atRoot: true },
  { id: "effect-ai", title: "effect/ai `Chat`", kind: "peer", atRoot: true },
  { id: "ai-sdk", title: "AI SDK", kind: "peer", atRoot: false },
  { id: "openai-agents", title: "OpenAI Agents", kind: "peer", atRoot: false },
  { id: "langchain", title: "LangChain `createAgent`", kind: "peer", atRoot: false }
]
