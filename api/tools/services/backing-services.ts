// The backing services of tools: what each is, which setting enables it, and the problem of a disabled one.
import { type ProblemType, Problem } from '../../../lib/problem.ts';

/** Services that run beside the API and can be disabled. */
export const backingServices = {
  searxng: { title: 'SearXNG, a meta-search engine', variable: 'MOORAGE_SEARXNG_URL', value: 'tools.searxng.enabled' },
  gotenberg: {
    title: 'Gotenberg, which renders pages with Chromium and office files with LibreOffice',
    variable: 'MOORAGE_GOTENBERG_URL',
    value: 'tools.gotenberg.enabled',
  },
  languagetool: {
    title: 'LanguageTool, a grammar checker for many languages',
    variable: 'MOORAGE_LANGUAGETOOL_URL',
    value: 'tools.languagetool.enabled',
  },
  speech: {
    title: 'a speech server with an OpenAI-compatible /v1/audio/transcriptions endpoint',
    variable: 'MOORAGE_SPEECH_URL',
    value: 'tools.speech.enabled',
  },
  pdftranslator: {
    title: 'the PDF translator, which runs BabelDOC',
    variable: 'MOORAGE_PDF_TRANSLATOR_URL',
    value: 'tools.pdftranslator.enabled',
  },
} as const;

export type ServiceName = keyof typeof backingServices;

/** Why services are off, as the operator says it. */
export type OffCauses = Readonly<Partial<Record<ServiceName, string>>>;

/** Base URLs of those that are enabled, without a trailing slash. */
export type ServiceUrls = Readonly<Partial<Record<ServiceName, string>>>;

export const serviceOff: ProblemType = {
  slug: 'service-off',
  status: 503,
  title: 'Backing service disabled',
  description:
    'The tool needs a backing service that is not enabled on this installation. `detail` names the Helm value, or the environment variable, that enables it.',
};

/** Base URL of a service. @throws Problem (service-off) */
export function serviceUrl(urls: ServiceUrls, name: ServiceName): string {
  const url = urls[name];
  if (url === undefined) throw new Problem(serviceOff, offBecause(name), { members: { service: name } });
  return url;
}

/** How the operator enables a service; `cause` is why it is off, where that is known. */
export function offBecause(name: ServiceName, cause?: string): string {
  const { title, variable, value } = backingServices[name];
  const needed = `This tool needs ${title}${cause === undefined ? '' : `, which is off: ${cause.replace(/\.$/, '')}`}.`;
  return `${needed} The operator of this installation enables it with the Helm value ${value}, or, outside a cluster, with ${variable}.`;
}
