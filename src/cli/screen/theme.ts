/**
 * Colours and the marks of the screen.
 */
import type { EditorTheme, MarkdownTheme } from "@earendil-works/pi-tui"

type Style = (text: string) => string

const sgr = (on: number, off: number): Style => (text) => text === "" ? "" : `\u001B[${on}m${text}\u001B[${off}m`

const none: Style = (text) => text

export interface Theme {
  readonly bold: Style
  readonly dim: Style
  readonly italic: Style
  readonly accent: Style
  readonly good: Style
  readonly bad: Style
  readonly warn: Style
  readonly editor: EditorTheme
  readonly markdown: MarkdownTheme
}

/** Without colours, as `NO_COLOR` asks, bold and dim stay. */
export const makeTheme = (colors: boolean): Theme => {
  const color = (on: number): Style => colors ? sgr(on, 39) : none
  const bold = sgr(1, 22)
  const dim = sgr(2, 22)
  const italic = sgr(3, 23)
  const accent = color(36)
  const warn = color(33)
  return {
    bold,
    dim,
    italic,
    accent,
    good: color(32),
    bad: color(31),
    warn,
    editor: {
      borderColor: dim,
      selectList: { selectedPrefix: accent, selectedText: accent, description: dim, scrollInfo: dim, noMatch: dim }
    },
    markdown: {
      heading: (text) => bold(accent(text)),
      link: accent,
      linkUrl: dim,
      code: warn,
      codeBlock: none,
      codeBlockBorder: dim,
      quote: italic,
      quoteBorder: dim,
      hr: dim,
      listBullet: accent,
      bold,
      italic,
      strikethrough: sgr(9, 29),
      underline: sgr(4, 24)
    }
  }
}

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

/** A mark that turns with time. */
export const spinner = (millis: number): string => frames[Math.floor(millis / 100) % frames.length]!
