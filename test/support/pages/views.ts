// A page as someone sees it: in a language, in light or dark, on a telephone or a wide screen; and what axe says of it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { z } from 'zod';
import type { Tab } from '../devtools.ts';
import { evaluateExpression, navigate } from '../tab.ts';
import { addLanguage } from './judged.ts';

export interface View {
  readonly language: 'en' | 'zh';
  readonly scheme: 'light' | 'dark';
  readonly width: 390 | 1280;
}

/** Every way to look at a page. */
export const views: readonly View[] = (['en', 'zh'] as const).flatMap((language) =>
  (['light', 'dark'] as const).flatMap((scheme) =>
    ([390, 1280] as const).map((width) => ({ language, scheme, width })),
  ),
);

/** Opens a page; the tab's Page domain must be enabled. */
export async function openView(tab: Tab, origin: string, path: string, view: View): Promise<void> {
  const { width, scheme, language } = view;
  const isPhone = width < 600;
  await tab.send('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: isPhone });
  await tab.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
  await navigate(tab, `${origin}${addLanguage(path, language)}`);
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const judge = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
  violations.map(({ id, impact, nodes }) => impact + ' ' + id + ': ' + nodes.map(({ target }) => target.join(' ')).join(', ')))`;

/** What axe finds on the open page, each as "impact rule: places"; all of its rules for WCAG and good practice. */
export async function findAccessibilityFaults(tab: Tab): Promise<readonly string[]> {
  await evaluateExpression(tab, `${axe}; true`, z.boolean());
  return evaluateExpression(tab, judge, z.array(z.string()));
}

/** A picture of the whole page, as PNG. */
export async function takePicture(tab: Tab): Promise<Buffer> {
  const answer = await tab.send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: true });
  return Buffer.from(z.object({ data: z.base64() }).parse(answer).data, 'base64');
}
