// What the author's page of an app shows: control, releases, figures, secrets, settings, log, crashes, the audit log and the end.
import { type Html, html } from '../http/index.ts';
import { type ActionName, type ManageContent, renderAction, renderHidden } from './manage-content.ts';
import { renderAccess, renderDomains, renderName, renderTokens } from './manage-access.ts';
import { renderFigures } from './manage-figures.ts';
import { renderDeployKey, renderForge } from './manage-forge.ts';
import { renderNotifications } from './manage-notifications.ts';
import type { Page } from './page.ts';
import {
  formatOrMissing,
  renderAuthored,
  renderBadge,
  renderCode,
  renderCommit,
  renderEnglish,
  renderErrorSummary,
  renderFacts,
  renderMissing,
  renderTable,
  renderTextField,
} from './parts.ts';
import type { Visit } from './visit.ts';

const formFields = [
  ...['name', 'value', 'replicas', 'idleAfter', 'healthPath', 'slug', 'address', 'url'],
  ...['token-name', 'expires_in_days', 'password', 'key-name', 'domain', 'forge-token', 'new-slug'],
];

export function renderManagePage(content: ManageContent, visit: Visit): Page {
  const { slug, app, problem, done, actions } = content;
  const { text } = visit;
  const isDeleted = app.control.deleteAfter !== undefined;
  const sections = listSections(content, visit);
  const isDone = problem === undefined && done !== undefined && actions.has(done);
  return {
    title: text.manage.title(slug),
    isPrivate: true,
    ...(problem === undefined ? {} : { status: problem.type.status }),
    main: html`<div class="heading">
        <h1>${text.manage.title(slug)}</h1>
        ${isDeleted ? html`<span class="badge rejected">${text.manage.deletedBadge}</span>` : renderBadge(app.status, visit)}
      </div>
      ${problem === undefined ? '' : renderErrorSummary(text.manage.refused, problem, formFields, visit)}
      ${renderShownSecret(content, visit)}
      ${app.allowed.includes('owner') ? '' : html`<p class="notice in_pipeline" role="status">${text.manage.byToken} <code>${app.allowed.join(', ')}</code></p>`}
      ${isDone ? html`<p class="notice live" role="status">${text.manage.done}</p>` : ''}
      ${renderFacts([
        [text.app.source, app.repository],
        [text.manage.state, renderEnglish(app.message, visit)],
      ])}
      <p class="actions">
        <a class="button quiet" href="${visit.link(`/apps/${encodeURIComponent(slug)}`)}">${text.manage.publicPage}</a>
      </p>
      ${renderContents(sections, visit)} ${sections.map(({ body }) => body)}
      <form method="post" action="${content.path}">
        <button type="submit" class="quiet" name="action" value="sign-out">${text.manage.signOut}</button>
      </form>`,
  };
}

interface Section {
  /** Of its heading. */
  readonly id: string;
  readonly title: string;
  readonly body: Html;
}

/** What this author may see, in order. Of a deleted app, the way back comes first. */
function listSections(content: ManageContent, visit: Visit): readonly Section[] {
  const { manage } = visit.text;
  const isDeleted = content.app.control.deleteAfter !== undefined;
  const end = { id: 'end', title: isDeleted ? manage.deleted : manage.end, body: renderEnd(content, visit) };
  const others = [
    { id: 'control', title: manage.control, body: renderControl(content, visit) },
    { id: 'releases', title: manage.releases, body: renderReleases(content, visit) },
    { id: 'previews', title: manage.previews, body: renderPreviews(content, visit) },
    { id: 'figures', title: manage.figures.title, body: renderFigures(content, visit) },
    { id: 'tasks', title: manage.tasks.title, body: renderTasks(content, visit) },
    { id: 'log', title: manage.log, body: renderLog(content, visit) },
    { id: 'crashes', title: manage.crashes, body: renderCrashes(content, visit) },
    { id: 'secrets', title: manage.secrets, body: renderSecrets(content, visit) },
    { id: 'settings', title: manage.settings, body: renderSettings(content, visit) },
    { id: 'hook', title: manage.hook, body: renderHook(content, visit) },
    { id: 'deploy-key', title: manage.deployKey.title, body: renderDeployKey(content, visit) },
    { id: 'forge', title: manage.forge.title, body: renderForge(content, visit) },
    { id: 'notifications', title: manage.notify.title, body: renderNotifications(content, visit) },
    { id: 'access', title: manage.access.title, body: renderAccess(content, visit) },
    { id: 'name', title: manage.rename.title, body: renderName(content, visit) },
    { id: 'domains', title: manage.domains.title, body: renderDomains(content, visit) },
    { id: 'tokens', title: manage.tokens, body: renderTokens(content, visit) },
    { id: 'audit', title: manage.audit, body: renderAudit(content, visit) },
  ];
  return (isDeleted ? [end, ...others] : [...others, end]).filter(({ body }) => body.toString() !== '');
}

function renderContents(sections: readonly Section[], { text }: Visit): Html {
  const items = sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`);
  return html`<nav class="contents" aria-label="${text.manage.contents}">
    <ul>
      ${items}
    </ul>
  </nav>`;
}

function renderShownSecret({ shown }: ManageContent, visit: Visit): Html {
  if (shown === undefined) return html``;
  const { text } = visit;
  return html`<section class="notice live" role="status" aria-labelledby="shown">
    <h2 id="shown">${text.manage.secretOnce}</h2>
    ${renderCode(shown.secret, text.manage.secretOnce)}
    <p>${renderEnglish(shown.message, visit)}</p>
  </section>`;
}

function renderControl(content: ManageContent, visit: Visit): Html {
  const { app } = content;
  const names: ActionName[] =
    app.control.deleteAfter !== undefined
      ? []
      : app.suspended
        ? ['resume']
        : ['restart', 'suspend', 'deploy', 'rebuild', 'rebuild-without-cache'];
  if (!names.some((name) => content.actions.has(name))) return html``;
  return html`<section aria-labelledby="control">
    <h2 id="control">${visit.text.manage.control}</h2>
    ${app.control.release === undefined ? '' : html`<p>${visit.text.manage.pinned(app.control.release.slice(0, 8))}</p>`}
    <div class="actions">${names.map((name) => renderAction(content, name, visit))}</div>
  </section>`;
}

/** A rejection can have words of a stranger's pull request: it is shown as text. */
function renderPreviews({ previews }: ManageContent, visit: Visit): Html {
  const { text, format } = visit;
  if (previews === undefined) return html``;
  const { shows, state, address, wakesIn } = text.manage;
  const titles = [shows, state, address, text.app.commit, text.app.since, wakesIn];
  const renderRow = (name: string, each: typeof previews.production): (Html | string)[] => {
    const commit = each.serving ?? each.commit;
    return [
      name,
      each.asleep ? text.app.restState.asleep : renderBadge(each.status, visit),
      each.status === 'rejected' ? renderEnglish(each.message, visit) : html`<a href="${each.url}">${each.url}</a>`,
      commit === undefined ? renderMissing(visit) : renderCommit(commit),
      each.serving_since === undefined ? renderMissing(visit) : format.dateTime(each.serving_since),
      formatOrMissing(each.wakes_in_ms ?? null, format.duration, visit),
    ];
  };
  const rows = previews.previews.map((each) => renderRow(each.label, each));
  return html`<section aria-labelledby="previews">
    <h2 id="previews">${text.manage.previews}</h2>
    ${
      previews.enabled
        ? renderTable(
            text.manage.previews,
            titles.map((title) => ({ title })),
            [renderRow(text.manage.production, previews.production), ...rows],
          )
        : html`<p class="empty">${text.manage.noPreviews}</p>`
    }
  </section>`;
}

function renderReleases(content: ManageContent, visit: Visit): Html {
  const { text, format } = visit;
  const {
    releases,
    control: { deleteAfter },
  } = content.app;
  const rows = releases.map(({ commit, ready_at: readyAt, crashed_at: crashedAt, serving, good }) => [
    renderCommit(commit),
    format.dateTime(readyAt),
    crashedAt === undefined ? renderMissing(visit) : format.dateTime(crashedAt),
    text.manage[serving ? 'serving' : good ? 'good' : crashedAt === undefined ? 'unproven' : 'crashed'],
    serving || deleteAfter !== undefined
      ? renderMissing(visit)
      : renderAction(content, 'rollback', visit, renderHidden('commit', commit)),
  ]);
  return html`<section aria-labelledby="releases">
    <h2 id="releases">${text.manage.releases}</h2>
    ${
      rows.length === 0
        ? html`<p class="empty">${text.manage.noReleases}</p>`
        : renderTable(
            text.manage.releases,
            [
              { title: text.app.commit },
              { title: text.manage.readyAt },
              { title: text.manage.crashedAt },
              { title: text.manage.state },
              { title: text.manage.action },
            ],
            rows,
          )
    }
  </section>`;
}

function renderTasks(content: ManageContent, visit: Visit): Html {
  const { tasks: view, runs } = content;
  if (view === undefined || (view.tasks.length === 0 && (runs?.runs.length ?? 0) === 0)) return html``;
  const { text, format } = visit;
  const formatAt = (at: string | undefined): Html | string =>
    at === undefined ? renderMissing(visit) : format.dateTime(at);
  const rows = view.tasks.map(({ name, schedule, time_zone: zone, next_run_at: next }) => [
    html`<code>${name}</code>`,
    schedule === undefined ? text.manage.tasks.byHand : html`<code>${schedule}</code> ${zone}`,
    formatAt(next),
    renderAction(content, 'run-task', visit, renderHidden('name', name)),
  ]);
  return html`<section aria-labelledby="tasks">
    <h2 id="tasks">${text.manage.tasks.title}</h2>
    ${
      rows.length === 0
        ? ''
        : renderTable(
            text.manage.tasks.title,
            [
              { title: text.manage.tasks.name },
              { title: text.manage.tasks.schedule },
              { title: text.manage.tasks.next },
              { title: text.manage.action },
            ],
            rows,
          )
    }
    ${renderRuns(content, visit)}
  </section>`;
}

function renderRuns({ runs: view, path }: ManageContent, visit: Visit): Html {
  const { text, format } = visit;
  if (view === undefined || view.runs.length === 0) return html`<p class="empty">${text.manage.tasks.noRuns}</p>`;
  const rows = view.runs.map((run) => {
    const at = run.started_at ?? run.scheduled_at ?? run.requested_at;
    const code = run.exit_code === undefined ? '' : `, ${text.manage.exitCode(String(run.exit_code))}`;
    return [
      html`<code>${run.task}</code>`,
      at === undefined ? renderMissing(visit) : format.dateTime(at),
      run.ended_at === undefined ? renderMissing(visit) : format.dateTime(run.ended_at),
      text.manage.tasks.triggers[run.trigger],
      `${text.manage.tasks.states[run.state]}${code}`,
      html`<a href="${path}${path.includes('?') ? '&' : '?'}run=${encodeURIComponent(run.id)}#log"
        >${text.manage.log}</a
      >`,
    ];
  });
  return renderTable(
    text.manage.tasks.runs,
    [
      { title: text.manage.tasks.name },
      { title: text.manage.tasks.started },
      { title: text.manage.tasks.ended },
      { title: text.manage.tasks.trigger },
      { title: text.manage.state },
      { title: text.manage.log },
    ],
    rows,
  );
}

function renderSecrets(content: ManageContent, visit: Visit): Html {
  const { secrets: view } = content;
  if (view === undefined) return html``;
  const { text } = visit;
  const rows = view.secrets.map(({ name, version }) => [
    html`<code>${name}</code>`,
    String(version),
    renderAction(content, 'delete-secret', visit, renderHidden('name', name)),
  ]);
  const [missing] = view.missing;
  const name = {
    ...{ name: 'name', label: text.manage.secretName, help: text.manage.secretNameHelp, maxLength: 128 },
    ...{ value: missing?.name ?? '', isRequired: true },
  };
  return html`<section aria-labelledby="secrets">
    <h2 id="secrets">${text.manage.secrets}</h2>
    <p>${text.manage.secretsLead}</p>
    ${
      view.missing.length === 0
        ? ''
        : html`<p class="notice in_pipeline">${text.manage.missing}</p>
            <ul>
              ${view.missing.map(({ name: variable, reason }) => html`<li><code>${variable}</code>: ${renderEnglish(reason, visit)}</li>`)}
            </ul>`
    }
    ${
      rows.length === 0
        ? ''
        : renderTable(
            text.manage.secrets,
            [{ title: text.manage.secretName }, { title: text.manage.version }, { title: text.manage.action }],
            rows,
          )
    }
    ${content.actions.has('set-secret') ? renderSecretForm(content, name, visit) : ''}
  </section>`;
}

function renderSecretForm(
  { path, token, problem }: ManageContent,
  name: Parameters<typeof renderTextField>[0],
  visit: Visit,
): Html {
  const { text } = visit;
  return html`<form class="panel" method="post" action="${path}">
    ${renderHidden('token', token)} ${renderTextField(name, problem?.errors ?? [], visit)}
    <div class="field">
      <label for="value">${text.manage.value}</label>
      <p class="help" id="value-help">${text.manage.valueHelp}</p>
      <textarea
        id="value"
        name="value"
        rows="2"
        required
        autocomplete="off"
        spellcheck="false"
        aria-describedby="value-help"
      ></textarea>
    </div>
    <button type="submit" name="action" value="set-secret">${text.manage.actions['set-secret']}</button>
  </form>`;
}

function renderSettings(content: ManageContent, visit: Visit): Html {
  const { settings: view, problem } = content;
  if (view === undefined) return html``;
  const { text } = visit;
  const { env = [], replicas, idleAfter = '', healthPath = '' } = view.settings;
  const errors = problem?.errors ?? [];
  const fields = [
    {
      ...{ name: 'replicas', label: text.manage.replicas, maxLength: 2 },
      ...{ help: text.manage.replicasHelp(String(view.maximum_replicas)), value: replicas?.toString() ?? '' },
    },
    {
      name: 'idleAfter',
      label: text.manage.idleAfter,
      help: text.manage.idleAfterHelp,
      value: idleAfter,
      maxLength: 20,
    },
    {
      ...{ name: 'healthPath', label: text.manage.healthPath, help: text.manage.healthPathHelp },
      ...{ value: healthPath, maxLength: 200 },
    },
  ];
  return html`<section aria-labelledby="settings">
    <h2 id="settings">${text.manage.settings}</h2>
    <p>${text.manage.settingsLead}</p>
    <form class="panel" method="post" action="${content.path}">
      ${renderHidden('token', content.token)} ${fields.map((field) => renderTextField(field, errors, visit))}
      <div class="field">
        <label for="env">${text.manage.env}</label>
        <p class="help" id="env-help">${text.manage.envHelp}</p>
        <textarea id="env" name="env" rows="4" autocomplete="off" spellcheck="false" aria-describedby="env-help">
${env.map(({ name, value }) => `${name}=${value}`).join('\n')}</textarea>
      </div>
      ${
        content.actions.has('change-settings')
          ? html`<button type="submit" name="action" value="change-settings">
              ${text.manage.actions['change-settings']}
            </button>`
          : ''
      }
    </form>
  </section>`;
}

function renderHook(content: ManageContent, visit: Visit): Html {
  const { text } = visit;
  const names: ActionName[] = ['show-hook', 'replace-hook', 'replace-hook-now', 'end-previous-hook'];
  if (!names.some((name) => content.actions.has(name))) return html``;
  return html`<section aria-labelledby="hook">
    <h2 id="hook">${text.manage.hook}</h2>
    <p>${text.manage.hookLead}</p>
    <div class="actions">${names.map((name) => renderAction(content, name, visit))}</div>
  </section>`;
}

function renderLog({ log, search, path, run }: ManageContent, visit: Visit): Html {
  if (log === undefined) return html``;
  const { text } = visit;
  const lines = log.lines.map(({ at, component, line }) => `${at.slice(0, 19)}Z ${component}  ${line}`);
  const field = {
    ...{ name: 'search', label: text.manage.search, help: text.manage.searchHelp },
    ...{ value: search, maxLength: 200 },
  };
  return html`<section aria-labelledby="log">
    <h2 id="log">${text.manage.log}</h2>
    ${run === '' ? '' : html`<p>${text.manage.tasks.logOf} <code>${run}</code>. <a href="${path}#log">${text.manage.tasks.wholeLog}</a></p>`}
    <form class="panel" method="get" action="${path}#log">
      ${run === '' ? '' : renderHidden('run', run)} ${renderTextField(field, [], visit)}
      <button type="submit" class="quiet">${text.manage.find}</button>
    </form>
    ${lines.length === 0 ? html`<p class="empty">${text.manage.noLog}</p>` : renderCode(lines.join('\n'), text.manage.log, 'end')}
  </section>`;
}

function renderCrashes({ crashes: view }: ManageContent, visit: Visit): Html {
  if (view === undefined || view.crashes.length === 0) return html``;
  const { text, format } = visit;
  return html`<section aria-labelledby="crashes">
    <h2 id="crashes">${text.manage.crashes}</h2>
    ${view.crashes.slice(0, 5).map(
      ({ at, component, exit_code: code, reason, lines }) =>
        html`<details>
          <summary>
            ${format.dateTime(at)}: <code>${component}</code>, ${renderEnglish(reason, visit)},
            ${text.manage.exitCode(String(code))}
          </summary>
          ${lines.length === 0 ? html`<p class="empty">${text.manage.noLog}</p>` : renderCode(lines.map(({ line }) => line).join('\n'), text.manage.crashes, 'end')}
        </details>`,
    )}
  </section>`;
}

function renderAudit({ audit }: ManageContent, visit: Visit): Html {
  if (audit === undefined) return html``;
  const { text, format } = visit;
  return html`<section aria-labelledby="audit">
    <h2 id="audit">${text.manage.audit}</h2>
    <p>${text.manage.auditLead}</p>
    ${
      audit.entries.length === 0
        ? html`<p class="empty">${text.manage.noAudit}</p>`
        : renderTable(
            text.manage.audit,
            [
              { title: text.manage.at },
              { title: text.manage.action },
              { title: text.manage.detail },
              { title: text.manage.actor },
              { title: text.manage.outcome },
            ],
            audit.entries.map(({ at, action, detail, actor, actor_name: actorName, outcome }) => [
              format.dateTime(at),
              html`<code>${action}</code>`,
              Object.keys(detail).length === 0
                ? renderMissing(visit)
                : html`<code>${renderAuthored(JSON.stringify(detail))}</code>`,
              html`${actorName === undefined ? '' : html`${renderAuthored(actorName)} `}<code>${actor}</code>`,
              renderEnglish(outcome, visit),
            ]),
          )
    }
  </section>`;
}

/** Deleting the app, or restoring one that was deleted. */
function renderEnd(content: ManageContent, visit: Visit): Html {
  const { app, actions, problem } = content;
  const { text } = visit;
  const { deleteAfter } = app.control;
  if (deleteAfter !== undefined)
    return html`<section aria-labelledby="end">
      <h2 id="end">${text.manage.deleted}</h2>
      <p>${text.manage.deletedLead} ${visit.format.dateTime(deleteAfter)}</p>
      ${renderAction(content, 'restore', visit)}
    </section>`;
  if (!actions.has('delete')) return html``;
  const field = {
    ...{ name: 'slug', label: text.manage.confirm, help: text.manage.confirmHelp, value: '' },
    ...{ maxLength: 63, isRequired: true },
  };
  return html`<section aria-labelledby="end">
    <h2 id="end">${text.manage.end}</h2>
    <p>${text.manage.endLead}</p>
    ${renderAction(content, 'delete', visit, renderTextField(field, problem?.errors ?? [], visit))}
  </section>`;
}
