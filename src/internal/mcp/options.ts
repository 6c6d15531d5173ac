/**
 * The options of a server, checked: a refusal names the option and what it may be, never the value of a secret.
 */
import type * as Duration from "effect/Duration"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { ExecutionMode } from "../../Tools.ts"
import { checkOneOf } from "../checks.ts"
import { formsOf } from "../errorText.ts"
import { readMillis } from "../millis.ts"
import { isRecord } from "../record.ts"
import { executionModes } from "../toolSet.ts"
import { McpError } from "./error.ts"

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

/** Options of every server as they are used. */
export interface Settings {
  readonly name: string
  /** Milliseconds. */
  readonly connectTimeout: number
  readonly callTimeout: number | undefined
  readonly restart: { readonly schedule: Schedule.Schedule<unknown>; readonly times?: number }
  readonly executionMode: ExecutionMode | undefined
  readonly include: (tool: string) => boolean
}

type Checked<A> = Result.Result<A, McpError>

const refusal = (server: string, message: string): McpError =>
  new McpError({ reason: "InvalidOption", server, message: `MCP server "${server}": ${message}` })

const backoff = Schedule.exponential("500 millis")

const readRestart = (restart: Options["restart"]): Result.Result<Settings["restart"], string> => {
  if (restart === undefined) return Result.succeed({ schedule: backoff, times: 3 })
  if (Schedule.isSchedule(restart)) return Result.succeed({ schedule: restart })
  return isRecord(restart) && Number.isInteger(restart.times) && restart.times >= 0
    ? Result.succeed({ schedule: backoff, times: restart.times })
    : Result.fail("restart must be a Schedule, or { times } with a whole number from 0.")
}

export const readSettings = (options: Options): Checked<Settings> => {
  const server = typeof options.name === "string" ? options.name : ""
  return Result.mapError(
    Result.gen(function*() {
      if (server === "") yield* Result.fail("name is missing; give the server a short one, such as \"github\".")
      const millis = (option: "connectTimeout" | "callTimeout", input: Duration.Input | undefined) =>
        input === undefined ? Result.succeed(undefined) : readMillis(option, input, 1)
      const { executionMode, include } = options
      yield* Result.mapError(checkOneOf("executionMode", executionMode, executionModes), (error) => error.message)
      if (include !== undefined && typeof include !== "function") {
        yield* Result.fail("include must be a function of the name of a tool.")
      }
      return {
        name: server,
        connectTimeout: (yield* millis("connectTimeout", options.connectTimeout)) ?? 30_000,
        callTimeout: yield* millis("callTimeout", options.callTimeout),
        restart: yield* readRestart(options.restart),
        executionMode,
        include: include ?? (() => true)
      }
    }),
    (message) => refusal(server, message)
  )
}

/** Texts by name, those that are `Redacted` opened. */
const readTexts = (
  server: string,
  option: string,
  texts: Readonly<Record<string, string | Redacted.Redacted>>,
  allowed: RegExp
): Checked<Record<string, string>> => {
  const read: Record<string, string> = {}
  for (const [name, given] of Object.entries(texts)) {
    const value: unknown = Redacted.isRedacted(given) ? Redacted.value(given) : given
    if (typeof value !== "string" || !allowed.test(value)) {
      return Result.fail(refusal(server, `${option}.${name} is no text that can be sent; check where it comes from.`))
    }
    read[name] = value
  }
  return Result.succeed(read)
}

/** What a process and a server see: no line breaks in headers, no zero bytes anywhere. */
const headerText = /^[\t\x20-\x7e\x80-\xff]*$/
const processText = /^[^\0]*$/

export const readStdio = (options: StdioOptions) =>
  Result.gen(function*() {
    const { args = [], command, cwd, env = {}, name } = options
    const isText = (value: unknown): boolean => typeof value === "string" && processText.test(value)
    if (!isText(command) || command.trim() === "") {
      yield* Result.fail(refusal(name, "command is missing; give the command that starts it, such as \"npx\"."))
    }
    if (!Array.isArray(args) || !args.every(isText)) {
      yield* Result.fail(refusal(name, "args must be a list of texts, one for each argument."))
    }
    return { command, args, cwd, env: yield* readTexts(name, "env", env, processText) }
  })

export const readHttp = (options: HttpOptions) =>
  Result.gen(function*() {
    const { headers = {}, name, token } = options
    const parsed = Result.try(() => new URL(options.url))
    const url = Result.isSuccess(parsed) && /^https?:$/.test(parsed.success.protocol) ? parsed.success : undefined
    if (url === undefined) {
      return yield* Result.fail(refusal(name, "url must be an absolute URL that begins with http:// or https://."))
    }
    if (url.username !== "" || url.password !== "") {
      return yield* Result.fail(refusal(name, "url holds a user or a password; give them as `token` or `headers`."))
    }
    const sent = yield* readTexts(name, "headers", headers, headerText)
    const authorization = token === undefined ? {} : yield* readTexts(name, "token", { value: token }, headerText)
    return {
      url,
      headers: { ...sent, ...(token !== undefined && { Authorization: `Bearer ${authorization["value"]}` }) }
    }
  })

/** A URL as errors show it: a query often holds a key. */
export const shownUrl = (url: URL): string => `${url.origin}${url.pathname}`

export const secretsOfUrl = (url: URL): ReadonlyArray<string> =>
  formsOf([...url.searchParams.values(), url.search.slice(1)])
