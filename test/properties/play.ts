/** Plays a scenario under a test clock and tells everything that happened. */
import { Effect, Layer, Scope, Stream } from "effect"
import type { AgentEvent } from "../../src/Events.ts"
import { Agent, Budget, StreamFn } from "../../src/index.ts"
import { freeze, perform, performOutside } from "./actions.ts"
import { makeModel } from "./model.ts"
import { hooksLayer, makeTools, schedule, subscribing } from "./stage.ts"
import { makeTime } from "./time.ts"
import type { Scenario } from "./types.ts"
import { currentActivity, type Snapshot, World, written } from "./world.ts"

/** Longer than everything in a scenario that ends takes together. */
const long = 10 * 60_000

/** What an abort may take beyond its grace periods. */
const margin = 1000

/** A scenario that was played. */
export interface Played {
  readonly world: World
  /** When the timeline was over. */
  readonly timelineEnd: number
  /** Whether all runs ended by themselves. */
  readonly endedByItself: boolean
  /** Whether the abort at the end stopped what did not. */
  readonly stopped: boolean
  /** What the agent held when it was idle, and after everything that was left behind had ended. */
  readonly settled: Snapshot
  readonly end: Snapshot
  /** Sleeps of the library while the agent was idle. */
  readonly timers: number
  /** Fibers that were alive at the very end. */
  readonly fibers: number
  /** Events whose content changed after they were handed out. */
  readonly changed: ReadonlyArray<string>
}

/** How a scenario is played. `late`: what an event looks like is read when everything is over. */
export interface PlayOptions {
  readonly late?: boolean
}

/** The listener that is told of every event first. */
const recorder = (world: World, late: boolean) => (event: AgentEvent): void => {
  const activity = currentActivity()
  if (event.type === "agent_start") world.started = { activity, open: true }
  else if (event.type === "agent_end") world.started = { ...world.started, open: false }
  world.log({ kind: "event", event, activity, copy: late ? undefined : written(event) })
}

const lastListener = (world: World) => {
  const heard = world.hears("last")
  return (event: AgentEvent): void => {
    heard.push(event)
  }
}

/** Reads the events as they come until the agent is closed. */
const observe = (world: World): void => {
  const { observer } = world.scenario
  if (observer === undefined) return
  const { every, ...options } = observer
  world.fork(Stream.runForEach(world.agent.observe(options), (event) => {
    world.observed.push(event)
    return every > 0 ? world.sleep(every) : Effect.void
  }))
}

const setUp = (world: World, late: boolean): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { budget = {}, listeners, options, stored, tools } = world.scenario
    world.tools = makeTools(world)
    world.scope = yield* Scope.make()
    world.agent = yield* Agent.make({
      ...options,
      toolRetry: options.toolRetry === undefined ? undefined : schedule(options.toolRetry),
      tools: world.tools.filter((_, index) => tools[index]!.spare !== true),
      messages: freeze(stored)
    }).pipe(
      Effect.provideService(Scope.Scope, world.scope),
      Effect.provide(Layer.mergeAll(
        hooksLayer(world),
        Layer.succeed(StreamFn.StreamFn, makeModel(world)),
        Budget.layer(budget)
      )),
      Effect.orDie
    )
    yield* world.agent.subscribe(recorder(world, late))
    const { subscribe, unsubscribe } = subscribing(world)
    world.subscribe = subscribe
    world.unsubscribe = unsubscribe
    for (const [index, listener] of listeners.entries()) {
      if (listener.later !== true) yield* subscribe(index)
    }
    yield* world.agent.subscribe(lastListener(world))
    observe(world)
    // It listens before anything happens, however often its fiber lets others go on.
    yield* Effect.repeat(Effect.yieldNow, { times: 50 })
    world.snapshot("idle")
  })

const playTimeline = async (world: World): Promise<void> => {
  const { time } = world
  for (const { action, at, joined } of world.scenario.timeline) {
    if (joined !== true) {
      await time.advanceTo(Math.max(at, time.now()))
      if (!world.busy) world.snapshot("idle")
    }
    performOutside(world, action, "timeline")
  }
  await time.settle()
}

const runsBegun = (world: World): number =>
  world.entries.filter((entry) => entry.kind === "event" && entry.event.type === "agent_start").length

/** Lets a scenario come to its end, whatever it left open. */
const finish = async (world: World): Promise<Omit<Played, "world" | "timelineEnd" | "changed">> => {
  const { time } = world
  await time.advanceTo(time.now() + long)
  const endedByItself = !world.busy
  const begun = runsBegun(world)
  if (!endedByItself) {
    performOutside(world, { do: "abort" }, "end")
    await time.advanceTo(time.now() + 3 * (world.scenario.options.gracePeriod ?? 1000) + margin)
  }
  // What was left behind may have begun another run, which nobody aborted.
  const stopped = !world.busy || runsBegun(world) > begun
  const timers = time.sleeping() - world.sleeps
  const settled = world.snapshot("settled")
  world.release()
  await time.advanceTo(time.now() + long)
  if (!world.closed) {
    world.fork(perform(world, { do: "close" }, "end"))
    await time.advanceTo(time.now() + long)
  }
  return { endedByItself, stopped, timers, settled, end: world.snapshot("end"), fibers: time.fibers() }
}

/** Plays a scenario. Throws when the agent cannot be made or never comes to rest. */
export const play = async (scenario: Scenario, { late = false }: PlayOptions = {}): Promise<Played> => {
  let note: (level: string, text: string) => void = () => {}
  const time = await makeTime((level, text) => note(level, text), scenario.yieldAfter)
  const world = new World(scenario, time)
  note = (level, text) => world.log({ kind: "log", level, text })
  try {
    await time.run(setUp(world, late))
    await playTimeline(world)
    const timelineEnd = time.now()
    const finished = await finish(world)
    const changed = world.entries.flatMap((entry) =>
      entry.kind === "event" && entry.copy !== undefined && written(entry.event) !== entry.copy
        ? [`${entry.copy} became ${written(entry.event)}`]
        : []
    )
    return { world, timelineEnd, ...finished, changed }
  } finally {
    await time.close().catch(() => {})
  }
}
