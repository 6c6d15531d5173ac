/**
 * Whether a `StreamFn` says what its model says (M2–M5): cases for any wire.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Effect from "effect/Effect"
import type { ModelErrorReason } from "../../Errors.ts"
import { ask, build, requestOf } from "./ask.ts"
import { expectResponse } from "./expectation.ts"
import { type Check, within } from "./mismatch.ts"
import type { Answer, AnswerStep, Expected, OutlineBlock, Subject } from "./types.ts"

export const text = (delta: string): AnswerStep => ({ type: "text", delta })

export const thinking = (delta: string): AnswerStep => ({ type: "thinking", delta })

export const call = (id: string, name: string): AnswerStep => ({ type: "call", id, name })

export const args = (id: string, delta: string): AnswerStep => ({ type: "arguments", id, delta })

const usage = { input: 60, output: 20, cacheRead: 40 }

/** An answer that ends as it should. */
export const complete = (
  steps: ReadonlyArray<AnswerStep>,
  stopReason: "stop" | "length" | "toolUse" = "stop"
): Answer => ({ steps, usage, end: { type: "complete", stopReason } })

/** Fields that are `undefined` are not there. */
const failure = (reason: ModelErrorReason, steps: ReadonlyArray<AnswerStep> = [], retryAfter?: number): Answer => ({
  steps,
  end: { type: "failure", reason, ...(retryAfter !== undefined && { retryAfter }) }
})

const message = (
  content: ReadonlyArray<OutlineBlock>,
  stopReason: "stop" | "length" | "toolUse" = "stop"
): Expected => ({ type: "message", content, stopReason })

const error = (reasons: NonEmptyReadonlyArray<ModelErrorReason>, content?: ReadonlyArray<OutlineBlock>): Expected => ({
  type: "error",
  reasons,
  ...(content !== undefined && { content })
})

interface AnswerCase {
  readonly name: string
  readonly answer: Answer
  readonly expected: Expected
}

const hello: OutlineBlock = { type: "text", text: "Hello" }

const readsA: OutlineBlock = { type: "toolCall", id: "a", name: "read_file", arguments: { path: "a.md" } }

const readsB: OutlineBlock = { type: "toolCall", id: "b", name: "read_file", arguments: { path: "b.md" } }

const begun = [text("Hel"), text("lo")]

const whole: ReadonlyArray<AnswerCase> = [
  { name: "M2: a text in two pieces is one block", answer: complete(begun), expected: message([hello]) },
  {
    name: "M2: thinking, text and a call are three blocks in order",
    answer: complete(
      [thinking("Hm"), thinking("m."), text("Hello"), call("a", "read_file"), args("a", "{\"path\":\"a.md\"}")],
      "toolUse"
    ),
    expected: message([{ type: "thinking", thinking: "Hmm." }, hello, readsA], "toolUse")
  },
  {
    name: "M2: the pieces of a call's arguments are its JSON",
    answer: complete(
      [call("a", "read_file"), ...["{\"pa", "th\":", "\"a.md", "\"}"].map((each) => args("a", each))],
      "toolUse"
    ),
    expected: message([readsA], "toolUse")
  },
  {
    name: "M2: the pieces of two calls that interleave stay apart",
    answer: complete([
      call("a", "read_file"),
      args("a", "{\"path\":"),
      call("b", "read_file"),
      args("b", "{\"path\":\"b"),
      args("a", "\"a.md\"}"),
      args("b", ".md\"}")
    ], "toolUse"),
    expected: message([readsA, readsB], "toolUse")
  },
  {
    name: "M2: a call without arguments has none",
    answer: complete([call("a", "list")], "toolUse"),
    expected: message([{ type: "toolCall", id: "a", name: "list", arguments: {} }], "toolUse")
  },
  {
    name: "M2: letters beyond ASCII, emoji and escapes arrive as they were sent",
    answer: complete(
      [text("é🙈\n\""), text("\u2028日本"), call("a", "read_file"), args("a", "{\"path\":\"é🙈\\n\"}")],
      "toolUse"
    ),
    expected: message([
      { type: "text", text: "é🙈\n\"\u2028日本" },
      { type: "toolCall", id: "a", name: "read_file", arguments: { path: "é🙈\n" } }
    ], "toolUse")
  },
  { name: "M2: an answer that says nothing is complete", answer: complete([]), expected: message([]) },
  {
    name: "M2: the usage is that of the server, tokens from a cache apart",
    answer: complete(begun),
    expected: { type: "message", content: [hello], stopReason: "stop", usage }
  },
  {
    name: "M2: an answer without usage counts no tokens",
    answer: { steps: begun, end: { type: "complete", stopReason: "stop" } },
    expected: { type: "message", content: [hello], stopReason: "stop", usage: { input: 0, output: 0, cacheRead: 0 } }
  },
  {
    name: "M6: an answer at the output limit has the stop reason `length`",
    answer: complete(begun, "length"),
    expected: message([hello], "length")
  }
]

const reasons: ReadonlyArray<ModelErrorReason> = [
  "Authentication",
  "InvalidRequest",
  "ContextOverflow",
  "RateLimited",
  "Overloaded"
]

const broken: ReadonlyArray<AnswerCase> = [
  ...reasons.map((reason): AnswerCase => ({
    name: `M2: a failure is a ModelError: ${reason}`,
    answer: failure(reason),
    expected: error([reason], [])
  })),
  {
    name: "M2: a failure tells how long to wait",
    answer: failure("RateLimited", [], 7000),
    expected: { type: "error", reasons: ["RateLimited"], retryAfter: [7000, 7000] }
  },
  {
    name: "M4: a failure in the middle of an answer keeps what had arrived",
    answer: failure("Overloaded", begun),
    expected: error(["Overloaded", "Reported"], [hello])
  },
  {
    name: "M4: an answer that is cut off before it begins is an error",
    answer: { steps: [], end: { type: "cut" } },
    expected: error(["Network", "IncompleteStream"], [])
  },
  {
    name: "M4: an answer that is cut off in its middle is an error and keeps what had arrived",
    answer: { steps: begun, end: { type: "cut" } },
    expected: error(["Network", "IncompleteStream"], [hello])
  },
  {
    name: "M4: an answer that is cut off in a call is an error",
    answer: { steps: [call("a", "read_file"), args("a", "{\"path\":")], end: { type: "cut" } },
    expected: error(["Network", "IncompleteStream"])
  }
]

/** Every one of them is closed afterwards, however it ended. */
export const answerChecks = (subject: Subject): ReadonlyArray<Check> =>
  [...whole, ...broken].map(({ answer, expected, name }) => ({
    name,
    check: Effect.gen(function*() {
      const answering = yield* subject.answering([answer])
      const given = yield* ask(yield* build(answering), requestOf(answering.model))
      yield* expectResponse(given, expected)
      yield* within(answering.closed, "nothing that is left open after the response", "the answer is still open")
    })
  }))
