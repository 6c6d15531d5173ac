/**
 * The words of the chat completions API: chunks and the events they travel in.
 */
import type { Exchange, Piece } from "./types.ts"

/** The connection breaks here. */
export const cut: Piece = { type: "cut" }

/** Nothing more comes, and the connection stays. */
export const hold: Piece = { type: "hold" }

export const pause = (millis: number): Piece => ({ type: "pause", millis })

export const done = "data: [DONE]\n\n"

/** Each value as one event. */
export const sse = (...values: ReadonlyArray<unknown>): string =>
  values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join("")

const common = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "test-model" }

/** A chunk with a delta. */
export const delta = (delta: object): object => ({ ...common, choices: [{ index: 0, delta, finish_reason: null }] })

export const text = (content: string): object => delta({ content })

export const calls = (...tool_calls: ReadonlyArray<object>): object => delta({ tool_calls })

/** The piece of a call. */
export const piece = (
  index: number | undefined,
  args: unknown,
  first?: { readonly id?: string; readonly name?: string }
): object => ({
  ...(index !== undefined && { index }),
  ...(first?.id !== undefined && { id: first.id, type: "function" }),
  function: { ...(first?.name !== undefined && { name: first.name }), arguments: args }
})

export const finish = (reason: string): object => ({
  ...common,
  choices: [{ index: 0, delta: {}, finish_reason: reason }]
})

export const usage = (usage: object): object => ({ ...common, choices: [], usage })

/** A whole answer. */
export const answer = (...values: ReadonlyArray<unknown>): Exchange => ({ body: [sse(...values), done] })

/** An answer of JSON. */
export const json = (status: number, value: unknown, headers?: Readonly<Record<string, string>>): Exchange => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: [JSON.stringify(value)]
})
