/**
 * What tests of agents need: a model that plays a script, the contract of those who answer for one, and the shape of a transcript
 * in one line.
 *
 * @since 0.1.0
 */

/**
 * A model that plays a script, under `TestClock`.
 *
 * @since 0.1.0
 */
export * as ScriptedModel from "./ScriptedModel.ts"

/**
 * The cases that every `StreamFn` has to pass.
 *
 * @since 0.1.0
 */
export * as StreamFnContract from "./StreamFnContract.ts"

/**
 * Transcripts as short texts, for assertions and for the messages of failing tests.
 *
 * @since 0.1.0
 */
export * as Transcript from "./Transcript.ts"
