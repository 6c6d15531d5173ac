/**
 * Finds the lines of texts that match a pattern, in a thread that ends with the scope, whatever the pattern is doing.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Worker } from "node:worker_threads"
import type { Hit, Question, Setup } from "./matchWorker.ts"

/** The thread ended by itself. */
export class MatcherLost extends Data.TaggedError("MatcherLost")<{ readonly message: string }> {}

export interface Matcher {
  /** The first lines that match, one text at a time. */
  readonly hitsIn: (text: string, most: number) => Effect.Effect<ReadonlyArray<Hit>, MatcherLost>
}

// The bundle has the thread in a file beside the program (scripts/bundle.mjs).
const workerFile = import.meta.url.endsWith(".ts") ? "matchWorker.ts" : "cli-matchWorker.js"

export const makeMatcher = (setup: Setup): Effect.Effect<Matcher, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        // An error that comes when nobody waits for an answer is met by the next question; without a listener it would be thrown.
        new Worker(new URL(workerFile, import.meta.url), { workerData: setup, execArgv: [] }).on("error", () => {})
      ),
      (worker) => Effect.promise(() => worker.terminate())
    ),
    (worker) => ({
      hitsIn: (text, most) =>
        Effect.callback((resume) => {
          const onHits = (hits: ReadonlyArray<Hit>) => answer(Effect.succeed(hits))
          const onError = (error: Error) => lost(error.message)
          const onExit = () => lost("its thread ended")
          const lost = (why: string) =>
            answer(Effect.fail(new MatcherLost({ message: `The search broke off: ${why}. Try a simpler pattern.` })))
          const forget = () => worker.off("message", onHits).off("error", onError).off("exit", onExit)
          const answer = (effect: Effect.Effect<ReadonlyArray<Hit>, MatcherLost>) => {
            forget()
            resume(effect)
          }
          worker.on("message", onHits).on("error", onError).on("exit", onExit)
          // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread of Node has no origin
          worker.postMessage({ text, most } satisfies Question)
          return Effect.sync(forget)
        })
    })
  )
