// Plans Go apps: builds the pages that they embed, then one program, in a small image.
import { debianImage, languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import {
  createDesktopProblem,
  renderCopy,
  renderLinkedCopy,
  renderArguments,
  defaultPort,
  markFixedPort,
  renderDockerfile,
  type Planner,
  type PlanInput,
  type Problem,
  type Recipe,
  renderShellCommand,
  quoteShellWord,
  renderStep,
  chooseProgramCertainty,
} from '../recipe.ts';
import { isMigrating, warnAboutCompiledMigrations } from '../common/migrations.ts';
import { findFrontend, type Frontend, renderFrontendStage, findMissingImage } from '../common/frontend.ts';
import { findDeclaredStart } from '../platforms/start.ts';
import { describeEdits, renderEdits, renderVariables, warnAboutEdits } from '../common/listen.ts';
import {
  findMain,
  findOwnTls,
  findServing,
  findWindowModule,
  isBoundToBinary,
  type MainPackage,
  listMissingEmbeds,
  type Serving,
} from './main-package.ts';

const ignore = ['.git', '**/node_modules', '**/.DS_Store'];
const usualProgram = '/usr/local/bin/server';
/** In the folder of the app, which it can write to. */
const programAmongFiles = '/app/moorage-server';
const cache = '--mount=type=cache,target=/root/.cache --mount=type=cache,target=/go/pkg/mod';
/** Modules that need cgo. */
const cgo =
  /^\s{0,9}(?:require )?(?:github\.com\/(?:mattn\/go-sqlite3|confluentinc\/confluent-kafka-go|h2non\/bimg|davidbyttow\/govips|otiai10\/gosseract|chai2010\/webp|go-skynet|ggerganov|webview|go-gl)|gocv\.io)\S{0,80} v\S{1,80}(?! \/\/ indirect)/m;

const migrations = {
  files: /^(?:[\w-]{1,60}\/){0,3}migrations?\/[\w.-]{1,120}\.sql$/,
  sources: /^(?!vendor\/).*\.go$/,
  applies: /migrat|goose|\.sql\b/i,
  fix: 'Embed the folder (//go:embed) and apply it when the program starts, such as with goose.Up or migrate.Up of their packages: the image has no command for it.',
} as const;

export const go: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const goMod = tree.readFile('go.mod');
    if (goMod === undefined) return undefined;
    const main = chooseMain(findMain(tree, goMod), input);
    if (main === undefined) return createNoMainProblem();
    const window = findWindowModule(tree, goMod, main);
    if (window !== undefined) return createDesktopProblem(window, { file: 'go.mod' });
    const own = findOwnTls(tree, main);
    if (own !== undefined) return createOwnTlsProblem(own);
    return (
      findMissingImage(input, [languages.go.images[0].build], 'Go', 'go.mod') ??
      createRecipe(tree, input, {
        goMod,
        main,
        serving: findServing(tree, goMod, main),
        pages: findPages(tree),
        program: isBoundToBinary(tree, main) ? programAmongFiles : usualProgram,
      })
    );
  },
};

/** Prefers the package that was found to be the server. */
function chooseMain(main: MainPackage | undefined, { start }: PlanInput): MainPackage | undefined {
  const folder = start?.folder;
  if (main === undefined || folder === undefined || folder === main.folder) return main;
  return { folder, others: [main.folder, ...main.others].filter((each) => each !== folder) };
}

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
  /** Path of the binary in the image. */
  readonly program: string;
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

function createOwnTlsProblem(file: string): Problem {
  return {
    problem: {
      rule: 'plan/own-tls',
      severity: 'error',
      file,
      message:
        'The program answers HTTPS alone, with its own certificate. Here HTTPS ends before the app, which has to answer plain HTTP.',
      fix: 'Serve plain HTTP on $PORT: replace ListenAndServeTLS by ListenAndServe, or let an option or a variable choose between them. Visitors reach the app by HTTPS all the same.',
    },
  };
}

function createRecipe(tree: Tree, input: PlanInput, parts: Parts): Recipe {
  const { serving, pages, program } = parts;
  const web = findWebCommand(tree, input);
  const { listening } = serving;
  const literal = web === undefined ? listening.port : undefined;
  const port = input.port ?? literal ?? defaultPort;
  const reason = explainPlan(parts, literal);
  return {
    plan: {
      strategy: 'go',
      reason,
      port,
      certainty: chooseProgramCertainty(input, web, parts.main),
    },
    ...markFixedPort(input, literal),
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
      ...renderRunStage(
        port,
        parts,
        web === undefined ? `exec ${program}${serving.arguments}` : replaceProgramPath(web, program),
      ),
    ]),
    ignore,
    ...(pages === undefined ? {} : { builds: [pages.frontend.folder] }),
    findings: [
      ...warnAboutEdits(listening.edits),
      ...(web !== undefined && isMigrating(web) ? [] : warnAboutCompiledMigrations(tree, migrations)),
    ],
  };
}

function findWebCommand(tree: Tree, { start }: PlanInput): string | undefined {
  return start?.command ?? findDeclaredStart(tree)?.command;
}

function explainPlan({ main, pages, serving }: Parts, literal: number | undefined): string {
  return [
    `go.mod makes this a Go app. ${main.folder === '.' ? 'Its package main is at the top.' : `${main.folder} is its package main.`}`,
    main.others.length === 0
      ? undefined
      : `There are others, which are not started: ${main.others.slice(0, 4).join(', ')}.`,
    pages === undefined
      ? undefined
      : `It embeds ${pages.embedded}, which the script ${pages.frontend.script} in ${pages.frontend.folder} builds first.`,
    literal === undefined ? undefined : `Its code listens on port ${literal}.`,
    describeEdits(serving.listening.edits),
  ]
    .filter((part) => part !== undefined)
    .join(' ');
}

/** A Procfile names the program by its path on another platform. */
function replaceProgramPath(web: string, program: string): string {
  return web.replace(/^exec (?:go run \S{1,100}|(?:\.\/)?(?:bin\/)?[\w.-]{1,80})(?= |$)/, `exec ${program}`);
}

function renderBuildStage(tree: Tree, input: PlanInput, { goMod, main, pages, serving }: Parts): string[] {
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
    ...renderEdits(serving.listening.edits, 'build'),
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

function renderRunStage(port: number, { serving, program }: Parts, command: string): string[] {
  const { listening, envFile } = serving;
  return [
    `FROM ${debianImage}`,
    'RUN useradd --create-home --uid 1000 app && install -d -o 1000 -g 1000 /app',
    'WORKDIR /app',
    'COPY --link --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt',
    `COPY --link --from=build /out/server ${program}`,
    // Templates, pages and migrations that the program reads at run time.
    renderLinkedCopy(['.'], './', '--chown=1000:1000'),
    ...renderEdits(listening.edits, 'run'),
    // Its variables come from the environment here, but without the file many programs end immediately.
    ...(envFile === 'unused' ? [] : ['RUN touch .env && chown 1000:1000 .env']),
    `ENV PORT=${port} HOST=0.0.0.0 GIN_MODE=release${renderVariables(listening, port)}`,
    'USER 1000:1000',
    `EXPOSE ${port}`,
    renderShellCommand(envFile === 'written' ? `printenv > .env; ${command}` : command),
  ];
}
