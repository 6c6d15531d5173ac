/** What is measured, and what a library has to offer to be measured. */

/** How the events of a run are read: by a function, or by a function that returns an effect or a promise each time. */
export type Listener = "sync" | "effect"

export interface Reading {
  readonly listener: Listener
  /** Whether every hook of the library is present. Each of them looks at its input and changes nothing. */
  readonly hooks: boolean
}

/**
 * One piece of work. What the model answers is given by it, word for word, so that every contender does the same. Timed is
 * one run, from its prompt to its end, on an agent that was made before, unless the workload says otherwise.
 */
export type Workload =
  & Reading
  & (
    /** W1: one run of that many turns with one call of `echo({ text: "hi" })` each, then a turn with the text "done". */
    | { readonly name: "turns"; readonly turns: number }
    /**
     * W2: one response that is a text of that many deltas "word ", `chunk` of them at a time (0: all); `wakeUps`: an
     * asynchronous wake-up before each chunk.
     */
    | { readonly name: "deltas"; readonly deltas: number; readonly chunk: number; readonly wakeUps: boolean }
    /** W2a: one call whose arguments, `{"text":"aaa…"}`, are that many bytes and arrive in that many deltas; then "done". */
    | { readonly name: "arguments"; readonly bytes: number; readonly deltas: number }
    /** W3: one turn with that many parallel calls of `echo`, then "done". `sleep`: the tool waits a millisecond. */
    | {
      readonly name: "calls"
      readonly calls: number
      readonly tool: "sync" | "promise" | "sleep"
      /** 0: unbounded. */
      readonly concurrency: number
    }
    /**
     * W4: a turn with one call, and one with "done", on top of a transcript of that many messages. Timed and counted are `repeat`
     * such runs together, one after the other on the same agent. The last messages of the transcript are from as many runs before
     * them: what an agent prepares once is not timed.
     */
    | { readonly name: "transcript"; readonly messages: number; readonly repeat: number }
    /** W5: that many agents at once, each with `turns` turns as in W1. Making the agents is timed. */
    | { readonly name: "agents"; readonly agents: number; readonly turns: number }
    /** W6: timed is from the abort of a run with that many running tools, which never end by themselves, to its end. */
    | { readonly name: "abort"; readonly tools: number }
    /** W7: that many messages are queued by `steer` before the run; they are drained one at a time, a turn "ok" for each. */
    | { readonly name: "steering"; readonly messages: number }
    /** Bytes of the heap for each of that many agents which are idle after a turn, in a tool, or wait for the stream. */
    | { readonly name: "memory"; readonly agents: number; readonly state: "idle" | "tool" | "stream" }
  )

/** What a run showed. Contenders that do the same work show the same numbers. */
export interface Counts {
  /** Responses of the model that came to their end; in `memory` only those of idle agents. */
  readonly responses: number
  /** Pieces of text or of arguments that reached the listener. The arguments of a call are one piece, but in W2a. */
  readonly deltas: number
  /** Executions of a tool. */
  readonly executions: number
  /** Results of calls that reached the listener (or, where a library has no such event, its transcript). */
  readonly results: number
  /** Queued messages that reached the model. */
  readonly queued: number
}

export interface Measured {
  readonly counts: Counts
  /** Milliseconds; bytes for each agent where memory is measured. */
  readonly value: number
}

export interface Contender {
  /** The package, as it is called where it is published. */
  readonly name: string
  readonly version: string
  /**
   * Prepares the work without timing it. What it gives does the work once and measures it; it can be called again. A text says why
   * this library cannot do it.
   */
  readonly prepare: (workload: Workload) => Promise<(() => Promise<Measured>) | string>
}
