/**
 * Everything that can go wrong with a request, as a `ModelError` that names the URL and the way out. No text leaves this
 * file that holds the key: servers and HTTP libraries repeat what they were sent.
 */
import type * as HttpClientError from "effect/http/HttpClientError"
import * as Result from "effect/Result"
import { ModelError, type ModelErrorReason } from "../../Errors.ts"
import { isContextOverflow, statusOfWords, withoutSecrets } from "../errorText.ts"
import { oneLine } from "../excerpt.ts"
import { isRecord } from "../record.ts"

/** How much of a server's text an error repeats. */
const maxText = 600

/** An error as a server reports it. */
interface Reported {
  readonly text: string
  /** The words of its code and type. */
  readonly words: string
  /** Its code where that is a number like an HTTP status. */
  readonly status: number | undefined
}

export class Failures {
  readonly #url: string
  readonly #model: string
  readonly #secrets: ReadonlyArray<string>

  /** `secrets` are the texts that must not show; there are none when no key was sent. */
  constructor(url: string, model: string, secrets: ReadonlyArray<string>) {
    this.#secrets = secrets
    this.#url = this.#scrub(url)
    this.#model = model
  }

  /** The answer to the request is not a success. `retryAfter` is in milliseconds. */
  status(status: number, body: string, retryAfter: number | undefined): ModelError {
    const reported = readBody(body)
    const said = reported.text === "" ? "" : `: ${this.#quote(reported.text)}`
    return this.#fromStatus(status, `POST ${this.#url} answered ${status}${said}`, reported, retryAfter)
  }

  /** An error object inside the stream, or as the whole answer. */
  inStream(error: unknown): ModelError {
    const reported = readError(error)
    const status = reported.status ?? statusOfWords(reported.words)
    const said = this.#quote(reported.text === "" ? "no text" : reported.text)
    const message = `${this.#url} reported an error in its answer: ${said}`
    return status === undefined
      ? new ModelError({
        reason: isContextOverflow(reported.text, reported.words) ? "ContextOverflow" : "Reported",
        message
      })
      : this.#fromStatus(status, message, reported, undefined)
  }

  #fromStatus(status: number, what: string, reported: Reported, retryAfter: number | undefined): ModelError {
    const fail = (reason: ModelErrorReason, wayOut: string): ModelError =>
      new ModelError({
        reason,
        message: `${what.replace(/\.$/, "")}. ${wayOut}`,
        ...(retryAfter !== undefined && { retryAfter })
      })
    if (status === 401 || status === 403) {
      return fail(
        "Authentication",
        this.#secrets.length === 0
          ? "No API key was sent: set OPENAI_API_KEY for `OpenAi.layerConfig`, or give `apiKey` to `OpenAi.layer` or the hook `apiKey`."
          : "Check that the API key is right and belongs to this server."
      )
    }
    if (status === 408) return fail("Timeout", "The server gave up waiting; try again.")
    if (status === 429) {
      const wait = retryAfter === undefined ? "a while" : `${Math.ceil(retryAfter / 1000)} s`
      return fail("RateLimited", `Wait ${wait} before trying again, or check the quota of the account.`)
    }
    if (status >= 500) return fail("Overloaded", "The server is overloaded or has failed; try again later.")
    if (status < 400) {
      return fail("ProtocolViolation", "That is no answer to a chat completion: check the base URL.")
    }
    if (status !== 404 && isContextOverflow(reported.text, reported.words)) {
      return fail(
        "ContextOverflow",
        `The conversation is longer than "${this.#model}" can read: shorten it, for example with \`Messages.keepLast\` in the hook \`transformContext\`.`
      )
    }
    if (status === 404) {
      return fail(
        "InvalidRequest",
        `Either the server has no model "${this.#model}", or the base URL is wrong: for most servers it ends in /v1.`
      )
    }
    return fail("InvalidRequest", `The server refuses this request for the model "${this.#model}".`)
  }

  /** The HTTP client failed. Its error is not kept as a cause: it holds the request with its headers. */
  http(error: HttpClientError.HttpClientError): ModelError {
    const { reason } = error
    const detail = this.#quote(rootMessage("cause" in reason ? reason.cause : undefined) || error.message)
    switch (reason._tag) {
      case "InvalidUrlError":
      case "EncodeError":
        return new ModelError({
          reason: "InvalidRequest",
          message: `No request can be made to ${this.#url}: ${detail}. Check the base URL.`
        })
      case "DecodeError":
        return new ModelError({ reason: "Network", message: `The connection to ${this.#url} broke off: ${detail}` })
      case "TransportError":
        return new ModelError({
          reason: "Network",
          message:
            `No connection to ${this.#url}: ${detail}. Check that the server runs and that the base URL is right.`
        })
      default:
        return this.violation(`answered without a body (${detail})`)
    }
  }

  noModel(): ModelError {
    return new ModelError({
      reason: "InvalidRequest",
      message: `No model was chosen for ${this.#url}: give the agent one, such as \`model: OpenAi.model("…")\`.`
    })
  }

  noScheme(): ModelError {
    return new ModelError({
      reason: "InvalidRequest",
      message: `${this.#url} is no URL: the base URL has to begin with http:// or https://.`
    })
  }

  badKey(): ModelError {
    return new ModelError({
      reason: "Authentication",
      message:
        `The API key for ${this.#url} cannot be sent: it holds a character that no key has, such as a line break or a typographic quote.`
    })
  }

  /** The answer is not what it should be. */
  violation(what: string): ModelError {
    return new ModelError({ reason: "ProtocolViolation", message: `${this.#url} ${what}` })
  }

  notEvents(contentType: string | undefined, start: string): ModelError {
    if (start.trim() === "" && contentType?.includes("text/event-stream")) {
      return this.incomplete(" and without an event")
    }
    const type = contentType === undefined ? "without a content type" : `with the content type ${contentType}`
    if (isWholeAnswer(start)) {
      return this.violation(
        `answered ${type} with a whole chat completion where a stream was asked for: the server, or a proxy before it, ` +
          "ignores `stream: true`. Turn streaming on there, or use a server that streams."
      )
    }
    const begins = start.trim() === "" ? "is empty" : `begins ${JSON.stringify(this.#quote(start.trim()))}`
    return this.violation(
      `answered ${type} where a stream of server-sent events was asked for; it ${begins}. Check the base URL: for most servers it ends in /v1.`
    )
  }

  notJson(data: string): ModelError {
    return this.violation(`sent an event that is no JSON: ${JSON.stringify(this.#quote(data))}`)
  }

  incomplete(what: string): ModelError {
    return new ModelError({
      reason: "IncompleteStream",
      message: `The answer of ${this.#url} ended without a finish reason${what}: it was cut off on the way.`
    })
  }

  /** On one line, short, without the key. */
  #quote(text: string): string {
    return oneLine(this.#scrub(text), maxText)
  }

  #scrub(text: string): string {
    return withoutSecrets(text, this.#secrets)
  }
}

const asText = (value: unknown): string =>
  typeof value === "string"
    ? value
    : typeof value === "number"
    ? `${value}`
    : value === undefined
    ? ""
    : JSON.stringify(value)

/** The error of a chunk, or what an error's body holds: `{ error: { message, code, type } }` and its variants. */
const readError = (error: unknown): Reported => {
  if (!isRecord(error)) return { text: asText(error), words: "", status: undefined }
  const inner = isRecord(error["error"]) ? error["error"] : error
  const message = inner["message"] ?? inner["detail"] ?? (inner === error ? error["error"] : undefined)
  // OpenRouter keeps what the provider behind it said apart.
  const raw = isRecord(inner["metadata"]) ? inner["metadata"]["raw"] : undefined
  const text = typeof raw === "string" && raw !== message ? `${asText(message)} (${raw})` : asText(message)
  const code = inner["code"] ?? inner["status"]
  const status = typeof code === "number" || (typeof code === "string" && /^\d+$/.test(code)) ? Number(code) : undefined
  return {
    text: text === "" ? asText(inner) : text,
    words: `${asText(inner["code"])} ${asText(inner["type"])}`,
    status: status !== undefined && status >= 400 && status < 600 ? status : undefined
  }
}

const readBody = (body: string): Reported => {
  const text = body.trim()
  if (/^<(!doctype|html|\?xml)/i.test(text)) return { text: "a page of HTML", words: "", status: undefined }
  const json = Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))
  // Google's server wraps its error in a list.
  const [first]: ReadonlyArray<unknown> = Array.isArray(json) ? json : [json]
  return isRecord(first) ? readError(first) : { text, words: "", status: undefined }
}

/** Whether a text is the answer to a request without `stream: true`. Of a long one only the beginning may be there. */
const isWholeAnswer = (text: string): boolean => {
  const json = Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))
  if (!isRecord(json)) return /^\s*\{[^]*"object"\s*:\s*"chat\.completion"/.test(text)
  const [choice]: ReadonlyArray<unknown> = Array.isArray(json["choices"]) ? json["choices"] : []
  return isRecord(choice) && isRecord(choice["message"])
}

/** The message of the innermost cause: the outer ones of fetch say no more than "fetch failed". */
const rootMessage = (cause: unknown): string => {
  if (!(cause instanceof Error)) return ""
  const inner = rootMessage(cause.cause)
  if (inner !== "") return inner
  const code: unknown = Reflect.get(cause, "code")
  return cause.message !== "" ? cause.message : typeof code === "string" ? code : cause.name
}
