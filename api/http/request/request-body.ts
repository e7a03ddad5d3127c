// Reads the JSON body of a request within a limit, and refuses anything else with a problem that says what to send.
import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { Problem } from '../../../lib/problem.ts';
import { bodyTooLarge, malformedRequest, unsupportedMediaType } from '../problems/problems.ts';
import { createValidationProblem } from '../problems/validation.ts';

/** Maximum bytes of a body that may hold a file in base64: 3 MB of it, and what is said beside it. */
export const fileBodyLimit = 4_500_000;

/** The body as parsed JSON. @throws Problem (body-too-large, unsupported-media-type, invalid-request, malformed-request) */
export async function readJsonBody(request: IncomingMessage, limit: number): Promise<unknown> {
  assertUncompressed(request.headers['content-encoding']);
  const bytes = await readBytes(request, limit);
  if (bytes.length === 0) throw createBodyProblem('is empty', 'Send a JSON object.');
  assertJsonMediaType(request.headers['content-type']);
  return parseJson(bytes);
}

function assertJsonMediaType(given: string | undefined): void {
  const [type = '', ...parameters] = (given ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice('charset='.length)
    .replaceAll('"', '');
  if (!/^application\/(json|[a-z0-9.+-]+\+json)$/.test(type)) {
    const found =
      given === undefined
        ? 'The request has no Content-Type header.'
        : `The Content-Type ${given.slice(0, 100)} is not supported.`;
    throw createUnsupportedMediaType(`${found} Send JSON with Content-Type: application/json.`);
  }
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    throw createUnsupportedMediaType(`The charset ${charset.slice(0, 40)} is not supported. Send JSON in UTF-8.`);
}

/** @throws Problem (unsupported-media-type) where the body is compressed */
export function assertUncompressed(encoding: string | undefined): void {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw createUnsupportedMediaType('The body is compressed. Send it without Content-Encoding.');
}

function createUnsupportedMediaType(detail: string): Problem {
  return new Problem(unsupportedMediaType, detail, { headers: { accept: 'application/json' } });
}

/** The bytes of a body. @throws Problem (body-too-large, malformed-request) */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
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
    // The engine's message quotes the body around the fault, which is just what its author needs.
    throw createBodyProblem(
      `is not valid JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'malformed'}`,
      'Send one JSON object, with double quotes and without a trailing comma.',
    );
  }
}

function createBodyProblem(message: string, fix: string): Problem {
  return createValidationProblem([{ in: 'body', field: '', message, fix }]);
}
