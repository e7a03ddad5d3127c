// Bad requests of every kind: each is a problem that names what is wrong and what to send instead.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { problemMediaType } from '../../../lib/problem.ts';
import { sampleServer } from '../../support/api/sample.ts';
import { send } from '../../support/api/send.ts';

const body = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  instance: z.string(),
  request_id: z.string(),
  errors: z
    .array(z.object({ in: z.string(), field: z.string(), message: z.string().min(1), fix: z.string().min(1) }))
    .optional(),
});

const json = { 'content-type': 'application/json' };
const post = (text: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = json): RequestInit => ({
  method: 'POST',
  body: text,
  headers,
});
const submit = (value: unknown): RequestInit => post(JSON.stringify(value));
const repo = 'octo/chat';

interface Case {
  readonly name: string;
  readonly path?: string;
  readonly init?: RequestInit;
  readonly status: number;
  readonly type: string;
  /** Fields named, in order. */
  readonly fields?: readonly string[];
  readonly says?: RegExp;
}

const invalid = (name: string, value: unknown, fields: readonly string[], says: RegExp): Case => ({
  name,
  init: submit(value),
  status: 400,
  type: 'invalid-request',
  fields,
  says,
});

const cases: readonly Case[] = [
  {
    name: 'no body',
    init: { method: 'POST' },
    status: 400,
    type: 'invalid-request',
    fields: [''],
    says: /body is empty/,
  },
  { name: 'empty body', init: post(''), status: 400, type: 'invalid-request', fields: [''], says: /body is empty/ },
  {
    name: 'not JSON',
    init: post('repo=octo/chat'),
    status: 400,
    type: 'invalid-request',
    fields: [''],
    says: /not valid JSON/,
  },
  {
    name: 'JSON cut off',
    init: post('{"repo": "octo/ch'),
    status: 400,
    type: 'invalid-request',
    fields: [''],
    says: /not valid JSON/,
  },
  {
    name: 'not UTF-8',
    init: post(new Uint8Array([0x22, 0xff, 0x22])),
    status: 400,
    type: 'invalid-request',
    fields: [''],
    says: /not valid UTF-8/,
  },
  {
    name: 'form [spec endpoint.json]',
    init: post('repo=octo/chat', { 'content-type': 'application/x-www-form-urlencoded' }),
    status: 415,
    type: 'unsupported-media-type',
    says: /x-www-form-urlencoded.*application\/json/,
  },
  {
    name: 'no content type',
    init: post(new TextEncoder().encode('{}'), {}),
    status: 415,
    type: 'unsupported-media-type',
    says: /no Content-Type/,
  },
  {
    name: 'other charset',
    init: post('{}', { 'content-type': 'application/json; charset=utf-16' }),
    status: 415,
    type: 'unsupported-media-type',
    says: /utf-16/,
  },
  {
    name: 'compressed',
    init: post('{}', { ...json, 'content-encoding': 'gzip' }),
    status: 415,
    type: 'unsupported-media-type',
    says: /compressed/,
  },
  {
    name: 'too long by its length',
    init: post('{}', { ...json, 'content-length': '9999999' }),
    status: 413,
    type: 'body-too-large',
    says: /65536 bytes/,
  },
  {
    name: 'too long in fact',
    init: submit({ repo, note: 'x'.repeat(70_000) }),
    status: 413,
    type: 'body-too-large',
    says: /65536 bytes/,
  },
  invalid('array', [], [''], /must be an object/),
  invalid('null', null, [''], /must be an object/),
  invalid('text', 'octo/chat', [''], /must be an object/),
  invalid('repo missing [spec submit.repo]', {}, ['repo'], /is missing/),
  invalid('repo null', { repo: null }, ['repo'], /must be a string/),
  invalid('repo number', { repo: 7 }, ['repo'], /must be a string/),
  invalid('repo array', { repo: [repo] }, ['repo'], /must be a string/),
  invalid('repo empty', { repo: '' }, ['repo'], /at least 1 character long$/),
  invalid('repo long', { repo: 'a'.repeat(600) }, ['repo'], /at most 512 characters/),
  invalid('repo bare', { repo: 'chat' }, ['repo'], /neither owner\/name nor a URL/),
  invalid(
    'repo other host',
    { repo: 'https://evil.example/octo/chat' },
    ['repo'],
    /git host evil\.example is not allowed/,
  ),
  invalid('repo file', { repo: 'file:///etc/passwd' }, ['repo'], /protocol file/),
  invalid('repo ext', { repo: 'ext::sh -c id' }, ['repo'], /protocol ext/),
  invalid('repo plain http', { repo: 'http://git.test/octo/chat' }, ['repo'], /protocol http/),
  invalid('repo credentials', { repo: 'https://me:secret@git.test/octo/chat' }, ['repo'], /credentials/),
  invalid('repo query', { repo: 'https://git.test/octo/chat?x=1' }, ['repo'], /query/),
  invalid('repo deep', { repo: 'https://git.test/octo/chat/pulls/7/files' }, ['repo'], /not owner\/name/),
  invalid('repo dots', { repo: '../..' }, ['repo'], /not owner\/name/),
  invalid(
    'contact neither [spec submit.contact]',
    { repo, contact: 'me' },
    ['contact'],
    /must be an e-mail address or a URL/,
  ),
  invalid('contact number', { repo, contact: 7 }, ['contact'], /must be a string/),
  invalid('contact long', { repo, contact: `${'a'.repeat(300)}@example.org` }, ['contact'], /at most 200/),
  // One fault and not two: the form of what is too long is not looked at, for that would take seconds.
  invalid('contact long and crooked', { repo, contact: `a@${'.'.repeat(60_000)}@` }, ['contact'], /at most 200/),
  invalid(
    'contact line break',
    { repo, contact: 'me@example.org\nBcc: x@example.org' },
    ['contact', 'contact'],
    /control characters/,
  ),
  invalid('note long', { repo, note: 'x'.repeat(501) }, ['note'], /at most 500/),
  invalid('note lines [spec submit.note]', { repo, note: 'a\nb' }, ['note'], /more than one line/),
  invalid('note escape', { repo, note: '\u001b[31m' }, ['note'], /more than one line/),
  invalid('note turned around', { repo, note: 'safe \u202eexe.fdp' }, ['note'], /more than one line/),
  invalid('unknown field', { repo, branch: 'main' }, ['branch'], /is not known/),
  invalid('prototype field', JSON.parse('{"repo": "octo/chat", "__proto__": {"x": 1}}'), ['__proto__'], /is not known/),
  invalid(
    'all at once [spec errors.shape]',
    { contact: 7, branch: 'main' },
    ['repo', 'contact', 'branch'],
    /is missing/,
  ),
  invalid(
    'nothing but unknown fields',
    Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`f${index}`, 1])),
    ['repo', ...Array.from({ length: 19 }, (_, index) => `f${index}`)],
    /and 3000 more/,
  ),
  {
    name: 'unknown query',
    path: '/api/submit?x=1',
    init: submit({ repo }),
    status: 400,
    type: 'invalid-request',
    fields: ['x'],
    says: /^Query parameter "x" is not known/,
  },
  {
    name: 'host not allowed',
    path: '/api/submit-status/octo/chat?host=evil.example',
    status: 400,
    type: 'invalid-request',
    fields: ['host'],
    says: /evil\.example/,
  },
  {
    name: 'host twice',
    path: '/api/submit-status/octo/chat?host=git.test&host=other.test',
    status: 400,
    type: 'invalid-request',
    fields: ['host'],
    says: /is sent 2 times/,
  },
  {
    name: 'odd owner',
    path: '/api/submit-status/oc%20to/chat',
    status: 400,
    type: 'invalid-request',
    fields: ['owner, name'],
    says: /./,
  },
  {
    name: 'slash in a name',
    path: '/api/submit-status/octo/a%2Fb',
    status: 400,
    type: 'invalid-request',
    fields: ['owner, name'],
    says: /./,
  },
  {
    name: 'broken escape',
    path: '/api/submit-status/octo/%E0%A4%A',
    status: 400,
    type: 'invalid-request',
    fields: [''],
    says: /^The path has a % that is not followed by/,
  },
  {
    name: 'never submitted',
    path: '/api/submit-status/octo/chat',
    status: 404,
    type: 'not-submitted',
    says: /POST \/api\/submit with \{"repo": "octo\/chat"\}/,
  },
  {
    name: 'log of what was never submitted',
    path: '/api/submit-status/octo/chat/log',
    status: 404,
    type: 'not-submitted',
    says: /octo\/chat/,
  },
  { name: 'no such path', path: '/api/nothing', status: 404, type: 'not-found', says: /openapi\.json/ },
  { name: 'half a path', path: '/api/submit-status/octo', status: 404, type: 'not-found', says: /openapi\.json/ },
  {
    name: 'wrong method',
    path: '/api/submit',
    status: 405,
    type: 'method-not-allowed',
    says: /does not support GET. Use POST, OPTIONS/,
  },
  {
    name: 'wrong method on a pattern',
    path: '/api/submit-status/a/b',
    init: { method: 'DELETE' },
    status: 405,
    type: 'method-not-allowed',
    says: /does not support DELETE. Use GET, HEAD, OPTIONS/,
  },
  {
    name: 'no JSON wanted',
    path: '/api/submit-status/a/b',
    init: { headers: { accept: 'image/png' } },
    status: 406,
    type: 'not-acceptable',
    says: /application\/json/,
  },
  {
    name: 'no stream wanted',
    path: '/api/submit-status/a/b/log',
    init: { headers: { accept: 'text/event-stream;q=0, application/json' } },
    status: 406,
    type: 'not-acceptable',
    says: /text\/plain/,
  },
  {
    name: 'no such problem',
    path: '/problems/nope',
    status: 404,
    type: 'not-found',
    says: /no problem type with this name/,
  },
];

for (const { name, path = '/api/submit', init, status, type, fields, says } of cases) {
  test(`refusal: ${name}`, async () => {
    const { app } = sampleServer();
    const answer = await send(app, path, init);
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get('content-type'), problemMediaType);
    const problem = body.parse(await answer.json());
    assert.equal(problem.status, status);
    assert.equal(problem.type, `https://moorage.test/problems/${type}`);
    assert.equal(problem.request_id, answer.headers.get('x-request-id'));
    if (fields !== undefined)
      assert.deepEqual(
        problem.errors?.map(({ field }) => field),
        fields,
      );
    if (says !== undefined)
      assert.match(
        [problem.detail, ...(problem.errors ?? []).map(({ message }) => message)].join('\n'),
        new RegExp(says.source, 'm'),
      );
    // The type leads to a page about it.
    const page = await send(app, new URL(problem.type).pathname);
    assert.equal(page.status, 200);
  });
}

test('405 carries Allow, 415 carries Accept, and OPTIONS answers with Allow', async () => {
  const { app } = sampleServer();
  assert.equal((await send(app, '/api/submit', { method: 'PUT' })).headers.get('allow'), 'POST, OPTIONS');
  assert.equal(
    (await send(app, '/api/submit', post('x', { 'content-type': 'text/plain' }))).headers.get('accept'),
    'application/json',
  );
  const options = await send(app, '/api/submit', { method: 'OPTIONS' });
  assert.equal(options.status, 204);
  assert.equal(options.headers.get('allow'), 'POST, OPTIONS');
});

test('every fix says what to send', async () => {
  const { app } = sampleServer();
  const answer = await send(app, '/api/submit', submit({ branch: 'main', contact: 'me' }));
  const { errors = [] } = body.parse(await answer.json());
  assert.deepEqual(
    errors.map(({ fix }) => fix),
    [
      'Expected: Source repository: owner/name, or an address copied from a browser or from git clone. A branch in the address must be the default branch. Or a package, such as npm:@scope/name or pypi:name, whose newest version is hosted.',
      'Expected: Contact for launch and revenue notifications: an e-mail address or a URL',
      'Remove it. Known fields: repo, contact, note.',
    ],
  );
});
