// Public interface of this room: the documents that agents read first (OpenAPI, llms.txt, capabilities).
export { createDiscoveryEndpoints } from './endpoints.ts';
export type { FrontPage } from './endpoints.ts';
export { collectDocumentedProblems } from './endpoints.ts';
