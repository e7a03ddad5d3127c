// The stage that publishes a .NET project: its packages, what its pages need of Node, and one folder that comes out.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { declaredArguments, shellWord, step } from '../dockerfile-text.ts';
import { defaultNode, type PlanInput } from '../recipe.ts';
import type { DotnetProject } from './project.ts';
import { unpinned, type DotnetChoice } from './version.ts';

const cache = '--mount=type=cache,target=/root/.nuget/packages';
/** Properties by which a publication is no set of assemblies that `dotnet` starts. */
const unfit = ['PublishAot', 'PublishSingleFile', 'SelfContained', 'PublishTrimmed', 'PublishReadyToRun'];

export function publishStage(tree: Tree, input: PlanInput, project: DotnetProject, choice: DotnetChoice): string[] {
  const json = unpinned(tree);
  const { path, kind } = project;
  const options = [
    // Warnings of a newer SDK, and of packages that have aged, are no errors of the author's.
    '-p:TreatWarningsAsErrors=false',
    '-p:NuGetAudit=false',
    ...(kind === 'wasm'
      ? []
      : ['-p:UseAppHost=false', ...unfit.flatMap((each) => (isSet(project, each) ? [`-p:${each}=false`] : []))]),
    ...(choice.target === undefined ? [] : [`-p:TargetFramework=${choice.target}`]),
  ].join(' ');
  return [
    `FROM ${choice.sdk.build} AS build`,
    'ENV DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1 NUGET_XMLDOC_MODE=skip',
    'WORKDIR /app',
    ...declaredArguments(input),
    ...nodeLines(project),
    'COPY . .',
    ...(json === undefined
      ? []
      : step('global.json', 'allowing any SDK of the image', `RUN printf '%s' ${shellWord(json)} > global.json`)),
    ...(callsTools(tree, project)
      ? step('.config/dotnet-tools.json', 'installing the tools', `RUN ${cache} dotnet tool restore`)
      : []),
    ...lockLines(tree, project, options),
    ...step(
      path,
      'publishing the app',
      `RUN ${cache} dotnet publish ${shellWord(path)} -c Release -o /out ${options} -p:RestoreLockedMode=false`,
    ),
  ];
}

/** Is the property set, by the project itself? */
function isSet({ text }: DotnetProject, name: string): boolean {
  return new RegExp(`<${name}(?:\\s[^>]{0,300})?>\\s{0,20}true`, 'i').test(text);
}

/** Tools of the repository that a step of the build calls. */
function callsTools(tree: Tree, { text }: DotnetProject): boolean {
  return tree.has('.config/dotnet-tools.json') && /<Exec\s[^>]{0,600}Command\s?=\s?"[^"]{0,300}\bdotnet\s/.test(text);
}

/** Templates with pages of React, Angular or Vue build them by npm while they are published. */
function nodeLines({ text }: DotnetProject): string[] {
  const calls = /<SpaRoot>|\.esproj"|Command\s?=\s?"[^"]{0,300}\b(?:npm|npx|yarn|pnpm|node)\b/.test(text);
  return calls
    ? [
        `COPY --from=${defaultNode} /usr/local/bin/ /usr/local/bin/`,
        `COPY --from=${defaultNode} /usr/local/lib/node_modules/ /usr/local/lib/node_modules/`,
        'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt',
      ]
    : [];
}

/** The packages as the lock file has them; where that fails, anew and with a warning. */
function lockLines(tree: Tree, { path, folder }: DotnetProject, options: string): string[] {
  const file = posix.join(folder, 'packages.lock.json');
  if (!tree.has(file)) return [];
  const restore = `dotnet restore ${shellWord(path)} -p:Configuration=Release ${options}`;
  return step(
    file,
    'installing the packages',
    `RUN ${cache} ${restore} --locked-mode || { ${formatReport('nuget-lock', 'packages.lock.json')}; ${restore} --force-evaluate; }`,
  );
}
