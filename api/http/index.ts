// The public face of the HTTP room: what other rooms import.
export { createRequestListener, type RequestListenerOptions } from './application.ts';
export { createBufferedResponse, createJsonResponse } from './response/buffered-response.ts';
export {
  createConditionalJsonResponse,
  createConditionalResponse,
  computeEtag,
  matchesEtag,
} from './response/conditional.ts';
export * from './request/caller.ts';
export { isCrossSite } from './request/form-body.ts';
export { fileBodyLimit } from './request/request-body.ts';
export * from './endpoint.ts';
export type { RefusedRequest } from './exchange.ts';
export type { RequestFields } from './request/given-fields.ts';
export * from './response/event-stream.ts';
export * from './response/html.ts';
export * from './paths.ts';
export { collectProblemTypes } from './problems/problem-types.ts';
export * from './problems/problems.ts';
export { startServer, type PublicServer, type ServerOptions } from './server.ts';
export * from './service.ts';
export { readWithSilence } from './response/silence.ts';
export {
  ignoredFields,
  createValidationProblem,
  readInput,
  readPart,
  type InputPart,
  type RawInput,
} from './problems/validation.ts';
