/**
 * Four tools that look at files. They ask for `FileSystem`, `Path` and `Workspace`, and so does an agent that has them.
 */
import { Clock, Effect, FileSystem, type PlatformError, Schema, Stream } from "effect"
import { Tools } from "../../src/index.ts"
import { extremeOf, type FileText, type LineCount, type Listing, type Matches } from "./results.ts"
import { filesUnder, type Found, locate, WrongKind } from "./workspace.ts"

const path = Schema.String.annotate({ description: "A file or folder, relative to the working folder" })
const endings = Schema.Array(Schema.String).annotate({
  description: "Endings of file names, such as .ts; none: all files"
})

const maxListed = 200
const maxHits = 20
const maxTextLines = 40
const maxTextCharacters = 4000
const maxSearchedBytes = 16_000_000

/** The answer as JSON for the model; the summary is for the people who watch. */
const answer = (value: Listing | LineCount | FileText | Matches, summary: string): Tools.ToolResult =>
  Tools.result({ text: JSON.stringify(value), details: { summary } })

const plural = (n: number, one: string): string => `${n} ${one}${n === 1 ? "" : "s"}`

/** Progress at most ten times a second, beginning with the first. */
const throttled = (call: Tools.CallContext) => {
  let next = 0
  return (text: string): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now < next) return Effect.void
      next = now + 100
      return call.update(text)
    })
}

/** A file that cannot be read costs itself only. */
const orNote = (notes: Array<string>, file: Found) => <A, R>(read: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  Effect.catchTag(read, "PlatformError", () =>
    Effect.sync(() => {
      notes.push(`could not be read: ${file.shown}`)
      return undefined
    }))

export const listFiles = Tools.make("list_files", {
  description: "Lists the files of a folder and everything below it, with their sizes.",
  parameters: Schema.Struct({ path, endings: Schema.optionalKey(endings) }),
  execute: Effect.fn("list_files")(function*({ endings = [], path }) {
    const { files, kind, notes, shown } = yield* filesUnder(path, endings)
    const sizes = files.map((file) => ({ path: file.shown, value: file.bytes }))
    const largest = extremeOf(sizes, 1)
    const smallest = extremeOf(sizes, -1)
    const listing: Listing = {
      path: shown,
      kind,
      files: files.length,
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
      ...(largest !== undefined && { largest }),
      ...(smallest !== undefined && { smallest }),
      listed: files.slice(0, maxListed).map((file) => ({ path: file.shown, bytes: file.bytes })),
      notes
    }
    return answer(listing, plural(files.length, "file"))
  })
})

const newline = 10

const newlinesIn = (bytes: Uint8Array): number => {
  let count = 0
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) count++
  return count
}

export const countLines = Tools.make("count_lines", {
  description: "Counts the lines of a file, or of the files of a folder and everything below it, as wc -l does.",
  parameters: Schema.Struct({ path, endings: Schema.optionalKey(endings) }),
  execute: Effect.fn("count_lines")(function*({ endings = [], path }, call) {
    const fs = yield* FileSystem.FileSystem
    const { files, notes, shown } = yield* filesUnder(path, endings)
    const unread: Array<string> = []
    const report = throttled(call)
    let done = 0
    let bytes = 0
    const progress = Effect.suspend(() =>
      report(`${done} of ${plural(files.length, "file")}, ${(bytes / 1e6).toFixed(1)} MB`)
    )
    yield* progress

    // Streamed, so that a file of any size can be counted, and interrupted.
    const counted = yield* Effect.forEach(files, (file) =>
      fs.stream(file.absolute, { chunkSize: 1 << 18 }).pipe(
        Stream.tap((chunk) => {
          bytes += chunk.length
          return progress
        }),
        Stream.runFold(() => 0, (lines, chunk) => lines + newlinesIn(chunk)),
        orNote(unread, file),
        Effect.map((lines) => {
          done++
          return lines === undefined ? [] : [{ path: file.shown, value: lines }]
        })
      ), { concurrency: 8 })

    const lines = counted.flat()
    const longest = extremeOf(lines, 1)
    const shortest = extremeOf(lines, -1)
    const sum = (some: typeof lines): number => some.reduce((total, one) => total + one.value, 0)
    const count: LineCount = {
      path: shown,
      files: lines.length,
      lines: sum(lines),
      byEnding: endings.flatMap((ending) => {
        const some = lines.filter((one) => one.path.endsWith(ending))
        return some.length === 0 ? [] : [{ ending, files: some.length, lines: sum(some) }]
      }),
      ...(longest !== undefined && { longest }),
      ...(shortest !== undefined && { shortest }),
      notes: [...notes, ...unread]
    }
    return answer(count, `${plural(count.lines, "line")} in ${plural(count.files, "file")}`)
  })
})

const isText = (bytes: Uint8Array): boolean => !bytes.subarray(0, 8000).includes(0)

export const readFile = Tools.make("read_file", {
  description: "Reads the beginning of a text file.",
  parameters: Schema.Struct({ path }),
  execute: Effect.fn("read_file")(function*({ path }) {
    const fs = yield* FileSystem.FileSystem
    const file = yield* locate(path)
    if (file.type !== "File") return yield* new WrongKind({ message: `${file.shown} is not a file.` })
    const { size } = yield* fs.stat(file.absolute)
    if (Number(size) > maxSearchedBytes) return yield* new WrongKind({ message: `${file.shown} is too large to read.` })
    const bytes = yield* fs.readFile(file.absolute)
    if (!isText(bytes)) return yield* new WrongKind({ message: `${file.shown} is not a text file.` })
    const text = new TextDecoder().decode(bytes)
    const beginning = text.split("\n", maxTextLines).join("\n").slice(0, maxTextCharacters)
    const complete = beginning.trimEnd() === text.trimEnd()
    const lines = newlinesIn(bytes)
    return answer(
      { path: file.shown, bytes: bytes.length, lines, text: beginning, complete },
      plural(lines, "line")
    )
  })
})

export const search = Tools.make("search", {
  description: "Finds the lines that contain a text, case-sensitively, in a file or a folder and everything below it.",
  parameters: Schema.Struct({ text: Schema.NonEmptyString, path, endings: Schema.optionalKey(endings) }),
  execute: Effect.fn("search")(function*({ endings = [], path, text }, call) {
    const fs = yield* FileSystem.FileSystem
    const { files, notes, shown } = yield* filesUnder(path, endings)
    const unread: Array<string> = []
    const report = throttled(call)
    let done = 0

    const hits = yield* Effect.forEach(files, (file) =>
      Effect.gen(function*() {
        yield* report(`${done} of ${plural(files.length, "file")}`)
        done++
        if (file.bytes > maxSearchedBytes) {
          unread.push(`too large to search: ${file.shown}`)
          return []
        }
        const bytes = yield* orNote(unread, file)(fs.readFile(file.absolute))
        if (bytes === undefined || !isText(bytes)) return []
        return new TextDecoder().decode(bytes).split(/\r?\n/).flatMap((line, index) =>
          line.includes(text) ? [{ path: file.shown, line: index + 1, text: line.trim().slice(0, 160) }] : []
        )
      }), { concurrency: 8 })

    const lines = hits.flat()
    const matches: Matches = {
      path: shown,
      text,
      lines: lines.length,
      files: hits.filter((some) => some.length > 0).length,
      searched: files.length,
      listed: lines.slice(0, maxHits),
      notes: [...notes, ...unread]
    }
    return answer(matches, `${plural(matches.lines, "line")} in ${plural(matches.files, "file")}`)
  })
})

export const fileTools = [listFiles, countLines, readFile, search] as const
