/**
 * How long a server asks to wait, in milliseconds.
 */
type Headers = { readonly [name: string]: string | undefined }

const isNumber = (text: string | undefined): text is string => text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text)

/** `retry-after-ms`, else `retry-after` in seconds or as a date. `now` is the time of the answer. */
export const retryAfter = (headers: Headers, now: number): number | undefined => {
  const millis = headers["retry-after-ms"]
  if (isNumber(millis)) return Math.round(Number(millis))
  const after = headers["retry-after"]
  if (isNumber(after)) return Math.round(Number(after) * 1000)
  const date = after === undefined ? Number.NaN : Date.parse(after)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
