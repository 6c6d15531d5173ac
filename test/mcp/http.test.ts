/** Servers behind a URL that misbehave, and sessions that are lost. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted, type Scope } from "effect"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Agent } from "../../src/index.ts"
import { Mcp } from "../../src/mcp/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { callAll, callOne, textOf } from "./ask.ts"
import { freePort, serveHttp } from "./everything.ts"

const live = <E>(
  name: string,
  body: () => Effect.Effect<void, E, NodeServices.NodeServices | Scope.Scope>
): void => it.live(name, () => body().pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 60_000)

interface Asked {
  readonly method: string
  readonly headers: IncomingMessage["headers"]
  /** The message of a POST. */
  readonly message: {
    readonly id?: number
    readonly method?: string
    readonly params?: { readonly requestId?: number }
  }
}

/** An HTTP server that answers as it is told; `undefined` is no answer at all. */
const serve = Effect.fnUntraced(function*(answer: (asked: Asked, response: ServerResponse) => void) {
  const asked: Array<Asked> = []
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (text: string) => body += text)
    request.on("end", () => {
      const each: Asked = {
        method: request.method ?? "",
        headers: request.headers,
        message: body === "" ? {} : JSON.parse(body)
      }
      asked.push(each)
      answer(each, response)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return { asked, url: `http://127.0.0.1:${port}/mcp` }
})

const json = (response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void => {
  response.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify(value))
}

/** A well-behaved server whose calls are answered by `call`; each initialization begins a session. */
const sessions = (call: (asked: Asked, response: ServerResponse) => void) => {
  let session = 0
  return serve((asked, response) => {
    const { message: { id, method }, method: verb } = asked
    if (verb !== "POST") return void response.writeHead(405).end()
    if (method === undefined || id === undefined) return void response.writeHead(202).end()
    const result = (value: unknown, headers = {}) => json(response, { jsonrpc: "2.0", id, result: value }, headers)
    if (method === "initialize") {
      session++
      return result(
        { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } },
        { "mcp-session-id": `session-${session}` }
      )
    }
    if (method === "tools/list") return result({ tools: [{ name: "act", inputSchema: { type: "object" } }] })
    call(asked, response)
  })
}

const refusal = (options: Partial<Mcp.HttpOptions> & { readonly url: string }) =>
  Effect.map(
    Effect.flip(Effect.scoped(Mcp.connectHttp({ name: "web", ...options }))),
    ({ message, reason, server }) => {
      assert.strictEqual(server, "web")
      assert.notInclude(message, "s3cr3t")
      return { message, reason }
    }
  )

describe("A URL that cannot be connected", () => {
  live("nobody listens", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const { message, reason } = yield* refusal({ url: `http://127.0.0.1:${port}/mcp?key=s3cr3t-key` })
      assert.strictEqual(reason, "Unreachable")
      assert.include(message, `MCP server "web" cannot be reached at http://127.0.0.1:${port}/mcp: `)
      assert.include(message, "ECONNREFUSED")
    }))

  live("answers with a page", () =>
    Effect.gen(function*() {
      const { url } = yield* serve((_, response) => {
        response.writeHead(200, { "content-type": "text/html" }).end("<html>")
      })
      const { message, reason } = yield* refusal({ url })
      assert.strictEqual(reason, "Protocol")
      assert.include(message, "text/html")
    }))

  for (
    const [status, expected] of [[401, "Unauthorized"], [403, "Unauthorized"], [404, "Protocol"], [
      503,
      "Unreachable"
    ]] as const
  ) {
    live(`answers ${status}, and repeats the token`, () =>
      Effect.gen(function*() {
        const { asked, url } = yield* serve(({ headers }, response) => {
          response.writeHead(status).end(`bad ${headers.authorization} and ${String(headers["x-key"])}`)
        })
        const { message, reason } = yield* refusal({
          url,
          token: Redacted.make("s3cr3t-token"),
          headers: { "x-key": Redacted.make("s3cr3t-key") }
        })
        assert.strictEqual(asked[0]?.headers.authorization, "Bearer s3cr3t-token")
        assert.strictEqual(reason, expected)
        assert.include(message, `answered ${status} at ${url}: bad `)
      }))
  }

  live("never answers", () =>
    Effect.gen(function*() {
      const { url } = yield* serve(() => {})
      const { message, reason } = yield* refusal({ url, connectTimeout: "300 millis" })
      assert.strictEqual(reason, "Timeout")
      assert.include(message, "was not ready after 300 ms")
    }))
})

describe("A session", () => {
  for (const [status, text] of [[404, "Session not found"], [400, "Bad Request: No valid session ID"]] as const) {
    live(`that expired (${status}) is replaced once, and the calls are made again`, () =>
      Effect.gen(function*() {
        const { asked, url } = yield* sessions(({ headers, message: { id } }, response) => {
          const session = headers["mcp-session-id"]
          if (session === "session-1") return void response.writeHead(status).end(text)
          json(response, { jsonrpc: "2.0", id, result: { content: [{ type: "text", text: session }] } })
        })
        const { tools } = yield* Mcp.connectHttp({ name: "web", url })
        const { results } = yield* callAll(tools, ["web__act"], ["web__act"])
        assert.deepStrictEqual(results.map((result) => textOf(result.content)), ["session-2", "session-2"])
        assert.strictEqual(asked.filter(({ message }) => message.method === "initialize").length, 2)
      }))
  }

  live("is ended with the scope", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* sessions(() => {})
      yield* Effect.scoped(Mcp.connectHttp({ name: "web", url }))
      const last = asked.at(-1)
      assert.deepStrictEqual([last?.method, last?.headers["mcp-session-id"]], ["DELETE", "session-1"])
    }))
})

describe("A call", () => {
  live("whose answer breaks off has an unknown outcome and is not made again", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* sessions((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).write(": here\n\n", () => response.destroy())
      })
      const { tools } = yield* Mcp.connectHttp({ name: "web", url })
      const { isError, text } = yield* callOne(tools, "web__act")
      assert.isTrue(isError)
      assert.include(text, "broke off its answer.")
      assert.include(text, "is unknown")
      assert.strictEqual(asked.filter(({ message }) => message.method === "tools/call").length, 1)
    }))

  live("whose connection breaks has an unknown outcome", () =>
    Effect.gen(function*() {
      const { asked, url } = yield* sessions((_, response) => response.destroy())
      const { tools } = yield* Mcp.connectHttp({ name: "web", url })
      const { text } = yield* callOne(tools, "web__act")
      assert.include(text, "did not answer: fetch failed: ")
      assert.include(text, "is unknown")
      assert.strictEqual(asked.filter(({ message }) => message.method === "tools/call").length, 1)
    }))

  live("that is refused says why", () =>
    Effect.gen(function*() {
      const { url } = yield* sessions((_, response) => response.writeHead(403).end("scope missing"))
      const { tools } = yield* Mcp.connectHttp({ name: "web", url })
      const { isError, text } = yield* callOne(tools, "web__act")
      assert.isTrue(isError)
      assert.include(text, "scope missing. Give a valid `token`")
    }))

  live("interrupted, it is cancelled at the server", () =>
    Effect.gen(function*() {
      const working = yield* Deferred.make<void>()
      const cancelled = yield* Deferred.make<void>()
      const { asked, url } = yield* serve(({ message: { id, method } }, response) => {
        const result = (value: unknown) => json(response, { jsonrpc: "2.0", id, result: value })
        if (method === "initialize") {
          return result({
            protocolVersion: "2025-06-18",
            capabilities: { tools: {} },
            serverInfo: { name: "s", version: "1" }
          })
        }
        if (method === "tools/list") return result({ tools: [{ name: "act", inputSchema: { type: "object" } }] })
        if (method === "tools/call") return void Deferred.doneUnsafe(working, Effect.void)
        response.writeHead(method === undefined ? 405 : 202).end()
        if (method === "notifications/cancelled") Deferred.doneUnsafe(cancelled, Effect.void)
      })
      const { tools } = yield* Mcp.connectHttp({ name: "web", url })
      const agent = yield* Agent.make({ tools: [...tools] })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* Deferred.await(working)
      yield* agent.abort
      yield* Fiber.join(run)
      yield* Deferred.await(cancelled)
      const id = (method: string) => asked.find(({ message }) => message.method === method)?.message
      assert.strictEqual(id("notifications/cancelled")?.params?.requestId, id("tools/call")?.id)
    }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.calls([["a", "web__act", {}]])]))))
})

describe("A server that is gone", () => {
  live("is tried again a bounded number of times, and used when it is back", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const first = yield* serveHttp(port)
      const { tools } = yield* Mcp.connectHttp({
        name: "web",
        url: `http://127.0.0.1:${port}/mcp`,
        restart: { times: 1 }
      })
      yield* first.kill({ killSignal: "SIGKILL" })
      const lost = yield* callOne(tools, "web__echo", { message: "1" })
      assert.isTrue(lost.isError)
      assert.include(lost.text, `MCP server "web" cannot be reached at http://127.0.0.1:${port}/mcp: `)
      yield* serveHttp(port)
      const back = yield* callOne(tools, "web__echo", { message: "2" })
      assert.strictEqual(back.text, "Echo: 2")
    }))
})
