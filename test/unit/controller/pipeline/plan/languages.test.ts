// What is planned for Go, Deno, Rust, Java and PHP, and what is refused.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../controller/pipeline/contract.ts';
import { findAppFolder } from '../../../../../controller/pipeline/plan/folder.ts';
import { makePlan } from '../../../../../controller/pipeline/plan/plan.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';
import type { Changes, Files } from './plan.cases.ts';

interface Case {
  readonly name: string;
  readonly files: Files;
  readonly strategy: string;
  readonly framework?: string;
  readonly port?: number;
  readonly reason?: RegExp;
  readonly lines?: readonly RegExp[];
}

const main = 'package main\n\nfunc main() {}\n';
const serving = (text: string): string => `package main\n\nfunc main() {\n\t${text}\n}\n`;
const json = (value: unknown): string => JSON.stringify(value);

const cases: readonly Case[] = [
  {
    name: 'Go whose pages have to be built first',
    files: {
      'go.mod': 'module example.org/memos\n\ngo 1.25\n',
      'cmd/memos/main.go': main,
      'cmd/migrate/main.go': main,
      'server/frontend.go': 'package server\n\nvar (\n\t//go:embed dist/*\n\tfiles embed.FS\n)\n',
      'web/package.json': json({ scripts: { build: 'vite build', release: 'vite build --outDir=../server/dist' } }),
    },
    strategy: 'go',
    reason:
      /cmd\/memos is its package main\. There are others, .*cmd\/migrate\. It embeds server\/dist, which the script release in web/,
    lines: [
      /^WORKDIR "\/app\/web"$/m,
      /^RUN npm run release$/m,
      /^COPY --from=frontend \["\/app\/server\/dist\/","\.\/server\/dist\/"\]$/m,
      /^ENV CGO_ENABLED=0 GOTOOLCHAIN=auto/m,
      /-o \/out\/server \.\/cmd\/memos$/m,
    ],
  },
  {
    name: 'Go whose pages are moved to where they are embedded',
    files: {
      'go.mod': 'module x\n',
      'main.go': main,
      '.gitignore': '/ui/dist\n',
      'embed.go': 'package main\n\n//go:embed ui\nvar files embed.FS\n',
      'ui/email.html': 'x',
      'frontend/package.json': json({ scripts: { build: 'vite build' } }),
    },
    strategy: 'go',
    reason: /It embeds ui\/dist, which the script build in frontend/,
    lines: [/RUN npm run build && if \[ -d \/app\/frontend\/dist \]; then mkdir -p \/app\/ui\/dist && cp -r/],
  },
  {
    name: 'Go with a port of its own, and a database in C',
    files: {
      'go.mod': 'module x\n\nrequire github.com/mattn/go-sqlite3 v1.14.22\n',
      'main.go': serving(
        '// http.ListenAndServe(":7000", nil)\n\tsmtp(":1025")\n\thttp.ListenAndServe("[::]:8025", nil)',
      ),
    },
    strategy: 'go',
    port: 8025,
    lines: [/CGO_ENABLED=1/],
  },
  {
    name: 'Go that asks the environment, started by a Procfile with the name of elsewhere',
    files: {
      'go.mod': 'module x\n',
      'main.go': serving('r.Run(":" + os.Getenv("PORT")) // not ":9999"'),
      Procfile: 'web: bin/shop --fast\n',
    },
    strategy: 'go',
    port: 8080,
    lines: [/exec \/usr\/local\/bin\/server --fast/],
  },
  {
    name: 'PocketBase',
    files: { 'go.mod': 'module x\n\nrequire github.com/pocketbase/pocketbase v0.22.0\n', 'main.go': main },
    strategy: 'go',
    lines: [/server serve --http=0\.0\.0\.0:\$PORT/],
  },
  {
    name: 'Go beside a package.json that only builds',
    files: { 'go.mod': 'module x\n', 'main.go': main, 'package.json': json({ scripts: { build: 'esbuild' } }) },
    strategy: 'go',
  },
  {
    name: 'Deno by a task',
    files: {
      'deno.jsonc':
        '{ /* a comment */ "tasks": { "start": "deno run -A server.ts", "build": "x" }, "imports": {"@fresh/core": "jsr:@fresh/core@2"}, }',
      'server.ts': 'Deno.serve({ port: 8123 }, () => new Response())',
    },
    strategy: 'deno',
    framework: 'Fresh',
    port: 8123,
    lines: [/^RUN deno task build$/m, /^RUN deno cache server\.ts$/m, /exec deno task start/],
  },
  {
    name: 'Deno by its main file, on the port that it takes by itself',
    files: {
      'deno.json': '{"tasks": {"start": "deno run --watch main.ts"}}',
      'main.ts': 'Deno.serve(() => new Response())',
    },
    strategy: 'deno',
    port: 8000,
    lines: [/exec deno run --allow-all main\.ts/],
  },
  {
    name: 'Deno that exports what answers',
    files: { 'deno.json': '{}', 'main.ts': 'export default { fetch() {} }' },
    strategy: 'deno',
    port: 8080,
    lines: [/exec deno serve --allow-all --host 0\.0\.0\.0 --port \$PORT main\.ts/],
  },
  {
    name: 'Rust of a workspace, with the library of its database',
    files: {
      'Cargo.toml': '[workspace]\nmembers = ["crates/*"]\n',
      'Cargo.lock': 'name = "pq-sys"\n',
      'crates/cli/Cargo.toml': '[package]\nname = "shop-cli"\n',
      'crates/cli/src/main.rs': '',
      'crates/web/Cargo.toml': '[package]\nname = "shop-server"\n',
      'crates/web/src/main.rs': 'let listener = TcpListener::bind("0.0.0.0:3000");',
    },
    strategy: 'rust',
    port: 3000,
    reason: /shop-server is its program\. There are others, .*shop-cli/,
    lines: [
      /libpq-dev/,
      /libpq5/,
      /cargo build --release --locked --bin shop-server .*cargo update --package time --recursive/,
    ],
  },
  {
    name: 'Rust that asks the environment',
    files: {
      'Cargo.toml': '[package]\nname = "shop"\n',
      'src/main.rs': 'let port = env::var("PORT").unwrap_or("3000".into()); bind("0.0.0.0:3000")',
    },
    strategy: 'rust',
    port: 8080,
  },
  {
    name: 'Rust whose build script makes pages by Bun',
    files: {
      'Cargo.toml': '[package]\nname = "shop"\n',
      'src/main.rs': '',
      'build.rs': 'Command::new("bunx").args(["@tailwindcss/cli"]);',
      'package.json': '{"dependencies":{"@tailwindcss/cli":"4"}}',
      'bun.lockb': '',
    },
    strategy: 'rust',
    port: 8080,
    lines: [
      /^COPY --from=node:24\S+ \/usr\/local\/bin\/ \/usr\/local\/bin\/$/m,
      /npm install --global --force bun@\S+ && \{ bun install --frozen-lockfile/,
      /^COPY --from=build --chown=1000:1000 \["\/app\/","\.\/"\]$/m,
    ],
  },
  {
    name: 'Spring Boot by Maven',
    files: {
      'pom.xml':
        '<project><parent><groupId>org.springframework.boot</groupId></parent><properties><java.version>21</java.version></properties></project>',
      mvnw: '',
    },
    strategy: 'java',
    framework: 'Spring Boot',
    reason: /by Maven of the version that its wrapper names on Java 21/,
    lines: [
      /^FROM maven:3-eclipse-temurin-21 AS build$/m,
      /env -u MAVEN_CONFIG sh \.\/mvnw --batch-mode/,
      /SERVER_PORT=8080/,
    ],
  },
  {
    name: 'Quarkus by Gradle, for an older Java',
    files: {
      'build.gradle.kts': 'plugins { id("io.quarkus") }\njava { sourceCompatibility = JavaVersion.VERSION_1_8 }',
      gradlew: '',
    },
    strategy: 'java',
    framework: 'Quarkus',
    lines: [/^FROM eclipse-temurin:17-jre$/m, /sh \.\/gradlew --no-daemon assemble/],
  },
  {
    name: 'plain PHP',
    files: { 'index.php': '<?php', 'index.html': '' },
    strategy: 'php',
    lines: [/exec php -S 0\.0\.0\.0:\$PORT -t \./],
  },
  {
    name: 'Laravel with its pages',
    files: {
      'composer.json': '{"require":{"ext-gd":"*"}}',
      'composer.lock': '{}',
      artisan: '',
      'public/index.php': '',
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '6' } }),
    },
    strategy: 'php',
    framework: 'Laravel',
    lines: [
      /composer install --no-dev.*\|\| \{ .*--ignore-platform-req=php; \}$/m,
      /php artisan serve --host=0\.0\.0\.0 --port=\$PORT/,
      /docker-php-ext-install gd/,
    ],
  },
];

for (const { name, files, strategy, framework, port, reason = /./, lines = [] } of cases) {
  test(`plans ${name}`, () => {
    const recipe = makePlan(createMemoryTree(files), sampleInput());
    assert.equal(recipe.plan.strategy, strategy);
    assert.equal(recipe.plan.framework, framework);
    assert.match(recipe.plan.reason, reason);
    if (port !== undefined) assert.equal(recipe.plan.port, port);
    for (const line of lines) assert.match(recipe.dockerfile ?? '', line);
  });
}

test("finds a port written with an IPv6 address, after a mail server's port", () => {
  const files = {
    'go.mod': 'module x\n',
    'main.go': main,
    'config.go': 'package main\n\nvar (\n\tSMTPListen = "[::]:1025"\n\tHTTPListen = "[::]:8025"\n)\n',
  };
  assert.equal(makePlan(createMemoryTree(files), sampleInput()).plan.port, 8025);
});

test("builds a Python app's styles first, and omits their packages from the image", () => {
  const files = {
    'requirements.txt': 'flask\n',
    'app.py': 'from flask import Flask\napp = Flask(__name__)\n',
    'package.json': json({ scripts: { build: 'rollup -c' }, devDependencies: { rollup: '4' } }),
  };
  const { plan, dockerfile = '' } = makePlan(createMemoryTree(files), sampleInput());
  assert.equal(plan.strategy, 'python');
  assert.match(dockerfile, /^RUN npm run build \|\| echo "moorage-warning: pages package\.json"$/m);
  assert.match(dockerfile, /^RUN rm -rf node_modules$/m);
  assert.match(dockerfile, /^COPY --from=frontend --chown=1000:1000 \["\/app\/","\.\/"\]$/m);
  const { 'package.json': _, ...plain } = files;
  assert.doesNotMatch(makePlan(createMemoryTree(plain), sampleInput()).dockerfile ?? '', /frontend/);
});

test('finds the only requirements list in a typical folder', () => {
  const files = {
    'environment/requirements.txt': 'flask\n',
    'app.py': 'from flask import Flask\napp = Flask(__name__)\n',
  };
  assert.match(makePlan(createMemoryTree(files), sampleInput()).dockerfile ?? '', /-r environment\/requirements\.txt/);
});

const refusals: readonly { name: string; files: Files; changes?: Changes; rule: string; message: RegExp }[] = [
  {
    name: 'a library of Go',
    files: { 'go.mod': 'module x\n', 'x.go': 'package x\n' },
    rule: 'plan/no-start',
    message: /no package main/,
  },
  {
    name: 'a library of Rust',
    files: { 'Cargo.toml': '[package]\nname = "x"\n', 'src/lib.rs': '' },
    rule: 'plan/no-start',
    message: /no program/,
  },
  {
    name: 'a desktop app of Tauri',
    files: {
      'Cargo.toml': '[workspace]\nmembers = ["src-tauri"]\n',
      'src-tauri/Cargo.toml': '[package]\nname = "x"\n[dependencies]\ntauri = "2"\n',
      'src-tauri/src/main.rs': 'fn main() {}\n',
      'src-tauri/tauri.conf.json': '{}',
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '7' } }),
      'index.html': '<div id="app"></div>',
    },
    rule: 'plan/desktop-app',
    message: /desktop app \(Tauri\)/,
  },
  {
    name: 'an API and a page of Python that are two programs',
    files: {
      'requirements.txt': 'fastapi\nstreamlit\n',
      'api/main.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
      'ui/app.py': 'import streamlit as st\n',
    },
    rule: 'plan/several-programs',
    message: /api\/main\.py holds the FastAPI .* ui\/app\.py imports streamlit\. Started alone, either is half of it/,
  },
  {
    name: 'a bot that answers no HTTP',
    files: {
      'requirements.txt': 'discord.py\n',
      'main.py': 'import discord\nclient = discord.Client()\nif __name__ == "__main__":\n    client.run("x")\n',
    },
    rule: 'plan/no-server',
    message: /This is a bot \(what it starts imports discord\)/,
  },
  {
    name: 'Gradle without its wrapper',
    files: { 'build.gradle': '' },
    rule: 'plan/no-wrapper',
    message: /without its wrapper/,
  },
  {
    name: 'a Java that there is not',
    files: { 'pom.xml': '<project><java.version>26</java.version></project>' },
    rule: 'plan/java-version',
    message: /Java 26/,
  },
  { name: 'Deno without a start', files: { 'deno.json': '{}' }, rule: 'plan/no-start', message: /Deno project/ },
  {
    name: 'a language whose image is not on the installation',
    files: { 'go.mod': 'module x\n', 'main.go': main },
    changes: { missingImages: ['golang:1.26-bookworm'] },
    rule: 'plan/base-image',
    message: /golang:1\.26-bookworm.* is not on this installation/,
  },
];

test('does not report embedded pages as omitted', () => {
  const [pages] = cases.filter(({ name }) => name.startsWith('Go whose pages have'));
  const tree = createMemoryTree(pages?.files ?? {});
  assert.deepEqual(findAppFolder(tree, sampleInput()).warnings, []);
});

for (const { name, files, changes, rule, message } of refusals) {
  test(`rejects ${name}`, () => {
    assert.throws(
      () => makePlan(createMemoryTree(files), sampleInput(changes)),
      (error) =>
        error instanceof Rejected && error.findings[0].rule === rule && message.test(error.findings[0].message),
    );
  });
}
