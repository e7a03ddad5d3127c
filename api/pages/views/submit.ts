// The form by which a repository is submitted.
import { html } from '../../http/index.ts';
import type { Problem } from '../../../lib/problem.ts';
import type { Page } from '../page.ts';
import { code } from '../parts.ts';
import type { Visit } from '../visit.ts';
import { errorSummary, textField } from './fields.ts';

export interface SubmitForm {
  readonly repo: string;
  readonly contact: string;
  readonly note: string;
}

const names = ['repo', 'contact', 'note'];

export function submitPage(form: SubmitForm, problem: Problem | undefined, visit: Visit): Page {
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
      ${problem === undefined ? '' : errorSummary(text.submit.errors, problem, names, visit)}
      <div class="split">
        <form class="panel" method="post" action="${visit.link('/submit')}">
          ${[repo, contact, note].map((field) => textField(field, errors, visit))}
          <button type="submit">${text.submit.send}</button>
        </form>
        <section aria-labelledby="next">
          <h2 id="next">${text.submit.next}</h2>
          <ol class="steps">
            ${text.submit.steps.map((step) => html`<li>${step}</li>`)}
          </ol>
          <h2>${text.submit.api}</h2>
          ${code(`curl ${visit.site.baseUrl}/api/submit --json '{"repo": "owner/name"}'`, text.submit.api)}
        </section>
      </div>`,
  };
}
