// Trees of files, and what the planner makes of them or why it refuses.
import type { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import type { sampleInput } from '../../../../support/pipeline/sample.ts';

export type Files = Parameters<typeof createMemoryTree>[0];

export type Changes = Parameters<typeof sampleInput>[0];

interface Case {
  readonly name: string;
  readonly files: Files;
  readonly changes?: Changes;
  readonly strategy: string;
  readonly framework?: string;
  readonly reason: RegExp;
  /** Found in the Dockerfile. */
  readonly lines?: readonly RegExp[];
  readonly port?: number;
}

export const fastapi = 'from fastapi import FastAPI\n\napp = FastAPI()\n';

export const flask = 'from flask import Flask\napp = Flask(__name__)\n';

export const json = (value: unknown): string => JSON.stringify(value);

export const cases: readonly Case[] = [
  {
    name: 'a Dockerfile',
    files: { Dockerfile: 'FROM a', 'package.json': '{}' },
    strategy: 'dockerfile',
    reason: /has a Dockerfile/,
  },
  {
    name: 'a Dockerfile elsewhere',
    files: { 'docker/web': 'FROM a' },
    changes: { dockerfile: 'docker/web' },
    strategy: 'dockerfile',
    reason: /docker\/web/,
  },
  {
    name: 'a Dockerfile that is not wanted',
    files: { Dockerfile: 'FROM a', 'index.html': '' },
    changes: { strategy: 'static' },
    strategy: 'static',
    reason: /index\.html/,
  },

  {
    name: 'FastAPI',
    files: { 'requirements.txt': 'fastapi\n', 'main.py': fastapi },
    strategy: 'python',
    framework: 'FastAPI',
    port: 8080,
    reason: /requirements\.txt.*main\.py holds the FastAPI application "app"/,
    lines: [/uvicorn --host 0\.0\.0\.0 --port \$PORT main:app/, /-r requirements\.txt uvicorn/, /^USER 1000:1000$/m],
  },
  {
    name: 'FastAPI with its server',
    files: { 'requirements.txt': 'fastapi\nuvicorn[standard]==0.30\n', 'main.py': fastapi },
    strategy: 'python',
    framework: 'FastAPI',
    reason: /./,
    lines: [/-r requirements\.txt$/m],
  },
  {
    name: 'an annotated application in a package',
    files: {
      'requirements.txt': 'fastapi',
      'app/__init__.py': '',
      'app/main.py': 'from app.db import x\nfrom fastapi import FastAPI\nserver: FastAPI = FastAPI(title="x")\n',
      'app/db.py': '',
    },
    strategy: 'python',
    framework: 'FastAPI',
    reason: /app\/main\.py/,
    lines: [/ app\.main:server/],
  },
  {
    name: 'an application that imports its neighbours',
    files: { 'requirements.txt': 'fastapi', 'backend/main.py': `import db\n${fastapi}`, 'backend/db.py': '' },
    strategy: 'python',
    framework: 'FastAPI',
    reason: /backend\/main\.py/,
    lines: [/--app-dir backend main:app/],
  },
  {
    name: 'a package in a folder that is imported by its own name, with pages that SvelteKit builds as files',
    files: {
      'requirements.txt': 'fastapi',
      'backend/shop/main.py': `from shop.db import x\n${fastapi}`,
      'backend/shop/db.py': '',
      'package.json': JSON.stringify({
        scripts: { build: 'vite build' },
        engines: { node: '>=18.13.0 <=22.x.x' },
        devDependencies: { '@sveltejs/kit': '2', '@sveltejs/adapter-static': '3' },
      }),
      'svelte.config.js':
        "import adapter from '@sveltejs/adapter-static';\nexport default { kit: { adapter: adapter() } };",
    },
    strategy: 'python',
    framework: 'FastAPI',
    reason: /backend\/shop\/main\.py/,
    lines: [
      /--app-dir backend shop\.main:app/,
      /^FROM node:22-bookworm-slim AS frontend$/m,
      /npm run build/,
      /COPY --link --from=frontend/,
    ],
  },
  {
    name: 'src layout',
    files: { 'requirements.txt': 'fastapi', 'src/shop/__init__.py': '', 'src/shop/web.py': fastapi },
    strategy: 'python',
    framework: 'FastAPI',
    reason: /./,
    lines: [/--app-dir src shop\.web:app/, /PYTHONPATH=\/app:\/app\/src/],
  },
  {
    name: 'Flask',
    files: { 'requirements.txt': 'Flask>=3', 'app.py': flask },
    strategy: 'python',
    framework: 'Flask',
    reason: /app\.py/,
    lines: [/gunicorn --bind 0\.0\.0\.0:\$PORT --threads 8 app:app/],
  },
  {
    name: 'a Flask factory',
    files: {
      'requirements.txt': 'flask',
      'site/__init__.py': 'from flask import Flask\ndef create_app():\n    app = Flask(__name__)\n    return app\n',
    },
    strategy: 'python',
    framework: 'Flask',
    reason: /create_app\(\)/,
    lines: [/'site:create_app\(\)'/],
  },
  {
    name: 'Django',
    files: { 'requirements.txt': 'django', 'manage.py': '', 'shop/wsgi.py': '', 'shop/settings.py': '' },
    strategy: 'python',
    framework: 'Django',
    reason: /manage\.py and shop\/wsgi\.py/,
    lines: [/shop\.wsgi:application/],
  },
  {
    name: 'Django with static files',
    files: {
      'requirements.txt': 'django',
      'manage.py': '',
      'shop/wsgi.py': '',
      'shop/settings/base.py': 'STATIC_ROOT = BASE_DIR / "static"\n',
      Procfile: 'web: gunicorn shop.wsgi',
    },
    strategy: 'python',
    reason: /Procfile/,
    lines: [
      /^COPY \. \.\n# step: manage\.py .*\nRUN .* collectstatic --noinput \|\| echo "moorage-warning: .*\n\nFROM/m,
      /^COPY --link --from=build --chown=1000:1000 \["\/app\/","\.\/"\]$/m,
    ],
  },
  {
    name: 'Streamlit',
    files: { 'requirements.txt': 'streamlit', 'streamlit_app.py': 'import streamlit as st\n' },
    strategy: 'python',
    framework: 'Streamlit',
    reason: /imports streamlit/,
    lines: [/streamlit run streamlit_app\.py --server\.port \$PORT/],
  },
  {
    name: 'Gradio',
    files: { 'requirements.txt': 'gradio', 'app.py': 'import gradio as gr\n' },
    strategy: 'python',
    framework: 'Gradio',
    reason: /imports gradio/,
    lines: [/GRADIO_SERVER_NAME=0\.0\.0\.0/, /GRADIO_SERVER_PORT=\$PORT/],
  },
  {
    name: 'plain Python',
    files: { 'requirements.txt': 'aiohttp', 'main.py': 'print(1)' },
    strategy: 'python',
    reason: /main\.py is started by python/,
    lines: [/exec python main\.py/],
  },
  {
    name: 'Python without packages',
    files: { 'main.py': 'import http.server' },
    strategy: 'python',
    reason: /without a list of dependencies/,
    lines: [/exec python main\.py/],
  },
  {
    name: 'plain Python with a port of its own',
    files: { 'main.py': 'HTTPServer(("0.0.0.0", 8000), Handler).serve_forever()' },
    strategy: 'python',
    port: 8000,
    reason: /listens on port 8000/,
    lines: [/^EXPOSE 8000$/m],
  },
  {
    name: 'Gradio on a port of its own',
    files: {
      'requirements.txt': 'gradio',
      'app.py': 'import gradio as gr\ngr.Blocks().launch(server_name="0.0.0.0", server_port=7860)\n',
    },
    strategy: 'python',
    framework: 'Gradio',
    port: 7860,
    reason: /port 7860/,
  },
  {
    name: 'a Procfile with a port of its own',
    files: { 'requirements.txt': 'x', Procfile: 'web: uvicorn main:app --host 0.0.0.0 --port 9000\n' },
    strategy: 'python',
    port: 9000,
    reason: /port 9000/,
  },
  {
    name: 'a Procfile',
    files: { 'requirements.txt': 'x', Procfile: 'worker: x\nweb: gunicorn shop:app --bind 0.0.0.0:$PORT\n' },
    strategy: 'python',
    reason: /Procfile/,
    lines: [/exec gunicorn shop:app --bind 0\.0\.0\.0:\$PORT/],
  },
  {
    name: 'run.command',
    files: { 'requirements.txt': 'x' },
    changes: { hasCommand: true, port: 7000 },
    strategy: 'python',
    port: 7000,
    reason: /run\.command/,
    lines: [/^EXPOSE 7000$/m],
  },
  {
    name: 'uv.lock',
    files: {
      'uv.lock': '',
      'pyproject.toml': '[project]\nname="x"\ndependencies=["fastapi"]\nrequires-python=">=3.12"\n',
      'main.py': fastapi,
    },
    strategy: 'python',
    framework: 'FastAPI',
    reason: /uv\.lock.*asks for Python >=3\.12/,
    lines: [/uv sync --frozen --no-dev/, /^FROM python:3\.13-slim-trixie AS build$/m],
  },
  {
    name: 'poetry.lock',
    files: {
      'poetry.lock': '',
      'pyproject.toml': '[tool.poetry.dependencies]\npython="^3.10"\nflask="*"\n',
      'app.py': flask,
    },
    strategy: 'python',
    framework: 'Flask',
    reason: /poetry\.lock/,
    lines: [
      /poetry export .* > \/tmp\/locked\.txt && bash \/opt\/moorage\/uv\/install poetry\.lock --no-deps/,
      /^FROM python:3\.11-slim-bookworm AS build$/m,
    ],
  },
  {
    name: 'pyproject.toml alone',
    files: { 'pyproject.toml': '[project]\nname="x"\ndependencies=["flask>=3"]\n', 'app.py': flask },
    strategy: 'python',
    framework: 'Flask',
    reason: /pyproject\.toml/,
    lines: [/bash \/opt\/moorage\/uv\/install pyproject\.toml -r pyproject\.toml gunicorn$/m],
  },
  {
    name: 'setup.py',
    files: { 'setup.py': 'setup(install_requires=["flask"])', 'app.py': flask },
    strategy: 'python',
    framework: 'Flask',
    reason: /setup\.py/,
    lines: [/bash \/opt\/moorage\/uv\/install setup\.py \. gunicorn$/m],
  },
  {
    name: '.python-version',
    files: { 'requirements.txt': 'flask', 'app.py': flask, '.python-version': '3.12.4\n' },
    strategy: 'python',
    framework: 'Flask',
    reason: /asks for Python 3\.12\./,
    lines: [/^FROM python:3\.12-slim AS build$/m],
  },
  {
    name: '.python-version of an image that is not there',
    files: { 'requirements.txt': 'flask', 'app.py': flask, '.python-version': '3.12.4\n' },
    changes: { missingImages: ['python:3.12-slim'] },
    strategy: 'python',
    framework: 'Flask',
    reason: /asks for Python 3\.12, and 3\.13 is the nearest/,
    lines: [/^FROM python:3\.13-slim-trixie AS build$/m],
  },
  {
    name: 'torch',
    files: { 'requirements.txt': 'torch\nflask', 'app.py': flask },
    strategy: 'python',
    framework: 'Flask',
    reason: /torch: its CPU wheels/,
    lines: [/^ARG UV_TORCH_BACKEND=cpu$/m],
  },
  {
    name: 'packages.txt',
    files: { 'requirements.txt': 'flask', 'app.py': flask, 'packages.txt': 'ffmpeg\n; rm -rf /\nlibgl1\n' },
    strategy: 'python',
    framework: 'Flask',
    reason: /./,
    lines: [/--no-install-recommends ffmpeg libgl1 &&/],
  },

  {
    name: 'Express',
    files: {
      'package.json': json({ scripts: { start: 'node server.js' }, dependencies: { express: '5' } }),
      'package-lock.json': '{}',
    },
    strategy: 'node',
    framework: 'Express',
    reason: /package-lock\.json.*start script/,
    lines: [/npm ci \|\| \{ .*npm install/m, /exec node server\.js/, /npm prune --omit=dev/],
  },
  {
    name: 'pages that a script of another name builds',
    files: {
      'package.json': json({
        scripts: { start: 'node server.js', 'build:docker': 'docker build .', 'build:frontend': 'vite build' },
        dependencies: { express: '5' },
      }),
    },
    strategy: 'node',
    framework: 'Express',
    reason: /start script/,
    lines: [/^RUN .*npm run build:frontend/m],
  },
  {
    name: 'a start script by another program',
    files: { 'package.json': json({ scripts: { start: 'tsx server.ts' } }) },
    strategy: 'node',
    reason: /start script/,
    lines: [/npm install \|\| \{ .*--legacy-peer-deps; \}$/m, /exec npm start/],
  },
  {
    name: 'a server without a start script',
    files: { 'package.json': json({ main: './index.js' }), 'index.js': '' },
    strategy: 'node',
    reason: /index\.js is run/,
    lines: [/exec node \.\/index\.js/],
  },
  {
    name: 'a server on a port of its own',
    files: {
      'package.json': json({ scripts: { start: 'node src/web' }, dependencies: { express: '5' } }),
      'src/web.js': 'const db = new Pool({ port: 5432 });\napp.listen(3000, () => {})',
    },
    strategy: 'node',
    framework: 'Express',
    port: 3000,
    reason: /code listens on port 3000/,
    lines: [/^EXPOSE 3000$/m],
  },
  {
    name: 'a server that asks for its port',
    files: {
      'package.json': json({ scripts: { start: 'node web.js' } }),
      'web.js': 'const port = process.env.PORT || 3000;\napp.listen(port)',
    },
    strategy: 'node',
    port: 8080,
    reason: /./,
  },
  {
    name: 'native packages',
    files: {
      'package.json': json({ scripts: { start: 'node a.js' } }),
      'package-lock.json': '{"packages":{"node_modules/prebuild-install":{}}}',
    },
    strategy: 'node',
    reason: /./,
    lines: [/^RUN apt-get .* python3 make g\+\+ /m, /npm_config_nodedir=\/usr\/local; npm ci /m],
  },
  {
    name: 'pnpm',
    files: { 'package.json': json({ scripts: { start: 'node a.js' } }), 'pnpm-lock.yaml': "lockfileVersion: '6.0'\n" },
    strategy: 'node',
    reason: /pnpm-lock\.yaml/,
    lines: [
      /pnpm@8\.15\.9/,
      /pnpm install --frozen-lockfile \|\| \{ .*--no-frozen-lockfile \|\| pnpm install --fix-lockfile; \}/,
    ],
  },
  {
    name: 'a start script that calls pnpm, which installs nothing then',
    files: {
      'package.json': json({ scripts: { start: 'pnpm run start:prod', 'start:prod': 'node a.js' } }),
      'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
    },
    strategy: 'node',
    reason: /pnpm-lock\.yaml/,
    lines: [/ENV pnpm_config_verify_deps_before_run=false\n[^]*exec npm start/],
  },
  {
    name: 'a named pnpm',
    files: {
      'package.json': json({ packageManager: 'pnpm@9.8.0+sha512.abc', scripts: { start: 'node a.js' } }),
      'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
    },
    strategy: 'node',
    reason: /./,
    lines: [/pnpm@9\.8\.0$/m],
  },
  {
    name: 'Yarn 1',
    files: { 'package.json': json({ scripts: { start: 'node a.js' } }), 'yarn.lock': '# yarn lockfile v1\n' },
    strategy: 'node',
    reason: /yarn\.lock/,
    lines: [/yarn@1\.22\.22/, /--frozen-lockfile/],
  },
  {
    name: 'Yarn 4',
    files: { 'package.json': json({ scripts: { start: 'node a.js' } }), 'yarn.lock': '__metadata:\n  version: 8\n' },
    strategy: 'node',
    reason: /yarn\.lock/,
    lines: [/@yarnpkg\/cli-dist@4/, /yarn install --immutable/],
  },
  {
    name: 'install scripts',
    files: { 'package.json': json({ scripts: { start: 'node a.js', postinstall: 'prisma generate' } }) },
    strategy: 'node',
    reason: /./,
    lines: [/COPY \. \.\n# step: package\.json \| installing/],
  },
  {
    name: 'Next.js',
    files: {
      'package.json': json({ scripts: { build: 'next build', start: 'next start' }, dependencies: { next: '16' } }),
      'app/page.tsx': '',
    },
    strategy: 'node',
    framework: 'Next.js',
    reason: /next is among/,
    lines: [/next start --hostname 0\.0\.0\.0 --port \$PORT/, /npm run build/],
  },
  {
    name: 'Next.js whose configuration imports what it runs with',
    files: {
      'package.json': json({ dependencies: { next: '16', 'next-intl': '4' }, devDependencies: { webpack: '5' } }),
      'next.config.mjs':
        "import intl from 'next-intl/plugin';\nimport path from 'node:path';\nimport env from './env.mjs';",
      'app/page.tsx': '',
    },
    strategy: 'node',
    framework: 'Next.js',
    reason: /next is among/,
    lines: [/npm prune --omit=dev/],
  },
  {
    name: 'Next.js whose configuration imports a package for development, which the server reads again',
    files: {
      'package.json': json({ dependencies: { next: '16' }, devDependencies: { '@a/webpack': '5' } }),
      'next.config.js': "const webpack = require('@a/webpack/lib')\nmodule.exports = { output: mode }",
      'app/page.tsx': '',
    },
    strategy: 'node',
    framework: 'Next.js',
    reason: /next is among/,
    lines: [/^(?![^]*npm prune)/],
  },
  {
    name: 'Next.js standalone',
    files: {
      'package.json': json({ scripts: { build: 'next build' }, dependencies: { next: '16' } }),
      'next.config.ts': "export default { output: 'standalone' }",
      'src/app/page.tsx': '',
      'public/a': '',
    },
    strategy: 'node',
    framework: 'Next.js',
    reason: /output standalone/,
    lines: [/\.next\/standalone/, /\/app\/public\//, /exec node server\.js/],
  },
  {
    name: 'Next.js export',
    files: {
      'package.json': json({ scripts: { build: 'next build' }, dependencies: { next: '16' } }),
      'next.config.js': 'module.exports = { output: "export" }',
      'pages/index.js': '',
    },
    strategy: 'node',
    framework: 'Next.js',
    reason: /output export/,
    lines: [/FROM nginx/, /\/app\/out\//],
  },
  {
    name: 'Next.js without a build script',
    files: { 'package.json': json({ dependencies: { next: '16' } }), 'pages/index.js': '' },
    strategy: 'node',
    framework: 'Next.js',
    reason: /./,
    lines: [/node_modules\/\.bin\/next build$/m],
  },
  {
    name: 'keys that are there only when it runs',
    strategy: 'node',
    framework: 'Next.js',
    reason: /./,
    files: {
      'package.json': json({ scripts: { build: 'next build' }, dependencies: { next: '16', openai: '6' } }),
      'app/page.tsx': '',
      '.env.example': 'MAIL_TOKEN=\n# AUTH_SECRET=x\nNEXT_PUBLIC_MAP_KEY=\nSENTRY_AUTH_TOKEN=\nDATABASE_URL=\n',
    },
    lines: [
      /\nARG AUTH_SECRET=given-when-it-runs\nARG MAIL_TOKEN=given-when-it-runs\nARG OPENAI_API_KEY=given-when-it-runs\n# step: package\.json \| running the build script/,
    ],
  },
  {
    name: 'NestJS, whose start script compiles',
    files: {
      'package.json': json({
        scripts: { build: 'nest build', start: 'nest start', 'start:prod': 'node dist/main' },
        dependencies: { '@nestjs/core': '11' },
      }),
      'src/main.ts': 'await app.listen(3000);',
    },
    strategy: 'node',
    framework: 'NestJS',
    reason: /start:prod script.*listens on port 3000/,
    lines: [/npm run build/, /exec node dist\/main/],
  },
  {
    name: 'a start script whose file several build scripts leave',
    files: {
      'package.json': json({
        scripts: { start: 'node build/index.js', 'build:server': 'tsc', 'build:css': 'tailwindcss', test: 'x' },
        dependencies: { express: '5' },
      }),
    },
    strategy: 'node',
    framework: 'Express',
    reason: /start script/,
    lines: [/npm run build:server/, /npm run build:css/],
  },
  {
    name: 'Next.js of before 15, which brings no sharp',
    files: {
      'package.json': json({
        scripts: { build: 'next build', start: 'next start' },
        dependencies: { next: '^13.4.4' },
      }),
      'app/page.tsx': '',
    },
    strategy: 'node',
    framework: 'Next.js',
    reason: /next is among/,
    lines: [
      /npm install --prefix \/opt\/sharp sharp@\S+ \|\| \{ .*mkdir \/opt\/sharp && echo "moorage-warning: sharp package\.json"; \}$/m,
      /ENV NEXT_SHARP_PATH=\/opt\/sharp\/node_modules\/sharp/,
    ],
  },
  {
    name: 'a start script that builds first',
    files: {
      'package.json': json({
        scripts: { build: 'tsc', start: 'npm run build && node dist/server.js' },
        dependencies: { fastify: '5' },
      }),
    },
    strategy: 'node',
    framework: 'Fastify',
    reason: /start script/,
    lines: [/exec node dist\/server\.js"/],
  },
  {
    name: 'Nuxt 2',
    files: { 'package.json': json({ scripts: { build: 'nuxt build' }, dependencies: { nuxt: '^2.15.7' } }) },
    strategy: 'node',
    framework: 'Nuxt',
    reason: /Node 16/,
    lines: [/^FROM node:16-bookworm-slim$/m, /nuxt start --hostname 0\.0\.0\.0 --port \$PORT/],
  },
  {
    name: 'SvelteKit with adapter-auto',
    files: {
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { '@sveltejs/kit': '2', vite: '7' } }),
      'svelte.config.js': "import adapter from '@sveltejs/adapter-auto';",
    },
    strategy: 'node',
    framework: 'SvelteKit',
    reason: /adapter-auto knows no platform here, so the build takes @sveltejs\/adapter-node 5 instead/,
    lines: [
      /npm install --prefix \/opt\/replaced .*@sveltejs\/adapter-node@5 && rm -rf node_modules\/@sveltejs\/adapter-auto/,
      /exec node build/,
    ],
  },
  {
    name: 'SvelteKit 1 with adapter-auto, with the adapter of its time',
    files: {
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { '@sveltejs/kit': '^1.20.4' } }),
      'svelte.config.js':
        "import adapter from '@sveltejs/adapter-auto';\nexport default { kit: { adapter: adapter() } };",
    },
    strategy: 'node',
    framework: 'SvelteKit',
    reason: /@sveltejs\/adapter-node 1 instead/,
  },
  {
    name: 'SvelteKit with an adapter by condition, in the folder that it sets',
    files: {
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { '@sveltejs/kit': '2' } }),
      'svelte.config.js':
        "import vercel from '@sveltejs/adapter-vercel';\nimport node from '@sveltejs/adapter-node';\nexport default { kit: { adapter: process.env.VERCEL ? vercel() : node({ out: 'server' }) } };",
    },
    strategy: 'node',
    framework: 'SvelteKit',
    reason: /adapter-node is its adapter/,
    lines: [/exec node server"/],
  },
  {
    name: 'Next.js whose output is commented out',
    files: {
      'package.json': json({ scripts: { build: 'next build' }, dependencies: { next: '16' } }),
      'app/page.tsx': '',
      'next.config.js': "module.exports = {\n  // output: 'export',\n};\n",
    },
    strategy: 'node',
    framework: 'Next.js',
    reason: /next is among its packages\./,
    lines: [/next start/],
  },
  {
    name: 'a build that asks git for its commit',
    files: {
      'package.json': json({ scripts: { build: 'vite build', start: 'node a.js' } }),
      'vite.config.ts': "const hash = execSync('git rev-parse --short HEAD').toString();\nexport default {};\n",
    },
    strategy: 'node',
    reason: /./,
    lines: [
      /install .* git ca-certificates/,
      /^RUN git init --quiet \/app$/m,
      /^RUN echo a{40} > \.git\/HEAD$/m,
      /^RUN rm -rf \.git$/m,
    ],
  },
  {
    name: 'the files next to a Dockerfile that starts a development server',
    files: {
      Dockerfile: 'FROM node:22\nCOPY . .\nRUN npm install\nCMD ["npm", "run", "dev"]\n',
      'package.json': json({ scripts: { build: 'vite build', dev: 'vite --host' }, devDependencies: { vite: '7' } }),
      'index.html': '',
    },
    strategy: 'node',
    framework: 'Vite',
    reason:
      /^Dockerfile starts a development server \("npm run dev", which is "vite --host"\), so the other files are planned\./,
  },
  {
    name: 'the files next to a Dockerfile whose own script starts a development server',
    files: {
      Dockerfile: 'FROM python:3.12\nWORKDIR /app\nCOPY . .\nCMD ["/app/start.sh"]\n',
      'start.sh': '#!/bin/bash\n# watches\nfastapi dev app/main.py --host 0.0.0.0 &\npython watcher.py\nwait\n',
      'requirements.txt': 'fastapi[standard]',
      'app/main.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
    },
    strategy: 'python',
    framework: 'FastAPI',
    reason: /^Dockerfile starts a development server \("\/app\/start\.sh", which is "fastapi dev app\/main\.py/,
  },
  {
    name: 'a Dockerfile whose own script starts a development server for developers alone',
    files: {
      Dockerfile: 'FROM python:3.12\nCOPY . .\nENTRYPOINT ["sh", "entrypoint.sh"]\n',
      'entrypoint.sh': 'if [ -n "$DEV" ]; then fastapi dev app.py; else exec uvicorn app:app --host 0.0.0.0; fi\n',
      'requirements.txt': 'fastapi[standard]',
      'app.py': 'from fastapi import FastAPI\napp = FastAPI()\n',
    },
    strategy: 'dockerfile',
    reason: /which is built as is/,
  },
  {
    name: 'Nest next to a Dockerfile that watches its sources',
    files: {
      Dockerfile: 'FROM node:22\nCOPY . .\nRUN npm ci\nCMD ["npm", "run", "start:dev"]\n',
      'package.json': json({
        scripts: {
          build: 'nest build',
          start: 'nest start',
          'start:dev': 'nest start --watch',
          'start:prod': 'node dist/main',
        },
        dependencies: { '@nestjs/core': '10' },
      }),
    },
    strategy: 'node',
    framework: 'NestJS',
    reason: /which is "nest start --watch"\), so the other files are planned\./,
  },
  {
    name: 'the files next to a Dockerfile that a developer enters',
    files: {
      Dockerfile: 'FROM python:3.12\nCOPY . .\nCMD sleep infinity\n',
      'requirements.txt': 'flask',
      'app.py': flask,
    },
    strategy: 'python',
    framework: 'Flask',
    reason: /^Dockerfile starts only "sleep infinity", which serves nothing, so the other files are planned\./,
  },
  {
    name: 'a development Dockerfile that the author asks for',
    files: {
      Dockerfile: 'FROM python:3.12\nCOPY . .\nCMD sleep infinity\n',
      'requirements.txt': 'flask',
      'app.py': flask,
    },
    changes: { strategy: 'dockerfile' },
    strategy: 'dockerfile',
    reason: /asks for Dockerfile/,
  },
  {
    name: 'SvelteKit with adapter-static',
    files: {
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { '@sveltejs/kit': '2', vite: '7' } }),
      'svelte.config.js': "import adapter from '@sveltejs/adapter-static';",
    },
    strategy: 'node',
    framework: 'SvelteKit',
    reason: /adapter-static/,
    lines: [/FROM nginx/, /\/app\/build\//],
  },
  {
    name: 'Astro with a server',
    files: {
      'package.json': json({
        scripts: { build: 'astro build', start: 'astro dev' },
        dependencies: { astro: '5', '@astrojs/node': '9' },
      }),
      'astro.config.mjs': "import node from '@astrojs/node'",
    },
    strategy: 'node',
    framework: 'Astro',
    reason: /@astrojs\/node/,
    lines: [/exec node dist\/server\/entry\.mjs/],
  },
  {
    name: 'Astro',
    files: {
      'package.json': json({ scripts: { build: 'astro build', start: 'astro dev' }, dependencies: { astro: '5' } }),
    },
    strategy: 'node',
    framework: 'Astro',
    reason: /leaves in dist/,
    lines: [/FROM nginx/, /=404;/],
  },
  {
    name: 'Vite',
    files: {
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { vite: '7' } }),
      'index.html': '',
    },
    strategy: 'node',
    framework: 'Vite',
    reason: /"build" leaves in dist/,
    lines: [/FROM nginx/, /\/index\.html; }/, /^ENV .*ELECTRON_SKIP_BINARY_DOWNLOAD=1/m],
  },
  {
    name: 'Vite to another folder',
    files: {
      'package.json': json({ scripts: { build: 'vite build', start: 'vite preview' }, devDependencies: { vite: '7' } }),
      'vite.config.ts': 'export default { build: { outDir: "./public/out/" } }',
      'index.html': '',
    },
    strategy: 'node',
    framework: 'Vite',
    reason: /public\/out/,
    lines: [/"\/app\/public\/out\/"/],
  },
  {
    name: 'Vite with a server',
    files: {
      'package.json': json({
        scripts: { build: 'vite build', start: 'node server.js' },
        dependencies: { express: '5' },
        devDependencies: { vite: '7' },
      }),
    },
    strategy: 'node',
    framework: 'Express',
    reason: /start script/,
  },

  {
    name: 'static files',
    files: { 'index.html': '', 'about.html': '' },
    strategy: 'static',
    port: 8080,
    reason: /index\.html makes this a static site/,
    lines: [/listen 8080;/, /=404;/, /COPY --link \["\.\/","\/srv\/site\/"\]/],
  },
  {
    name: 'a single page',
    files: { 'public/index.html': '' },
    strategy: 'static',
    reason: /public\/index\.html/,
    lines: [/try_files .* \/index\.html;/],
  },
  {
    name: 'static files with a manifest that starts nothing',
    files: { 'index.html': '', 'package.json': json({ devDependencies: { prettier: '3' } }) },
    strategy: 'static',
    reason: /static site/,
  },
  {
    name: 'Python beside a manifest for styles',
    files: { 'requirements.txt': 'flask', 'app.py': flask, 'package.json': json({ scripts: { start: 'tailwind' } }) },
    strategy: 'python',
    framework: 'Flask',
    reason: /could also be built as node/,
  },
];

export const refusals: readonly {
  name: string;
  files: Files;
  changes?: Changes;
  rule: string;
  file?: string;
  fix: RegExp;
}[] = [
  { name: 'nothing known', files: { 'main.bf': '' }, rule: 'plan/unknown', fix: /Add one of: a Dockerfile; Python/ },
  {
    name: 'something known below',
    files: { 'web/package.json': '{}', 'api/requirements.txt': '' },
    rule: 'plan/unknown',
    fix: /something to build in api, web: put source\.path/,
  },
  {
    name: 'another strategy',
    files: { 'index.html': '' },
    changes: { strategy: 'python' },
    rule: 'plan/unknown',
    fix: /./,
  },
  {
    name: 'Python without a start',
    files: { 'requirements.txt': 'x', 'lib.py': '' },
    rule: 'plan/no-start',
    file: 'requirements.txt',
    fix: /Procfile/,
  },
  {
    name: 'a Python app without a list of packages',
    files: { 'main.py': fastapi },
    rule: 'plan/no-packages',
    fix: /requirements\.txt.*fastapi/,
  },
  {
    name: 'an adapter for another platform',
    files: {
      'package.json': json({ scripts: { build: 'vite build' }, devDependencies: { '@sveltejs/kit': '2' } }),
      'svelte.config.js': "import adapter from '@sveltejs/adapter-vercel';",
    },
    rule: 'plan/adapter',
    file: 'svelte.config.js',
    fix: /adapter-node/,
  },
  {
    name: 'a command of the project for a terminal',
    files: {
      'pyproject.toml':
        '[project]\nname = "tidy"\ndependencies = ["click"]\n[project.scripts]\ntidy = "tidy.cli:main"\n',
      'tidy/cli.py': 'import click\n@click.command()\ndef main():\n    print("tidy")\n',
    },
    rule: 'plan/no-server',
    file: 'pyproject.toml',
    fix: /run\.command/,
  },
  {
    name: 'a page of Yew that Trunk builds',
    files: {
      'Cargo.toml': '[package]\nname = "page"\n[dependencies]\nyew = { version = "0.21", features = ["csr"] }\n',
      'src/main.rs': 'fn main() {}',
      'Trunk.toml': '',
      'index.html': '<link data-trunk rel="css" href="a.css">',
    },
    rule: 'plan/browser-program',
    file: 'Trunk.toml',
    fix: /trunk build --release.*source\.path: dist/,
  },
  {
    name: 'a server whose page Trunk would have to build',
    files: {
      'Cargo.toml': '[workspace]\nmembers = ["server", "frontend"]\n',
      'server/Cargo.toml': '[package]\nname = "server"\n[dependencies]\naxum = "0.7"\n',
      'server/src/main.rs': 'fn main() {}',
      'frontend/Cargo.toml': '[package]\nname = "frontend"\n[dependencies]\nyew = "0.21"\n',
      'frontend/src/main.rs': 'fn main() {}',
      'frontend/index.html': '<link data-trunk rel="rust" />',
    },
    rule: 'plan/half-app',
    file: 'frontend/index.html',
    fix: /Dockerfile that builds both/,
  },
  {
    name: 'a workspace with Next.js below',
    files: {
      'package.json': json({ scripts: { start: 'next start' }, dependencies: { next: '16' } }),
      'web/package.json': '{}',
    },
    rule: 'plan/no-start',
    file: 'package.json',
    fix: /something to build in web/,
  },
  {
    name: 'Node without a start',
    files: { 'package.json': '{}' },
    rule: 'plan/no-start',
    file: 'package.json',
    fix: /"start" script/,
  },
  {
    name: 'a manifest that is no JSON',
    files: { 'package.json': '{' },
    rule: 'plan/manifest',
    file: 'package.json',
    fix: /Correct the syntax/,
  },
  {
    name: 'a Python that no image has',
    files: { 'pyproject.toml': '[project]\nname="x"\nrequires-python="<3.8"\n', 'app.py': flask },
    rule: 'plan/python-version',
    file: 'pyproject.toml',
    fix: /Widen it to include one of 3\.11, 3\.13/,
  },
];
