/**
 * The tools of an MCP server in an agent: the reference server, as a process. The model is a script, so it runs offline.
 *
 *     node examples/mcp.ts
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { fileURLToPath } from "node:url"
import { Agent } from "../src/index.ts"
import { Mcp } from "../src/mcp/index.ts"
import { ScriptedModel } from "../src/testing/index.ts"

const server = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"))

const program = Effect.gen(function*() {
  const every = yield* Mcp.connectStdio({
    name: "every",
    command: process.execPath, // of a server on npm: command: "npx", args: ["-y", "its-package"]
    args: [server, "stdio"],
    include: (tool) => ["get-sum", "trigger-long-running-operation"].includes(tool)
  })
  yield* Console.log(`${every.serverInfo.name} has ${every.tools.map((tool) => tool.name).join(", ")}`)

  const agent = yield* Agent.make({ tools: [...every.tools] })
  yield* agent.subscribe((event) => {
    if (event.type === "tool_execution_update") return Console.log("progress:", event.partialResult.details)
    if (event.type === "tool_execution_end") return Console.log(`${event.toolName}:`, event.result.content)
    return undefined
  })
  const run = yield* agent.prompt("What is 2 + 3? And take your time.")
  yield* Console.log(run.outcome._tag)
})

const Model = ScriptedModel.layer([
  ScriptedModel.calls([
    ["a", "every__get-sum", { a: 2, b: 3 }],
    ["b", "every__trigger-long-running-operation", { duration: 0.2, steps: 2 }]
  ]),
  ScriptedModel.text("It is 5.")
])

program.pipe(
  Effect.scoped, // ends the server, too
  Effect.catchTag("McpError", ({ message }) => Console.error(message)),
  Effect.provide(Model),
  NodeRuntime.runMain
)
