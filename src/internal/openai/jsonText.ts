/**
 * JSON as it is sent: `JSON.stringify` writes a lone surrogate as an escape, which most servers refuse.
 */

/** The escape of a lone surrogate, but not the text of one: an even number of backslashes stands before it. */
const loneSurrogate = /(?<=(?:^|[^\\])(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g

/** The JSON of a value, with U+FFFD for every lone surrogate in it (T9). */
export const jsonText = (value: unknown): string => {
  const text = JSON.stringify(value)
  return text.includes("\\ud") ? text.replaceAll(loneSurrogate, "\uFFFD") : text
}
