// Refuses backing services that this installation does not offer, before anything is built for nothing.
import { manifestFile, type ReportedSettings } from '../../../crds/app-manifest.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import type { PipelineInput } from '../contract.ts';

/** Errors about the services of the HostedApp, or else of the repository. */
export function offeredFindings(
  { services, offered, pinned }: Pick<PipelineInput, 'services' | 'offered' | 'pinned'>,
  settings: ReportedSettings | undefined,
): Finding[] {
  if (offered === undefined) return [];
  const isSet = services.length > 0 || pinned.includes('services');
  const asked = isSet ? services : (settings?.services ?? []);
  const where = isSet ? {} : { file: fileOf(settings) };
  const types = [...new Set(offered.types.map((type) => type.split('-')[0] ?? type))].sort();
  const missing = asked.filter(({ type }) => !types.includes(type));
  if (missing.length > 0) return [{ ...where, ...unavailable(missing, types) }];
  if (asked.length <= offered.count) return [];
  return [
    {
      rule: 'services/too-many',
      severity: 'error',
      ...where,
      message: `The app needs ${asked.length} services; this installation runs at most ${offered.count} for an app.`,
      fix: 'Set services in moorage.yaml to those that the app cannot do without.',
    },
  ];
}

function fileOf(settings: ReportedSettings | undefined): string {
  const { platform } = settings ?? {};
  return platform?.fields.includes('services') === true ? platform.file : manifestFile;
}

function unavailable(missing: readonly { name: string; type: string }[], types: readonly string[]): Finding {
  const offered = types.length === 0 ? 'are none' : `is: ${types.join(', ')}`;
  return {
    rule: 'services/unavailable',
    severity: 'error',
    message: `The app needs ${missing.map(({ name, type }) => `${name} (${type})`).join(', ')}, for which this installation has no image.`,
    fix: `Set services in moorage.yaml to those that the app cannot do without; here there ${offered}. Or ask the operator of this installation to set services.images.`,
  };
}
