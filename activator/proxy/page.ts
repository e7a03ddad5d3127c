// The page that a person sees while an app wakes. It asks again by itself, without a script.
import { createHash } from 'node:crypto';
import { escapeHtml } from '../../lib/values.ts';

const style = `
:root{color-scheme:light dark;--ink:#1c1f24;--faint:#5b6472;--paper:#fbfbfa;--line:#d9dce1;--mark:#2563a8}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--faint:#a3abb8;--paper:#15181c;--line:#363c45;--mark:#7db4ec}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{width:min(26rem,calc(100vw - 3rem));text-align:center}
h1{margin:0 0 .5rem;font-size:1.25rem;font-weight:600;overflow-wrap:anywhere}
p{margin:0;color:var(--faint)}
.bar{height:3px;margin:1.5rem 0;border-radius:2px;background:var(--line);overflow:hidden}
.bar::before{content:"";display:block;width:35%;height:100%;border-radius:2px;background:var(--mark);animation:go 1.6s ease-in-out infinite alternate}
@keyframes go{from{transform:translateX(-20%)}to{transform:translateX(205%)}}
@media(prefers-reduced-motion:reduce){.bar::before{animation:none;width:100%}}
`;
const styleHash = createHash('sha256').update(style).digest('base64');

const texts = {
  en: {
    title: (app: string) => `${app} is waking up`,
    why: 'It was asleep because nobody used it. This page opens it as soon as it is ready',
    usual: (seconds: number) => `, usually within ${seconds === 1 ? 'a second' : `${seconds} seconds`}.`,
  },
  zh: {
    title: (app: string) => `${app} 正在唤醒`,
    why: '由于无人使用，它已休眠。准备就绪后，此页面会自动打开它',
    usual: (seconds: number) => `，通常在 ${seconds} 秒内。`,
  },
} as const;

/** @param language header Accept-Language @param seconds that a wake of the app usually takes */
export function waitingPage(
  app: string,
  language: string | undefined,
  seconds: number,
): { body: string; headers: Record<string, string> } {
  const lang = /^\s*zh\b/i.test(language ?? '') ? 'zh' : 'en';
  const text = texts[lang];
  const title = escapeHtml(text.title(app));
  const body = `<!doctype html>
<html lang="${lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<div class="bar" role="progressbar" aria-label="${title}"></div>
<p>${text.why}${text.usual(seconds)}</p>
</main>
</body>
</html>
`;
  return {
    body,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-language': lang,
      // In a second the page asks for its own address again, and stays until there is an answer.
      refresh: '1',
      'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'`,
      // By its own address in the Referer, the next request is known to come from here.
      'referrer-policy': 'same-origin',
      'x-robots-tag': 'noindex',
      'x-content-type-options': 'nosniff',
      vary: 'accept-language',
    },
  };
}
