/**
 * Traces, metrics and logs of runs.
 *
 * @since 0.1.0
 */

/**
 * Watches over runs: spans, metrics, and log annotations by OpenTelemetry's conventions for generative AI.
 */
export * as Telemetry from "./Telemetry.ts"
