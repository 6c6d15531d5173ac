/**
 * Conversations on a real pseudo-terminal.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule, type Scope } from "effect"
import { isAlive } from "../mcp/ask.ts"
import * as Server from "../utils/completionsServer.ts"
import { makeFolder } from "./program.ts"
import { hasTmux, open } from "./terminal.ts"

const test = <E>(name: string, body: () => Effect.Effect<void, E, NodeServices.NodeServices | Scope.Scope>): void =>
  it.live(name, () => body().pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 120_000)

describe.skipIf(!hasTmux)(
  `on a terminal${hasTmux ? "" : " (skipped: there is no tmux here)"}`,
  { concurrent: true },
  () => {
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
        yield* terminal.ends(0)
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
        yield* terminal.resize(30, 15)
        yield* terminal.type(`write long.txt: ${"long ".repeat(100)}`)
        yield* terminal.press("Enter")
        // The question is seen, however much it is about.
        yield* terminal.shows(/ long\s+… 1 more line\s+Allow write long\.txt \?[^]*n no/)
        yield* terminal.press("n")
        yield* terminal.shows("Enter sends")
        yield* terminal.type("/quit")
        yield* terminal.press("Enter")
        yield* terminal.shows("EXIT 0")
      }))

    test("nothing of a model, a tool or a file name commands the terminal, and questions hide nothing", () =>
      Effect.gen(function*() {
        const { folder, fs, path } = yield* makeFolder
        const hostile = "\u001B[6;66H\u001B]0;evil\u0007\u009B6;66H\u202E"
        yield* fs.writeFileString(path.join(folder, `b${hostile}.txt`), "")
        yield* fs.writeFileString(path.join(folder, "out.txt"), `out${hostile}put\n`)
        const call = (index: number, name: string, args: object) =>
          Server.calls(Server.piece(index, JSON.stringify(args), { id: `call-${index}`, name }))
        const server = yield* Server.serve(
          Server.answer(
            Server.delta({ reasoning_content: `thou${hostile}ght` }),
            Server.text(`te${hostile}xt`),
            call(0, `no${hostile}tool`, { a: hostile }),
            call(1, "read", { path: `b${hostile}` }),
            call(2, "list", {}),
            call(3, "run", { command: "cat out.txt" }),
            call(4, "run", { command: "echo \u001B]0; rm -rf /\u0007" }),
            Server.finish("tool_calls")
          ),
          Server.json(400, { error: { message: `bad${hostile}ness` } })
        )
        const terminal = yield* open(folder, { env: { OPENAI_BASE_URL: server.url }, columns: 70, rows: 60 })
        yield* terminal.type("go")
        yield* terminal.press("Enter")
        yield* terminal.shows("Allow run cat out.txt ?")
        yield* terminal.press("y")
        yield* terminal.shows("Allow run echo ⟨U+001B⟩]0; rm -rf /⟨U+0007⟩ ?")
        yield* terminal.press("n")
        yield* terminal.shows(/thought[^]*text[^]*output[^]*badness[^]*Enter sends/)
        yield* terminal.type("./")
        yield* terminal.press("Tab")
        yield* terminal.shows(/notes\.md\s+out\.txt/)
        const written = yield* terminal.output
        for (const command of ["\u001B[6;66H", "\u001B]0;", "\u009B", "\u202E"]) assert.notInclude(written, command)
      }))

    test("a response begins again, a search is stopped, and the commands", () =>
      Effect.gen(function*() {
        const { folder, fs, path } = yield* makeFolder
        yield* fs.writeFileString(path.join(folder, "hostile.txt"), `${"a".repeat(40)}!\n`)
        const server = yield* Server.serve(
          Server.json(503, { error: { message: "busy" } }),
          { body: [Server.sse(Server.text("This half is lost.")), Server.cut] },
          Server.answer(Server.text("This is whole."), Server.finish("stop")),
          Server.answer(
            Server.calls(Server.piece(0, JSON.stringify({ pattern: "^(a+)+$" }), { id: "a", name: "search" })),
            Server.finish("tool_calls")
          )
        )
        const terminal = yield* open(folder, { env: { OPENAI_BASE_URL: server.url } })
        const say = (text: string) => Effect.andThen(terminal.type(text), terminal.press("Enter"))
        yield* say("begin")
        const whole = yield* terminal.shows(/begins again \(attempt 3\)[^]*This is whole\.[^]*Enter sends/)
        assert.notInclude(whole, "half")
        assert.strictEqual(whole.split("This is whole.").length, 2)
        yield* say("search")
        // The thread of the screen goes on, and the key is heard.
        yield* terminal.shows(/search \^\(a\+\)\+\$ in \. · (?:0\.[4-9]|[1-9]\S*)s/)
        yield* terminal.press("Escape")
        yield* terminal.shows(/✗ search[^]*Aborted\.[^]*Enter sends/)
        yield* say("/clear")
        const cleared = yield* terminal.shows("A new conversation.")
        assert.notInclude(cleared, "whole")
        yield* say("/help")
        yield* terminal.shows("Alt+Up       takes the last queued message back")
        yield* say("/nonsense")
        yield* terminal.shows("There is no command /nonsense; /help lists them.")
        yield* say("/model nobody/nothing")
        yield* terminal.shows("openai/nobody/nothing answers (OPENAI_BASE_URL")
        yield* say("/model offline")
        yield* terminal.shows(/offline\/rules answers[^]*offline\/rules · /)
        yield* say("list src")
        yield* terminal.shows(/list says:\s+```\s+src\/a\.ts/)
        yield* terminal.press("C-d")
        yield* terminal.ends(0)
        assert.strictEqual(server.asked.length, 4)
      }))

    test("a defect, and signals, leave the terminal as it was and nothing running", () =>
      Effect.forEach(
        [["SIGUSR2", 1, "thrown in a timer"], ["SIGTERM", 130, "Operation aborted"], [
          "SIGHUP",
          130,
          "Operation aborted"
        ]] as const,
        ([signal, exitCode, says]) =>
          Effect.gen(function*() {
            const { around, folder, fs, path } = yield* makeFolder
            const defect = path.join(around, "defect.mjs")
            yield* fs.writeFileString(
              defect,
              "process.on(\"SIGUSR2\", () => setTimeout(() => { throw new Error(\"thrown in a timer\") }))"
            )
            const env = { NODE_OPTIONS: `--import=${defect}` }
            const terminal = yield* open(folder, { args: ["--yes", "run", "echo $$ > pid; exec sleep 600"], env })
            const pid = yield* Effect.repeat(
              Effect.orElseSucceed(fs.readFileString(path.join(folder, "pid")), () => ""),
              { until: (text) => text.endsWith("\n"), schedule: Schedule.spaced("20 millis") }
            )
            yield* terminal.kill(signal)
            assert.include(yield* terminal.ends(exitCode), says)
            assert.isFalse(isAlive(Number(pid)))
          }),
        { concurrency: "unbounded", discard: true }
      ))
  }
)
