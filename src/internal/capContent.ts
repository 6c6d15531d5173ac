/**
 * The cap on what a transcript keeps of a tool's text. The whole result was in the event of the call's end.
 */
import type { Content } from "../Tools.ts"

const lengthOf = (content: Content): number =>
  content.reduce((sum, block) => block.type === "text" ? sum + block.text.length : sum, 0)

/** Cuts between characters, never inside one. */
const cut = (text: string, length: number): string => {
  const code = text.charCodeAt(length - 1)
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? length - 1 : length)
}

/** The content, its text cut after `max` characters with a note of what is missing. */
export const capContent = (content: Content, max: number): Content => {
  const length = lengthOf(content)
  if (length <= max) return content
  let left = max
  const kept: Array<Content[number]> = []
  for (const block of content) {
    if (block.type !== "text") kept.push(block)
    else if (left > 0) {
      const text = block.text.length <= left ? block.text : cut(block.text, left)
      left = block.text.length <= left ? left - text.length : 0
      kept.push({ ...block, text })
    }
  }
  return [...kept, { type: "text", text: `[${length - max} of ${length} characters left out]` }]
}
