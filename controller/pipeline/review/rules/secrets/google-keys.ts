// Keeps the keys of Google's server APIs apart from those that it gives to every visitor of a page: they look alike.

const server = /gemini|gen_?ai\b|generative|vertex|palm|google_api_key|googleapikey|speech|vision/i;
/** Firebase, maps and the like: their keys are in every page that uses them, and say which app asks, not who. */
const browser = /authDomain|firebase|messagingSenderId|\bmaps?\b|_maps?_|youtube|innertube|recaptcha|analytics/i;

const around = 4;
const longestLine = 2_000;

/** Do the lines around a key name an API that is called by servers, and none that is called by pages? */
export function isServerKey(text: string, line: number): boolean {
  const near = text
    .split('\n')
    .slice(Math.max(0, line - 1 - around), line + around)
    .map((each) => each.slice(0, longestLine))
    .join('\n');
  return server.test(near) && !browser.test(near);
}
