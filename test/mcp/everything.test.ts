/** The reference server, through both transports. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted, type Scope } from "effect"
import { Agent } from "../../src/index.ts"
import { Mcp } from "../../src/mcp/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { callAll, callOne, everything, textOf } from "./ask.ts"
import { freePort, serveHttp } from "./everything.ts"

const overStdio = Mcp.connectStdio({ name: "every", command: process.execPath, args: [everything, "stdio"] })

const overHttp = Effect.gen(function*() {
  const port = yield* freePort
  yield* serveHttp(port)
  return yield* Mcp.connectHttp({ name: "every", url: `http://127.0.0.1:${port}/mcp`, token: Redacted.make("t0k3n") })
})

const live = <E>(
  name: string,
  body: () => Effect.Effect<void, E, NodeServices.NodeServices | Scope.Scope>
): void => it.live(name, () => body().pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 60_000)

for (const [transport, connect] of [["stdio", overStdio], ["HTTP", overHttp]] as const) {
  describe(`server-everything over ${transport}`, () => {
    live("has its tools, and says what it is", () =>
      Effect.gen(function*() {
        const server = yield* connect
        const names = server.tools.map((tool) => tool.name)
        assert.includeMembers(names, ["every__echo", "every__get-sum", "every__get-tiny-image"])
        assert.strictEqual(server.name, "every")
        assert.isString(server.instructions)
        assert.strictEqual(server.serverInfo.name, "mcp-servers/everything")
        const sum = server.tools.find((tool) => tool.name === "every__get-sum")
        assert.strictEqual(sum?.label, "Get Sum Tool")
        assert.strictEqual(sum?.annotations.readOnly, true)
        assert.strictEqual(sum?.annotations.destructive, false)
      }))

    live("an agent calls two tools in one response", () =>
      Effect.gen(function*() {
        const { tools } = yield* connect
        const { outcome, results } = yield* callAll(
          tools,
          ["every__echo", { message: "hello" }],
          ["every__get-sum", { a: 2, b: 3 }]
        )
        assert.strictEqual(outcome._tag, "Completed")
        assert.deepStrictEqual(results.map((result) => textOf(result.content)), [
          "Echo: hello",
          "The sum of 2 and 3 is 5."
        ])
      }))

    live("images, structured content and errors arrive as such", () =>
      Effect.gen(function*() {
        const { tools } = yield* connect
        const image = yield* callOne(tools, "every__get-tiny-image")
        assert.include(image.text, "<image/png>")
        const weather = yield* callOne(tools, "every__get-structured-content", { location: "Chicago" })
        const expected = { temperature: 36, conditions: "Light rain / drizzle", humidity: 82 }
        assert.deepStrictEqual(weather.structured, expected)
        assert.deepStrictEqual(weather.result.details, {
          server: "every",
          tool: "get-structured-content",
          structuredContent: expected
        })
        const wrong = yield* callOne(tools, "every__get-structured-content", { location: "Atlantis" })
        assert.isTrue(wrong.isError)
      }))

    live("progress reaches the listeners", () =>
      Effect.gen(function*() {
        const { tools } = yield* connect
        const { progress, text } = yield* callOne(tools, "every__trigger-long-running-operation", {
          duration: 0.05,
          steps: 3
        })
        assert.deepStrictEqual(progress, ["1 of 3", "2 of 3", "3 of 3"])
        assert.include(text, "completed")
      }))

    live("an abort in a call", () =>
      Effect.gen(function*() {
        const { tools } = yield* connect
        const working = yield* Deferred.make<void>()
        const agent = yield* Agent.make({ tools: [...tools] })
        yield* agent.subscribe((event) =>
          event.type === "tool_execution_update" ? Deferred.succeed(working, undefined) : undefined
        )
        const run = yield* Effect.forkChild(agent.prompt("go"))
        yield* Deferred.await(working)
        yield* agent.abort
        const { outcome } = yield* Fiber.join(run)
        assert.strictEqual(outcome._tag, "Aborted")
      }).pipe(Effect.provide(ScriptedModel.layer([
        ScriptedModel.calls([["a", "every__trigger-long-running-operation", { duration: 3000, steps: 60_000 }]])
      ]))))
  })
}
