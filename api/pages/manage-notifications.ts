// The part of the author's page that says who is notified of what, and how the last deliveries went.
import type { z } from 'zod';
import type { notificationsView } from '../apps/index.ts';
import { type Html, html } from '../http/index.ts';
import { type ActionName, type ManageContent, renderAction, renderHidden } from './manage-content.ts';
import { renderEnglish, renderMissing, renderTable, renderTextField } from './parts.ts';
import type { Visit } from './visit.ts';

type Notifications = z.output<typeof notificationsView>;

/** Deliveries that the page shows; the endpoint lists more. */
const shownDeliveries = 10;

export function renderNotifications(content: ManageContent, visit: Visit): Html {
  const { notifications: view, actions } = content;
  if (view === undefined) return html``;
  const { text } = visit;
  return html`<section aria-labelledby="notifications">
    <h2 id="notifications">${text.manage.notify.title}</h2>
    <p>${text.manage.notify.lead}</p>
    ${renderContacts(content, view, visit)} ${renderWebhook(content, view, visit)} ${renderDeliveries(view, visit)}
    ${
      actions.has('test-notifications')
        ? html`<div class="actions">${renderAction(content, 'test-notifications', visit)}</div>`
        : ''
    }
  </section>`;
}

function renderContacts(content: ManageContent, { mail, contacts, events }: Notifications, visit: Visit): Html {
  const { text } = visit;
  const { notify } = text.manage;
  const describe = (isSent: boolean, reason: string | undefined): Html | string =>
    isSent || reason === undefined ? notify.sent : renderEnglish(reason, visit);
  const rows = [
    [
      mail.to ?? renderMissing(visit),
      notify.fromRepository,
      describe(mail.sent, mail.reason),
      mail.sent || mail.to === undefined ? renderMissing(visit) : renderAction(content, 'start-mail', visit),
    ],
    ...contacts.map(({ id, to, confirmed, sent, reason }) => [
      to,
      confirmed ? notify.confirmed : notify.unconfirmed,
      describe(sent, reason),
      renderAction(content, 'remove-contact', visit, renderHidden('id', id)),
    ]),
  ];
  const address = {
    ...{ name: 'address', label: notify.address, help: notify.addressHelp, value: '' },
    ...{ maxLength: 200, isRequired: true },
  };
  return html`<h3>${notify.mails}</h3>
    ${renderTable(
      notify.mails,
      [
        { title: notify.address },
        { title: notify.origin },
        { title: text.manage.state },
        { title: text.manage.action },
      ],
      rows,
    )}
    ${renderForm(content, 'add-contact', renderTextField(address, content.problem?.errors ?? [], visit), visit)}
    ${renderForm(content, 'choose-mail-events', renderEvents('mail', events, mail.events, visit), visit)}`;
}

function renderWebhook(content: ManageContent, { webhook, events }: Notifications, visit: Visit): Html {
  const { notify } = visit.text.manage;
  const url = {
    ...{ name: 'url', label: notify.url, help: notify.urlHelp, value: webhook?.url ?? '' },
    ...{ maxLength: 2_000, isRequired: true },
  };
  const isOff = webhook?.off_since !== undefined;
  return html`<h3>${notify.webhook}</h3>
    ${isOff ? html`<p class="notice rejected">${notify.webhookOff}</p>` : ''}
    ${renderForm(content, 'set-webhook', html`${renderTextField(url, content.problem?.errors ?? [], visit)} ${renderEvents('webhook', events, webhook?.events ?? events, visit)}`, visit)}
    ${webhook === undefined ? '' : renderAction(content, 'remove-webhook', visit)}`;
}

/** A form in a panel; nothing if this installation does not offer its action. */
function renderForm(content: ManageContent, name: ActionName, fields: Html, visit: Visit): Html {
  const { actions, path, token } = content;
  if (!actions.has(name)) return html``;
  return html`<form class="panel" method="post" action="${path}">
    ${renderHidden('token', token)} ${fields}
    <button type="submit" name="action" value="${name}">${visit.text.manage.actions[name]}</button>
  </form>`;
}

function renderEvents(
  prefix: string,
  events: Notifications['events'],
  chosen: readonly string[],
  { text }: Visit,
): Html {
  const { notify } = text.manage;
  return html`<fieldset>
    <legend>${notify.events}</legend>
    <ul class="choices">
      ${events.map(
        (kind) =>
          html`<li>
            <label for="${prefix}-${kind}">
              <input
                type="checkbox"
                id="${prefix}-${kind}"
                name="events"
                value="${kind}"
                ${chosen.includes(kind) ? html`checked` : ''}
              />
              ${notify.kinds[kind]}
            </label>
          </li>`,
      )}
    </ul>
  </fieldset>`;
}

function renderDeliveries({ deliveries }: Notifications, visit: Visit): Html {
  const { text, format } = visit;
  const { notify } = text.manage;
  const names: Readonly<Record<string, string>> = { ...notify.kinds, ...notify.otherKinds };
  const rows = deliveries
    .slice(0, shownDeliveries)
    .map(({ at, type, channel, to, state, attempts, error }) => [
      format.dateTime(at),
      names[type] ?? type,
      to === undefined ? notify.channels[channel] : `${notify.channels[channel]}: ${to}`,
      html`${notify.states[state]}${attempts > 1 ? ` (${notify.attempts(String(attempts))})` : ''}`,
      error === undefined ? renderMissing(visit) : renderEnglish(error, visit),
    ]);
  return html`<h3>${notify.deliveries}</h3>
    ${
      rows.length === 0
        ? html`<p class="empty">${notify.noDeliveries}</p>`
        : renderTable(
            notify.deliveries,
            [
              { title: text.manage.at },
              { title: notify.event },
              { title: notify.recipient },
              { title: text.manage.state },
              { title: notify.error },
            ],
            rows,
          )
    }`;
}
