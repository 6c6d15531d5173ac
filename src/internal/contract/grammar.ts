/**
 * The order of events (M2, M4), stricter than the loop that reads them: it forgives what an adapter should not do.
 */
import type { StreamEvent } from "../../StreamFn.ts"
import { show } from "../json.ts"

type BlockType = "text" | "thinking" | "toolcall"

interface Block {
  readonly type: BlockType
  open: boolean
  /** The deltas so far. */
  text: string
}

const blockEvent = /^(text|thinking|toolcall)_(start|delta|end)$/

/** What is wrong with the first event that is, or nothing. */
export const brokenRule = (events: ReadonlyArray<StreamEvent>): string | undefined => {
  const reader = new Reader()
  for (const [index, event] of events.entries()) {
    const wrong = reader.read(event)
    if (wrong !== undefined) return `${wrong} (event ${index + 1}: ${show(event, 200)})`
  }
  return undefined
}

class Reader {
  #blocks: Array<Block> = []
  #started = false
  #ended = false

  read(event: StreamEvent): string | undefined {
    if (this.#ended) return `M2: \`${event.type}\` after the final event`
    const [, type, step] = blockEvent.exec(event.type) ?? []
    if (type !== undefined && "contentIndex" in event) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the expression knows no other types
      return this.#block(type as BlockType, step, event)
    }
    switch (event.type) {
      case "start":
        if (this.#started) return "M4: a second `start`"
        this.#started = true
        return undefined
      case "retract":
        this.#started = false
        this.#blocks = []
        return undefined
      case "done":
      case "error":
        this.#ended = true
        return event.type === "done" ? this.#unfinished(event.content !== undefined) : undefined
      default:
        return `M2: an event of the unknown type ${show(event.type)}`
    }
  }

  #block(
    type: BlockType,
    step: string | undefined,
    event: StreamEvent & { readonly contentIndex: number }
  ): string | undefined {
    if (!this.#started) return `M2: \`${event.type}\` before \`start\``
    const { contentIndex } = event
    const block = this.#blocks[contentIndex]
    if (step === "start") {
      if (contentIndex !== this.#blocks.length) {
        return `M2: \`${event.type}\` for block ${contentIndex}, where block ${this.#blocks.length} comes next`
      }
      this.#blocks.push({ type, open: true, text: "" })
      return undefined
    }
    if (block === undefined) return `M4: \`${event.type}\` for block ${contentIndex}, which was never opened`
    if (block.type !== type) {
      return `M4: \`${event.type}\` for block ${contentIndex}, which is of the type ${block.type}`
    }
    if (!block.open) return `M4: \`${event.type}\` for block ${contentIndex}, which has ended`
    if ("delta" in event) {
      if (typeof event.delta !== "string") return `M2: \`${event.type}\` without a text`
      block.text += event.delta
    }
    if (step === "end") block.open = false
    return undefined
  }

  #unfinished(isReplaced: boolean): string | undefined {
    if (!this.#started) return "M2: `done` without a `start`"
    const open = this.#blocks.findIndex((block) => block.open)
    return open < 0 || isReplaced ? undefined : `M2: \`done\` while block ${open} is open`
  }
}
