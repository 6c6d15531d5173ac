/**
 * The tools of MCP servers.
 *
 * @since 0.1.0
 */

/**
 * The tools of an MCP server, as tools of an agent.
 */
export * as Mcp from "./Mcp.ts"
