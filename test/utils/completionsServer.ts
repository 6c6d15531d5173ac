/**
 * A server on 127.0.0.1 that plays scripted answers, byte for byte, and knows which of them are still open.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, type Scope } from "effect"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import { setTimeout } from "node:timers/promises"
import type { StreamFnContract } from "../../src/testing/index.ts"

export * from "../../src/internal/contract/chunks.ts"

export type Reply = StreamFnContract.Exchange

export interface Asked {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly [field: string]: unknown }
}

export interface CompletionsServer {
  /** With `/v1`. */
  readonly url: string
  readonly asked: ReadonlyArray<Asked>
  /** How many connections were made. */
  readonly connections: () => number
  /** A held answer is on its way. */
  readonly holding: Effect.Effect<void>
  /** No answer is open any more. */
  readonly closed: Effect.Effect<void>
}

const events = { "content-type": "text/event-stream; charset=utf-8" }

/** Writes a piece and waits until it has gone out. */
const write = (response: ServerResponse, piece: string | Uint8Array): Promise<void> =>
  new Promise((resolve) => response.write(piece, () => setImmediate(resolve)))

/** Answers one request after the other; the last reply answers all that follow. */
export const serve = (
  ...replies: ReadonlyArray<Reply>
): Effect.Effect<CompletionsServer, never, Scope.Scope> =>
  Effect.gen(function*() {
    const asked: Array<Asked> = []
    const open: Array<Deferred.Deferred<void>> = []
    const holding = yield* Deferred.make<void>()
    let connections = 0

    const play = async ({ body, headers, silent, status }: Reply, response: ServerResponse): Promise<void> => {
      if (silent !== true) {
        response.writeHead(status ?? 200, headers ?? events)
        response.flushHeaders()
      }
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
        const reply = replies[Math.min(asked.length, replies.length - 1)]
        assert.isDefined(reply, "a server without replies")
        asked.push({
          path: request.url ?? "",
          headers: request.headers,
          body: JSON.parse(text) as Asked["body"] // oxlint-disable-line typescript/no-unsafe-type-assertion -- requests are JSON objects
        })
        void play(reply, response)
      })
    }).on("connection", () => connections++)

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
      connections: () => connections,
      holding: Deferred.await(holding),
      closed: Effect.suspend(() => Effect.forEach(open, (each) => Deferred.await(each), { discard: true }))
    }
  })

/** As the contract of a `StreamFn` asks for it. */
export const serveAll: StreamFnContract.CompletionsSubject["serve"] = (exchanges) => serve(...exchanges)
