/**
 * Reads a text file, or some of its lines.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tools from "../../Tools.ts"
import { head, maxBytes, maxLines, plural } from "../cap.ts"
import { readText } from "../workspace.ts"

const Line = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

export const read = Tools.make("read", {
  description: `Reads a text file of the working folder, at most ${maxLines} lines or ${
    maxBytes / 1000
  } kB at a time; "offset" goes on from a line.`,
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file, relative to the working folder" }),
    offset: Schema.optionalKey(Line.annotate({ description: "First line, from 1; default 1" })),
    limit: Schema.optionalKey(Line.annotate({ description: "How many lines" }))
  }),
  annotations: { readOnly: true, openWorld: false },
  execute: Effect.fn("read")(function*({ limit = maxLines, offset = 1, path }) {
    const { place, text } = yield* readText(path)
    const lines = text.split("\n")
    if (lines.at(-1) === "") lines.pop()
    if (offset > Math.max(1, lines.length)) {
      return yield* Effect.fail(`${place.shown} has only ${plural(lines.length, "line")}.`)
    }
    const wanted = lines.slice(offset - 1, offset - 1 + limit)
    const shown = head(wanted.join("\n"))
    const last = offset - 1 + shown.lines
    const notes = [
      ...(lines.length === 0 ? ["[The file is empty.]"] : []),
      ...(last < lines.length || shown.cut
        ? [`[Lines ${offset} to ${last} of ${lines.length}; go on with offset ${Math.min(last + 1, lines.length)}.]`]
        : [])
    ]
    return Tools.result({
      text: [...(shown.text === "" ? [] : [shown.text]), ...notes].join("\n"),
      details: { summary: plural(Math.min(shown.lines, lines.length), "line") }
    })
  })
})
