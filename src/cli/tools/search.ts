/**
 * Finds lines in files.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Tools from "../../Tools.ts"
import { plural } from "../cap.ts"
import { locateExisting, PathRefused, type Place, walk } from "../workspace.ts"
import { makeMatcher } from "./matcher.ts"

const maxHits = 200
const maxFiles = 20_000
const maxFileBytes = 2_000_000
const maxLineLength = 300
const maxSeconds = 20

/** Files between two reports. */
const filesBetweenReports = 100

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)

const patternOf = (pattern: string, literal: boolean, ignoreCase: boolean): Effect.Effect<RegExp, string> =>
  Effect.try({
    try: () => new RegExp(literal ? escaped(pattern) : pattern, ignoreCase ? "iu" : "u"),
    catch: (error) => `${error instanceof Error ? error.message : String(error)}; "literal": true takes it as a text.`
  })

export const search = Tools.make("search", {
  description:
    `Finds the lines that match a regular expression (JavaScript), or with "literal" a text, in a file or in the files of a folder; at most ${maxHits} lines, in ${maxSeconds} seconds. node_modules, .git, links, binary files and files over ${
      maxFileBytes / 1e6
    } MB are left out.`,
  parameters: Schema.Struct({
    pattern: Schema.NonEmptyString,
    path: Schema.optionalKey(Schema.String.annotate({ description: "File or folder; default: the working folder" })),
    literal: Schema.optionalKey(Schema.Boolean),
    ignoreCase: Schema.optionalKey(Schema.Boolean),
    ending: Schema.optionalKey(Schema.String.annotate({ description: "Only files whose names end so, such as .ts" }))
  }),
  annotations: { readOnly: true, openWorld: false },
  execute: Effect.fn("search")(function*(
    { ending = "", ignoreCase = false, literal = false, path = ".", pattern },
    call
  ) {
    const fs = yield* FileSystem.FileSystem
    const wanted = yield* patternOf(pattern, literal, ignoreCase)
    const place = yield* locateExisting(path)
    const found: Found = { hits: [], files: 0, filesWithHits: 0, searched: 0, left: false, at: place.shown }

    const finished = yield* Effect.gen(function*() {
      const files = yield* filesOf(place, found)
      const chosen = files.filter((file) => file.shown.endsWith(ending))
      found.files = chosen.length
      const matcher = yield* makeMatcher({ pattern: wanted, maxLineLength })
      for (const file of chosen) {
        if (found.hits.length >= maxHits) break
        found.at = file.shown
        const text = yield* Effect.orElseSucceed(textOf(fs, file.absolute), () => "")
        const hits = text === "" ? [] : yield* matcher.hitsIn(text, maxHits - found.hits.length)
        for (const hit of hits) found.hits.push(`${file.shown}:${hit.line}: ${hit.text}`)
        if (hits.length > 0) found.filesWithHits++
        if (++found.searched % filesBetweenReports === 0) {
          yield* call.update(`${found.searched} of ${plural(found.files, "file")}`)
        }
      }
    }).pipe(Effect.scoped, Effect.timeoutOption(Duration.seconds(maxSeconds)))

    const summary = `${plural(found.hits.length, "line")} in ${plural(found.filesWithHits, "file")}`
    if (Option.isNone(finished)) {
      const note = `[Stopped after ${maxSeconds} seconds, in ${found.at}: ${
        literal
          ? "name a folder or file below"
          : "make the pattern simpler, take \"literal\", or name a folder or file below"
      }.]`
      return Tools.result({
        text: [...found.hits, note].join("\n"),
        isError: true,
        details: { summary: `stopped after ${maxSeconds} s, ${summary}` }
      })
    }
    const notes = [
      ...(found.hits.length === 0 ? [`[No line in ${plural(found.files, "file")} matches.]`] : []),
      ...(found.hits.length === maxHits ? [`[Only the first ${maxHits} lines; narrow the pattern or the path.]`] : []),
      ...(found.left ? [`[Only the first ${maxFiles} entries were looked at; name a folder below.]`] : [])
    ]
    return Tools.result({ text: [...found.hits, ...notes].join("\n"), details: { summary } })
  })
})

/** How far a search came; when its time is over, this is its result. */
interface Found {
  readonly hits: Array<string>
  files: number
  filesWithHits: number
  searched: number
  /** There were more entries than are looked at. */
  left: boolean
  /** The file or folder that is looked at. */
  at: string
}

const filesOf = Effect.fnUntraced(function*(place: Place, found: Found) {
  if (place.type === "File") return [place]
  if (place.type !== "Directory") {
    return yield* new PathRefused({ reason: "NotAFile", message: `${place.shown} is neither a file nor a folder.` })
  }
  const { entries, left } = yield* walk(place, { depth: 100, limit: maxFiles })
  found.left = left
  return entries.filter((entry) => entry.type === "file")
})

/** The text of a file that is worth searching. What is no file, a pipe for one, might never end. */
const textOf = (fs: FileSystem.FileSystem, file: string) =>
  Effect.gen(function*() {
    const { size, type } = yield* fs.stat(file)
    if (type !== "File" || Number(size) > maxFileBytes) return ""
    const bytes = yield* fs.readFile(file)
    return bytes.subarray(0, 8000).includes(0) ? "" : new TextDecoder().decode(bytes)
  })
