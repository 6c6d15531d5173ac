/** Code of the user, as a scenario describes it. */
import { Effect, Exit } from "effect"
import type { CallContext, ToolOutput } from "../../src/Tools.ts"
import { perform, performOutside } from "./actions.ts"
import { odd } from "./oddities.ts"
import type { Step, Work } from "./types.ts"
import type { Place, World } from "./world.ts"

/** What only tools have. */
type Call = Pick<CallContext, "update" | "runToolCall">

const describe = (place: Place): string => "name" in place ? `${place.kind} ${place.name}` : ""

const promised = (world: World, ms: number, rejects: boolean): Effect.Effect<void> =>
  Effect.promise(() =>
    new Promise<void>((resolve, reject) => {
      world.fork(
        Effect.andThen(world.sleep(ms), Effect.sync(() => rejects ? reject(new Error("rejected")) : resolve()))
      )
    })
  )

const throwOddity = (name: Parameters<typeof odd>[0]): never => {
  // oxlint-disable-next-line typescript/only-throw-error -- code of users throws anything
  throw odd(name)
}

const play = (world: World, place: Place, step: Step, call: Call | undefined): Effect.Effect<unknown, unknown> => {
  switch (step.do) {
    case "sleep": {
      const { cleanup } = step
      const sleep = world.sleep(step.ms)
      return cleanup === undefined ? sleep : Effect.onInterrupt(sleep, () => world.sleep(cleanup))
    }
    case "deaf":
      return Effect.uninterruptible(world.sleep(step.ms))
    case "promise":
      return promised(world, step.ms, step.rejects === true)
    case "yield":
      return Effect.yieldNow
    case "act":
      return step.outside === true
        ? Effect.sync(() => actOutside(world, step, place))
        : perform(world, step.action, describe(place))
    case "background": {
      const steps = Effect.ignoreCause(sequence(world, place, step.steps, call))
      return step.detached
        ? Effect.forkDetach(steps, { startImmediately: true })
        : Effect.forkChild(steps, { startImmediately: true })
    }
    case "fail":
      return Effect.suspend(() => Effect.fail(odd(step.with)))
    case "die":
      return Effect.suspend(() => Effect.die(odd(step.with)))
    case "throw":
      return Effect.sync(() => throwOddity(step.with))
    case "interrupt":
      return Effect.interrupt
    case "update":
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- code of users gives anything
      return call === undefined ? Effect.void : Effect.suspend(() => call.update(odd(step.output) as ToolOutput))
    case "nested":
      return call === undefined
        ? Effect.void
        : call.runToolCall(
          { id: world.nestedId(), name: step.tool, arguments: step.args },
          step.progress === true ? { onUpdate: call.update } : {}
        )
  }
}

export const sequence = (
  world: World,
  place: Place,
  steps: ReadonlyArray<Step>,
  call: Call | undefined
): Effect.Effect<void, unknown> => Effect.forEach(steps, (step) => play(world, place, step, call), { discard: true })

/** Does something with the agent as a plain function can: from outside of the run, without waiting for it. */
const actOutside = (world: World, step: Step & { readonly do: "act" }, place: Place): void => {
  performOutside(world, step.action, `outside ${describe(place)}`)
}

/** Runs what a plain function can do. */
const playSync = (world: World, place: Place, steps: ReadonlyArray<Step>): void => {
  for (const step of steps) {
    if (step.do === "act") actOutside(world, step, place)
    else if (step.do === "fail" || step.do === "die" || step.do === "throw") throwOddity(step.with)
  }
}

/**
 * A call of code of the user: an effect, or, when the work is `sync`, whatever `answer` gives, at once. `wrap` makes an
 * effect of an answer where the place cannot do without.
 */
export const call = <A>(
  world: World,
  place: Place,
  work: Work,
  deadline: boolean,
  answer: () => A,
  tool?: Call
): A | Effect.Effect<A, unknown> => {
  if (work.sync === true) {
    const record = world.begin(place, deadline)
    try {
      playSync(world, place, work.steps)
      const given = answer()
      world.end(record, Exit.void)
      return given
    } catch (error) {
      world.end(record, Exit.die(error))
      throw error
    }
  }
  return Effect.uninterruptibleMask((restore) => {
    const record = world.begin(place, deadline)
    return Effect.onExit(
      Effect.map(restore(sequence(world, place, work.steps, tool)), answer),
      (exit) => Effect.sync(() => world.end(record, exit))
    )
  })
}
