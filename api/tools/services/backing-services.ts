// The backing services of tools: what each is, where it is set, and the problem of one that is not there.
import type { ProblemType } from '../../../lib/problem.ts';
import { Problem } from '../../../lib/problem.ts';

/** Services that run beside the API and can be switched off. */
export const backingServices = {
  searxng: { title: 'SearXNG, a meta-search engine', variable: 'MOORAGE_SEARXNG_URL', value: 'tools.searxng.enabled' },
  gotenberg: {
    title: 'Gotenberg, which prints pages and office files with Chromium and LibreOffice',
    variable: 'MOORAGE_GOTENBERG_URL',
    value: 'tools.gotenberg.enabled',
  },
  languagetool: {
    title: 'LanguageTool, a grammar checker for many languages',
    variable: 'MOORAGE_LANGUAGETOOL_URL',
    value: 'tools.languagetool.enabled',
  },
  speech: {
    title: 'a speech server that speaks /v1/audio/transcriptions',
    variable: 'MOORAGE_SPEECH_URL',
    value: 'tools.speech.enabled',
  },
  pdftranslator: {
    title: 'the PDF translator',
    variable: 'MOORAGE_PDF_TRANSLATOR_URL',
    value: 'tools.pdftranslator.enabled',
  },
} as const;

export type ServiceName = keyof typeof backingServices;

/** Base URLs of those that are on, without a slash at the end. */
export type ServiceUrls = Readonly<Partial<Record<ServiceName, string>>>;

export const serviceOff: ProblemType = {
  slug: 'service-off',
  status: 503,
  title: 'The service behind this tool is switched off here',
  description:
    'The tool works through a service of its own that this installation does not run. The detail names the value of the Helm chart, or the variable, that switches it on.',
};

/** Base URL of a service. @throws Problem (service-off) */
export function serviceUrl(urls: ServiceUrls, name: ServiceName): string {
  const url = urls[name];
  if (url === undefined) throw new Problem(serviceOff, offBecause(name), { members: { service: name } });
  return url;
}

/** How to switch a service on, in words. */
export function offBecause(name: ServiceName): string {
  const { title, variable, value } = backingServices[name];
  return `this needs ${title}; whoever runs this installation switches it on with the chart's value ${value}, or outside a cluster with ${variable}`;
}
