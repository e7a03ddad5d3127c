// The public face of the HTTP room: what other rooms import.
export { createRequestListener, type RefusedRequest, type RequestListenerOptions } from './application.ts';
export {
  createValidationProblem,
  defineEndpoint,
  type CallContext,
  type Endpoint,
  type EndpointDefinition,
  ignoredFields,
  type InputPart,
  JsonAnswer,
  type Method,
  type ProtocolMount,
  rawBody,
  type RawInput,
  readInput,
  readPart,
  type RequestContext,
} from './endpoint.ts';
export * from './problems.ts';
export {
  type Caller,
  computeKeyedHash,
  fileBodyLimit,
  hashAnonymousCaller,
  identifyCaller,
  isCrossOrigin,
  readIdempotencyKey,
  type RequestFields,
  resolveClientAddress,
  toAddressPrefix,
  toNetworkPrefix,
  FailureCounter,
} from './request.ts';
export * from './response.ts';
export { startServer, type PublicServer, type ServerOptions } from './server.ts';
export * from './service.ts';
