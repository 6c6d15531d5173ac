/**
 * What makes a model dependable.
 *
 * @since 0.1.0
 */

/**
 * Trying again, other models, limits on the rate of requests, and recordings, for any `StreamFn`.
 */
export * as Resilience from "./Resilience.ts"
