/**
 * The screen: the conversation, what waits, the editor and the state of things. It knows what is shown and nothing of the
 * agent; what is typed comes out as intents.
 */
import { Editor, ProcessTerminal, type SlashCommand, TuiMainScreen } from "@earendil-works/pi-tui"
import type { AgentEvent } from "../../Events.ts"
import { addUsage, emptyUsage, type ToolCall, type Usage } from "../../Messages.ts"
import type { Answer } from "../approval.ts"
import { duration, usageLine } from "../describe.ts"
import { oneLine, wholeLine } from "../plainText.ts"
import { Completions } from "./completions.ts"
import { Conversation } from "./conversation.ts"
import { readKey } from "./keys.ts"
import { answerLines, filling, fitting, Lines, Question, type Waiting, waitingLines } from "./statusLines.ts"
import { makeTheme, spinner, type Theme } from "./theme.ts"

export type Intent =
  | { readonly type: "submit" | "followUp"; readonly text: string }
  | { readonly type: "withdraw" | "abort" | "interrupt" | "leave" }
  | { readonly type: "answer"; readonly answer: Answer }

export interface ScreenOptions {
  readonly colors: boolean
  readonly now: () => number
  readonly folder: string
  readonly commands: ReadonlyArray<SlashCommand>
  readonly limits: { readonly turns: number; readonly cost: number | undefined }
  readonly onIntent: (intent: Intent) => void
}

export class Screen {
  readonly theme: Theme
  readonly conversation: Conversation
  readonly #options: ScreenOptions
  readonly #terminal = new ProcessTerminal()
  readonly #tui = new TuiMainScreen(this.#terminal)
  readonly #editor: Editor
  #model = ""
  #waiting: ReadonlyArray<Waiting> = []
  #asked: Question | undefined
  #workingSince: number | undefined
  #turns = 0
  #usage: Usage = emptyUsage
  #runUsage: Usage = emptyUsage
  #hint: string | undefined

  constructor(options: ScreenOptions) {
    this.#options = options
    this.theme = makeTheme(options.colors)
    this.conversation = new Conversation(this.theme, options.now)
    this.#editor = new Editor(this.#tui, this.theme.editor, { paddingX: 1 })
    this.#editor.setAutocompleteProvider(new Completions([...options.commands], options.folder))
    this.#editor.onSubmit = (text) => {
      if (text.trim() === "") return
      this.#editor.addToHistory(text)
      options.onIntent({ type: "submit", text })
    }
    this.#tui.addChild(this.conversation)
    this.#tui.addChild(new Lines((width) => waitingLines(this.theme, this.#waiting, width)))
    this.#tui.addChild(
      new Lines((width) =>
        this.#asked === undefined ? [] : [
          ...this.#asked.render(width, this.#terminal.rows),
          ...answerLines(this.theme, this.#asked.call, !this.#isEmpty, width)
        ]
      )
    )
    this.#tui.addChild(new Lines((width) => ["", this.#stateLine(width)]))
    this.#tui.addChild(this.#editor)
    this.#tui.addChild(new Lines((width) => this.#usageLines(width)))
    this.#tui.setFocus(this.#editor)
    // The editor takes the other control characters out of what is pasted.
    // oxlint-disable-next-line eslint/no-control-regex -- control characters are what this is about
    const typed = (data: string) => data.replace(/[\u0080-\u009F]/g, "")
    this.#tui.addInputListener((data) => this.#onKey(data) ? { consume: true } : { data: typed(data) })
  }

  start(): void {
    this.#tui.start()
  }

  /** Takes what is typed until the end, so that it does not reach the shell. */
  drain(): Promise<void> {
    return this.#terminal.drainInput(300)
  }

  stop(): void {
    this.#tui.stop()
  }

  render(): void {
    this.#tui.requestRender()
  }

  /** Whether something on the screen changes with time alone. */
  get isMoving(): boolean {
    return this.#workingSince !== undefined
  }

  setModel(model: string): void {
    this.#model = oneLine(model)
    this.render()
  }

  setWaiting(waiting: ReadonlyArray<Waiting>): void {
    this.#waiting = waiting
    this.render()
  }

  setHint(hint: string | undefined): void {
    this.#hint = hint
    this.render()
  }

  ask(call: ToolCall): void {
    this.#asked = new Question(this.theme, call)
    this.conversation.tool(call.id)?.wait()
    this.render()
  }

  asked(call: ToolCall): void {
    this.#asked = undefined
    this.conversation.tool(call.id)?.go()
    this.render()
  }

  note(text: string, kind: "plain" | "problem" = "plain"): void {
    this.conversation.note(text, kind === "problem" ? this.theme.bad : this.theme.dim)
    this.render()
  }

  get #isEmpty(): boolean {
    return this.#editor.getText() === ""
  }

  /** Empties the editor and gives what was in it. */
  takeText(): string {
    const text = this.#editor.getExpandedText()
    this.#editor.setText("")
    this.render()
    return text
  }

  /** Puts a text into the editor, before what is in it. */
  putBack(text: string): void {
    const typed = this.#editor.getExpandedText()
    this.#editor.setText(typed === "" ? text : `${text}\n${typed}`)
    this.render()
  }

  clear(): void {
    this.conversation.reset()
    this.#tui.requestRender(true)
  }

  onEvent(event: AgentEvent): void {
    switch (event.type) {
      case "agent_start":
        this.#workingSince = this.#options.now()
        this.#turns = 0
        this.#runUsage = emptyUsage
        break
      case "turn_start":
        this.#turns++
        break
      case "message_end":
        if (event.message.role === "assistant" && "usage" in event.message) {
          this.#usage = addUsage(this.#usage, event.message.usage)
          this.#runUsage = addUsage(this.#runUsage, event.message.usage)
        }
        break
      case "agent_end":
        this.#workingSince = undefined
    }
    this.conversation.onEvent(event)
    this.render()
  }

  #onKey(data: string): boolean {
    const intent = readKey(data, {
      editorIsEmpty: this.#isEmpty,
      completing: this.#editor.capturesViewportInput,
      asking: this.#asked !== undefined
    })
    if (intent === undefined) return false
    if (intent.type === "followUp") {
      const text = this.takeText()
      if (text.trim() !== "") {
        this.#editor.addToHistory(text)
        this.#options.onIntent({ type: "followUp", text })
      }
    } else this.#options.onIntent(intent)
    return true
  }

  #stateLine(width: number): string {
    const { dim, warn } = this.theme
    if (this.#hint !== undefined) return fitting([warn(this.#hint)], width)
    if (this.#asked !== undefined) return fitting([warn("waits for your answer")], width)
    if (this.#workingSince === undefined) {
      return fitting([dim("Enter sends"), dim("/help"), dim("Ctrl-C twice leaves")], width)
    }
    const now = this.#options.now()
    const { turns } = this.#options.limits
    return fitting([
      `${warn(spinner(now))} working ${duration(now - this.#workingSince)}`,
      dim("Esc stops"),
      dim(`turn ${this.#turns} of ${turns}`),
      dim("Enter steers"),
      dim("Alt+Enter queues")
    ], width)
  }

  /** The folder is left out where there is little room. */
  #usageLines(width: number): ReadonlyArray<string> {
    const { dim } = this.theme
    const { cost } = this.#options.limits
    const limit = cost === undefined ? "" : `limit $${this.#runUsage.cost.total.toFixed(2)} of $${cost}`
    const facts = [this.#model, usageLine(this.#usage), limit].map((part) => dim(part))
    const lines = filling(facts, width)
    return lines.length > 1 ? lines : [fitting([...facts, dim(wholeLine(this.#options.folder))], width)]
  }
}
