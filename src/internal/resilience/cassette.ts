/**
 * Recorded responses as JSON lines: what was asked, and what came when. A line says to which request it belongs, so that
 * responses that came at the same time can be told apart, and a recording that broke off is readable up to there.
 */
import * as Data from "effect/Data"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ModelError } from "../../Errors.ts"
import type { StreamEvent, StreamRequest } from "../../StreamFn.ts"
import { secretsIn, withoutSecrets } from "../errorText.ts"
import { encode, type Json, type JsonObject } from "../json.ts"
import { isJsonObject, isList, setField } from "../record.ts"

/** A cassette that cannot be used; see `Resilience.CassetteError`. */
export class CassetteError extends Data.TaggedError("CassetteError")<{
  readonly reason: "NotFound" | "NotWritable" | "Unreadable" | "Invalid" | "NoMatch"
  readonly message: string
  readonly file: string
  /** From 1, where one line is at fault. */
  readonly line?: number | undefined
}> {}

/** What must not be written down: fields by name, texts by pattern. */
export type Redact = ReadonlyArray<string | RegExp>

// --- lines ---

/** The first line of a cassette. */
export const header = "{\"format\":\"effect-pi/cassette\",\"version\":1}"

const Failure = Schema.Struct({
  reason: Schema.Literals([
    "Authentication",
    "InvalidRequest",
    "ContextOverflow",
    "RateLimited",
    "Overloaded",
    "Network",
    "Timeout",
    "IncompleteStream",
    "ProtocolViolation",
    "Reported",
    "Aborted",
    "Unknown"
  ]),
  message: Schema.String,
  retryAfter: Schema.optionalKey(Schema.Finite)
})

const Count = Schema.Int.check(Schema.isGreaterThan(0))

/** Milliseconds since the request. */
const At = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

const RequestLine = Schema.Struct({ n: Count, request: Schema.Json })

const EventsLine = Schema.Struct({
  n: Count,
  at: At,
  events: Schema.NonEmptyArray(Schema.Record(Schema.String, Schema.Json))
})

/** How a stream ended, where its last event does not say so. */
const EndLine = Schema.Struct({
  n: Count,
  at: At,
  end: Schema.Union([Schema.Literals(["complete", "interrupted"]), Failure])
})

const Line = Schema.fromJsonString(Schema.Union([RequestLine, EventsLine, EndLine]))

export type Line = typeof Line.Type
export type Events = typeof EventsLine.Type["events"]
export type End = typeof EndLine.Type["end"]

export const writeLine = (line: Line): string => `${JSON.stringify(line)}\n`

export const readLine: (text: string) => Result.Result<Line, Schema.SchemaError> = Schema.decodeUnknownResult(Line)

// --- events ---

/** A failure without what only this process knows of it. */
export const failureOf = ({ message, reason, retryAfter }: ModelError): typeof Failure.Type => ({
  reason,
  message,
  ...(retryAfter !== undefined && { retryAfter })
})

const readFailure = Schema.decodeUnknownOption(Failure)

/** An event as JSON, if it can be written down. */
export const eventJson = (event: StreamEvent): Result.Result<JsonObject, string> =>
  Result.filterOrFail(
    encode("error" in event && event.error !== undefined ? { ...event, error: failureOf(event.error) } : event),
    isJsonObject,
    () => "it is no object"
  )

/** A recorded event. The loop checks what it reads of it, as of every other stream. */
export const eventOf = (json: Events[number]): StreamEvent => {
  const failure = Option.map(readFailure(json["error"]), (fields) => new ModelError(fields))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- whether it is an event is for the loop to find out
  return { ...json, ...(Option.isSome(failure) && { error: failure.value }) } as unknown as StreamEvent
}

// --- requests ---

const redacted = "<redacted>"

/** A request as JSON. The key is left out, and of the headers only the names are kept. */
export const requestJson = (request: StreamRequest): Result.Result<Json, string> => {
  const { apiKey: _, headers, ...rest } = request
  return encode({
    ...rest,
    ...(headers !== undefined && { headers: Object.fromEntries(Object.keys(headers).map((name) => [name, redacted])) })
  })
}

/** The texts of a request that must not show, wherever they come back. */
export const secretsOf = ({ apiKey, headers }: StreamRequest): ReadonlyArray<string> =>
  secretsIn(apiKey === undefined ? [] : [Redacted.value(apiKey)], headers)

/** A copy in which the values of the fields, and what the patterns and secrets find in texts, are replaced. */
export const redact = (value: Json, hidden: Redact, secrets: ReadonlyArray<string>): Json => {
  if (typeof value === "string") return redactText(value, hidden, secrets)
  if (isList(value)) return value.map((item) => redact(item, hidden, secrets))
  return isJsonObject(value) ? redactFields(value, hidden, secrets) : value
}

export const redactFields = (value: JsonObject, hidden: Redact, secrets: ReadonlyArray<string>): JsonObject => {
  const copy: Record<string, Json> = {}
  for (const [key, field] of Object.entries(value)) {
    setField(copy, key, hidden.includes(key) ? redacted : redact(field, hidden, secrets))
  }
  return copy
}

export const redactText = (value: string, hidden: Redact, secrets: ReadonlyArray<string>): string => {
  return hidden.reduce<string>(
    (text, each) => typeof each === "string" ? text : text.replaceAll(everywhere(each), redacted),
    withoutSecrets(value, secrets)
  )
}

const everywhere = (pattern: RegExp): RegExp =>
  pattern.global ? pattern : new RegExp(pattern.source, `${pattern.flags}g`)
