/**
 * Signatures, encrypted reasoning and ids that a provider wants back travel in the metadata of effect/ai's parts, by
 * provider. A block of a message has one text for them, its signature: the metadata as JSON.
 */
import * as Result from "effect/Result"
import type { Json, JsonObject } from "../../Messages.ts"
import { encode } from "../json.ts"
import { isJsonObject, isRecord } from "../record.ts"

/** The field that tells such a signature from those of others. */
const mark = "effect/ai"

/** Metadata of the parts of one block: later parts add to earlier ones, provider by provider. */
export const merge = (before: JsonObject | undefined, metadata: unknown): JsonObject | undefined => {
  const encoded = encode(metadata ?? {})
  if (Result.isFailure(encoded) || !isJsonObject(encoded.success)) return before
  const merged: Record<string, Json> = { ...before }
  for (const [provider, fields] of Object.entries(encoded.success)) {
    const known = merged[provider]
    merged[provider] = isJsonObject(known) && isJsonObject(fields)
      ? Object.fromEntries([...Object.entries(known), ...Object.entries(fields)])
      : fields
  }
  return Object.keys(merged).length === 0 ? undefined : merged
}

export const toSignature = (metadata: JsonObject | undefined): string | undefined =>
  metadata === undefined ? undefined : JSON.stringify({ [mark]: metadata })

/** The metadata in a signature; nothing when somebody else made it. */
export const fromSignature = (signature: string | undefined): JsonObject => {
  if (signature?.startsWith(`{"${mark}":`) !== true) return {}
  const parsed = Result.getOrUndefined(Result.try((): unknown => JSON.parse(signature)))
  const metadata = isRecord(parsed) ? parsed[mark] : undefined
  return isJsonObject(metadata) ? metadata : {}
}
