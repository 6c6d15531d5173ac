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
  readonly title: string
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

const readings: ReadonlyArray<{ readonly suffix: string; readonly title: string; readonly reading: Reading }> = [
  { suffix: "", title: "", reading: plain },
  { suffix: "-effect", title: ", listener an effect", reading: { listener: "effect", hooks: false } },
  { suffix: "-hooks", title: ", all hooks", reading: { listener: "sync", hooks: true } },
  {
    suffix: "-effect-hooks",
    title: ", listener an effect, all hooks",
    reading: { listener: "effect", hooks: true }
  }
]

type Work = Workload extends infer W ? W extends Workload ? Omit<W, keyof Reading> : never : never

/** A case with one figure; `works` gives the work of a size, and that of the warm-up. */
const single = (
  id: string,
  group: string,
  title: string,
  work: (size: Size | "warmUp") => Work,
  more: Partial<Pick<Case, "cold" | "variant">> & { readonly reading?: Reading } = {}
): Case => {
  const { cold = false, reading = plain, variant = false } = more
  // `Work` is a workload without how it is read.
  const whole = (size: Size | "warmUp") => ({ ...work(size), ...reading }) as Workload
  return {
    id,
    group,
    title,
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
  title: string,
  work: (size: Size | "warmUp") => Work
): ReadonlyArray<Case> =>
  readings.map(({ reading, suffix, title: rest }) =>
    single(id + suffix, group, title + rest, work, { reading, variant: suffix !== "" })
  )

const sized = (size: Size | "warmUp", full: number, warmUp: number, peers: number, smoke: number): number =>
  size === "warmUp" ? warmUp : choose(size, full, peers, smoke)

const turns = (size: Size | "warmUp"): Work => ({ name: "turns", turns: sized(size, 2000, 100, 100, 3) })

const deltas = (chunk: number, wakeUps: boolean) => (size: Size | "warmUp"): Work => ({
  name: "deltas",
  deltas: sized(size, 100_000, 5000, 10_000, 20),
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
  title: string,
  sizes: (size: Size) => ReadonlyArray<number>,
  work: (n: number) => Work,
  more: Partial<Case> = {}
): Case => {
  const whole = (n: number) => ({ ...work(n), ...plain }) as Workload
  return {
    id,
    group: id.split("-")[0]!,
    title,
    unit: "ms",
    variant: false,
    cold: false,
    points: (size) => sizes(size).map((n) => ({ id: `${id}@${n}`, workload: whole(n) })),
    warmUp: whole(sizes("smoke")[0]!),
    ...more
  }
}

const memory = (state: "idle" | "tool" | "stream", title: string): Case => ({
  ...single(`memory-${state}`, "memory", title, (size) => ({
    name: "memory",
    agents: sized(size, 2000, 200, 100, 5),
    state
  })),
  unit: "bytes"
})

export const cases: ReadonlyArray<Case> = [
  ...read("W1", "W1", "2000 turns with one call each", turns),
  single("W1c", "W1c", "the first 20 turns of a cold process", (size) => ({
    name: "turns",
    turns: size === "smoke" ? 3 : 20
  }), { cold: true }),
  ...read("W2", "W2", "100 000 text deltas at once", deltas(0, false)),
  single("W2-by-8", "W2", "… in chunks of 8", deltas(8, false)),
  single("W2-by-1", "W2", "… in chunks of 1", deltas(1, false)),
  single("W2-async", "W2", "… each after an asynchronous wake-up", deltas(1, true)),
  single("W2a", "W2a", "arguments of 100 kB in 1000 deltas", longArguments),
  growing(
    "W2a-growth",
    "arguments of 1 MB and 2 MB in deltas of 100 bytes",
    (size) => choose(size, [1_000_000, 2_000_000], [10_000, 20_000], [1000, 2000]),
    (bytes) => ({ name: "arguments", bytes, deltas: bytes / 100 }),
    // Those that parse what arrived again and again take minutes.
    { only: ["effect-pi", "pi-1.6.0", "floor"] }
  ),
  ...read("W3", "W3", "5000 parallel calls", calls("sync", 0)),
  single("W3-promise", "W3", "… of a tool with a promise", calls("promise", 0)),
  single("W3-sleep", "W3", "… of a tool that waits a millisecond", calls("sleep", 0)),
  single("W3-sync-16", "W3", "… 16 at a time", calls("sync", 16), { variant: true }),
  single("W3-promise-16", "W3", "… with a promise, 16 at a time", calls("promise", 16), { variant: true }),
  single("W3-sleep-16", "W3", "… that wait a millisecond, 16 at a time", calls("sleep", 16), { variant: true }),
  growing(
    "W4",
    "one more question on top of a transcript",
    (size) => choose(size, [100, 1000, 10_000, 50_000], [100, 1000], [100]),
    (messages) => ({ name: "transcript", messages, repeat: 20 })
  ),
  single("W5", "W5", "5000 agents at once, three turns each", (size) => ({
    name: "agents",
    agents: sized(size, 5000, 100, 100, 5),
    turns: 3
  })),
  single("W6", "W6", "abort with 1000 running tools", (size) => ({
    name: "abort",
    tools: sized(size, 1000, 50, 100, 10)
  })),
  growing(
    "W7",
    "queued messages drained one at a time",
    (size) => choose(size, [5000, 10_000], [50, 100], [5, 10]),
    (messages) => ({ name: "steering", messages })
  ),
  memory("idle", "bytes of an idle agent"),
  memory("tool", "bytes of an agent in a tool"),
  memory("stream", "bytes of an agent that waits for the model")
]
