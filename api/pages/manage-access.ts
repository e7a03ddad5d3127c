// Who else reaches an app and where, on its author's page: the visitors that it admits, its name, its own domains, and the
// tokens for programs and people.
import { scopes, viewerScopes } from '../apps/index.ts';
import { type Html, html } from '../http/index.ts';
import { type ManageContent, renderAction, renderHidden } from './manage-content.ts';
import {
  renderAuthored,
  renderCode,
  renderEnglish,
  renderFacts,
  renderMissing,
  renderOutwardLink,
  renderTable,
  renderTextField,
} from './parts.ts';
import type { Visit } from './visit.ts';

/** Who may visit the app, and its access keys. */
export function renderAccess(content: ManageContent, visit: Visit): Html {
  const { access: view, problem, path, token } = content;
  if (view === undefined) return html``;
  const { text, format } = visit;
  const words = text.manage.access;
  const errors = problem?.errors ?? [];
  const password = {
    ...{ name: 'password', label: words.password, help: words.passwordHelp, value: '', maxLength: 200 },
    ...({ type: 'password', autocomplete: 'new-password' } as const),
  };
  const rows = view.keys.map(({ name, created_at: created }) => [
    html`<code>${name}</code>`,
    format.dateTime(created),
    renderAction(content, 'revoke-access-key', visit, renderHidden('name', name)),
  ]);
  return html`<section aria-labelledby="access">
    <h2 id="access">${words.title}</h2>
    <p>${view.access === 'public' ? words.lead : view.enforced ? words.enforced : words.pending}</p>
    <form class="panel" method="post" action="${path}">
      ${renderHidden('token', token)}
      <fieldset>
        <legend>${words.mode}</legend>
        <ul class="choices">
          ${(['public', 'key', 'password'] as const).map(
            (mode) =>
              html`<li>
                <label
                  ><input
                    type="radio"
                    name="access"
                    value="${mode}"
                    ${view.access === mode ? html`checked` : ''}
                  />${words.modes[mode]}</label
                >
              </li>`,
          )}
        </ul>
      </fieldset>
      ${renderTextField(password, errors, visit)}
      <button type="submit" name="action" value="set-access">${text.manage.actions['set-access']}</button>
    </form>
    ${
      rows.length === 0
        ? ''
        : renderTable(
            words.keys,
            [{ title: words.key }, { title: text.manage.at }, { title: text.manage.action }],
            rows,
          )
    }
    ${view.access === 'public' ? '' : renderKeyForm(content, visit)}
  </section>`;
}

function renderKeyForm({ path, token, problem }: ManageContent, visit: Visit): Html {
  const words = visit.text.manage.access;
  const name = {
    ...{ name: 'key-name', label: words.key, help: words.keyHelp, value: '', maxLength: 40 },
    isRequired: true,
  };
  return html`<form class="panel" method="post" action="${path}">
    ${renderHidden('token', token)} ${renderTextField(name, problem?.errors ?? [], visit)}
    <button type="submit" class="quiet" name="action" value="create-access-key">${words.create}</button>
  </form>`;
}

/** The slug of the app, and the form that changes it. */
export function renderName(content: ManageContent, visit: Visit): Html {
  const { app, actions, problem, path, token } = content;
  const { text, format } = visit;
  const words = text.manage.rename;
  if (!actions.has('rename') || app.control.deleteAfter !== undefined) return html``;
  const field = {
    ...{ name: 'new-slug', label: words.slug, help: words.slugHelp, value: '', maxLength: 40 },
    isRequired: true,
  };
  return html`<section aria-labelledby="name">
    <h2 id="name">${words.title}</h2>
    <p>${words.lead}</p>
    ${renderFacts([[words.address, app.url]])}
    ${
      app.former_slugs.length === 0
        ? ''
        : renderTable(
            words.former,
            [{ title: words.former }, { title: words.until }],
            app.former_slugs.map(({ slug, until }) => [html`<code>${slug}</code>`, format.dateTime(until)]),
          )
    }
    <form class="panel" method="post" action="${path}">
      ${renderHidden('token', token)} ${renderTextField(field, problem?.errors ?? [], visit)}
      <button type="submit" class="quiet" name="action" value="rename">${text.manage.actions.rename}</button>
    </form>
  </section>`;
}

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

/** The tokens of an app, and the form that makes one. Only an owner sees them. */
export function renderTokens(content: ManageContent, visit: Visit): Html {
  const { tokens: view } = content;
  if (view === undefined) return html``;
  const { text, format } = visit;
  return html`<section aria-labelledby="tokens">
    <h2 id="tokens">${text.manage.tokens}</h2>
    <p>${text.manage.tokensLead}</p>
    ${
      view.tokens.length === 0
        ? ''
        : renderTable(
            text.manage.tokens,
            [
              { title: text.manage.tokenName },
              { title: text.manage.tokenScopes },
              { title: text.manage.state },
              { title: text.manage.tokenEnds },
              { title: text.manage.tokenUsed },
              { title: text.manage.action },
            ],
            view.tokens.map((token) => [
              html`${renderAuthored(token.name)} <code>${token.id}</code>`,
              html`<code>${token.scopes.join(', ')}</code>`,
              text.manage.tokenStates[token.state],
              format.dateTime(token.expires_at),
              token.last_used_at === undefined ? renderMissing(visit) : format.dateTime(token.last_used_at),
              token.state === 'active'
                ? renderAction(content, 'revoke-token', visit, renderHidden('id', token.id))
                : renderMissing(visit),
            ]),
          )
    }
    ${content.actions.has('create-token') ? renderTokenForm(content, visit) : ''}
  </section>`;
}

function renderTokenForm({ path, token, problem }: ManageContent, visit: Visit): Html {
  const { text } = visit;
  const errors = problem?.errors ?? [];
  const name = {
    ...{ name: 'token-name', label: text.manage.tokenName, help: text.manage.tokenNameHelp, value: '' },
    ...{ maxLength: 60, isRequired: true },
  };
  const days = {
    ...{ name: 'expires_in_days', label: text.manage.tokenDays, help: text.manage.tokenDaysHelp, value: '90' },
    ...{ maxLength: 3, isRequired: true },
  };
  return html`<form class="panel" method="post" action="${path}">
    ${renderHidden('token', token)} ${renderTextField(name, errors, visit)}
    <fieldset>
      <legend>${text.manage.tokenScopes}</legend>
      <ul class="choices">
        ${scopes.map(
          (scope) =>
            html`<li>
              <label>
                <input
                  type="checkbox"
                  name="scopes"
                  value="${scope}"
                  ${viewerScopes.includes(scope) ? html`checked` : ''}
                />
                <code>${scope}</code>
                <small>${text.manage.scopes[scope]}</small>
              </label>
            </li>`,
        )}
      </ul>
    </fieldset>
    ${renderTextField(days, errors, visit)}
    <button type="submit" name="action" value="create-token">${text.manage.actions['create-token']}</button>
  </form>`;
}
