// Random HostedApp specs: good ones of every shape, and ones with a single value at or beyond a bound.
import fc, { type Arbitrary } from 'fast-check';

const letters = (alphabet: string, minLength: number, maxLength: number): Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...Array.from(alphabet)), minLength, maxLength });
const lower = 'abcxyz019';
const label = (maximum: number): Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom('a', 'm', 'z'), letters(`${lower}-`, 0, maximum - 2), fc.constantFrom('a', '9'))
    .map((parts) => parts.join(''));
const maybe = <Value>(value: Arbitrary<Value>): Arbitrary<Value | undefined> => fc.option(value, { nil: undefined });
/** What JSON would leave out is left out. */
const record = (fields: Record<string, Arbitrary<unknown>>): Arbitrary<Record<string, unknown>> =>
  fc.record(fields).map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);

const segment = letters(`${lower}ABC._~+ é漢%@`, 1, 12).filter((text) => text !== '..');
const relativePath = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
const seconds = (low: number, high: number): Arbitrary<string> =>
  fc
    .integer({ min: low, max: high })
    .chain((total) =>
      fc.constantFrom(
        `${total}s`,
        `${Math.floor(total / 60)}m${total % 60}s`,
        `${Math.floor(total / 3600)}h${Math.floor((total % 3600) / 60)}m${total % 60}s`,
      ),
    )
    .filter((text) => /^(\d{1,5}[hms])+$/.test(text));
const mebibytes = (low: number, high: number): Arbitrary<string> =>
  fc
    .integer({ min: low, max: high })
    .chain((value) => fc.constantFrom(`${value}Mi`, `${value * 1024}Ki`, String(value * 2 ** 20)));
const millicores = (low: number): Arbitrary<string> =>
  fc.integer({ min: low, max: 64_000 }).chain((value) => fc.constantFrom(`${value}m`, (value / 1000).toFixed(3)));

const variableName = letters('ABCxyz_019', 1, 20).map((text) => `V_${text}`);
const variables = (name: Arbitrary<string>, maximum: number): Arbitrary<unknown> =>
  fc.uniqueArray(fc.record({ name, value: fc.string({ unit: 'grapheme', maxLength: 40 }) }), {
    selector: (item) => item.name,
    maxLength: maximum,
  });
const secret = fc.record({
  name: variableName.map((text) => `S_${text}`),
  secret: label(20),
  key: letters(`${lower}._-`, 1, 20),
});
const volume = fc.record({
  name: label(30),
  path: fc
    .array(
      segment.filter((text) => !text.includes(':')),
      { minLength: 1, maxLength: 3 },
    )
    .map((parts) => `/v/${parts.join('/')}`),
  size: mebibytes(1, 1 << 20),
});
const volumes = fc
  .uniqueArray(volume, { selector: (item) => item.name, maxLength: 4 })
  .filter((list) => new Set(list.map(({ path }) => path)).size === list.length);

const disks = fc.oneof(
  fc.record({ volumes: volumes.filter((list) => list.length > 0), replicas: fc.constantFrom(0, 1) }),
  fc.record({ volumes: fc.constant([]), replicas: fc.integer({ min: 0, max: 20 }) }),
);
const run = fc
  .tuple(
    disks,
    record({
      port: maybe(fc.integer({ min: 1, max: 65_535 })),
      command: maybe(fc.array(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 5 })),
      env: maybe(variables(variableName, 6)),
      secrets: maybe(fc.uniqueArray(secret, { selector: (item) => item.name, maxLength: 4 })),
      resources: maybe(
        record({
          cpu: maybe(millicores(10)),
          memory: maybe(mebibytes(16, 256 * 1024)),
          disk: maybe(mebibytes(16, 100 * 1024)),
        }),
      ),
      healthPath: maybe(letters(`${lower}/?=&%`, 0, 20).map((text) => `/${text}`)),
      startupTime: maybe(seconds(10, 1800)),
      idleAfter: maybe(fc.oneof(fc.constantFrom('auto', 'never'), seconds(10, 604_800))),
      idle: maybe(fc.constantFrom('sleep', 'nap')),
    }),
  )
  .map(([one, other]) => ({ ...one, ...other }));

/** A spec that must be taken. */
export const goodSpec = record({
  source: record({
    repo: fc
      .tuple(
        fc.constantFrom(
          'https://github.com',
          'https://git.example.org:8443',
          'http://git.moorage-git.svc.cluster.local',
          'http://localhost:3000',
          'http://git.moorage.localhost:81',
        ),
        label(20),
        label(20),
        fc.constantFrom('', '.git'),
      )
      .map(([server, owner, name, suffix]) => `${server}/${owner}/${name}${suffix}`),
    revision: maybe(letters(`${lower}._/-`, 0, 20).map((text) => `v${text.replace(/\.+/g, '.')}`)),
    path: maybe(relativePath),
    interval: maybe(seconds(30, 7 * 86_400)),
  }),
  build: maybe(
    record({
      strategy: maybe(fc.constantFrom('auto', 'dockerfile', 'python', 'node', 'static')),
      dockerfile: maybe(relativePath),
      args: maybe(variables(letters('ABCxyz_', 1, 20), 5)),
      env: maybe(variables(letters('ABCxyz_', 1, 20), 5)),
      resources: maybe(
        record({
          cpu: maybe(millicores(100)),
          memory: maybe(mebibytes(128, 256 * 1024)),
          disk: maybe(mebibytes(256, 500 * 1024)),
        }),
      ),
      timeout: maybe(seconds(60, 7200)),
    }),
  ),
  run: maybe(run),
  listing: maybe(
    record({
      title: maybe(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 })),
      description: maybe(fc.string({ maxLength: 100 })),
      category: maybe(fc.constantFrom('chat', 'other')),
      upstream: maybe(label(20).map((name) => `https://${name}.org/`)),
    }),
  ),
  models: maybe(
    record({ enabled: maybe(fc.boolean()), dailyBudgetUsd: maybe(fc.constantFrom('0', '1', '0.25', '99999.9999')) }),
  ),
  author: maybe(
    record({
      contact: maybe(fc.string({ maxLength: 40 })),
      share: maybe(fc.constantFrom('0', '0.7', '0.1234', '1', '1.0')),
    }),
  ),
  submission: maybe(
    record({ contact: maybe(fc.string({ maxLength: 40 })), note: maybe(fc.string({ maxLength: 100 })) }),
  ),
  previews: maybe(
    record({
      pullRequests: maybe(fc.boolean()),
      branches: maybe(
        fc.array(
          letters(`${lower}._/*-`, 0, 20).map((text) => `b${text}`),
          { maxLength: 10 },
        ),
      ),
      limit: maybe(fc.integer({ min: 1, max: 5 })),
    }),
  ),
  suspend: maybe(fc.boolean()),
});

const text = fc.oneof(
  fc.constantFrom(
    '',
    '.',
    '..',
    '/',
    '//',
    'a/..',
    '-',
    '0',
    '1',
    '1.0',
    '0.12345',
    '1m',
    '30s',
    '29s',
    '2h',
    '2h1s',
    '0h',
    '64',
    '65',
    '16Mi',
    '15Mi',
    '1Ti',
    '1e3',
    '+1',
    ' 1',
    'PORT',
    'A',
    'A-B',
    '/data',
    '/etc',
    '/etcetera',
    '/proc/1',
    'a\nb',
    '\u2028',
    'a\u0000b',
    '🦀',
    'https://x/y',
    'http://x/y',
    'http://a.localhost/y',
    'HTTPS://x/y',
    'auto',
    'other',
    'true',
  ),
  fc.string({ maxLength: 8 }),
  fc.string({ unit: 'grapheme', maxLength: 4 }),
  fc.constantFrom(
    'a'.repeat(30),
    'a'.repeat(31),
    'a'.repeat(128),
    'a'.repeat(129),
    'a'.repeat(200),
    'a'.repeat(201),
    'a'.repeat(512),
    'a'.repeat(513),
  ),
);
const fields = [
  ['source', 'repo'],
  ['source', 'revision'],
  ['source', 'path'],
  ['source', 'interval'],
  ['build', 'strategy'],
  ['build', 'dockerfile'],
  ['build', 'timeout'],
  ['build', 'resources', 'cpu'],
  ['build', 'resources', 'memory'],
  ['run', 'healthPath'],
  ['run', 'startupTime'],
  ['run', 'idleAfter'],
  ['run', 'resources', 'cpu'],
  ['run', 'resources', 'disk'],
  ['listing', 'title'],
  ['listing', 'description'],
  ['listing', 'category'],
  ['listing', 'upstream'],
  ['author', 'contact'],
  ['author', 'share'],
  ['submission', 'contact'],
  ['submission', 'note'],
  ['models', 'dailyBudgetUsd'],
  ['run', 'env', 'name'],
  ['run', 'secrets', 'name'],
  ['run', 'secrets', 'secret'],
  ['run', 'secrets', 'key'],
  ['run', 'volumes', 'name'],
  ['run', 'volumes', 'path'],
  ['run', 'volumes', 'size'],
  ['build', 'args', 'name'],
] as const;
const items: Readonly<Record<string, object>> = {
  env: { name: 'A', value: 'a' },
  args: { name: 'A', value: 'a' },
  secrets: { name: 'B', secret: 's', key: 'k' },
  volumes: { name: 'v', path: '/v', size: '1Gi' },
};

function nested(path: readonly string[], value: unknown): unknown {
  const [head, ...rest] = path;
  if (head === undefined) return value;
  const item = items[head];
  if (item !== undefined) return { [head]: [{ ...item, ...(nested(rest, value) as object) }] };
  return { [head]: nested(rest, value) };
}

/** A spec in which one value is anything at all; numbers are taken to their bounds as well. */
export const oddSpec = fc
  .oneof(
    fc.tuple(fc.constantFrom<readonly string[]>(...fields), text),
    fc.tuple(
      fc.constantFrom<readonly string[]>(['run', 'port'], ['run', 'replicas'], ['previews', 'limit']),
      fc.oneof(fc.integer({ min: -2, max: 25 }), fc.constantFrom(65_535, 65_536, 1.5, 2 ** 40)),
    ),
  )
  .map(([path, value]) => {
    const odd = nested(path, value) as Record<string, Record<string, unknown>>;
    return { ...odd, source: { repo: 'https://github.com/owner/name', ...odd['source'] } };
  });
