// Values of an author that name what an app has: ${{services.<name>.url}} of its services, ${{models.url}} of models, its
// own ${{app.host}}.
import type { BackingService } from '../../../crds/backing-services.ts';
import { escaped, literal } from './services/literal.ts';
import { fieldOf } from './services/variables.ts';

/** Base URL that the app asks models at, and the variable that holds its token. */
export interface ModelAccess {
  readonly url: string;
  readonly keyVariable: string;
}

/** What can be named; without models, or without that service, a reference stays as it is written. */
export interface ReferenceTargets {
  readonly services: readonly BackingService[];
  readonly models?: ModelAccess | undefined;
  /** Where the app answers: like chat.apps.example.org, and https://chat.apps.example.org:8443 without a slash at the end. */
  readonly app: { readonly host: string; readonly url: string };
}

const reference =
  /\$\{\{ {0,3}(?:services\.([a-z][-a-z0-9]{0,29})\.(url|host|port|user|password|database)|models\.(url|origin|key)|app\.(host|url)) {0,3}\}\}/g;
const keyReference = /\$\{\{ {0,3}models\.key {0,3}\}\}/;

/** A value of the author as Kubernetes takes it: literal, but for what it names. */
export function expanded(value: string, targets: ReferenceTargets): string {
  const parts: string[] = [];
  let at = 0;
  for (const match of value.matchAll(reference)) {
    const [whole] = match;
    const found = named(match, targets);
    if (found === undefined) continue;
    parts.push(escaped(value.slice(at, match.index)), found);
    at = match.index + whole.length;
  }
  return parts.length === 0 ? literal(value) : [...parts, escaped(value.slice(at))].join('');
}

/** Whether a value needs the variable of the token. */
export function namesModelKey(value: string): boolean {
  return keyReference.test(value);
}

/** What a match of `reference` stands for; undefined when there is no such thing. */
function named(
  [, service, field = '', ofModels, ofApp]: readonly (string | undefined)[],
  targets: ReferenceTargets,
): string | undefined {
  if (ofApp !== undefined) return escaped(ofApp === 'host' ? targets.app.host : targets.app.url);
  return ofModels === undefined ? ofService(service, field, targets) : ofModel(ofModels, targets);
}

function ofService(name: string | undefined, field: string, { services }: ReferenceTargets): string | undefined {
  const service = services.find((each) => each.name === name);
  return service === undefined ? undefined : fieldOf(service, field);
}

function ofModel(field: string, { models }: ReferenceTargets): string | undefined {
  if (models === undefined) return undefined;
  if (field === 'key') return `$(${models.keyVariable})`;
  return escaped(field === 'url' ? models.url : new URL(models.url).origin);
}
