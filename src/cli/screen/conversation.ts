/**
 * The conversation on the screen, kept up by the events of the agent.
 */
import { Container, Markdown, Spacer, Text } from "@earendil-works/pi-tui"
import type { AgentEvent } from "../../Events.ts"
import { type AssistantMessage, text } from "../../Messages.ts"
import { oneLine, plainText } from "../plainText.ts"
import type { Theme } from "./theme.ts"
import { ToolBlock } from "./toolBlock.ts"

/** One response: thinking and text as they come. */
class Response extends Container {
  readonly #theme: Theme
  readonly #blocks = new Map<number, Text | Markdown>()

  constructor(theme: Theme) {
    super()
    this.#theme = theme
  }

  show(message: AssistantMessage): void {
    for (const [index, block] of message.content.entries()) {
      if (block.type === "thinking") this.#show(index, plainText(block.thinking).trim(), true)
      else if (block.type === "text") this.#show(index, plainText(block.text).trim(), false)
    }
  }

  /** What was shown does not count any more. */
  retract(): void {
    this.clear()
    this.#blocks.clear()
  }

  #show(index: number, content: string, thinking: boolean): void {
    if (content === "") return
    const { dim, italic, markdown } = this.#theme
    const styled = thinking ? content.split("\n").map((line) => dim(italic(line))).join("\n") : content
    const block = this.#blocks.get(index)
    if (block !== undefined) {
      block.setText(styled)
      return
    }
    const made = thinking ? new Text(styled, 1, 0) : new Markdown(styled, 1, 0, markdown)
    this.#blocks.set(index, made)
    this.addChild(new Spacer(1))
    this.addChild(made)
  }
}

export class Conversation extends Container {
  readonly #theme: Theme
  readonly #now: () => number
  readonly #tools = new Map<string, ToolBlock>()
  #response: Response | undefined

  constructor(theme: Theme, now: () => number) {
    super()
    this.#theme = theme
    this.#now = now
  }

  note(text: string, style: (text: string) => string = this.#theme.dim): void {
    this.addChild(new Spacer(1))
    this.addChild(new Text(plainText(text).split("\n").map(style).join("\n"), 1, 0))
  }

  tool(id: string): ToolBlock | undefined {
    return this.#tools.get(id)
  }

  onEvent(event: AgentEvent): void {
    switch (event.type) {
      case "message_start":
        if (event.message.role === "assistant") {
          this.#response = new Response(this.#theme)
          this.addChild(this.#response)
        } else if (event.message.role === "user") {
          const { accent, bold } = this.#theme
          const lines = plainText(text(event.message)).split("\n")
          this.addChild(new Spacer(1))
          this.addChild(
            new Text(lines.map((line, index) => bold(accent(`${index === 0 ? "›" : " "} ${line}`))).join("\n"), 1, 0)
          )
        }
        return
      case "message_update": {
        const { assistantMessageEvent: update } = event
        if (update.type === "retract") {
          this.#response?.retract()
          const why = update.errorMessage === undefined ? "" : `: ${oneLine(update.errorMessage)}`
          this.note(`The model begins again (attempt ${update.attempt})${why}`, this.#theme.warn)
          this.#response = new Response(this.#theme)
          this.addChild(this.#response)
        } else this.#response?.show(event.message)
        return
      }
      case "message_end":
        if (event.message.role === "assistant" && "content" in event.message) this.#endResponse(event.message)
        return
      case "tool_execution_start": {
        const block = new ToolBlock(this.#theme, this.#now, event.toolName, event.args)
        this.#tools.set(event.toolCallId, block)
        this.addChild(block)
        return
      }
      case "tool_execution_update":
        this.#tools.get(event.toolCallId)?.progress(event.partialResult)
        return
      case "tool_execution_end":
        this.#tools.get(event.toolCallId)?.end(event.result, event.isError)
        this.#tools.delete(event.toolCallId)
    }
  }

  #endResponse(message: AssistantMessage): void {
    this.#response?.show(message)
    this.#response = undefined
  }

  /** An empty conversation. */
  reset(): void {
    this.clear()
    this.#tools.clear()
    this.#response = undefined
  }
}
