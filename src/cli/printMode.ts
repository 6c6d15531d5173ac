/**
 * One run without a screen: the answer on standard output, what happens meanwhile on standard error; or all events as JSON,
 * one a line.
 */
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../Events.ts"
import { toWire } from "../internal/wireEvent.ts"
import { text } from "../Messages.ts"
import { callLine, outcomeText, resultText, runLine, summaryOf } from "./describe.ts"
import { exitCodeOf } from "./exitCode.ts"
import { oneLine, plainJson, plainText, wholeLine } from "./plainText.ts"
import { nameOf } from "./provider.ts"
import type { Session } from "./session.ts"
import { version } from "./version.ts"
import { Workspace } from "./workspace.ts"

/** Writes to standard output or error. A reader that has gone, as in `| head`, is no failure. */
export const writer = Effect.map(Stdio.Stdio, (stdio) => {
  const open = { endOnDone: false }
  return {
    out: (text: string) => Effect.ignore(Stream.run(Stream.succeed(text), stdio.stdout(open))),
    err: (text: string) => Effect.ignore(Stream.run(Stream.succeed(text), stdio.stderr(open)))
  }
})

/** Text: an answer is written when it is complete, so that nothing is written that the model takes back. */
const textListener = (write: Effect.Success<typeof writer>) => (event: AgentEvent) => {
  switch (event.type) {
    case "message_end": {
      if (event.message.role !== "assistant") return
      const answer = plainText(text(event.message)).trim()
      return answer === "" ? undefined : write.out(`${answer}\n`)
    }
    case "message_update": {
      const { assistantMessageEvent: update } = event
      return update.type === "retract"
        ? write.err(
          `· the model begins again${update.errorMessage === undefined ? "" : `: ${oneLine(update.errorMessage)}`}\n`
        )
        : undefined
    }
    case "tool_execution_end": {
      const { isError, result, toolName } = event
      const outcome = summaryOf(result) ?? (isError ? oneLine(resultText(result)).slice(0, 200) : "done")
      return write.err(`· ${wholeLine(toolName)}: ${isError ? "failed: " : ""}${outcome}\n`)
    }
    case "tool_execution_start":
      return write.err(`· ${wholeLine(event.toolName)} ${callLine(event.toolName, event.args)}\n`)
    default:
      return
  }
}

/** Runs one prompt and gives the exit code. */
export const printRun = Effect.fn("printRun")(function*(
  session: Session,
  prompt: string,
  options: { readonly json: boolean }
) {
  const { agent } = session
  const write = yield* writer
  const { root } = yield* Workspace
  const { because, model } = session.provider()
  if (options.json) {
    const { id, provider = "unknown" } = model
    const line = (value: object) => write.out(`${plainJson(value)}\n`)
    yield* line({ type: "session", version, provider, model: id, cwd: root })
    yield* agent.subscribe((event) => line(toWire(event)))
  } else {
    yield* write.err(`${oneLine(`${nameOf(session.provider())} (${because})`)}\n`)
    yield* agent.subscribe(textListener(write))
  }
  const run = yield* agent.prompt(prompt)
  if (!options.json) {
    const problem = outcomeText(run.outcome)
    if (problem !== undefined) yield* write.err(`effect-pi: ${problem}\n`)
    yield* write.err(`· ${runLine(run)}\n`)
  }
  return exitCodeOf(run.outcome)
})
