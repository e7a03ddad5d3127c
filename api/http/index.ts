// The public face of the HTTP room: what other rooms import.
export { createApp, type AppOptions } from './application.ts';
export { bufferedResponse, jsonResponse } from './buffered-response.ts';
export * from './caller.ts';
export * from './endpoint.ts';
export * from './event-stream.ts';
export * from './html.ts';
export * from './paths.ts';
export { problemTypesOf } from './problem-types.ts';
export * from './problems.ts';
export { startServer, type PublicServer, type ServerOptions } from './server.ts';
export * from './service.ts';
export { readWithSilence } from './silence.ts';
export { invalid, readInput, readPart, type Part, type RawInput } from './validation.ts';
