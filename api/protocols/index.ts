// What the rest of the API uses of this room: how agents find the tools, and call them by MCP and A2A.
export { type Mcp, mcpProtocol } from './mcp/index.ts';
export { a2aPath, type AgentStart, interpreter, startAgent } from './a2a/index.ts';
export { discoveryEndpoints, explainedProblems, type FrontPage } from './discovery/index.ts';
