/**
 * Text of models and tools, made safe for a terminal: what a terminal would obey instead of showing is taken out.
 */

/** ESC and what belongs to it: CSI, the strings (OSC, DCS, APC, PM, SOS) up to their end, and the short ones. */
const escapeSequences =
  // oxlint-disable-next-line eslint/no-control-regex -- control characters are what this is about
  /\u001B(?:\[[0-?]*[ -/]*[@-~]?|[\]P_^X][^\u0007\u001B\u009C]*(?:\u0007|\u001B\\|\u009C)?|[ -/]*[0-~])?/g

/** The same in the C1 form. */
const c1Sequences =
  // oxlint-disable-next-line eslint/no-control-regex -- see above
  /\u009B[0-?]*[ -/]*[@-~]?|[\u0090\u0098\u009D-\u009F][^\u0007\u001B\u009C]*(?:\u0007|\u001B\\|\u009C)?/g

/** Other control characters but line feed, and the marks that turn the direction of text, which hide what a line says. */
const controls =
  // oxlint-disable-next-line eslint/no-control-regex -- see above
  /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g

/** A text without anything a terminal would obey; tabs become two spaces, and a line that was overwritten ends there. */
export const plainText = (text: string): string =>
  text
    .replace(escapeSequences, "")
    .replace(c1Sequences, "")
    .replace(/\r+\n?/g, "\n")
    .replace(/\t/g, "  ")
    .replace(controls, "")

/** The same on one line. */
export const oneLine = (text: string): string => plainText(text).replace(/\s+/g, " ").trim()

/** What is not seen, or changes how the rest is seen. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * A text with everything in it, of which what is not seen is named: for what somebody is asked to allow. What `plainText`
 * takes out, a shell may obey.
 */
export const wholeText = (text: string): string =>
  text.replace(/\t/g, "  ").replace(
    unseen,
    (mark) => mark === "\n" ? mark : `⟨U+${mark.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`
  )

/** The same on one line. */
export const wholeLine = (text: string): string => wholeText(text).replace(/\s+/g, " ").trim()

/** A value as JSON, in which what is not seen is escaped, too: a terminal obeys more than what JSON has to escape. */
export const plainJson = (value: object): string =>
  JSON.stringify(value).replace(
    unseen,
    (mark) =>
      Array.from({ length: mark.length }, (_, unit) => `\\u${mark.charCodeAt(unit).toString(16).padStart(4, "0")}`)
        .join("")
  )
