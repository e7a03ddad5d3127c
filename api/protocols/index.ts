// Public interface of this room: how agents discover the tools and call them over MCP and A2A.
export { type Mcp, createMcp } from './mcp/index.ts';
export { a2aPath, type AgentStart, createInterpreter, startAgent } from './a2a/index.ts';
export { createDiscoveryEndpoints, collectDocumentedProblems, type FrontPage } from './discovery/index.ts';
