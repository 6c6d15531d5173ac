/**
 * The program in a real terminal: a tmux server of its own, and what its screen shows.
 */
import { assert } from "@effect/vitest"
import { Effect, FileSystem, Path, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { spawnSync } from "node:child_process"
import { bareEnv, programFile } from "./program.ts"

export const hasTmux = spawnSync("tmux", ["-V"]).status === 0

let servers = 0

export interface Terminal {
  /** Types a text as it is. */
  readonly type: (text: string) => Effect.Effect<void>
  /** Presses keys, in tmux's words. */
  readonly press: (...keys: ReadonlyArray<string>) => Effect.Effect<void>
  readonly screen: Effect.Effect<string>
  /** Everything the program wrote to the terminal, byte for byte. */
  readonly output: Effect.Effect<string>
  /** Waits until the screen shows a text, or shows it no more, for half a minute at most; gives the screen. */
  readonly shows: (text: string | RegExp) => Effect.Effect<string>
  readonly showsNot: (text: string | RegExp) => Effect.Effect<string>
  readonly resize: (columns: number, rows: number) => Effect.Effect<void>
  /** Sends a signal to the program. */
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Waits for the end of the program, and for a terminal that is as it was before. */
  readonly ends: (exitCode: number) => Effect.Effect<string>
}

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`

/** What a program may change of a terminal, and how it takes that back. */
const modes = [
  ["\u001B[?25l", "\u001B[?25h", "the cursor"],
  ["\u001B[?2004h", "\u001B[?2004l", "bracketed paste"],
  ["\u001B[>7u", "\u001B[<u", "the keyboard protocol"],
  ["\u001B[>4;2m", "\u001B[>4;0m", "the other keys"],
  ["\u001B[?2026h", "\u001B[?2026l", "the synchronized output"]
] as const

/** Starts the program; when it ends, the screen says `EXIT` and its exit code. */
export const open = Effect.fnUntraced(function*(folder: string, options: {
  readonly args?: ReadonlyArray<string>
  readonly env?: Record<string, string>
  readonly columns?: number
  readonly rows?: number
} = {}) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const socket = `effect-pi-test-${process.pid}-${++servers}`
  const tmux = (...args: ReadonlyArray<string>): Effect.Effect<string> =>
    spawner.spawn(
      ChildProcess.make("tmux", ["-L", socket, "-f", "/dev/null", ...args], {
        cwd: folder,
        stdin: "ignore",
        detached: false,
        env: { ...bareEnv(folder), ...options.env }
      })
    ).pipe(
      Effect.flatMap((child) => Stream.mkString(Stream.decodeText(child.stdout))),
      Effect.scoped,
      Effect.orDie
    )
  const path = yield* Path.Path
  const fs = yield* FileSystem.FileSystem
  const own = yield* fs.makeTempDirectoryScoped()
  const pidFile = path.join(own, "pid")
  const outputFile = path.join(own, "output")
  // The program is started by a key, when everything it writes is recorded. The terminal is as the program leaves it: `stty`
  // says whether it is as it was.
  const script = path.join(own, "script")
  yield* fs.writeFileString(
    script,
    `read go
sh -c 'echo $$ > "$0"; exec "$@"' ${
      [pidFile, process.execPath, yield* programFile, ...options.args ?? []].map(quoted).join(" ")
    }
echo EXIT $?
stty -a | grep -o -e '-\\?icanon' -e '-\\?echo '
exec sleep 600
`
  )
  const { columns = 90, rows = 40 } = options
  const newSession = ["new-session", "-d", "-x", String(columns), "-y", String(rows), `exec sh ${quoted(script)}`]
  yield* Effect.acquireRelease(
    tmux(...newSession, ";", "pipe-pane", `cat > ${quoted(outputFile)}`, ";", "send-keys", "Enter"),
    () => tmux("kill-server")
  )
  const screen = tmux("capture-pane", "-p")
  const output = Effect.orDie(fs.readFileString(outputFile))
  const until = (what: string, holds: (shown: string) => boolean) =>
    Effect.gen(function*() {
      for (let tries = 0; tries < 600; tries++) {
        const shown = yield* screen
        if (holds(shown)) return shown
        yield* Effect.sleep("50 millis")
      }
      return assert.fail(`the screen never ${what}:\n${yield* screen}`)
    })
  const has = (text: string | RegExp) => (shown: string) =>
    typeof text === "string" ? shown.includes(text) : text.test(shown)
  const terminal: Terminal = {
    type: (text) => Effect.asVoid(tmux("send-keys", "-l", text)),
    press: (...keys) => Effect.asVoid(tmux("send-keys", ...keys)),
    screen,
    output,
    shows: (text) => until(`showed ${String(text)}`, has(text)),
    showsNot: (text) => until(`stopped to show ${String(text)}`, (shown) => !has(text)(shown)),
    resize: (width, height) => Effect.asVoid(tmux("resize-window", "-x", String(width), "-y", String(height))),
    kill: (signal) =>
      Effect.flatMap(
        Effect.orDie(fs.readFileString(pidFile)),
        (pid) => Effect.sync(() => process.kill(Number(pid), signal))
      ),
    ends: (exitCode) =>
      Effect.gen(function*() {
        const shown = yield* until(
          `showed the end with ${exitCode}`,
          has(new RegExp(String.raw`EXIT ${exitCode}\s+(?:icanon\s+echo|echo\s+icanon)`))
        )
        const written = yield* output
        for (const [on, off, what] of modes) {
          assert.isAtLeast(written.lastIndexOf(on), 0, `${what} was changed`)
          assert.isAbove(written.lastIndexOf(off), written.lastIndexOf(on), `${what} is as it was`)
        }
        return shown
      })
  }
  yield* terminal.shows(/Enter sends|working /)
  return terminal
})
