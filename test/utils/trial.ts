/** An agent on a script, watched and checked against the invariants, in all the settings a fault can depend on. */
import { assert } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, type Stream } from "effect"
import { TestClock } from "effect/testing"
import { type Agent, Hooks, Messages, StreamFn, type Tools } from "../../src/index.ts"
import type { RunResult } from "../../src/RunResult.ts"
import { ScriptedModel, Transcript } from "../../src/testing/index.ts"
import { Recorder, showAll } from "./events.ts"
import { violations } from "./invariants.ts"
import { makeAgent, subscribe } from "./leaks.ts"

/** Who listens: nobody, one that answers at once, one that lets others run first. */
export type Audience = "nobody" | "plain" | "waiting"

/** What a test supplies. */
export interface Setting extends Omit<Agent.Options, "tools"> {
  readonly responses?: ReadonlyArray<ScriptedModel.Response | ScriptedModel.Responder>
  /** Answers the requests beyond them. */
  readonly otherwise?: ScriptedModel.Response | ScriptedModel.Responder
  /** Wraps the scripted model. */
  readonly wrap?: (
    stream: Stream.Stream<StreamFn.StreamEvent, StreamFn.StreamError>,
    request: StreamFn.StreamRequest
  ) => Stream.Stream<StreamFn.StreamEvent, StreamFn.StreamError>
  readonly tools?: ReadonlyArray<Tools.Tool>
  readonly hooks?: ReadonlyArray<Hooks.Hook>
  /** Default: `waiting`. */
  readonly audience?: Audience
}
