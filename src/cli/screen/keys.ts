/**
 * What a key means here; the others belong to the editor.
 */
import { isKeyRelease, matchesKey } from "@earendil-works/pi-tui"
import type { Answer } from "../approval.ts"

export type KeyIntent =
  | { readonly type: "interrupt" | "leave" | "abort" | "withdraw" }
  | { readonly type: "followUp" }
  | { readonly type: "answer"; readonly answer: Answer }

const answers = [["y", "once"], ["a", "always"], ["n", "no"]] as const

export const readKey = (data: string, state: {
  readonly editorIsEmpty: boolean
  /** The list of completions takes Escape and Enter. */
  readonly completing: boolean
  /** A tool waits for an answer. */
  readonly asking: boolean
}): KeyIntent | undefined => {
  if (isKeyRelease(data)) return undefined
  if (matchesKey(data, "ctrl+c")) return { type: "interrupt" }
  if (matchesKey(data, "ctrl+d") && state.editorIsEmpty) return { type: "leave" }
  if (matchesKey(data, "escape") && !state.completing) return { type: "abort" }
  if (matchesKey(data, "alt+enter")) return { type: "followUp" }
  if (matchesKey(data, "alt+up")) return { type: "withdraw" }
  if (!state.asking || !state.editorIsEmpty) return undefined
  for (const [key, answer] of answers) {
    if (matchesKey(data, key) || data.toLowerCase() === key) return { type: "answer", answer }
  }
  return undefined
}
