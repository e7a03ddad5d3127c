// Reads the packages of Pipenv: Pipfile.lock where there is one, else Pipfile.
import { field, keys, parseJson, parseToml, text, texts } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { copy, step } from '../../dockerfile-text.ts';
import type { PythonPackages } from './find.ts';
import { endOfList, extras, pipInstall, writtenList } from './install.ts';
import { normalise } from './names.ts';

const lockBytes = 8 * 1024 * 1024;
const list = '/opt/requirements.txt';

export function pipfile(tree: Tree): PythonPackages | undefined {
  const locked = field(parseJson(tree.text('Pipfile.lock', lockBytes)), 'default');
  const parsed = parseToml(tree.text('Pipfile'));
  const file = locked === undefined ? 'Pipfile' : 'Pipfile.lock';
  const packages = locked ?? field(parsed, 'packages');
  if (packages === undefined) return undefined;
  const names = keys(packages);
  const lines = names.flatMap((name) => requirement(name, field(packages, name)));
  return {
    file,
    names: new Set(names.map(normalise)),
    install: (extra) => [
      ...writtenList(list, lines),
      copy([file], './'),
      ...step(
        file,
        'installing the packages',
        pipInstall(file, ...(locked === undefined ? [] : ['--no-deps']), '-r', list),
      ),
      ...extras(extra),
    ],
  };
}

/** One package as a line of requirements; none for what names files of the author. */
function requirement(name: string, value: unknown): string[] {
  if (field(value, 'path') !== undefined || field(value, 'file') !== undefined) return [];
  const extra = texts(value, 'extras').join(',');
  const whole = `${name}${extra === '' ? '' : `[${extra}]`}`;
  const line = `${whole}${repositoryOf(value) ?? versionOf(value)}`;
  return isLine(line) ? [line] : [];
}

function repositoryOf(value: unknown): string | undefined {
  const [git, ref] = [text(value, 'git'), text(value, 'ref')];
  return git === undefined ? undefined : ` @ git+${git}${ref === undefined ? '' : `@${ref}`}`;
}

function versionOf(value: unknown): string {
  const version = typeof value === 'string' ? value : (text(value, 'version') ?? '*');
  const marker = text(value, 'markers');
  return `${version === '*' ? '' : version}${marker === undefined ? '' : ` ; ${marker}`}`;
}

/** One plain line: no more than a requirement needs, and not the word that ends a written list. */
export function isLine(line: string): boolean {
  return line !== endOfList && /^[A-Za-z0-9][\w.[\],<>=!~*+@:/ ;'"()-]{0,300}$/.test(line);
}
