/**
 * The program in a real terminal: a tmux server of its own, and what its screen shows.
 */
import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
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
  /** Waits until the screen shows a text, or shows it no more, for half a minute at most; gives the screen. */
  readonly shows: (text: string | RegExp) => Effect.Effect<string>
  readonly showsNot: (text: string | RegExp) => Effect.Effect<string>
  readonly resize: (columns: number, rows: number) => Effect.Effect<void>
}

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`

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
  const words = [process.execPath, yield* programFile, ...(options.args ?? [])].map(quoted).join(" ")
  const { columns = 90, rows = 40 } = options
  yield* Effect.acquireRelease(
    tmux(
      "new-session",
      "-d",
      "-x",
      String(columns),
      "-y",
      String(rows),
      // The terminal is as the program leaves it: `stty` says whether it is as it was.
      `${words}; echo EXIT $?; stty -a | grep -o -e '-\\?icanon' -e '-\\?echo '; exec sleep 600`
    ),
    () => tmux("kill-server")
  )
  const screen = tmux("capture-pane", "-p")
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
    shows: (text) => until(`showed ${String(text)}`, has(text)),
    showsNot: (text) => until(`stopped to show ${String(text)}`, (shown) => !has(text)(shown)),
    resize: (width, height) => Effect.asVoid(tmux("resize-window", "-x", String(width), "-y", String(height)))
  }
  yield* terminal.shows("Enter sends")
  return terminal
})
