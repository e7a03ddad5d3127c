// What the rest of the API uses of this room: tools over MCP.
export { type Mcp, createMcp } from './protocol.ts';
