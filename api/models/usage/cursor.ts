// Where a list of uses goes on: time and id of the last one that was seen.
import { createValidationProblem } from '../../http/index.ts';

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;
const identifier = /^[0-9a-f-]{36}$/;

export function writeCursor({ at, id }: { readonly at: string; readonly id: string }): string {
  return Buffer.from(`${at} ${id}`).toString('base64url');
}

/** Before everything without one. @throws Problem (invalid-request) */
export function readCursor(text: string | undefined): [at: string, id: string] {
  if (text === undefined) return ['infinity', ''];
  const [at = '', id = ''] = Buffer.from(text, 'base64url').toString('utf8').split(' ');
  if (time.test(at) && !Number.isNaN(Date.parse(at)) && identifier.test(id)) return [at, id];
  throw createValidationProblem([
    {
      in: 'query',
      field: 'cursor',
      message: 'is not a position in this list',
      fix: 'Take it from `next` of the page before, or leave it out for the first page.',
    },
  ]);
}
