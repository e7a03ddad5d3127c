// The endpoints with which an author adds contacts, and the links in mails with which their owners confirm an address or stop the
// mails. A contact that nobody has confirmed gets one mail: the question.
import { readSlug } from '../../../crds/slugs.ts';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { changeProblems, slugParams } from '../author/endpoints.ts';
import type { App } from '../hosted-apps.ts';
import { noNotifications, tooManyConfirmations, tooManyContacts, unknownStopLink } from '../problems.ts';
import {
  databaseProblems,
  maskAddress,
  messageView,
  noMailServer,
  type NotificationServices,
  path,
} from './endpoints.ts';
import { describeApp, mailAddress } from './events.ts';
import type { ConfirmTarget, StopTarget } from './messages.ts';
import { type ContactOutcome, maximumContacts } from './recipients.ts';

export function createContactEndpoints(services: NotificationServices): Endpoint[] {
  return [
    createAddition(services),
    createRemoval(services),
    ...createConfirmEndpoints(services),
    ...createStopEndpoints(services),
  ];
}

/** What an author reads of a contact that cannot be added. */
const refusals: Readonly<Record<Exclude<ContactOutcome, 'requested' | 'confirmed'>, () => Problem>> = {
  stopped: () =>
    new Problem(noNotifications, 'The owner of this address wants no mails about this app. Add another contact.'),
  'too-many': () =>
    new Problem(tooManyContacts, `An app has at most ${maximumContacts} contacts here. Remove one of them first.`),
  limited: () =>
    new Problem(
      tooManyConfirmations,
      'In the last 24 hours, enough mails asked this address, or the contacts of this app, for a confirmation. Try again tomorrow.',
      { headers: { 'retry-after': '86400' } },
    ),
};

function createAddition({ access, recipients, keys, sendsMail }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: `${path}/contacts`,
    operation: 'addNotificationContact',
    tag: 'apps',
    summary: 'Add a contact that is notified by mail',
    description:
      'Sends a mail with a link to the address. It gets notifications once its owner has confirmed it by the link, which is valid for 48 hours. Adding it again sends the mail again.',
    params: slugParams,
    body: z.strictObject({ address: mailAddress.describe('E-mail address.') }),
    output: messageView.extend({ id: z.string(), confirmed: z.boolean() }),
    outputDescription: 'The contact was asked to confirm the address, or has confirmed it before.',
    successStatus: 202,
    returnsCallerData: true,
    problems: [...changeProblems, noNotifications, tooManyContacts, tooManyConfirmations],
    handler: async ({ params: { slug }, body: { address } }, context) => {
      const to = maskAddress(address);
      return access.act(
        slug,
        context,
        { operation: 'addNotificationContact', action: 'add-contact', detail: { to } },
        async ({ app }) => {
          if (!sendsMail) throw new Problem(noNotifications, noMailServer);
          const { uid } = app.metadata;
          const contact = keys.hashContact(address);
          const sealed = { contact, address: keys.sealAddress(uid, address) };
          const outcome = await recipients.addContact({ uid, slug }, sealed, describeApp(app));
          if (outcome !== 'requested' && outcome !== 'confirmed') throw refusals[outcome]();
          const isConfirmed = outcome === 'confirmed';
          const message = isConfirmed
            ? `${to} is confirmed already.`
            : `A mail asks ${to} to confirm the address. Notifications are sent to it after that.`;
          return { slug, message, id: contact, confirmed: isConfirmed };
        },
      );
    },
  });
}

function createRemoval({ access, recipients }: NotificationServices): Endpoint {
  return defineEndpoint({
    method: 'DELETE',
    path: `${path}/contacts/{id}`,
    operation: 'removeNotificationContact',
    tag: 'apps',
    summary: 'Remove a contact',
    description:
      'Nothing more is sent to it, not even what is waiting. Removing none succeeds. The contact in the repository is removed there.',
    params: slugParams.extend({ id: z.string().regex(/^[0-9a-f]{32}$/, 'must be the id of a contact') }),
    output: messageView,
    outputDescription: 'The contact is removed.',
    problems: changeProblems,
    handler: async ({ params: { slug, id } }, context) =>
      access.act(
        slug,
        context,
        { operation: 'removeNotificationContact', action: 'remove-contact', detail: { id } },
        async ({ app }) => {
          const isRemoved = await recipients.remove(app.metadata.uid, 'mail', id);
          return { slug, message: isRemoved ? 'The contact is removed.' : 'There was no such contact.' };
        },
      ),
  });
}

const tokenParams = z.strictObject({ token: z.string().min(1).max(300).describe('As the link in a mail has it.') });
const appName = z.string().describe('The app; empty if it no longer exists.');
export const stopView = z.object({ slug: appName, stopped: z.boolean() });
export const confirmView = z.object({ slug: appName, confirmed: z.boolean() });

function findSlug({ apps }: NotificationServices, uid: string): string {
  const found = apps.listAll().find((app: App) => app.metadata.uid === uid);
  return found === undefined ? '' : readSlug(found);
}

const expiredLink = 'The link has expired, or the address was removed. Ask the author of the app to add it again.';
const foreignLink = 'This link is not one of this installation, or a part of it is missing.';

const linkFields = {
  tag: 'apps',
  params: tokenParams,
  problems: [unknownStopLink, ...databaseProblems],
} as const;

/** Endpoints that show where a link leads, and change nothing: mail scanners open links. */
const lookFields = {
  ...linkFields,
  method: 'GET',
  description: 'Changes nothing, since mail scanners open links.',
  head: 'as GET',
} as const;

function assertLink<Target>(target: Target | undefined): Target {
  if (target !== undefined) return target;
  throw new Problem(unknownStopLink, foreignLink);
}

/** What the link in a request for confirmation leads to. The token is the permission: it was sent to that address alone. */
function createConfirmEndpoints(services: NotificationServices): Endpoint[] {
  const { keys, recipients } = services;
  const shared = { path: '/api/notifications/confirm/{token}', output: confirmView } as const;
  const readToken = (token: string): ConfirmTarget => assertLink(keys.parseConfirmToken(token));
  return [
    defineEndpoint({
      ...{ ...lookFields, ...shared },
      operation: 'showContactConfirmation',
      summary: 'See whether an address is confirmed',
      outputDescription: 'Whether it is confirmed.',
      handler: async ({ params }) => {
        const target = readToken(params.token);
        const isConfirmed = await recipients.findConfirmation(target);
        if (isConfirmed === undefined) throw new Problem(unknownStopLink, expiredLink);
        return { slug: findSlug(services, target.app), confirmed: isConfirmed };
      },
    }),
    defineEndpoint({
      ...{ ...linkFields, ...shared },
      method: 'POST',
      operation: 'confirmContact',
      summary: 'Confirm an address for notifications about an app',
      description: 'Needs no key: the link, which was sent to the address, is the permission.',
      outputDescription: 'It is confirmed.',
      handler: async ({ params }) => {
        const target = readToken(params.token);
        if (!(await recipients.confirm(target))) throw new Problem(unknownStopLink, expiredLink);
        return { slug: findSlug(services, target.app), confirmed: true };
      },
    }),
  ];
}

/** What the link of a mail leads to. The token is the permission: everyone who has the mail may stop the mails. */
function createStopEndpoints(services: NotificationServices): Endpoint[] {
  const { keys, recipients } = services;
  const shared = { path: '/api/notifications/stop/{token}', output: stopView } as const;
  const readToken = (token: string): StopTarget => assertLink(keys.parseStopToken(token));
  return [
    defineEndpoint({
      ...{ ...lookFields, ...shared },
      operation: 'showStoppedMail',
      summary: 'See whether the mails about an app are stopped',
      outputDescription: 'Whether they are stopped.',
      handler: async ({ params }) => {
        const { app, contact } = readToken(params.token);
        return { slug: findSlug(services, app), stopped: (await recipients.findStop(app, contact)) !== undefined };
      },
    }),
    defineEndpoint({
      ...{ ...linkFields, ...shared },
      method: 'POST',
      operation: 'stopMail',
      summary: 'Stop the mails about an app',
      description: 'Stops them for the contact that got the mail. Needs no key: the link is the permission.',
      outputDescription: 'They are stopped.',
      handler: async ({ params }) => {
        const { app, contact } = readToken(params.token);
        await recipients.stopMail(app, contact);
        return { slug: findSlug(services, app), stopped: true };
      },
    }),
  ];
}
