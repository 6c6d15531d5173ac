/**
 * A server as its tools see it: one connection at a time, replaced when it is lost, and the list of tools it has.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import type { JsonObject } from "../../Messages.ts"
import { isRecord } from "../record.ts"
import { connect, type Connection, type Progress, type Setup } from "./connection.ts"
import type { McpError } from "./error.ts"
import type { Failures, RequestFailure } from "./failures.ts"
import type { Settings } from "./options.ts"
import type { About } from "./sdk.ts"

/** A tool as the server lists it. */
export type Listed = { readonly [key: string]: unknown }

export interface Server {
  readonly about: About
  readonly listed: ReadonlyArray<Listed>
  /** Waits until the server says that its tools are others, or was started again; gives the new list. */
  readonly nextList: Effect.Effect<ReadonlyArray<Listed>, McpError>
  readonly call: (
    tool: string,
    args: JsonObject,
    onProgress: (progress: Progress) => void
  ) => Effect.Effect<{ readonly [key: string]: unknown }, RequestFailure>
}

/** A connection, and how many requests are open on it. */
interface Used {
  readonly connection: Connection
  readonly scope: Scope.Closeable
  requests: number
  retired: boolean
}

/** What another try may help against. */
const mayPass: ReadonlySet<McpError["reason"]> = new Set(["NotStarted", "Unreachable", "Timeout", "Protocol"])

export const start = Effect.fnUntraced(function*(
  settings: Settings,
  failures: Failures,
  open: Setup["open"]
): Effect.fn.Return<Server, McpError, Scope.Scope> {
  const scope = yield* Effect.scope
  const changes = yield* Queue.sliding<void>(1)
  let current: Used | undefined
  let restarting: Deferred.Deferred<Used, McpError> | undefined
  let closed = false
  const onToolsChanged = (): void => void Queue.offerUnsafe(changes, undefined)
  const setup: Setup = { failures, open, connectTimeout: settings.connectTimeout, onToolsChanged }

  const connected = Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const own = yield* Scope.fork(scope)
      const connection = yield* restore(Scope.provide(connect(setup), own)).pipe(
        Effect.onError((cause) => Scope.close(own, Exit.failCause(cause)))
      )
      return { connection, scope: own, requests: 0, retired: false }
    })
  )

  /** Closes a connection that nobody is to use any more, when the last request on it is over. */
  const retire = (used: Used): Effect.Effect<void> =>
    Effect.suspend(() => {
      used.retired = true
      if (current === used) current = undefined
      return used.requests === 0 ? Scope.close(used.scope, Exit.void) : Effect.void
    })

  const restart = (asked: Deferred.Deferred<Used, McpError>): Effect.Effect<void> =>
    Effect.retry(connected, { ...settings.restart, while: (error: McpError) => mayPass.has(error.reason) }).pipe(
      Effect.onExit((exit) => {
        restarting = undefined
        if (Exit.isSuccess(exit)) {
          current = exit.value
          onToolsChanged()
        }
        return Deferred.done(asked, Exit.hasInterrupts(exit) ? Exit.fail(failures.closed()) : exit)
      }),
      Effect.exit,
      Effect.asVoid
    )

  /** The connection there is, or the one that is being made: whoever comes meanwhile waits for the same. */
  const acquire: Effect.Effect<Used, McpError> = Effect.suspend(() => {
    if (closed) return Effect.fail(failures.closed())
    const used = current
    if (used !== undefined && !used.connection.isLost()) return Effect.succeed(used)
    if (restarting !== undefined) return Deferred.await(restarting)
    const asked = Deferred.makeUnsafe<Used, McpError>()
    restarting = asked
    // Not in the fiber of the call: others wait for it, too.
    const begun = Effect.andThen(
      used === undefined ? Effect.void : retire(used),
      Effect.forkIn(restart(asked), scope, { startImmediately: true })
    )
    return Effect.andThen(Effect.uninterruptible(begun), Deferred.await(asked))
  })

  const using = <A, E>(used: Used, work: (connection: Connection) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      used.requests++
      return Effect.ensuring(
        work(used.connection),
        Effect.suspend(() => {
          used.requests--
          return used.retired ? retire(used) : Effect.void
        })
      )
    })

  const answered = (error: McpError): RequestFailure => ({ _tag: "Answered", error })

  const call: Server["call"] = (tool, args, onProgress) => {
    const attempt = Effect.flatMap(Effect.mapError(acquire, answered), (used) =>
      Effect.tapError(
        using(used, (connection) => connection.request("tools/call", { name: tool, arguments: args }, onProgress)),
        (failure) => failure._tag === "NotDelivered" ? retire(used) : Effect.void
      ))
    // The server never began with it, so nothing is done twice.
    return Effect.catch(attempt, (failure) => failure._tag === "NotDelivered" ? attempt : Effect.fail(failure))
  }

  const list = (used: Used): Effect.Effect<ReadonlyArray<Listed>, McpError> =>
    using(used, (connection) => listTools(connection, failures)).pipe(
      Effect.timeoutOrElse({
        duration: settings.connectTimeout,
        orElse: () => Effect.fail(failures.late(settings.connectTimeout, ""))
      })
    )

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      closed = true
    })
  )
  const first = yield* connected
  current = first
  const listed = yield* list(first)
  // What was said of the tools before they were listed is in the list.
  yield* Queue.clear(changes)
  return {
    about: first.connection.about,
    listed,
    nextList: Effect.andThen(Queue.take(changes), Effect.flatMap(acquire, list)),
    call
  }
})

/** More pages than any server has; one that never stops would be asked for ever. */
const maxPages = 1000

const listTools = Effect.fnUntraced(function*(connection: Connection, failures: Failures) {
  const tools: Array<Listed> = []
  if (!connection.about.hasTools) return tools
  const wrong = (what: string) => failures.make("Protocol", `lists its tools wrongly: ${what}.`)
  let cursor: string | undefined
  const seen = new Set<string>()
  do {
    const page = yield* Effect.mapError(
      connection.request("tools/list", cursor === undefined ? {} : { cursor }),
      ({ error }) => error
    )
    const { nextCursor, tools: listed } = page
    if (!Array.isArray(listed)) return yield* Effect.fail(wrong("the answer has no list"))
    for (const tool of listed) if (isRecord(tool)) tools.push(tool)
    cursor = typeof nextCursor === "string" ? nextCursor : undefined
    if (cursor === undefined) continue
    if (seen.has(cursor) || seen.size >= maxPages) return yield* Effect.fail(wrong("its pages never end"))
    seen.add(cursor)
  } while (cursor !== undefined)
  return tools
})
