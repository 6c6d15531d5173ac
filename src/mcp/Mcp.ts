/**
 * The tools of MCP servers (Model Context Protocol), as tools of an agent.
 *
 * Install `@modelcontextprotocol/sdk` beside this library; it is loaded when the first server is connected. A server is a
 * process that speaks over its standard input and output, or sits behind a URL (streamable HTTP). It belongs to a scope:
 * when that closes, the session ends and no process is left.
 *
 * - Progress of a call goes to the listeners of the agent; an interrupted call is cancelled at the server.
 * - A server that died is started again by the next call, a session that expired is replaced.
 * - A call that may have been done, but was not answered, is an error result that says so. It is not made twice.
 * - Errors name the server and the way out. Tokens, headers and the environment do not show in them.
 *
 * **Example** (An agent with the tools of a server)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-pi"
 * import { Mcp } from "effect-pi/mcp"
 *
 * const program = Effect.gen(function*() {
 *   const files = yield* Mcp.connectStdio({
 *     name: "files",
 *     command: "npx",
 *     args: ["-y", "@modelcontextprotocol/server-filesystem", "."]
 *   })
 *   const agent = yield* Agent.make({ tools: [...files.tools] })
 *   return yield* agent.prompt("What is in this folder?")
 * }).pipe(Effect.scoped)
 * ```
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { formsOf } from "../internal/errorText.ts"
import * as log from "../internal/log.ts"
import type { Setup } from "../internal/mcp/connection.ts"
import type { McpError } from "../internal/mcp/error.ts"
import { Failures } from "../internal/mcp/failures.ts"
import {
  type HttpOptions,
  readHttp,
  readSettings,
  readStdio,
  secretsOfUrl,
  type Settings,
  shownUrl,
  type StdioOptions
} from "../internal/mcp/options.ts"
import { openHttp, openStdio } from "../internal/mcp/sdk.ts"
import { start } from "../internal/mcp/server.ts"
import { makeTools } from "../internal/mcp/tools.ts"
import type { Tool } from "../Tools.ts"

export { McpError, type McpErrorReason } from "../internal/mcp/error.ts"
export type { HttpOptions, Options, StdioOptions } from "../internal/mcp/options.ts"

/**
 * A server that is connected.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpServer {
  readonly name: string
  /** The tools it had when it was connected. */
  readonly tools: ReadonlyArray<Tool>
  /**
   * The tools it has now, and again whenever they change: when the server says so, and when it was started again. For
   * `agent.setTools`.
   */
  readonly changes: Stream.Stream<ReadonlyArray<Tool>>
  /** What the server tells a model of how to use it. */
  readonly instructions: string | undefined
  /** What the server says of itself. */
  readonly serverInfo: { readonly name: string; readonly version: string; readonly title?: string | undefined }
}

const serve = Effect.fnUntraced(function*(
  settings: Settings,
  failures: Failures,
  open: Setup["open"]
): Effect.fn.Return<McpServer, McpError, Scope.Scope> {
  const server = yield* start(settings, failures, open)
  const tools = yield* makeTools(settings, failures, server.listed, server.call)
  const current = yield* SubscriptionRef.make(tools)
  let listed = JSON.stringify(server.listed)
  const refresh = Effect.gen(function*() {
    const next = yield* server.nextList
    if (JSON.stringify(next) === listed) return
    listed = JSON.stringify(next)
    yield* SubscriptionRef.set(current, yield* makeTools(settings, failures, next, server.call))
  })
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.catch(refresh, ({ message }) => log.warn(`The tools of an MCP server are not known anew. ${message}`))
    )
  )
  return {
    name: settings.name,
    tools,
    changes: SubscriptionRef.changes(current),
    instructions: server.about.instructions,
    serverInfo: server.about.serverInfo
  }
})

/**
 * Starts a process that is an MCP server, and connects it.
 *
 * **Details**
 *
 * When the scope closes, its standard input is closed; a process that does not end by that within two seconds is
 * terminated, and killed after two more. That holds as well when the effect is interrupted before the server is ready.
 *
 * **Gotchas**
 *
 * The process does not inherit the environment: what it needs beside `PATH`, `HOME` and the like has to be in `env`.
 *
 * **Example** (A key in its environment)
 *
 * ```ts
 * import { Config, Effect } from "effect"
 * import { Mcp } from "effect-pi/mcp"
 *
 * const search = Effect.gen(function*() {
 *   const key = yield* Config.Redacted("SEARCH_API_KEY")
 *   return yield* Mcp.connectStdio({ name: "search", command: "search-mcp", env: { SEARCH_API_KEY: key } })
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const connectStdio = (options: StdioOptions): Effect.Effect<McpServer, McpError, Scope.Scope> =>
  Effect.gen(function*() {
    const settings = yield* Effect.fromResult(readSettings(options))
    const setup = yield* Effect.fromResult(readStdio(options))
    const secrets = formsOf(Object.values(setup.env))
    const failures = new Failures({ server: settings.name, subject: setup.command, isHttp: false, secrets })
    return yield* serve(settings, failures, (listeners) => openStdio(settings.name, setup, listeners))
  })

/**
 * Connects an MCP server behind a URL, by streamable HTTP.
 *
 * **Details**
 *
 * When the scope closes, the session is ended at the server. Redirects to another origin are not followed, so that a token
 * does not go where it does not belong.
 *
 * **Example** (A token)
 *
 * ```ts
 * import { Config, Effect } from "effect"
 * import { Mcp } from "effect-pi/mcp"
 *
 * const github = Effect.gen(function*() {
 *   const token = yield* Config.Redacted("GITHUB_TOKEN")
 *   return yield* Mcp.connectHttp({ name: "github", url: "https://api.githubcopilot.com/mcp/", token })
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const connectHttp = (options: HttpOptions): Effect.Effect<McpServer, McpError, Scope.Scope> =>
  Effect.gen(function*() {
    const settings = yield* Effect.fromResult(readSettings(options))
    const setup = yield* Effect.fromResult(readHttp(options))
    const secrets = [...formsOf(Object.values(setup.headers)), ...secretsOfUrl(setup.url)]
    const failures = new Failures({ server: settings.name, subject: shownUrl(setup.url), isHttp: true, secrets })
    return yield* serve(settings, failures, (listeners) => openHttp(settings.name, setup, listeners))
  })
