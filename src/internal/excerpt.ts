/**
 * Beginnings of texts, for messages that people read.
 */
const cut = (text: string, width: number): string => text.length <= width ? text : `${text.slice(0, width)}…`

/** Quoted, with escapes for what does not belong on a line. */
export const excerpt = (text: string, width: number): string => JSON.stringify(cut(text, width))

/** As it is, but with spaces for line breaks. */
export const oneLine = (text: string, width: number): string => cut(text, width).replaceAll(/\s+/g, " ")
