// The pages that are judged as a whole: each kind of page, with sample records behind it.
import { sampleApp, sampleApps, sampleServices } from '../api/sample.ts';
import { samplePages } from './sample.ts';
import { rejectedStatus } from './status.ts';

export const pagePaths = [
  '/',
  '/?q=pdf&category=document',
  '/apps/chat-ui-1',
  '/apps/pdf-translate',
  '/bench',
  '/bench/chat-ui-1',
  '/guides',
  '/guides/compare-llm-cost-for-a-prompt',
  '/guides/free-llm-api-for-agents-no-signup',
  '/rank',
  '/rank?quality=5&cost=2',
  '/submit',
  '/compare',
  '/status/octo/chat',
  '/status/octo/slow',
  '/status/octo/private',
  '/authors/octo',
  '/prices',
  '/reconciliation',
  '/reconciliation/2026-05-03',
  '/reconciliation/2026-05-04',
];

/** The same page in a language. */
export function addLanguage(path: string, language: 'en' | 'zh'): string {
  return `${path}${path.includes('?') ? '&' : '?'}lang=${language}`;
}

/** The site with an app that was rejected and one that is being built. */
export function listJudgedPages(): ReturnType<typeof samplePages> {
  const closed = sampleApp('private', undefined, rejectedStatus);
  const { apps } = sampleApps(
    sampleApp('chat', undefined, rejectedStatus),
    sampleApp('slow', undefined, { phase: 'Building' }),
    { ...closed, spec: { ...closed.spec, source: { ...closed.spec.source, private: true } } },
  );
  return samplePages({ services: sampleServices({ apps }) });
}
