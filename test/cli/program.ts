/**
 * The program in a process of its own, in a folder of its own, with an environment that has no key.
 */
import { Effect, FileSystem, Path, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = new URL("../..", import.meta.url)

export const programFile = Effect.flatMap(Path.Path, (path) => path.fromFileUrl(new URL("src/cli/main.ts", root)))

/** A folder with a few files and a link that leads out of it. */
export const makeFolder = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const around = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const folder = path.join(around, "work")
  yield* fs.makeDirectory(path.join(folder, "src"), { recursive: true })
  yield* fs.writeFileString(path.join(folder, "notes.md"), "one\ntwo\nthree\n")
  yield* fs.writeFileString(path.join(folder, "src", "a.ts"), "export const a = 1\n")
  yield* fs.writeFileString(path.join(around, "secret.txt"), "the secret\n")
  yield* fs.symlink(around, path.join(folder, "way-out"))
  yield* fs.symlink(path.join(around, "unborn.txt"), path.join(folder, "to-nothing"))
  return { around, folder, fs, path }
})

export const bareEnv = (folder: string): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: folder,
  TERM: "xterm-256color",
  LANG: "C.UTF-8",
  // Each process would compile the same files again: a third of the time it takes to start.
  NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache")
})

interface Options {
  readonly env?: Record<string, string>
  readonly input?: string
}

export const start = Effect.fnUntraced(function*(folder: string, args: ReadonlyArray<string>, options: Options = {}) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  return yield* spawner.spawn(
    ChildProcess.make(process.execPath, [yield* programFile, ...args], {
      cwd: folder,
      stdin: options.input === undefined ? "ignore" : Stream.encodeText(Stream.make(options.input)),
      env: { ...bareEnv(folder), ...options.env }
    })
  )
})

type Child = Effect.Success<ReturnType<typeof start>>

const ended = Effect.fnUntraced(function*(child: Child) {
  const text = (stream: typeof child.stdout) => Stream.mkString(Stream.decodeText(stream))
  const [out, err] = yield* Effect.all([text(child.stdout), text(child.stderr)], { concurrency: 2 })
  return { code: yield* child.exitCode, out, err }
})

export const run = Effect.fnUntraced(function*(folder: string, args: ReadonlyArray<string>, options?: Options) {
  return yield* ended(yield* start(folder, args, options))
})

/** Runs a line of the shell, whose `$0` and `$@` are the words. */
export const inShell = Effect.fnUntraced(function*(folder: string, line: string, ...words: ReadonlyArray<string>) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const options = { cwd: folder, stdin: "ignore", env: bareEnv(folder) } as const
  return yield* ended(yield* spawner.spawn(ChildProcess.make("sh", ["-c", line, ...words], options)))
})
