/**
 * What the words of a provider's error say about its kind: providers name the same few things in many ways, and those who
 * read an error from a library get little else.
 */

/** In which words servers say that a conversation is too long. */
const overflow = [
  /context[ _-]?(length|window|size)/i,
  /(prompt|input|request|message)s?\b.{0,40}\btoo (long|large)\b/i,
  /too many (input |prompt )?tokens/i,
  /maximum (prompt|input|number of (input )?)?\s?(length|tokens?)\b/i,
  /(exceed|longer than|greater than).{0,60}\b(tokens?|max(imum)? length)/i,
  /\btokens?\b.{0,60}exceed/i,
  /range of input length/i,
  /reduce the length of the (messages|prompt|input)/i,
  /token limit/i,
  /request_too_large/i
]

/** … and in which they say that something else is too much: requests in a minute, or the answer that was asked for. */
const otherLimit = /rate.?limit|too many requests|throttl|max_(completion_|output_)?tokens(?!.*context)/i

/** Whether an error says that the conversation is too long. `words` are those of its code and type. */
export const isContextOverflow = (text: string, words = ""): boolean =>
  /context_length/.test(words) || (!otherLimit.test(text) && overflow.some((pattern) => pattern.test(text)))

/** What stands for a status in an error that has none: the words of `code` and `type`. */
const wordStatus: ReadonlyArray<readonly [RegExp, number]> = [
  [/context_length|too_large/, 400],
  [/rate_limit|quota|too_many_requests/, 429],
  [/api_key|authentication|permission|unauthorized/, 401],
  [/timeout/, 408],
  [/not_found/, 404],
  [/overloaded|unavailable|server_error|internal|api_error/, 500],
  [/invalid_request|bad_request/, 400]
]

export const statusOfWords = (words: string): number | undefined => wordStatus.find(([word]) => word.test(words))?.[1]

/** What is shorter is a placeholder for servers that need no key, and part of many a word. */
const minSecret = 4

const speaksOfSecrets = /key|token|secret|auth/i

/** Secrets as they may come back, with and without the scheme before them; the longest first, since one may begin another. */
export const formsOf = (secrets: ReadonlyArray<string>): ReadonlyArray<string> =>
  secrets
    .flatMap((secret) => [secret, secret.trim(), secret.replace(/^\S+\s+/, "")])
    .filter((secret) => secret.length >= minSecret)
    .toSorted((a, b) => b.length - a.length)

/**
 * The texts that must not show: the keys, and the values of headers or variables whose names speak of secrets.
 */
export const secretsIn = (
  keys: ReadonlyArray<string>,
  ...fields: ReadonlyArray<Readonly<Record<string, unknown>> | undefined>
): ReadonlyArray<string> => {
  const secrets = [...keys]
  for (const [name, value] of fields.flatMap((each) => Object.entries(each ?? {}))) {
    if (typeof value === "string" && speaksOfSecrets.test(name)) secrets.push(value)
  }
  return formsOf(secrets)
}

/** Whatever looks like a key of OpenAI or its imitators, masked ones included. */
const keyLike = /\bsk-[\w*.-]{6,}/g

/** A text in which no secret shows: servers and HTTP libraries repeat what they were sent. */
export const withoutSecrets = (text: string, secrets: ReadonlyArray<string>): string => {
  let clean = text
  for (const secret of secrets) if (secret !== "") clean = clean.replaceAll(secret, "<redacted>")
  return clean.replaceAll(keyLike, "<redacted>")
}
