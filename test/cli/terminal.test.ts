/**
 * Conversations on a real pseudo-terminal.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import * as Server from "../utils/completionsServer.ts"
import { makeFolder } from "./program.ts"
import { hasTmux, open } from "./terminal.ts"

const test = <E>(name: string, body: () => Effect.Effect<void, E, NodeServices.NodeServices | Scope.Scope>): void =>
  it.live(name, () => body().pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 120_000)

describe.skipIf(!hasTmux)(`on a terminal${hasTmux ? "" : " (skipped: there is no tmux here)"}`, () => {
  test("steering, a follow-up, withdrawing, and leaving with the terminal as it was", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      const terminal = yield* open(folder, { args: ["--yes"] })
      // The command works until the test says so.
      yield* terminal.type("run echo begun; until test -e go; do sleep 0.1; done")
      yield* terminal.press("Enter")
      yield* terminal.shows(/working [^\n]*Esc stops/)
      yield* terminal.shows(/^ {3}begun/m)
      yield* terminal.type("list src")
      yield* terminal.press("Enter")
      yield* terminal.shows("↳ next: list src")
      yield* terminal.type("read notes.md")
      yield* terminal.press("M-Enter")
      yield* terminal.shows("↳ afterwards: read notes.md")
      yield* terminal.type("read src/a.ts")
      yield* terminal.press("M-Enter")
      yield* terminal.shows("↳ afterwards: read src/a.ts")
      yield* terminal.press("M-Up")
      yield* terminal.showsNot("↳ afterwards: read src/a.ts")
      yield* terminal.press("C-c")
      yield* terminal.shows("Ctrl-C again leaves")
      yield* terminal.showsNot("read src/a.ts")
      yield* fs.writeFileString(path.join(folder, "go"), "")
      const shown = yield* terminal.shows(/list says:[^]*› read notes\.md[^]*read says:[^]*three[^]*Enter sends/)
      assert.notInclude(shown, "↳")
      yield* terminal.press("C-c")
      yield* terminal.shows("Ctrl-C again leaves")
      yield* terminal.press("C-c")
      yield* terminal.shows(/EXIT 0\s+(?:icanon\s+echo|echo\s+icanon)/)
    }))

  test("no, once, always", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      const terminal = yield* open(folder)
      const ask = (text: string) => Effect.andThen(terminal.type(text), terminal.press("Enter"))
      yield* ask("write one.txt: first")
      yield* terminal.shows("Allow write one.txt ?")
      yield* terminal.press("n")
      yield* terminal.shows(/The user did not allow this call[^]*Enter sends/)
      assert.isFalse(yield* fs.exists(path.join(folder, "one.txt")))
      yield* ask("write two.txt: second")
      yield* terminal.shows("Allow write two.txt ?")
      yield* terminal.press("y")
      yield* terminal.shows(/Made two\.txt[^]*Enter sends/)
      yield* ask("write three.txt: third")
      yield* terminal.shows("Allow write three.txt ?")
      yield* terminal.press("a")
      yield* terminal.shows(/Made three\.txt[^]*Enter sends/)
      yield* ask("write four.txt: fourth")
      yield* terminal.shows(/Made four\.txt[^]*Enter sends/)
      assert.strictEqual(yield* fs.readFileString(path.join(folder, "four.txt")), "fourth\n")
    }))

  test("a response streams, Esc stops it, and a failing server does not end the conversation", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const server = yield* Server.serve(
        {
          body: [
            Server.sse(
              Server.delta({ reasoning_content: "I ponder." }),
              Server.text("The beginning\u001B[2J of")
            ),
            Server.hold
          ]
        },
        Server.json(401, { error: { message: "Incorrect API key provided" } }),
        Server.answer(
          Server.text("All is **well**."),
          Server.finish("stop"),
          Server.usage({ prompt_tokens: 1200, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 200 } })
        )
      )
      const terminal = yield* open(folder, { env: { OPENAI_BASE_URL: server.url, OPENAI_MODEL: "tester" } })
      yield* terminal.shows("openai/tester (OPENAI_BASE_URL")
      yield* terminal.type("begin")
      yield* terminal.press("Enter")
      yield* terminal.shows(/I ponder\.[^]*The beginning of[^]*working/)
      yield* terminal.type("never sent")
      yield* terminal.press("Enter")
      yield* terminal.shows("↳ next: never sent")
      yield* terminal.press("Escape")
      const stopped = yield* terminal.shows(/Aborted\.[^]*Enter sends[^]*never sent/)
      assert.notInclude(stopped, "↳")
      yield* server.closed
      yield* terminal.press("C-c")
      yield* terminal.showsNot("never sent")
      yield* terminal.type("again")
      yield* terminal.press("Enter")
      yield* terminal.shows(/Incorrect API key\s+provided[^]*\/model/)
      yield* terminal.type("once more")
      yield* terminal.press("Enter")
      yield* terminal.shows(/All is well\.[^]*1\.2k in \(200 cached\) · 7 out/)
    }))

  test("narrow and small terminals, and one that is resized", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const terminal = yield* open(folder, { columns: 30, rows: 20 })
      yield* terminal.type("run echo a-rather-long-command-that-is-shown-whole && echo to-its-end")
      yield* terminal.press("Enter")
      const asked = yield* terminal.shows(/waits for your answer/)
      assert.include(asked.replace(/\s/g, ""), "long-command-that-is-shown-whole&&echoto-its-end?")
      yield* terminal.press("y")
      yield* terminal.shows("Enter sends")
      yield* terminal.resize(80, 24)
      yield* terminal.shows(/to-its-end[^]*offline\/rules · 0 in · 0 out/)
      yield* terminal.type("/quit")
      yield* terminal.press("Enter")
      yield* terminal.shows("EXIT 0")
    }))
})
