// Builds the stage that publishes a .NET project, and detects Node pages that no project builds.
import { posix } from 'node:path';
import { defaultNode } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { formatReport } from '../build-warnings.ts';
import { renderArguments, type PlanInput, type Problem, quoteShellWord, renderStep } from '../recipe.ts';
import { readProject } from '../node/project.ts';
import type { DotnetProject } from './project.ts';
import { type DotnetChoice, removePin } from './version.ts';

const cache = '--mount=type=cache,target=/root/.nuget/packages';
/** Properties that make publishing produce something other than assemblies for `dotnet`. */
const unfit = ['PublishAot', 'PublishSingleFile', 'SelfContained', 'PublishTrimmed', 'PublishReadyToRun'];

export function renderPublishStage(
  tree: Tree,
  input: PlanInput,
  project: DotnetProject,
  choice: DotnetChoice,
): string[] {
  const json = removePin(tree);
  const { path, kind } = project;
  const options = [
    // Warnings from a newer SDK or about outdated packages are not the author's errors.
    '-p:TreatWarningsAsErrors=false',
    '-p:NuGetAudit=false',
    ...(kind === 'wasm'
      ? []
      : [
          '-p:UseAppHost=false',
          ...unfit.flatMap((each) => (hasTrueProperty(project, each) ? [`-p:${each}=false`] : [])),
        ]),
    ...(choice.target === undefined ? [] : [`-p:TargetFramework=${choice.target}`]),
  ].join(' ');
  return [
    `FROM ${choice.sdk.build} AS build`,
    'ENV DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1 NUGET_XMLDOC_MODE=skip',
    'WORKDIR /app',
    ...renderArguments(input),
    ...renderNodeLines(project),
    'COPY . .',
    ...(json === undefined
      ? []
      : renderStep(
          'global.json',
          'allowing any SDK of the image',
          `RUN printf '%s' ${quoteShellWord(json)} > global.json`,
        )),
    ...(hasToolCall(tree, project)
      ? renderStep('.config/dotnet-tools.json', 'installing the tools', `RUN ${cache} dotnet tool restore`)
      : []),
    ...renderLockedRestore(tree, project, options),
    ...renderStep(
      path,
      'publishing the app',
      `RUN ${cache} dotnet publish ${quoteShellWord(path)} -c Release -o /out ${options} -p:RestoreLockedMode=false`,
    ),
  ];
}

/** Returns whether the project itself sets the property. */
function hasTrueProperty({ text }: DotnetProject, name: string): boolean {
  return new RegExp(`<${name}(?:\\s[^>]{0,300})?>\\s{0,20}true`, 'i').test(text);
}

/** Returns whether a build step calls a tool of the repository. */
function hasToolCall(tree: Tree, { text }: DotnetProject): boolean {
  return tree.has('.config/dotnet-tools.json') && /<Exec\s[^>]{0,600}Command\s?=\s?"[^"]{0,300}\bdotnet\s/.test(text);
}

/** Templates with React, Angular or Vue run npm while publishing. */
function renderNodeLines({ text }: DotnetProject): string[] {
  const calls = /<SpaRoot>|\.esproj"|Command\s?=\s?"[^"]{0,300}\b(?:npm|npx|yarn|pnpm|node)\b/.test(text);
  return calls
    ? [
        `COPY --from=${defaultNode} /usr/local/bin/ /usr/local/bin/`,
        `COPY --from=${defaultNode} /usr/local/lib/node_modules/ /usr/local/lib/node_modules/`,
        'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt',
      ]
    : [];
}

/** Restores packages with the lock file; if that fails, restores without it and reports a warning. */
function renderLockedRestore(tree: Tree, { path, folder }: DotnetProject, options: string): string[] {
  const file = posix.join(folder, 'packages.lock.json');
  if (!tree.has(file)) return [];
  const restore = `dotnet restore ${quoteShellWord(path)} -p:Configuration=Release ${options}`;
  return renderStep(
    file,
    'installing the packages',
    `RUN ${cache} ${restore} --locked-mode || { ${formatReport('nuget-lock', 'packages.lock.json')}; ${restore} --force-evaluate; }`,
  );
}

const frameworks = ['@angular/core', 'react-dom', 'vue', 'svelte', 'preact', 'solid-js'];
const manifest = /^(?:[^/]+\/){1,3}package\.json$/;
const aside = /(?:^|\/)(?:tests?|e2e|docs?|website|examples?|samples?|node_modules|\.[^/]+)\//i;

/** Reports pages that nothing builds: half an app must not be served without a warning. */
export function detectOtherHalf(tree: Tree, server: DotnetProject): Problem | undefined {
  const folder = tree.entries
    .filter(({ kind, path }) => kind === 'file' && manifest.test(path) && !aside.test(path))
    .slice(0, 20)
    .map(({ path }) => posix.dirname(path))
    .find((each) => frameworks.some((name) => readProject(tree.getSubtree(each))?.dependencies.has(name) === true));
  if (folder === undefined) return undefined;
  return {
    problem: {
      rule: 'plan/half-app',
      severity: 'error',
      file: server.path,
      message: `${server.path} answers calls and has no pages; those in ${folder} are built by no project of .NET. Started alone, it is half of the app.`,
      fix: `Let the project build them when it is published (SpaRoot, or a reference to an .esproj), commit them in its wwwroot, or add a Dockerfile that does both.`,
    },
  };
}
