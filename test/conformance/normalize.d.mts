import type { EventBody, TraceMessage, TraceResult } from "./trace.ts"

/** A tool as traces show it: its name, and its description unless that is the default one. */
export function showTool(tool: { readonly name: string; readonly description?: string }): string

/** A value as plain JSON. */
export function json(value: unknown): unknown

/** A message in the form of SCENARIO.md, section 3. */
export function normMessage(message: unknown): TraceMessage
export function normMessages(messages: ReadonlyArray<unknown>): Array<TraceMessage>

/** A tool result in the form of SCENARIO.md, section 9. */
export function normResult(result: unknown): TraceResult | null

/** An event in the form of SCENARIO.md, section 9, without its time. */
export function normEvent(event: { readonly type: string }): EventBody

/** One letter for each role a model knows. */
export const ROLE_LETTER: { readonly [role: string]: string | undefined }

/** Roles of a message list as one letter each; custom roles are "c". */
export function roles(messages: ReadonlyArray<{ readonly role: string }>): string
