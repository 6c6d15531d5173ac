/**
 * A model behind OpenAI's chat completions API and the many servers that speak it.
 *
 * @since 0.1.0
 */

/**
 * A `StreamFn` for OpenAI and the servers that speak its chat completions API.
 *
 * @since 0.1.0
 */
export * as OpenAi from "./OpenAi.ts"
