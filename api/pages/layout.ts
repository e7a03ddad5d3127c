// The layout of every page: head, header with navigation, main, footer.
import { type Html, html, trustHtml } from '../http/index.ts';
import { toAssetPath } from './assets.ts';
import { languages, languageTags } from './language.ts';
import type { Page } from './page.ts';
import type { Visit } from './visit.ts';

const sections = [
  { name: 'bench', path: '/bench' },
  { name: 'rank', path: '/rank' },
  { name: 'guides', path: '/guides' },
  { name: 'compare', path: '/compare' },
  { name: 'submit', path: '/submit' },
] as const;

const documents = [
  { name: 'openapi', path: '/openapi.json' },
  { name: 'llms', path: '/llms.txt' },
  { name: 'capabilities', path: '/agent-capabilities.json' },
  { name: 'agentCard', path: '/.well-known/agent-card.json' },
] as const;

export function renderLayout(page: Page, visit: Visit): Html {
  const { text } = visit;
  return html`${trustHtml('<!doctype html>\n')}
    <html lang="${languageTags[visit.language]}">
      ${renderHead(page, visit)}
      <body>
        <a class="skip" href="#main">${text.site.skip}</a>
        ${renderHeader(visit)}
        <main id="main" tabindex="-1">${page.main}</main>
        ${renderFooter(page, visit)}
      </body>
    </html> `;
}

function renderHead({ title, description, head: more, scripts = [] }: Page, visit: Visit): Html {
  const { site, text } = visit;
  const shown = title === text.site.name ? `${title} · ${text.site.tagline}` : `${title} · ${text.site.name}`;
  return html`<head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${shown}</title>
    <meta name="description" content="${(description ?? text.site.tagline).slice(0, 300)}" />
    <link rel="stylesheet" href="${toAssetPath('style.css')}" />
    <link rel="icon" type="image/svg+xml" href="${toAssetPath('icon.svg')}" />
    ${languages.map((language) => html`<link rel="alternate" hreflang="${languageTags[language]}" href="${site.baseUrl}${visit.toLanguageLink(language)}" />`)}
    <link rel="alternate" hreflang="x-default" href="${site.baseUrl}${visit.path}" />
    ${more ?? ''} ${scripts.map((name) => html`<script type="module" src="${toAssetPath(name)}"></script>`)}
  </head>`;
}

function renderHeader(visit: Visit): Html {
  const { text, site } = visit;
  const other = visit.language === 'zh' ? 'en' : 'zh';
  const links = sections.filter(({ path }) => site.isServed(path));
  return html`<header class="top">
    <div class="bar">
      <a class="brand" href="${visit.link('/')}" aria-label="${text.site.home}">
        <img src="${toAssetPath('icon.svg')}" alt="" width="28" height="28" />${text.site.name}
      </a>
      <nav aria-label="${text.site.navigation}">
        <ul>
          ${links.map(({ name, path }) => html`<li><a href="${visit.link(path)}" ${renderCurrentAttribute(visit, path)}>${text.site.nav[name]}</a></li>`)}
        </ul>
      </nav>
      <a
        class="language"
        href="${visit.toLanguageLink(other)}"
        hreflang="${languageTags[other]}"
        lang="${languageTags[other]}"
      >
        ${text.site.otherLanguage}
      </a>
    </div>
  </header>`;
}

function renderCurrentAttribute({ path }: Visit, section: string): Html {
  if (path === section) return trustHtml(' aria-current="page"');
  return trustHtml(path.startsWith(`${section}/`) ? ' aria-current="true"' : '');
}

function renderFooterLinks({ site, text, link }: Visit): Html {
  const links = [
    ['/prices', text.prices.title],
    ['/reconciliation', text.reconciliation.title],
  ] as const;
  return html`${links.filter(([path]) => site.isServed(path)).map(([path, title]) => html`<a href="${link(path)}">${title}</a> `)}`;
}

function renderFooter({ json }: Page, visit: Visit): Html {
  const { text, site } = visit;
  const links = documents.filter(({ path }) => site.isServed(path));
  return html`<footer class="foot">
    <div class="bar">
      <p class="meta"><span>${text.site.tagline}</span> <span>${text.site.utc}</span> ${renderFooterLinks(visit)}</p>
      <nav aria-label="${text.site.programs}">
        <ul>
          ${json === undefined ? '' : html`<li><a href="${json}">${text.site.json}</a></li>`}
          ${links.map(({ name, path }) => html`<li><a href="${path}">${text.site[name]}</a></li>`)}
        </ul>
      </nav>
    </div>
  </footer>`;
}
