// Public interface of this room: tools over MCP.
export { type Mcp, createMcp } from './protocol.ts';
