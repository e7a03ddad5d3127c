// Reads Pipenv's packages from Pipfile.lock, or from Pipfile if there is no lock.
import { readField, readKeys, parseJson, parseToml, readText, readTexts } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { renderCopy, renderStep } from '../../recipe.ts';
import type { PythonPackages } from './find.ts';
import { endOfList, renderExtras, renderPipInstall, renderListFile } from './install.ts';
import { normalizePackageName } from './names.ts';

const lockBytes = 8 * 1024 * 1024;
const list = '/opt/requirements.txt';

export function findPipfilePackages(tree: Tree): PythonPackages | undefined {
  const locked = readField(parseJson(tree.text('Pipfile.lock', lockBytes)), 'default');
  const parsed = parseToml(tree.text('Pipfile'));
  const file = locked === undefined ? 'Pipfile' : 'Pipfile.lock';
  const packages = locked ?? readField(parsed, 'packages');
  if (packages === undefined) return undefined;
  const names = readKeys(packages);
  const lines = names.flatMap((name) => formatRequirement(name, readField(packages, name)));
  return {
    file,
    names: new Set(names.map(normalizePackageName)),
    install: (extra) => [
      ...renderListFile(list, lines),
      renderCopy([file], './'),
      ...renderStep(
        file,
        'installing the packages',
        renderPipInstall(file, ...(locked === undefined ? [] : ['--no-deps']), '-r', list),
      ),
      ...renderExtras(extra),
    ],
  };
}

/** Formats a package as a requirement line; empty if it refers to the author's files. */
function formatRequirement(name: string, value: unknown): string[] {
  if (readField(value, 'path') !== undefined || readField(value, 'file') !== undefined) return [];
  const extra = readTexts(value, 'extras').join(',');
  const whole = `${name}${extra === '' ? '' : `[${extra}]`}`;
  const line = `${whole}${formatRepository(value) ?? formatVersion(value)}`;
  return isLine(line) ? [line] : [];
}

function formatRepository(value: unknown): string | undefined {
  const [git, ref] = [readText(value, 'git'), readText(value, 'ref')];
  return git === undefined ? undefined : ` @ git+${git}${ref === undefined ? '' : `@${ref}`}`;
}

function formatVersion(value: unknown): string {
  const version = typeof value === 'string' ? value : (readText(value, 'version') ?? '*');
  const marker = readText(value, 'markers');
  return `${version === '*' ? '' : version}${marker === undefined ? '' : ` ; ${marker}`}`;
}

/** Returns whether it is a plain requirement on one line, and not the word that ends a here-document. */
export function isLine(line: string): boolean {
  return line !== endOfList && /^[A-Za-z0-9][\w.[\],<>=!~*+@:/ ;'"()-]{0,300}$/.test(line);
}
