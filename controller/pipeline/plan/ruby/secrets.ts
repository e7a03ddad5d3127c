// Names of the secrets that the code of a Ruby app reads to sign sessions with.
import type { Tree } from '../../tree.ts';

const asked = /["']((?:[A-Z]\w{0,30}_)?(?:SESSION_SECRET|SECRET_KEY_BASE|SECRET_TOKEN|COOKIE_SECRET))["']/g;
const code = /^(?:[\w-]{1,60}\.r[bu]|config\/(?:[\w-]{1,60}\/)?[\w-]{1,60}\.(?:rb|yml))$/;
const maximumFiles = 60;
const maximumNames = 10;

export function secretNames(tree: Tree): string[] {
  const found = tree.entries
    .filter((each) => each.kind === 'file' && code.test(each.path))
    .slice(0, maximumFiles)
    .flatMap((each) => [...(tree.text(each.path, 64 * 1024) ?? '').matchAll(asked)].map(([, name = '']) => name));
  return [...new Set(found)].slice(0, maximumNames);
}
