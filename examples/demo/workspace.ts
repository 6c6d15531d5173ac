/**
 * The folder the tools may look into, and how they find files in it. Nothing outside is read, links that lead out
 * included, and nothing is written.
 */
import { Context, Effect, FileSystem, Layer, Path, type PlatformError, Schema } from "effect"

export class OutsideWorkspace extends Schema.TaggedError<OutsideWorkspace>()("OutsideWorkspace", {
  message: Schema.String
}) {}

export class NoSuchPath extends Schema.TaggedError<NoSuchPath>()("NoSuchPath", { message: Schema.String }) {}

export class WrongKind extends Schema.TaggedError<WrongKind>()("WrongKind", { message: Schema.String }) {}

export class Workspace extends Context.Service<Workspace, {
  /** Absolute, without links. */
  readonly root: string
}>()("demo/Workspace") {
  static readonly layer = (folder: string) =>
    Layer.effect(
      Workspace,
      FileSystem.FileSystem.use((fs) => Effect.map(fs.realPath(folder), (root) => ({ root })))
    )
}

/** A file or folder of the workspace. */
export interface Located {
  readonly absolute: string
  /** Relative to the workspace, with `/`; `.` for the workspace itself. */
  readonly shown: string
  readonly type: FileSystem.File.Type
}

/** A file that was found. */
export interface Found {
  readonly absolute: string
  readonly shown: string
  readonly bytes: number
}

/** What is below a folder. Notes say what was passed over. */
export interface Contents {
  readonly shown: string
  readonly kind: "file" | "folder"
  readonly files: ReadonlyArray<Found>
  readonly notes: ReadonlyArray<string>
}

const ignoredFolders = new Set([".git", "dist", "node_modules"])

const isInside = (root: string, absolute: string, path: Path.Path): boolean => {
  const relative = path.relative(root, absolute)
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative)
}

/** Finds a path of the workspace, given relative to it or absolute. */
export const locate = Effect.fn("locate")(function*(given: string): Effect.fn.Return<
  Located,
  OutsideWorkspace | NoSuchPath | PlatformError.PlatformError,
  Workspace | FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { root } = yield* Workspace
  const absolute = path.resolve(root, given)
  const real = yield* fs.realPath(absolute).pipe(
    Effect.catchReasons("PlatformError", {
      NotFound: () => Effect.succeed(undefined),
      // The path goes on behind a file.
      BadResource: () => Effect.succeed(undefined)
    })
  )
  if (!isInside(root, real ?? absolute, path)) {
    return yield* new OutsideWorkspace({
      message: `${given} is outside the working folder ${root}; --folder starts the demo elsewhere.`
    })
  }
  if (real === undefined) return yield* new NoSuchPath({ message: yield* suggest(given) })
  const info = yield* fs.stat(real)
  return { absolute: real, shown: show(path.relative(root, real), path), type: info.type }
})

const show = (relative: string, path: Path.Path): string =>
  relative === "" ? "." : path.sep === "/" ? relative : relative.replaceAll(path.sep, "/")

/** Says that a path does not exist, and what there is instead. */
const suggest = Effect.fnUntraced(function*(given: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { root } = yield* Workspace
  const name = path.basename(given).toLowerCase()
  const { entries } = yield* walk(root)
  const alike = entries.filter((entry) => path.basename(entry).toLowerCase() === name).slice(0, 3)
  const missing = `There is no ${given} in the working folder.`
  if (alike.length > 0) {
    return `${missing} Did you mean ${alike.map((entry) => show(path.relative(root, entry), path)).join(" or ")}?`
  }
  const names = (yield* fs.readDirectory(root)).toSorted()
  const more = names.length > 12 ? ` and ${names.length - 12} more` : ""
  return names.length === 0 ? `${missing} It is empty.` : `${missing} It holds ${names.slice(0, 12).join(", ")}${more}.`
})

interface Tree {
  readonly entries: ReadonlyArray<string>
  /** Links, and what the listing cannot tell the type of. */
  readonly unclear: ReadonlyArray<string>
  readonly ignored: ReadonlyArray<string>
  readonly unreadable: ReadonlyArray<string>
}

/** Everything below a folder, depth first. Links to folders are not followed. */
const walk = Effect.fnUntraced(function*(folder: string): Effect.fn.Return<
  Tree & { readonly files: ReadonlyArray<string> },
  never,
  FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const entries: Array<string> = []
  const files: Array<string> = []
  const unclear: Array<string> = []
  const ignored: Array<string> = []
  const unreadable: Array<string> = []
  const waiting = [folder]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const current = next
    const listing = yield* fs.readDirectoryEntries(current).pipe(
      Effect.catchTag("PlatformError", () => {
        unreadable.push(current)
        return Effect.succeed([])
      })
    )
    for (const { name, type } of listing) {
      const absolute = path.join(current, name)
      if (type === "Directory" && ignoredFolders.has(name)) ignored.push(absolute)
      else {
        entries.push(absolute)
        if (type === "Directory") waiting.push(absolute)
        else if (type === "File") files.push(absolute)
        else if (type === "SymbolicLink" || type === "Unknown") unclear.push(absolute)
      }
    }
  }
  return { entries, files, unclear, ignored, unreadable }
})

const endsWithAny = (name: string, endings: ReadonlyArray<string>): boolean =>
  endings.length === 0 || endings.some((ending) => name.endsWith(ending))

const list = (what: string, paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (paths.length === 0) return []
  const more = paths.length > 5 ? ` and ${paths.length - 5} more` : ""
  return [`${what}: ${paths.slice(0, 5).join(", ")}${more}`]
}

/**
 * The files of a folder and everything below it whose names end as asked, by path; of a file, the file itself. A link to a
 * file of the workspace counts as a file, as it does for `find | xargs wc`.
 */
export const filesUnder = Effect.fn("filesUnder")(function*(
  given: string,
  endings: ReadonlyArray<string>
): Effect.fn.Return<
  Contents,
  OutsideWorkspace | NoSuchPath | WrongKind | PlatformError.PlatformError,
  Workspace | FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { root } = yield* Workspace
  const place = yield* locate(given)
  if (place.type !== "File" && place.type !== "Directory") {
    return yield* new WrongKind({ message: `${place.shown} is neither a file nor a folder.` })
  }
  const tree = place.type === "Directory"
    ? yield* walk(place.absolute)
    : { files: [place.absolute], unclear: [], ignored: [], unreadable: [] }
  const toShown = (absolute: string): string => show(path.relative(root, absolute), path)

  const candidates = [...tree.files, ...tree.unclear].filter((file) => endsWithAny(path.basename(file), endings))
  const passedOver: Array<string> = []
  const found = yield* Effect.forEach(candidates, (absolute) =>
    Effect.gen(function*() {
      const real = yield* fs.realPath(absolute)
      const info = yield* fs.stat(real)
      if (isInside(root, real, path) && info.type === "File") {
        return [{ absolute, shown: toShown(absolute), bytes: Number(info.size) }]
      }
      if (info.type !== "Directory") passedOver.push(toShown(absolute))
      return []
    }).pipe(
      // A link that leads nowhere, or a file that has just gone.
      Effect.catchTag("PlatformError", () =>
        Effect.sync((): ReadonlyArray<Found> => {
          passedOver.push(toShown(absolute))
          return []
        }))
    ), { concurrency: 16 })

  const files = found.flat().toSorted((a, b) => a.shown < b.shown ? -1 : a.shown > b.shown ? 1 : 0)
  return {
    shown: place.shown,
    kind: place.type === "Directory" ? "folder" : "file",
    files,
    notes: [
      ...list("left out", tree.ignored.map(toShown).toSorted()),
      ...list("could not be read", tree.unreadable.map(toShown).toSorted()),
      ...list("links that lead out of the working folder or nowhere", passedOver.toSorted())
    ]
  }
})
