/**
 * Answers requests with the responses of a cassette. Each is given once, to a request that asks the same.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { ModelError } from "../../Errors.ts"
import { type StreamEvent, StreamFn, type StreamRequest } from "../../StreamFn.ts"
import { canonicalText } from "../canonical.ts"
import type { Json } from "../json.ts"
import {
  CassetteError,
  type End,
  eventOf,
  type Events,
  header,
  readLine,
  type Redact,
  redact,
  requestJson,
  secretsOf
} from "./cassette.ts"
import { comparable, firstDifference } from "./sameRequest.ts"

/** The options of `Resilience.replay`; see there. */
export interface ReplayOptions {
  readonly redact?: Redact | undefined
  readonly timing?: boolean | undefined
}

interface Recorded {
  readonly line: number
  readonly request: Json
  /** The request as a text that is equal for equal requests. */
  readonly key: string
  readonly steps: Array<{ readonly at: number; readonly events: Events }>
  end: { readonly at: number; readonly end: End } | undefined
  used: boolean
}

export const replay = (
  file: string,
  options: ReplayOptions
): Layer.Layer<StreamFn, CassetteError, FileSystem.FileSystem> =>
  Layer.effect(
    StreamFn,
    Effect.map(readCassette(file), (recorded) => ({
      stream: (request) =>
        Stream.unwrap(Effect.suspend(() =>
          Effect.map(
            find(file, recorded, request, options.redact ?? []),
            (found) => play(found, options.timing ?? true)
          )
        ))
    }))
  )

const readCassette = Effect.fnUntraced(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* Effect.mapError(fs.readFileString(file), (error) => {
    const missing = error.reason._tag === "NotFound"
    return new CassetteError({
      reason: missing ? "NotFound" : "Unreadable",
      file,
      message: missing
        ? `There is no cassette ${file}: record it with Resilience.record.`
        : `The cassette ${file} cannot be read: ${error.message}.`
    })
  })
  const [first, ...lines] = text.split("\n")
  if (first?.trim() !== header) {
    return yield* invalid(file, 1, `${file} is no cassette of this version: its first line has to be ${header}.`)
  }
  return yield* readLines(file, lines)
})

const readLines = Effect.fnUntraced(function*(file: string, lines: ReadonlyArray<string>) {
  const byNumber = new Map<number, Recorded>()
  for (const [index, text] of lines.entries()) {
    const number = index + 2
    if (text.trim() === "") continue
    const read = readLine(text)
    if (Result.isFailure(read)) {
      // Who records may be killed in the middle of a line; what it had written until then is of use.
      if (index === lines.length - 1) break
      return yield* invalid(file, number, `Line ${number} of the cassette ${file} is broken: ${read.failure.message}.`)
    }
    const line = read.success
    const known = byNumber.get(line.n)
    if ("request" in line ? known !== undefined : known === undefined) {
      return yield* invalid(
        file,
        number,
        `Line ${number} of the cassette ${file} belongs to request ${line.n}, which is there ${
          known === undefined ? "only later or not at all" : "already"
        }.`
      )
    }
    if ("request" in line) {
      byNumber.set(line.n, {
        line: number,
        request: line.request,
        key: keyOf(line.request),
        steps: [],
        end: undefined,
        used: false
      })
    } else if ("events" in line) known?.steps.push(line)
    else if (known !== undefined) known.end = line
  }
  return [...byNumber.values()]
})

const invalid = (file: string, line: number, message: string): Effect.Effect<never, CassetteError> =>
  Effect.fail(new CassetteError({ reason: "Invalid", file, line, message: `${message} Record it again.` }))

const keyOf = (request: Json): string => canonicalText(comparable(request))

const find = (
  file: string,
  recorded: ReadonlyArray<Recorded>,
  request: StreamRequest,
  hidden: Redact
): Effect.Effect<Recorded, ModelError> =>
  Effect.gen(function*() {
    const asked = yield* Effect.mapError(Effect.fromResult(requestJson(request)), (problem) =>
      noMatch(file, undefined, `The request cannot be compared with those of the cassette ${file}: ${problem}.`))
    const clean = redact(asked, hidden, secretsOf(request))
    const key = keyOf(clean)
    const found = recorded.find((each) =>
      !each.used && each.key === key
    )
    if (found !== undefined) {
      found.used = true
      return found
    }
    const next = recorded.find(({ used }) => !used)
    if (next === undefined) {
      return yield* noMatch(
        file,
        undefined,
        `All ${recorded.length} responses of the cassette ${file} were played already.`
      )
    }
    const difference = firstDifference(comparable(next.request), comparable(clean))
    return yield* noMatch(
      file,
      next.line,
      `The request is none of those that are left in the cassette ${file}. The next, on line ${next.line}, ${difference}.`
    )
  })

const noMatch = (file: string, line: number | undefined, message: string): ModelError => {
  const text = `${message} Record it again, or name what differs in \`redact\`.`
  return new ModelError({
    reason: "InvalidRequest",
    message: text,
    cause: new CassetteError({ reason: "NoMatch", file, line, message: text })
  })
}

const play = ({ end, line, steps }: Recorded, timing: boolean): Stream.Stream<StreamEvent, ModelError> =>
  Stream.unwrap(Effect.map(Clock.currentTimeMillis, (startedAt) => {
    const until = (at: number): Effect.Effect<void> =>
      timing
        ? Effect.flatMap(Clock.currentTimeMillis, (now) =>
          now < startedAt + at ? Effect.sleep(startedAt + at - now) : Effect.void)
        : Effect.void
    const events = Stream.flattenArray(
      Stream.mapEffect(Stream.fromIterable(steps), (step) => Effect.as(until(step.at), Arr.map(step.events, eventOf)))
    )
    if (end === undefined) return events
    if (end.end === "complete") return Stream.concat(events, Stream.fromEffectDrain(until(end.at)))
    // Who interrupts at the same time again comes first.
    const at = end.end === "interrupted" ? end.at + 1 : end.at
    return Stream.concat(events, Stream.unwrap(Effect.as(until(at), Stream.fail(failureOf(end.end, line)))))
  }))

const failureOf = (end: Exclude<End, "complete">, line: number): ModelError =>
  end === "interrupted"
    ? new ModelError({
      reason: "IncompleteStream",
      message: `The recorded response of line ${line} was interrupted here and has no more to play`
    })
    : new ModelError(end)
