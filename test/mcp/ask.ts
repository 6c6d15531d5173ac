/** What the tests of MCP share: servers to connect, and one call of a tool as an agent makes it. */
import { assert } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { fileURLToPath } from "node:url"
import { Agent, type Tools } from "../../src/index.ts"
import { Mcp } from "../../src/mcp/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"

const pathOf = (url: string): string => fileURLToPath(new URL(url, import.meta.url))

export const everything = pathOf("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js")

/** A server of ours that misbehaves as `mode` says. */
export const scripted = (mode: string, options: Partial<Mcp.StdioOptions> = {}, file?: string) =>
  Mcp.connectStdio({
    name: "odd",
    command: process.execPath,
    args: [pathOf("servers/scripted.mjs"), mode, ...(file === undefined ? [] : [file])],
    restart: { times: 0 },
    ...options
  })

/** A file to which a server writes the ids of its processes. */
export const pidFile = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  return `${yield* fs.makeTempDirectoryScoped({ prefix: "effect-pi-mcp-" })}/pids`
})

export const pidsIn = (file: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    return (yield* fs.exists(file)) ? (yield* fs.readFileString(file)).trim().split("\n").map(Number) : []
  })

export const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

export const assertGone = (pids: ReadonlyArray<number>): void => {
  assert.isAbove(pids.length, 0, "a process was started")
  for (const pid of pids) assert.isFalse(isAlive(pid), `process ${pid} is left`)
}

type Args = Readonly<Record<string, string | number | boolean>>

/** Calls tools in one response of a scripted model; their results in order, and the progress they told. */
export const callAll = (
  tools: ReadonlyArray<Tools.Tool>,
  ...calls: ReadonlyArray<readonly [tool: string, args?: Args | undefined]>
) =>
  Effect.gen(function*() {
    const progress: Array<string> = []
    const structured: Array<unknown> = []
    const agent = yield* Agent.make({ tools: [...tools] })
    yield* agent.subscribe((event) => {
      if (event.type === "tool_execution_update") progress.push(textOf(event.partialResult.content ?? []))
      if (event.type === "tool_execution_end") structured.push(event.result.structuredContent)
    })
    const run = yield* agent.prompt("go")
    const results = run.messages.flatMap((message) => message.role === "toolResult" ? [message] : [])
    return { outcome: run.outcome, progress, results, structured }
  }).pipe(
    Effect.scoped,
    Effect.provide(ScriptedModel.layer([
      ScriptedModel.calls(calls.map(([tool, args], index) => [`c${index}`, tool, args ?? {}])),
      ScriptedModel.text("done")
    ]))
  )

/** The first result of one call. */
export const callOne = (
  tools: ReadonlyArray<Tools.Tool>,
  tool: string,
  args?: Args
) =>
  Effect.map(callAll(tools, [tool, args]), ({ progress, results, structured }) => {
    const [result] = results
    assert.isDefined(result)
    return { text: textOf(result.content), isError: result.isError, result, progress, structured: structured[0] }
  })

export const textOf = (content: Tools.Content): string =>
  content.map((block) => block.type === "text" ? block.text : `<${block.mimeType}>`).join("\n")
