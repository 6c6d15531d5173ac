/**
 * The folders and files a question names.
 */
import { isProperName, kindOfWord } from "./kinds.ts"
import { isOneOf, prepositions, setOf, type Word } from "./words.ts"

const fillers = setOf("the a an my our your both folder folders directory directories dir path file")
const folderNouns = setOf("folder folders directory directories dir")
const separators = setOf(", and or & vs versus")
const fileNouns = setOf("file files line lines")
const links = setOf("of in inside within under below")
/** `the repository` is the working folder, a bare `repository` is a folder of that name. */
const wholes = setOf("repository repo project package codebase workspace root")
const heres = setOf("here everywhere")
const currents = setOf("current working root")
/** Never the name of a folder, unless quoted. */
const enders = setOf(
  ", ; ? ! and or & vs versus all which what how who where when why is are does do has have total order it them there"
)
/** In a list of folders these begin something else: `src, and find …`. */
const others = setOf(
  "list ls find search grep show tell was did its longest shortest largest biggest smallest lines line files also then " +
    "count give name print read contain contains hold holds say says please most that i you we for to of with by on at as"
)

const isEnd = (words: ReadonlyArray<Word>, index: number): boolean =>
  words[index] === undefined || isOneOf(words, index, enders)

/** Whether a word can only be a path: quoted, with a slash, dots, or a name with an ending. */
export const looksLikePath = ({ quoted, text }: Word): boolean =>
  quoted || text.includes("/") || /^\.{1,2}$/.test(text) || /^\.?[^*.]+(\.\w+)+$/.test(text)

/** The paths a question names, and the positions of their words. */
export interface Paths {
  readonly paths: ReadonlyArray<string>
  readonly used: ReadonlySet<number>
}

/** A list such as `src`, `the src folder`, `src, test and "my docs"` or `this repository`. */
const readList = (words: ReadonlyArray<Word>, start: number, isKind: (index: number) => boolean): Paths => {
  const paths: Array<string> = []
  const used = new Set<number>()
  let at = start
  const take = (path: string, from: number): void => {
    paths.push(path)
    at = from + 1
    while (isOneOf(words, at, folderNouns)) at++
    for (let index = start; index < at; index++) used.add(index)
  }
  for (;;) {
    const from = at
    while (isOneOf(words, at, fillers) && !isEnd(words, at + 1)) at++
    const filled = at > from
    const word = words[at]
    if (word === undefined || isEnd(words, at)) break
    if (isOneOf(words, at, heres)) take(".", at)
    else if (word.lower === "this") take(".", isOneOf(words, at + 1, wholes) ? at + 1 : at)
    else if (isOneOf(words, at, currents) && isOneOf(words, at + 1, folderNouns)) take(".", at)
    else if (filled && (isOneOf(words, at, wholes) || isOneOf(words, at, folderNouns))) take(".", at)
    else if (isOneOf(words, at, fileNouns) && (filled || isOneOf(words, at + 1, links))) break
    else if (isKind(at)) break
    else take(word.text, at)
    let next = at
    while (isOneOf(words, next, separators)) next++
    if (next === at || isEnd(words, next) || isOneOf(words, next, others)) break
    if (isOneOf(words, next, fillers) && (isEnd(words, next + 1) || isOneOf(words, next + 1, others))) break
    at = next
  }
  return { paths, used }
}

/** `in TypeScript` is a language, and so is `in typescript` when a folder follows; `in json` alone is a folder. */
const isKindAt = (words: ReadonlyArray<Word>, index: number): boolean => {
  const word = words[index]!
  if (word.quoted || kindOfWord(word.text) === undefined || isOneOf(words, index + 1, folderNouns)) return false
  if (isOneOf(words, index + 1, fileNouns)) return true
  if (words.slice(index + 1).some((later) => prepositions.has(later.lower))) return true
  return isProperName(word.text) && !words.slice(0, index).some((earlier) => kindOfWord(earlier.text) !== undefined)
}

const before = (words: ReadonlyArray<Word>, index: number, pattern: RegExp): boolean =>
  pattern.test(words.slice(Math.max(0, index - 2), index).map((word) => word.lower).join(" "))

/** Where a path may stand without `in`, best first. */
const elsewhere: ReadonlyArray<(words: ReadonlyArray<Word>, index: number) => boolean> = [
  (words, index) => looksLikePath(words[index]!),
  (words, index) => before(words, index, /\b(do|does)$/),
  (words, index) => isOneOf(words, index + 1, folderNouns),
  (words, index) => before(words, index, /\b(list|ls|read|open|cat|show|print|view|display)$/),
  (words, index) => before(words, index, /\b(which|lines?|files?|size|contents?) of$|\b(big|large|long) is$/)
]

/** The folders and files of a question: what stands behind `in`, else what looks like a path, `src` in `does src have`, … */
export const readPaths = (words: ReadonlyArray<Word>): Paths => {
  const paths: Array<string> = []
  const used = new Set<number>()
  const add = (list: Paths): void => {
    paths.push(...list.paths)
    for (const index of list.used) used.add(index)
  }
  words.forEach((word, index) => {
    if (prepositions.has(word.lower) && !used.has(index)) {
      add(readList(words, index + 1, (at) => isKindAt(words, at)))
    }
  })
  for (const matches of elsewhere) {
    if (paths.length > 0) break
    const start = words.findIndex((word, index) =>
      (word.quoted || kindOfWord(word.text) === undefined) && !isOneOf(words, index, fillers) &&
      !isOneOf(words, index, enders) && !isOneOf(words, index, others) && matches(words, index)
    )
    if (start >= 0) add(readList(words, start, () => false))
  }
  return { paths: [...new Set(paths)], used }
}
