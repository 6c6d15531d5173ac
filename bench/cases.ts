/** The cases that are measured: which work, how much of it, and who does it. */
import type { Listener, Workload } from "./contender.ts"

/**
 * How much work: `full` is what targets are about, `peers` is so little that the slowest of them end within seconds, `smoke` is for
 * a check of the counts.
 */
export type Size = "full" | "peers" | "smoke"

/** One figure of a case. */
export interface Point {
  /** Of the case and the size: `W4@1000`. */
  readonly id: string
  readonly workload: Workload
}

export interface Case {
  readonly id: string
  /** Chosen by `--only`. */
  readonly group: string
  readonly unit: "ms" | "bytes"
  /** A variant of another case; it is measured for effect-pi and pi's `Agent` only. */
  readonly variant: boolean
  /** Who is measured, if not everybody. */
  readonly only?: ReadonlyArray<string>
  /** `cold`: measured in the first run of a process, with the imports and without. */
  readonly cold: boolean
  readonly points: (size: Size) => ReadonlyArray<Point>
  /** Done for a while before the measurement. */
  readonly warmUp: Workload
}

const plain = { listener: "sync", hooks: false } as const

const choose = <A>(size: Size, full: A, peers: A, smoke: A): A => ({ full, peers, smoke })[size]

interface Reading {
  readonly listener: Listener
  readonly hooks: boolean
}

const readings: ReadonlyArray<readonly [suffix: string, Reading]> = [
  ["", plain],
  ["-effect", { listener: "effect", hooks: false }],
  ["-hooks", { listener: "sync", hooks: true }],
  ["-effect-hooks", { listener: "effect", hooks: true }]
]

type Work = Workload extends infer W ? W extends Workload ? Omit<W, keyof Reading> : never : never

/** A case with one figure; `works` gives the work of a size, and that of the warm-up. */
const single = (
  id: string,
  group: string,
  work: (size: Size | "warmUp") => Work,
  more: Partial<Pick<Case, "cold" | "variant">> & { readonly reading?: Reading } = {}
): Case => {
  const { cold = false, reading = plain, variant = false } = more
  // `Work` is a workload without how it is read.
  const whole = (size: Size | "warmUp") => ({ ...work(size), ...reading }) as Workload
  return {
    id,
    group,
    unit: "ms",
    variant,
    cold,
    points: (size) => [{ id, workload: whole(size) }],
    warmUp: whole("warmUp")
  }
}

const read = (
  id: string,
  group: string,
  work: (size: Size | "warmUp") => Work
): ReadonlyArray<Case> =>
  readings.map(([suffix, reading]) => single(id + suffix, group, work, { reading, variant: suffix !== "" }))

const sized = (size: Size | "warmUp", full: number, warmUp: number, peers: number, smoke: number): number =>
  size === "warmUp" ? warmUp : choose(size, full, peers, smoke)

const turns = (size: Size | "warmUp"): Work => ({ name: "turns", turns: sized(size, 2000, 100, 100, 3) })

const deltas = (chunk: number, wakeUps: boolean) => (size: Size | "warmUp"): Work => ({
  name: "deltas",
  deltas: sized(size, 100_000, 1500, 10_000, 20),
  chunk,
  wakeUps
})

const calls = (tool: "sync" | "promise" | "sleep", concurrency: number) => (size: Size | "warmUp"): Work => ({
  name: "calls",
  calls: sized(size, 5000, 200, 200, 20),
  tool,
  concurrency
})

const longArguments = (size: Size | "warmUp"): Work => ({
  name: "arguments",
  bytes: sized(size, 100_000, 5000, 20_000, 1000),
  deltas: sized(size, 1000, 50, 200, 10)
})

/** Cases whose figures, one for each size, come from one process: how the cost grows. */
const growing = (
  id: string,
  sizes: (size: Size) => ReadonlyArray<number>,
  work: (n: number) => Work,
  more: Partial<Case> = {}
): Case => {
  const whole = (n: number) => ({ ...work(n), ...plain }) as Workload
  return {
    id,
    group: id.split("-")[0]!,
    unit: "ms",
    variant: false,
    cold: false,
    points: (size) => sizes(size).map((n) => ({ id: `${id}@${n}`, workload: whole(n) })),
    warmUp: whole(sizes("smoke")[0]!),
    ...more
  }
}

const memory = (state: "idle" | "tool" | "stream"): Case => ({
  ...single(`memory-${state}`, "memory", (size) => ({
    name: "memory",
    agents: sized(size, 2000, 200, 100, 5),
    state
  })),
  unit: "bytes"
})

export const cases: ReadonlyArray<Case> = [
  ...read("W1", "W1", turns),
  single("W1c", "W1c", (size) => ({
    name: "turns",
    turns: size === "smoke" ? 3 : 20
  }), { cold: true }),
  ...read("W2", "W2", deltas(0, false)),
  single("W2-by-8", "W2", deltas(8, false)),
  single("W2-by-1", "W2", deltas(1, false)),
  single("W2-async", "W2", deltas(1, true)),
  single("W2a", "W2a", longArguments),
  growing(
    "W2a-growth",
    (size) => choose(size, [1_000_000, 2_000_000], [10_000, 20_000], [1000, 2000]),
    (bytes) => ({ name: "arguments", bytes, deltas: bytes / 100 }),
    // Those that parse what arrived again and again take minutes.
    { only: ["effect-pi", "pi-1.6.0", "floor"] }
  ),
  ...read("W3", "W3", calls("sync", 0)),
  single("W3-promise", "W3", calls("promise", 0)),
  single("W3-sleep", "W3", calls("sleep", 0)),
  single("W3-sync-16", "W3", calls("sync", 16), { variant: true }),
  single("W3-promise-16", "W3", calls("promise", 16), { variant: true }),
  single("W3-sleep-16", "W3", calls("sleep", 16), { variant: true }),
  growing(
    "W4",
    (size) => choose(size, [100, 1000, 10_000, 50_000], [100, 1000], [100]),
    (messages) => ({ name: "transcript", messages, repeat: 20 })
  ),
  single("W5", "W5", (size) => ({
    name: "agents",
    agents: sized(size, 5000, 100, 100, 5),
    turns: 3
  })),
  single("W6", "W6", (size) => ({
    name: "abort",
    tools: sized(size, 1000, 50, 100, 10)
  })),
  growing(
    "W7",
    (size) => choose(size, [5000, 10_000], [50, 100], [5, 10]),
    (messages) => ({ name: "steering", messages })
  ),
  memory("idle"),
  memory("tool"),
  memory("stream")
]
