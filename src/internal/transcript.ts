/**
 * An append-only list of messages that knows, without reading itself again, what its system messages amount to and what a
 * request made of it looks like.
 */
import type { AgentMessage, SystemMessage, ToolDeclaration } from "../Messages.ts"
import { Replay, toolChanges } from "./replay.ts"
import { RequestMessages } from "./requestMessages.ts"

export class Transcript {
  readonly messages: Array<AgentMessage>
  readonly replay: Replay
  readonly #requests: RequestMessages
  #snapshot: ReadonlyArray<AgentMessage> | undefined
  #index: Set<AgentMessage> | undefined
  #indexed = 0
  #agreed: ReadonlyArray<ToolDeclaration> | undefined
  #agreedVersion = -1

  /** Copies the given list. */
  constructor(messages: ReadonlyArray<AgentMessage>) {
    this.messages = messages.slice()
    this.replay = new Replay(messages)
    this.#requests = new RequestMessages(this.messages)
  }

  push(message: AgentMessage): void {
    this.messages.push(message)
    this.replay.add(message)
  }

  /** A copy that never changes; the same one until something is added. */
  snapshot(): ReadonlyArray<AgentMessage> {
    return this.#snapshot?.length === this.messages.length ? this.#snapshot : this.#snapshot = this.messages.slice()
  }

  /** The first messages, as they were when there were that many. */
  until(length: number): ReadonlyArray<AgentMessage> {
    return length === this.messages.length ? this.messages : this.messages.slice(0, length)
  }

  /** Whether this very message is part of it. */
  has(message: AgentMessage): boolean {
    this.#index ??= new Set()
    while (this.#indexed < this.messages.length) this.#index.add(this.messages[this.#indexed++]!)
    return this.#index.has(message)
  }

  /** What a model is sent while the default conversion is in place; see {@link RequestMessages}. */
  request(): RequestMessages {
    return this.#requests.extend()
  }

  /** Whether the transcript declares exactly these tools. */
  declares(executable: ReadonlyArray<ToolDeclaration>): boolean {
    if (this.#agreed === executable && this.#agreedVersion === this.replay.version) return true
    const { toolsAdded, toolsRemoved } = toolChanges(this.replay.declaredTools(), executable)
    if (toolsAdded.length > 0 || toolsRemoved.length > 0) return false
    this.#agreed = executable
    this.#agreedVersion = this.replay.version
    return true
  }
}

const withTools = (message: SystemMessage, changes: ReturnType<typeof toolChanges>): SystemMessage => {
  const { toolsAdded: _, toolsRemoved: __, ...rest } = message
  return {
    ...rest,
    ...(changes.toolsAdded.length > 0 && { toolsAdded: changes.toolsAdded }),
    ...(changes.toolsRemoved.length > 0 && { toolsRemoved: changes.toolsRemoved })
  }
}

/**
 * Declares the difference between the tools the model believes in and those that can be executed (S3): carried by the
 * last pending system message, whose own tool fields it replaces, or by a new one before the first pending message.
 * Source: pi's `declareToolChanges`, which replays the transcript each time.
 */
export const declareTools = (
  transcript: Transcript,
  executable: ReadonlyArray<ToolDeclaration>,
  pending: ReadonlyArray<AgentMessage>,
  timestamp: number
): ReadonlyArray<AgentMessage> => {
  const last = pending.findLastIndex((message) => message.role === "system")
  const carrier = pending[last]
  if (carrier?.role !== "system") {
    if (transcript.declares(executable)) return pending
    const changes = toolChanges(transcript.replay.declaredTools(), executable)
    const declaration = withTools({ role: "system", content: "", timestamp }, changes)
    return [declaration, ...pending]
  }
  const replay = transcript.replay.fork()
  for (const message of pending) if (message !== carrier) replay.add(message)
  const changes = toolChanges(replay.declaredTools(), executable)
  const unchanged = changes.toolsAdded.length === 0 && changes.toolsRemoved.length === 0
  if (unchanged && !carrier.toolsAdded?.length && !carrier.toolsRemoved?.length) {
    return pending
  }
  return pending.with(last, withTools(carrier, changes))
}
