// Reads what callers send: JSON and form bodies within a limit, fields of a query; rejects forms of other sites and keys in URLs.
import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { Problem } from '../../lib/problem.ts';
import { bodyTooLarge, foreignForm, keyInQuery, malformedRequest, unsupportedMediaType } from './problems.ts';
import { createValidationProblem } from './validation.ts';

/** Body limit in bytes for requests with a file in base64: 3 MB of it, and the fields next to it. */
export const fileBodyLimit = 4_500_000;

/** Parses a JSON body. @throws Problem (body-too-large, unsupported-media-type, invalid-request, malformed-request) */
export async function readJsonBody(request: IncomingMessage, limit: number): Promise<unknown> {
  assertUncompressed(request);
  const bytes = await readBytes(request, limit);
  if (bytes.length === 0) throw createBodyProblem('is empty', 'Send a JSON object.');
  assertJsonMediaType(request.headers['content-type']);
  return parseJson(bytes);
}

function assertJsonMediaType(contentType: string | undefined): void {
  const [type = '', ...parameters] = (contentType ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  if (!/^application\/(json|[a-z0-9.+-]+\+json)$/.test(type)) {
    const found =
      contentType === undefined
        ? 'The request has no Content-Type header.'
        : `The Content-Type ${contentType.slice(0, 100)} is not supported.`;
    throw createUnsupportedMediaType(`${found} Send JSON with Content-Type: application/json.`);
  }
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    throw createUnsupportedMediaType(`The charset ${charset.slice(0, 40)} is not supported. Send JSON in UTF-8.`);
}

function parseJson(bytes: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw createBodyProblem('is not valid UTF-8', 'Send JSON in UTF-8.');
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The engine's message quotes the body around the syntax error, which is exactly what its author needs.
    throw createBodyProblem(
      `is not valid JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'malformed'}`,
      'Send one JSON object, with double quotes and without a trailing comma.',
    );
  }
}

function createBodyProblem(message: string, fix: string): Problem {
  return createValidationProblem([{ in: 'body', field: '', message, fix }]);
}

const formType = 'application/x-www-form-urlencoded';

/**
 * Parses the body of a form that one of our pages sent.
 * @throws Problem (foreign-form, body-too-large, unsupported-media-type, malformed-request)
 */
export async function readFormBody(request: IncomingMessage, limit: number): Promise<RequestFields> {
  // Any page can make a browser send a form, and a form here spends the visitor's quota. Hosted apps answer on subdomains
  // of this site, so being on the same site is not enough. A client that sends neither header is not a browser.
  const { origin, host, 'sec-fetch-site': site } = request.headers;
  if (isCrossOrigin({ origin, host, site: [site].flat()[0] }))
    throw new Problem(foreignForm, 'This form was sent from another site. Open the page here and send it again.');
  assertUncompressed(request);
  const [contentType] = (request.headers['content-type'] ?? '').toLowerCase().split(';', 1);
  if (contentType?.trim() !== formType)
    throw new Problem(
      unsupportedMediaType,
      `This is the address of a form. Send its fields as ${formType}, or use the API.`,
      { headers: { accept: formType } },
    );
  return groupFields(new URLSearchParams((await readBytes(request, limit)).toString('utf8')));
}

/** Whether a page of another site, or an app on a subdomain of this one, made the browser send this request. */
export function isCrossOrigin({
  origin,
  host,
  site,
}: Readonly<Record<'origin' | 'host' | 'site', string | undefined>>): boolean {
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host);
}

function assertUncompressed({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw createUnsupportedMediaType('The body is compressed. Send it without Content-Encoding.');
}

function createUnsupportedMediaType(detail: string): Problem {
  return new Problem(unsupportedMediaType, detail, { headers: { accept: 'application/json' } });
}

async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  try {
    return await getRawBody(request, { limit, length: request.headers['content-length'] ?? null });
  } catch (error) {
    if (!(error instanceof Error && 'type' in error)) throw error;
    if (error.type === 'entity.too.large')
      throw new Problem(bodyTooLarge, `The body is larger than the limit of ${limit} bytes. Send a smaller body.`, {
        members: { limit_bytes: limit },
      });
    throw new Problem(malformedRequest, 'The request ended before its body was complete. Send it again.', {
      cause: error,
    });
  }
}

/** Fields of a query or form by name. A field that was sent several times holds all its values. */
export type RequestFields = Record<string, string | string[]>;

export function groupFields(params: URLSearchParams): RequestFields {
  const entries = [...new Set(params.keys())].map((name): [string, string | string[]] => {
    const values = params.getAll(name);
    const [first] = values;
    return [name, values.length === 1 && first !== undefined ? first : values];
  });
  return Object.fromEntries(entries);
}

const keyParameters = /^(api[-_]?key|access[-_]?token|authorization|bearer)$/i;

/** Rejects keys in URLs, which end up in logs and histories. @throws Problem (key-in-query) with the parameter's name only */
export function rejectKeysInQuery(query: Readonly<RequestFields>): void {
  for (const [name, value] of Object.entries(query))
    if (keyParameters.test(name) || [value].flat().some(hasKeyInside))
      throw new Problem(
        keyInQuery,
        `Query parameter "${name.slice(0, 40)}" contains a key. Send it in a header instead (Authorization: Bearer sk-…), and revoke the key that you sent.`,
      );
}

/** The value of an Authorization header, or the token of a hosted app. */
const credentials = /^(bearer\s+sk-\S|(bearer\s+)?moorage-[a-z0-9-]+\.[\w-]{43}$)/i;
/** Possible model router keys anywhere in a text: routers generate at least 20 characters. */
const keyCandidates = /(?<![\w-])sk-([\w-]{20,})/g;

/** Names begin with `sk-` too: SK-II, sk-SK, sk-learn. A key is long and random. */
function hasKeyInside(value: string): boolean {
  if (credentials.test(value.trim())) return true;
  return [...value.matchAll(keyCandidates)].some(([, secret = '']) => isRandom(secret));
}

/** Any random key of that length has more distinct characters. */
const minDistinct = 8;
/** A part of a text that people write, such as `notes`, `Q3`, `2026`, `RandomForest`. Random text rarely looks like it. */
const word = /^(?:\d+|[a-z]+|[A-Z]+|(?:[A-Z]?[a-z]{2,})(?:[A-Z][a-z]{2,})*|[A-Za-z0-9]{1,3})$/;

function isRandom(text: string): boolean {
  if (new Set(text).size < minDistinct) return false;
  return !text
    .split(/[-_]+/)
    .filter((part) => part !== '')
    .every((part) => word.test(part));
}
