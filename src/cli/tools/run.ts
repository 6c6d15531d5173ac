/**
 * Runs a shell command in the working folder.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tools from "../../Tools.ts"
import { maxBytes, maxLines, plural, tail } from "../cap.ts"
import { Workspace } from "../workspace.ts"

const defaultSeconds = 120
const maxSeconds = 3600

/** What is kept in memory of an output; more than what is shown, because its length in lines is not known before. */
const keptCharacters = 4 * maxBytes

/** How often progress is reported. */
const reportEvery = 100

/** The end of an output, and how long it was. */
class Output {
  #text = ""
  #characters = 0

  add(piece: string): void {
    this.#characters += piece.length
    this.#text += piece
    if (this.#text.length > 2 * keptCharacters) this.#text = this.#text.slice(-keptCharacters)
  }

  get shown(): string {
    const { cut, lines, text } = tail(this.#text.replace(/\n$/, ""))
    return cut || this.#characters > this.#text.length
      ? `[The last ${plural(lines, "line")} of ${this.#characters} characters.]\n${text}`
      : text
  }

  get progress(): string {
    return tail(this.#text.trimEnd(), { lines: 10, bytes: 2000 }).text
  }
}

export const run = Tools.make("run", {
  description:
    `Runs a shell command (sh) in the working folder; output and errors come together, of a long one the last ${maxLines} lines or ${
      maxBytes / 1000
    } kB. There is no input. It is stopped after "timeout" seconds (default ${defaultSeconds}), with everything it started.`,
  parameters: Schema.Struct({
    command: Schema.NonEmptyString,
    timeout: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxSeconds })).annotate({ description: "Seconds" })
    )
  }),
  executionMode: "sequential",
  annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
  execute: Effect.fn("run")(function*({ command, timeout = defaultSeconds }, call) {
    const { root } = yield* Workspace
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const output = new Output()
    let reportAt = 0
    const report = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now < reportAt) return Effect.void
      reportAt = now + reportEvery
      return call.update(output.progress)
    })

    // The scope of the process is that of this effect: at the deadline or an abort its whole group is killed.
    const exitCode = yield* Effect.gen(function*() {
      const child = yield* spawner.spawn(
        ChildProcess.make(command, {
          shell: "/bin/sh",
          cwd: root,
          stdin: "ignore",
          forceKillAfter: "500 millis"
        })
      )
      yield* Stream.runForEach(Stream.decodeText(child.all), (piece) => {
        output.add(piece)
        return report
      })
      return yield* child.exitCode
    }).pipe(Effect.scoped, Effect.timeoutOption(Duration.seconds(timeout)))

    const shown = output.shown
    const withNote = (note: string) => shown === "" ? note : `${shown}\n${note}`
    if (Option.isNone(exitCode)) {
      return Tools.result({
        text: withNote(`[Stopped after ${plural(timeout, "second")}.]`),
        isError: true,
        details: { summary: `stopped after ${timeout} s` }
      })
    }
    const code = exitCode.value
    return Tools.result({
      text: code === 0 ? shown || "[No output.]" : withNote(`[Exit code ${code}.]`),
      isError: code !== 0,
      details: { summary: `exit code ${code}` }
    })
  })
})
