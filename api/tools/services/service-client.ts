// The client of backing services, with a time and a size limit; their failures are ours, and reported as such.
import { request as send, type Dispatcher } from 'undici';
import { Problem } from '../../../lib/problem.ts';
import { backingServices, serviceUrl, type ServiceName, type ServiceUrls } from './backing-services.ts';
import { readBody, TooLarge } from '../fetch/body.ts';
import { serviceTimeout, toolFailed } from '../problems.ts';

export interface ServiceRequest {
  /** From the service's base URL on, with a slash before it and with its query. */
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Dispatcher.DispatchOptions['body'];
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ServiceAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Uint8Array;
}

/** Answers with whatever status came. @throws Problem (service-off, tool-failed, service-timeout) */
export async function askService(
  urls: ServiceUrls,
  name: ServiceName,
  request: ServiceRequest,
): Promise<ServiceAnswer> {
  const clock = AbortSignal.timeout(request.timeoutMs);
  const { title } = backingServices[name];
  try {
    const response = await send(`${serviceUrl(urls, name)}${request.path}`, {
      method: request.method ?? 'GET',
      headers: { ...request.headers },
      body: request.body ?? null,
      headersTimeout: 0,
      bodyTimeout: 0,
      signal: AbortSignal.any([request.signal, clock]),
    });
    return {
      status: response.statusCode,
      headers: response.headers,
      bytes: await readBody(response.body, '', request.maxBytes),
    };
  } catch (error) {
    if (error instanceof Problem || request.signal.aborted) throw error;
    if (clock.aborted)
      throw new Problem(
        serviceTimeout,
        `The backing service did not answer within ${request.timeoutMs / 1_000} seconds: ${title}.`,
        {
          cause: error,
        },
      );
    throw new Problem(
      toolFailed,
      error instanceof TooLarge
        ? `The backing service returned more than ${request.maxBytes} bytes: ${title}.`
        : `The backing service cannot be reached: ${title}.`,
      { cause: error },
    );
  }
}
