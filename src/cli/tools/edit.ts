/**
 * Replaces a piece of a file.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import * as Tools from "../../Tools.ts"
import { plural } from "../cap.ts"
import { readText } from "../workspace.ts"

/** The text to be replaced does not name one place of the file. */
export class EditRefused extends Data.TaggedError("EditRefused")<{
  readonly reason: "NotFound" | "Ambiguous" | "Nothing"
  readonly message: string
}> {}

const lineOf = (text: string, index: number): number => text.slice(0, index).split("\n").length

/** More places than these are not counted: looking for "aaaa…" in "aaaaaaaa…" would take for ever. */
const maxPlaces = 100

const placesOf = (text: string, part: string): ReadonlyArray<number> => {
  const places: Array<number> = []
  for (let at = text.indexOf(part); at >= 0 && places.length < maxPlaces; at = text.indexOf(part, at + 1)) {
    places.push(at)
  }
  return places
}

/** Replaces `oldText`, which has to be in `text` exactly once, and gives the line it is in. */
export const replaceOnce = (
  name: string,
  text: string,
  oldText: string,
  newText: string
): Effect.Effect<{ readonly text: string; readonly line: number }, EditRefused> => {
  if (oldText === newText) {
    return Effect.fail(new EditRefused({ reason: "Nothing", message: "oldText and newText are the same." }))
  }
  // A file with Windows line ends is edited with texts that have the others.
  const adapt = text.includes("\r\n") && !oldText.includes("\r\n")
    ? (part: string) => part.replaceAll("\n", "\r\n")
    : (part: string) => part
  const wanted = adapt(oldText)
  const places = placesOf(text, wanted)
  const [first] = places
  if (first === undefined) {
    const loosely = text.replace(/\s+/g, " ").includes(oldText.replace(/\s+/g, " ").trim())
    return Effect.fail(
      new EditRefused({
        reason: "NotFound",
        message: `oldText is not in ${name}${
          loosely ? " with this white space" : ""
        }. It has to be copied exactly, indentation included: read the file again.`
      })
    )
  }
  if (places.length > 1) {
    const lines = places.slice(0, 5).map((at) => lineOf(text, at)).join(", ")
    return Effect.fail(
      new EditRefused({
        reason: "Ambiguous",
        message: `oldText is ${
          places.length === maxPlaces ? `${maxPlaces} times or more` : `${places.length} times`
        } in ${name} (lines ${lines}${
          places.length > 5 ? ", …" : ""
        }). Take more of the lines around it, so that it is there once.`
      })
    )
  }
  return Effect.succeed({
    text: text.slice(0, first) + adapt(newText) + text.slice(first + wanted.length),
    line: lineOf(text, first)
  })
}

export const edit = Tools.make("edit", {
  description: "Replaces a piece of a text file; oldText has to be in it exactly once, white space included.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file, relative to the working folder" }),
    oldText: Schema.NonEmptyString,
    newText: Schema.String
  }),
  executionMode: "sequential",
  annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: false },
  execute: Effect.fn("edit")(function*({ newText, oldText, path }) {
    const fs = yield* FileSystem.FileSystem
    const { place, text } = yield* readText(path)
    const edited = yield* replaceOnce(place.shown, text, oldText, newText)
    yield* fs.writeFileString(place.absolute, edited.text)
    const count = (part: string) => part === "" ? 0 : part.replace(/\n$/, "").split("\n").length
    return Tools.result({
      text: `Replaced ${plural(count(oldText), "line")} by ${
        count(newText)
      } in ${place.shown}, from line ${edited.line}.`,
      details: { summary: `-${count(oldText)} +${count(newText)}, line ${edited.line}` }
    })
  })
})
