/**
 * Replay of a transcript's system messages: the prompt and the tools that a model which read the transcript so far
 * believes in (S1, S2). Source: pi-ai's `utils/transcript`, which replays the whole transcript for every request; here a
 * run feeds its messages to a {@link Replay} one by one.
 *
 * @since 0.1.0
 */
import type { AgentMessage, SystemMessage } from "../Messages.ts"
import type { Json, TextContent, ToolDeclaration } from "./content.ts"
import { isList, isRecord } from "./record.ts"

const isText = (block: unknown): block is TextContent =>
  isRecord(block) && block.type === "text" && typeof block.text === "string"

/** The text of message content, its text blocks joined by line breaks; source: pi-ai's `contentText`. */
export const contentText = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  const blocks: ReadonlyArray<unknown> = content
  return blocks.filter(isText).map((block) => block.text).join("\n")
}

/** A system message as one prompt, its content and then its sections; source: pi-ai's `getSystemMessageText`. */
const renderPrompt = (message: SystemMessage): string =>
  [contentText(message.content), ...Object.values(message.sections ?? {})]
    .filter((part) => part !== null && part.length > 0)
    .join("\n\n")

const noTools: ReadonlyArray<ToolDeclaration> = []

/**
 * The system messages seen so far, folded as they come. Adding a message that is not a system message costs a comparison;
 * every answer is computed once and kept until a system message changes it.
 */
export class Replay {
  private content = ""
  private timestamp: number | undefined
  private sections: Map<string, string> | undefined
  private tools: ReadonlyArray<ToolDeclaration> = noTools
  private toolVersion = 0
  private message: SystemMessage | undefined
  private prompt: string | undefined

  constructor(messages: Iterable<AgentMessage> = []) {
    for (const message of messages) this.add(message)
  }

  /** Grows whenever a system message added or removed tools: as long as it stays, so do the declared tools. */
  get version(): number {
    return this.toolVersion
  }

  add(message: AgentMessage): void {
    if (message.role !== "system") return
    this.message = undefined
    this.prompt = undefined
    this.timestamp ??= message.timestamp
    const text = contentText(message.content)
    if (text.length > 0) this.content = this.content.length > 0 ? `${this.content}\n\n${text}` : text
    if (message.sections !== undefined) this.patchSections(message.sections)
    if (message.toolsRemoved !== undefined && message.toolsRemoved.length > 0) this.removeTools(message.toolsRemoved)
    if (message.toolsAdded !== undefined && message.toolsAdded.length > 0) this.addTools(message.toolsAdded)
  }

  private patchSections(sections: NonNullable<SystemMessage["sections"]>): void {
    this.sections ??= new Map()
    for (const [name, value] of Object.entries(sections)) {
      if (value === null) this.sections.delete(name)
      else this.sections.set(name, value)
    }
  }

  private removeTools(removed: NonNullable<SystemMessage["toolsRemoved"]>): void {
    const names = new Set(removed.map(({ name }) => name))
    this.tools = this.tools.filter(({ name }) => !names.has(name))
    this.toolVersion++
  }

  /** A name that is added again keeps its place. The list of a message is taken as it is where that is right: most agents have just one. */
  private addTools(added: ReadonlyArray<ToolDeclaration>): void {
    const byName = new Map([...this.tools, ...added].map((tool) => [tool.name, tool]))
    this.tools = byName.size === added.length && this.tools.length === 0 ? added : [...byName.values()]
    this.toolVersion++
  }

  declaredTools(): ReadonlyArray<ToolDeclaration> {
    return this.tools
  }

  systemMessage(): SystemMessage | undefined {
    if (this.message !== undefined || this.timestamp === undefined) return this.message
    const tools = this.declaredTools()
    return this.message = {
      role: "system",
      content: this.content,
      ...(this.sections !== undefined && this.sections.size > 0 && { sections: Object.fromEntries(this.sections) }),
      ...(tools.length > 0 && { toolsAdded: tools }),
      timestamp: this.timestamp
    }
  }

  systemPrompt(): string {
    if (this.prompt !== undefined) return this.prompt
    const message = this.systemMessage()
    return this.prompt = message === undefined ? "" : renderPrompt(message)
  }

  /** An independent copy, to ask what some more messages would change. */
  fork(): Replay {
    const fork = new Replay()
    fork.content = this.content
    fork.timestamp = this.timestamp
    fork.sections = this.sections && new Map(this.sections)
    fork.tools = this.tools
    fork.toolVersion = this.toolVersion
    fork.message = this.message
    fork.prompt = this.prompt
    return fork
  }
}

/**
 * The tools a model that read these messages believes in: every system message applied in order, its removals first.
 * Source: pi-ai's `getCurrentTools`.
 *
 * @category replay
 * @since 0.1.0
 */
export const declaredTools = (messages: Iterable<AgentMessage>): ReadonlyArray<ToolDeclaration> =>
  new Replay(messages).declaredTools()

/**
 * All system messages as one, or `undefined` when there is none: what a provider gets that accepts instructions only at
 * the beginning. Source: pi-ai's `getCurrentSystemMessage`.
 *
 * @category replay
 * @since 0.1.0
 */
export const systemMessage = (messages: Iterable<AgentMessage>): SystemMessage | undefined =>
  new Replay(messages).systemMessage()

/**
 * The system prompt in force after these messages, its sections included. Source: pi-ai's `getCurrentSystemPrompt`.
 *
 * **Example** (Later instructions)
 *
 * ```ts
 * import { Messages } from "effect-pi"
 *
 * Messages.systemPrompt([
 *   Messages.system("Be brief.", { sections: { date: "It is Monday." } }),
 *   Messages.user("hi"),
 *   Messages.system("Answer in verse.", { sections: { date: "It is Tuesday." } })
 * ]) // => "Be brief.\n\nAnswer in verse.\n\nIt is Tuesday."
 * ```
 *
 * @category replay
 * @since 0.1.0
 */
export const systemPrompt = (messages: Iterable<AgentMessage>): string => new Replay(messages).systemPrompt()

/** Whether two JSON values are equal as structures; a field that is `undefined` counts as absent. */
const sameJson = (left: Json | undefined, right: Json | undefined): boolean => {
  if (left === right) return true
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false
  if (isList(left)) {
    return isList(right) && left.length === right.length && left.every((item, index) => sameJson(item, right[index]))
  }
  if (isList(right)) return false
  let fields = 0
  for (const key of Object.keys(left)) {
    if (left[key] === undefined) continue
    if (!Object.hasOwn(right, key) || !sameJson(left[key], right[key])) return false
    fields++
  }
  for (const key of Object.keys(right)) {
    if (right[key] !== undefined) fields--
  }
  return fields === 0
}

const sameDeclaration = (left: ToolDeclaration, right: ToolDeclaration): boolean =>
  left === right || (
    left.name === right.name && left.description === right.description &&
    sameJson(left.parameters, right.parameters) && sameJson(left.constrainedSampling, right.constrainedSampling)
  )

const declarationFields = new Set<string>(
  ["name", "description", "parameters", "constrainedSampling"] satisfies ReadonlyArray<keyof ToolDeclaration>
)

/**
 * A tool as the transcript records it: what only the runtime needs is left out, and the object itself is kept when there
 * is nothing to leave out, so that the next comparison is one of references. Source: pi-ai's `toToolDeclaration`.
 */
export const toDeclaration = (tool: ToolDeclaration): ToolDeclaration =>
  Object.keys(tool).every((key) => declarationFields.has(key)) ? tool : {
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    ...(tool.constrainedSampling !== undefined && { constrainedSampling: tool.constrainedSampling })
  }

const toDeclarations = (tools: ReadonlyArray<ToolDeclaration>): ReadonlyArray<ToolDeclaration> =>
  tools.every((tool) => toDeclaration(tool) === tool) ? tools : tools.map(toDeclaration)

/**
 * The system message a transcript begins with, or `undefined` when there is neither a prompt nor a tool, so that an empty
 * transcript stays empty. Source: pi-ai's `createInitialSystemMessage`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const initialSystem = (
  systemPrompt: string | undefined,
  tools: ReadonlyArray<ToolDeclaration> = []
): SystemMessage | undefined =>
  tools.length > 0
    ? { role: "system", content: systemPrompt ?? "", toolsAdded: toDeclarations(tools), timestamp: 0 }
    : systemPrompt
    ? { role: "system", content: systemPrompt, timestamp: 0 }
    : undefined

/**
 * The tool fields of a system message that declares a change; source: pi-ai's `getToolStateChanges`.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolChanges {
  readonly toolsAdded: ReadonlyArray<ToolDeclaration>
  readonly toolsRemoved: ReadonlyArray<{ readonly name: string }>
}

const noChanges: ToolChanges = Object.freeze({ toolsAdded: Object.freeze([]), toolsRemoved: Object.freeze([]) })

const byName = (tools: ReadonlyArray<ToolDeclaration>): ReadonlyMap<string, ToolDeclaration> =>
  new Map(tools.map((tool) => [tool.name, tool]))

const missingFrom = (
  tools: ReadonlyArray<ToolDeclaration>,
  others: ReadonlyMap<string, ToolDeclaration>
): ReadonlyArray<ToolDeclaration> =>
  tools.filter((tool) => {
    const other = others.get(tool.name)
    return other === undefined || !sameDeclaration(other, tool)
  })

/**
 * What a system message has to say so that a model that believes in `declared` believes in `executable`: a changed
 * definition is a removal and an addition (S3). Source: pi-ai's `getToolStateChanges`.
 *
 * **Details**
 *
 * Definitions are compared as structures; neither the order of their keys nor the order of the tools is a change. What
 * executable tools carry beside their declaration is left out.
 *
 * @category replay
 * @since 0.1.0
 */
export const toolChanges = (
  declared: ReadonlyArray<ToolDeclaration>,
  executable: ReadonlyArray<ToolDeclaration>
): ToolChanges => {
  if (declared === executable) return noChanges
  const unchanged = declared.length === executable.length &&
    executable.every((tool, index) => {
      const other = declared[index]
      return other !== undefined && sameDeclaration(other, tool)
    })
  if (unchanged) return noChanges
  return {
    toolsAdded: missingFrom(executable, byName(declared)).map(toDeclaration),
    toolsRemoved: missingFrom(declared, byName(executable)).map((tool) => ({ name: tool.name }))
  }
}
