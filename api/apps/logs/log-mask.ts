// Masks in what an app prints what the API knows or recognizes of its secrets, although it can read no Secret.
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { listComponents } from '../../../crds/components.ts';
import { readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import { generatedSecret } from '../../../crds/values.ts';
import { createSecretMask, isSecretName, type SecretMask, secretReplacement } from '../../../lib/secret-mask.ts';
import type { App } from '../hosted-apps.ts';
import { listHarmlessLines, truncateLine } from './container-reader.ts';
import { createFingerprintMask, type Fingerprint } from './fingerprints.ts';

/** What masks are made of. */
export interface MaskSources {
  readonly app: App;
  /** Of the values that the author has set. */
  readonly fingerprints: readonly Fingerprint[];
  /** Key of the fingerprints; undefined if there are none. */
  readonly key: string | undefined;
}

/** Creates the mask of an app: values that its author has set, then secrets by variable name, form and look. */
export function createLogMask({ app, fingerprints, key }: MaskSources): SecretMask {
  const maskFingerprints = key === undefined ? (text: string) => text : createFingerprintMask(fingerprints, key);
  let maskKnown = known.get(app);
  if (maskKnown === undefined) known.set(app, (maskKnown = createKnownMask(app)));
  const maskRest = maskKnown;
  return (text) => maskRest(maskFingerprints(text));
}

/** Cached apps are never changed, and each batch of lines needs the mask. */
const known = new WeakMap<App, SecretMask>();

/**
 * Passwords of services and generated secrets, which the operator derives, are this many hexadecimal digits. So are hashes of
 * commits, which are masked too.
 */
const derived = /(?<![0-9a-zA-Z])[0-9a-f]{40,64}(?![0-9a-zA-Z])/g;

function createKnownMask({ spec: stored, status }: App): SecretMask {
  const spec = resolveSpec({ spec: stored }, readSettings(status?.settings?.values));
  const components = listComponents(spec);
  const env = [
    ...components.flatMap((component) => component.env),
    ...spec.build.env,
    ...spec.services.flatMap((service) => service.env),
  ];
  const isGenerated = ({ value }: { readonly value: string }): boolean => generatedSecret.test(value);
  const mask = createSecretMask({
    values: env.filter((each) => isSecretName(each.name) && !isGenerated(each)).map(({ value }) => value),
    variables: [...new Set(components.flatMap(({ secrets }) => secrets.map(({ name }) => name)))],
  });
  if (spec.services.length === 0 && !env.some(isGenerated)) return mask;
  return (text) => mask(text).replace(derived, secretReplacement);
}

/** Text after which other work of the process gets a turn, in characters. */
const turnLength = 256 * 1024;

/** Makes of printed lines what is stored: harmless, masked, and of a limited length. One may become several. */
export async function prepareLines<Line extends { readonly text: string }>(
  lines: readonly Line[],
  mask: SecretMask,
): Promise<Line[]> {
  const prepared: Line[] = [];
  let untilTurn = turnLength;
  for (const line of lines) {
    // Masked before it is cut: a secret at the cut would be shown in part.
    for (const text of listHarmlessLines(line.text)) prepared.push({ ...line, text: truncateLine(mask(text)) });
    untilTurn -= line.text.length;
    if (untilTurn > 0) continue;
    untilTurn = turnLength;
    await yieldToOthers();
  }
  return prepared;
}
