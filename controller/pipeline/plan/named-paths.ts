// Finds paths that an app responds to, as its README and its code name them. They count as its page if there is none at /.
import { posix } from 'node:path';
import { namedPaths } from '../../../crds/status.ts';
import type { Tree } from '../tree.ts';

const maximumFiles = 300;
const maximumFileBytes = 256 * 1024;
const longestPath = 120;
/** A probe must change nothing, even where code changes something on GET. */
const isChanging = /(?:delete|remove|reset|clear|drop|logout|sign-?out|shutdown|restart|send|webhook|callback)/i;

/** Lists the paths, those that people open first: of the README, of pages, of routes that are read, of other routes. */
export function findNamedPaths(tree: Tree): string[] {
  const files = tree.entries.filter(
    ({ kind, path, bytes }) => kind === 'file' && bytes <= maximumFileBytes && sources.test(path) && !aside.test(path),
  );
  const routes = files.slice(0, maximumFiles).flatMap(({ path }) => listRoutes(path, tree.readFile(path) ?? ''));
  const reads = routes.filter(({ isRead }) => isRead);
  const all = [...listReadmePaths(tree), ...listPages(tree), ...reads.map(toPath), ...routes.map(toPath)];
  return [...new Set(all)]
    .filter((path) => path !== '/' && path.length <= longestPath && !isChanging.test(path))
    .slice(0, namedPaths);
}

const sources = /\.(?:py|[cm]?[jt]s|go|rb|php|rs)$/i;
/** Code that does not serve visitors. */
const aside =
  /(?:^|\/)(?:tests?|__tests__|spec|e2e|docs?|examples?|samples?|benchmarks?|scripts?|node_modules|vendor|venv|dist|build|\.[^/]+)\/|(?:^|[/._-])(?:test|spec)[^/]*\.[a-z]+$|\.min\.js$/i;

interface Route {
  readonly path: string;
  /** GET, or any method. */
  readonly isRead: boolean;
}

const toPath = ({ path }: Route): string => path;

/** Routes of the usual frameworks, without parameters. A prefix that a router adds is unknown, so such a path is tried in vain. */
const routes: readonly (readonly [RegExp, RegExp])[] = [
  [/\.py$/, /^[ \t]{0,20}@\w{1,40}\.(?<method>route|get|post|api_route)\(\s{0,9}["'](?<path>\/[\w./-]{1,120})["']/gm],
  [/\.py$/, /^[ \t]{0,20}(?:re_)?(?<method>path)\(\s{0,9}r?["'](?<path>[\w/-]{1,120})["']\s{0,9},/gm],
  [
    /\.[cm]?[jt]s$/,
    /\b(?:app|router|server|fastify|api)\.(?<method>get|post|all)\(\s{0,9}["'\x60](?<path>\/[\w./-]{1,120})["'\x60]/g,
  ],
  [/\.go$/, /\.(?<method>HandleFunc|Handle|GET|Get|POST|Post)\(\s{0,9}"(?:GET |POST )?(?<path>\/[\w./-]{1,120})"/g],
  [/\.rb$/, /^[ \t]{0,20}(?<method>get|post)[ \t(]{1,5}["'](?<path>\/[\w./-]{1,120})["']/gm],
  [/\.rs$/, /\.(?<method>route)\(\s{0,9}"(?<path>\/[\w./-]{1,120})"/g],
];

function listRoutes(file: string, text: string): Route[] {
  return routes
    .filter(([pattern]) => pattern.test(file))
    .flatMap(([, pattern]) => [...text.matchAll(pattern)])
    .map(({ groups }) => {
      const { method = '', path = '' } = groups ?? {};
      return { path: path.startsWith('/') ? path : `/${path}`, isRead: !/post/i.test(method) };
    });
}

const longestReadme = 64 * 1024;

/** Paths of addresses on the reader's own machine, such as http://localhost:8000/chat. */
function listReadmePaths(tree: Tree): string[] {
  const readme = tree.entries.find(({ kind, path }) => kind === 'file' && /^readme(?:\.\w{1,10})?$/i.test(path));
  const text = readme === undefined ? '' : (tree.readFile(readme.path, longestReadme) ?? '');
  return [...text.matchAll(/https?:\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::\d{2,5})?(\/[\w./-]{1,120})/g)].map(
    ([, path = '']) => path.replace(/[./]+$/, ''),
  );
}

/** Files that a server of PHP or of files shows by their name, where there is no index. */
function listPages(tree: Tree): string[] {
  const pages = tree.entries
    .filter(({ kind, path }) => kind === 'file' && /^(?:public\/|web\/|www\/)?[\w-]{1,60}\.(?:php|html?)$/i.test(path))
    .map(({ path }) => path);
  if (pages.some((path) => /(?:^|\/)index\./i.test(path))) return [];
  return pages.map((path) => `/${posix.basename(path)}`);
}
