// Command lines of moorage, each with its input, the request that it sends, and the answer.

export const accepted = { slug: 'hello', message: 'Accepted.' };
/** A command line, the input, the last request that it sends, and the answer to it. */
export const cases: readonly (readonly [string, string, string, object])[] = [
  ['restart hello', '', 'POST /api/apps/hello/restart', accepted],
  ['suspend hello', '', 'POST /api/apps/hello/suspend', accepted],
  ['resume --app hello', '', 'POST /api/apps/hello/resume', accepted],
  ['restore octo/hello', '', 'POST /api/apps/hello/restore', accepted],
  ['deploy https://git.test/octo/hello.git', '', 'POST /api/apps/hello/deploy', accepted],
  ['rebuild hello', '', 'POST /api/apps/hello/rebuild {"cache":true}', accepted],
  ['rebuild hello --no-cache', '', 'POST /api/apps/hello/rebuild {"cache":false}', accepted],
  [
    `rollback ${'cd'.repeat(20)} -a hello`,
    '',
    `POST /api/apps/hello/rollback {"commit":"${'cd'.repeat(20)}"}`,
    accepted,
  ],
  ['rollback cdcdcdc -a hello', '', `POST /api/apps/hello/rollback {"commit":"cdcdcdc"}`, accepted],
  ['delete hello --yes', '', 'DELETE /api/apps/hello', accepted],
  [
    'secrets set API_KEY -a hello',
    'line 1\nline 2\n',
    'PUT /api/apps/hello/secrets/API_KEY {"value":"line 1\\nline 2"}',
    accepted,
  ],
  ['tokens revoke 0123456789ab -a hello', '', 'DELETE /api/apps/hello/tokens/0123456789ab', accepted],
  ['secrets unset API_KEY -a hello', '', 'DELETE /api/apps/hello/secrets/API_KEY', accepted],
  [
    'notifications add ops@example.org -a hello',
    '',
    'POST /api/apps/hello/notifications/contacts {"address":"ops@example.org"}',
    accepted,
  ],
  ['notifications remove webhook -a hello', '', 'DELETE /api/apps/hello/notifications/webhook', accepted],
  [
    'notifications events mail crashed live -a hello',
    '',
    'PUT /api/apps/hello/notifications/mail/events {"events":["crashed","live"]}',
    accepted,
  ],
  ['hook hello --end-previous', '', 'DELETE /api/apps/hello/push-hook-secret/previous', accepted],
  ['forge-token set -a hello', 'ghp_1\n', 'PUT /api/apps/hello/forge-token {"token":"ghp_1"}', accepted],
  ['forge-token delete hello', '', 'DELETE /api/apps/hello/forge-token', accepted],
  ['notifications test hello', '', 'POST /api/apps/hello/notifications/test', accepted],
  [
    'access password -a hello',
    'a pass phrase\n',
    'PUT /api/apps/hello/access {"access":"password","password":"a pass phrase"}',
    { ...accepted, access: 'password', enforced: false, keys: [] },
  ],
  ['access revoke team -a hello', '', 'DELETE /api/apps/hello/access/keys/team', accepted],
];
