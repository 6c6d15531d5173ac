/**
 * What can go wrong with an MCP server.
 */
import * as Data from "effect/Data"

/**
 * Why an MCP server, or a call of one of its tools, cannot be used.
 *
 * - `InvalidOption`: an option makes no sense
 * - `NotInstalled`: the package `@modelcontextprotocol/sdk` is missing
 * - `NotStarted`: the process cannot be started, or ended before it was ready
 * - `Unreachable`: nobody answers at the URL, or its server is failing
 * - `Unauthorized`: the server refuses the token or the headers
 * - `Protocol`: what answers does not speak MCP, or not a version that is understood
 * - `Timeout`: the server was not ready in time
 * - `Refused`: the server answered a request with an error of the protocol
 * - `Closed`: the scope that the server belongs to has closed
 *
 * @category models
 * @since 0.1.0
 */
export type McpErrorReason =
  | "InvalidOption"
  | "NotInstalled"
  | "NotStarted"
  | "Unreachable"
  | "Unauthorized"
  | "Protocol"
  | "Timeout"
  | "Refused"
  | "Closed"

/**
 * An MCP server, or a call of one of its tools, cannot be used. The message names the server, says what happened and
 * what to do; tokens, values of headers and values of the environment are left out of it.
 *
 * @category errors
 * @since 0.1.0
 */
export class McpError extends Data.TaggedError("McpError")<{
  readonly reason: McpErrorReason
  /** The name that was given to the server. */
  readonly server: string
  readonly message: string
}> {}
