/**
 * The contract of a `StreamFn`: cases that everybody's adapter to a model has to pass, for any test framework.
 *
 * Two levels. {@link cases} are for any `StreamFn`: the subject says how it is made to get an answer, and the cases check
 * the order of its events, what they say, its errors, and that an interruption leaves nothing open. {@link completionsCases}
 * are for adapters to the chat completions API: the same answers over the wire, then the bytes of real servers, broken ones
 * among them, and the requests that reach the server.
 *
 * The names of the cases begin with the rule they check; `docs/SPEC.md` has the rules.
 *
 * **Example** (An adapter to the chat completions API)
 *
 * ```ts
 * import { Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { OpenAi } from "effect-pi/openai"
 * import { StreamFnContract } from "effect-pi/testing"
 *
 * // A server on this machine, such as that of `docs/custom-model.md`.
 * declare const serve: StreamFnContract.CompletionsSubject["serve"]
 *
 * const cases = StreamFnContract.completionsCases({
 *   serve,
 *   connect: (url) => OpenAi.layer({ baseUrl: url }).pipe(Layer.provide(FetchHttpClient.layer))
 * })
 *
 * // With @effect/vitest: it.live(name, () => test)
 * for (const { name, test } of cases) console.log(name, test)
 * ```
 *
 * @since 0.1.0
 */
import { answerChecks } from "../internal/contract/answers.ts"
import { completionsChecks, exchanges as allExchanges, subjectOf } from "../internal/contract/completions.ts"
import { lifeChecks } from "../internal/contract/life.ts"
import { casesOf, type Check } from "../internal/contract/mismatch.ts"
import { requestDefects as defects } from "../internal/contract/requestBody.ts"
import { scripted as answersOf } from "../internal/contract/scripted.ts"
import type { Case, CompletionsSubject, ExchangeCase, Options, Subject } from "../internal/contract/types.ts"

export * from "../internal/contract/types.ts"

const checksOf = (subject: Subject): ReadonlyArray<Check> => [...answerChecks(subject), ...lifeChecks(subject)]

/**
 * The cases for any `StreamFn`.
 *
 * **When to use**
 *
 * For an adapter to another wire, a model in the same process, or a `StreamFn` around another one.
 *
 * **Example** (A `StreamFn` around another one)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Resilience } from "effect-pi/resilience"
 * import { StreamFnContract } from "effect-pi/testing"
 *
 * const cases = StreamFnContract.cases({
 *   answering: (answers) =>
 *     Effect.map(StreamFnContract.scripted(answers), (answering) => ({
 *       ...answering,
 *       layer: answering.layer.pipe(Resilience.rateLimit({ concurrency: 8 }))
 *     }))
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const cases = (subject: Subject, options: Options = {}): ReadonlyArray<Case> =>
  casesOf(checksOf(subject), options)

/**
 * The cases for an adapter to the chat completions API: those of {@link cases} over this wire, every exchange of
 * {@link exchanges}, and the requests.
 *
 * **Details**
 *
 * Every case has a server of its own and closes it. Together they take a few seconds.
 *
 * **Example** (A difference that is known)
 *
 * ```ts
 * import { StreamFnContract } from "effect-pi/testing"
 *
 * declare const subject: StreamFnContract.CompletionsSubject
 *
 * const cases = StreamFnContract.completionsCases(subject, {
 *   differences: { "M2: lines that end with CR": "no server sends them" }
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const completionsCases = (subject: CompletionsSubject, options: Options = {}): ReadonlyArray<Case> =>
  casesOf([...checksOf(subjectOf(subject)), ...completionsChecks(subject)], options)

/**
 * Answers of the chat completions API as data: the bytes, and what has to come of them.
 *
 * **When to use**
 *
 * To compare two adapters with each other; {@link completionsCases} plays all of them.
 *
 * @category constants
 * @since 0.1.0
 */
export const exchanges: ReadonlyArray<ExchangeCase> = allExchanges

/**
 * What is wrong with the body of a request to the chat completions API, in words; nothing when nothing is: calls and
 * results pair, no message is empty, ids and names are safe, arguments are JSON objects, and texts are well-formed Unicode.
 *
 * **Example** (A result without its call)
 *
 * ```ts
 * import { StreamFnContract } from "effect-pi/testing"
 *
 * StreamFnContract.requestDefects({
 *   model: "m",
 *   stream: true,
 *   messages: [{ role: "tool", tool_call_id: "a", content: "found" }]
 * })
 * // => ['`messages[0]` is the result of "a", which no call right before it has for its id']
 * ```
 *
 * @category guards
 * @since 0.1.0
 */
export const requestDefects = (body: unknown): ReadonlyArray<string> => defects(body)

/**
 * A subject of its own: the answers from a model in the same process.
 *
 * **When to use**
 *
 * To check a `StreamFn` that goes around another one, as in {@link cases}.
 *
 * **Example** (It keeps the contract)
 *
 * ```ts
 * import { StreamFnContract } from "effect-pi/testing"
 *
 * const cases = StreamFnContract.cases({ answering: StreamFnContract.scripted })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const scripted: Subject["answering"] = (answers) => answersOf(answers)
