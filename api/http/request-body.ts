// Reads the JSON body of a request within a limit, and refuses whatever is not JSON in so many words.
import { Problem } from '../../lib/problem.ts';
import { bodyTooLarge, unsupportedMediaType } from './problems.ts';
import { invalid } from './validation.ts';

/** The body as parsed JSON. @throws Problem (body-too-large, unsupported-media-type, invalid-request) */
export async function readJsonBody(request: Request, limit: number): Promise<unknown> {
  checkEncoding(request.headers);
  const length = checkLength(request.headers, limit);
  const bytes = length === undefined ? await readBytes(request, limit) : await readWhole(request, limit);
  if (bytes.length === 0) throw broken('the body is empty', 'send a JSON object');
  checkMediaType(request.headers);
  return parse(bytes);
}

function checkMediaType(headers: Headers): void {
  const given = headers.get('content-type');
  const [type = '', ...parameters] = (given ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  if (!/^application\/(json|[a-z0-9.+-]+\+json)$/.test(type)) {
    const was = given === null ? 'no Content-Type was sent' : `Content-Type was ${given.slice(0, 100)}`;
    throw unsupported(`${was}; send Content-Type: application/json`);
  }
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    throw unsupported(`charset was ${charset.slice(0, 40)}; send JSON in UTF-8`);
}

function checkEncoding(headers: Headers): void {
  const encoding = headers.get('content-encoding');
  if (encoding !== null && encoding.toLowerCase() !== 'identity')
    throw unsupported('the body is compressed; send it without Content-Encoding');
}

function unsupported(detail: string): Problem {
  return new Problem(unsupportedMediaType, detail, { headers: { accept: 'application/json' } });
}

/** The length that the client told. */
function checkLength(headers: Headers, limit: number): number | undefined {
  const told = headers.get('content-length');
  if (told === null) return undefined;
  if (Number(told) > limit) throw tooLarge(limit);
  return Number(told);
}

/**
 * HTTP/1.1 ends a body at the length that was told, so there is no need to count; the adapter reads it without making a
 * stream.
 */
async function readWhole(request: Request, limit: number): Promise<Buffer> {
  const bytes = Buffer.from(await request.arrayBuffer());
  if (bytes.length > limit) throw tooLarge(limit);
  return bytes;
}

async function readBytes(request: Request, limit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  if (request.body === null) return Buffer.alloc(0);
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    length += chunk.length;
    if (length > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(limit: number): Problem {
  return new Problem(bodyTooLarge, `the body is longer than ${limit} bytes; send a shorter one`, {
    members: { limit_bytes: limit },
  });
}

function parse(bytes: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw broken('the body is not UTF-8', 'send JSON in UTF-8');
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The engine's message quotes the body around the place, which is just what its author needs.
    throw broken(
      `the body is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'malformed'}`,
      'send one well-formed JSON object, with double quotes and no comma at the end',
    );
  }
}

function broken(message: string, fix: string): Problem {
  return invalid([{ in: 'body', field: '', message, fix }]);
}
