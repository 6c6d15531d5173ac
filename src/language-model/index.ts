/**
 * The language models and toolkits of effect/ai.
 *
 * @since 0.1.0
 */

/**
 * A `StreamFn` from a `LanguageModel` of effect/ai, and tools from its `Toolkit`s.
 */
export * as EffectAi from "./EffectAi.ts"
