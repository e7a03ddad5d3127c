// The form that submits a repository, and the page that follows its build: stages, rejection, findings and log.
import { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { statusView, type StatusView, submissionView } from '../apps/index.ts';
import {
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  type RawInput,
  type RequestFields,
  html,
  type Html,
} from '../http/index.ts';
import type { Sessions } from './session.ts';
import { type Calls, createPageEndpoint, redirectTo, type Page } from './page.ts';
import { renderManageLink, renderRepository, toStatusPath } from './app-page.ts';
import { readField, type PageSite, type Visit } from './visit.ts';
import {
  renderCode,
  renderAuthored,
  renderBadge,
  renderCommit,
  renderComponents,
  renderEnglish,
  renderFacts,
  renderOutwardLink,
  toPath,
  renderTable,
  renderErrorSummary,
  renderTextField,
} from './parts.ts';

export function createSubmitPages(site: PageSite, calls: Calls): Endpoint[] {
  const submit = calls.find('POST', '/api/submit', submissionView);
  if (submit === undefined) return [];
  return [
    createPageEndpoint(site, {
      path: '/submit',
      operation: 'showSubmitForm',
      summary: 'Submit a repository',
      render: ({ query }, visit) => buildSubmitPage(readSubmitForm(query), undefined, visit),
    }),
    createPageEndpoint(site, {
      method: 'POST',
      path: '/submit',
      operation: 'sendSubmitForm',
      summary: 'Submit a repository by form',
      async render({ form: fields }, visit, context) {
        const form = readSubmitForm(fields);
        try {
          const view = await submit(context, { body: toSubmission(form) });
          return redirectTo(toStatusPath(view.status_url, visit) ?? visit.link('/submit'));
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          return buildSubmitPage(form, error, visit);
        }
      },
    }),
  ];
}

function readSubmitForm(fields: RequestFields): SubmitForm {
  const read = (name: string): string => (readField(fields, name) ?? '').trim();
  return { repo: read('repo'), contact: read('contact'), note: read('note') };
}

/** Leaves out empty fields. */
function toSubmission({ repo, contact, note }: SubmitForm): Record<string, string> {
  return { repo, ...(contact === '' ? {} : { contact }), ...(note === '' ? {} : { note }) };
}

export function createStatusPages(site: PageSite, calls: Calls, sessions: Sessions): Endpoint[] {
  const readStatus = calls.find('GET', '/api/submit-status/{owner}/{name}', statusView);
  const readLog = calls.findStream('/api/submit-status/{owner}/{name}/log');
  if (readStatus === undefined || readLog === undefined) return [];
  return [
    // The log of a private repository, for its author, who has signed in: a script has no key to send.
    defineEndpoint({
      method: 'GET',
      path: '/status/{owner}/{name}/log',
      operation: 'showBuildLog',
      tag: 'pages',
      summary: 'The build log of a private repository',
      description: 'The build log of a private repository',
      read: ({ params, query }: RawInput) => ({ params, host: readField(query, 'host') }),
      output: z.string(),
      outputDescription: 'The log as server-sent events.',
      produces: [eventStreamType],
      head: () => Promise.resolve(new Response(null, { headers: { 'content-type': eventStreamType } })),
      handler: ({ params, host }, context) => {
        const key = sessions.read(context.headers)?.key;
        return readLog(context, {
          params,
          query: host === undefined ? {} : { host },
          ...(key === undefined ? {} : { key }),
        });
      },
    }),
    createPageEndpoint(site, {
      path: '/status/{owner}/{name}',
      operation: 'showStatus',
      summary: 'The status of a submitted repository',
      async render({ params, query: queryFields }, visit, context) {
        const { owner = '', name = '' } = params;
        const host = readField(queryFields, 'host');
        try {
          const query = host === undefined ? {} : { host };
          const view = await readStatus(context, { params: { owner, name }, query });
          const session = view.private === true ? sessions.read(context.headers) : undefined;
          if (session === undefined) return buildStatusPage({ owner, name, view }, visit);
          const own = await readStatus(context, { params: { owner, name }, query, key: session.key });
          return { ...buildStatusPage({ owner, name, view: own }, visit), isPrivate: true };
        } catch (error) {
          if (error instanceof Problem && error.type.status === 404)
            return buildUnsubmittedPage(`${owner}/${name}`, visit);
          throw error;
        }
      },
    }),
  ];
}

export interface SubmitForm {
  readonly repo: string;
  readonly contact: string;
  readonly note: string;
}

const names = ['repo', 'contact', 'note'];

export function buildSubmitPage(form: SubmitForm, problem: Problem | undefined, visit: Visit): Page {
  const { text } = visit;
  const errors = problem?.errors ?? [];
  const repo = {
    name: 'repo',
    label: text.submit.repo,
    help: text.submit.repoHelp,
    value: form.repo,
    isRequired: true,
    maxLength: 512,
  };
  const contact = {
    name: 'contact',
    label: text.submit.contact,
    help: text.submit.contactHelp,
    value: form.contact,
    maxLength: 300,
    autocomplete: 'email',
  };
  const note = { name: 'note', label: text.submit.note, help: text.submit.noteHelp, value: form.note, maxLength: 500 };
  return {
    title: text.submit.title,
    description: text.submit.lead,
    ...(problem === undefined ? {} : { status: problem.type.status }),
    main: html`<h1>${text.submit.title}</h1>
      <p class="lead">${text.submit.lead}</p>
      ${problem === undefined ? '' : renderErrorSummary(text.submit.errors, problem, names, visit)}
      <div class="split">
        <form class="panel" method="post" action="${visit.link('/submit')}">
          ${[repo, contact, note].map((field) => renderTextField(field, errors, visit))}
          <button type="submit">${text.submit.send}</button>
        </form>
        <section aria-labelledby="next">
          <h2 id="next">${text.submit.next}</h2>
          <ol class="steps">
            ${text.submit.steps.map((step) => html`<li>${step}</li>`)}
          </ol>
          <h2>${text.submit.api}</h2>
          ${renderCode(`curl ${visit.site.baseUrl}/api/submit --json '{"repo": "owner/name"}'`, text.submit.api)}
        </section>
      </div>`,
  };
}

type Rejection = NonNullable<StatusView['rejection']>;
type Finding = NonNullable<StatusView['findings']>[number];
type Build = NonNullable<StatusView['history']>[number];

/** Seconds after which a browser without scripts looks again. */
const refreshSeconds = 5;

export interface StatusContent {
  readonly owner: string;
  readonly name: string;
  readonly view: StatusView;
}

export function buildStatusPage({ owner, name, view }: StatusContent, visit: Visit): Page {
  const { text, site } = visit;
  const isMoving = view.status === 'in_pipeline' || view.update !== undefined;
  return {
    title: text.status.title(`${owner}/${name}`),
    json: toPath(view.status_url, site.baseUrl),
    ...(isClosed(view) ? {} : { scripts: ['status.js'] as const }),
    // Headers of the head come before scripts run, so only a browser without them loads again.
    ...(isMoving ? { head: html`<noscript><meta http-equiv="refresh" content="${refreshSeconds}" /></noscript>` } : {}),
    main: html`<h1>${renderAuthored(`${owner}/${name}`)}</h1>
      <p class="hidden" role="status" id="announcement"></p>
      <div id="state" data-state="${view.status}" data-moving="${isMoving ? 'yes' : 'no'}">
        ${renderState(view, visit)}
      </div>
      ${isClosed(view) ? renderClosedLog(view, visit) : renderLog(view, isMoving, visit)}`,
  };
}

/** Whether the source is private, and the visitor not its author: only they get `findings` or a plan, or see why. */
function isClosed(view: StatusView): boolean {
  return view.private === true && view.readable !== true;
}

function renderClosedLog({ slug }: StatusView, visit: Visit): Html {
  const { text } = visit;
  return html`<section aria-labelledby="log-title">
    <h2 id="log-title">${text.status.liveLog}</h2>
    <p>${text.status.closed}</p>
    <p class="actions">${renderManageLink(slug, visit)}</p>
  </section>`;
}

/** The page of a repository that nobody has submitted, with the way to do so. */
export function buildUnsubmittedPage(repo: string, visit: Visit): Page {
  const { text } = visit;
  return {
    title: repo,
    status: 404,
    main: html`<h1>${renderAuthored(repo)}</h1>
      <p class="lead">${text.status.absent}</p>
      <p class="actions"><a class="button" href="${visit.link('/submit', { repo })}">${text.submit.title}</a></p>`,
  };
}

function renderState(view: StatusView, visit: Visit): Html {
  const { text, format } = visit;
  return html`<div class="heading">
      <h2 id="headline">${text.status.headline[view.status]}</h2>
      ${renderBadge(view.status, visit)}
    </div>
    ${view.status === 'rejected' ? '' : html`<p>${renderEnglish(view.message, visit)}</p>`} ${renderStages(view, visit)}
    ${view.position === undefined ? '' : html`<p>${text.status.position(format.integer(view.position))}</p>`}
    ${view.status === 'live' ? html`<p class="actions">${renderOpenLink(view.url, visit)} ${renderManageLink(view.slug, visit)}</p>` : ''}
    ${view.rejection === undefined ? '' : renderRejection(view.rejection, text.status.reason, visit, view.license)}
    ${view.rejection === undefined ? '' : renderRetryForm(view, visit)}
    ${view.problem === undefined ? '' : renderRejection(view.problem, isNewest(view) ? text.status.ownProblem : text.status.problem, visit, view.license)}
    ${view.warning === undefined ? '' : html`<p class="notice in_pipeline"><strong>${text.status.warning}:</strong> ${renderEnglish(view.warning, visit)}</p>`}
    ${renderAbout(view, visit)} ${renderFindings(view.findings ?? [], visit)} ${renderHistory(view, visit)}`;
}

function renderOpenLink(url: string, { text }: Visit): Html {
  return /^https?:\/\//.test(url)
    ? html`<a class="button" href="${url}" rel="noopener">${text.status.open}</a>`
    : html``;
}

/** Whether the serving commit is the newest one, so that an update or a problem belongs to it. */
function isNewest(view: StatusView): boolean {
  return view.commit !== undefined && view.commit === view.newest_commit;
}

function renderStages(view: StatusView, { text }: Visit): Html {
  const { stages: list, stage, update } = view;
  if (list === undefined) {
    if (update === undefined) return html``;
    return html`<p>
      <strong>${isNewest(view) ? text.status.restart : text.status.update}:</strong> ${text.status.stages[update.stage]}
    </p>`;
  }
  return html`<ol class="stages" aria-label="${text.status.stageList}">
    ${list.map(
      (one) =>
        html`<li class="${one.state}" ${one.stage === stage ? html` aria-current="step"` : ''}>
          <span>${text.status.stages[one.stage]}</span> <small>${text.status[one.state]}</small>
        </li>`,
    )}
  </ol>`;
}

function renderPosition(
  { file, line }: { file?: string | undefined; line?: number | undefined },
  { text }: Visit,
): Html | undefined {
  if (file === undefined) return undefined;
  return html`<code>${file}</code>${line === undefined ? '' : html` ${text.status.line(String(line))}`}`;
}

function renderRejection(rejection: Rejection, title: string, visit: Visit, license: StatusView['license']): Html {
  const { text } = visit;
  return html`<section class="notice rejected" aria-labelledby="reason">
    <h3 id="reason">${title}</h3>
    <p class="said">${renderEnglish(rejection.message, visit)}</p>
    ${renderFacts([
      [text.status.fix, renderEnglish(rejection.fix, visit)],
      [text.status.addLicense, renderLicenseLinks(license)],
      [text.status.file, renderPosition(rejection, visit)],
      [text.status.rule, html`<code>${rejection.rule}</code>`],
    ])}
    ${
      license?.text === undefined
        ? ''
        : html`<h4>${text.status.licenseText}</h4>
            ${renderCode(license.text, text.status.licenseText)}`
    }
    ${
      rejection.log === undefined
        ? ''
        : html`<h4>${text.status.log}</h4>
            ${renderCode(rejection.log, text.status.log, 'end')}`
    }
  </section>`;
}

/** Links to the page of the git server that adds the file. */
function renderLicenseLinks(license: StatusView['license']): Html | undefined {
  const links = license?.links ?? [];
  return links.length === 0
    ? undefined
    : html`${links.map(({ title, url }, index) => html`${index === 0 ? '' : ', '}${renderOutwardLink(url, title)}`)}`;
}

function renderRetryForm({ repo, slug }: StatusView, visit: Visit): Html {
  const { text } = visit;
  return html`<p>${text.status.retry}</p>
    <form class="actions" method="post" action="${visit.link('/submit')}">
      <input type="hidden" name="repo" value="${repo}" />
      <button type="submit" class="quiet">${text.status.again}</button>
      ${renderManageLink(slug, visit)}
    </form>`;
}

function renderAbout(view: StatusView, visit: Visit): Html {
  const { text, format } = visit;
  return renderFacts([
    [text.status.repo, renderRepository(view, visit)],
    [text.status.url, view.status === 'live' ? renderOutwardLink(view.url, view.url) : html`${view.url}`],
    [text.status.commit, view.commit === undefined ? undefined : renderCommit(view.commit)],
    [text.status.since, view.since === undefined ? undefined : format.dateTime(view.since)],
    [
      text.status.plan,
      view.plan === undefined ? undefined : html`${view.plan.strategy}. ${renderEnglish(view.plan.reason, visit)}`,
    ],
    [text.app.components, renderComponents(view.components, visit)],
  ]);
}

function renderFindings(list: readonly Finding[], visit: Visit): Html {
  const { text } = visit;
  if (list.length === 0) return html``;
  return html`<section aria-labelledby="findings">
    <h3 id="findings">${text.status.findings}</h3>
    <ul class="findings">
      ${list.map(
        (finding) =>
          html`<li class="${finding.severity}">
            <p class="meta">
              <span class="badge ${finding.severity === 'error' ? 'rejected' : 'in_pipeline'}"
                >${text.status.severity[finding.severity]}</span
              >
              <span><code>${finding.rule}</code></span>
              ${finding.file === undefined ? '' : html`<span>${renderPosition(finding, visit) ?? ''}</span>`}
            </p>
            <p>${renderEnglish(finding.message, visit)}</p>
            <p><strong>${text.status.fix}:</strong> ${renderEnglish(finding.fix, visit)}</p>
          </li>`,
      )}
    </ul>
  </section>`;
}

function renderHistory({ history: builds = [] }: StatusView, visit: Visit): Html {
  const { text, format } = visit;
  if (builds.length === 0) return html``;
  const columns = [
    { title: text.status.number },
    { title: text.status.commit },
    { title: text.status.result },
    { title: text.status.when },
    { title: text.status.why },
  ];
  const rows = builds.map((build) => [
    format.integer(build.number),
    renderCommit(build.commit),
    renderResult(build, visit),
    build.finished_at === undefined ? '' : format.dateTime(build.finished_at),
    renderEnglish(build.reason, visit),
  ]);
  return html`<section aria-labelledby="history">
    <h3 id="history">${text.status.history}</h3>
    ${renderTable(text.status.history, columns, rows)}
  </section>`;
}

/** The result of a build and of its release: an image that was built may still not start. */
function renderResult(build: Build, visit: Visit): Html {
  const results: Readonly<Record<string, string>> = visit.text.status.results;
  const releases: Readonly<Record<string, string>> = visit.text.status.releases;
  const { result: outcome, release, message, release_message: releaseMessage = message } = build;
  return html`${results[outcome] ?? outcome}${release === undefined ? '' : html`, ${releases[release] ?? release}`}${
    releaseMessage === undefined ? '' : html`<br /><small>${renderEnglish(releaseMessage, visit)}</small>`
  }`;
}

/** The words that the script needs stand in attributes: it knows no language. */
function renderLog(view: StatusView, isMoving: boolean, visit: Visit): Html {
  const { text, site } = visit;
  const { stageLog } = text.status;
  const path = toPath(view.log_url, site.baseUrl);
  const url = view.private === true ? path.replace('/api/submit-status/', '/status/') : path;
  return html`<section aria-labelledby="log-title">
    <h2 id="log-title">${text.status.liveLog}</h2>
    <div
      id="log"
      data-url="${url}"
      data-clone="${stageLog.clone}"
      data-review="${stageLog.review}"
      data-build="${stageLog.build}"
      data-gone="${text.status.logGone}"
      data-lost="${text.status.logLost}"
    >
      <p data-part="lead" hidden>${text.status.liveLogLead}</p>
      <button type="button" class="quiet" data-part="show" hidden>${text.status.showLog}</button>
      <p data-part="note" role="status"></p>
      <pre
        class="code log"
        data-part="lines"
        tabindex="0"
        role="log"
        aria-live="off"
        aria-label="${text.status.liveLog}"
        hidden
      ></pre>
    </div>
    ${isMoving ? html`<noscript><p>${text.status.noScript}</p></noscript>` : ''}
    <h3>${text.status.logFrom}</h3>
    ${renderCode(`curl -N -H 'Accept: text/plain' '${view.log_url}'`, text.status.logFrom)}
  </section>`;
}
