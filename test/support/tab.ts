// What is done in a tab: going to a page, and asking it for a value.
import { z } from 'zod';
import type { Tab } from './devtools.ts';

const navigated = z.looseObject({ errorText: z.string().optional() });
const evaluated = z.object({
  result: z.looseObject({ value: z.unknown().optional() }),
  exceptionDetails: z.unknown().optional(),
});

/** What Chromium says when an interface of this machine comes or goes, as that of each pod does. */
const networkChanged = 'net::ERR_NETWORK_CHANGED';

/** Opens a page and waits until it has loaded; the tab's Page domain must be enabled. */
export async function navigate(tab: Tab, url: string, tries = 5): Promise<void> {
  const loaded = tab.event('Page.loadEventFired');
  const { errorText } = navigated.parse(await tab.send('Page.navigate', { url }));
  const isAgain = errorText === networkChanged && tries > 1;
  if (errorText !== undefined && !isAgain) throw new Error(`${url}: ${errorText}`);
  // The page of that error loads too.
  await loaded;
  if (isAgain) await navigate(tab, url, tries - 1);
}

/** The value of an expression in the page, or of what it promises. */
export async function evaluateExpression<Schema extends z.ZodType>(
  tab: Tab,
  expression: string,
  schema: Schema,
): Promise<z.output<Schema>> {
  const answer = await tab.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
  const { result, exceptionDetails } = evaluated.parse(answer);
  if (exceptionDetails !== undefined) throw new Error(`the page threw: ${JSON.stringify(exceptionDetails)}`);
  return schema.parse(result.value);
}
