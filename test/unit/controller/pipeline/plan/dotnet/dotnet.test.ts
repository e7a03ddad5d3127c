// What is planned for repositories of .NET, and what is refused by name.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Rejected } from '../../../../../../controller/pipeline/contract.ts';
import { findAppFolder } from '../../../../../../controller/pipeline/plan/folder.ts';
import { makePlan } from '../../../../../../controller/pipeline/plan/plan.ts';
import { mergePlatforms } from '../../../../../../controller/pipeline/plan/platforms/settings.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../../support/pipeline/sample.ts';
import type { Changes, Files } from '../plan.cases.ts';

interface ProjectText {
  readonly sdk?: string;
  readonly target?: string;
  readonly properties?: string;
  readonly packages?: readonly string[];
  readonly references?: readonly string[];
}

function project({
  sdk = 'Microsoft.NET.Sdk.Web',
  target,
  properties = '',
  packages = [],
  references = [],
}: ProjectText = {}): string {
  const framework = target === undefined ? '' : `<TargetFramework>${target}</TargetFramework>`;
  const items = [
    ...packages.map((name) => `<PackageReference Include="${name}" Version="1.0.0" />`),
    ...references.map((path) => `<ProjectReference Include="${path}" />`),
  ];
  return `\ufeff<Project Sdk="${sdk}">\n<PropertyGroup>${framework}${properties}</PropertyGroup>\n<ItemGroup>${items.join('')}</ItemGroup>\n</Project>\n`;
}

interface Case {
  readonly name: string;
  readonly files: Files;
  readonly changes?: Changes;
  readonly framework?: string;
  readonly port?: number;
  readonly reason?: RegExp;
  readonly lines?: readonly RegExp[];
  readonly without?: RegExp;
  readonly warning?: string;
}

const library = project({ sdk: 'Microsoft.NET.Sdk', target: 'net8.0' });
const tests = project({ sdk: 'Microsoft.NET.Sdk', target: 'net8.0', packages: ['Microsoft.NET.Test.Sdk'] });

const cases: readonly Case[] = [
  {
    name: 'the web project of a solution, beside a library and tests',
    files: {
      'Shop.sln': '',
      'src/Web/Web.csproj': project({ target: 'net8.0', references: [String.raw`..\Core\Core.csproj`] }),
      'src/Web/Pages/Index.cshtml': '',
      'src/Core/Core.csproj': library,
      'tests/Web.Tests/Web.Tests.csproj': project({ target: 'net8.0' }),
    },
    port: 8080,
    reason: /src\/Web\/Web\.csproj is the web app of this \.NET repository, on \.NET 8\./,
    lines: [
      /^FROM mcr\.microsoft\.com\/dotnet\/sdk:8\.0 AS build$/m,
      /dotnet publish src\/Web\/Web\.csproj -c Release -o \/out /,
      /^FROM mcr\.microsoft\.com\/dotnet\/aspnet:8\.0$/m,
      /ASPNETCORE_URLS=http:\/\/0\.0\.0\.0:\$PORT; exec dotnet Web\.dll/,
    ],
    without: /ROLL_FORWARD|global\.json|dotnet restore/,
  },
  {
    name: 'properties of the folders above, and another name of the assembly',
    files: {
      'App.slnx': '<Solution />',
      'Directory.Build.props':
        '<Project><PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup></Project>',
      'src/Web/Web.csproj': project({
        properties:
          '<!-- <TargetFramework>net6.0</TargetFramework> --><AssemblyName>Shop.Web</AssemblyName><PublishAot>true</PublishAot>',
      }),
    },
    reason: /on \.NET 10\./,
    lines: [/exec dotnet Shop\.Web\.dll/, /-p:PublishAot=false/],
  },
  {
    name: 'a target that only Directory.Packages.props names, by a property',
    files: {
      'App.sln': '',
      'Directory.Packages.props':
        '<Project><PropertyGroup><Net>net8.0</Net><TargetFramework>$(Net)</TargetFramework></PropertyGroup></Project>',
      'Web/Web.csproj': project({ properties: '<TargetFramework>$(TargetFramework)</TargetFramework>' }),
    },
    reason: /on \.NET 8\./,
  },
  {
    name: 'an older target, which the next .NET takes',
    files: { 'Shop.csproj': project({ target: 'net6.0' }) },
    reason: /on \.NET 8\./,
    lines: [/DOTNET_ROLL_FORWARD=Major/],
    warning: 'plan/dotnet-version',
  },
  {
    name: 'the next .NET where the image of its own is missing',
    files: { 'Shop.csproj': project({ target: 'net8.0' }) },
    changes: { missingImages: ['mcr.microsoft.com/dotnet/sdk:8.0'] },
    lines: [/^FROM mcr\.microsoft\.com\/dotnet\/aspnet:10\.0$/m, /DOTNET_ROLL_FORWARD=Major/],
    warning: 'plan/dotnet-version',
  },
  {
    name: 'the newest of several targets',
    files: { 'Shop.fsproj': project({ properties: '<TargetFrameworks>net8.0;net10.0;net11.0</TargetFrameworks>' }) },
    reason: /Shop\.fsproj .* on \.NET 10\./,
    lines: [/-p:TargetFramework=net10\.0/],
  },
  {
    name: 'an SDK that global.json pins, and the rest of it',
    files: {
      'global.json': '{"sdk": {"version": "10.0.400", "rollForward": "disable"}, "msbuild-sdks": {"X": "1"}}',
      'Shop.csproj': project({ target: 'net8.0' }),
    },
    lines: [
      /^FROM mcr\.microsoft\.com\/dotnet\/sdk:10\.0 AS build$/m,
      /printf '%s' '\{"msbuild-sdks":\{"X":"1"\}\}' > global\.json/,
      /aspnet:8\.0/,
    ],
  },
  {
    name: 'a lock file of NuGet',
    files: { 'Shop.csproj': project({ target: 'net8.0' }), 'packages.lock.json': '{}' },
    lines: [
      /dotnet restore Shop\.csproj .*--locked-mode \|\| \{ echo "moorage-warning: nuget-lock packages\.lock\.json"; .*--force-evaluate; \}$/m,
    ],
  },
  {
    name: 'a template with pages of Angular that the project builds',
    files: {
      'Shop.csproj': project({ target: 'net8.0', properties: '<SpaRoot>ClientApp/</SpaRoot>' }),
      'ClientApp/package.json': '{"dependencies": {"@angular/core": "19"}}',
    },
    lines: [/^COPY --from=node:24\S+ \/usr\/local\/bin\/ \/usr\/local\/bin\/$/m],
  },
  {
    name: 'Blazor WebAssembly alone',
    files: {
      'Shop.sln': '',
      'Client/Client.csproj': project({
        sdk: 'Microsoft.NET.Sdk.BlazorWebAssembly',
        target: 'net8.0',
        properties: '<PublishTrimmed>true</PublishTrimmed>',
      }),
      'Client/wwwroot/index.html': '',
      'Shared/Shared.csproj': library,
    },
    framework: 'Blazor WebAssembly',
    lines: [/^FROM nginx:/m, /^COPY --link --from=build \["\/out\/wwwroot\/","\/srv\/site\/"\]$/m],
    without: /PublishTrimmed=false|UseAppHost/,
  },
  {
    name: 'Blazor WebAssembly that a server hosts',
    files: {
      'Server/Server.csproj': project({ target: 'net8.0', references: ['../Client/Client.csproj'] }),
      'Client/Client.csproj': project({ sdk: 'Microsoft.NET.Sdk.BlazorWebAssembly', target: 'net8.0' }),
    },
    reason: /Server\/Server\.csproj is the web app/,
  },
  {
    name: 'one with pages beside an API, and a port of its own',
    files: {
      'Shop.sln': '',
      'Api/Api.csproj': project({ target: 'net8.0' }),
      'Web/Web.csproj': project({ target: 'net8.0' }),
      'Web/Components/App.razor': '',
      'Web/Program.cs': '// app.Run("http://0.0.0.0:1111");\napp.Run("http://*:5005");\n',
    },
    port: 5005,
    reason: /There are others, which are not started: Api\./,
  },
  {
    name: 'SQL Server, which is not run here',
    files: { 'Shop.csproj': project({ target: 'net8.0', packages: ['Microsoft.EntityFrameworkCore.SqlServer'] }) },
    reason: /It keeps its data in SQL Server\./,
    warning: 'plan/database',
  },
];

for (const {
  name,
  files,
  changes,
  framework = 'ASP.NET Core',
  port,
  reason = /./,
  lines = [],
  without,
  warning,
} of cases) {
  test(`plans ${name}`, () => {
    const recipe = makePlan(createMemoryTree(files), sampleInput(changes));
    assert.equal(recipe.plan.strategy, 'dotnet');
    assert.equal(recipe.plan.framework, framework);
    assert.match(recipe.plan.reason, reason);
    if (port !== undefined) assert.equal(recipe.plan.port, port);
    for (const line of lines) assert.match(recipe.dockerfile ?? '', line);
    if (without !== undefined) assert.doesNotMatch(recipe.dockerfile ?? '', without);
    assert.deepEqual(
      recipe.findings.map(({ rule }) => rule),
      warning === undefined ? [] : [warning],
    );
  });
}

const host = project({
  sdk: 'Aspire.AppHost.Sdk/13.0.0',
  target: 'net10.0',
  references: ['../Web/Web.csproj', '../Api/Api.csproj'],
});
const refusals: readonly { name: string; files: Files; changes?: Changes; rule: string; message: RegExp }[] = [
  {
    name: 'several web apps of Aspire',
    files: {
      'Shop.sln': '',
      'Host/Host.csproj': host,
      'Web/Web.csproj': project({ target: 'net10.0' }),
      'Web/App.razor': '',
      'Api/Api.csproj': project({ target: 'net10.0' }),
    },
    rule: 'plan/several-apps',
    message: /which Host\/Host\.csproj starts together: Api, Web\./,
  },
  {
    name: 'several web apps with pages',
    files: {
      'One/One.csproj': project({ target: 'net8.0' }),
      'One/A.razor': '',
      'Two/Two.csproj': project({ target: 'net8.0' }),
      'Two/B.razor': '',
    },
    rule: 'plan/several-apps',
    message: /nothing says which of them to host: One, Two\./,
  },
  {
    name: 'a console program',
    files: {
      'Tool.csproj': project({
        sdk: 'Microsoft.NET.Sdk',
        target: 'net8.0',
        properties: '<OutputType>Exe</OutputType>',
      }),
    },
    rule: 'plan/no-server',
    message: /Tool\.csproj is a console program/,
  },
  {
    name: 'a library with samples',
    files: {
      'Lib.sln': '',
      'src/Lib/Lib.csproj': library,
      'samples/Web/Web.csproj': project({ target: 'net8.0' }),
      'test/X/X.csproj': tests,
    },
    rule: 'plan/no-server',
    message: /src\/Lib\/Lib\.csproj is a library/,
  },
  {
    name: 'a desktop app',
    files: {
      'App.csproj': project({
        sdk: 'Microsoft.NET.Sdk',
        target: 'net8.0-windows',
        properties: '<UseWPF>true</UseWPF>',
      }),
    },
    rule: 'plan/desktop-app',
    message: /a desktop or mobile app/,
  },
  {
    name: 'a .NET that nothing here runs',
    files: { 'Shop.csproj': project({ target: 'netcoreapp2.0' }) },
    rule: 'plan/dotnet-version',
    message: /targets netcoreapp2\.0/,
  },
  {
    name: 'an API whose pages no project builds',
    files: {
      'Shop.sln': '',
      'Api/Api.csproj': project({ target: 'net8.0' }),
      'UI/Web/package.json': '{"dependencies": {"@angular/core": "19"}, "scripts": {"start": "npm run x && ng serve"}}',
    },
    rule: 'plan/half-app',
    message: /those in UI\/Web are built by no project of \.NET/,
  },
  {
    name: 'an image that is not on the installation',
    files: { 'Shop.csproj': project({ target: 'net10.0' }) },
    changes: { missingImages: ['mcr.microsoft.com/dotnet/aspnet:10.0'] },
    rule: 'plan/base-image',
    message: /mcr\.microsoft\.com\/dotnet\/aspnet:10\.0, .* is not on this installation/,
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

test('counts a .NET worker next to apps in other languages as one of several, but not the projects of one solution', () => {
  const worker = project({ sdk: 'Microsoft.NET.Sdk', target: 'net8.0', properties: '<OutputType>Exe</OutputType>' });
  const mixed = createMemoryTree({
    'worker/Worker.csproj': worker,
    'vote/requirements.txt': 'flask',
    'vote/app.py': 'from flask import Flask\napp = Flask(__name__)\n',
  });
  assert.match(
    findAppFolder(mixed, sampleInput()).problem?.message ?? '',
    /vote \(Python, Flask\), worker \(\.NET, by Worker\.csproj\)/,
  );
  const one = createMemoryTree(cases.find(({ name }) => name === 'Blazor WebAssembly alone')?.files ?? {});
  assert.deepEqual(findAppFolder(one, sampleInput()), { path: '.', warnings: [] });
});

test('ignores .NET tools below a site or a Python program', () => {
  const tool = project({ sdk: 'Microsoft.NET.Sdk', target: 'net8.0', properties: '<OutputType>Exe</OutputType>' });
  const plan = (files: Files): string =>
    makePlan(createMemoryTree({ ...files, 'tools/Tool/Tool.csproj': tool }), sampleInput()).plan.strategy;
  assert.equal(plan({ 'index.html': '<p>' }), 'static');
  assert.equal(plan({ 'docs/index.html': '<p>' }), 'static');
  assert.equal(
    plan({ 'requirements.txt': 'flask', 'app.py': 'from flask import Flask\napp = Flask(__name__)\n' }),
    'python',
  );
});

test('converts connection strings to a database, or to a file on a volume', () => {
  const settings = (connection: string): string =>
    `{ // comment\n  // "x": 1\n"ConnectionStrings": {"Shop": "${connection}"}}`.replace('// comment', '');
  const read = (files: Files): unknown => {
    const { services, run } = mergePlatforms(createMemoryTree(files), undefined, sampleInput()).settings ?? {};
    return {
      services: services?.map(({ type }) => type),
      env: run?.env,
      volumes: run?.volumes?.map(({ path }) => path),
    };
  };
  const npgsql = project({ target: 'net8.0', packages: ['Npgsql.EntityFrameworkCore.PostgreSQL'] });
  assert.deepEqual(
    read({ 'Shop.csproj': npgsql, 'appsettings.json': settings('Host=localhost;Database=shop;Username=x') }),
    {
      services: ['postgres'],
      env: [
        {
          name: 'ConnectionStrings__Shop',
          value:
            'Host=${{services.db.host}};Port=${{services.db.port}};Database=${{services.db.database}};Username=${{services.db.user}};Password=${{services.db.password}}',
        },
      ],
      volumes: undefined,
    },
  );
  const sqlite = {
    'Shop.csproj': project({ target: 'net8.0' }),
    'appsettings.json': settings('DataSource=data/shop.db;Cache=Shared'),
  };
  assert.deepEqual(read(sqlite), {
    services: undefined,
    env: [{ name: 'ConnectionStrings__Shop', value: 'Data Source=/data/shop.db;Cache=Shared' }],
    volumes: ['/data'],
  });
  // A file that the repository brings is used where it is.
  assert.deepEqual(read({ ...sqlite, 'data/shop.db': '' }), {
    services: undefined,
    env: undefined,
    volumes: undefined,
  });
});
