/**
 * The agent core: a double loop around a model and tools, as Effect services.
 *
 * @since 0.1.0
 */

/** The stateful host: transcript, queues, one run at a time, listeners, abort. */
export * as Agent from "./Agent.ts"
/** Limits on what runs may spend. */
export * as Budget from "./Budget.ts"
/** The conversion from recorded messages to what a model understands. */
export * as ConvertToLlm from "./ConvertToLlm.ts"
/** Tagged errors and the outcome of a run. */
export * as Errors from "./Errors.ts"
/** What a run tells its listeners. */
export * as Events from "./Events.ts"
/** Seven places where an application changes what an agent does. */
export * as Hooks from "./Hooks.ts"
/** The double loop alone. */
export * as Loop from "./Loop.ts"
/** Messages, their schemas, and what a transcript says. */
export * as Messages from "./Messages.ts"
/** Steering and follow-up queues. */
export * as Queues from "./Queues.ts"
/** The seam to a model. */
export * as StreamFn from "./StreamFn.ts"
/** Tools. */
export * as Tools from "./Tools.ts"
