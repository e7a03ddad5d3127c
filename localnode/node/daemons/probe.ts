// Sends one HTTP(S) request with a short timeout, to check that a program is ready.
import { request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';

export interface Tls {
  ca: string;
  cert?: string;
  key?: string;
  /** Host name to request if it differs from the one in the URL. */
  servername?: string;
}

export interface ProbeOptions {
  tls?: Tls;
  headers?: Record<string, string>;
  method?: string;
  /** Connect to this host and port, whatever the URL's host name resolves to. */
  connect?: { host: string; port: number };
}

export interface ProbeAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** Sends the request and reads the whole response. Rejects if there is none within 3 s. */
export async function probe(url: string, options: ProbeOptions = {}): Promise<ProbeAnswer> {
  const { protocol, hostname, port, pathname, search, host } = new URL(url);
  const secure = protocol === 'https:';
  const settings: RequestOptions = {
    host: options.connect?.host ?? hostname,
    port: options.connect?.port ?? (port === '' ? (secure ? 443 : 80) : Number(port)),
    path: `${pathname}${search}`,
    method: options.method ?? 'GET',
    headers: { host, ...options.headers },
    timeout: 3000,
    agent: false,
    ...(secure ? { servername: hostname.replace(/^\d+\.\d+\.\d+\.\d+$/, ''), ...options.tls } : {}),
  };
  return await new Promise((done, fail) => {
    const request = (secure ? httpsRequest : httpRequest)(settings, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        done({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString('utf8'),
        });
      });
    });
    request.on('timeout', () => request.destroy(new Error(`${url} did not answer within 3 s`)));
    request.on('error', fail);
    request.end();
  });
}

/** Returns true if the URL responds with a status below 400. */
export async function isAnswering(url: string, options: ProbeOptions = {}): Promise<boolean> {
  try {
    return (await probe(url, options)).status < 400;
  } catch {
    return false;
  }
}
