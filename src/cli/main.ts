#!/usr/bin/env node
/**
 * The program `effect-pi`. Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 a limit was reached, 130 aborted.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import * as Stdio from "effect/Stdio"
import { main } from "./command.ts"

// A reader that has gone, as in `| head`, is no failure.
process.stdout.on("error", () => {})

/**
 * What is thrown where no effect waits for it, in a timer of the screen for one, ends the program as a defect of its own would;
 * and a terminal that is closed ends it as Ctrl-C does: the scope puts the terminal in order and ends what tools have started.
 */
const ended = Effect.callback<never>((resume) => {
  const onError = (error: unknown) => resume(Effect.die(error))
  process.on("uncaughtException", onError).on("unhandledRejection", onError).on(
    "SIGHUP",
    () => resume(Effect.interrupt)
  )
})

Effect.flatMap(Stdio.Stdio, (stdio) => Effect.flatMap(stdio.args, main)).pipe(
  Effect.raceFirst(ended),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({
    teardown: (exit, onExit) =>
      Exit.isSuccess(exit) && typeof exit.value === "number"
        ? onExit(exit.value)
        : Runtime.defaultTeardown(exit, onExit)
  })
)
