/** Plays scenarios (SCENARIO.md) against this library, under a test clock, and gives their traces. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Agent from "../../src/Agent.ts"
import { direct, errorText, type Root, stateOf } from "./actions.ts"
import { makeVirtualTime } from "./clock.ts"
import { normMessages } from "./normalize.mjs"
import { scriptedHooks } from "./scriptedHooks.ts"
import { scriptedModel } from "./scriptedModel.ts"
import { fillRegistry } from "./scriptedTools.ts"
import { type Outcome, Stage, wait } from "./stage.ts"
import type { FinalState, Trace } from "./trace.ts"
import type { Scenario } from "./types.ts"
import { modelIn } from "./values.mjs"

const maxWakeUps = 20_000

type AnyAgent = Agent.Agent["Service"]

const makeAgent = (stage: Stage) => {
  const { messages, model, tools, ...options } = stage.scenario.agent
  return Effect.suspend(() =>
    Agent.make({
      ...options,
      model: modelIn(model ?? "m1"),
      tools: (tools ?? []).map(stage.tool),
      messages: stage.messages(messages)
    })
  )
}

/** Every action fails with the text of the error that kept the agent from being made. */
const refuse = (stage: Stage, error: string): FinalState => {
  for (const action of stage.scenario.timeline) {
    stage.recording.actions.push({ at: action.at, do: action.do, outcome: "rejected", t: action.at, error })
  }
  const { model, thinkingLevel } = stage.scenario.agent
  return {
    isStreaming: false,
    pendingToolCalls: [],
    model: model ?? "m1",
    thinkingLevel: thinkingLevel ?? "off",
    systemPrompt: "",
    tools: [],
    messages: [],
    steering: [],
    followUp: []
  }
}

/** Starts a fiber for every action of the timeline; it sleeps until the action is due. */
const schedule = (stage: Stage, root: Root): void => {
  for (const action of stage.scenario.timeline) {
    const outcome: Outcome = { at: action.at, do: action.do }
    stage.recording.actions.push(outcome)
    Effect.runForkWith(root)(Effect.andThen(wait(action.at), Effect.suspend(() => stage.perform(action, outcome))))
  }
}

const finalState = Effect.fnUntraced(function*(agent: AnyAgent) {
  const { messages, ...state } = yield* stateOf(agent)
  const { followUps, steering } = yield* agent.queued
  return {
    ...state,
    messages: normMessages(messages),
    steering: normMessages(steering),
    followUp: normMessages(followUps)
  }
})

const traceOf = ({ recording, scenario }: Stage, final: FinalState): Trace => {
  const { inner, listeners, ...lists } = recording
  // As JSON: what is still at work must not change the trace, and what is undefined is absent.
  return JSON.parse(JSON.stringify({
    scenario: scenario.name,
    ...lists,
    ...(listeners.length > 0 && { listeners }),
    ...(inner.length > 0 && { inner }),
    final,
    anomalies: []
  }))
}

export const playScenario = async (scenario: Scenario): Promise<Trace> => {
  const time = await makeVirtualTime()
  const scope = Scope.makeUnsafe()
  const stage = new Stage(scenario, time.now)
  fillRegistry(stage)
  const layer = Layer.merge(scriptedModel(stage), scriptedHooks(stage))
  const services = await Effect.runPromiseWith(time.context)(Layer.buildWithScope(layer, scope))
  const root: Root = Context.merge(time.context, services).pipe(Context.add(Scope.Scope, scope))
  const made = await Effect.runPromiseWith(root)(Effect.exit(makeAgent(stage)))
  try {
    if (Exit.isFailure(made)) {
      if (!Cause.hasFails(made.cause)) throw Cause.squash(made.cause)
      return traceOf(stage, refuse(stage, errorText(made.cause)))
    }
    stage.perform = await Effect.runPromiseWith(root)(direct(stage, made.value, root))
    schedule(stage, root)
    await time.settle()
    for (let wakeUps = 0, due = time.nextDue(); due !== undefined; wakeUps++, due = time.nextDue()) {
      if (wakeUps > maxWakeUps) throw new Error(`more than ${maxWakeUps} instants at which something happens`)
      await time.advanceTo(due)
    }
    return traceOf(stage, await Effect.runPromiseWith(root)(finalState(made.value)))
  } finally {
    // Not awaited: what ignores its interruption would sleep for good in a time that stands still.
    Effect.runForkWith(time.context)(Scope.close(scope, Exit.void))
    await time.close()
  }
}
