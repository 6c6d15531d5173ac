/**
 * A server for the contract of a `StreamFn`, with Node: plays one exchange for each request.
 */
import { Deferred, Effect } from "effect"
import { createServer, type ServerResponse } from "node:http"
import { setTimeout } from "node:timers/promises"
import type { StreamFnContract } from "../../src/testing/index.ts"

/** Writes a piece and waits until it has gone out, so that it is read on its own. */
const write = (response: ServerResponse, piece: string | Uint8Array): Promise<void> =>
  new Promise((resolve) => response.write(piece, () => setImmediate(resolve)))

export const serve: StreamFnContract.CompletionsSubject["serve"] = (exchanges) =>
  Effect.gen(function*() {
    const asked: Array<{ readonly body: unknown }> = []
    const open: Array<Deferred.Deferred<void>> = []
    const holding = yield* Deferred.make<void>()

    const play = async (exchange: StreamFnContract.Exchange, response: ServerResponse): Promise<void> => {
      const { body, headers = { "content-type": "text/event-stream" }, silent, status = 200 } = exchange
      if (silent !== true) response.writeHead(status, headers).flushHeaders()
      for (const piece of body) {
        if (typeof piece === "string" || piece instanceof Uint8Array) await write(response, piece)
        else if (piece.type === "pause") await setTimeout(piece.millis)
        else if (piece.type === "cut") return void response.destroy()
        else return void Deferred.doneUnsafe(holding, Effect.void)
      }
      response.end()
    }

    const server = createServer((request, response) => {
      const closed = Deferred.makeUnsafe<void>()
      open.push(closed)
      response.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
      let text = ""
      request.setEncoding("utf8").on("data", (piece: string) => text += piece).on("end", () => {
        const exchange = exchanges[asked.length] ?? exchanges.at(-1)!
        asked.push({ body: JSON.parse(text) })
        void play(exchange, response)
      })
    })

    const port = yield* Effect.acquireRelease(
      Effect.callback<number>((resume) => {
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
        })
      }),
      () =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    return {
      url: `http://127.0.0.1:${port}/v1`,
      asked,
      holding: Deferred.await(holding),
      closed: Effect.suspend(() => Effect.forEach(open, (each) => Deferred.await(each), { discard: true }))
    }
  })
