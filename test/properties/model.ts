/** The model of a scenario: it plays one response for each request, whatever they are worth. */
import { Cause, Effect, Exit, type Pull, Stream } from "effect"
import { ModelError } from "../../src/Errors.ts"
import type { StreamEvent, StreamFn } from "../../src/StreamFn.ts"
import type { Response } from "./types.ts"
import { sequence } from "./works.ts"
import { currentActivity, type Place, type WorkRecord, type World } from "./world.ts"

type Events = readonly [StreamEvent, ...Array<StreamEvent>]

/** What requests beyond the script get. */
const later: Response = {
  chunks: [{
    after: 1,
    events: [
      { type: "start" },
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: "fine" },
      { type: "text_end", contentIndex: 0 },
      { type: "done" }
    ]
  }],
  end: "done"
}

const failure = new ModelError({ reason: "Network", message: "The connection broke" })

const ending = (end: Response["end"], world: World): Effect.Effect<never, ModelError | Cause.Done> => {
  switch (end) {
    case "open":
      return Effect.andThen(world.sleep("forever"), Cause.done())
    case "fail":
      return Effect.fail(failure)
    case "die":
      return Effect.die(new Error("The provider has a bug"))
    case "interrupt":
      return Effect.interrupt
    default:
      return Cause.done()
  }
}

const pullOf = (
  world: World,
  place: Place,
  { chunks, end }: Response,
  onEnd: () => void
): Pull.Pull<Events, ModelError> => {
  let next = 0
  const pull: Pull.Pull<Events, ModelError> = Effect.suspend(() => {
    const chunk = chunks[next++]
    if (chunk === undefined) {
      onEnd()
      return ending(end, world)
    }
    const waiting = chunk.after > 0 ? world.sleep(chunk.after) : Effect.void
    const steps = chunk.steps === undefined ? Effect.void : asModel(sequence(world, place, chunk.steps, undefined))
    return Effect.andThen(Effect.andThen(waiting, steps), () => {
      const [first, ...rest] = chunk.events
      return first === undefined ? pull : Effect.succeed<Events>([first, ...rest])
    })
  })
  return pull
}

/** Whatever steps fail with is a failure of the model. */
const asModel = (steps: Effect.Effect<void, unknown>): Effect.Effect<void, ModelError> =>
  Effect.mapError(steps, (cause) => new ModelError({ reason: "Unknown", message: "A step failed", cause }))

const play = (world: World, name: string, response: Response): Stream.Stream<StreamEvent, ModelError> => {
  const { eventTimeout, firstEventTimeout } = world.scenario.options
  const place: Place = { kind: "stream", name }
  const { cleanup, setup } = response
  let record: WorkRecord | undefined
  let read = false
  const onEnd = () => {
    read = true
  }
  const opened = Stream.unwrap(Effect.suspend(() => {
    record = world.begin(place, eventTimeout !== undefined || firstEventTimeout !== undefined)
    const opening = setup === undefined ? Effect.void : asModel(sequence(world, place, setup, undefined))
    return Effect.map(opening, () => Stream.fromPull(Effect.succeed(pullOf(world, place, response, onEnd))))
  }))
  return Stream.onExit(opened, (exit) => {
    if (record === undefined) return Effect.void
    const work = record
    const closing = cleanup === undefined ? Effect.void : world.sleep(cleanup)
    const ended = Effect.sync(() => world.end(work, exit))
    // Who stops reading has all that is wanted, and does not wait for the closing.
    return Exit.isSuccess(exit) && !read ? Effect.andThen(ended, closing) : Effect.andThen(closing, ended)
  })
}

export const makeModel = (world: World): StreamFn["Service"] => {
  let count = 0
  return {
    stream: ({ messages, toolChoice, tools }) => {
      const response = world.scenario.model[count] ?? later
      const name = String(++count)
      world.log({
        kind: "request",
        activity: currentActivity(),
        toolChoice,
        tools: tools.map((tool) => tool.name),
        messages: messages.slice()
      })
      if (response.opening === "throws") throw new Error("The provider cannot be reached")
      return play(world, name, response)
    }
  }
}
