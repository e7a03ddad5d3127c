// What the author's page of an app is made of, and the forms with which its sections act.
import type { z } from 'zod';
import type { Problem } from '../../lib/problem.ts';
import type {
  accessView,
  appCrashesView,
  appLogView,
  auditView,
  deployKeyView,
  domainsView,
  figuresView,
  forgeTokenView,
  notificationsView,
  ownAppView,
  previewsView,
  runsView,
  secretsView,
  settingsView,
  tasksView,
  tokensView,
} from '../apps/index.ts';
import { type Html, html } from '../http/index.ts';
import type { Visit } from './visit.ts';

/** A secret that this installation made. */
export interface ShownSecret {
  readonly secret: string;
  /** What to do with it, in English. */
  readonly message: string;
}

export type OwnApp = z.output<typeof ownAppView>;

/** What the page is made of; a part that this installation does not have is undefined. */
export interface ManageContent {
  readonly slug: string;
  readonly app: OwnApp;
  readonly previews: z.output<typeof previewsView> | undefined;
  readonly audit: z.output<typeof auditView> | undefined;
  readonly figures: z.output<typeof figuresView> | undefined;
  readonly secrets: z.output<typeof secretsView> | undefined;
  readonly settings: z.output<typeof settingsView> | undefined;
  readonly log: z.output<typeof appLogView> | undefined;
  readonly crashes: z.output<typeof appCrashesView> | undefined;
  readonly access: z.output<typeof accessView> | undefined;
  readonly domains: z.output<typeof domainsView> | undefined;
  readonly tasks: z.output<typeof tasksView> | undefined;
  readonly runs: z.output<typeof runsView> | undefined;
  /** Id of the run whose log is shown; empty for the log of the app. */
  readonly run: string;
  readonly forgeToken: z.output<typeof forgeTokenView> | undefined;
  readonly deployKey: z.output<typeof deployKeyView> | undefined;
  readonly tokens: z.output<typeof tokensView> | undefined;
  readonly notifications: z.output<typeof notificationsView> | undefined;
  /** What the log is searched for. */
  readonly search: string;
  /** Why the last action was refused. */
  readonly problem: Problem | undefined;
  /** What the last action answered, and is never shown again. */
  readonly shown: ShownSecret | undefined;
  /** The action that was carried out. */
  readonly done: string | undefined;
  /** Address of the page, to which its forms are sent. */
  readonly path: string;
  /** Token of the session. */
  readonly token: string;
  /** Actions that this installation offers. */
  readonly actions: ReadonlySet<string>;
}

export type ActionName = keyof Visit['text']['manage']['actions'];

/** A form with the button of an action; nothing if this installation does not offer it. */
export function renderAction(
  { path, token, actions }: ManageContent,
  name: ActionName,
  { text }: Visit,
  fields: Html = html``,
): Html {
  if (!actions.has(name)) return html``;
  return html`<form method="post" action="${path}">
    <input type="hidden" name="token" value="${token}" />${fields}
    <button type="submit" class="quiet" name="action" value="${name}">${text.manage.actions[name]}</button>
  </form>`;
}

export function renderHidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}" />`;
}
