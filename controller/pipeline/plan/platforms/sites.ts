// Reads vercel.json and netlify.toml: the folder of a built site, and whether every path answers with its page.
import { readField, parseJson, parseToml, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { warning, type Declaration } from './declaration.ts';

const noFunctions = (file: string, folder: string): Finding[] => [
  warning(
    'platform/functions',
    file,
    `The functions in ${folder} are not run here: an app is one server.`,
    'Serve them from a server of the app, like those of Next.js, Express or FastAPI.',
  ),
];

/** vercel.json. */
export function vercelDeclaration(tree: Tree): Declaration | undefined {
  const file = 'vercel.json';
  const parsed = parseJson(tree.text(file));
  const folder = folderIn(readText(parsed, 'outputDirectory'));
  const hasFunctions = tree.entries.some(
    ({ kind, path }) => kind === 'file' && /^api\/[^/]{1,100}\.(?:js|ts|py|go)$/.test(path),
  );
  if (parsed === undefined || (folder === undefined && !hasFunctions)) return undefined;
  const rewrites = list(parsed, 'rewrites').some(
    (each) =>
      /^\/\(?\.\*|^\/\(\.\*\)|^\/:path\*/.test(readText(each, 'source') ?? '') &&
      /^\/(?:index\.html)?$/.test(readText(each, 'destination') ?? ''),
  );
  return {
    file,
    // What functions answer cannot be served as files.
    ...(folder === undefined || hasFunctions ? {} : { site: { folder, fallback: rewrites } }),
    ...(hasFunctions && !tree.has('package.json') ? { findings: noFunctions(file, 'api') } : {}),
  };
}

/** netlify.toml. */
export function netlifyDeclaration(tree: Tree): Declaration | undefined {
  const file = 'netlify.toml';
  const parsed = parseToml(tree.text(file));
  const folder = folderIn(readText(parsed, 'build', 'publish'));
  if (parsed === undefined || folder === undefined || readText(parsed, 'build', 'base') !== undefined) return undefined;
  const functions = readText(parsed, 'build', 'functions') ?? readText(parsed, 'functions', 'directory');
  const plugin = list(parsed, 'plugins').some((each) =>
    /nextjs|nuxt|remix|gatsby/.test(readText(each, 'package') ?? ''),
  );
  if (plugin || folder === '.next') return undefined;
  const fallback = list(parsed, 'redirects').some(
    (each) =>
      readText(each, 'from') === '/*' && readText(each, 'to') === '/index.html' && readField(each, 'status') === 200,
  );
  return {
    file,
    site: { folder, fallback },
    ...(functions === undefined ? {} : { findings: noFunctions(file, functions) }),
  };
}

/** A folder inside the repository. */
function folderIn(given: string | undefined): string | undefined {
  const folder = given?.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');
  return folder === undefined || folder.includes('..') || folder.length > 150
    ? undefined
    : folder === ''
      ? '.'
      : folder;
}

function list(parsed: unknown, name: string): unknown[] {
  const found = readField(parsed, name);
  return Array.isArray(found) ? found.slice(0, 100) : [];
}
