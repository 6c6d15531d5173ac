/**
 * Finds lines in files.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import * as Tools from "../../Tools.ts"
import { plural } from "../cap.ts"
import { type Entry, locateExisting, walk } from "../workspace.ts"

const maxHits = 200
const maxFiles = 20_000
const maxFileBytes = 2_000_000
const maxLineLength = 300

/** Files between two reports, after which other work gets its turn, too. */
const filesBetweenReports = 100

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)

const patternOf = (pattern: string, literal: boolean, ignoreCase: boolean): Effect.Effect<RegExp, string> =>
  Effect.try({
    try: () => new RegExp(literal ? escaped(pattern) : pattern, ignoreCase ? "iu" : "u"),
    catch: (error) => `${error instanceof Error ? error.message : String(error)}; "literal": true takes it as a text.`
  })

export const search = Tools.make("search", {
  description:
    `Finds the lines that match a regular expression (JavaScript), or with "literal" a text, in a file or in the files of a folder; at most ${maxHits} lines. node_modules, .git, links, binary files and files over ${
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
    const tree = place.type === "Directory"
      ? yield* walk(place, { depth: 100, limit: maxFiles })
      : { entries: [{ ...place, type: "file" } satisfies Entry], left: false }
    const files = tree.entries.filter((entry) => entry.type === "file" && entry.shown.endsWith(ending))

    const hits: Array<string> = []
    let filesWithHits = 0
    let searched = 0
    for (const file of files) {
      if (hits.length >= maxHits) break
      const text = yield* Effect.orElseSucceed(textOf(fs, file.absolute), () => "")
      const before = hits.length
      for (const [index, line] of text.split("\n").entries()) {
        if (hits.length >= maxHits) break
        if (wanted.test(line)) hits.push(`${file.shown}:${index + 1}: ${line.trimEnd().slice(0, maxLineLength)}`)
      }
      if (hits.length > before) filesWithHits++
      if (++searched % filesBetweenReports === 0) {
        yield* call.update(`${searched} of ${plural(files.length, "file")}`)
        yield* Effect.yieldNow
      }
    }
    const notes = [
      ...(hits.length === 0 ? [`[No line in ${plural(files.length, "file")} matches.]`] : []),
      ...(hits.length === maxHits ? [`[Only the first ${maxHits} lines; narrow the pattern or the path.]`] : []),
      ...(tree.left ? [`[Only the first ${maxFiles} entries were looked at; name a folder below.]`] : [])
    ]
    return Tools.result({
      text: [...hits, ...notes].join("\n"),
      details: { summary: `${plural(hits.length, "line")} in ${plural(filesWithHits, "file")}` }
    })
  })
})

/** The text of a file that is worth searching. */
const textOf = (fs: FileSystem.FileSystem, file: string) =>
  Effect.gen(function*() {
    if (Number((yield* fs.stat(file)).size) > maxFileBytes) return ""
    const bytes = yield* fs.readFile(file)
    return bytes.subarray(0, 8000).includes(0) ? "" : new TextDecoder().decode(bytes)
  })
