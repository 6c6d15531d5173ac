/**
 * The providers of pi-ai.
 *
 * @since 0.1.0
 */

/**
 * Models of any of pi-ai's providers, as a `StreamFn`.
 */
export * as PiAi from "./PiAi.ts"
