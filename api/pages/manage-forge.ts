// The parts of the author's page about the forge: the deploy key of a private repository, and commit statuses: the forge token, whether the forge accepts it, and what was reported.
import type { z } from 'zod';
import type { forgeTokenView } from '../apps/index.ts';
import { type Html, html } from '../http/index.ts';
import { type ManageContent, renderAction, renderHidden } from './manage-content.ts';
import {
  renderCode,
  renderCommit,
  renderEnglish,
  renderFacts,
  renderMissing,
  renderOutwardLink,
  renderTable,
  renderTextField,
} from './parts.ts';
import type { Visit } from './visit.ts';

/** Statuses that the page shows; the endpoint lists more. */
const shownStatuses = 10;

/** The key with which a private repository is read. */
export function renderDeployKey({ deployKey: key }: ManageContent, visit: Visit): Html {
  if (key === undefined) return html``;
  const { deployKey: text } = visit.text.manage;
  return html`<section aria-labelledby="deploy-key">
    <h2 id="deploy-key">${text.title}</h2>
    <p>${text.lead}</p>
    ${renderCode(key.public_key, text.key)}
    ${renderFacts([
      [text.fingerprint, html`<code>${key.fingerprint}</code>`],
      [text.page, key.page === undefined ? undefined : renderOutwardLink(key.page, key.page)],
    ])}
  </section>`;
}

export function renderForge(content: ManageContent, visit: Visit): Html {
  const { forgeToken: view } = content;
  if (view === undefined) return html``;
  const { forge } = visit.text.manage;
  return html`<section aria-labelledby="forge">
    <h2 id="forge">${forge.title}</h2>
    <p>${forge.lead}</p>
    ${renderState(view, visit)} ${renderForms(content, view, visit)} ${renderStatuses(view, visit)}
  </section>`;
}

function renderState({ set, set_at: at, refused, reason }: z.output<typeof forgeTokenView>, visit: Visit): Html {
  const { forge } = visit.text.manage;
  if (refused !== undefined) return html`<p class="notice rejected">${renderEnglish(refused.message, visit)}</p>`;
  if (reason !== undefined) return html`<p class="empty">${renderEnglish(reason, visit)}</p>`;
  if (!set) return html`<p class="empty">${forge.none}</p>`;
  return html`<p>${forge.isSet} ${at === undefined ? '' : visit.format.dateTime(at)}</p>`;
}

function renderForms(
  content: ManageContent,
  { set, forge: kind }: z.output<typeof forgeTokenView>,
  visit: Visit,
): Html {
  const { forge } = visit.text.manage;
  const field = {
    ...{ name: 'forge-token', label: forge.token, help: forge.tokenHelp, value: '', type: 'password' as const },
    ...{ maxLength: 500, isRequired: true },
  };
  const { path, token, actions, problem } = content;
  const canSet = kind !== undefined && actions.has('set-forge-token');
  return html`${
    canSet
      ? html`<form class="panel" method="post" action="${path}">
          ${renderHidden('token', token)} ${renderTextField(field, problem?.errors ?? [], visit)}
          <button type="submit" name="action" value="set-forge-token">
            ${visit.text.manage.actions['set-forge-token']}
          </button>
        </form>`
      : ''
  }
  ${set ? renderAction(content, 'delete-forge-token', visit) : ''}`;
}

function renderStatuses({ statuses }: z.output<typeof forgeTokenView>, visit: Visit): Html {
  if (statuses.length === 0) return html``;
  const { text, format } = visit;
  const { forge, notify } = text.manage;
  const rows = statuses
    .slice(0, shownStatuses)
    .map(({ commit, state, description, at, delivery, error }) => [
      renderCommit(commit),
      forge.states[state],
      renderEnglish(description, visit),
      format.dateTime(at),
      notify.states[delivery],
      error === undefined ? renderMissing(visit) : renderEnglish(error, visit),
    ]);
  return renderTable(
    forge.title,
    [
      { title: text.app.commit },
      { title: text.manage.state },
      { title: forge.description },
      { title: text.manage.at },
      { title: forge.delivery },
      { title: notify.error },
    ],
    rows,
  );
}
