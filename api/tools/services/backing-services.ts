// The backing services of tools: what each is, which setting enables it, and the client that calls them.
import { request as send, type Dispatcher } from 'undici';
import { Problem } from '../../../lib/problem.ts';
import { serviceOff, serviceTimeout, toolFailed } from '../problems.ts';
import { readBody, TooLarge } from '../fetch/fetcher.ts';

/** Services that run next to the API and can be disabled. */
export const backingServices = {
  searxng: { title: 'SearXNG, a meta-search engine', variable: 'MOORAGE_SEARXNG_URL', value: 'tools.searxng.enabled' },
  gotenberg: {
    title: 'Gotenberg, which renders pages with Chromium and office files with LibreOffice',
    variable: 'MOORAGE_GOTENBERG_URL',
    value: 'tools.gotenberg.enabled',
  },
  languagetool: {
    title: 'LanguageTool, a grammar checker for many languages',
    variable: 'MOORAGE_LANGUAGETOOL_URL',
    value: 'tools.languagetool.enabled',
  },
  speech: {
    title: 'a speech server with an OpenAI-compatible /v1/audio/transcriptions endpoint',
    variable: 'MOORAGE_SPEECH_URL',
    value: 'tools.speech.enabled',
  },
  pdftranslator: {
    title: 'the PDF translator, which runs BabelDOC',
    variable: 'MOORAGE_PDF_TRANSLATOR_URL',
    value: 'tools.pdftranslator.enabled',
  },
} as const;

export type ServiceName = keyof typeof backingServices;

/** Why services are off, as set by the operator. */
export type OffCauses = Readonly<Partial<Record<ServiceName, string>>>;

/** Base URLs of enabled services, without a trailing slash. */
export type ServiceUrls = Readonly<Partial<Record<ServiceName, string>>>;

/** Returns the base URL of a service. @throws Problem (service-off) */
export function requireServiceUrl(urls: ServiceUrls, name: ServiceName): string {
  const url = urls[name];
  if (url === undefined) throw new Problem(serviceOff, explainServiceOff(name), { members: { service: name } });
  return url;
}

/** Explains how the operator enables a service. `cause`: why it is off, if known. */
export function explainServiceOff(name: ServiceName, cause?: string): string {
  const { title, variable, value } = backingServices[name];
  const needed = `This tool needs ${title}${cause === undefined ? '' : `, which is off: ${cause.replace(/\.$/, '')}`}.`;
  return `${needed} The operator of this installation enables it with the Helm value ${value}, or, outside a cluster, with ${variable}.`;
}

/** The same for lists, where every byte counts. A call says the rest. */
export function summarizeServiceOff(name: ServiceName, cause?: string): string {
  const { title, value } = backingServices[name];
  return `Needs ${title} (${value})${cause === undefined ? '' : `, which is off: ${cause.replace(/\.$/, '')}`}.`;
}

export interface ServiceRequest {
  /** Path and query relative to the service's base URL, with a leading slash. */
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

/**
 * Calls a service within a time and a size limit, and returns the response whatever its status. The services belong to this
 * installation, so their failures are its own.
 * @throws Problem (service-off, tool-failed, service-timeout)
 */
export async function callService(
  urls: ServiceUrls,
  name: ServiceName,
  request: ServiceRequest,
): Promise<ServiceAnswer> {
  const clock = AbortSignal.timeout(request.timeoutMs);
  const { title } = backingServices[name];
  try {
    const response = await send(`${requireServiceUrl(urls, name)}${request.path}`, {
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
