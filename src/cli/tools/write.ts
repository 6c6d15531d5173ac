/**
 * Writes a file.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Tools from "../../Tools.ts"
import { plural } from "../cap.ts"
import { locate, PathRefused } from "../workspace.ts"

export const write = Tools.make("write", {
  description: "Writes a text file of the working folder, with the folders it needs; what it held is replaced.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file, relative to the working folder" }),
    content: Schema.String
  }),
  executionMode: "sequential",
  annotations: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
  execute: Effect.fn("write")(function*({ content, path: given }) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const place = yield* locate(given)
    if (place.type !== undefined && place.type !== "File") {
      return yield* new PathRefused({ reason: "NotAFile", message: `${place.shown} is there and not a file.` })
    }
    yield* fs.makeDirectory(path.dirname(place.absolute), { recursive: true })
    yield* fs.writeFileString(place.absolute, content)
    const lines = content === "" ? 0 : content.replace(/\n$/, "").split("\n").length
    const summary = `${place.type === undefined ? "new, " : ""}${plural(lines, "line")}`
    return Tools.result({
      text: `${place.type === undefined ? "Made" : "Replaced"} ${place.shown}: ${plural(lines, "line")}.`,
      details: { summary }
    })
  })
})
