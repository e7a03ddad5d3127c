// Which image a backing service runs: of the version that it asks for if the installation has it.
import type { BackingService } from '../../../../crds/backing-services.ts';
import type { InstallationConfig } from '../../../reconcile/installation-config.ts';

export interface ChosenImage {
  readonly image: string;
  /** What is not as it was asked for. */
  readonly note?: string;
}

/** Undefined where the installation has no image of that type. */
export function imageOf(
  { type, version }: BackingService,
  { images }: InstallationConfig['run']['services'],
): ChosenImage | undefined {
  const exact =
    version === undefined
      ? undefined
      : versions(version)
          .map((each) => images[`${type}-${each}`])
          .find(Boolean);
  const image = exact ?? images[type];
  if (image === undefined) return undefined;
  return version === undefined || exact !== undefined || isOfVersion(image, version)
    ? { image }
    : { image, note: `version ${version} was asked for; this installation runs ${withoutDigest(image)}` };
}

/** 16.2-alpine: 16.2-alpine, 16.2, 16. */
function versions(version: string): string[] {
  const number = /^[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}/.exec(version)?.[0] ?? version;
  return [...new Set([version, number, number.split('.')[0] ?? number])];
}

/** Whether the tag of the image has that version's first number. */
function isOfVersion(image: string, version: string): boolean {
  const first = /^v?([0-9]{1,6})/.exec(version)?.[1];
  const tag = /:(?:[a-z]{0,10})([0-9]{1,6})[^/:]{0,100}$/.exec(withoutDigest(image))?.[1];
  return first === undefined || first === tag;
}

/** postgres:17-trixie@sha256:…: postgres:17-trixie. */
function withoutDigest(image: string): string {
  return image.replace(/@.*$/, '');
}
