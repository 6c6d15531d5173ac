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
import { exitCodes } from "./exitCode.ts"

/**
 * What ends the program from outside its effects; the scope puts the terminal in order and ends what tools have started.
 *
 * - A reader that goes, as in `| head`, has what it wanted.
 * - A terminal that is closed ends it as Ctrl-C does.
 * - What is thrown where no effect waits for it, in a timer of the screen for one, is a defect.
 */
const ended = Effect.callback<number>((resume) => {
  process.stdout.on("error", () => resume(Effect.succeed(exitCodes.completed)))
  process.stderr.on("error", () => {})
  process.on("SIGHUP", () => resume(Effect.interrupt))
  const onError = (error: unknown) => resume(Effect.die(error))
  process.on("uncaughtException", onError).on("unhandledRejection", onError)
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
