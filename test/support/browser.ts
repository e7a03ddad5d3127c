// A real browser with a cookie jar of its own.
import { z } from 'zod';
import { openTab } from './devtools.ts';
import { navigate } from './tab.ts';

export interface Browser {
  /** Opens a page and waits until it has loaded. */
  open(url: URL): Promise<void>;
  /** Names of the cookies that it would send with a request to this address. */
  cookiesFor(url: URL): Promise<string[]>;
  close(): Promise<void>;
}

export async function startBrowser(): Promise<Browser> {
  const tab = await openTab();
  await tab.send('Page.enable');
  return {
    open: (url) => navigate(tab, url.href),
    async cookiesFor(url) {
      const answer = await tab.send('Network.getCookies', { urls: [url.href] });
      return z
        .object({ cookies: z.array(z.looseObject({ name: z.string() })) })
        .parse(answer)
        .cookies.map(({ name }) => name)
        .sort();
    },
    close: () => tab.close(),
  };
}
