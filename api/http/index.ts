// The public face of the HTTP room: what other rooms import.
export { createApp, type AppOptions } from './application.ts';
export { bufferedResponse, jsonResponse } from './response/buffered-response.ts';
export { conditionalJson, conditionalResponse, etagOf, isCurrent } from './response/conditional.ts';
export * from './request/caller.ts';
export { isForeign } from './request/form-body.ts';
export { fileBodyLimit } from './request/request-body.ts';
export * from './endpoint.ts';
export type { RefusedRequest } from './exchange.ts';
export type { GivenFields } from './request/given-fields.ts';
export * from './response/event-stream.ts';
export * from './response/html.ts';
export * from './paths.ts';
export { problemTypesOf } from './problems/problem-types.ts';
export * from './problems/problems.ts';
export { startServer, type PublicServer, type ServerOptions } from './server.ts';
export * from './service.ts';
export { readWithSilence } from './response/silence.ts';
export { ignoredFields, invalid, readInput, readPart, type Part, type RawInput } from './problems/validation.ts';
