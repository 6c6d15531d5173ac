/**
 * A server on 127.0.0.1 that plays scripted answers, byte for byte, and knows which of them are still open.
 */
import { assert } from "@effect/vitest"
import { Deferred, Effect, type Scope } from "effect"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"

/** The connection breaks here. */
export const cut = Symbol("cut")

/** Nothing more comes, and the connection stays. */
export const hold = Symbol("hold")

export interface Reply {
  readonly status?: number
  /** Not even the status is sent. */
  readonly silent?: true
  /** Default: those of a stream of server-sent events. */
  readonly headers?: Readonly<Record<string, string>>
  /** Each is written on its own. */
  readonly body: ReadonlyArray<string | Uint8Array | typeof cut | typeof hold>
}

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
      if (silent) {
        Deferred.doneUnsafe(holding, Effect.void)
        return
      }
      response.writeHead(status ?? 200, headers ?? events)
      response.flushHeaders()
      for (const piece of body) {
        if (piece === cut) {
          response.destroy()
          return
        }
        if (piece === hold) {
          Deferred.doneUnsafe(holding, Effect.void)
          return
        }
        await write(response, piece)
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

// --- the wire format ---

export const done = "data: [DONE]\n\n"

/** Each value as one event. */
export const sse = (...values: ReadonlyArray<unknown>): string =>
  values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join("")

const common = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "test-model" }

/** A chunk with a delta. */
export const delta = (delta: object) => ({ ...common, choices: [{ index: 0, delta, finish_reason: null }] })

export const text = (content: string) => delta({ content })

export const calls = (...tool_calls: ReadonlyArray<object>) => delta({ tool_calls })

/** The piece of a call. */
export const piece = (
  index: number | undefined,
  args: unknown,
  first?: { readonly id?: string; readonly name?: string }
) => ({
  ...(index !== undefined && { index }),
  ...(first?.id !== undefined && { id: first.id, type: "function" }),
  function: { ...(first?.name !== undefined && { name: first.name }), arguments: args }
})

export const finish = (reason: string) => ({
  ...common,
  choices: [{ index: 0, delta: {}, finish_reason: reason }]
})

export const usage = (usage: object) => ({ ...common, choices: [], usage })

/** A whole answer. */
export const answer = (...values: ReadonlyArray<unknown>): Reply => ({ body: [sse(...values), done] })

/** An answer of JSON. */
export const json = (status: number, value: unknown, headers?: Readonly<Record<string, string>>): Reply => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: [JSON.stringify(value)]
})
