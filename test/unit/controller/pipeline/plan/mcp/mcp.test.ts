// Which repositories are MCP servers, what their start speaks, and what the image gets for that.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { plan as planSchema, type Plan } from '../../../../../../crds/hosted-app.ts';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import type { Recipe } from '../../../../../../controller/pipeline/plan/recipe.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import { type Files, type Changes, fastapi, json } from '../plan.cases.ts';

const plan = (files: Files, changes: Changes = {}): Recipe => makePlan(createMemoryTree(files), sampleInput(changes));

const requirements = 'mcp[cli]\n';
const fastmcp = 'from mcp.server.fastmcp import FastMCP\n\nmcp = FastMCP("sample")\n';
const runs = (call: string): string => `${fastmcp}\nif __name__ == "__main__":\n    ${call}\n`;
const sdk = { '@modelcontextprotocol/sdk': '^1.20.0' };
const packageJson = (fields: Record<string, unknown> = {}): string =>
  json({
    name: '@acme/sample',
    bin: { sample: 'dist/index.js' },
    scripts: { build: 'tsc' },
    dependencies: sdk,
    ...fields,
  });
const stdio =
  'import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";\nawait server.connect(new StdioServerTransport());\n';
const streamable =
  'import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";\n';
const goMod = (library: string): string => `module example.com/sample\n\ngo 1.24\n\nrequire ${library}\n`;
const cargo = '[package]\nname = "sample"\nversion = "0.1.0"\n\n[dependencies]\nrmcp = { version = "0.8" }\n';

interface Case {
  readonly name: string;
  readonly files: Files;
  readonly changes?: Changes;
  readonly mcp: Partial<NonNullable<Plan['mcp']>>;
  readonly certainty?: Plan['certainty'];
  readonly reason?: RegExp;
  readonly lines?: readonly RegExp[];
  readonly port?: number;
}

const overStdio = { transport: 'stdio', bridged: true, path: '/mcp' } as const;

const cases: readonly Case[] = [
  {
    name: 'FastMCP in a file',
    files: { 'requirements.txt': requirements, 'server.py': runs('mcp.run()') },
    mcp: { ...overStdio, command: 'python server.py' },
    certainty: 'likely',
    reason:
      /^This is an MCP server: server\.py starts it over stdio \(mcp\.run\(\)\)\. A bridge serves it at \/mcp, with a process for each session\./,
    lines: [
      /^ENTRYPOINT \["\/opt\/moorage\/mcp-bridge","--transport","stdio","--"\]\nCMD \["sh","-c","exec python server\.py"\]$/m,
    ],
    port: 8080,
  },
  {
    name: 'a server that another module makes',
    files: {
      'requirements.txt': requirements,
      'main.py':
        'from app import server as app_server\n\nif __name__ == "__main__":\n    app_server.run(transport="stdio")\n',
      'app.py': 'from mcp.server.fastmcp import FastMCP\n\nserver = FastMCP("x")\n',
    },
    mcp: { ...overStdio, command: 'python main.py' },
  },
  {
    name: 'a command of the project with an option for the transport',
    files: {
      'pyproject.toml':
        '[project]\nname = "weather"\nversion = "1"\ndependencies = ["fastmcp"]\n[project.scripts]\nweather = "weather.server:main"\n[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n',
      'src/weather/__init__.py': '',
      'src/weather/server.py':
        'import argparse\nfrom fastmcp import FastMCP\nmcp = FastMCP("x")\ndef main():\n    parser = argparse.ArgumentParser()\n    parser.add_argument("--transport", choices=["stdio", "sse", "streamable-http"], default="stdio")\n    args = parser.parse_args()\n    mcp.run(transport=args.transport)\n',
    },
    mcp: { ...overStdio, command: 'weather' },
    certainty: 'likely',
    reason: /starts it over stdio by default/,
    lines: [/pip install --python \/opt\/venv\/bin\/python --no-deps \./],
  },
  {
    name: 'what a variable chooses over stdio, if moorage.yaml asks for HTTP',
    files: {
      'requirements.txt': requirements,
      'server.py': `import os\n${runs('mcp.run(transport=os.getenv("MCP_TRANSPORT", "stdio"))')}MODES = ("stdio", "streamable-http")\nif os.getenv("MCP_TRANSPORT") == "streamable-http":\n    mcp.run(transport="streamable-http")\n`,
    },
    changes: { mcp: { transport: 'streamable-http', command: [] } },
    mcp: { transport: 'streamable-http', command: 'MCP_TRANSPORT=streamable-http exec python server.py' },
    certainty: 'certain',
    reason: /moorage\.yaml asks for streamable-http/,
  },
  {
    name: 'streamable HTTP on every address as it is',
    files: {
      'requirements.txt': requirements,
      'server.py': runs('mcp.run(transport="http", host="0.0.0.0", port=9000)'),
    },
    mcp: { transport: 'streamable-http', bridged: false, path: '/mcp' },
    lines: [/^EXPOSE 9000$/m],
    port: 9000,
  },
  {
    name: 'streamable HTTP that only the container reaches behind the bridge',
    files: { 'requirements.txt': requirements, 'server.py': runs('mcp.run(transport="streamable-http")') },
    mcp: { transport: 'streamable-http', bridged: true },
    lines: [/"--transport","http","--upstream-port","8000","--upstream-path","\/mcp","--"\]/],
  },
  {
    name: 'SSE behind the bridge',
    files: {
      'requirements.txt': requirements,
      'server.py':
        'from mcp.server.fastmcp import FastMCP\nmcp = FastMCP("x", port=8123)\nif __name__ == "__main__":\n    mcp.run(transport="sse")\n',
    },
    mcp: { transport: 'sse', bridged: true, path: '/sse' },
    lines: [/"--transport","sse","--upstream-port","8123","--upstream-path","\/sse","--"\]/],
    port: 8080,
  },
  {
    name: 'a subclass that a command of the project runs directly',
    files: {
      'pyproject.toml':
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["fastmcp"]\n[project.scripts]\nx = "x.server:own.run"\n',
      'x/server.py': 'from fastmcp import FastMCP\nclass Own(FastMCP[Context]):\n    pass\nown = Own("x")\n',
    },
    mcp: { ...overStdio, command: 'x' },
  },
  {
    name: 'a Python program with a command for each transport',
    files: {
      'pyproject.toml':
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["mcp"]\n[project.scripts]\nx = "x.cli:app"\n',
      'x/server.py': `${fastmcp}def run_http():\n    mcp.run(transport="streamable-http")\n\ndef run_stdio():\n    mcp.run(transport="stdio")\n`,
      'x/cli.py':
        'import typer\nfrom x.server import run_http, run_stdio\napp = typer.Typer()\n@app.command()\ndef streamable_http():\n    run_http()\n@app.command()\ndef stdio():\n    run_stdio()\n',
    },
    mcp: { ...overStdio, command: 'x stdio' },
    certainty: 'likely',
  },
  {
    name: 'the only server of a workspace, with the transport of its start script',
    files: {
      'package.json': json({ private: true, workspaces: ['packages/*'] }),
      'packages/core/package.json': json({ name: 'core' }),
      'packages/mcp/package.json': packageJson({
        scripts: { build: 'tsc', start: 'node dist/index.js --transport http' },
      }),
      'packages/mcp/src/index.ts': `${stdio}${streamable}new StreamableHTTPServerTransport({});\n`,
    },
    mcp: { transport: 'streamable-http', bridged: false, file: 'packages/mcp/src/index.ts' },
    lines: [/^WORKDIR \/app\/packages\/mcp$/m, /exec node dist\/index\.js --transport http/],
  },
  {
    name: 'a bin that a bundler names, by the only source with a transport',
    files: {
      'package.json': packageJson({ bin: { sample: 'bin/cli.mjs' } }),
      'scripts/start-server.ts': `let transport = 'stdio';\n${streamable}${stdio}new StreamableHTTPServerTransport({});\n`,
    },
    mcp: { ...overStdio, command: 'node bin/cli.mjs' },
  },
  {
    name: 'another file than the bin that a Dockerfile starts',
    files: {
      'package.json': packageJson(),
      'src/index.ts': stdio,
      'src/web.ts': `${streamable}new StreamableHTTPServerTransport({});\n`,
      Dockerfile: 'FROM node:22\nEXPOSE 8000\nCMD ["node", "dist/web.js"]\n',
    },
    mcp: { transport: 'streamable-http', bridged: false, file: 'src/web.ts' },
  },
  {
    name: 'the transport that the words of a Dockerfile ask for',
    files: {
      'requirements.txt': requirements,
      'server.py': runs('mcp.run(transport=os.getenv("TRANSPORT", "stdio"))'),
      Dockerfile: 'FROM python:3.12-alpine\nENV TRANSPORT=sse\nEXPOSE 9000\nCMD python server.py\n',
    },
    mcp: { transport: 'sse', bridged: true },
    lines: [/"--upstream-port","9000","--upstream-path","\/sse","--"\]\nCMD \["\/bin\/sh","-c","python server\.py"\]/],
  },
  {
    name: 'a low-level server',
    files: {
      'requirements.txt': requirements,
      'server.py':
        'import asyncio\nfrom mcp.server.stdio import stdio_server\nasync def main():\n    async with stdio_server() as streams:\n        await server.run(*streams)\nif __name__ == "__main__":\n    asyncio.run(main())\n',
    },
    mcp: { ...overStdio, command: 'python server.py' },
    reason: /\(stdio_server\(\)\)/,
  },
  {
    name: 'a server of FastMCP that nothing runs',
    files: { 'requirements.txt': 'fastmcp\n', 'server.py': 'from fastmcp import FastMCP\nmcp = FastMCP("x")\n' },
    mcp: { ...overStdio, command: 'fastmcp run server.py:mcp --transport stdio' },
  },
  {
    name: 'what a bin of TypeScript starts, with the variables of server.json',
    files: {
      'package.json': packageJson(),
      'src/index.ts': stdio,
      'server.json': json({
        $schema: 'https://static.modelcontextprotocol.io/schemas/2025-09-29/server.schema.json',
        packages: [
          {
            identifier: '@acme/sample',
            transport: { type: 'stdio' },
            environmentVariables: [
              { name: 'REGION', description: 'Where.' },
              { name: 'ACME_TOKEN', description: 'Token of Acme.', isSecret: true, isRequired: true },
              { name: 'NODE_OPTIONS' },
            ],
          },
        ],
      }),
    },
    mcp: {
      ...overStdio,
      command: 'node dist/index.js',
      environment: [
        { name: 'ACME_TOKEN', description: 'Token of Acme.', secret: true, required: true },
        { name: 'REGION', description: 'Where.', secret: false, required: false },
        { name: 'NODE_OPTIONS', secret: false, required: false },
      ],
    },
    // A caller of the tools may set those that are no code of Node.
    lines: [/"stdio","--session-variable","ACME_TOKEN","--session-variable","REGION","--"\]/],
    certainty: 'certain',
    reason: /src\/index\.ts starts it over stdio \(StdioServerTransport\(\)\)\. server\.json says stdio\./,
  },
  {
    name: 'the transport that an argument chooses by default',
    files: {
      'package.json': packageJson(),
      'src/index.ts':
        'const args = process.argv.slice(2);\nconst mode = args[0] || "stdio";\nif (mode === "stdio") await import("./stdio.js");\nelse await import("./http.js");\n',
      'src/stdio.ts': stdio,
      'src/http.ts': `${streamable}new StreamableHTTPServerTransport({});\n`,
    },
    mcp: { ...overStdio, command: 'node dist/index.js' },
    certainty: 'likely',
  },
  {
    name: 'a start script of Express with the path of its route',
    files: {
      'package.json': packageJson({
        bin: undefined,
        scripts: { build: 'tsc', start: 'node dist/index.js' },
        dependencies: { ...sdk, express: '5' },
      }),
      'src/index.ts': `${streamable}const app = express();\napp.post("/api/mcp", () => new StreamableHTTPServerTransport({}));\napp.listen(process.env.PORT || 3000);\n`,
    },
    mcp: { transport: 'streamable-http', bridged: false, path: '/api/mcp' },
    port: 8080,
  },
  {
    name: 'a start script through npm without its output',
    files: {
      'package.json': packageJson({ bin: undefined, scripts: { start: 'tsx src/index.ts' } }),
      'src/index.ts': stdio,
    },
    mcp: { ...overStdio, command: 'npm run --silent start' },
  },
  {
    name: 'a Go program with mcp-go',
    files: {
      'go.mod': goMod('github.com/mark3labs/mcp-go v0.40.0'),
      'main.go': 'package main\n\nfunc main() {\n\tserver.ServeStdio(server.NewMCPServer("x", "1"))\n}\n',
    },
    mcp: { ...overStdio, command: '/usr/local/bin/server' },
    lines: [/^CMD \["sh","-c","exec \/usr\/local\/bin\/server"\]$/m],
  },
  {
    name: 'a Go program with the official SDK and a flag',
    files: {
      'go.mod': goMod('github.com/modelcontextprotocol/go-sdk v1.1.0'),
      'cmd/sample/main.go':
        'package main\n\nvar transport = flag.String("transport", "stdio", "how")\n\nfunc main() {\n\tif *transport == "http" {\n\t\tmcp.NewStreamableHTTPHandler(nil, nil)\n\t}\n\tserver.Run(ctx, &mcp.StdioTransport{})\n}\n',
    },
    mcp: { ...overStdio },
    certainty: 'likely',
  },
  {
    name: 'a Go program with a command for each transport',
    files: {
      'go.mod': goMod('github.com/mark3labs/mcp-go v0.40.0'),
      'cmd/sample/main.go':
        'package main\n\nvar root = &cobra.Command{Use: "sample"}\nvar overStdio = &cobra.Command{Use: "stdio", RunE: func(cmd *cobra.Command, args []string) error { return server.ServeStdio(s) }}\nvar overHTTP = &cobra.Command{Use: "http", RunE: func(cmd *cobra.Command, args []string) error { return server.NewStreamableHTTPServer(s).Start(":8080") }}\n\nfunc main() {\n\troot.AddCommand(overStdio, overHTTP)\n\troot.Execute()\n}\n',
    },
    mcp: { ...overStdio, command: '/usr/local/bin/server stdio' },
  },
  {
    name: 'a Rust program with rmcp',
    files: {
      'Cargo.toml': cargo,
      'src/main.rs':
        'use rmcp::{ServiceExt, transport::stdio};\n#[tokio::main]\nasync fn main() {\n    Counter::new().serve(stdio()).await.unwrap();\n}\n',
    },
    mcp: { ...overStdio, command: '/usr/local/bin/server' },
  },
  {
    name: "what an author's Dockerfile starts, with the settings of smithery.yaml",
    files: {
      'package.json': packageJson(),
      'src/index.ts': stdio,
      Dockerfile:
        'FROM node:22-alpine AS build\nRUN npm ci\nFROM node:22-alpine\nENTRYPOINT ["node", "/app/dist/index.js"]\nCMD ["--verbose"]\n',
      'smithery.yaml':
        'startCommand:\n  type: stdio\n  configSchema:\n    type: object\n    required: [apiKey]\n    properties:\n      apiKey: { type: string, description: The key. }\n  commandFunction: |-\n    (config) => ({ command: "node", args: ["dist/index.js"], env: { API_KEY: config.apiKey } })\n',
    },
    mcp: { ...overStdio, environment: [{ name: 'API_KEY', description: 'The key.', secret: true, required: true }] },
    reason: /^Dockerfile starts an MCP server over stdio: src\/index\.ts starts it/,
    lines: [
      /^FROM node:22-alpine AS build\n/,
      /^COPY --link --chmod=0755 --from=moorage-bridge mcp-bridge \/opt\/moorage\/mcp-bridge$/m,
      /"--","node","\/app\/dist\/index\.js"\]\nCMD \["--verbose"\]\n$/,
    ],
    port: 8080,
  },
  {
    name: 'a stage of a Dockerfile that build.target names',
    files: {
      'package.json': packageJson(),
      'src/index.ts': stdio,
      Dockerfile: 'FROM node:22 AS app\nCMD node dist/index.js\nFROM app AS test\nCMD npm test\n',
    },
    changes: { build: { strategy: 'auto', dockerfile: 'Dockerfile', target: 'app', args: [], env: [] } },
    mcp: overStdio,
    lines: [/^FROM app$/m, /"--","\/bin\/sh"|"--"\]\nCMD \["\/bin\/sh","-c","node dist\/index\.js"\]/],
  },
  {
    name: 'a command of moorage.yaml',
    files: { 'requirements.txt': requirements, 'a.py': runs('mcp.run()'), 'b.py': runs('mcp.run()') },
    changes: { mcp: { command: ['python', 'b.py'] } },
    mcp: { ...overStdio, command: 'python b.py' },
    certainty: 'certain',
  },
];

for (const { name, files, changes, mcp, certainty, reason, lines = [], port } of cases)
  test(`plans ${name}`, () => {
    const recipe = plan(files, changes);
    assert.ok(planSchema.safeParse(recipe.plan).success);
    assert.equal(recipe.plan.framework, 'MCP');
    const found: Readonly<Record<string, unknown>> = recipe.plan.mcp ?? {};
    assert.deepEqual(Object.fromEntries(Object.keys(mcp).map((key) => [key, found[key]])), mcp);
    assert.equal(recipe.usesBridge === true, recipe.plan.mcp?.bridged);
    if (certainty !== undefined) assert.equal(recipe.plan.certainty, certainty);
    if (reason !== undefined) assert.match(recipe.plan.reason, reason);
    for (const line of lines) assert.match(recipe.dockerfile ?? '', line);
    if (port !== undefined) assert.equal(recipe.plan.port, port);
  });

test.each<[string, Files, Changes]>([
  [
    'a web app that has one next to it',
    { 'requirements.txt': 'fastapi\nmcp\n', 'main.py': fastapi, 'mcp_server.py': runs('mcp.run()') },
    {},
  ],
  [
    'a server that moorage.yaml calls none',
    { 'requirements.txt': requirements, 'server.py': runs('mcp.run()') },
    { mcp: { transport: 'none', command: [] } },
  ],
  [
    'words in a text',
    {
      'requirements.txt': 'flask\nmcp\n',
      'app.py':
        'from flask import Flask\napp = Flask(__name__)\nhelp = "from mcp.server.fastmcp import FastMCP; mcp.run()"\nif __name__ == "__main__":\n    app.run()\n',
    },
    {},
  ],
  [
    'a client of MCP',
    {
      'package.json': json({ scripts: { start: 'node index.js' }, dependencies: sdk }),
      'index.js': 'import { Client } from "@modelcontextprotocol/sdk/client/index.js";\n',
    },
    {},
  ],
  [
    'a Dockerfile with a gateway of its own',
    {
      'package.json': packageJson(),
      'src/index.ts': stdio,
      Dockerfile: 'FROM node:22\nCMD ["npx", "-y", "supergateway", "--stdio", "node dist/index.js"]\n',
    },
    {},
  ],
])('plans %s as what it is', (_, files, changes) => {
  assert.equal(plan(files, changes).plan.mcp, undefined);
});

test('names the server next to a web app, and the line that chooses it', () => {
  const { otherwise } = plan({
    'requirements.txt': 'fastapi\nmcp\n',
    'main.py': fastapi,
    'mcp_server.py': runs('mcp.run()'),
  }).plan;
  assert.match(
    otherwise ?? '',
    /^mcp_server\.py is an MCP server next to it: set mcp: \{ transport: stdio \} in moorage\.yaml/,
  );
});

test('names the other transports of a server', () => {
  const files = {
    'requirements.txt': requirements,
    'server.py': `${runs('mcp.run(transport="stdio")')}    mcp.run(transport="sse")\n`,
  };
  assert.match(plan(files).plan.otherwise ?? '', /can also speak sse: set mcp: \{ transport: sse \} in moorage\.yaml/);
  assert.equal(plan(files).plan.certainty, 'guessed');
});

test.each<[string, Files, Changes, string, RegExp]>([
  [
    'several servers',
    { 'requirements.txt': requirements, 'a.py': runs('mcp.run()'), 'b.py': runs('mcp.run()') },
    {},
    'plan/several-servers',
    /mcp: \{ command: \[python, a\.py\] \}/,
  ],
  [
    'several servers of a workspace',
    {
      'package.json': json({ private: true, workspaces: ['src/*'] }),
      'src/a/package.json': packageJson({ name: 'a' }),
      'src/a/index.ts': stdio,
      'src/b/package.json': packageJson({ name: 'b' }),
      'src/b/index.ts': stdio,
    },
    {},
    'plan/several-servers',
    /source: \{ path: src\/a \}/,
  ],
  [
    'a transport without a server',
    { 'requirements.txt': 'requests\n', 'a.py': 'import requests\n' },
    { mcp: { transport: 'stdio', command: [] } },
    'plan/no-start',
    /Set mcp\.command in moorage\.yaml/,
  ],
])('rejects %s', (_, files, changes, rule, fix) => {
  assert.throws(
    () => plan(files, changes),
    (error: unknown) => {
      assert.ok(error instanceof Rejected);
      assert.equal(error.findings[0].rule, rule);
      assert.match(error.findings[0].fix, fix);
      return true;
    },
  );
});

test('warns that run.command replaces the bridge', () => {
  const { findings } = plan({ 'requirements.txt': requirements, 'server.py': runs('mcp.run()') }, { hasCommand: true });
  assert.deepEqual(
    findings.map(({ rule }) => rule),
    ['plan/mcp-command'],
  );
});
