/**
 * What this library leaves out of a request (M1 of docs/SPEC.md), applied to the requests of a trace of pi: calls of
 * failed messages, assistant messages with nothing in them, and calls and results without their counterpart.
 */
import type { Class } from "./classes.ts"
import { blocksOf, openCallIds } from "./runs.ts"
import type { Trace, TraceMessage } from "./trace.ts"
import type { Block } from "./types.ts"

const isEmpty = (block: Block): boolean =>
  "text" in block ? block.text === "" : "thinking" in block && block.thinking === ""

/** Content as traces show it: a single text block is its text. */
const shown = (blocks: ReadonlyArray<Block>): string | ReadonlyArray<Block> => {
  const [first] = blocks
  return blocks.length === 1 && "text" in first! ? first.text : blocks
}

/** An assistant message with the results right behind it, as they are sent. */
const repairGroup = (
  message: TraceMessage,
  results: ReadonlyArray<TraceMessage>,
  classes: Set<Class>
): ReadonlyArray<TraceMessage> => {
  const calls = openCallIds(message)
  const answers = new Set(results.map((result) => result.call))
  const answered = new Set(calls.filter((id) => answers.has(id)))
  const kept = results.filter((result) => answered.has(result.call!))
  const before = blocksOf(message)
  const blocks = before.filter((block) => !("call" in block) || answered.has(block.call))
  if (kept.length < results.length || answered.size < calls.length) classes.add("split-pair")
  if (calls.length === 0 && blocks.length < before.length) classes.add("aborted-call-kept")
  if (blocks.every(isEmpty)) {
    if (blocks.length === before.length) classes.add("empty-message-sent")
    return []
  }
  return [blocks.length === before.length ? message : { ...message, content: shown(blocks) }, ...kept]
}

const repair = (messages: ReadonlyArray<TraceMessage>, classes: Set<Class>): ReadonlyArray<TraceMessage> => {
  const sent: Array<TraceMessage> = []
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    if (message.role === "toolResult") classes.add("split-pair")
    else if (message.role !== "assistant") sent.push(message)
    else {
      const next = messages.findIndex((other, place) => place > index && other.role !== "toolResult")
      const results = messages.slice(index + 1, next === -1 ? messages.length : next)
      sent.push(...repairGroup(message, results, classes))
      index += results.length
    }
  }
  return sent
}

/** The trace with its requests as this library would have sent them, and the classes that were needed for that. */
export const withRepairedRequests = (trace: Trace): { readonly trace: Trace; readonly classes: ReadonlySet<Class> } => {
  const classes = new Set<Class>()
  const requests = trace.requests.map((request) => ({ ...request, messages: repair(request.messages, classes) }))
  return { trace: { ...trace, requests }, classes }
}
