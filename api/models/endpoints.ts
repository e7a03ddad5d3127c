// All endpoints of models.
import type { Endpoint } from '../http/index.ts';
import { askEndpoint } from './ask/endpoint.ts';
import { compareEndpoint } from './compare/endpoint.ts';
import { listEndpoint } from './list.ts';
import type { ModelEndpointsOptions } from './services.ts';
import type { AppTokens } from './v1/apps.ts';
import { v1Endpoints } from './v1/endpoints.ts';

/** Those that everybody reaches. */
export function modelEndpoints(options: ModelEndpointsOptions, tokens: AppTokens): Endpoint[] {
  return [
    askEndpoint(options),
    compareEndpoint(options),
    listEndpoint(options.catalog),
    ...v1Endpoints(options, { tokens, open: true }),
  ];
}

/** /v1 where hosted apps reach it without the gateway: for them alone. */
export function appEndpoints(options: ModelEndpointsOptions, tokens: AppTokens): Endpoint[] {
  return v1Endpoints(options, { tokens, open: false });
}
