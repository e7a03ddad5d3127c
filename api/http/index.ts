// The public face of the HTTP room: what other rooms import.
export { createRequestListener, type RequestListenerOptions } from './application.ts';
export * from './caller.ts';
export * from './endpoint.ts';
export type { RefusedRequest } from './exchange.ts';
export * from './problems.ts';
export { fileBodyLimit, isCrossOrigin, type RequestFields } from './request-fields.ts';
export * from './response.ts';
export { startServer, type PublicServer, type ServerOptions } from './server.ts';
export * from './service.ts';
export {
  createValidationProblem,
  ignoredFields,
  type InputPart,
  type RawInput,
  readInput,
  readPart,
} from './validation.ts';
