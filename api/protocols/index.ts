// What the rest of the API uses of this room: how agents find the tools, and call them by MCP and A2A.
export { type Mcp, createMcp } from './mcp/index.ts';
export { a2aPath, type AgentStart, createInterpreter, startAgent } from './a2a/index.ts';
export { createDiscoveryEndpoints, collectDocumentedProblems, type FrontPage } from './discovery/index.ts';
