/**
 * The calls of a response from their pieces. The API numbers them with `index`, gives id and name with the first piece and
 * lets the pieces of several calls interleave; other servers send no index, the same index for every call, a new id with
 * every piece, a whole call at once, or arguments that are no text.
 */
import { isRecord } from "../record.ts"
import { jsonText } from "./jsonText.ts"

interface Call {
  id: string
  name: string
  /** Where it stands in the message, once its name is known. */
  contentIndex: number | undefined
  /** Arguments that came before its name. */
  waiting: string
  indexed: boolean
}

type Piece = { readonly [key: string]: unknown }

const textOf = (value: unknown): string => typeof value === "string" ? value : isRecord(value) ? jsonText(value) : ""

export class CallReader {
  readonly #open: (id: string, name: string) => number
  readonly #add: (contentIndex: number, delta: string) => void
  readonly #calls: Array<Call> = []
  readonly #byIndex = new Map<number, Call>()
  readonly #byId = new Map<string, Call>()

  /** `open` is told of a call when its name is known and gives its content index; `add` of its arguments. */
  constructor(open: (id: string, name: string) => number, add: (contentIndex: number, delta: string) => void) {
    this.#open = open
    this.#add = add
  }

  read(piece: Piece): void {
    const details = isRecord(piece["function"]) ? piece["function"] : {}
    const id = textOf(piece["id"])
    const name = textOf(details["name"])
    const index = typeof piece["index"] === "number" ? piece["index"] : undefined
    const delta = textOf(details["arguments"])
    const known = this.#find(index, id, name)
    if (known === undefined && id === "" && name === "" && delta === "") return
    const call = known ?? this.#begin()
    if (index !== undefined) {
      this.#byIndex.set(index, call)
      call.indexed = true
    }
    if (id !== "") this.#byId.set(id, call)
    if (call.id === "") call.id = id
    if (call.name === "") call.name = name
    if (call.contentIndex !== undefined) {
      if (delta !== "") this.#add(call.contentIndex, delta)
      return
    }
    call.waiting += delta
    if (call.name !== "") this.#announce(call)
  }

  /** No more pieces: a call that never got a name is announced without one, so that it is answered. */
  end(): void {
    for (const call of this.#calls) if (call.contentIndex === undefined) this.#announce(call)
  }

  #begin(): Call {
    const call: Call = { id: "", name: "", contentIndex: undefined, waiting: "", indexed: false }
    this.#calls.push(call)
    return call
  }

  /** The call a piece belongs to, unless it begins one. */
  #find(index: number | undefined, id: string, name: string): Call | undefined {
    const byId = id === "" ? undefined : this.#byId.get(id)
    const known = index === undefined ? byId ?? this.#last(name) : this.#byIndex.get(index) ?? withoutIndex(byId)
    // With another id and a name it is another call, whatever its index says.
    const isOther = known !== undefined && id !== "" && name !== "" && known.id !== "" && known.name !== "" &&
      known.id !== id
    return isOther ? byId : known
  }

  /** Without index and known id, a piece goes on with the last call, unless it has a name and that call has one too. */
  #last(name: string): Call | undefined {
    const last = this.#calls.at(-1)
    return name === "" || last?.name === "" ? last : undefined
  }

  #announce(call: Call): void {
    call.contentIndex = this.#open(call.id, call.name)
    if (call.waiting !== "") this.#add(call.contentIndex, call.waiting)
    call.waiting = ""
  }
}

/** Two calls with an index each are two, even if a server gave them the same id. */
const withoutIndex = (call: Call | undefined): Call | undefined => call?.indexed === false ? call : undefined
