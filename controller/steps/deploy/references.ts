// Values of an author that name what an app is given: ${{services.<name>.url}} of its services, ${{models.url}} of models.
import type { BackingService } from '../../../crds/backing-services.ts';
import { escaped, literal } from './services/literal.ts';
import { fieldOf } from './services/variables.ts';

/** Base URL that the app asks models at, and the variable that holds its token. */
export interface ModelAccess {
  readonly url: string;
  readonly keyVariable: string;
}

/** What can be named; without models, or without that service, a reference stays as it is written. */
export interface Given {
  readonly services: readonly BackingService[];
  readonly models?: ModelAccess | undefined;
}

const reference =
  /\$\{\{ {0,3}(?:services\.([a-z][-a-z0-9]{0,29})\.(url|host|port|user|password|database)|models\.(url|origin|key)) {0,3}\}\}/g;
const keyReference = /\$\{\{ {0,3}models\.key {0,3}\}\}/;

/** A value of the author as Kubernetes takes it: literal, but for what it names. */
export function expanded(value: string, given: Given): string {
  const parts: string[] = [];
  let at = 0;
  for (const match of value.matchAll(reference)) {
    const [whole, name, field = '', ofModels] = match;
    const found = ofModels === undefined ? ofService(name, field, given) : ofModel(ofModels, given);
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

function ofService(name: string | undefined, field: string, { services }: Given): string | undefined {
  const service = services.find((each) => each.name === name);
  return service === undefined ? undefined : fieldOf(service, field);
}

function ofModel(field: string, { models }: Given): string | undefined {
  if (models === undefined) return undefined;
  if (field === 'key') return `$(${models.keyVariable})`;
  return escaped(field === 'url' ? models.url : new URL(models.url).origin);
}
