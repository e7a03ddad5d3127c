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
      /^COPY --link --from=build --chown=1000:1000 \["\/app\/","\.\/"\]$/m,
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
    name: 'Laravel with its pages and migrations',
    files: {
      'composer.json': '{"require":{"ext-gd":"*"}}',
      'composer.lock': '{}',
      artisan: '',
      'public/index.php': '',
      'database/migrations/1_a.php': '',
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '6' } }),
    },
    strategy: 'php',
    framework: 'Laravel',
    lines: [
      /composer install --no-dev.*\|\| \{ .*--ignore-platform-req=php; \}$/m,
      /\{ \( php artisan migrate --force \) \|\| \{ .*\$DATABASE_URL.* \|\| \{ echo .*; exit 1; \}; \}; exec php artisan serve --host=0\.0\.0\.0 --port=\$PORT \$\(.* --no-reload\)/,
      /docker-php-ext-install pdo_mysql/,
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
  assert.match(dockerfile, /^COPY --link --from=frontend --chown=1000:1000 \["\/app\/","\.\/"\]$/m);
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
    name: 'a window of Python',
    files: {
      'requirements.txt': 'requests\n',
      'main.py': 'import tkinter as tk\nroot = tk.Tk()\nif __name__ == "__main__":\n    root.mainloop()\n',
    },
    rule: 'plan/desktop-app',
    message: /desktop app \(what it starts imports tkinter\)/,
  },
  {
    name: 'a window of Python 2',
    files: {
      'setup.py': '',
      'panel.py': 'import pygtk,glib,gtk,sys\nprint >> sys.stderr, "x"\nif __name__ == "__main__":\n    gtk.main()\n',
    },
    rule: 'plan/desktop-app',
    message: /imports gtk\)/,
  },
  {
    name: 'a server package that a module imports, and no file lists',
    files: {
      'launcher.py': 'from scripts.display import show\nif __name__ == "__main__":\n    show()\n',
      'scripts/display.py': 'import gradio\ndef show():\n    pass\n',
      'installer.py': 'import subprocess\nif __name__ == "__main__":\n    subprocess.run(["pip"])\n',
    },
    rule: 'plan/no-packages',
    message: /^launcher\.py is started by python\. scripts\/display\.py imports gradio, but no file lists/,
  },
  {
    name: 'an app whose packages are those of its folder, and not those of the root',
    files: {
      'pyproject.toml': '[tool.poetry]\npackage-mode = false\n[tool.poetry.dependencies]\npython = ">=3.10"\n',
      'libs/server/pyproject.toml': '[project]\nname = "server"\ndependencies = ["streamlit"]\n',
      'libs/server/webui.py': 'import streamlit as st\nst.title("shop")\n',
    },
    rule: 'plan/no-packages',
    message:
      /^libs\/server\/webui\.py imports streamlit\. pyproject\.toml does not list Streamlit; libs\/server\/pyproject\.toml does\.$/,
  },
  {
    name: 'an installer, which is not the app',
    files: {
      'requirements.txt': 'rich\n',
      'README.md': 'Run `python install.py` first.\n',
      'install.py': 'import subprocess\nif __name__ == "__main__":\n    subprocess.run(["pip"])\n',
    },
    rule: 'plan/no-start',
    message: /nothing defines how to start/,
  },
  {
    name: 'a Rust program that draws windows',
    files: {
      'Cargo.toml': '[package]\nname = "merge"\n[dependencies]\niced = { version = "0.14", features = ["tokio"] }\n',
      'src/main.rs': 'fn main() {}\n',
    },
    rule: 'plan/desktop-app',
    message: /This is a desktop app \(iced\)/,
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

test.each([
  [
    'answers requests as well',
    { 'main.py': 'import tkinter\nimport http.server\nif __name__ == "__main__":\n    serve()\n' },
  ],
  [
    'lists a server package',
    { 'requirements.txt': 'waitress\n', 'main.py': 'import tkinter\nif __name__ == "__main__":\n    run()\n' },
  ],
])('plans a program that imports a window toolkit and %s', (_, files) => {
  const tree = createMemoryTree({ 'requirements.txt': 'rich\n', ...files });
  assert.equal(makePlan(tree, sampleInput()).plan.strategy, 'python');
});

const servers: readonly (readonly [string, string, Files])[] = [
  [
    'Go',
    'web',
    { 'go.mod': 'module x\n', 'main.go': main, 'ui.go': 'package main\n\n//go:embed web/build\nvar files embed.FS\n' },
  ],
  [
    'Python',
    'web',
    {
      'requirements.txt': 'fastapi\n',
      'backend/main.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
      'web/vite.config.js': 'export default { build: { outDir: "../backend/static" } };',
    },
  ],
  ['PHP', '.', { 'composer.json': '{}', 'public/index.php': '<?php' }],
  ['Ruby', '.', { Gemfile: 'gem "sinatra"\ngem "puma"\n', 'config.ru': 'run App\n' }],
];

test.each(servers)('builds pages of a %s server in the environment of every Node build', (_, folder, files) => {
  const path = folder === '.' ? 'package.json' : `${folder}/package.json`;
  const list = (dependencies: object, homepage?: string): string[] => {
    const manifest = { homepage, scripts: { build: 'react-scripts build' }, dependencies };
    const { dockerfile = '' } = makePlan(createMemoryTree({ ...files, [path]: json(manifest) }), sampleInput());
    const [before = ''] = dockerfile.split(/^RUN .*npm run build/m);
    assert.notEqual(before, dockerfile, 'it builds the pages');
    return before.match(/^ENV CI=.*/gm) ?? [];
  };
  const usual = 'ENV CI=true npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false';
  assert.deepEqual(list({ vite: '6' }), [usual]);
  const react = { 'react-scripts': '5' };
  assert.deepEqual(list(react), [usual, 'ENV CI=false SKIP_PREFLIGHT_CHECK=true']);
  assert.deepEqual(list(react, 'https://author.github.io/shop'), [
    usual,
    'ENV CI=false SKIP_PREFLIGHT_CHECK=true PUBLIC_URL=/',
  ]);
  // The server may well serve them there.
  assert.deepEqual(list(react, '/static/pages'), [usual, 'ENV CI=false SKIP_PREFLIGHT_CHECK=true']);
});

test('builds pages whose script writes them into the folder of a Python server', () => {
  const files: Files = {
    'requirements.txt': 'fastapi\n',
    'backend/main.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
    'frontend/package.json': json({ scripts: { build: 'vite build' } }),
    'frontend/vite.config.ts': 'export default { build: { outDir: "../backend/static" } };',
    'frontend/index.html': '',
    'package.json': json({ workspaces: ['frontend'] }),
    'package-lock.json': '{}',
  };
  const { plan, dockerfile = '', builds } = makePlan(createMemoryTree(files), sampleInput());
  assert.match(plan.reason, /The pages of frontend are built into backend\/static\./);
  assert.match(dockerfile, /^WORKDIR "\/app\/frontend"$/m);
  // The lock file is the workspace's.
  assert.match(dockerfile, /^RUN .*npm ci \|\| \{ echo "moorage-warning: lockfile package-lock\.json"/m);
  assert.match(dockerfile, /^RUN npm run build \|\| echo "moorage-warning: pages frontend\/package\.json"$/m);
  assert.match(dockerfile, /^COPY --link --from=frontend --chown=1000:1000 \["\/app\/","\.\/"\]$/m);
  assert.deepEqual(builds, ['frontend']);
  const committed = { ...files, 'backend/static/index.html': '' };
  assert.doesNotMatch(makePlan(createMemoryTree(committed), sampleInput()).dockerfile ?? '', /AS frontend/);
});

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

test('a PHP app without Composer keeps the packages that it has in its repository', () => {
  const files = { 'index.php': '<?php', 'vendor/autoload.php': '<?php' };
  const listIgnored = (changes: Readonly<Record<string, string>>): readonly string[] =>
    makePlan(createMemoryTree({ ...files, ...changes }), sampleInput()).ignore ?? [];
  assert.ok(!listIgnored({}).includes('vendor'));
  assert.ok(listIgnored({ 'composer.json': '{}' }).includes('vendor'));
});
