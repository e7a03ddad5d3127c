// The schema of problems in the OpenAPI document: the members of RFC 9457 and those that our types add.
import { z } from 'zod';
import { quotaFields } from '../../billing/index.ts';

type Json = Record<string, unknown>;

const text = { type: 'string' };
const count = { type: 'integer' };
const texts = { type: 'array', items: text };
const described = (schema: Json, description: string): Json => ({ ...schema, description });

const { $schema: _, ...quota } = z.toJSONSchema(quotaFields, { io: 'input' });

/** Members beside those of RFC 9457; a problem has those that help with it. */
export const addedMembers: Readonly<Record<string, Json>> = {
  actions: {
    type: 'array',
    description: 'Ways to continue.',
    items: {
      type: 'object',
      required: ['action', 'description'],
      properties: {
        action: text,
        description: text,
        header: described(text, 'A header to send.'),
        until: described(text, 'When it can be done.'),
        models: texts,
      },
    },
  },
  quota: described(quota, 'The quota that does not cover the call. Amounts are decimal strings.'),
  nearest: described(texts, 'The most similar names there are.'),
  offers: described(texts, 'The media types that the endpoint answers with.'),
  models: described(texts, 'The models that need a key.'),
  model: described(text, 'The model that was asked.'),
  cost_usd: described(
    { type: 'number' },
    'What the call cost: 0, or what its model calls before the failure cost. Every problem at /t has it, unless the cost is pending.',
  ),
  charged_usd: described({ type: 'number' }, 'What of it you are charged.'),
  cost_source: described(text, 'Where the cost comes from; `pending` while it is not known.'),
  latency_ms: count,
  limit: described({ anyOf: [text, count] }, 'Which limit was reached, or how high it is.'),
  used: described(count, 'How much of the limit is used.'),
  limit_bytes: count,
  limit_entries: count,
  limit_ms: count,
  limit_mb: count,
  line: described(count, 'Line of the source that is wrong.'),
  job: described(text, 'Id of the job that failed.'),
  service: described(text, 'The backing service that is off or failed.'),
  media_type: described(text, 'What was found in place of what is accepted.'),
  target_status: described(count, 'Status with which the other server answered.'),
  failed_engines: texts,
  status: count,
  status_url: described(text, 'Where the status of the app is.'),
  first: described(text, 'The first day there is.'),
  last: described(text, 'The last day there is.'),
};

export const problemSchema: Json = {
  type: 'object',
  description: 'RFC 9457 problem.',
  required: ['type', 'title', 'status', 'detail', 'instance', 'request_id'],
  properties: {
    ...addedMembers,
    type: { type: 'string', format: 'uri' },
    title: text,
    status: count,
    detail: text,
    instance: text,
    request_id: text,
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['in', 'field', 'message', 'fix'],
        properties: {
          in: { enum: ['body', 'path', 'query', 'header', 'argument'] },
          field: text,
          message: text,
          fix: text,
        },
      },
    },
  },
};
