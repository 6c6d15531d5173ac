/**
 * Completes commands and file names.
 */
import { type AutocompleteSuggestions, CombinedAutocompleteProvider } from "@earendil-works/pi-tui"
import { wholeText } from "../plainText.ts"

/** Names with something in them that a terminal would obey are not offered: they would be shown, and typed, as they are. */
export class Completions extends CombinedAutocompleteProvider {
  override getSuggestions(
    ...args: Parameters<CombinedAutocompleteProvider["getSuggestions"]>
  ): Promise<AutocompleteSuggestions | null> {
    return super.getSuggestions(...args).then((found) => {
      const items = found?.items.filter(({ value }) => wholeText(value) === value) ?? []
      return found === null || items.length === 0 ? null : { ...found, items }
    })
  }
}
