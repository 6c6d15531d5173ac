/**
 * The content of a message at one moment of its stream.
 *
 * A snapshot is asked for with every event, and copying the block list each time would make a response of n blocks cost
 * n² steps: 5000 calls in one message took 25 ms of 27. So the list of a long message is only copied for who reads it.
 */
import type { AssistantMessage } from "../Messages.ts"

type Block = AssistantMessage["content"][number]

/** Up to this many blocks a copy is cheaper than remembering how to make one. */
export const eagerBlocks = 16

/** What is left of the message has to be passed as it is; `open` are the places of blocks that are still growing. */
export const snapshotOf = (
  message: Omit<AssistantMessage, "content">,
  blocks: ReadonlyArray<Block>,
  open: ReadonlyArray<number>
): AssistantMessage => {
  if (blocks.length <= eagerBlocks) return { ...message, content: blocks.slice() }
  const { length } = blocks
  const growing = open.map((index) => blocks[index]!)
  const places = open.slice()
  let content: ReadonlyArray<Block> | undefined
  return {
    ...message,
    // Blocks that are closed stay as they are, so the list can still be made later.
    get content() {
      if (content !== undefined) return content
      const copy = blocks.slice(0, length)
      for (const [n, index] of places.entries()) copy[index] = growing[n]!
      return content = copy
    }
  }
}
