/**
 * The working folder: the only place in which the file tools read and write. Paths are looked at as they really are, so a
 * link that leads out of the folder is outside.
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"

/** A path that a tool may not use, or not for this. */
export class PathRefused extends Data.TaggedError("PathRefused")<{
  readonly reason: "Outside" | "NotFound" | "NotAFile" | "NotAFolder" | "NotText" | "TooLarge"
  readonly message: string
}> {}

export class Workspace extends Context.Service<Workspace, {
  /** Absolute, without links. */
  readonly root: string
}>()("effect-pi/cli/Workspace") {
  static readonly layer = (folder: string) =>
    Layer.effect(
      Workspace,
      FileSystem.FileSystem.use((fs) => Effect.map(fs.realPath(folder), (root) => ({ root })))
    )
}

/** A place in the working folder. */
export interface Place {
  /** Absolute, without links. */
  readonly absolute: string
  /** Relative to the working folder, with `/`; `.` is the folder itself. */
  readonly shown: string
  /** `undefined`: there is nothing yet. */
  readonly type: FileSystem.File.Type | undefined
}

type Needs = Workspace | FileSystem.FileSystem | Path.Path

const isInside = (path: Path.Path, root: string, absolute: string): boolean => {
  const relative = path.relative(root, absolute)
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative)
}

const orNothing = <A, R>(effect: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  effect.pipe(
    Effect.map((value): A | undefined => value),
    Effect.catchReasons("PlatformError", {
      NotFound: () => Effect.succeed(undefined),
      // The path goes on behind a file.
      BadResource: () => Effect.succeed(undefined)
    })
  )

/** Where a path really leads; what does not exist yet is looked at from the nearest folder that does. */
const realOf = Effect.fnUntraced(function*(absolute: string): Effect.fn.Return<
  { readonly real: string; readonly exists: boolean } | undefined,
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const missing: Array<string> = []
  for (let current = absolute;;) {
    const real = yield* orNothing(fs.realPath(current))
    if (real !== undefined) return { real: path.join(real, ...missing), exists: missing.length === 0 }
    // A link that leads nowhere would be followed when it is written.
    if ((yield* orNothing(fs.readLink(current)).pipe(Effect.orElseSucceed(() => undefined))) !== undefined) return
    const parent = path.dirname(current)
    if (parent === current) return
    missing.unshift(path.basename(current))
    current = parent
  }
})

/** Finds a place by a path that is relative to the working folder; refuses what is outside. */
export const locate = Effect.fn("locate")(function*(
  given: string
): Effect.fn.Return<Place, PathRefused | PlatformError.PlatformError, Needs> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { root } = yield* Workspace
  const outside = (why: string) =>
    new PathRefused({
      reason: "Outside",
      message: `${given} ${why}. Only paths inside the working folder can be used, relative to it.`
    })
  if (given.includes("\0")) return yield* outside("has a null character in it")
  const absolute = path.resolve(root, given)
  if (!isInside(path, root, absolute)) return yield* outside("is outside the working folder")
  const found = yield* realOf(absolute)
  if (found === undefined) return yield* outside("is a link that leads nowhere")
  if (!isInside(path, root, found.real)) return yield* outside("leads out of the working folder by a link")
  const type = found.exists ? (yield* fs.stat(found.real)).type : undefined
  const relative = path.relative(root, found.real)
  return { absolute: found.real, shown: relative === "" ? "." : relative.replaceAll(path.sep, "/"), type }
})

/** A place where something is. */
export const locateExisting = Effect.fn("locateExisting")(function*(given: string) {
  const place = yield* locate(given)
  if (place.type !== undefined) return place
  return yield* new PathRefused({
    reason: "NotFound",
    message: `There is no ${place.shown} in the working folder; the tool "list" shows what there is.`
  })
})

/** What files may have at most to be read whole. */
const maxFileBytes = 10_000_000

/** The text of a file, and where it is. */
export const readText = Effect.fn("readText")(function*(given: string) {
  const fs = yield* FileSystem.FileSystem
  const place = yield* locateExisting(given)
  if (place.type !== "File") {
    return yield* new PathRefused({
      reason: "NotAFile",
      message: place.type === "Directory"
        ? `${place.shown} is a folder; use the tool "list" to look into it.`
        : `${place.shown} is not a file.`
    })
  }
  if (Number((yield* fs.stat(place.absolute)).size) > maxFileBytes) {
    return yield* new PathRefused({
      reason: "TooLarge",
      message: `${place.shown} has more than ${maxFileBytes / 1e6} MB; use "search", or "run" with head, tail or sed.`
    })
  }
  const bytes = yield* fs.readFile(place.absolute)
  if (bytes.subarray(0, 8000).includes(0)) {
    return yield* new PathRefused({ reason: "NotText", message: `${place.shown} is not a text file.` })
  }
  return { place, text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes) }
})

/** Folders that are not looked into unless they are named. */
const passedOver = new Set([".git", "node_modules"])

// Some file systems do not say in a listing what an entry is.
const entryTypes = new Map<FileSystem.File.Type, Entry["type"]>([
  ["File", "file"],
  ["Unknown", "file"],
  ["SymbolicLink", "link"]
])

/** A file or folder below another. */
export interface Entry {
  readonly absolute: string
  readonly shown: string
  /** `other` is what has no content of its own: a pipe, a socket, a device. */
  readonly type: "file" | "folder" | "link" | "other"
}

/** Everything below a folder, folder by folder and by name; links are named and not followed. */
export const walk = Effect.fn("walk")(function*(
  place: Place,
  options: { readonly depth: number; readonly limit: number }
): Effect.fn.Return<
  { readonly entries: ReadonlyArray<Entry>; readonly left: boolean; readonly unreadable: ReadonlyArray<string> },
  never,
  FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const entries: Array<Entry> = []
  const unreadable: Array<string> = []
  const waiting = [{ folder: place, depth: options.depth }]
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { depth, folder } = next
    const listing = yield* fs.readDirectoryEntries(folder.absolute).pipe(
      Effect.catchTag("PlatformError", () => {
        unreadable.push(folder.shown)
        return Effect.succeed([])
      })
    )
    for (const { name, type } of listing.toSorted((a, b) => a.name < b.name ? -1 : 1)) {
      if (entries.length === options.limit) return { entries, left: true, unreadable }
      const absolute = path.join(folder.absolute, name)
      const shown = folder.shown === "." ? name : `${folder.shown}/${name}`
      if (type === "Directory") {
        entries.push({ absolute, shown, type: "folder" })
        if (depth > 1 && !passedOver.has(name)) {
          waiting.push({ folder: { absolute, shown, type }, depth: depth - 1 })
        }
      } else entries.push({ absolute, shown, type: entryTypes.get(type) ?? "other" })
    }
  }
  return { entries, left: false, unreadable }
})
