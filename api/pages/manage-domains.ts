// Own domains of an app on its author's page: their states, the records to publish, and the forms that add, check and remove one.
import { type Html, html } from '../http/index.ts';
import { type ManageContent, renderAction, renderHidden } from './manage-content.ts';
import { renderCode, renderEnglish, renderFacts, renderOutwardLink, renderTextField } from './parts.ts';
import type { Visit } from './visit.ts';

type Domain = NonNullable<ManageContent['domains']>['domains'][number];

/** Nothing where this installation offers none and the app has none. */
export function renderDomains(content: ManageContent, visit: Visit): Html {
  const { domains: view, problem, path, token, actions } = content;
  if (view === undefined || (!view.offered && view.domains.length === 0)) return html``;
  const words = visit.text.manage.domains;
  const field = {
    ...{ name: 'domain', label: words.domain, help: words.domainHelp, value: '', maxLength: 300 },
    isRequired: true,
  };
  return html`<section aria-labelledby="domains">
    <h2 id="domains">${words.title}</h2>
    <p>${words.lead}</p>
    ${view.domains.map((domain) => renderDomain(domain, content, visit))}
    ${
      view.offered && actions.has('add-domain')
        ? html`<form class="panel" method="post" action="${path}">
            ${renderHidden('token', token)} ${renderTextField(field, problem?.errors ?? [], visit)}
            <button type="submit" class="quiet" name="action" value="add-domain">
              ${visit.text.manage.actions['add-domain']}
            </button>
          </form>`
        : ''
    }
  </section>`;
}

function renderDomain(domain: Domain, content: ManageContent, visit: Visit): Html {
  const words = visit.text.manage.domains;
  const { records, state, url } = domain;
  const hidden = renderHidden('domain', domain.domain);
  const zone = [
    `${records.cname.name}. CNAME ${records.cname.value}.`,
    `${records.txt.name}. TXT "${records.txt.value}"`,
  ].join('\n');
  return html`<div class="panel">
    <h3>${url === undefined ? domain.display : renderOutwardLink(url, domain.display)}</h3>
    ${renderFacts([
      [visit.text.manage.state, words.states[state]],
      [words.message, renderEnglish(domain.message, visit)],
      [words.checked, domain.checked_at === undefined ? undefined : visit.format.dateTime(domain.checked_at)],
      [words.lookupError, domain.lookup_error],
    ])}
    ${state === 'Active' || state === 'Refused' ? '' : html`<p>${words.publish(domain.target)}</p>`}
    ${state === 'Refused' ? '' : renderCode(zone, words.records)}
    <div class="actions">
      ${state === 'Refused' ? '' : renderAction(content, 'check-domain', visit, hidden)}
      ${renderAction(content, 'remove-domain', visit, hidden)}
    </div>
  </div>`;
}
