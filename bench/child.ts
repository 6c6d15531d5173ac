/**
 * A process that measures one contender: `child.ts CONTENDER CASE,… SIZE`. It warms up, measures, and prints one line of JSON,
 * an `Answer` for each case. More than one case in a process is good for counts only.
 */
import { type Case, cases, type Point, type Size } from "./cases.ts"
import type { Contender, Counts, Measured, Workload } from "./contender.ts"
import { lowerQuartile } from "./statistics.ts"

export type Answer =
  | { readonly cannot: string }
  | { readonly version: string; readonly points: ReadonlyArray<AnswerPoint> }

export interface AnswerPoint {
  readonly id: string
  readonly counts: Counts
  readonly value: number
}

/** Milliseconds of the processor, so that a busy machine gets no less warm: with little work, then with the work that is measured. */
const warmUpTime = 200
const settlingTime = 800
const measuringTime = 1000

/** Milliseconds that were measured, without the preparation of each sample. */
const enough = 500

/** Gives the milliseconds of the processor since now. */
const watch = (): () => number => {
  const began = process.cpuUsage()
  return () => {
    const { system, user } = process.cpuUsage(began)
    return (system + user) / 1000
  }
}

/** The path is computed, so that a type check of this file needs no contender's packages. */
const load = async (id: string): Promise<Contender> => {
  const { contender } = await import(new URL(`contenders/${id}.ts`, import.meta.url).href)
  return contender
}

const warmUp = async (contender: Contender, workload: Workload): Promise<void> => {
  const work = await contender.prepare(workload)
  if (typeof work === "string") return
  const spent = watch()
  do await work()
  while (spent() < warmUpTime)
}

/**
 * Does the work until the engine has settled, then again and again. What else the machine does can only make it slower, so the
 * figure is the lower quartile.
 */
const measure = async (work: () => Promise<Measured>): Promise<Measured> => {
  const settling = watch()
  let sample: Measured
  do sample = await work()
  while (settling() < settlingTime)
  const spent = watch()
  const values: Array<number> = []
  let measured = 0
  do {
    sample = await work()
    values.push(sample.value)
    measured += sample.value
  } while (measured < enough && spent() < measuringTime)
  return { counts: sample.counts, value: lowerQuartile(values) }
}

const cold = async (id: string, { points }: Case, size: Size): Promise<Answer> => {
  const began = performance.now()
  const contender = await load(id)
  const [point] = points(size)
  const work = await contender.prepare(point!.workload)
  if (typeof work === "string") return { cannot: work }
  const { counts, value } = await work()
  const total = performance.now() - began
  return {
    version: contender.version,
    points: [{ id: point!.id, counts, value }, { id: `${point!.id}+import`, counts, value: total }]
  }
}

type Prepared = ReadonlyArray<readonly [Point, () => Promise<Measured>]>

/** The work of each point, or why it cannot be done. */
const prepareAll = async (contender: Contender, points: ReadonlyArray<Point>): Promise<Prepared | string> => {
  const all: Array<readonly [Point, () => Promise<Measured>]> = []
  for (const point of points) {
    const work = await contender.prepare(point.workload)
    if (typeof work === "string") return work
    all.push([point, work])
  }
  return all
}

const warm = async (id: string, { points, unit, warmUp: small }: Case, size: Size): Promise<Answer> => {
  const contender = await load(id)
  const prepared = await prepareAll(contender, points(size))
  if (typeof prepared === "string") return { cannot: prepared }
  // What was recorded is old before anything else is done, or the engine takes what is made while it becomes old for old too.
  global.gc?.()
  if (size !== "smoke" && unit === "ms") await warmUp(contender, small)
  const answers: Array<AnswerPoint> = []
  for (const [point, work] of prepared) {
    // The first measurement of memory counts what is made once in a process.
    if (unit === "bytes" && size !== "smoke") await work()
    const { counts, value } = unit === "bytes" || size === "smoke" ? await work() : await measure(work)
    answers.push({ id: point.id, counts, value })
  }
  return { version: contender.version, points: answers }
}

const [id, caseIds, size] = process.argv.slice(2)
if (id === undefined || caseIds === undefined || (size !== "full" && size !== "peers" && size !== "smoke")) {
  throw new Error("usage: child.ts CONTENDER CASE,… full|peers|smoke")
}
const answers: Record<string, Answer> = {}
for (const caseId of caseIds.split(",")) {
  const found = cases.find((candidate) => candidate.id === caseId)
  if (found === undefined) throw new Error(`there is no case ${caseId}`)
  const excluded = found.only !== undefined && !found.only.includes(id) && size !== "smoke"
  answers[caseId] = excluded ? { cannot: "takes too long" } : await (found.cold ? cold : warm)(id, found, size)
}
process.stdout.write(`${JSON.stringify(answers)}\n`, () => process.exit())
