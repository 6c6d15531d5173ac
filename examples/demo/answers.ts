/**
 * Answers a question from what tools found: either the calls that are still needed, or the answer.
 */
import { Option, Schema } from "effect"
import type { Messages } from "../../src/index.ts"
import type { Kind } from "./kinds.ts"
import { Question, type Wanted } from "./questions.ts"
import { type Extreme, FileText, LineCount, Listing, Matches } from "./results.ts"

export interface Call {
  readonly name: string
  readonly args: Messages.JsonObject
}

/** What a tool answered to a call. */
export interface Answered {
  readonly text: string
  readonly isError: boolean
}

/** The calls that have to be made first, or the answer. */
export interface Step {
  readonly calls: ReadonlyArray<Call>
  readonly text: string
  /** What is true of several answers and said once. */
  readonly footnote?: string
}

export const abilities =
  "I am a set of rules, not a language model. I can count lines and files, find the longest or largest " +
  "file, list and read files, and search for a text, in any folder of the working folder. For example:\n" +
  "  How many lines of TypeScript are in src, and which file is longest?\n" +
  "  How many Markdown files are in docs?\n" +
  "  Which is the largest file?\n" +
  "  What does package.json say?\n" +
  "  Find Layer in \"my folder\""

/** `answered` gives the result of a call that was made since the question was asked. */
export const stepFor = (question: Question, answered: (call: Call) => Answered | undefined): Step =>
  Question.$match(question, {
    Measure: ({ kinds, paths, wanted }) => {
      const targets = paths.flatMap((path) => kinds.map((kind) => ({ kind, list: listCall(path, kind), path })))
      const counting = wanted.lines || wanted.longest || wanted.shortest || wanted.largest || wanted.smallest
      const needed = targets.flatMap(({ kind, list, path }) => counting ? [list, countCall(path, kind)] : [list])
      return whenAnswered(needed, answered, () => {
        const parts = targets.map(({ kind, list, path }) =>
          measure(kind, path, wanted, answered(list)!, counting ? answered(countCall(path, kind)) : undefined)
        )
        const counted = parts.filter((part) => part.files > 0)
        const files = counted.reduce((sum, part) => sum + part.files, 0)
        const lines = counted.reduce((sum, part) => sum + part.lines, 0)
        const together = counting ? `${some(lines, "line")} in ${some(files, "file")}` : some(files, "file")
        const text = [
          ...parts.map((part) => part.text),
          ...(counted.length < 2 ? [] : [`Together: ${together}.`])
        ].join("\n")
        return counting && counted.length > 0
          ? { calls: [], text, footnote: "Lines are counted as wc -l does: by newline characters." }
          : { calls: [], text }
      })
    },
    List: ({ kinds, paths }) => {
      const needed = paths.flatMap((path) => kinds.map((kind) => ({ kind, list: listCall(path, kind) })))
      return whenAnswered(
        needed.map(({ list }) => list),
        answered,
        () => needed.map(({ kind, list }) => listing(kind, answered(list)!)).join("\n")
      )
    },
    Look: ({ first, path }) => {
      const read: Call = { name: "read_file", args: { path } }
      const list: Call = { name: "list_files", args: { path } }
      return whenAnswered([first === "read_file" ? read : list], answered, () => {
        // A file that looked like a folder, or the other way round, takes a second call.
        const isFolder = first === "read_file" && answered(read)!.text.endsWith(" is not a file.")
        const isFile = first === "list_files" && decode(Listing, answered(list)!)?.kind === "file"
        if (isFolder) return whenAnswered([list], answered, () => listing({ name: "", endings: [] }, answered(list)!))
        if (isFile) return whenAnswered([read], answered, () => reading(answered(read)!))
        return first === "read_file" ? reading(answered(read)!) : listing({ name: "", endings: [] }, answered(list)!)
      })
    },
    Search: ({ kind, paths, text }) => {
      const needed = paths.map((path): Call => ({ name: "search", args: { text, path, ...endingsOf(kind) } }))
      return whenAnswered(needed, answered, () => needed.map((call) => matches(answered(call)!)).join("\n"))
    },
    Other: ({ unknownKind }) => ({
      calls: [],
      text: unknownKind === undefined
        ? `I do not understand that. ${abilities}`
        : `I do not know which files are ${unknownKind}; name the ending, as in "How many lines of .${unknownKind.toLowerCase()} files are in src?".`
    })
  })

const whenAnswered = (
  needed: ReadonlyArray<Call>,
  answered: (call: Call) => Answered | undefined,
  text: () => string | Step
): Step => {
  const calls = needed.filter((call) => answered(call) === undefined)
  if (calls.length > 0) return { calls, text: "" }
  if (needed.some((call) => answered(call)!.text.startsWith("Operation aborted"))) {
    return { calls: [], text: "I was stopped before I knew." }
  }
  const answer = text()
  return typeof answer === "string" ? { calls: [], text: answer } : answer
}

// -----------------------------------------------------------------------------
// Calls
// -----------------------------------------------------------------------------

const endingsOf = (kind: Kind): Messages.JsonObject => kind.endings.length === 0 ? {} : { endings: kind.endings }
const listCall = (path: string, kind: Kind): Call => ({ name: "list_files", args: { path, ...endingsOf(kind) } })
const countCall = (path: string, kind: Kind): Call => ({ name: "count_lines", args: { path, ...endingsOf(kind) } })

// -----------------------------------------------------------------------------
// Texts
// -----------------------------------------------------------------------------

const decode = <A, I>(schema: Schema.Codec<A, I>, { isError, text }: Answered): A | undefined =>
  isError
    ? undefined
    : Option.getOrUndefined(Schema.decodeUnknownOption(Schema.fromJsonString(schema))(text))

const some = (n: number, one: string): string => `${n} ${one}${n === 1 ? "" : "s"}`

const place = (path: string): string => path === "." ? "the working folder" : path

/** At the beginning of a sentence; the name of a folder stays as it is. */
const placeFirst = (path: string): string => path === "." ? "The working folder" : path

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const inWords = (paths: ReadonlyArray<string>): string =>
  paths.length < 2 ? paths.join("") : `${paths.slice(0, -1).join(", ")} and ${paths.at(-1)!}`

const noted = (notes: ReadonlyArray<string>): string => notes.map((note) => ` ${sentence(note)}.`).join("")

const none = (kind: Kind, path: string): string =>
  kind.name === ""
    ? `There are no files in ${place(path)}.`
    : `There are no ${kind.name} files in ${place(path)} (${kind.endings.join(", ")}).`

const extreme = (adjective: string, it: Extreme | undefined, unit: string): string => {
  if (it === undefined) return ""
  if (it.files === 1) return ` The ${adjective} is ${it.paths[0]!} with ${some(it.value, unit)}.`
  const more = it.files - it.paths.length
  const paths = more > 0 ? `${it.paths.join(", ")} and ${more} more` : inWords(it.paths)
  return ` The ${adjective} are ${paths} with ${some(it.value, unit)} each.`
}

/** What a tool says about a failure names the path; what the loop says, of a limit or a deadline, does not. */
const failure = ({ text }: Answered, path: string): string =>
  text.includes(path) ? text : `I could not look at ${place(path)}: ${text}`

const measure = (kind: Kind, path: string, wanted: Wanted, listed: Answered, counted: Answered | undefined) => {
  const list = decode(Listing, listed)
  if (list === undefined) return { files: 0, lines: 0, text: failure(listed, path) }
  const count = counted === undefined ? undefined : decode(LineCount, counted)
  if (counted !== undefined && count === undefined) return { files: 0, lines: 0, text: failure(counted, path) }
  const { files } = list
  if (files === 0) return { files, lines: 0, text: none(kind, list.path) + noted(list.notes) }

  const lines = count?.lines ?? 0
  const of = kind.name === "" ? "" : ` of ${kind.name}`
  const what = count === undefined
    ? `${files} ${kind.name === "" ? "" : `${kind.name} `}file${files === 1 ? "" : "s"}, ${some(list.bytes, "byte")}`
    : list.kind === "file"
    ? `${some(lines, "line")}${of}`
    : `${some(lines, "line")}${of} in ${some(files, "file")}`
  // A language has several endings; which ones were found is said, unless it is only the usual one.
  const usual = count === undefined || count.byEnding.every((one) => one.ending === kind.endings[0])
  const endings = usual ?
    "" :
    ` (${
      count.byEnding.map((one) => `${one.ending}: ${some(one.lines, "line")} in ${some(one.files, "file")}`).join("; ")
    })`
  const extremes = [
    wanted.longest || wanted.largest ? extreme("longest", count?.longest, "line") : "",
    wanted.shortest || wanted.smallest ? extreme("shortest", count?.shortest, "line") : "",
    wanted.largest ? extreme("largest", list.largest, "byte") : "",
    wanted.smallest ? extreme("smallest", list.smallest, "byte") : ""
  ].join("")
  const text = `${placeFirst(list.path)} has ${what}${endings}.${extremes}${noted(count?.notes ?? list.notes)}`
  return { files, lines, text }
}

const listing = (kind: Kind, listed: Answered): string => {
  const list = decode(Listing, listed)
  if (list === undefined) return listed.text
  if (list.files === 0) return none(kind, list.path) + noted(list.notes)
  const shown = list.listed.slice(0, 50)
  const of = kind.name === "" ? "" : `${kind.name} `
  return [
    `${placeFirst(list.path)} has ${list.files} ${of}file${list.files === 1 ? "" : "s"}:`,
    ...shown.map((file) => `  ${file.path} (${some(file.bytes, "byte")})`),
    ...(list.files > shown.length ? [`  and ${list.files - shown.length} more`] : []),
    ...list.notes.map((note) => `${sentence(note)}.`)
  ].join("\n")
}

const reading = (read: Answered): string => {
  const file = decode(FileText, read)
  if (file === undefined) return read.text
  const size = `${file.path} (${some(file.lines, "line")}, ${some(file.bytes, "byte")})`
  if (file.text === "") return `${size} is empty.`
  return file.complete
    ? `${size} says:\n${file.text.trimEnd()}`
    : `${size} begins:\n${file.text.trimEnd()}\n… and goes on.`
}

const matches = (searched: Answered): string => {
  const found = decode(Matches, searched)
  if (found === undefined) return searched.text
  const text = JSON.stringify(found.text)
  if (found.lines === 0) {
    return `None of ${some(found.searched, "file")} in ${
      place(found.path)
    } contains ${text} (upper and lower case differ).${noted(found.notes)}`
  }
  const verb = found.lines === 1 ? "contains" : "contain"
  return [
    `${some(found.lines, "line")} in ${some(found.files, "file")} of ${place(found.path)} ${verb} ${text}:`,
    ...found.listed.map((hit) => `  ${hit.path}:${hit.line}: ${hit.text}`),
    ...(found.lines > found.listed.length ? [`  and ${found.lines - found.listed.length} more`] : []),
    ...found.notes.map((note) => `${sentence(note)}.`)
  ].join("\n")
}
