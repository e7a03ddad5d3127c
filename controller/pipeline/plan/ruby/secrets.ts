// Gives an app the secrets that it signs sessions with: generated, and the same at each start.
import type { Tree } from '../../tree.ts';
import { field, keys, parseJson, text } from '../../manifest.ts';

const asked = /["']((?:[A-Z]\w{0,30}_)?(?:SESSION_SECRET|SECRET_KEY_BASE|SECRET_TOKEN|COOKIE_SECRET))["']/g;
/** Anything else that Heroku generates is for people to read, such as a code by which they sign up. */
const secret = /^[A-Z]\w{0,50}$/;
const kinds = /SECRET|KEY|TOKEN|SALT|PEPPER/;
const code = /^(?:[\w-]{1,60}\.r[bu]|config\/(?:[\w-]{1,60}\/)?[\w-]{1,60}\.(?:rb|yml))$/;
const maximumFiles = 60;
const maximumNames = 10;

/** Names of such variables: those that the code reads, and those that app.json asks Heroku to generate. */
export function secretNames(tree: Tree, isRails: boolean): string[] {
  const found = tree.entries
    .filter((each) => each.kind === 'file' && code.test(each.path))
    .slice(0, maximumFiles)
    .flatMap((each) => [...(tree.text(each.path, 64 * 1024) ?? '').matchAll(asked)].map(([, name = '']) => name));
  return [...new Set([...(isRails ? ['SECRET_KEY_BASE'] : []), ...found, ...ofAppJson(tree)])].slice(0, maximumNames);
}

function ofAppJson(tree: Tree): string[] {
  const parsed = parseJson(tree.text('app.json'));
  return field(parsed, 'env') === undefined
    ? []
    : keys(parsed, 'env').filter(
        (name) => secret.test(name) && kinds.test(name) && text(parsed, 'env', name, 'generator') === 'secret',
      );
}

/**
 * Shell commands that set those of them that are not set. They are made of the generated password of a backing service,
 * which stays and which nobody else knows; without one, of a random file in the folder storage, which lasts as long as
 * that folder does.
 */
export function exportSecrets(names: readonly string[]): string {
  if (names.length === 0) return '';
  const root =
    'root="$(env | sort | sed -n "s/^MOORAGE_[A-Z0-9_]*_PASSWORD=//p" | head -n 1)"; [ -n "$root" ] || { mkdir -p storage; [ -s storage/.secret ] || (umask 077; ruby -rsecurerandom -e "puts SecureRandom.hex(64)" > storage/.secret); root="$(cat storage/.secret)"; }';
  const each = names.map(
    (name) => `[ -n "$${name}" ] || export ${name}="$(printf "%s %s" ${name} "$root" | sha512sum | cut -d " " -f 1)"`,
  );
  return `${root}; ${each.join('; ')}; unset root; `;
}
