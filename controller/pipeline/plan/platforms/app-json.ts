// Reads app.json of Heroku: defaults of variables, secrets that it generates, and databases as add-ons.
import { askedSecret } from '../../../../crds/generated-secret.ts';
import { readField, readKeys, parseJson, readText, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { Declaration, DeclaredVariable } from './declaration.ts';

const addons: readonly (readonly [RegExp, { name: string; type: 'postgres' | 'redis' | 'mysql' | 'mongo' }])[] = [
  [/^heroku-postgresql\b/, { name: 'db', type: 'postgres' }],
  [/^(?:heroku-redis|heroku-key-value-store|rediscloud|redistogo)\b/, { name: 'redis', type: 'redis' }],
  [/^(?:jawsdb|cleardb)\b/, { name: 'mysql', type: 'mysql' }],
  [/^(?:mongolab|ormongo)\b/, { name: 'mongo', type: 'mongo' }],
];

/** What else it generates is for people to read, such as a code by which they sign up. */
const ofCode = /SECRET|KEY|TOKEN|SALT|PEPPER/;

export function appJsonDeclaration(tree: Tree): Declaration | undefined {
  const file = 'app.json';
  const parsed = parseJson(tree.text(file));
  // Expo has a file of this name too, with the field expo alone.
  if (parsed === undefined || readField(parsed, 'expo') !== undefined) return undefined;
  const env = readKeys(parsed, 'env').flatMap((name): DeclaredVariable[] => {
    if (readText(parsed, 'env', name, 'generator') === 'secret' && ofCode.test(name))
      return [{ name, value: askedSecret }];
    const value = readText(parsed, 'env', name) ?? readText(parsed, 'env', name, 'value');
    return value === undefined || value === '' ? [] : [{ name, value }];
  });
  const given = readField(parsed, 'addons');
  const plans = [
    ...readTexts(parsed, 'addons'),
    ...(Array.isArray(given) ? given.flatMap((each) => readText(each, 'plan') ?? []) : []),
  ];
  const services = addons.flatMap(([pattern, service]) => (plans.some((plan) => pattern.test(plan)) ? [service] : []));
  if (env.length === 0 && services.length === 0) return undefined;
  return { file, env, ...(services.length === 0 ? {} : { services }) };
}
