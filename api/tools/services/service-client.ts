// Asks one of our own backing services, with a limit of time and of size; its failures are ours, and told as such.
import { request as send, type Dispatcher } from 'undici';
import { Problem } from '../../../lib/problem.ts';
import { backingServices, serviceUrl, type ServiceName, type ServiceUrls } from './backing-services.ts';
import { readBody, TooLarge } from '../fetch/body.ts';
import { toolFailed, toolLimit } from '../problems.ts';

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

/** Answers with whatever status came. @throws Problem (service-off, tool-failed, tool-limit) */
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
      throw new Problem(toolLimit, `${title}, needed longer than ${request.timeoutMs / 1_000} seconds`, {
        cause: error,
      });
    throw new Problem(
      toolFailed,
      error instanceof TooLarge
        ? `${title}, answered with more than ${request.maxBytes} bytes`
        : `${title}, could not be asked`,
      { cause: error },
    );
  }
}
