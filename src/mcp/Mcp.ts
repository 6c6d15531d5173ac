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
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as log from "../internal/log.ts"
import type { Setup } from "../internal/mcp/connection.ts"
import type { McpError } from "../internal/mcp/error.ts"
import { Failures } from "../internal/mcp/failures.ts"
import {
  readHttp,
  readSettings,
  readStdio,
  secretsOf,
  secretsOfUrl,
  type Settings,
  shownUrl
} from "../internal/mcp/options.ts"
import { openHttp, openStdio } from "../internal/mcp/sdk.ts"
import { start } from "../internal/mcp/server.ts"
import { makeTools } from "../internal/mcp/tools.ts"
import type { ExecutionMode, Tool } from "../Tools.ts"

export { McpError, type McpErrorReason } from "../internal/mcp/error.ts"

/**
 * Options of every server.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** Names the server in errors, and its tools: `name__tool`. */
  readonly name: string
  /** How long it may take until the server is ready; default: 30 seconds. */
  readonly connectTimeout?: Duration.Input | undefined
  /** How long a call may take; default: what the agent's `toolTimeout` says. */
  readonly callTimeout?: Duration.Input | undefined
  /**
   * How often, and after what time, a lost server is tried again before a call gives up. Default: three times, after 0.5,
   * 1 and 2 seconds; `{ times }` goes on like that.
   */
  readonly restart?: Schedule.Schedule<unknown> | { readonly times: number } | undefined
  /** `sequential`: a response that calls a tool of this server runs its calls one after the other. */
  readonly executionMode?: ExecutionMode | undefined
  /** Which tools to take, by the name that the server gives them; default: all. */
  readonly include?: ((tool: string) => boolean) | undefined
}

/**
 * Options of a server that is a process.
 *
 * @category options
 * @since 0.1.0
 */
export interface StdioOptions extends Options {
  readonly command: string
  readonly args?: ReadonlyArray<string> | undefined
  /** Beside a few variables such as `PATH` and `HOME`, all that the process sees of the environment. */
  readonly env?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  /** The folder it works in; default: that of this process. */
  readonly cwd?: string | undefined
}

/**
 * Options of a server behind a URL.
 *
 * @category options
 * @since 0.1.0
 */
export interface HttpOptions extends Options {
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted>> | undefined
  /** Sent as `Authorization: Bearer …`. */
  readonly token?: Redacted.Redacted | undefined
}

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
    const secrets = secretsOf(setup.env)
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
    const secrets = [...secretsOf(setup.headers), ...secretsOfUrl(setup.url)]
    const failures = new Failures({ server: settings.name, subject: shownUrl(setup.url), isHttp: true, secrets })
    return yield* serve(settings, failures, (listeners) => openHttp(settings.name, setup, listeners))
  })
