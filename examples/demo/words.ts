/**
 * The words of a question.
 */

export interface Word {
  readonly text: string
  /** Lower case; empty when the text was quoted, so that no rule takes it for one of its own words. */
  readonly lower: string
  readonly quoted: boolean
}

const pattern = /"([^"]+)"|`([^`]+)`|“([^”]+)”|'([^']+)'(?=[\s,;:.?!)]|$)|[,;?!]|[^\s,;?!"`“”]+/gu

/** Quoted texts are one word. A full stop at the end of a word is dropped, unless the word is `.` or `..`. */
export const wordsOf = (question: string): ReadonlyArray<Word> =>
  Array.from(question.matchAll(pattern), (match): Word => {
    const quoted = match.slice(1).find((text) => text !== undefined)
    if (quoted !== undefined) return { text: quoted, lower: "", quoted: true }
    const text = /^[./]+$/.test(match[0]) ? match[0] : match[0].replace(/^\(|[.:)]+$/g, "")
    return { text, lower: text.toLowerCase(), quoted: false }
  }).filter((word) => word.text !== "")

/** A set of words, given with spaces between them. */
export const setOf = (words: string): ReadonlySet<string> => new Set(words.split(" "))

/** Whether there is a word at a place and it is one of a set. */
export const isOneOf = (words: ReadonlyArray<Word>, index: number, set: ReadonlySet<string>): boolean => {
  const word = words[index]
  return word !== undefined && !word.quoted && set.has(word.lower)
}

export const prepositions = setOf("in inside within under below from")
