// Public interface of this room: tools over A2A.
export { a2aPath, buildCardJson } from './agent-card.ts';
export { createInterpreter } from './reply.ts';
export { type AgentStart, startAgent } from './endpoint.ts';
