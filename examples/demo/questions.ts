/**
 * Reads a question: which of a few things it asks, about which kinds of files, in which folders.
 */
import { Data } from "effect"
import { anyKind, isAmbiguous, type Kind, kindOfWord } from "./kinds.ts"
import { looksLikePath, readPaths } from "./paths.ts"
import { prepositions, setOf, type Word, wordsOf } from "./words.ts"

/** Which numbers a question asks for. */
export interface Wanted {
  readonly lines: boolean
  readonly longest: boolean
  readonly shortest: boolean
  readonly largest: boolean
  readonly smallest: boolean
}

export type Question = Data.TaggedEnum<{
  /** Numbers of files, lines or bytes. */
  Measure: { readonly kinds: ReadonlyArray<Kind>; readonly paths: ReadonlyArray<string>; readonly wanted: Wanted }
  List: { readonly kinds: ReadonlyArray<Kind>; readonly paths: ReadonlyArray<string> }
  /** The text of a file, or what is in a folder. */
  Look: { readonly path: string; readonly first: "read_file" | "list_files" }
  Search: { readonly text: string; readonly kind: Kind; readonly paths: ReadonlyArray<string> }
  /** None of these; `unknownKind` is what was taken for a kind of files. */
  Other: { readonly unknownKind: string | undefined }
}>

export const Question = Data.taggedEnum<Question>()

export const readQuestion = (text: string): Question => {
  const words = wordsOf(text)
  const { paths, used } = readPaths(words)
  const asked = words.filter((_, index) => !used.has(index))
  const has = (...some: ReadonlyArray<string>): boolean => asked.some((word) => some.includes(word.lower))
  const plain = asked.map((word) => word.quoted ? "\"\"" : word.lower).join(" ")

  const wanted: Wanted = {
    lines: has("line", "lines", "loc") || plain.includes("how long"),
    longest: has("longest") || plain.includes("most lines"),
    shortest: has("shortest") || plain.includes("fewest lines"),
    largest: has("largest", "biggest"),
    smallest: has("smallest")
  }
  const extreme = wanted.longest || wanted.shortest || wanted.largest || wanted.smallest
  const aboutFiles = has("file", "files")

  if (asksToSearch(plain) && !(extreme && aboutFiles && !has("search", "grep"))) return readSearch(words)

  const kinds = readKinds(asked)
  const unknownKind = kinds.length === 0 ? unknownKindOf(asked) : undefined
  const about = { kinds: kinds.length === 0 ? [anyKind] : kinds, paths: paths.length === 0 ? ["."] : paths }
  const counts = /\bhow (many|much|big|large)\b|\b(count|number of|size)\b/.test(plain)

  if (extreme || wanted.lines || (counts && (aboutFiles || kinds.length > 0 || has("big", "large", "size")))) {
    return unknownKind === undefined ? Question.Measure({ ...about, wanted }) : Question.Other({ unknownKind })
  }
  if (counts) return Question.Other({ unknownKind: undefined })
  if (/^(please )?(find|look for)\b/.test(plain) && !has("files")) return readSearch(words)
  const [path] = paths
  if (path !== undefined && !has("files", "list", "ls") && asksToLook(plain)) {
    const file = /^(please )?(read|open|cat|print|view|display)\b/.test(plain) || looksLikeFile(path)
    return Question.Look({ path, first: file ? "read_file" : "list_files" })
  }
  if (has("list", "ls", "files")) {
    return unknownKind === undefined ? Question.List(about) : Question.Other({ unknownKind })
  }
  return Question.Other({ unknownKind: undefined })
}

const looksLikeFile = (path: string): boolean => /[^./]\.\w+$/.test(path)

const asksToLook = (plain: string): boolean =>
  /^(please )?(can you )?(read|open|cat|print|view|display|show)\b/.test(plain) ||
  /\bwhat(s|'s| is| are)( there)? (in|inside|under|within)\b/.test(plain) ||
  /\bwhat (do|does) .*\b(say|contain|hold|have|look|mean|do)\b/.test(plain) || /\bcontents?\b/.test(plain)

const verbs = "contain|contains|mention|mentions|include|includes|use|uses|import|imports"

const asksToSearch = (plain: string): boolean =>
  new RegExp(
    `\\b(search|grep)\\b|\\bfiles? (that )?(${verbs})\\b|\\bhow (often|many times)\\b|\\bwhere (is|are|do|does)\\b`
  )
    .test(plain)

// -----------------------------------------------------------------------------
// Kinds of files
// -----------------------------------------------------------------------------

const readKinds = (words: ReadonlyArray<Word>): ReadonlyArray<Kind> => {
  const kinds = new Map<string, Kind>()
  words.forEach((word, index) => {
    if (word.quoted || looksLikePath(word)) return
    const kind = kindOfWord(word.text)
    const before = words[index - 1]?.lower ?? ""
    const after = words[index + 1]?.lower ?? ""
    const meant = !isAmbiguous(word.lower) || before === "of" || /^(files?|lines|code)$/.test(after)
    // "TypeScript code" is TypeScript.
    const more = word.lower === "code" && kindOfWord(before) !== undefined
    if (kind !== undefined && meant && !more) kinds.set(kind.name, kind)
  })
  return [...kinds.values()]
}

const generic = setOf(
  "many the all of which what are list show any these those source most long longest shortest largest biggest smallest and or , two other " +
    "big how number count find me in is ls please more"
)

/** `Cobol` in `Cobol files` or `lines of Cobol in src`. */
const unknownKindOf = (words: ReadonlyArray<Word>): string | undefined =>
  words.find((word, index) => {
    if (word.quoted || generic.has(word.lower) || /\W/.test(word.text)) return false
    const after = words[index + 1]?.lower ?? ""
    const ofLines = words[index - 1]?.lower === "of" && /^lines?$/.test(words[index - 2]?.lower ?? "")
    return (ofLines && !/^(text|content|code|file|files|everything|it)$/.test(word.lower)) || /^files?$/.test(after)
  })?.text

// -----------------------------------------------------------------------------
// Searches
// -----------------------------------------------------------------------------

const leading = setOf(
  "for the word words text string phrase term all any every me occurrences occurrence uses usages of is are do does we i that"
)
const trailing = setOf(
  "? ! , used use defined declared mentioned called imported appear appears occur occurs come comes up found"
)
const searchVerb = new RegExp(`^(search|grep|find|look|where|often|times|${verbs})$`)

/** What is searched stands behind the verb, up to `in`; quoted, it may be anything. */
const readSearch = (words: ReadonlyArray<Word>): Question => {
  const verb = words.findIndex((word, index) =>
    searchVerb.test(word.lower) &&
    !(word.lower === "find" && words.slice(index).some((later) => later.lower === "files"))
  )
  const quoted = words.findIndex((word, index) =>
    index > verb && word.quoted && !prepositions.has(words[index - 1]?.lower ?? "")
  )
  // "search src for Layer" and "search in src for Layer"
  const forAt = words.findIndex((word, index) => index > verb + 1 && word.lower === "for")
  const start = forAt > 0 ? forAt + 1 : verb + 1
  const end = words.findIndex((word, index) => index > Math.max(start, quoted) && prepositions.has(word.lower))
  const sought = quoted >= 0 ? [words[quoted]!] : trim(words.slice(start, end < 0 ? undefined : end))
  const elsewhere = [
    ...(forAt > 0 ? words.slice(verb + 1, forAt) : []),
    ...(end < 0 ? [] : words.slice(end))
  ]
  const place = forAt > 0 && !elsewhere.some((word) => prepositions.has(word.lower))
    ? [{ text: "in", lower: "in", quoted: false }, ...elsewhere]
    : elsewhere
  const { paths, used } = readPaths(place)
  const [kind = anyKind] = readKinds(place.filter((_, index) => !used.has(index)))
  const text = sought.map((word) => word.text).join(" ")
  return text === ""
    ? Question.Other({ unknownKind: undefined })
    : Question.Search({ text, kind, paths: paths.length === 0 ? ["."] : paths })
}

const trim = (words: ReadonlyArray<Word>): ReadonlyArray<Word> => {
  let start = 0
  let end = words.length
  while (start < end && leading.has(words[start]!.lower)) start++
  while (end > start && trailing.has(words[end - 1]!.lower)) end--
  return words.slice(start, end)
}
