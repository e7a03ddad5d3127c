// What a pipeline builds for each component, and that texts name the component and its own fields.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { mergeManifest } from '../../../../controller/pipeline/app-manifest.ts';
import {
  listImages,
  nameComponent,
  rewriteFields,
  toPipelineComponents,
} from '../../../../controller/pipeline/components.ts';
import { createMemoryTree } from '../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../support/pipeline/sample.ts';

const file = `build: {env: [{name: MODE, value: app}, {name: CI, value: "1"}]}
components:
  - {name: web, path: web, build: {env: [{name: MODE, value: web}]}, dependsOn: [api]}
  - {name: api, path: api/, kind: worker, port: 8000, build: {dockerfile: docker/Dockerfile, target: run, args: [{name: A, value: b}]}}
  - {name: jobs, kind: worker, image: api, command: [celery]}
`;
const tree = createMemoryTree({ 'moorage.yaml': file });
const own = toPipelineComponents([{ name: 'one', kind: 'web', path: '.', command: ['run'] }]);

test('builds one image for each component that runs its own, in its folder and with its settings', () => {
  const { input, findings } = mergeManifest(sampleInput({ path: 'src' }), tree);
  assert.deepEqual(findings, []);
  const images = listImages({ ...input, tag: 'build-7', cacheBytes: 101 });
  assert.deepEqual(
    images.map(({ component, input: { path, port, tag, hasCommand, cacheBytes } }) => [
      ...[component?.name, path, port, tag, hasCommand, cacheBytes],
    ]),
    [
      ['web', 'src/web', undefined, 'build-7-web', false, 51],
      ['api', 'src/api', 8000, 'build-7-api', false, 51],
    ],
  );
  const [web, api] = images.map((image) => image.input.build);
  assert.deepEqual(web?.env, [
    { name: 'MODE', value: 'web' },
    { name: 'CI', value: '1' },
  ]);
  assert.deepEqual(
    [api?.dockerfile, api?.target, api?.args],
    ['docker/Dockerfile', 'run', [{ name: 'A', value: 'b' }]],
  );
});

test('an image needs no start command if everything that runs it has one', () => {
  const list = (command: readonly string[] | undefined): boolean[] =>
    listImages({
      ...sampleInput(),
      components: toPipelineComponents([
        { name: 'api', kind: 'web', path: '.', command: ['serve'] },
        {
          name: 'jobs',
          kind: 'worker',
          path: '.',
          image: 'api',
          ...(command === undefined ? {} : { command: [...command] }),
        },
      ]),
    }).map(({ input }) => input.hasCommand);
  assert.deepEqual([list(['work']), list(undefined)], [[true], [false]]);
});

test('prefers the components of the HostedApp, also if it says that there are none', () => {
  const named = (changes: Parameters<typeof sampleInput>[0]): string[] | undefined =>
    mergeManifest(sampleInput(changes), tree).input.components?.map(({ name }) => name);
  assert.deepEqual(named({}), ['web', 'api', 'jobs']);
  assert.deepEqual(named({ components: own }), ['one']);
  assert.equal(named({ pinned: ['components'] }), undefined);
  assert.equal(mergeManifest(sampleInput(), createMemoryTree({})).input.components, undefined);
});

test('builds each component with the address of the app, whether moorage.yaml or the HostedApp lists it', () => {
  const url = 'https://shop.example.org';
  const build = {
    env: [{ name: 'API_URL', value: '${{app.url}}/api' }],
    args: [{ name: 'HOST', value: '${{app.host}}' }],
  };
  const listed = toPipelineComponents([{ name: 'web', kind: 'web', path: 'web', build }]);
  const shared = {
    strategy: 'auto' as const,
    dockerfile: 'Dockerfile',
    args: [],
    env: [{ name: 'SITE', value: '${{app.url}}' }],
  };
  const ofHostedApp = sampleInput({ components: listed, build: shared });
  const file =
    'components: [{name: web, path: web, build: {env: [{name: API_URL, value: "${{app.url}}/api"}], args: [{name: HOST, value: "${{app.host}}"}]}}]';
  const ofFile = sampleInput({ build: shared });
  for (const [input, files] of [
    [ofHostedApp, {}],
    [ofFile, { 'moorage.yaml': file }],
  ] as const) {
    const [image] = listImages(mergeManifest({ ...input, url }, createMemoryTree(files)).input);
    assert.deepEqual(image?.input.build.env, [
      { name: 'API_URL', value: `${url}/api` },
      { name: 'SITE', value: url },
    ]);
    assert.deepEqual(image.input.build.args, [{ name: 'HOST', value: 'shop.example.org' }]);
  }
});

test('rejects components of a repository whose HostedApp describes one process', () => {
  for (const [changes, field] of [
    [{ port: 80 }, 'run.port'],
    [{ hasCommand: true }, 'run.command'],
    [{ strategy: 'node' as const }, 'build.strategy'],
    [{ dockerfile: 'a/Dockerfile' }, 'build.dockerfile'],
    [{ processFields: ['run.volumes'] }, 'run.volumes'],
  ] as const) {
    const [first] = mergeManifest(sampleInput({ ...changes } as object), tree).findings;
    assert.equal(first?.rule, 'components/one-process');
    assert.ok(first.message.endsWith(`describe one process: ${field}.`), first.message);
    assert.ok(first.fix.startsWith(`Remove ${field} from the HostedApp`), first.fix);
    assert.deepEqual(mergeManifest(sampleInput({ ...(changes as object), pinned: ['components'] }), tree).findings, []);
  }
});

test('names settings of one process that have no effect, since the HostedApp lists components', () => {
  const check = (text: string): string[] =>
    mergeManifest(sampleInput({ components: own }), createMemoryTree({ 'moorage.yaml': text, Procfile: 'web: serve' }))
      .findings.filter(({ rule }) => rule === 'components/one-process')
      .map(({ severity, message }) => `${severity}: ${message}`);
  assert.deepEqual(check('run: {port: 80, healthPath: /x, env: [{name: A, value: b}]}'), [
    'warning: The HostedApp lists components, so run.port, run.healthPath of this file have no effect.',
  ]);
  assert.deepEqual(check('run: {env: [{name: A, value: b}]}'), []);
});

test('refuses a task whose command calls another component, and warns of a variable or dependsOn', () => {
  const check = (task: string, run = ''): string[] => {
    const text = `${run}components:\n  - {name: web, path: web}\n  - {name: api, kind: worker, path: api, port: 8000}\n  - ${task}\n`;
    return mergeManifest(sampleInput(), createMemoryTree({ 'moorage.yaml': text }))
      .findings.filter(({ rule }) => rule === 'components/task-alone')
      .map(({ severity, message }) => `${severity}: ${message}`);
  };
  assert.deepEqual(check('{name: seed, kind: task, image: api, command: [sh, -c, "curl -f http://api:8000/seed"]}'), [
    'error: Component seed: its command calls api. A task runs in its own pod, before the others of its release start, and cannot reach them.',
  ]);
  const nightly = '{name: nightly, kind: cron, schedule: "@daily", image: api';
  assert.deepEqual(check(`${nightly}, env: [{name: API_URL, value: "http://api:8000/v1"}]}`), [
    'warning: Component nightly: its variable API_URL names api. A cron component runs in its own pod, also while the app sleeps, and cannot reach them.',
  ]);
  assert.equal(check(`${nightly}}`, 'run: {env: [{name: A, value: "redis://u:p@api:6379"}]}\n').length, 1);
  assert.deepEqual(check('{name: seed, kind: task, image: api, dependsOn: [api]}'), [
    'warning: Component seed: its dependsOn has no effect and names api. A task runs in its own pod, before the others of its release start, and cannot reach them.',
  ]);
  for (const value of ['http://api.example.org', 'https://example.org/api', 'api', 'http://apis:80', 'python -m api'])
    assert.deepEqual(check(`{name: seed, kind: task, image: api, command: ["${value}"]}`), [], value);
  assert.deepEqual(check('{name: jobs, kind: worker, image: api, command: [run, "http://api:8000"]}'), []);
});

test('refuses the address of a subdomain that no component has', () => {
  const check = (subdomain: string): string[] => {
    const text = `components:\n  - {name: web, path: web, build: {args: [{name: API, value: "\${{app.api.url}}/v1"}]}}\n  - {name: api, path: api, route: {subdomain: ${subdomain}}}\n`;
    return mergeManifest(sampleInput(), createMemoryTree({ 'moorage.yaml': text })).findings.map(
      ({ rule, file: at, message }) => `${rule} at ${at ?? ''}: ${message}`,
    );
  };
  assert.deepEqual(check('api'), []);
  assert.deepEqual(check('rest'), [
    'components/no-subdomain at moorage.yaml: A value has ${{app.api.url}}, and no component has the subdomain api.',
  ]);
});

test('does not split an app whose HostedApp has volumes by the files of other platforms', () => {
  const files = {
    'compose.yaml': 'services: {web: {build: ./web, ports: ["80:80"]}, api: {build: ./api, expose: [81]}}',
    'web/Dockerfile': 'FROM a',
    'api/Dockerfile': 'FROM a',
  };
  const list = (changes: object): string[] =>
    (mergeManifest(sampleInput(changes), createMemoryTree(files)).input.components ?? []).map(({ name }) => name);
  assert.deepEqual(list({}), ['web', 'api']);
  assert.deepEqual(list({ processFields: ['run.volumes'] }), []);
});

test('takes how an MCP server starts from its component, and serves none of a worker', () => {
  const yaml =
    'components: [{name: web, mcp: {transport: sse}}, {name: two, route: {path: /two}}, {name: jobs, kind: worker, path: jobs}]';
  const { input } = mergeManifest(sampleInput(), createMemoryTree({ 'moorage.yaml': yaml }));
  assert.deepEqual(
    listImages(input).map((image) => image.input.mcp),
    [{ transport: 'sse', command: [] }, { command: [] }, { transport: 'none', command: [] }],
  );
  const both = createMemoryTree({ 'moorage.yaml': `mcp: {transport: stdio}\n${yaml}` });
  assert.equal(mergeManifest(sampleInput(), both).settings, undefined);
});

test('names the fields of the component, not those of the app', () => {
  assert.equal(
    rewriteFields('Set run.command or build.target in moorage.yaml; put source.path there, not prebuild.args.', 'api'),
    'Set components[api].command or components[api].build.target in moorage.yaml; put components[api].path there, not prebuild.args.',
  );
  assert.equal(
    rewriteFields('Add this to moorage.yaml: run: {volumes: [{name: data, path: /data}]}.', 'api'),
    'Add this to moorage.yaml: volumes: [{name: data, path: /data}] in components[api].',
  );
  assert.equal(rewriteFields(rewriteFields('run.port', 'api'), 'web'), 'components[api].port');
  assert.equal(rewriteFields('run.command', undefined), 'run.command');
  const finding = { rule: 'r', severity: 'error' as const, message: 'No start.', fix: 'Set run.command.' };
  assert.deepEqual(nameComponent(finding, 'api'), {
    ...finding,
    message: 'Component api: No start.',
    fix: 'Set components[api].command.',
  });
  assert.equal(nameComponent(finding, undefined), finding);
});
