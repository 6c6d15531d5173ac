/**
 * Errors of the SDK, of HTTP and of processes as errors of a server: what happened, to whom, and what to do; without the
 * secrets that may be in their texts.
 */
import { withoutSecrets } from "../errorText.ts"
import { oneLine } from "../excerpt.ts"
import { McpError, type McpErrorReason } from "./error.ts"
import type { WireError } from "./sdk.ts"

/** How much of a server's text an error repeats. */
const maxText = 500

/** Nobody was there to take the request. */
const nobody: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
])

/**
 * A request that failed, and what is known of it: `NotDelivered` is certain that the server never began, `Unknown` is
 * not, `Answered` is an answer.
 */
export interface RequestFailure {
  readonly _tag: "NotDelivered" | "Unknown" | "Answered"
  readonly error: McpError
}

export class Failures {
  readonly #server: string
  readonly #subject: string
  readonly #secrets: ReadonlyArray<string>
  readonly #isHttp: boolean

  /** `subject` is the command or the URL, without what must not show. */
  constructor(options: {
    readonly server: string
    readonly subject: string
    readonly isHttp: boolean
    readonly secrets: ReadonlyArray<string>
  }) {
    this.#server = options.server
    this.#secrets = options.secrets
    this.#isHttp = options.isHttp
    this.#subject = options.subject
  }

  make(reason: McpErrorReason, what: string): McpError {
    return new McpError({ reason, server: this.#server, message: this.scrub(`MCP server "${this.#server}" ${what}`) })
  }

  scrub(text: string): string {
    return withoutSecrets(text, this.#secrets)
  }

  /** What an error says, on one line and not too long. */
  quote(text: string): string {
    const clean = oneLine(this.scrub(text).trim(), maxText)
    return clean === "" ? "no text" : clean.replace(/[.:\s]+$/, "")
  }

  /** It could not be connected. `output` are the last lines that a process wrote to its standard error. */
  connecting(error: WireError, output: string): McpError {
    switch (error._tag) {
      case "Http":
        return this.#status(error.status, error.text)
      case "Rpc":
        return this.make(
          "Protocol",
          `(${this.#subject}) refused to be initialized: ${this.quote(error.text)}. Check that it speaks MCP.`
        )
      case "Other":
        break
    }
    if (this.#isHttp) {
      return error.code === undefined && !/fetch failed/.test(error.text)
        ? this.make("Protocol", `(${this.#subject}) does not speak MCP as it should: ${this.quote(error.text)}.`)
        : this.make(
          "Unreachable",
          `cannot be reached at ${this.#subject}: ${this.quote(error.text)}. Check the URL, and that the server runs.`
        )
    }
    if (error.code === "ENOENT") {
      return this.make(
        "NotStarted",
        `cannot be started: there is no command "${this.#subject}", or no folder that is its \`cwd\`. Install it, or give its full path.`
      )
    }
    return error.code === undefined
      ? this.make("Protocol", `(${this.#subject}) does not speak MCP as it should: ${this.quote(error.text)}.${output}`)
      : this.make("NotStarted", `cannot be started with "${this.#subject}": ${this.quote(error.text)}.`)
  }

  notMessages(noise: string, output: string): McpError {
    return this.make(
      "Protocol",
      `(${this.#subject}) writes to its standard output what is no message of MCP: ${
        this.quote(noise)
      }. Check that the command starts an MCP server over stdio, which has to log to its standard error.${output}`
    )
  }

  /** Its process has ended before it was ready. */
  ended(output: string): McpError {
    return this.make(
      "NotStarted",
      `(${this.#subject}) ended before it was ready. Check the command, its arguments and its environment.${output}`
    )
  }

  late(millis: number, output: string): McpError {
    return this.make(
      "Timeout",
      `(${this.#subject}) was not ready after ${millis} ms. Check that it speaks MCP, or give it more time with \`connectTimeout\`.${output}`
    )
  }

  closed(): McpError {
    return this.make("Closed", "is closed: its scope has ended. Connect it in a scope that lives as long as the agent.")
  }

  /** Its process has ended while a request was open. */
  died(output: string): RequestFailure {
    return { _tag: "Unknown", error: this.make("NotStarted", `(${this.#subject}) has ended during the call.${output}`) }
  }

  /** The stream of an answer is over, and no answer was in it. */
  brokeOff(): RequestFailure {
    return { _tag: "Unknown", error: this.make("Unreachable", `(${this.#subject}) broke off its answer.`) }
  }

  /** A request failed although it was connected. */
  request(error: WireError): RequestFailure {
    switch (error._tag) {
      case "Rpc":
        return {
          _tag: "Answered",
          error: this.make("Refused", `refused the request (${error.code}): ${this.quote(error.text)}`)
        }
      case "Http": {
        // A session that the server does not know any more; some answer 400 where the protocol asks for 404.
        const expired = error.hadSession &&
          (error.status === 404 || (error.status === 400 && /session/i.test(error.text)))
        return { _tag: expired ? "NotDelivered" : "Answered", error: this.#status(error.status, error.text) }
      }
      case "Other":
        return {
          _tag: error.code !== undefined && nobody.has(error.code) ? "NotDelivered" : "Unknown",
          error: this.make("Unreachable", `(${this.#subject}) did not answer: ${this.quote(error.text)}`)
        }
    }
  }

  #status(status: number, text: string): McpError {
    if (status === -1) {
      return this.make(
        "Protocol",
        `(${this.#subject}) answered with what is no message of MCP: ${
          this.quote(text)
        }. Check the URL: that of an MCP server often ends in /mcp.`
      )
    }
    const answered = `answered ${status} at ${this.#subject}: ${this.quote(text)}.`
    if (status === 401 || status === 403) {
      return this.make("Unauthorized", `${answered} Give a valid \`token\`, or the \`headers\` it asks for.`)
    }
    if (status >= 500 || status === 429) {
      return this.make("Unreachable", `${answered} The server is failing or overloaded; try again later.`)
    }
    return this.make("Protocol", `${answered} Check the URL: that of an MCP server often ends in /mcp.`)
  }
}

/** The last lines of what a process wrote to its standard error. */
export class Tail {
  static readonly #maxLength = 2000
  static readonly #maxLines = 10
  #text = ""

  add(text: string): void {
    this.#text = (this.#text + text).slice(-Tail.#maxLength)
  }

  /** As the end of a message. */
  show(): string {
    const lines = this.#text.split("\n").map((line) => line.trimEnd()).filter((line) => line !== "")
    return lines.length === 0
      ? ""
      : `\nThe last lines of its standard error:\n${lines.slice(-Tail.#maxLines).map((line) => `  ${line}`).join("\n")}`
  }
}
