/**
 * Lists a folder.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tools from "../../Tools.ts"
import { plural } from "../cap.ts"
import { type Entry, locateExisting, PathRefused, walk } from "../workspace.ts"

const maxEntries = 500

const marks: Record<Entry["type"], string> = { file: "", folder: "/", link: " (link)", other: " (not a file)" }

export const list = Tools.make("list", {
  description:
    `Lists a folder of the working folder, by default one level; folders end with "/". At most ${maxEntries} entries; node_modules and .git are not looked into.`,
  parameters: Schema.Struct({
    path: Schema.optionalKey(Schema.String.annotate({ description: "The folder; default: the working folder" })),
    depth: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })).annotate({ description: "Levels; default 1" })
    )
  }),
  annotations: { readOnly: true, openWorld: false },
  execute: Effect.fn("list")(function*({ depth = 1, path = "." }) {
    const place = yield* locateExisting(path)
    if (place.type !== "Directory") {
      return yield* new PathRefused({
        reason: "NotAFolder",
        message: place.type === "File"
          ? `${place.shown} is a file; use the tool "read" to look into it.`
          : `${place.shown} is not a folder.`
      })
    }
    const { entries, left, unreadable } = yield* walk(place, { depth, limit: maxEntries })
    const lines = entries.map(({ shown, type }) => shown + marks[type])
    if (entries.length === 0 && unreadable.length === 0) lines.push("[The folder is empty.]")
    if (left) lines.push(`[Only the first ${maxEntries}; list a folder below or use a smaller depth.]`)
    if (unreadable.length > 0) lines.push(`[Could not be read: ${unreadable.join(", ")}]`)
    return Tools.result({
      text: lines.join("\n"),
      details: { summary: plural(entries.length, "entry", "entries") }
    })
  })
})
