// The pages behind the links in mails about an app: one stops the mails, one confirms an address.
import { confirmView, stopView } from '../apps/index.ts';
import { type Endpoint, html, type RequestContext } from '../http/index.ts';
import { type Calls, createPageEndpoint, type EndpointCall, fillPath, type Page, type PageInput } from './page.ts';
import type { PageSite, Visit } from './visit.ts';

/** What a page behind a link in a mail shows, and whether its form was sent. */
interface LinkState {
  readonly slug: string;
  readonly isDone: boolean;
}

interface LinkPage {
  /** Last folder of its path, and the name of its words. */
  readonly name: 'stop' | 'confirm';
  readonly operations: readonly [show: string, submit: string];
  readonly summary: string;
  readonly find: (method: 'GET' | 'POST', path: string) => EndpointCall<LinkState> | undefined;
}

/**
 * The pages behind the links in mails. Opening one changes nothing, because mail scanners open links; its form does, and so
 * does the POST of a mail program (RFC 8058).
 */
export function createMailLinkPages(site: PageSite, calls: Calls): Endpoint[] {
  const pages: readonly LinkPage[] = [
    {
      ...{ name: 'stop', operations: ['showStopPage', 'stopByPage'] },
      summary: 'The page that stops mails about an app',
      find: (method, path) => {
        const call = calls.find(method, path, stopView);
        return call && (async (...input) => call(...input).then(({ slug, stopped }) => ({ slug, isDone: stopped })));
      },
    },
    {
      ...{ name: 'confirm', operations: ['showConfirmPage', 'confirmByPage'] },
      summary: 'The page that confirms an address for mails about an app',
      find: (method, path) => {
        const call = calls.find(method, path, confirmView);
        return (
          call && (async (...input) => call(...input).then(({ slug, confirmed }) => ({ slug, isDone: confirmed })))
        );
      },
    },
  ];
  return pages.flatMap((page) => createMailLinkPage(site, page));
}

function createMailLinkPage(site: PageSite, { name, operations, summary, find }: LinkPage): Endpoint[] {
  const path = `/notifications/${name}/{token}`;
  const [read, submit] = [find('GET', `/api${path}`), find('POST', `/api${path}`)];
  if (read === undefined || submit === undefined) return [];
  const render =
    (call: EndpointCall<LinkState>) =>
    async ({ params }: PageInput, visit: Visit, context: RequestContext): Promise<Page> => {
      const { slug, isDone } = await call(context, { params });
      const text = visit.text.manage.links[name];
      const title = text.title(slug);
      const form = html`<form method="post" action="${visit.link(fillPath(path, params))}">
        <button type="submit">${text.submit}</button>
      </form>`;
      const main = html`<h1>${title}</h1>
        <p class="lead">${isDone ? text.done : text.lead}</p>
        ${isDone ? '' : form}`;
      return { title, isPrivate: true, main };
    };
  const shared = { path, summary };
  return [
    createPageEndpoint(site, { ...shared, operation: operations[0], render: render(read) }),
    createPageEndpoint(site, {
      ...{ ...shared, method: 'POST', operation: operations[1], ignoresForm: true },
      render: render(submit),
    }),
  ];
}
