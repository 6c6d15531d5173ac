import { assert, describe, it } from "@effect/vitest"
import { issueLine, maxIssues, moreIssues, received } from "../../src/internal/issues.ts"

describe("issues", () => {
  it("received and issueLine are bounded and well formed", () => {
    assert.deepStrictEqual(["x", 1, null, [], {}, undefined, true, () => 1].map(received), [
      "\"x\"",
      "1",
      "null",
      "an array",
      "an object",
      "nothing",
      "true",
      "a function"
    ])
    assert.isBelow(received("x".repeat(10_000)).length, 70)
    assert.isBelow(issueLine(["a".repeat(10_000)], "x".repeat(10_000)).length, 600)
    assert.isTrue(issueLine(["\uD83D"], "\uD83D").isWellFormed())
  })

  it("issueLine writes the path, or that it is about all arguments", () => {
    assert.strictEqual(issueLine(["o", "k", 0], "Expected x"), "  - o.k[0]: Expected x")
    assert.strictEqual(issueLine([], "Expected x"), "  - arguments: Expected x")
  })

  it("moreIssues counts what there is no room for", () => {
    assert.deepStrictEqual(moreIssues(maxIssues), [])
    assert.deepStrictEqual(moreIssues(maxIssues + 2), ["  - … and 2 more"])
  })
})
