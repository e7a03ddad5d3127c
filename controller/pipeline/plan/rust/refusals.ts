// Rejects Rust projects that are no server, or of which cargo alone builds only a part: pages for a browser, desktop apps,
// tools for a terminal, and programs that embed missing files.
import { posix } from 'node:path';
import { parseToml, readField, readKeys, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { findFrontend } from '../common/frontend.ts';
import { createDesktopProblem, type Problem } from '../recipe.ts';
import { findPackageFolder, hasListeningCall, type Program, type RustFile } from './program.ts';

const tests = /(?:^|\/)(?:tests?|benches|examples|target)\//;

/** Crates for pages that run in a browser, with the names that a message uses. */
const browserCrates: Readonly<Record<string, string>> = {
  yew: 'Yew',
  leptos: 'Leptos',
  sycamore: 'Sycamore',
  seed: 'Seed',
  'dioxus-web': 'Dioxus',
};

/**
 * Rejects a program that Trunk compiles for a browser: started as a server, it ends at its first call of the page. A
 * server in the same repository would be started without its page. Undefined if there is no such page.
 */
export function detectBrowserProgram(tree: Tree): Problem | undefined {
  const trunkFile = tree.entries.find((each) => each.kind === 'file' && isTrunkPage(tree, each.path))?.path;
  const crate = readKeys(parseToml(tree.readFile('Cargo.toml')), 'dependencies').find((name) =>
    Object.hasOwn(browserCrates, name),
  );
  if (hasServerCrate(tree)) return trunkFile === undefined ? undefined : createHalfAppProblem(trunkFile);
  if (trunkFile === undefined && crate === undefined) return undefined;
  const made = [
    ...(crate === undefined ? [] : [browserCrates[crate]]),
    ...(trunkFile === undefined ? [] : ['built by Trunk']),
  ].join(', ');
  return createBrowserProblem(trunkFile ?? 'Cargo.toml', made, 'trunk build --release', 'dist');
}

function createBrowserProblem(file: string, made: string, command: string, folder: string): Problem {
  return {
    problem: {
      rule: 'plan/browser-program',
      severity: 'error',
      file,
      message: `This is a page for the browser (${made}): its program is compiled to WebAssembly and answers no HTTP, so it cannot be started as a server.`,
      fix: `Commit the folder that "${command}" makes, and set source.path: ${folder} and build.strategy: static in moorage.yaml; or add a Dockerfile that builds the page and serves it on $PORT.`,
    },
  };
}

function isTrunkPage(tree: Tree, path: string): boolean {
  if (/^(?:[^/]{1,60}\/){0,2}Trunk\.toml$/.test(path)) return true;
  const isPage = /^(?:[^/]{1,60}\/){0,2}index\.html$/.test(path) && !tests.test(path);
  return isPage && /<link[^>]{0,200}\bdata-trunk\b/.test(tree.readFile(path, 256 * 1024) ?? '');
}

function createHalfAppProblem(file: string): Problem {
  return {
    problem: {
      rule: 'plan/half-app',
      severity: 'error',
      file,
      message:
        'The repository has a server and a page that Trunk builds for the browser. A plan would start the server without its page.',
      fix: 'Add a Dockerfile that builds both ("trunk build --release" and cargo build), and starts the server on 0.0.0.0 and $PORT with the page next to it.',
    },
  };
}

function hasServerCrate(tree: Tree): boolean {
  return tree.entries
    .filter((each) => each.kind === 'file' && /^(?:[^/]{1,60}\/){0,2}Cargo\.toml$/.test(each.path))
    .some((each) => servers.test(tree.readFile(each.path) ?? ''));
}

const config = /^(?:[^/]{1,60}\/)?tauri\.conf\.json5?$/;
const servers =
  /^\s{0,9}"?(?:actix-web|axum|rocket|warp|hyper|tide|poem|salvo|gotham|ntex|tonic)"?(?:\.workspace)?\s{0,9}=/m;

/** Rejects known desktop frameworks; undefined if the program serves, or opens no window. */
export function detectDesktopApp(tree: Tree): Problem | undefined {
  const file = tree.entries.find((each) => each.kind === 'file' && config.test(each.path))?.path;
  if (file === undefined) return undefined;
  if (hasServerCrate(tree)) return undefined;
  const hint = 'If its pages work in a browser alone, set build.strategy: node in moorage.yaml.';
  return createDesktopProblem('Tauri', { file, hint });
}

const browserHint = 'If it runs in a browser too, commit that build and set build.strategy: static in moorage.yaml.';

/** Crates that open windows, with the names that a message uses. */
const windowCrates: Readonly<Record<string, string>> = {
  iced: 'iced',
  eframe: 'egui',
  gtk: 'GTK',
  gtk4: 'GTK',
  relm4: 'GTK',
  libadwaita: 'GTK',
  druid: 'Druid',
  slint: 'Slint',
  fltk: 'FLTK',
  floem: 'Floem',
  gpui: 'GPUI',
  'native-windows-gui': 'Windows',
  winit: 'winit',
  sdl2: 'SDL',
  minifb: 'minifb',
  macroquad: 'Macroquad',
  ggez: 'ggez',
  bevy: 'Bevy',
  nannou: 'Nannou',
};

/** Rejects a program whose package draws its own windows, unless the repository has a server or the program listens. */
export function detectWindowProgram(tree: Tree, { folder }: Program, files: readonly RustFile[]): Problem | undefined {
  const file = posix.join(folder, 'Cargo.toml');
  const manifest = parseToml(tree.readFile(file));
  const crate = readKeys(manifest, 'dependencies').find(
    (name) => Object.hasOwn(windowCrates, name) && readField(manifest, 'dependencies', name, 'optional') !== true,
  );
  if (crate === undefined || hasServerCrate(tree) || hasListeningCall(files)) return undefined;
  return createDesktopProblem(windowCrates[crate] ?? crate, { file, hint: browserHint });
}

const lockBytes = 4 * 1024 * 1024;
/** Crates without which a program can listen only by the standard library. Clients of HTTP need some of them too. */
const networkCrates =
  /^name = "(?:tokio|async-std|async-io|smol|mio|may|monoio|glommio|compio|io-uring|polling|socket2|hyper|h2|http|httparse|tiny_http|rouille|nickel|iron|ws|tungstenite|zmq|nng|libp2p|quinn|fastcgi\w{0,20}|cgi)"$/m;

/**
 * Rejects a program that cannot listen: none of its sources does, and Cargo.lock has no crate that could. Without a
 * lock file, crates may bring in others that nobody sees.
 */
export function detectTerminalProgram(tree: Tree, { name }: Program, files: readonly RustFile[]): Problem | undefined {
  const lock = tree.readFile('Cargo.lock', lockBytes);
  if (lock === undefined || files.length === 0 || networkCrates.test(lock) || hasListeningCall(files)) return undefined;
  return {
    problem: {
      rule: 'plan/no-server',
      severity: 'error',
      file: 'Cargo.toml',
      message: `The program ${name} is a tool for a terminal: nothing in its code listens for HTTP, and Cargo.lock has no crate that could.`,
      fix: 'Only apps that answer HTTP are hosted. If it has a page, set run.command in moorage.yaml to what serves it on $PORT, or add a Dockerfile.',
    },
  };
}

/**
 * Rejects a program of which cargo builds only a part: Leptos and Dioxus compile it twice, for the server and for the
 * browser, with a tool of their own. A window of Dioxus answers no HTTP.
 */
export function detectTwofoldProgram(tree: Tree, { folder }: Program): Problem | undefined {
  const file = posix.join(folder, 'Cargo.toml');
  const manifest = parseToml(tree.readFile(file));
  const workspace = readField(parseToml(tree.readFile('Cargo.toml')), 'workspace');
  const isLeptos = [readField(manifest, 'package'), workspace].some(
    (each) => readField(each, 'metadata', 'leptos') !== undefined,
  );
  if (isLeptos) return createTwofoldProblem(file, 'Leptos', 'cargo leptos build --release', 'LEPTOS_SITE_ADDR');
  const crates = readKeys(manifest, 'dependencies').filter((name) => /^dioxus(?:-\w+)?$/.test(name));
  if (crates.length === 0) return undefined;
  const features = [
    ...readTexts(manifest, 'dependencies', 'dioxus', 'features'),
    ...readTexts(workspace, 'dependencies', 'dioxus', 'features'),
    ...readTexts(manifest, 'features', 'default'),
  ];
  if (crates.includes('dioxus-desktop') || features.some((each) => /^(?:desktop|mobile|native)$/.test(each)))
    return createDesktopProblem('Dioxus', { file, hint: browserHint });
  const isFullstack = features.includes('fullstack') || readField(manifest, 'features', 'server') !== undefined;
  if (isFullstack) return createTwofoldProblem(file, 'Dioxus', 'dx bundle --platform web --release', 'IP');
  return hasServerCrate(tree)
    ? undefined
    : createBrowserProblem(file, 'Dioxus', 'dx bundle --platform web --release --out-dir dist', 'dist/public');
}

function createTwofoldProblem(file: string, framework: string, command: string, variable: string): Problem {
  return {
    problem: {
      rule: 'plan/half-app',
      severity: 'error',
      file,
      message: `This is a ${framework} app: its own tool compiles it twice, for the server and for the browser. Cargo alone would build a server without its page.`,
      fix: `Add a Dockerfile that runs "${command}", and starts the server with the files that this makes, on 0.0.0.0 and $PORT (${variable} sets its address).`,
    },
  };
}

/** Rejects what the compiler would stop at: files that are to become part of the program and are nowhere. */
export function detectMissingParts(tree: Tree, files: readonly RustFile[]): Problem | undefined {
  for (const { path, facts } of files)
    for (const embed of facts.embeds) {
      const own = findPackageFolder(tree, path);
      const base = embed.kind === 'file' ? posix.dirname(path) : own;
      const target = posix.normalize(posix.join(base, embed.path)).replace(/\/$/, '');
      if (/[$%]/.test(embed.path) || embed.path.startsWith('/') || tree.getEntry(target) !== undefined) continue;
      return createMissingPartProblem(tree, path, embed.line, target);
    }
  return undefined;
}

function createMissingPartProblem(tree: Tree, file: string, line: number, target: string): Problem {
  const isOutside = target.startsWith('../');
  const frontend = isOutside
    ? undefined
    : findFrontend(tree, posix.extname(target) === '' ? target : posix.dirname(target));
  const build =
    frontend === undefined
      ? 'builds it'
      : `runs the script ${frontend.script} in ${frontend.folder === '.' ? 'the top folder' : frontend.folder}`;
  return {
    problem: {
      rule: 'plan/missing-part',
      severity: 'error',
      file,
      line,
      message: isOutside
        ? `This line compiles ${target} into the program, which is outside of the folder that is built.`
        : `This line compiles ${target} into the program, and the repository does not have it.`,
      fix: isOutside
        ? 'Add a Dockerfile to the top folder of the repository that builds both, or remove source.path.'
        : `Commit it, or add a Dockerfile that ${build} before it runs cargo build.`,
    },
  };
}
