// What the rest of the API uses of this room: what agents read first: OpenAPI, llms.txt, capabilities.
export { discoveryEndpoints } from './endpoints.ts';
export type { FrontPage } from './front.ts';
export { explainedProblems } from './problem-types.ts';
