// Plans Go apps: builds the pages that they embed, then one program, in a small image.
import { debianImage, languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import {
  renderCopy,
  renderArguments,
  defaultPort,
  renderDockerfile,
  type Planner,
  type PlanInput,
  type Problem,
  type Recipe,
  renderShellCommand,
  quoteShellWord,
  renderStep,
} from '../recipe.ts';
import { findFrontend, type Frontend, renderFrontendStage, findMissingImage } from '../common/frontend.ts';
import { findDeclaredStart } from '../platforms/start.ts';
import { findMain, findServing, type MainPackage, listMissingEmbeds, type Serving } from './main-package.ts';

const ignore = ['.git', '**/node_modules', '**/.DS_Store'];
const program = '/usr/local/bin/server';
const cache = '--mount=type=cache,target=/root/.cache --mount=type=cache,target=/go/pkg/mod';
/** Modules that need cgo. */
const cgo =
  /^\s{0,9}(?:require )?(?:github\.com\/(?:mattn\/go-sqlite3|confluentinc\/confluent-kafka-go|h2non\/bimg|davidbyttow\/govips|otiai10\/gosseract|chai2010\/webp|go-skynet|ggerganov|webview|go-gl)|gocv\.io)\S{0,80} v\S{1,80}(?! \/\/ indirect)/m;

export const go: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const goMod = tree.readFile('go.mod');
    if (goMod === undefined) return undefined;
    const main = findMain(tree, /^module\s{1,9}"?(\S{1,300}?)"?\s*$/m.exec(goMod)?.[1] ?? '');
    if (main === undefined) return createNoMainProblem();
    return (
      findMissingImage(input, [languages.go.images[0].build], 'Go', 'go.mod') ??
      createRecipe(tree, input, { goMod, main, serving: findServing(tree, goMod), pages: findPages(tree) })
    );
  },
};

interface Pages {
  readonly frontend: Frontend;
  /** The embedded folder. */
  readonly embedded: string;
}

interface Parts {
  readonly goMod: string;
  readonly main: MainPackage;
  readonly serving: Serving;
  readonly pages: Pages | undefined;
}

function findPages(tree: Tree): Pages | undefined {
  return listMissingEmbeds(tree).flatMap((embedded) => {
    const frontend = findFrontend(tree, embedded);
    return frontend === undefined ? [] : [{ frontend, embedded }];
  })[0];
}

function createNoMainProblem(): Problem {
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file: 'go.mod',
      message: 'This is a Go module, but it has no package main that could be started.',
      fix: 'Put the app into a package main at the top or in cmd/NAME, or set source.path in moorage.yaml to the folder of its go.mod.',
    },
  };
}

function createRecipe(tree: Tree, input: PlanInput, parts: Parts): Recipe {
  const { serving, pages } = parts;
  const web = findDeclaredStart(tree)?.command;
  const literal = web === undefined ? serving.port : undefined;
  const port = input.port ?? literal ?? defaultPort;
  const reason = explainPlan(parts, literal);
  return {
    plan: { strategy: 'go', reason, port },
    dockerfile: renderDockerfile(reason, [
      ...(pages === undefined
        ? []
        : [
            ...renderFrontendStage(tree, pages.frontend, {
              target: pages.embedded,
              missingImages: input.missingImages,
            }),
            '',
          ]),
      ...renderBuildStage(tree, input, parts),
      '',
      ...renderRunStage(port, web === undefined ? `exec ${program}${serving.arguments}` : replaceProgramPath(web)),
    ]),
    ignore,
    ...(pages === undefined ? {} : { builds: [pages.frontend.folder] }),
    findings: [],
  };
}

function explainPlan({ main, pages }: Parts, literal: number | undefined): string {
  return [
    `go.mod makes this a Go app. ${main.folder === '.' ? 'Its package main is at the top.' : `${main.folder} is its package main.`}`,
    main.others.length === 0
      ? undefined
      : `There are others, which are not started: ${main.others.slice(0, 4).join(', ')}.`,
    pages === undefined
      ? undefined
      : `It embeds ${pages.embedded}, which the script ${pages.frontend.script} in ${pages.frontend.folder} builds first.`,
    literal === undefined ? undefined : `Its code listens on port ${literal}.`,
  ]
    .filter((part) => part !== undefined)
    .join(' ');
}

/** A Procfile names the program by its path on another platform. */
function replaceProgramPath(web: string): string {
  return web.replace(/^exec (?:go run \S{1,100}|(?:\.\/)?(?:bin\/)?[\w.-]{1,80})(?= |$)/, `exec ${program}`);
}

function renderBuildStage(tree: Tree, input: PlanInput, { goMod, main, pages }: Parts): string[] {
  const local = /^\s{0,9}(?:replace )?\S{1,200}(?: \S{1,60})? => \.{1,2}\//m.test(goMod);
  const manifests = ['go.mod', ...(tree.has('go.sum') ? ['go.sum'] : [])];
  const isTreeNeeded = local || tree.has('go.work') || tree.getEntry('vendor')?.kind === 'directory';
  return [
    `FROM ${languages.go.images[0].build} AS build`,
    // go.mod may request a newer Go than the image has.
    `ENV CGO_ENABLED=${cgo.test(goMod) ? 1 : 0} GOTOOLCHAIN=auto GOFLAGS=-buildvcs=false`,
    'WORKDIR /app',
    ...renderArguments(input),
    ...(isTreeNeeded
      ? []
      : [
          renderCopy(manifests, './'),
          ...renderStep('go.mod', 'downloading the modules', `RUN ${cache} go mod download`),
        ]),
    'COPY . .',
    ...(pages === undefined
      ? []
      : [renderCopy([`/app/${pages.embedded}/`], `./${pages.embedded}/`, '--from=frontend')]),
    ...renderStep(
      'go.mod',
      'compiling the program',
      `RUN ${cache} go build -trimpath -tags timetzdata -ldflags "-s -w" -o /out/server ${quoteShellWord(`./${main.folder === '.' ? '' : main.folder}`)}`,
    ),
  ];
}

function renderRunStage(port: number, command: string): string[] {
  return [
    `FROM ${debianImage}`,
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    'COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt',
    `COPY --from=build /out/server ${program}`,
    'WORKDIR /app',
    // Templates, pages and migrations that the program reads at run time.
    renderCopy(['.'], './', '--chown=1000:1000'),
    `ENV PORT=${port} HOST=0.0.0.0 GIN_MODE=release`,
    'USER 1000:1000',
    `EXPOSE ${port}`,
    renderShellCommand(command),
  ];
}
