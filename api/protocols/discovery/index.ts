// What the rest of the API uses of this room: what agents read first: OpenAPI, llms.txt, capabilities.
export { createDiscoveryEndpoints } from './endpoints.ts';
export type { FrontPage } from './endpoints.ts';
export { collectDocumentedProblems } from './endpoints.ts';
