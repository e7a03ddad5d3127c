// Mail as the chart sets it up: the API alone has the URL of the SMTP server, and its network policy opens the way there.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { findNamed, render, required, type Rendered } from '../../support/chart.ts';

const variable = z.looseObject({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z.looseObject({ secretKeyRef: z.record(z.string(), z.unknown()).optional() }).optional(),
});
const deployment = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      spec: z.looseObject({ containers: z.array(z.looseObject({ env: z.array(variable).default([]) })) }),
    }),
  }),
});
const policy = z.looseObject({
  spec: z.looseObject({
    egress: z.array(
      z.looseObject({
        to: z.array(z.looseObject({ ipBlock: z.looseObject({ cidr: z.string() }).optional() })).optional(),
        ports: z.array(z.looseObject({ port: z.union([z.int(), z.string()]) })).optional(),
      }),
    ),
  }),
});

function listMailVariables(objects: readonly Rendered[]): z.output<typeof variable>[] {
  const { containers } = deployment.parse(findNamed(objects, 'Deployment', 'moorage-api')).spec.template.spec;
  return containers.flatMap(({ env }) => env).filter(({ name }) => /SMTP|MAIL/.test(name));
}

/** The addresses that the API reaches on a port. */
function listAddresses(objects: readonly Rendered[], port: number): (string | undefined)[] {
  const { egress } = policy.parse(findNamed(objects, 'NetworkPolicy', 'moorage-api')).spec;
  return egress
    .filter((rule) => rule.ports?.some((opened) => opened.port === port) === true)
    .flatMap(({ to = [] }) => to.map(({ ipBlock }) => ipBlock?.cidr));
}

test('sends no mail, and opens no way to a mail server, unless a Secret is named', async () => {
  const objects = await render(required);
  assert.deepEqual(listMailVariables(objects), []);
  assert.deepEqual(listAddresses(objects, 465), []);
});

test('gives the URL to the API alone, and reaches the public internet on the port of the server', async () => {
  const from = 'Moorage <notify@example.org>';
  const objects = await render({ ...required, mail: { urlSecret: 'moorage-smtp', from } });
  assert.deepEqual(
    listMailVariables(objects).map(({ name, value, valueFrom }) => [name, value ?? valueFrom?.secretKeyRef]),
    [
      ['MOORAGE_MAIL_FROM', from],
      ['MOORAGE_SMTP_URL', { name: 'moorage-smtp', key: 'url' }],
      ['MOORAGE_SMTP_CA', { name: 'moorage-smtp', key: 'ca.crt', optional: true }],
    ],
  );
  const naming = objects.filter((object) => JSON.stringify(object).includes('moorage-smtp'));
  assert.deepEqual(
    naming.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ['Deployment moorage-api'],
  );
  assert.deepEqual(listAddresses(objects, 465), ['0.0.0.0/0', '::/0']);
});

test('reaches a private server at its addresses alone', async () => {
  const mail = { urlSecret: 'moorage-smtp', from: 'notify@example.org', cidrs: ['10.9.8.7/32'], port: 587 };
  const objects = await render({ ...required, mail });
  assert.deepEqual(listAddresses(objects, 587), ['10.9.8.7/32']);
});
