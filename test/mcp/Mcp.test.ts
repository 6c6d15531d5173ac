/** Servers that misbehave: what the model and the host are told, and that no process is left. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Redacted, Schedule, Scope, Stream } from "effect"
import manifest from "../../package.json" with { type: "json" }
import { Agent } from "../../src/index.ts"
import { clientInfo } from "../../src/internal/mcp/sdk.ts"
import { Mcp } from "../../src/mcp/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { assertGone, callAll, callOne, isAlive, pidFile, pidsIn, scripted, textOf } from "./ask.ts"

const live = <E>(
  name: string,
  body: () => Effect.Effect<void, E, NodeServices.NodeServices | Scope.Scope>
): void => it.live(name, () => body().pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 60_000)

/** Why a server cannot be connected; its process must be gone by then. */
const refusal = Effect.fnUntraced(function*(mode: string, options: Partial<Mcp.StdioOptions> = {}) {
  const file = yield* pidFile
  const error = yield* Effect.flip(Effect.scoped(scripted(mode, options, file)))
  assert.strictEqual(error._tag, "McpError")
  assert.strictEqual(error.server, "odd")
  return { reason: error.reason, message: error.message, pids: yield* pidsIn(file) }
})

const secret = { SECRET_KEY: Redacted.make("s3cr3t-value") }

describe("A server that cannot be connected", () => {
  live("there is no such command", () =>
    Effect.gen(function*() {
      const { message, reason } = yield* refusal("fine", { command: "no-such-command" })
      assert.strictEqual(reason, "NotStarted")
      assert.include(message, "MCP server \"odd\" cannot be started: there is no command \"no-such-command\"")
    }))

  live("ends at once: the last lines of its standard error, without secrets", () =>
    Effect.gen(function*() {
      const { message, pids, reason } = yield* refusal("dies", { env: secret })
      assert.strictEqual(reason, "NotStarted")
      assert.include(message, "ended before it was ready")
      assert.include(message, "\n  line 29\n  the key is <redacted>")
      assert.notInclude(message, "line 10\n")
      assert.notInclude(message, "s3cr3t")
      assertGone(pids)
    }))

  live("speaks another version of the protocol", () =>
    Effect.gen(function*() {
      const { message, pids, reason } = yield* refusal("version")
      assert.strictEqual(reason, "Protocol")
      assert.include(message, "1999-01-01")
      assertGone(pids)
    }))

  live("writes to its standard output what is no message", () =>
    Effect.gen(function*() {
      const { message, pids, reason } = yield* refusal("garbage", { connectTimeout: "4 seconds" })
      assert.strictEqual(reason, "Protocol")
      assert.include(message, "Welcome to")
      assert.include(message, "standard error")
      assertGone(pids)
    }))

  live("never answers", () =>
    Effect.gen(function*() {
      const { message, pids, reason } = yield* refusal("silent", { connectTimeout: "4 seconds" })
      assert.strictEqual(reason, "Timeout")
      assert.include(message, "was not ready after 4000 ms")
      assertGone(pids)
    }))

  live("lists its tools for ever", () =>
    Effect.gen(function*() {
      const { message, pids, reason } = yield* refusal("endless")
      assert.strictEqual(reason, "Protocol")
      assert.include(message, "its pages never end")
      assertGone(pids)
    }))

  live("interrupted while it is connected: the process is gone", () =>
    Effect.gen(function*() {
      const file = yield* pidFile
      const connecting = yield* Effect.forkChild(Effect.scoped(scripted("silent", {}, file)))
      const pids = yield* Effect.repeat(pidsIn(file), {
        until: (pids) => pids.length > 0,
        schedule: Schedule.spaced("20 millis")
      })
      yield* Fiber.interrupt(connecting)
      assertGone(pids)
    }))

  it.effect("options that make no sense", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [Effect.Effect<unknown, Mcp.McpError, Scope.Scope>, string]> = [
        [scripted("fine", { name: "" }), "name is missing"],
        [scripted("fine", { command: " " }), "command is missing"],
        [scripted("fine", { connectTimeout: "-1 seconds" }), "connectTimeout must be"],
        [scripted("fine", { restart: { times: -1 } }), "restart must be"],
        [scripted("fine", { env: { KEY: "a\0b" } }), "env.KEY is no text"],
        [Mcp.connectHttp({ name: "odd", url: "ftp://x" }), "url must be"],
        [Mcp.connectHttp({ name: "odd", url: "http://me:s3cr3t@x/" }), "url holds a user or a password"],
        [Mcp.connectHttp({ name: "odd", url: "http://x/", token: Redacted.make("s3cr3t\n") }), "token.value is no text"]
      ]
      for (const [connecting, text] of cases) {
        const error = yield* Effect.flip(Effect.scoped(connecting))
        assert.strictEqual(error.reason, "InvalidOption")
        assert.include(error.message, text)
        assert.notInclude(error.message, "s3cr3t")
      }
    }))
})

describe("The tools of a server", () => {
  live("all pages are read", () =>
    Effect.gen(function*() {
      const { tools } = yield* scripted("pages")
      assert.deepStrictEqual(
        tools.map((tool) => tool.name),
        ["odd__page0", "odd__page1", "odd__page2", "odd__page3", "odd__page4"]
      )
    }))

  live("names are safe, unique and short", () =>
    Effect.gen(function*() {
      const { tools } = yield* scripted("names", { include: (name) => !/^[a-z]{2,12}$/.test(name) })
      const names = tools.map((tool) => tool.name)
      assert.strictEqual(names.length, 6)
      assert.strictEqual(new Set(names).size, 6)
      for (const name of names) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/)
      assert.strictEqual(names[2], "odd__a_b", "what is safe keeps its name")
      assert.match(names[0]!, /^odd__a_b_[0-9a-f]{8}$/)
      const { text } = yield* callOne(tools, names[0]!)
      assert.include(text, "a.b in ", "it is called by its own name")
    }))

  live("those that cannot be used are left out with a warning", () => {
    const warnings: Array<string> = []
    const logger = Logger.make(({ message }) => void warnings.push(String(message)))
    return Effect.gen(function*() {
      const { tools } = yield* scripted("schemas", { include: (name) => ["list", "pid"].includes(name) })
      assert.deepStrictEqual(tools.map((tool) => tool.name), ["odd__pid"])
      assert.strictEqual(warnings.length, 3)
      assert.include(
        warnings.join("\n"),
        "Tool \"list\" of MCP server \"odd\" is left out: its parameters cannot be shown"
      )
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  live("a server without tools", () =>
    Effect.gen(function*() {
      const { instructions, serverInfo, tools } = yield* scripted("no-tools")
      assert.deepStrictEqual([...tools], [])
      assert.strictEqual(instructions, "Be careful.")
      assert.deepStrictEqual(serverInfo, { name: "scripted", version: "1.2.3", title: "Scripted" })
    }))

  live("a change of the list is told", () =>
    Effect.gen(function*() {
      const server = yield* scripted("fine")
      const lengths = yield* Effect.forkChild(
        server.changes.pipe(Stream.map((tools) => tools.length), Stream.take(2), Stream.runCollect),
        { startImmediately: true }
      )
      yield* callOne(server.tools, "odd__grow")
      assert.deepStrictEqual([...yield* Fiber.join(lengths)], [11, 12])
    }))
})

describe("A call", () => {
  live("tells its progress, also what comes together with the answer", () =>
    Effect.gen(function*() {
      const { tools } = yield* scripted("fine")
      const { progress, text } = yield* callOne(tools, "odd__progress")
      assert.deepStrictEqual(progress, ["1 of 2", "nearly"])
      assert.strictEqual(text, "done")
    }))

  live("what a model cannot be shown becomes a text", () =>
    Effect.gen(function*() {
      const { tools } = yield* scripted("fine")
      const { result, text } = yield* callOne(tools, "odd__oddities")
      assert.deepStrictEqual(text.split("\n"), [
        "[audio: audio/wav, 3 bytes that cannot be heard]",
        "[resource: file:///a, text/plain]",
        "inside",
        "[resource: file:///b, application/zip, 4 bytes that cannot be shown]",
        "<image/png>",
        "[link to a resource: d, file:///d, the fourth]",
        "{\"type\":\"hologram\",\"depth\":3}"
      ])
      assert.deepStrictEqual(result.details, { server: "odd", tool: "oddities", _meta: { cost: 1 } })
    }))

  live("structured content alone is given as JSON", () =>
    Effect.gen(function*() {
      const { tools } = yield* scripted("fine")
      const { structured, text } = yield* callOne(tools, "odd__structured", { a: 1 })
      assert.strictEqual(text, "{\"args\":{\"a\":1}}")
      assert.deepStrictEqual(structured, { args: { a: 1 } })
    }))

  live("errors of the tool, of the protocol, and answers that are none", () =>
    Effect.gen(function*() {
      const { tools } = yield* scripted("fine", { env: secret })
      const { results } = yield* callAll(tools, ["odd__fails"], ["odd__refuse"], ["odd__wrong"])
      assert.deepStrictEqual(results.map(({ content, isError }) => [textOf(content), isError]), [
        ["disk full", true],
        ["MCP server \"odd\" refused the request (-32602): no such thing, <redacted>", true],
        ["MCP server \"odd\" answered the call of \"wrong\" with what is no result of a tool.", true]
      ])
    }))

  live("interrupted, it is cancelled at the server", () =>
    Effect.gen(function*() {
      const { tools } = yield* scripted("fine")
      const agent = yield* Agent.make({ tools: [...tools] })
      const working = yield* Deferred.make<void>()
      yield* agent.subscribe((event) =>
        event.type === "tool_execution_update" ? Deferred.succeed(working, undefined) : undefined
      )
      const run = yield* Effect.forkChild(agent.prompt("go"))
      yield* Deferred.await(working)
      yield* agent.abort
      yield* Fiber.join(run)
      assert.strictEqual((yield* callOne(tools, "odd__cancelled")).text, "1 cancelled")
    }).pipe(Effect.provide(ScriptedModel.layer([ScriptedModel.calls([["a", "odd__wait", {}]])]))))

  live("one that takes too long is an error result, and cancelled", () =>
    Effect.gen(function*() {
      const { tools } = yield* scripted("fine", { callTimeout: "300 millis" })
      const { isError, text } = yield* callOne(tools, "odd__wait")
      assert.isTrue(isError)
      assert.strictEqual(text, "Tool \"odd__wait\" timed out after 300 ms")
      assert.strictEqual((yield* callOne(tools, "odd__cancelled")).text, "1 cancelled")
    }))
})

describe("A server that dies in a call", () => {
  live("leaves the outcome unknown, and is started again once by the next calls", () =>
    Effect.gen(function*() {
      const file = yield* pidFile
      const { tools } = yield* scripted("fine", {}, file)
      const { results: [waiting, dying] } = yield* callAll(tools, ["odd__wait"], ["odd__die"])
      for (const result of [waiting, dying]) {
        const text = textOf(result!.content)
        assert.isTrue(result!.isError)
        assert.include(text, "MCP server \"odd\" (")
        assert.include(text, "has ended during the call.")
        assert.include(text, "\n  out of memory")
        assert.include(text, "is unknown: it may have been done")
      }
      const { results } = yield* callAll(tools, ["odd__pid"], ["odd__pid"], ["odd__pid"])
      const pids = yield* pidsIn(file)
      assert.strictEqual(pids.length, 2)
      for (const result of results) assert.strictEqual(textOf(result.content), `pid in ${pids[1]}`)
    }))

  live("is tried again a bounded number of times", () =>
    Effect.gen(function*() {
      const file = yield* pidFile
      const restart = Schedule.recurs(2)
      const { tools } = yield* scripted("dies-again", { restart, env: secret }, file)
      yield* callOne(tools, "odd__die")
      const { results } = yield* callAll(tools, ["odd__pid"], ["odd__pid"])
      assert.strictEqual((yield* pidsIn(file)).length, 4, "the first, and three tries")
      for (const result of results) {
        assert.isTrue(result.isError)
        assert.include(textOf(result.content), "ended before it was ready")
        assert.include(textOf(result.content), "the key is <redacted>")
      }
    }))

  live("the next try may succeed", () =>
    Effect.gen(function*() {
      const file = yield* pidFile
      const { tools } = yield* scripted("dies-once-more", { restart: { times: 1 } }, file)
      yield* callOne(tools, "odd__die")
      const { text } = yield* callOne(tools, "odd__pid")
      assert.strictEqual(text, `pid in ${(yield* pidsIn(file))[2]}`)
    }))
})

describe("When the scope closes", () => {
  for (const mode of ["fine", "stubborn"]) {
    live(`no process is left: ${mode}`, () =>
      Effect.gen(function*() {
        const file = yield* pidFile
        const scope = yield* Scope.make()
        const { tools } = yield* Scope.provide(scripted(mode, {}, file), scope)
        const pids = yield* pidsIn(file)
        assert.isTrue(isAlive(pids[0]!))
        yield* Scope.close(scope, Exit.void)
        assertGone(pids)
        const { isError, text } = yield* callOne(tools, "odd__pid")
        assert.isTrue(isError)
        assert.include(text, "MCP server \"odd\" is closed")
        assert.strictEqual((yield* pidsIn(file)).length, 1)
      }))
  }
})

it("a client says of itself which version of the package it is", () => {
  assert.strictEqual(clientInfo.version, manifest.version)
})
