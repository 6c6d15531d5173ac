/**
 * The words of a question, and the folders and files it names.
 */
import { isProperName, kindOfWord } from "./kinds.ts"

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

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(" "))

export const prepositions = setOf("in inside within under below from")
const articles = setOf("the a an my our your folder folders directory directories dir path file both all")
const folderNouns = setOf("folder folders directory directories dir")
const separators = setOf(", and or & vs versus")
const here = setOf("this here current working workspace repository repo project package codebase root everywhere")
/** Words that begin something else, so that they are no paths unless they are quoted. */
const others = setOf(
  ", ; ? ! and or & vs versus which what how who where when why list ls find search grep show tell is are was do does did it its " +
    "them there longest shortest largest biggest smallest lines line files please also then count give name print read " +
    "have has contain contains hold holds say says total detail order bytes size many much most that i you we for to of " +
    "with by on at as be can could would will not no yes only just too each every any"
)

const isPath = (word: Word | undefined): word is Word => word !== undefined && (word.quoted || !others.has(word.lower))

/** Whether a word can only be a path: quoted, with a slash, dots, or a name with an ending. */
export const looksLikePath = (word: Word): boolean =>
  word.quoted || word.text.includes("/") || word.text === "." || word.text === ".." ||
  /^[^*.]+\.\w+$/.test(word.text) ||
  /^\.\w+\.\w+$/.test(word.text)

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
  for (;;) {
    while (articles.has(words[at]?.lower ?? "none")) used.add(at++)
    const word = words[at]
    if (word !== undefined && here.has(word.lower)) {
      paths.push(".")
      while (here.has(words[at]?.lower ?? "none") || folderNouns.has(words[at]?.lower ?? "none")) used.add(at++)
    } else if (isPath(word) && !isKind(at)) {
      paths.push(word.text)
      used.add(at++)
      while (folderNouns.has(words[at]?.lower ?? "none")) used.add(at++)
    } else break
    let next = at
    while (separators.has(words[next]?.lower ?? "none")) next++
    if (next === at || !(isPath(words[next]) || here.has(words[next]?.lower ?? "none"))) break
    at = next
  }
  return { paths, used }
}

const lastTwo = (words: ReadonlyArray<Word>, index: number): string =>
  `${words[index - 2]!.lower} ${words[index - 1]!.lower}`

/** The folders and files of a question: what stands behind `in`, or what looks like a path, or `src` in `does src have`. */
export const readPaths = (words: ReadonlyArray<Word>): Paths => {
  // `in TypeScript` is a language, and so is `in typescript` when a folder follows; `in json` alone is a folder.
  const isKind = (index: number): boolean => {
    const word = words[index]!
    if (word.quoted || word.text === "." || word.text === "..") return false
    const folderFollows = folderNouns.has(words[index + 1]?.lower ?? "none")
    const filesFollow = ["files", "file"].includes(words[index + 1]?.lower ?? "none")
    const pathFollows = words.slice(index + 1).some((later) => prepositions.has(later.lower))
    return kindOfWord(word.text) !== undefined && !folderFollows &&
      (isProperName(word.text) || filesFollow || pathFollows)
  }
  const paths: Array<string> = []
  const used = new Set<number>()
  const add = (list: Paths): void => {
    paths.push(...list.paths)
    for (const index of list.used) used.add(index)
  }
  words.forEach((word, index) => {
    if (prepositions.has(word.lower) && !used.has(index)) add(readList(words, index + 1, isKind))
  })
  const tries: ReadonlyArray<(word: Word, index: number) => boolean> = [
    (word) => looksLikePath(word) && kindOfWord(word.text) === undefined,
    (_, index) => index > 0 && /^(do|does)$/.test(words[index - 1]!.lower),
    (_, index) => folderNouns.has(words[index + 1]?.lower ?? "none"),
    (_, index) => index > 0 && /^(list|ls|read|open|cat|show|print|view|display)$/.test(words[index - 1]!.lower),
    (_, index) => index > 1 && /^((which|lines?|size|contents?) of|(big|large|long) is)$/.test(lastTwo(words, index))
  ]
  for (const matches of tries) {
    if (paths.length > 0) break
    const start = words.findIndex((word, index) =>
      isPath(word) && !articles.has(word.lower) && !here.has(word.lower) && kindOfWord(word.text) === undefined &&
      matches(word, index)
    )
    if (start >= 0) add(readList(words, start, () => false))
  }
  return { paths: [...new Set(paths)], used }
}
