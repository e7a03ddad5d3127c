// When a release counts as live by what its URL answers, when it is rejected, and what the author reads then.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { ProbeResult } from '../../../../../controller/reconcile/snapshot.ts';
import { isAnswering, judgeAnswer, type AnswerInput } from '../../../../../controller/steps/publish/answer.ts';
import type { Answer } from '../../../../../crds/status.ts';
import { app, formatTime, now } from '../../../../support/operator/scenario.ts';

const release = { template: 'aa', commit: 'a'.repeat(40) };
const base: AnswerInput = {
  ...{ known: undefined, probe: undefined, release, workedAt: undefined, hasFallback: false },
  ...{ app: app(), port: 8000, now },
};
const works: ProbeResult = { responds: true, status: 200, detail: 'the response was HTTP 200' };
const fails = (status: number, text?: string): ProbeResult => ({
  responds: ![502, 503, 504].includes(status),
  status,
  detail: `the response was HTTP ${status}`,
  ...(text === undefined ? {} : { text }),
});
const silent: ProbeResult = { responds: false, isDoubtful: true, detail: 'there was no response within 30 s' };
const unreachable: ProbeResult = { responds: false, detail: 'the request failed: connect ECONNREFUSED' };

/** Judges probes at these seconds, one after the other. */
function judge(probes: readonly (readonly [number, ProbeResult])[], input: Partial<AnswerInput> = {}): Answer {
  return probes.reduce<Answer>(
    (known, [seconds, probe]) =>
      judgeAnswer({ ...base, known, ...input, probe, now: new Date(now.getTime() + seconds * 1000) }),
    release,
  );
}

test('a page makes a release live, and a second probe half a minute later confirms it', () => {
  const once = judge([[0, works]]);
  assert.deepEqual(once, { ...release, answeredAt: formatTime(0) });
  assert.ok(isAnswering(once));
  assert.equal(
    judge([
      [0, works],
      [29, works],
    ]).confirmedAt,
    undefined,
  );
  assert.equal(
    judge([
      [0, works],
      [30, works],
    ]).confirmedAt,
    formatTime(30),
  );
});

test('logins, redirects elsewhere and forms count as pages', () => {
  for (const status of [200, 302, 401, 403, 405]) assert.ok(isAnswering(judge([[0, fails(status)]])), String(status));
});

test.each([
  ['an error at /', fails(500), 30, 'run/server-error'],
  ['no page', fails(404), 30, 'run/no-page'],
  ['a page that is gone', fails(410), 30, 'run/no-page'],
  ['a gateway without an app that responds', fails(503), 120, 'run/server-error'],
  ['silence', silent, 120, 'run/no-response'],
])('%s never makes a release live, and rejects it in time', (_, probe, seconds, rule) => {
  const before = judge([
    [0, probe],
    [seconds - 1, probe],
  ]);
  assert.equal(before.rejection, undefined);
  assert.ok(!isAnswering(before));
  const after = judge([
    [0, probe],
    [seconds, probe],
  ]);
  assert.equal(after.rejection?.rule, rule);
  assert.ok(!isAnswering(after));
});

test.each([
  ['Vite', 403, 'Blocked request. This host ("hello.apps.test") is not allowed.\nTo allow this host, add it'],
  ['webpack', 403, 'Invalid Host header'],
  ['Rails', 403, 'Blocked hosts: hello.apps.test'],
  ['Starlette', 400, 'Invalid host header'],
  ['Django while debugging', 400, "DisallowedHost at /\nInvalid HTTP_HOST header: 'hello.apps.test'."],
  ['Django', 400, 'Bad Request (400)'],
])('a host name that %s does not allow makes no release live', (_, status, text) => {
  const { rejection } = judge([
    [0, fails(status, text)],
    [30, fails(status, text)],
  ]);
  assert.equal(rejection?.rule, 'run/host-refused');
  assert.match(rejection.fix, /\$\{\{app\.host\}\}/);
  assert.ok(isAnswering(judge([[0, fails(status, 'Please log in')]])));
});

test('an app that recovers is live, even after its rejection', () => {
  const late = judge([
    [0, fails(500)],
    [40, fails(500)],
    [50, works],
  ]);
  assert.deepEqual(late, { ...release, answeredAt: formatTime(50) });
  assert.ok(
    isAnswering(
      judge([
        [0, fails(503)],
        [60, fails(503)],
        [90, works],
      ]),
    ),
  );
});

test('a worker that dies after its first response rejects the release at the second probe', () => {
  assert.equal(
    judge([
      [0, works],
      [30, fails(500)],
    ]).rejection?.rule,
    'run/server-error',
  );
  assert.equal(
    judge([
      [0, works],
      [30, silent],
      [60, silent],
    ]).rejection?.rule,
    'run/no-response',
  );
  assert.equal(
    judge([
      [0, works],
      [30, fails(502)],
      [59, fails(502)],
    ]).rejection,
    undefined,
    'it may restart',
  );
});

test('a gateway that is away says nothing about the app', () => {
  assert.deepEqual(
    judge([
      [0, unreachable],
      [600, unreachable],
    ]),
    release,
  );
});

test('once confirmed, or if it worked before, later errors do not reject a release', () => {
  const confirmed = judge([
    [0, works],
    [30, works],
  ]);
  assert.deepEqual(
    judge([
      [0, works],
      [30, works],
      [90, fails(500)],
      [600, fails(500)],
    ]),
    confirmed,
  );
  const workedAt = formatTime(-600);
  const known = judge(
    [
      [0, fails(500)],
      [600, fails(500)],
    ],
    { workedAt, known: undefined },
  );
  assert.deepEqual(known, { ...release, answeredAt: workedAt, confirmedAt: workedAt });
});

test('with another release to serve, an error rejects the new one immediately', () => {
  assert.equal(judge([[0, fails(500)]], { hasFallback: true }).rejection?.rule, 'run/server-error');
  assert.equal(judge([[0, fails(503)]], { hasFallback: true }).rejection, undefined, 'it may be loading a model');
  assert.equal(judge([[0, fails(404)]], { hasFallback: true }).rejection, undefined, 'it may be registering routes');
});

test('records the path that responds instead of /', () => {
  assert.equal(judge([[0, { ...fails(404), instead: '/docs' }]]).instead, '/docs');
  assert.equal(
    judge([
      [0, { ...fails(404), instead: '/docs' }],
      [9, works],
    ]).instead,
    undefined,
  );
});

test('an answer about another template says nothing about this one', () => {
  const known = { ...release, template: 'bb', answeredAt: formatTime(-5), rejection: undefined };
  assert.deepEqual(judgeAnswer({ ...base, known }), release);
});

test('quotes the line of the error page that says why, with its fix', () => {
  const reject = (text: string): NonNullable<Answer['rejection']> => {
    const { rejection } = judge([[0, fails(500, text)]], { hasFallback: true });
    return rejection ?? assert.fail('not rejected');
  };
  const php = reject('Fatal error: Uncaught PDOException: SQLSTATE[HY000] [2002] Connection refused in /app/db.php:3');
  assert.equal(
    php.message,
    'The app responds with HTTP 500 at /. Its page says "Fatal error: Uncaught PDOException: SQLSTATE[HY000] [2002] Connection refused in /app/db.php:3".',
  );
  assert.match(php.fix, /^The app looks for its database or store \(mysql\)/);
  const django = reject('OperationalError at /\nno such table: polls_question\nRequest Method: GET');
  assert.match(django.message, /Its page says "OperationalError at \/"\.$/);
  const hidden = reject('Internal Server Error\nThe server encountered an internal error and was unable to complete');
  assert.match(hidden.message, /^The app responds with HTTP 500 at \/\./);
  assert.match(reject('').fix, /^Check its log for the error of this request\./);
});

test('keeps the first explanation of a failure that lasts', () => {
  const first = judge([
    [0, fails(500, 'Error: request 1 failed to connect')],
    [30, fails(500, 'Error: request 2 failed to connect')],
  ]);
  const later = judgeAnswer({
    ...base,
    known: first,
    probe: fails(500, 'Error: request 3 failed to connect'),
    now: new Date(now.getTime() + 90_000),
  });
  assert.deepEqual(later, first);
});

test('names the port, the path and the fix in each message', () => {
  const explain = (probe: ProbeResult): string => {
    const { rejection } = judge([
      [0, probe],
      [600, probe],
    ]);
    return `${rejection?.message ?? ''} ${rejection?.fix ?? ''}`;
  };
  assert.match(
    explain(silent),
    /accepts connections on port 8000, but has not responded at \/ for 600 s\. .*run\.healthPath/,
  );
  assert.match(
    explain(fails(502)),
    /accepts connections on port 8000, but the response at \/ has been HTTP 502 for 600 s\./,
  );
  assert.match(explain(fails(404)), /HTTP 404 at \/, and none of the usual paths .*agents\.openapi/);
  assert.match(explain({ ...fails(500), path: '/install.php' }), /HTTP 500 at \/install\.php, to which \/ redirects\./);
});
