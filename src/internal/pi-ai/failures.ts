/**
 * What goes wrong with a pi-ai stream, as a `ModelError`. pi-ai reports errors as text; the status and the time to wait
 * come from the answer of the server where it can be seen, else from the text.
 */
import { ModelError, type ModelErrorReason } from "../../Errors.ts"
import { isContextOverflow, statusOfWords, withoutSecrets } from "../errorText.ts"
import { oneLine } from "../excerpt.ts"
import { show } from "../json.ts"

/** How much of a provider's text an error repeats. */
const maxText = 1200

/** What is known of the server's last answer. */
export interface LastAnswer {
  status: number | undefined
  /** Milliseconds. */
  retryAfter: number | undefined
  contentType: string | undefined
}

/** Statuses stand at the beginning of the text, in brackets, or after the word. */
const statusIn = /^\s*([45]\d\d)\b|\(([45]\d\d)\)|\b(?:status|code|error)\b\W{0,3}([45]\d\d)\b/i

const network =
  /fetch failed|connection error|network|socket|econn|enotfound|eai_again|epipe|terminated|premature close|other side closed/i

const cutOff = /ended (without|before|unexpectedly)|without (a )?finish_reason|incomplete|unexpected end/i

const noKey = /no api key|api key (is )?(required|missing|not set)|not authenticated|no credential|missing credentials/i

const noStream = /\bjson\b|\bhtml\b|\bxml\b/i

const malformed = /malformed|(invalid|not valid|bad) json|unexpected token|in json at/i

const overloaded = /overloaded|unavailable|server error|internal error/i

const limited = /rate.?limit|too many requests|throttl|quota|resource.?exhausted/i

const statusReason = (status: number, text: string): ModelErrorReason =>
  status === 401 || status === 403
    ? "Authentication"
    : status === 408 || status === 504
    ? "Timeout"
    : status === 429
    ? "RateLimited"
    : status >= 500
    ? "Overloaded"
    : status === 413 || isContextOverflow(text)
    ? "ContextOverflow"
    : "InvalidRequest"

const textReason = (text: string): ModelErrorReason => {
  if (noKey.test(text)) return "Authentication"
  if (isContextOverflow(text)) return "ContextOverflow"
  if (limited.test(text)) return "RateLimited"
  if (overloaded.test(text)) return "Overloaded"
  if (/timed? ?out|timeout/i.test(text)) return "Timeout"
  if (cutOff.test(text)) return "IncompleteStream"
  if (network.test(text)) return "Network"
  if (malformed.test(text)) return "ProtocolViolation"
  const status = statusOfWords(text.toLowerCase())
  return status === undefined ? "Reported" : statusReason(status, text)
}

export class Failures {
  readonly #subject: string
  readonly #secrets: ReadonlyArray<string>
  readonly #last: LastAnswer

  /** `subject` names the model; `secrets` are the texts that must not show. */
  constructor(subject: string, secrets: ReadonlyArray<string>, last: LastAnswer) {
    this.#subject = subject
    this.#secrets = secrets
    this.#last = last
  }

  /** An error that pi-ai reported as the end of a response. */
  reported(errorMessage: string | undefined): ModelError {
    const text = this.#clean(errorMessage ?? "")
    const found = statusIn.exec(text)
    const inText = found === null ? undefined : Number(found[1] ?? found[2] ?? found[3])
    const { retryAfter, status: answered } = this.#last
    const status = answered !== undefined && answered >= 400 ? answered : inText
    const reason = status === undefined ? textReason(text) : statusReason(status, text)
    if (reason === "IncompleteStream" && this.#isNoStream()) return this.#noStream(text)
    return new ModelError({
      reason,
      message: text === "" ? `${this.#subject} failed and does not say why` : text,
      ...(retryAfter !== undefined && status === answered && { retryAfter })
    })
  }

  /** The stream function, or reading its stream, threw. */
  thrown(error: unknown): ModelError {
    const { message, reason } = this.reported(error instanceof Error ? error.message : show(error))
    return new ModelError({
      reason: reason === "Reported" ? "Unknown" : reason,
      message: `The stream function of ${this.#subject} failed: ${message}`
    })
  }

  /** A text of pi-ai as it is, but without secrets. */
  text(errorMessage: string | undefined): string | undefined {
    return errorMessage === undefined ? undefined : withoutSecrets(errorMessage, this.#secrets)
  }

  aborted(errorMessage: string | undefined): ModelError {
    return new ModelError({
      reason: "Aborted",
      message: this.#clean(errorMessage ?? `${this.#subject} aborted its answer`)
    })
  }

  noModel(): ModelError {
    return new ModelError({
      reason: "InvalidRequest",
      message: "No model was chosen: give the agent one of pi-ai, such as `model: PiAi.model(models.getModel(…))`."
    })
  }

  /** The stream is not what it should be. */
  violation(what: string): ModelError {
    return new ModelError({ reason: "ProtocolViolation", message: `The stream of ${this.#subject} ${what}` })
  }

  incomplete(): ModelError {
    return new ModelError({
      reason: "IncompleteStream",
      message: `The stream of ${this.#subject} ended without a final event: it was cut off on the way`
    })
  }

  #isNoStream(): boolean {
    const type = this.#last.contentType
    return type !== undefined && noStream.test(type) && !/ndjson/i.test(type)
  }

  /** pi-ai reads any answer as a stream; that of another server has no events in it. */
  #noStream(text: string): ModelError {
    return this.violation(
      `is none: the server answered with the content type ${this.#last.contentType} where a stream was asked for. ` +
        `Check the base URL, and whether the server ignores \`stream: true\` (${text})`
    )
  }

  #clean(text: string): string {
    return oneLine(withoutSecrets(text, this.#secrets), maxText)
  }
}
