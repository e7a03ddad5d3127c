// What is planned for projects of Elixir, and what is refused by name.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { mergePlatforms } from '../../../../../../controller/pipeline/plan/platforms/settings.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import type { Changes, Files } from '../plan.cases.ts';

function mix(options: { elixir?: string; deps?: string; more?: string; application?: string } = {}): string {
  const { elixir = '~> 1.14', deps = '', more = '', application = 'mod: {Shop.Application, []}' } = options;
  return `defmodule Shop.MixProject do\n  use Mix.Project\n  def project do\n    [app: :shop, elixir: "${elixir}", deps: deps()${more}]\n  end\n  def application, do: [${application}]\n  defp deps, do: [${deps}]\nend\n`;
}

const phoenix =
  '{:phoenix, "~> 1.8"}, {:phoenix_ecto, "~> 4.4"}, {:ecto_sql, "~> 3.10"}, {:postgrex, ">= 0.0.0"}, {:floki, ">= 0.30.0", only: :test}';
const endpoint = 'defmodule ShopWeb.Endpoint do\n  use Phoenix.Endpoint, otp_app: :shop\nend\n';
const aliases =
  ', aliases: ["assets.setup": ["tailwind.install"], "assets.deploy": [\n  "tailwind shop --minify",\n  "phx.digest"\n]]';
const server =
  'defmodule Shop.Application do\n  def start(_, _), do: Supervisor.start_link([{Bandit, plug: Shop}], [])\nend\n';

interface Case {
  readonly name: string;
  readonly files: Files;
  readonly changes?: Changes;
  readonly framework?: string;
  readonly port?: number;
  readonly reason?: RegExp;
  readonly lines?: readonly RegExp[];
  readonly without?: RegExp;
  readonly warnings?: readonly string[];
}

const cases: readonly Case[] = [
  {
    name: 'Phoenix with its pages and migrations',
    files: {
      'mix.exs': mix({ deps: phoenix, more: aliases }),
      'mix.lock': '',
      'lib/shop_web/endpoint.ex': endpoint,
      'config/runtime.exs': 'import Config\nport = String.to_integer(System.get_env("PORT") || "4000")\n',
      'priv/repo/migrations/1_first.exs': '',
    },
    framework: 'Phoenix',
    port: 8080,
    reason: /on Elixir 1\.18\. It keeps its data in PostgreSQL\./,
    lines: [
      /^FROM elixir:1\.18 AS build$/m,
      /^RUN mix local\.hex --force && mix local\.rebar --force$/m,
      /config :shop, ShopWeb\.Endpoint, check_origin: \["\/\/" <> System\.get_env\("PHX_HOST"\)\].* >> config\/runtime\.exs$/m,
      /^RUN mix deps\.get --only prod && mix deps\.compile$/m,
      /^RUN mix assets\.setup$/m,
      /^RUN mix assets\.deploy$/m,
      /^FROM elixir:1\.18-slim$/m,
      /PHX_SERVER=true/,
      /\( mix ecto\.migrate \) && exec mix phx\.server/,
    ],
    // The alias does it.
    without: /RUN mix phx\.digest|import Config/,
  },
  {
    name: 'Phoenix of before, with webpack and a Procfile',
    files: {
      'mix.exs': mix({ elixir: '~> 1.9', deps: '{:phoenix, "~> 1.5"}, {:ecto_sql, "~> 3.4"}' }),
      '.tool-versions': 'erlang 22.1\nelixir 1.10.4-otp-22\n',
      'lib/endpoint.ex': endpoint,
      'config/releases.exs': 'import Config\n',
      'assets/package.json': '{"scripts": {"deploy": "webpack --mode production"}}',
      'priv/repo/migrations/1_first.exs': '',
      Procfile: 'web: MIX_ENV=prod mix phx.server\n',
    },
    framework: 'Phoenix',
    reason: /on Elixir 1\.14\. Procfile defines how it starts\./,
    lines: [
      /^COPY --from=node:24\S+ \/usr\/local\/bin\/ \/usr\/local\/bin\/$/m,
      /cd assets && npm run deploy$/m,
      /^RUN mix phx\.digest$/m,
      /^RUN cp config\/releases\.exs config\/runtime\.exs && /m,
      /\( mix ecto\.migrate \) && MIX_ENV=prod mix phx\.server/,
    ],
    warnings: ['plan/elixir-version'],
  },
  {
    name: 'Phoenix whose author says himself from where it takes sockets',
    files: {
      'mix.exs': mix({ deps: '{:phoenix, "~> 1.8"}' }),
      'lib/endpoint.ex': endpoint,
      'config/prod.exs': 'config :shop, ShopWeb.Endpoint, check_origin: ["//example.org"]\n',
    },
    framework: 'Phoenix',
    without: /check_origin/,
  },
  {
    name: 'Plug and Bandit, without a database or pages',
    files: { 'mix.exs': mix({ deps: '{:bandit, "~> 1.0"}' }), 'lib/shop.ex': server },
    lines: [/exec mix run --no-halt/],
    without: /phx|ecto\.migrate|check_origin|key=/,
  },
  {
    name: 'a server of its own on a port of its own, with a package of the repository and none of Hex',
    files: {
      'mix.exs': mix({ deps: '{:words, path: "words"}' }),
      'lib/shop.ex': 'port = 4567\n{:ok, socket} = :gen_tcp.listen(port, [:binary])\n',
    },
    lines: [/^RUN mix deps\.get --only prod/m],
    without: /local\.hex/,
  },
  {
    name: 'an umbrella, by the app that its Procfile enters',
    files: {
      'mix.exs': 'defmodule X do\n  use Mix.Project\n  def project, do: [apps_path: "apps", deps: []]\nend\n',
      'apps/web/mix.exs': mix({ deps: phoenix }),
      'apps/web/lib/endpoint.ex': endpoint,
      'apps/proxy/mix.exs': mix({ deps: '{:web, in_umbrella: true}' }).replace('app: :shop', 'app: :proxy'),
      'apps/proxy/lib/proxy.ex': server,
      'apps/core/mix.exs': mix(),
      Procfile: 'web: cd apps/proxy && mix run --no-halt\n',
    },
    reason: /Of its umbrella, apps\/proxy answers\./,
    lines: [/cd apps\/proxy && mix run --no-halt/],
  },
  {
    name: 'the image that is there',
    files: { 'mix.exs': mix(), 'lib/shop.ex': server },
    changes: { missingImages: ['elixir:1.18'] },
    lines: [/^FROM elixir:1\.14 AS build$/m],
  },
  {
    name: 'a port that the settings for production write',
    files: {
      'mix.exs': mix({ deps: '{:phoenix, "~> 1.8"}' }),
      'lib/endpoint.ex': endpoint,
      'config/prod.exs': 'config :shop, ShopWeb.Endpoint, http: [port: 8081]\n',
    },
    framework: 'Phoenix',
    port: 8081,
  },
];

for (const { name, files, changes, framework, port, reason = /./, lines = [], without, warnings = [] } of cases) {
  test(`plans ${name}`, () => {
    const recipe = makePlan(createMemoryTree(files), sampleInput(changes));
    assert.equal(recipe.plan.strategy, 'elixir');
    assert.equal(recipe.plan.framework, framework);
    assert.match(recipe.plan.reason, reason);
    if (port !== undefined) assert.equal(recipe.plan.port, port);
    for (const line of lines) assert.match(recipe.dockerfile ?? '', line);
    if (without !== undefined) assert.doesNotMatch(recipe.dockerfile ?? '', without);
    assert.deepEqual(
      recipe.findings.map(({ rule }) => rule),
      warnings,
    );
  });
}

const refusals: readonly { name: string; files: Files; changes?: Changes; rule: string; message: RegExp }[] = [
  {
    name: 'a program of the command line',
    files: { 'mix.exs': mix({ application: '', more: ', escript: [main_module: Shop]' }) },
    rule: 'plan/no-server',
    message: /escript/,
  },
  {
    name: 'a library whose documentation shows a server',
    files: {
      'mix.exs': mix({ application: '', more: ', package: package()' }),
      'lib/shop.ex':
        'defmodule Shop do\n  @moduledoc """\n  {Bandit, plug: Shop}\n  use Phoenix.Endpoint\n  """\nend\n',
    },
    rule: 'plan/no-server',
    message: /an Elixir library/,
  },
  {
    name: 'an umbrella with two apps that answer',
    files: {
      'mix.exs': 'defmodule X do\n  use Mix.Project\n  def project, do: [apps_path: "apps"]\nend\n',
      'apps/a/mix.exs': mix(),
      'apps/a/lib/a.ex': server,
      'apps/b/mix.exs': mix(),
      'apps/b/lib/b.ex': server,
    },
    rule: 'plan/several-apps',
    message: /apps\/a, apps\/b/,
  },
  {
    name: 'an Elixir that there is not',
    files: { 'mix.exs': mix({ elixir: '~> 1.19' }), 'lib/shop.ex': server },
    rule: 'plan/elixir-version',
    message: /Elixir ~> 1\.19/,
  },
  {
    name: 'images that are not on the installation',
    files: { 'mix.exs': mix({ elixir: '>= 1.15.0 and < 2.0.0' }), 'lib/shop.ex': server },
    changes: { missingImages: ['elixir:1.18', 'elixir:1.18-slim'] },
    rule: 'plan/base-image',
    message: /elixir:1\.18/,
  },
];

for (const { name, files, changes, rule, message } of refusals) {
  test(`rejects ${name}`, () => {
    assert.throws(
      () => makePlan(createMemoryTree(files), sampleInput(changes)),
      (error) => {
        assert.ok(error instanceof Rejected);
        assert.equal(error.findings[0].rule, rule);
        assert.match(error.findings[0].message, message);
        return true;
      },
    );
  });
}

test('declares a database for a database package, and a volume for SQLite', () => {
  const read = (deps: string, more: Files = {}): unknown => {
    const { settings } = mergePlatforms(
      createMemoryTree({ 'mix.exs': mix({ deps }), ...more }),
      undefined,
      sampleInput(),
    );
    return [
      settings?.services?.map(({ name, type }) => `${name}: ${type}`),
      settings?.run?.env,
      settings?.run?.volumes?.map(({ path }) => path),
    ];
  };
  const key = [
    { name: 'SECRET_KEY_BASE', value: '${{secret}}' },
    { name: 'PHX_HOST', value: '${{app.host}}' },
  ];
  assert.deepEqual(read(phoenix), [['db: postgres'], key, undefined]);
  assert.deepEqual(read('{:postgrex, ">= 0.0.0", only: [:dev, :test]}'), [undefined, undefined, undefined]);
  assert.deepEqual(read('{:ecto_sqlite3, ">= 0.0.0"}'), [
    undefined,
    [{ name: 'DATABASE_PATH', value: '/data/app.db' }],
    ['/data'],
  ]);
  const compose = 'services:\n  store:\n    image: postgres:15\n';
  assert.deepEqual(read(phoenix, { 'compose.yaml': compose }), [['store: postgres'], key, undefined]);
});
