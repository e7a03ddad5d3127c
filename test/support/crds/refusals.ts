// Specs that must be refused, each with what the refusal must say: asked of zod and of the API server alike.

export interface Refusal {
  readonly what: string;
  readonly given: Readonly<Record<string, unknown>>;
  /** Must be found in the message. */
  readonly fix: RegExp;
}

const source = { repo: 'https://github.com/owner/name' };
const withSource = (fields: object): Refusal['given'] => ({ source: { ...source, ...fields } });
const withBuild = (build: object): Refusal['given'] => ({ source, build });
const withRun = (run: object): Refusal['given'] => ({ source, run });
const withServices = (services: object[]): Refusal['given'] => ({ source, services });
const withComponents = (...components: object[]): Refusal['given'] => ({ source, components });
const variable = { name: 'MODEL', value: 'small' };
const volume = { name: 'data', path: '/data', size: '1Gi' };
const secret = { name: 'KEY', secret: 'keys', key: 'one' };

const preview = {
  source: { ...source, revision: 'a'.repeat(40) },
  models: { enabled: false, dailyBudgetUsd: '0' },
  agents: { enabled: false },
  author: { share: '0' },
  previewOf: { app: 'hello', reference: 'refs/pull/1/head' },
};

/** What a preview cannot have. */
const previewChanges: Readonly<Record<string, object>> = {
  'a Secret': { run: { secrets: [secret] } },
  'a component': { components: [{ name: 'web', secrets: [secret] }] },
  'a task': { tasks: [{ name: 'clean', command: ['true'], schedule: '* * * * *' }] },
  'secrets of the author': { control: { secrets: [{ name: 'KEY', version: 1 }] } },
  models: { models: { enabled: true, dailyBudgetUsd: '0' } },
  'a budget': { models: { enabled: false, dailyBudgetUsd: '0.01' } },
  'a share': { author: { share: '0.7' } },
  agents: { agents: { enabled: true } },
  'a waiver': { review: { waivers: [{ rule: 'license/missing', reason: 'Because.' }] } },
  replicas: { run: { replicas: 2 } },
  'a branch': { source: { ...source, revision: 'main' } },
  'data that stays': { deletionPolicy: 'Retain' },
};

export const refusals: readonly Refusal[] = [
  ...Object.entries(previewChanges).map(([what, change]) => ({
    what: `a preview with ${what}`,
    given: { ...preview, ...change },
    fix: /a preview has no secrets/,
  })),
  { what: 'a branch that goes up', given: { source, previews: { branches: ['../x'] } }, fix: /such as feature\/\*/ },
  { what: 'a branch with a space', given: { source, previews: { branches: ['a b'] } }, fix: /such as feature\/\*/ },
  {
    what: 'plain http',
    given: withSource({ repo: 'http://github.com/owner/name' }),
    fix: /must start with https:\/\//,
  },
  {
    what: 'http on a host that only looks local',
    given: withSource({ repo: 'http://notlocalhost/owner/name' }),
    fix: /must start with https:\/\//,
  },
  {
    what: 'http on a host below a local name',
    given: withSource({ repo: 'http://localhost.example.org/owner/name' }),
    fix: /must start with https:\/\//,
  },
  { what: 'another protocol', given: withSource({ repo: 'ext::sh -c id' }), fix: /must be a URL like https:\/\// },
  {
    what: 'credentials',
    given: withSource({ repo: 'https://me:secret@github.com/owner/name' }),
    fix: /without credentials/,
  },
  {
    what: 'a query',
    given: withSource({ repo: 'https://github.com/owner/name?x=1' }),
    fix: /without credentials, query/,
  },
  {
    what: 'a revision that is an option',
    given: withSource({ revision: '--upload-pack=x' }),
    fix: /must be a branch, a tag or a full commit ID/,
  },
  { what: 'a revision range', given: withSource({ revision: 'a..b/../c' }), fix: /must not contain "\.\."/ },
  { what: 'a path that goes up', given: withSource({ path: 'app/../../etc' }), fix: /must not contain "\.\."/ },
  { what: 'an absolute path', given: withSource({ path: '/etc' }), fix: /must be relative/ },
  { what: 'a path with a backslash', given: withSource({ path: 'a\\b' }), fix: /no backslash/ },
  { what: 'a path with a line break', given: withSource({ path: 'a\nb' }), fix: /no control character/ },
  { what: 'an interval below 30s', given: withSource({ interval: '29s' }), fix: /from 30s to 168h/ },
  { what: 'an interval without a unit', given: withSource({ interval: '300' }), fix: /written like 90s, 5m or 1h30m/ },
  { what: 'an empty interval', given: withSource({ interval: '' }), fix: /written like 90s/ },
  { what: 'an interval that overflows', given: withSource({ interval: '9999999999999h' }), fix: /from 30s to 168h/ },
  {
    what: 'a Dockerfile outside',
    given: withBuild({ dockerfile: '../Dockerfile' }),
    fix: /dockerfile must not contain "\.\."/,
  },
  { what: 'a timeout below 1m', given: withBuild({ timeout: '30s' }), fix: /from 1m to 2h/ },
  { what: 'a timeout above 2h', given: withBuild({ timeout: '2h1s' }), fix: /from 1m to 2h/ },
  {
    what: 'a build argument with a bad name',
    given: withBuild({ args: [{ name: '1X', value: '' }] }),
    fix: /only letters, digits and _/,
  },
  {
    what: 'more memory for a build than there can be',
    given: withBuild({ resources: { memory: '1Ti' } }),
    fix: /from 128Mi to 256Gi/,
  },
  { what: 'no processor for a build', given: withBuild({ resources: { cpu: '0' } }), fix: /from 100m to 64/ },
  { what: 'too many processors', given: withRun({ resources: { cpu: '65' } }), fix: /from 10m to 64/ },
  {
    what: 'a quantity with an unknown suffix',
    given: withRun({ resources: { memory: '1GB' } }),
    fix: /k, M, G, T, Ki, Mi, Gi or Ti/,
  },
  { what: 'a startup time below 10s', given: withRun({ startupTime: '5s' }), fix: /from 10s to 30m/ },
  { what: 'a startup time above 30m', given: withRun({ startupTime: '31m' }), fix: /from 10s to 30m/ },
  {
    what: 'an idle time below 10s',
    given: withRun({ idleAfter: '5s' }),
    fix: /auto, never, or a duration from 10s to 168h/,
  },
  { what: 'an idle time without a unit', given: withRun({ idleAfter: '15' }), fix: /written like 90s, 15m or 2h/ },
  { what: 'an idle time of nothing', given: withRun({ idleAfter: '' }), fix: /auto, never, or a duration/ },
  { what: 'PORT in env', given: withRun({ env: [{ name: 'PORT', value: '80' }] }), fix: /set run\.port instead/ },
  {
    what: 'PORT in secrets',
    given: withRun({ secrets: [{ ...secret, name: 'PORT' }] }),
    fix: /set run\.port instead/,
  },
  {
    what: 'one name in env and secrets',
    given: withRun({ env: [{ ...variable, name: 'KEY' }], secrets: [secret] }),
    fix: /keep it in one of them/,
  },
  {
    what: 'a volume with two replicas',
    given: withRun({ replicas: 2, volumes: [volume] }),
    fix: /set replicas to 1 or remove volumes/,
  },
  {
    what: 'two volumes at one path',
    given: withRun({ volumes: [volume, { ...volume, name: 'more' }] }),
    fix: /give each its own/,
  },
  ...['/proc', '/sys/fs', '/dev/shm', '/etc'].map((path) => ({
    what: `a volume at ${path}`,
    given: withRun({ volumes: [{ ...volume, path }] }),
    fix: /use a folder like \/data/,
  })),
  ...['/', 'data', '/data/', '/a//b', '/a:b'].map((path) => ({
    what: `a volume at ${path}`,
    given: withRun({ volumes: [{ ...volume, path }] }),
    fix: /must be absolute and name a folder below \//,
  })),
  {
    what: 'a volume path that goes up',
    given: withRun({ volumes: [{ ...volume, path: '/data/../etc' }] }),
    fix: /must not contain "\.\."/,
  },
  { what: 'a health path without a slash', given: withRun({ healthPath: 'healthz' }), fix: /must start with \// },
  {
    what: 'a Secret that cannot exist',
    given: withRun({ secrets: [{ ...secret, secret: 'My_Keys' }] }),
    fix: /must be the name of a Secret/,
  },
  {
    what: 'an upstream that is no page',
    given: { source, listing: { upstream: 'javascript:alert(1)' } },
    fix: /starts with https:\/\//,
  },
  {
    what: 'a service with a name that no host has',
    given: withServices([{ name: 'my_db', type: 'postgres' }]),
    fix: /the name of a service has lower-case letters/,
  },
  {
    what: 'a service that hides the app itself',
    given: withServices([{ name: 'localhost', type: 'redis' }]),
    fix: /give the service another name/,
  },
  {
    what: 'a service with little memory',
    given: withServices([{ name: 'db', type: 'postgres', memory: '1Mi' }]),
    fix: /memory must be a quantity from 32Mi/,
  },
  { what: 'a stage that is an option', given: withBuild({ target: '--x' }), fix: /must be the name of a stage/ },
  {
    what: 'a waiver of what protects the platform',
    given: { source, review: { waivers: [{ rule: 'symlinks/escape', reason: 'r' }] } },
    fix: /must be the ID of a finding that can be waived/,
  },
  {
    what: 'a waiver without a word of reason',
    given: { source, review: { waivers: [{ rule: 'license/missing', reason: ' ' }] } },
    fix: /must say, on one line, why/,
  },
  {
    what: 'a task without a command',
    given: { source, tasks: [{ name: 'clean', command: [] }] },
    fix: /command|at least 1|>=1/,
  },
  {
    what: 'a task that is named like a command by hand',
    given: { source, tasks: [{ name: 'run', command: ['true'] }] },
    fix: /run is reserved/,
  },
  {
    what: 'a task that may run for longer than an hour',
    given: { source, tasks: [{ name: 'clean', command: ['true'], timeout: '61m' }] },
    fix: /timeout must be a duration from 10s to 1h/,
  },
  {
    what: 'a task whose time zone is none',
    given: { source, tasks: [{ name: 'clean', command: ['true'], timeZone: '../etc' }] },
    fix: /timeZone must be a name/,
  },
  {
    what: 'a task and a component of one name',
    given: { source, components: [{ name: 'web' }], tasks: [{ name: 'web', command: ['true'] }] },
    fix: /a task and a component have the same name/,
  },
  {
    what: 'a requested run of a task and a command',
    given: {
      source,
      control: {
        runs: [{ id: 'run-a-1', task: 'a', command: ['b'], timeoutSeconds: 60, requestedAt: '2026-01-01T00:00:00Z' }],
      },
    },
    fix: /set task or command, and not both/,
  },
  {
    what: 'two components with one path, which is a further path of both',
    given: withComponents(
      { name: 'web' },
      { name: 'api', route: { path: '/api', morePaths: ['/ws'] } },
      { name: 'live', route: { path: '/live', morePaths: ['/feed', '/ws'] } },
    ),
    fix: /two web components have a path in common/,
  },
  {
    what: 'two components with one path, which is the first path of one of them',
    given: withComponents({ name: 'web' }, { name: 'api', route: { path: '/api', morePaths: ['/'] } }),
    fix: /two web components have a path in common/,
  },
  { what: 'a share above 1', given: { source, author: { share: '1.5' } }, fix: /decimal from 0 to 1/ },
  {
    what: 'a budget with a sign',
    given: { source, models: { enabled: true, dailyBudgetUsd: '-1' } },
    fix: /decimal of USD/,
  },
  { what: 'a budget in another form', given: { source, models: { dailyBudgetUsd: '1e3' } }, fix: /decimal of USD/ },
];

/** Refused too, in the words of zod and of the API server. */
export const structuralRefusals: readonly Omit<Refusal, 'fix'>[] = [
  { what: 'no source', given: {} },
  { what: 'a port above 65535', given: withRun({ port: 65_536 }) },
  { what: 'port 0', given: withRun({ port: 0 }) },
  { what: 'a port that is no whole number', given: withRun({ port: 80.5 }) },
  { what: 'replicas below 0', given: withRun({ replicas: -1 }) },
  { what: 'more than 20 replicas', given: withRun({ replicas: 21 }) },
  { what: 'no previews at most', given: { source, previews: { limit: 0 } } },
  { what: 'more than 5 previews', given: { source, previews: { limit: 6 } } },
  { what: 'an unknown strategy', given: withBuild({ strategy: 'magic' }) },
  { what: 'an unknown field', given: withRun({ colour: 'red' }) },
  { what: 'one variable twice', given: withRun({ env: [variable, variable] }) },
  {
    what: 'nine volumes',
    given: withRun({ volumes: [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => ({ ...volume, name: `v${n}`, path: `/v${n}` })) }),
  },
  { what: 'an unknown type of service', given: withServices([{ name: 'db', type: 'oracle' }]) },
  {
    what: 'one service twice',
    given: withServices([
      { name: 'db', type: 'postgres' },
      { name: 'db', type: 'redis' },
    ]),
  },
  { what: 'a variable without a value', given: withRun({ env: [{ name: 'A' }] }) },
  { what: 'a number as a value', given: withRun({ env: [{ name: 'A', value: 1 }] }) },
];
