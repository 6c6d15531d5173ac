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

Effect.flatMap(Stdio.Stdio, (stdio) => Effect.flatMap(stdio.args, main)).pipe(
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({
    teardown: (exit, onExit) =>
      Exit.isSuccess(exit) && typeof exit.value === "number"
        ? onExit(exit.value)
        : Runtime.defaultTeardown(exit, onExit)
  })
)
