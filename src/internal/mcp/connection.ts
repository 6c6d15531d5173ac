/**
 * One connection to a server, from its start to its loss. It is closed with its scope; a process that belongs to it is
 * gone then.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Json, JsonObject } from "../../Messages.ts"
import { isRecord } from "../record.ts"
import type { McpError } from "./error.ts"
import { type Failures, type RequestFailure, Tail } from "./failures.ts"
import type { About, Listeners, Wire } from "./sdk.ts"

/** How a call gets on, as the server says. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export interface Connection {
  readonly about: About
  /** Whether its process has ended. */
  readonly isLost: () => boolean
  /** Milliseconds are not its business: who asks interrupts, which the server is told. */
  readonly request: (
    method: string,
    params: JsonObject,
    onProgress?: (progress: Progress) => void
  ) => Effect.Effect<{ readonly [key: string]: unknown }, RequestFailure>
}

/** A request that waits for its answer. */
interface Pending {
  /** Whether its answer can be asked for again where it broke off. */
  resumable: boolean
  ended: boolean
  readonly broken: Deferred.Deferred<void>
}

export interface Setup {
  readonly failures: Failures
  readonly open: (listeners: Listeners) => Effect.Effect<Wire, McpError>
  /** How long it may take, in milliseconds. */
  readonly connectTimeout: number
  /** The server says that its tools are others now. */
  readonly onToolsChanged: () => void
}

/** Long enough for what was read already to be heard. */
const aMoment = Effect.yieldNow.pipe(Effect.andThen(Effect.yieldNow), Effect.andThen(Effect.yieldNow))

export const connect = (setup: Setup): Effect.Effect<Connection, McpError, Scope.Scope> =>
  Effect.gen(function*() {
    const { connectTimeout, failures } = setup
    const heard = new Heard(setup)
    const wire = yield* setup.open(heard.listeners)
    yield* Effect.addFinalizer(() => close(wire, heard))
    /** What came before the failure is part of it, and may still be on its way. */
    const failWith = (error: () => McpError) =>
      Effect.andThen(
        aMoment,
        Effect.suspend(() =>
          Effect.fail(heard.noise === undefined ? error() : failures.notMessages(heard.noise, heard.output()))
        )
      )
    const ended = () =>
      heard.notSpawned === undefined
        ? failures.ended(heard.output())
        : failures.connecting(wire.readError(heard.notSpawned), "")
    /** The client closes what it could not initialize: the end of a process is no reason then. */
    let refused = false
    const initialized = Effect.tryPromise({
      try: (signal) => wire.initialize(signal),
      catch: (error) => {
        refused = !heard.isLost()
        return wire.readError(error)
      }
    }).pipe(
      Effect.catch((error) => failWith(() => refused ? failures.connecting(error, heard.output()) : ended()))
    )
    const gone = Effect.andThen(
      Deferred.await(heard.lost),
      Effect.suspend(() => refused ? Effect.never : failWith(ended))
    )
    yield* Effect.raceFirst(initialized, gone).pipe(
      Effect.timeoutOrElse({
        duration: connectTimeout,
        orElse: () => failWith(() => failures.late(connectTimeout, heard.output()))
      })
    )
    return {
      about: wire.about(),
      isLost: heard.isLost,
      request: (method, params, onProgress) => request(wire, heard, failures, method, params, onProgress)
    }
  })

/** Ends the session and the process; interrupted or not, nobody waits for a server that hangs. */
const close = (wire: Wire, heard: Heard): Effect.Effect<void> =>
  Effect.gen(function*() {
    const hasProcess = wire.hasProcess()
    if (heard.answered) yield* Effect.timeoutOption(Effect.exit(Effect.tryPromise(wire.endSession)), "2 seconds")
    yield* Effect.exit(Effect.tryPromise(wire.close))
    // A process that had to be killed is dead a moment after; one whose descendants hold its output may never say so.
    if (hasProcess) yield* Effect.timeoutOption(Deferred.await(heard.lost), "2 seconds")
  })

/** What is heard on a connection, and who waits for it. */
class Heard {
  readonly lost = Deferred.makeUnsafe<void>()
  readonly pending = new Map<Json, Pending>()
  readonly progress = new Map<string, (progress: Progress) => void>()
  readonly listeners: Listeners
  /** The first thing that was no message. */
  noise: string | undefined
  /** Why there never was a process. */
  notSpawned: unknown
  /** Whether there was a message at all. */
  answered = false
  /** How many requests there were. */
  requests = 0
  readonly #stderr = new Tail()

  constructor(setup: Setup) {
    const { failures } = setup
    this.listeners = {
      onMessage: (message) => {
        this.answered = true
        if (!isRecord(message)) return
        if (message["method"] === "notifications/tools/list_changed") setup.onToolsChanged()
        if (message["method"] === "notifications/progress") this.#tell(message["params"])
      },
      onError: (error) => {
        // The first line that does not parse; zod's errors are about messages that did.
        if (error instanceof SyntaxError && !this.answered) this.noise ??= error.message
        if (isRecord(error) && String(error["syscall"]).startsWith("spawn")) this.notSpawned = error
        // The stream cannot be taken up again: nothing will come of what it was to bring.
        if (error instanceof Error && /Maximum reconnection attempts/.test(error.message)) {
          for (const pending of this.pending.values()) {
            if (pending.ended) Deferred.doneUnsafe(pending.broken, Effect.void)
          }
        }
      },
      onClose: () => {
        Deferred.doneUnsafe(this.lost, Effect.void)
      },
      onStderr: (text) => this.#stderr.add(failures.scrub(text)),
      onAnswerEnd: (id) => {
        const pending = id === undefined ? undefined : this.pending.get(id)
        if (pending === undefined) return
        pending.ended = true
        if (!pending.resumable) Deferred.doneUnsafe(pending.broken, Effect.void)
      }
    }
  }

  readonly isLost = (): boolean => Deferred.isDoneUnsafe(this.lost)

  output(): string {
    return this.#stderr.show()
  }

  #tell(params: unknown): void {
    if (!isRecord(params) || typeof params["progressToken"] !== "string") return
    const { message, progress, total } = params
    if (typeof progress !== "number") return
    this.progress.get(params["progressToken"])?.({
      progress,
      ...(typeof total === "number" && { total }),
      ...(typeof message === "string" && { message })
    })
  }
}

const request = (
  wire: Wire,
  heard: Heard,
  failures: Failures,
  method: string,
  params: JsonObject,
  onProgress: ((progress: Progress) => void) | undefined
): Effect.Effect<{ readonly [key: string]: unknown }, RequestFailure> =>
  Effect.suspend(() => {
    const pending: Pending = { resumable: false, ended: false, broken: Deferred.makeUnsafe() }
    const token = `${heard.requests++}`
    let id: Json | undefined
    if (onProgress !== undefined) heard.progress.set(token, onProgress)
    const answered = Effect.tryPromise({
      try: (signal) => {
        const sent = wire.request(
          method,
          onProgress === undefined ? params : { ...params, _meta: { progressToken: token } },
          signal,
          () => {
            pending.resumable = true
          }
        )
        id = sent.id
        if (id !== undefined) heard.pending.set(id, pending)
        return sent.answer
      },
      catch: (error) => heard.isLost() ? failures.died(heard.output()) : failures.request(wire.readError(error))
    })
    const broken = Deferred.await(pending.broken).pipe(
      Effect.andThen(aMoment),
      Effect.andThen(Effect.suspend(() => Effect.fail(failures.brokeOff())))
    )
    return Effect.raceFirst(answered, broken).pipe(
      // What its process wrote last may still be on its way.
      Effect.tapError(() => heard.isLost() ? aMoment : Effect.void),
      Effect.mapError((failure) => heard.isLost() ? failures.died(heard.output()) : failure),
      Effect.ensuring(Effect.sync(() => {
        heard.progress.delete(token)
        if (id !== undefined) heard.pending.delete(id)
      }))
    )
  })
