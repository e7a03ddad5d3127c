// Finds the arguments with which a Go program serves, and the port that it listens on whatever $PORT says.
import type { Tree } from '../../tree.ts';
import { exposedPort } from '../common/exposed.ts';
import { goFiles } from './main-package.ts';

/** The environment has a say: os.Getenv("PORT"), a tag of a configuration, a binding of viper. */
const asks =
  /(?:Getenv|LookupEnv|BindEnv|GetEnv\w{0,10}|getEnv\w{0,10}|env\w{0,10})\(\s{0,9}(?:"port",\s{0,9})?"PORT"|\b(?:env|envconfig):"PORT\b/;
const literals: readonly RegExp[] = [
  /\.(?:Run|Listen|Start|ListenAndServe)\(\s{0,9}(?:ctx,\s{0,9})?"[\w.[\]:-]{0,30}?:(\d{4,5})"/,
  /\bAddr(?:ess)?:\s{0,9}"[\w.[\]-]{0,30}:(\d{4,5})"/,
  /(?:Int|String|Uint\d{0,2})(?:Var)?P?\([^\n]{0,60}"(?:[\w-]{0,20}port|[\w-]{0,10}addr(?:ess)?|listen|bind)"[^\n]{0,60}?\b(\d{4,5})\b/i,
  /SetDefault\(\s{0,9}"[\w.-]{0,40}(?:port|addr(?:ess)?|listen)"\s{0,9},\s{0,9}"?[\w.[\]:-]{0,30}?(\d{4,5})\b/i,
  /\b(?:default|env-default|envDefault):"[\w.[\]-]{0,30}:?(\d{4,5})"/,
  /\b\w{0,30}(?:port|listen\w{0,10}|addr(?:ess)?)"?\s{0,9}(?::=|=|:|,)\s{0,9}"[\w.[\]:-]{0,30}?(\d{4,5})"/i,
  /\b\w{0,30}port"?\s{0,9}(?::=|=|:)\s{0,9}(?:u?int\d{0,2}\()?(\d{4,5})\b/i,
];

export interface Serving {
  /** Arguments after the program's name, as a shell reads them. */
  readonly arguments: string;
  readonly port: number | undefined;
}

export function findServing(tree: Tree, goMod: string): Serving {
  if (goMod.includes('github.com/pocketbase/pocketbase '))
    return { arguments: ' serve --http=0.0.0.0:$PORT', port: undefined };
  const files = goFiles(tree).map((path) => tree.text(path, 64 * 1024) ?? '');
  return {
    arguments: subcommand(files),
    port: files.some((text) => asks.test(text)) ? undefined : portOf(tree, files),
  };
}

function portOf(tree: Tree, files: readonly string[]): number | undefined {
  for (const pattern of literals)
    for (const text of files) {
      const ports = [...withoutComments(text).matchAll(new RegExp(pattern, `${pattern.flags}g`))];
      const port = ports.map((match) => Number(match[1])).find(isOwn);
      if (port !== undefined) return port;
    }
  return exposedPort(tree);
}

function withoutComments(text: string): string {
  return text.replace(/^[ \t]*\/\/.*$/gm, '');
}

function isOwn(port: number): boolean {
  return port >= 1024 && port <= 65_535 && !elsewhere.has(port);
}

/** Ports of databases, mail and models. */
const elsewhere: ReadonlySet<number> = new Set([
  1025, 1110, 1433, 1521, 2222, 2525, 3306, 4317, 5432, 5672, 6333, 6379, 9092, 9200, 11_211, 11_434, 27_017,
]);

/** A program of several commands serves by one of them, where it does nothing by itself. */
function subcommand(files: readonly string[]): string {
  const commands = files.flatMap((text) =>
    [...text.matchAll(/&cobra\.Command\{([^}]{0,600})/g)].map((match) => match[1] ?? ''),
  );
  const serving = commands.map((text) => /\bUse:\s{0,9}"(serve|server|web|start|run)\b/.exec(text)?.[1]).find(Boolean);
  const rootRuns = commands.some(
    (text) =>
      !/\bUse:\s{0,9}"(?:serve|server|web|start|run)\b/.test(text) &&
      /\bRunE?:/.test(text) &&
      !/\bUse:\s{0,9}"(?:version|completion)/.test(text),
  );
  return serving === undefined || (rootRuns && commands.length < 3) ? '' : ` ${serving}`;
}
