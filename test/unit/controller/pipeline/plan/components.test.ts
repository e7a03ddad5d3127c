// Each component is planned in its own folder, and what the app as a whole lacks is said with the name of the component.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../controller/pipeline/contract.ts';
import { isPortMovable } from '../../../../../controller/pipeline/plan/components.ts';
import {
  type AppPlan,
  type LocatedApp,
  locateApp,
  offerTools,
  planApp,
} from '../../../../../controller/pipeline/plan/repository.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';

const flask = 'from flask import Flask\napp = Flask(__name__)\n';

type Files = Readonly<Record<string, string>>;

const express = {
  'web/package.json': '{"scripts":{"start":"node server.js"},"dependencies":{"express":"5.0.0"}}',
  'web/server.js': 'require("express")().listen(process.env.PORT)\n',
};
const fastapi = {
  'api/requirements.txt': 'fastapi\nuvicorn\n',
  'api/main.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
};

function plan(components: string, files: Files): { app: LocatedApp; planned: AppPlan } {
  const tree = createMemoryTree({ 'moorage.yaml': `components:\n${components}\n`, ...files });
  const app = locateApp(sampleInput(), tree);
  assert.deepEqual(
    app.platform.filter(({ severity }) => severity === 'error'),
    [],
  );
  return { app, planned: planApp(tree, app) };
}

function refuse(components: string, files: Files): readonly Finding[] {
  try {
    plan(components, files);
  } catch (error) {
    if (error instanceof Rejected) return error.findings;
    throw error;
  }
  assert.fail('it is planned');
}

const both = '  - {name: web, path: web, dependsOn: [api]}\n  - {name: api, path: api, kind: worker, port: 8000}';

test('plans each component in its folder, and describes all of them in the plan of the app', () => {
  const { planned } = plan(`${both}\n  - {name: jobs, kind: worker, image: api, command: [celery, worker]}`, {
    ...express,
    ...fastapi,
  });
  assert.deepEqual(
    planned.images.map(({ component, recipe }) => [component?.name, recipe.plan.strategy, recipe.plan.port]),
    [
      ['web', 'node', 8080],
      ['api', 'python', 8000],
    ],
  );
  assert.deepEqual(
    [planned.plan.strategy, planned.plan.port, planned.plan.reason],
    ['node', 8080, 'web: Node, Express, in web. api: Python, FastAPI, in api, worker. jobs: image of api, worker.'],
  );
  assert.equal(planned.dockerfile, undefined);
});

test('shows the least certainty of any component, and its other reading with its own fields', () => {
  const files = { ...express, 'api/requirements.txt': 'flask\n', 'api/one.py': flask, 'api/two.py': flask };
  const { planned } = plan(both, files);
  const api = planned.images.find(({ component }) => component?.name === 'api')?.recipe.plan;
  assert.notEqual(api?.certainty, 'certain');
  assert.equal(planned.plan.certainty, api?.certainty);
  if (api?.otherwise !== undefined)
    assert.match(planned.plan.otherwise ?? '', /^Component api: .*components\[api\]\.command/);
});

test('moves planned components that share a port, and plans them again for the new one', () => {
  const web = both.replace('kind: worker, port: 8000', 'route: {path: /api}');
  const { planned } = plan(web, { ...express, ...fastapi });
  const [main, api] = planned.images.map(({ recipe }) => recipe);
  assert.deepEqual([main?.plan.port, api?.plan.port], [8080, 8081]);
  assert.match(api?.dockerfile ?? '', /PORT=8081\b.*\n(?:.*\n)*EXPOSE 8081/);
  assert.doesNotMatch(api?.dockerfile ?? '', /8080/);
});

test('keeps planned components clear of the ports that a Dockerfile exposes, or may listen on', () => {
  const web = both.replace('kind: worker, port: 8000', 'route: {path: /api}');
  const port = (dockerfile: string, list = web): number | undefined =>
    plan(list, { ...express, 'api/Dockerfile': dockerfile }).planned.images[0]?.recipe.plan.port;
  assert.equal(port('FROM a\nEXPOSE 8080 8081/tcp\nCMD ["x"]\n'), 8082);
  assert.equal(port('FROM a\nEXPOSE 3000\nCMD ["x"]\n'), 8080);
  assert.equal(port('FROM a\nCMD ["x"]\n'), 8081);
  assert.equal(port('FROM a\nCMD ["x"]\n', both.replace(', port: 8000', '')), 8080);
});

const stdio = {
  'tools/requirements.txt': 'mcp\n',
  'tools/server.py':
    'from mcp.server.fastmcp import FastMCP\nmcp = FastMCP("notes")\nif __name__ == "__main__":\n    mcp.run()\n',
};

test('bridges a component that is an MCP server on a port that no other component has', () => {
  const list = (route: string): string => `  - {name: web, path: web}\n  - {name: tools, path: tools, route: ${route}}`;
  const { app, planned } = plan(list('{path: /mcp}'), { ...express, ...stdio });
  const [web, tools] = planned.images.map(({ recipe }) => recipe);
  assert.deepEqual([web?.plan.mcp, tools?.plan.mcp?.transport, tools?.plan.port], [undefined, 'stdio', 8081]);
  assert.match(tools?.dockerfile ?? '', /ENV PORT=8081\n(?:ENTRYPOINT .*mcp-bridge)/);
  assert.equal(planned.plan.mcp?.file, 'server.py');
  assert.equal(offerTools(app.settings, planned)?.agents?.enabled, true);
  assert.equal(offerTools(app.settings, planned)?.agents?.mcp, undefined);
  const offer = (route: string): string | undefined => {
    const other = plan(list(route), { ...express, ...stdio });
    return offerTools(other.app.settings, other.planned)?.agents?.mcp;
  };
  assert.equal(offer('{path: /tools, stripPath: true}'), '/tools/mcp');
  // Requests for /mcp go to the page, so agents would find nothing there.
  assert.deepEqual([offer('{path: /tools}'), offer('{subdomain: tools}')], [undefined, undefined]);
});

test('keeps the bridge of a component whose port has moved', () => {
  const local = stdio['tools/server.py'].replace('mcp.run()', 'mcp.run(transport="streamable-http")');
  const files = { ...express, ...stdio, 'tools/server.py': local };
  const { planned } = plan('  - {name: web, path: web}\n  - {name: tools, path: tools, route: {path: /mcp}}', files);
  const tools = planned.images[1]?.recipe;
  assert.deepEqual([tools?.plan.mcp?.bridged, tools?.plan.port], [true, 8081]);
});

test('starts a component as an MCP server as its own fields say, and no worker as one', () => {
  const { planned } = plan(
    '  - {name: web, path: web}\n  - {name: tools, path: tools, route: {path: /mcp}, mcp: {command: [python, server.py, --all]}}',
    { ...express, ...stdio },
  );
  assert.match(planned.images[1]?.recipe.dockerfile ?? '', /python server\.py --all/);
  const worker = plan('  - {name: web, path: web}\n  - {name: tools, path: tools, kind: worker}', {
    ...express,
    ...stdio,
  }).planned;
  assert.equal(worker.images[1]?.recipe.plan.mcp, undefined);
  assert.equal(worker.plan.mcp, undefined);
});

test('plans a package of a workspace that is an MCP server from the root', () => {
  const files = {
    'package.json': '{"name":"all","private":true,"workspaces":["packages/*"]}',
    'package-lock.json': '{}',
    'packages/web/package.json':
      '{"name":"web","scripts":{"start":"node server.js"},"dependencies":{"express":"5.0.0"}}',
    'packages/web/server.js': 'require("express")().listen(process.env.PORT)\n',
    'packages/tools/package.json':
      '{"name":"tools","bin":{"tools":"index.js"},"type":"module","dependencies":{"@modelcontextprotocol/sdk":"1.0.0"}}',
    'packages/tools/index.js':
      'import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";\nimport { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";\nconst server = new McpServer({ name: "tools", version: "1.0.0" });\nawait server.connect(new StdioServerTransport());\n',
  };
  const { planned } = plan(
    '  - {name: web, path: packages/web}\n  - {name: tools, path: packages/tools, route: {path: /mcp}}',
    files,
  );
  const [web, tools] = planned.images.map(({ recipe }) => recipe);
  assert.equal(web?.plan.mcp, undefined);
  assert.deepEqual([tools?.plan.mcp?.transport, tools?.plan.mcp?.file], ['stdio', 'packages/tools/index.js']);
  assert.match(tools?.dockerfile ?? '', /mcp-bridge/);
});

test('refuses two components whose code has the same literal port', () => {
  const literal = { ...express, 'web/server.js': 'require("express")().listen(3000)\n' };
  const files = Object.fromEntries(Object.entries(literal).map(([path, text]) => [path.replace('web/', 'api/'), text]));
  const [first] = refuse(both.replace('kind: worker, port: 8000', 'route: {path: /api}'), { ...literal, ...files });
  assert.equal(first?.rule, 'components/port');
  assert.match(first.message, /web and api both listen on port 3000/);
});

test('refuses by name what has no start command, all of them at once', () => {
  const found = refuse(
    [
      '  - {name: web, path: web}',
      '  - {name: api, path: api, kind: worker}',
      '  - {name: twin, kind: worker, image: web}',
      '  - {name: once, path: once, kind: task}',
      '  - {name: shell, path: shell, kind: worker}',
    ].join('\n'),
    {
      ...express,
      'api/requirements.txt': 'requests\n',
      'api/lib.py': 'x = 1\n',
      'once/requirements.txt': 'flask\n',
      'once/app.py': flask,
      'shell/Dockerfile': 'FROM python:3.13\nCOPY . .\n',
    },
  );
  assert.deepEqual(
    found.map(({ rule, message }) => `${rule} ${/^Component (\w+): /.exec(message)?.[1] ?? message}`),
    ['components/no-command twin', 'plan/no-start api', 'components/no-command once', 'components/no-command shell'],
  );
  assert.match(found[0]?.message ?? '', /image of web with the same command as web/);
  for (const { message, fix } of found)
    assert.match(fix, new RegExp(`components\\[${/^Component (\w+)/.exec(message)?.[1] ?? ''}\\]\\.command`));
});

test('names the component and its folder if nothing there can be built', () => {
  const [first] = refuse(both, { ...express, 'api/notes.txt': '', 'api/src/go.mod': 'module a\n' });
  assert.equal(first?.rule, 'plan/unknown');
  assert.match(first.message, /^Component api: Nothing .* of folder api\.$/);
  assert.match(first.fix, /something to build in api\/src: put components\[api\]\.path with that folder/);
});

test('gives a planned component a volume for its data, by a name of its own', () => {
  const flaskWith = (line: string): string => `import sqlite3\n${flask}${line}\n`;
  const files = (first: string, second: string): Files => ({
    'web/requirements.txt': 'flask\n',
    'web/app.py': flaskWith(first),
    'api/requirements.txt': 'flask\n',
    'api/app.py': flaskWith(second),
  });
  const uploads = "app.config['UPLOAD_FOLDER'] = 'uploads'";
  const { app } = plan(both, files(uploads, uploads));
  assert.deepEqual(
    app.settings?.components?.map(({ name, volumes = [] }) => [
      name,
      ...volumes.map((each) => `${each.name} ${each.path}`),
    ]),
    [
      ['web', 'app-uploads /app/uploads'],
      ['api', 'api-app-uploads /app/uploads'],
    ],
  );
  const crowded = plan(`${both}\n  - {name: more, path: more, kind: worker, port: 9000}`, {
    ...files(uploads, uploads),
    'more/requirements.txt': 'flask\n',
    'more/app.py': flaskWith(uploads),
  }).app;
  const [lost] = crowded.platform.filter(({ rule }) => rule === 'data/not-lasting');
  assert.equal(lost?.file, 'more/app.py');
  assert.match(`${lost.message} ${lost.fix}`, /^Component more: .* in components\[more\]/);
});

test('knows whether $PORT alone decides where a planned app listens', () => {
  const recipe = (dockerfile: string): Parameters<typeof isPortMovable>[0] => ({
    plan: { strategy: 'rust', reason: '', port: 8080 },
    dockerfile,
    findings: [],
  });
  assert.ok(isPortMovable(recipe('# on 8080\nENV PORT=8080 HOST=0.0.0.0\nEXPOSE 8080\nCMD ["a"]\n')));
  assert.ok(!isPortMovable(recipe('ENV PORT=8080 ROCKET_PORT=8080\nEXPOSE 8080\n')));
  assert.ok(!isPortMovable({ ...recipe('ENV PORT=8080\n'), hasFixedPort: true }));
});
