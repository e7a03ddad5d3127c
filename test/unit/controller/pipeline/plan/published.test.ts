// Published packages: what npx or uvx would start is started, from the package as it is published.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Rejected } from '../../../../../controller/pipeline/contract.ts';
import { locateApp, planApp } from '../../../../../controller/pipeline/plan/repository.ts';
import type { Recipe } from '../../../../../controller/pipeline/plan/recipe.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import type { PackageRegistry } from '../../../../../lib/repository.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';
import { type Files, json } from './plan.cases.ts';

const plan = (registry: PackageRegistry, files: Files, changes: Parameters<typeof sampleInput>[0] = {}): Recipe => {
  const tree = createMemoryTree(files, { registry, date: new Date('2020-02-02') });
  return planApp(tree, locateApp(sampleInput(changes), tree));
};
const refuse = (registry: PackageRegistry, files: Files): Rejected['findings'][number] => {
  try {
    plan(registry, files);
  } catch (error) {
    assert.ok(error instanceof Rejected, String(error));
    return error.findings[0];
  }
  return assert.fail('it is planned');
};

const stdio =
  '#!/usr/bin/env node\nimport { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";\nawait server.connect(new StdioServerTransport());\n';
const manifest = (fields: Record<string, unknown> = {}): string =>
  json({
    name: '@acme/mcp-weather',
    version: '1.2.0',
    bin: { 'mcp-weather': './dist/index.js' },
    scripts: { build: 'tsc', prepare: 'npm run build', start: 'node dist/http.js --transport http' },
    dependencies: { '@modelcontextprotocol/sdk': '^1.20.0', express: '^5.0.0' },
    devDependencies: { puppeteer: '24.0.0', '@acme/config': 'workspace:*' },
    ...fields,
  });

describe('npm', () => {
  test('starts a package over stdio if its README has the settings of a client for it, whatever else its code names', () => {
    const files = (readme: string): Files => ({
      'package.json': manifest({ dependencies: { fastmcp: '^3.0.0' } }),
      'README.md': readme,
      'dist/index.js':
        'import { FastMCP } from "fastmcp";\nconst server = new FastMCP({});\nconst args = process.env.HTTP ? { transportType: "httpStream" } : { transportType: "stdio" };\nif (process.env.HTTP) await server.start({ transportType: "httpStream" });\nelse await server.start(args);\n',
    });
    const client = (rest: string): string => `{"command": "npx", "args": ["-y", "@acme/mcp-weather"${rest}]}`;
    const transports = ['', client(''), client(', "--transport", "http"')].map(
      (readme) => plan('npm', files(readme)).plan.mcp?.transport,
    );
    assert.deepEqual(transports, ['streamable-http', 'stdio', 'streamable-http']);
  });

  test('installs production packages, runs no script of a build, and starts the bin instead of the start script', () => {
    const {
      plan: found,
      dockerfile = '',
      ignore,
    } = plan('npm', {
      'package.json': manifest(),
      'dist/index.js': stdio,
      'dist/http.js': 'import express from "express";\nexpress().listen(3000);\n',
      // None of these is read where npm installs a package for its users.
      'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
      Dockerfile: 'FROM node:24\nCOPY src ./src\nRUN npm run build\nCMD ["node", "dist/index.js"]\n',
      'docker-compose.yml': 'services:\n  web:\n    build: .\n  db:\n    image: postgres:17\n',
      'examples/site/index.html': '<p>Example</p>',
    });
    assert.equal(found.strategy, 'node');
    assert.equal(found.mcp?.command, 'node dist/index.js');
    assert.equal(found.mcp.transport, 'stdio');
    assert.match(found.reason, /It is the npm package @acme\/mcp-weather 1\.2\.0, as published\./);
    const installs = dockerfile.split('\n').filter((line) => line.startsWith('RUN '));
    assert.match(
      installs[0] ?? '',
      /npm pkg delete devDependencies overrides workspaces .*scripts\.prepare .*&& npm install --omit=dev \|\| /,
    );
    assert.doesNotMatch(dockerfile, /run build|prune|pnpm|chromium/);
    assert.match(dockerfile, /\nCMD \["sh","-c","exec node dist\/index\.js"\]/);
    assert.deepEqual(ignore, []);
  });

  test('starts the bin with the name of the package among several, as npx does', () => {
    const bin = { setup: 'dist/setup.js', 'mcp-weather': 'dist/index.js' };
    const files = { 'package.json': manifest({ bin }), 'dist/index.js': stdio, 'dist/setup.js': stdio };
    assert.equal(plan('npm', files).plan.mcp?.command, 'node dist/index.js');
  });

  test('starts the only server if no bin has the name of the package', () => {
    const bin = { 'weather-setup': 'dist/setup.js', weather: 'dist/index.js' };
    const files = { 'package.json': manifest({ bin }), 'dist/index.js': stdio, 'dist/setup.js': 'install();\n' };
    assert.equal(plan('npm', files).plan.mcp?.command, 'node dist/index.js');
  });

  test('refuses several bins that are as likely, with what decides', () => {
    const bin = { one: 'dist/one.js', two: 'dist/two.js' };
    const servers = refuse('npm', { 'package.json': manifest({ bin }), 'dist/one.js': stdio, 'dist/two.js': stdio });
    assert.equal(servers.rule, 'plan/several-servers');
    assert.match(servers.message, /^The package has several MCP servers.*one \(stdio\), two \(stdio\)/);
    assert.match(servers.fix, /mcp: \{ command: \[node, dist\/one\.js\] \}/);
    const tools = refuse('npm', { 'package.json': json({ name: 'tools', bin }), 'dist/one.js': '', 'dist/two.js': '' });
    assert.equal(tools.rule, 'plan/no-start');
    assert.match(tools.message, /npm package tools installs several programs.*npx would start none: one, two\./);
    assert.match(refuse('npm', { 'package.json': json({ name: 'library' }) }).message, /installs no program/);
  });

  test('takes a bundle for a server over stdio by the names in it, and by those of the package without any', () => {
    const bundle = { 'package.json': manifest(), 'dist/index.js': 'var a=class StdioServerTransport{};main(a);\n' };
    const shown = plan('npm', bundle).plan;
    assert.deepEqual([shown.mcp?.transport, shown.certainty], ['stdio', 'likely']);
    assert.match(shown.reason, /starts it over stdio \(dist\/index\.js names it\)/);
    const silent = plan('npm', { 'package.json': manifest(), 'dist/index.js': 'main();\n' }).plan;
    assert.deepEqual([silent.mcp?.transport, silent.certainty], ['stdio', 'guessed']);
    const app = { name: 'notes', bin: 'cli.js', dependencies: { express: '5' } };
    const other = plan('npm', { 'package.json': json(app), 'cli.js': '#!/usr/bin/env -S node --no-warnings\n' });
    assert.equal(other.plan.mcp, undefined);
    assert.match(other.dockerfile ?? '', /"exec node --no-warnings cli\.js"/);
  });

  test('adds the option with which the README starts a package over stdio', () => {
    const start = (readme: string): string | undefined =>
      plan('npm', { 'package.json': manifest(), 'dist/index.js': 'main();\n', 'README.md': readme }).plan.mcp?.command;
    const client =
      '```json\n{ "command": "npx", "args": ["-y", "@acme/mcp-weather@latest",\n  "--key=KEY",\n  "--stdio"] }\n```\n';
    assert.equal(start(client), 'node dist/index.js --stdio');
    assert.equal(start('`npx @acme/mcp-weather --stdio`\n'), 'node dist/index.js --stdio');
    assert.equal(
      start('@acme/mcp-weather speaks stdio. `npx @acme/mcp-weather` starts it over stdio.\n'),
      'node dist/index.js',
    );
  });

  test('starts a bin for Bun with Bun', () => {
    const files = { 'package.json': manifest({ bin: 'index.ts' }), 'index.ts': stdio.replace('env node', 'env bun') };
    const { plan: found, dockerfile = '' } = plan('npm', files);
    assert.equal(found.mcp?.command, 'bun index.ts');
    assert.match(dockerfile.split('\n\n').at(-1) ?? '', /npm install --global --force bun@/);
  });

  test('reads the variables of server.json and the arguments of moorage.yaml', () => {
    const variables = [{ name: 'WEATHER_KEY', isSecret: true, isRequired: true }];
    const files = {
      'package.json': manifest(),
      'dist/index.js': stdio,
      'server.json': json({
        packages: [{ identifier: '@acme/mcp-weather', transport: { type: 'stdio' }, environmentVariables: variables }],
      }),
    };
    const [variable] = plan('npm', files).plan.mcp?.environment ?? [];
    assert.deepEqual(variable, { name: 'WEATHER_KEY', secret: true, required: true });
    const command = ['node', 'dist/index.js', '/data'];
    const { plan: found } = plan('npm', { ...files, 'moorage.yaml': `mcp:\n  command: ${JSON.stringify(command)}\n` });
    assert.equal(found.mcp?.command, 'node dist/index.js /data');
  });
});

const server = 'from mcp.server.fastmcp import FastMCP\n\nmcp = FastMCP("x")\n\ndef main():\n    mcp.run()\n';
const info = (...lines: readonly string[]): string =>
  [...['Metadata-Version: 2.4', 'Name: weather_mcp', 'Version: 1.2.0', ...lines], '', 'Description', ''].join('\n');
const pyproject = (scripts: string, build = 'hatchling'): string =>
  `[build-system]\nrequires = ["${build}"]\nbuild-backend = "${build}.build"\n[project]\nname = "weather-mcp"\ndynamic = ["version"]\ndependencies = ["mcp"]\n[project.scripts]\n${scripts}\n`;

describe('PyPI', () => {
  test('installs the source distribution, starts its command, and leaves out the sources', () => {
    const { plan: found, dockerfile = '' } = plan('pypi', {
      'PKG-INFO': info('Requires-Dist: mcp>=1.2', 'Requires-Dist: torch; extra == "gpu"'),
      'pyproject.toml': pyproject(
        'weather-mcp = "weather_mcp.server:main"\nother = "weather_mcp.setup:main"',
        'hatch-vcs',
      ),
      'src/weather_mcp/__init__.py': '',
      'src/weather_mcp/server.py': server,
      'uv.lock': 'version = 1\n',
      'requirements.txt': 'unpublished==1.0\n',
      Dockerfile: 'FROM python:3.12\nCMD ["python", "other.py"]\n',
      'package.json': json({ scripts: { build: 'vite build' } }),
    });
    assert.equal(found.strategy, 'python');
    assert.equal(found.mcp?.command, 'weather-mcp');
    assert.match(found.reason, /It is the PyPI package weather_mcp 1\.2\.0, as published\./);
    // The day of the files is that of the build tool.
    assert.match(dockerfile, /^FROM python:3\.11/m);
    const install = /^RUN .* bash \/opt\/moorage\/uv\/install .*$/m.exec(dockerfile)?.[0] ?? '';
    assert.match(
      install,
      /SETUPTOOLS_SCM_PRETEND_VERSION_FOR_WEATHER_MCP=1\.2\.0 bash \/opt\/moorage\/uv\/install pyproject\.toml \.$/,
    );
    assert.doesNotMatch(dockerfile, /uv sync|requirements\.txt|frontend|PYTHONPATH|--no-deps|COPY --link --chown/);
  });

  test('adds the command for stdio of a program that argparse gives one for each transport', () => {
    const parser =
      'import argparse\nparser = argparse.ArgumentParser()\nparts = parser.add_subparsers(required=True)\nparts.add_parser("stdio")\nparts.add_parser("streamable-http")\n';
    const files = {
      'PKG-INFO': info('Requires-Dist: mcp'),
      'pyproject.toml': pyproject('weather-mcp = "weather_mcp.server:main"'),
      'src/weather_mcp/server.py': `${parser}${server}`,
    };
    assert.equal(plan('pypi', files).plan.mcp?.command, 'weather-mcp stdio');
  });

  test('finds the commands of setup.py in what setuptools adds', () => {
    const files = {
      'PKG-INFO': info('Requires-Dist: fastmcp'),
      'setup.py': 'from setuptools import setup\nsetup(name="weather_mcp")\n',
      'weather_mcp.egg-info/entry_points.txt': '[console_scripts]\nweather = weather_mcp.server:main\n',
      'weather_mcp/server.py': server,
    };
    const { plan: found, dockerfile = '' } = plan('pypi', files);
    assert.equal(found.mcp?.command, 'weather');
    assert.match(dockerfile, /bash \/opt\/moorage\/uv\/install setup\.py \.$/m);
  });

  test('refuses several commands without one of its own name, and one that answers nothing', () => {
    const files = { 'PKG-INFO': info(), 'weather_mcp/tools.py': 'def one():\n    print(1)\n' };
    const several = refuse('pypi', {
      ...files,
      'pyproject.toml': pyproject('one = "weather_mcp.tools:one"\ntwo = "weather_mcp.tools:two"'),
    });
    assert.match(several.message, /uvx would start none: one, two\./);
    const plain = pyproject('one = "weather_mcp.tools:one"').replaceAll('weather-mcp', 'tool').replace('"mcp"', '');
    const silent = refuse('pypi', { 'PKG-INFO': 'Name: tool\nVersion: 1\n', 'pyproject.toml': plain });
    assert.equal(silent.rule, 'plan/no-server');
  });
});
