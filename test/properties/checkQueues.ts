/** When queued messages are delivered: how many at once (Q2), in which order (Q3), and follow-ups last (Q1). */
import { isDeepStrictEqual } from "node:util"
import { holds } from "./actions.ts"
import type { Played } from "./play.ts"
import { eventsOf, inEveryRun, isExact, type RunView } from "./runs.ts"
import type { Scenario } from "./types.ts"
import type { Entry, Given, Way } from "./world.ts"

/** The inputs that are told of in a list of entries. */
const toldIn = ({ world }: Played, entries: ReadonlyArray<Entry>): ReadonlyArray<Given> =>
  eventsOf(entries, "message_end").flatMap(({ event }) => {
    const given = world.given.find((given) => holds(event.message, given))
    return given === undefined ? [] : [given]
  })

/** Messages of one queue are delivered in the order in which they were queued. */
const outOfOrder = (played: Played, way: Way): ReadonlyArray<string> => {
  if (!isExact(played)) return []
  const told = toldIn(played, played.world.entries).filter((given) => given.way === way)
  const sorted = told.toSorted((a, b) => played.world.given.indexOf(a) - played.world.given.indexOf(b))
  return isDeepStrictEqual(told, sorted)
    ? []
    : [`Q3: delivered out of order: ${told.map(({ token }) => token).join(" ")}`]
}

/** Whether both queues give one message at a time, always. */
const isOneAtATime = ({ options, ...scenario }: Scenario): boolean =>
  options.steeringMode === undefined && options.followUpMode === undefined &&
  !/"set(Steering|FollowUp)Mode"/.test(JSON.stringify(scenario))

const turnsOf = (run: RunView): ReadonlyArray<ReadonlyArray<Entry>> => {
  const starts = eventsOf(run.entries, "turn_start").map(({ index }) => index - run.start.index)
  return starts.map((start, number) => run.entries.slice(start, starts[number + 1]))
}

/** Q2: a turn takes one message. The first one may begin with one and take one. */
const tooMany = (played: Played, run: RunView): ReadonlyArray<string> =>
  !isOneAtATime(played.world.scenario) ? [] : turnsOf(run).flatMap((turn, number) => {
    const queued = toldIn(played, turn).filter(({ way }) => way === "steering" || way === "followUp")
    return queued.length <= (number === 0 ? 2 : 1)
      ? []
      : [`Q2: ${queued.map(({ token }) => token).join(" ")} are delivered at once`]
  })

/** Q1: a follow-up is only delivered when the agent would stop: not behind tools, unless all of them asked to stop. */
const tooEarly = (played: Played, run: RunView): ReadonlyArray<string> => {
  const turns = turnsOf(run)
  return turns.slice(1).flatMap((turn, number) => {
    const ends = eventsOf(turns[number]!, "tool_execution_end")
    if (ends.every(({ event }) => event.result.terminate === true)) return []
    return toldIn(played, turn).filter(({ way }) => way === "followUp").map(({ token }) =>
      `Q1: ${token} is delivered behind tools`
    )
  })
}

export const checkQueues = (played: Played): ReadonlyArray<string> => [
  ...outOfOrder(played, "steering"),
  ...outOfOrder(played, "followUp"),
  ...inEveryRun(played, [tooMany, tooEarly])
]
