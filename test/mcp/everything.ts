/** The reference server behind a URL. */
import { Deferred, Effect, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { createServer } from "node:net"
import { everything } from "./ask.ts"

/** A port that nobody listens on. */
export const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** Starts the server behind a URL; ready when it says so. */
export const serveHttp = Effect.fnUntraced(function*(port: number) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const child = yield* spawner.spawn(
    ChildProcess.make(process.execPath, [everything, "streamableHttp"], {
      env: { PORT: String(port) },
      extendEnv: true,
      stdin: "ignore"
    })
  )
  const ready = yield* Deferred.make<void>()
  yield* Effect.forkScoped(Stream.runDrain(child.stdout))
  yield* Effect.forkScoped(
    Stream.runForEach(
      Stream.decodeText(child.stderr),
      (text) => text.includes("listening") ? Deferred.succeed(ready, undefined) : Effect.void
    )
  )
  yield* Deferred.await(ready)
  return child
})
